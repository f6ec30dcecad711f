/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The back end that measures with the kernel's own tlob monitor, driven through tracefs. The
 * monitor is built into kernels that have it, and is enabled as long as there is a binding for it
 * here.
 *
 * Here are what the daemon asks for and the life of the back end; kernel/context.h has what all
 * files of it share, kernel/entry.c a binding's place in the monitor, kernel/report.c what becomes
 * of its events, kernel/repair.c what others do to it.
 *
 * What the monitor does not tell is not known here: how many windows there were, how long those
 * took that kept their budget, and when one that broke it ended. There are no completions.
 *
 * Probes are taken out before the monitor is switched off, and it is switched as rarely as can be:
 * a start that races with the switch was seen to crash the kernel.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <syslog.h>

#include "base/sentence.h"
#include "kernel/ability.h"
#include "kernel/context.h"
#include "kernel/crowd.h"
#include "kernel/entry.h"
#include "kernel/leaving.h"
#include "kernel/limitations.h"
#include "kernel/repair.h"
#include "kernel/report.h"
#include "kernel/reset.h"

typedef struct KernelBackend {
        Backend backend; /* first */
        KernelContext context;
} KernelBackend;

static KernelContext *KERNEL(Backend *backend) {
        return &((KernelBackend *) backend)->context;
}

static int kernel_backend_probe(char **ret_reason) {
        KernelTracing tracing;
        KernelMonitor monitor;
        int r;

        r = kernel_tracing_init(&tracing, ret_reason);
        if (r < 0)
                return r;
        r = kernel_monitor_init(&monitor, &tracing, ret_reason);
        if (r >= 0)
                r = kernel_monitor_check(&monitor, ret_reason);
        kernel_tracing_done(&tracing);
        return r < 0 ? r : kernel_state_is_left(KERNEL_STATE_DIRECTORY);
}

static Backend *kernel_backend_free(Backend *backend) {
        KernelContext *c;

        if (!backend)
                return NULL;
        c = KERNEL(backend);
        for (size_t i = 0; i < c->n_entries; i++)
                if (c->entries[i].used) {
                        if (!c->entries[i].retired)
                                (void) backend->ops->remove(backend, (uint32_t) i, NULL, NULL);
                        kernel_entry_done(c, &c->entries[i]);
                }
        for (size_t i = 0; i < c->left.n; i++)
                (void) kernel_monitor_remove_line(&c->monitor, &c->left.items[i]);
        c->remover = kernel_remover_free(c->remover);
        if (c->stream) {
                (void) kernel_repair_hear(c);
                kernel_reset_leave(c);
                (void) kernel_state_forget(KERNEL_STATE_DIRECTORY);
        }
        kernel_context_done(c);
        free(backend);
        return NULL;
}

/*
 * What a daemon that died has left: its lines that are still there, and how it found the monitor.
 */
static int take_over(KernelContext *c, const KernelLines *present) {
        _cleanup_(kernel_state_done) KernelState before = {};
        int r;

        r = kernel_state_load(KERNEL_STATE_DIRECTORY, &before);
        if (r == -ENOENT || r == -EBADMSG)
                return 0;
        if (r < 0)
                return r;
        c->state.enabled = before.enabled;
        c->state.mounted = c->tracing.mounted = c->tracing.mounted || before.mounted;
        for (size_t i = 0; i < before.lines.n; i++) {
                const KernelLine *line = kernel_lines_find(present, &before.lines.items[i]);

                if (!line)
                        continue;
                r = kernel_lines_add(&c->left, line->text, strlen(line->text));
                if (r < 0)
                        return r;
        }
        return eventfd_write(c->kick_fd, 1) < 0 ? -errno : 0;
}

static int look_around(KernelContext *c, char **ret_reason) {
        _cleanup_(kernel_lines_done) KernelLines present = {};
        int r;

        r = kernel_tracing_init(&c->tracing, ret_reason);
        if (r < 0)
                return r;
        c->state.mounted = c->tracing.mounted;
        r = kernel_monitor_init(&c->monitor, &c->tracing, ret_reason);
        if (r >= 0)
                r = kernel_monitor_check(&c->monitor, ret_reason);
        if (r >= 0)
                r = kernel_monitor_get_enabled(&c->monitor, &c->state.enabled);
        if (r >= 0)
                r = kernel_monitor_list(&c->monitor, &present);
        if (r >= 0)
                r = take_over(c, &present);
        return r < 0 ? r : kernel_repair_note_foreign(c, &present);
}

