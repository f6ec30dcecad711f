/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A perf event asks programs to write the event, and is on one CPU: those of all CPUs are in a map,
 * which can be pinned as links can. A CPU that is not there has none, also when it comes later; and
 * when one is switched off, as most are while the machine is suspended, the kernel lets its perf
 * events go for good.
 *
 * Of two daemons, of which one takes over from the other, each is told of its own perf events, and
 * hits count once as those of probes do.
 */

#include "bpf/user-events.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "bpf/opts.h"

void user_events_init(UserEvents *events, LatePrograms *late, Pins *pins, size_t n_cpus) {
        *events = (UserEvents) { .late = late, .pins = pins, .n_cpus = n_cpus };
}

void user_events_done(UserEvents *events) {
        if (events->program.pin)
                pins_remove(events->pins, events->program.pin);
        (void) bpf_link__destroy(events->program.link);
        *events = (UserEvents) {};
}

static int attach_program(UserEvents *events) {
        struct bpf_program *program;
        int r;

        r = late_programs_get_user_events(events->late, &program);
        return r < 0 ? r : pins_attach(events->pins, program, &events->program);
}

static int open_on_cpu(struct perf_event_attr attr, uint32_t cpu, int map_fd) {
        _cleanup_close_ int fd = -EBADF;

        fd = (int) syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0)
                return errno == ENODEV ? 0 : -errno;
        return bpf_map_update_elem(map_fd, &cpu, &fd, BPF_ANY) < 0 ? -errno : 0;
}

int user_events_attach(UserEvents *events, uint64_t number, uint32_t side, uint64_t cookie,
                       Uprobe **ret) {
        const struct perf_event_attr attr = {
                .size = sizeof(attr),
                .type = PERF_TYPE_TRACEPOINT,
                .config = number,
                .config1 = cookie,
                .config2 =
                        TLOB_USER_EVENT_OF(events->late->programs->bpf->rodata->hooks_number, side),
                .sample_period = 1,
        };
        _cleanup_close_ int map_fd = -EBADF;
        struct bpf_map_create_opts opts;
        int r;

        r = events->program.link ? 0 : attach_program(events);
        if (r < 0)
                return r;
        opts_init(&opts);
        opts.map_flags = BPF_F_PRESERVE_ELEMS;
        map_fd = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "user_event", sizeof(uint32_t),
                                sizeof(uint32_t), (uint32_t) events->n_cpus, &opts);
        if (map_fd < 0)
                return -errno;
        for (uint32_t cpu = 0; r >= 0 && cpu < events->n_cpus; cpu++)
                r = open_on_cpu(attr, cpu, map_fd);
        if (r >= 0)
                r = uprobe_of_fd(events->pins, map_fd, ret);
        if (r >= 0)
                map_fd = -EBADF;
        return r;
}