static int poll_also(KernelContext *c, int fd) {
        struct epoll_event event = { .events = EPOLLIN };

        return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static unsigned stream_flags(const KernelMonitor *monitor) {
        if (kernel_monitor_has_names(monitor))
                return KERNEL_STREAM_SUMS;
        return kernel_monitor_owns_threads(monitor) ? KERNEL_STREAM_STOPS : 0;
}

static int kernel_backend_set_up(KernelContext *c, const BackendConfig *config, char **ret_reason) {
        bool stale = false;
        int r;

        r = kernel_context_init(c, config);
        if (r < 0)
                return r;
        r = look_around(c, ret_reason);
        if (r >= 0)
                r = kernel_remover_new(&c->monitor, c->kick_fd, &c->remover);
        if (r >= 0)
                r = kernel_stream_new(&c->tracing, stream_flags(&c->monitor),
                                      config->ring_buffer_size, &c->stream, &stale, ret_reason);
        if (r >= 0)
                r = kernel_repair_start(c);
        if (r >= 0)
                r = poll_also(c, kernel_stream_get_fd(c->stream));
        if (r >= 0)
                r = poll_also(c, c->watch_fd);
        if (r >= 0)
                r = poll_also(c, c->kick_fd);
        if (r >= 0)
                r = poll_also(c, c->crowd_fd);
        if (r >= 0 && stale)
                kernel_context_notice(
                        c, LOG_NOTICE, BACKEND_NO_INDEX,
                        "An earlier tlobd died and left a trace instance; the violations in it "
                        "are reported now");
        return r < 0 ? r : kernel_context_save(c);
}

static int kernel_backend_new(const BackendConfig *config, Backend **ret, char **ret_reason) {
        KernelBackend *b;
        int r;

        b = calloc(1, sizeof(*b));
        if (!b)
                return -ENOMEM;
        b->backend.ops = &backend_kernel_ops;

        r = kernel_backend_set_up(&b->context, config, ret_reason);
        if (r < 0) {
                kernel_backend_free(&b->backend);
                if (*ret_reason)
                        return r;
                return sentence_error(r, ret_reason, "The kernel's tlob monitor cannot be used: %s",
                                      strerror(-r));
        }
        *ret = &b->backend;
        return 0;
}

static int kernel_backend_add(Backend *backend, const Binding *binding, const BindingFile *file,
                              uint32_t *ret_index, char **ret_reason) {
        KernelContext *c = KERNEL(backend);
        KernelEntry *entry = c->entries;
        int r;

        while (entry < c->entries + c->n_entries && entry->used)
                entry++;
        r = kernel_monitor_check(&c->monitor, ret_reason);
        if (r < 0)
                return r;
        if (kernel_repair_is_hopeless(c))
                return sentence_error(-EBUSY, ret_reason,
                                      "Other programs keep removing bindings from the kernel's "
                                      "monitor");
        if (entry == c->entries + c->n_entries)
                return sentence_error(
                        -ENOSPC, ret_reason,
                        "There are %zu bindings already; raise BindingsMax= in tlobd.conf",
                        c->n_entries);

        *entry = (KernelEntry) {
                .used = true,
                .fd = -EBADF,
                .file_watch = -1,
                .line.text = strdup(""),
                .budget_ns = binding->budget_ns[TLOB_BUDGET_TOTAL],
                .cgroup_id = binding->cgroup.id,
                .cgroup_level = binding->cgroup.level,
        };
        r = free_and_strdup(&entry->unit, binding->unit);
        if (r >= 0)
                r = entry->line.text ? kernel_entry_attach(c, entry, binding, file, ret_reason)
                                     : -ENOMEM;
        if (r < 0) {
                kernel_entry_done(c, entry);
                (void) kernel_context_save(c);
                return r;
        }
        *ret_index = (uint32_t) (entry - c->entries);
        return 0;
}

static void entry_statistics(const KernelEntry *entry, Statistics *ret) {
        memset(ret, 0xff, sizeof(*ret)); /* STATISTIC_UNKNOWN everywhere */
        ret->counters.violations = entry->violations;
        ret->counters.lost = 0;
}

static int kernel_backend_remove(Backend *backend, uint32_t index, Statistics *ret_final,
                                 Histogram *histogram) {
        KernelContext *c = KERNEL(backend);
        KernelEntry *entry = &c->entries[index];

        kernel_repair_unwatch_file(c, entry);
        entry->retired = true;
        kernel_reset_note(c, &entry->file);
        kernel_leaving_add(c, &entry->line, fcntl(entry->fd, F_DUPFD_CLOEXEC, 3));
        kernel_context_retire_threshold(c, entry->line.threshold);
        (void) kernel_context_save(c);
        if (ret_final)
                entry_statistics(entry, ret_final);
        return 0;
}

/* The monitor knows no units: nothing changes for it. */
static int kernel_backend_set_cgroup(Backend *backend, uint32_t index, uint64_t cgroup_id,
                                     unsigned level) {
        KernelContext *c = KERNEL(backend);

        for (size_t i = 0; i < c->n_entries; i++) {
                KernelEntry *entry = &c->entries[i];

                if (!entry->used || !streq_empty(entry->unit, c->entries[index].unit))
                        continue;
                entry->cgroup_id = cgroup_id;
                entry->cgroup_level = level;
        }
        return cgroup_id != 0 ? kernel_repair_on_use(c) : 0;
}

static int kernel_backend_set_budget(Backend *backend, uint32_t index,
                                     const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        KernelContext *c = KERNEL(backend);
        KernelEntry *entry = &c->entries[index];
        uint64_t threshold;

        for (int i = TLOB_BUDGET_RUNNING; i < TLOB_N_BUDGETS; i++)
                if (budget_ns[i] != BUDGET_NONE)
                        return -EOPNOTSUPP;
        if (kernel_check_budget(budget_ns[TLOB_BUDGET_TOTAL], NULL) < 0)
                return -EOPNOTSUPP;
        if (budget_ns[TLOB_BUDGET_TOTAL] == entry->budget_ns)
                return 0;

        threshold = kernel_choose_threshold(c, budget_ns[TLOB_BUDGET_TOTAL]);
        if (threshold == 0)
                return -EOPNOTSUPP;
        entry->budget_ns = budget_ns[TLOB_BUDGET_TOTAL];
        return kernel_entry_change(c, entry, threshold);
}

static int kernel_backend_get_fd(Backend *backend) {
        return KERNEL(backend)->epoll_fd;
}

static int kernel_backend_dispatch(Backend *backend, BackendReportHandler handler, void *userdata) {
        KernelContext *c = KERNEL(backend);
        int n, r;

        c->handler = handler;
        c->userdata = userdata;
        n = kernel_stream_read(c->stream, kernel_on_violation, c);
        if (kernel_stream_is_pending(c->stream))
                (void) eventfd_write(c->kick_fd, 1);
        kernel_leaving_reap(c);
        r = kernel_repair_run(c);
        kernel_crowd_run(c);

        for (size_t i = 0; i < c->n_entries; i++)
                if (c->entries[i].retired)
                        kernel_entry_done(c, &c->entries[i]);
        return n < 0 ? n : r < 0 ? r : n;
}

static int kernel_backend_next_notice(Backend *backend, BackendNotice *ret) {
        return kernel_context_next_notice(KERNEL(backend), ret);
}

static uint64_t kernel_backend_lost(Backend *backend) {
        KernelStreamCounters counters;

        kernel_stream_get_counters(KERNEL(backend)->stream, &counters);
        return counters.lost;
}

static int kernel_backend_statistics(Backend *backend, uint32_t index, Statistics *ret) {
        entry_statistics(&KERNEL(backend)->entries[index], ret);
        return 0;
}

static int kernel_backend_reset_statistics(Backend *backend, uint32_t index) {
        KERNEL(backend)->entries[index].violations = 0;
        return 0;
}

static const char *const *kernel_backend_limitations(Backend *backend) {
        return kernel_limitations(KERNEL(backend));
}

static const char *kernel_backend_deadline_mode(Backend *backend) {
        return "uprobe";
}

static bool kernel_backend_is_removing(Backend *backend) {
        return KERNEL(backend)->leaving.n > 0;
}

const BackendOps backend_kernel_ops = {
        .name = "kernel",
        .capabilities = BACKEND_CAN_RETURN | BACKEND_CAN_CONFINE,
        .probe = kernel_backend_probe,
        .new = kernel_backend_new,
        .free = kernel_backend_free,
        .can = kernel_can,
        .add = kernel_backend_add,
        .remove = kernel_backend_remove,
        .is_removing = kernel_backend_is_removing,
        .set_cgroup = kernel_backend_set_cgroup,
        .set_budget = kernel_backend_set_budget,
        .get_fd = kernel_backend_get_fd,
        .dispatch = kernel_backend_dispatch,
        .next_notice = kernel_backend_next_notice,
        .lost = kernel_backend_lost,
        .statistics = kernel_backend_statistics,
        .reset_statistics = kernel_backend_reset_statistics,
        .limitations = kernel_backend_limitations,
        .deadline_mode = kernel_backend_deadline_mode,
};
