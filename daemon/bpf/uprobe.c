/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Attaching one BPF program to places of one file, through whichever of the kernel's two interfaces
 * is the better here: one uprobe_multi link, or for each place a perf event with a link on it.
 * Which programs go where, and when they go away, is not decided here.
 *
 * The file is named to the kernel as /proc/self/fd/N, so that the probe lands in the file that was
 * looked into, whatever has become of its path since. uprobe_multi is younger than the libbpf and
 * the kernel headers of Debian 12: what is needed of its interface is declared below.
 */

#include "bpf/uprobe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "bpf/opts.h"
#include "elf/file.h"

#define ATTACH_UPROBE_MULTI 48        /* BPF_TRACE_UPROBE_MULTI */
#define UPROBE_MULTI_RETURN (1U << 0) /* BPF_F_UPROBE_MULTI_RETURN */

/* The head of union bpf_attr for BPF_LINK_CREATE of an uprobe_multi link. */
struct uprobe_multi_attr {
        uint32_t prog_fd;
        uint32_t target_fd;
        uint32_t attach_type;
        uint32_t flags;
        uint64_t path;
        uint64_t offsets;
        uint64_t ref_ctr_offsets;
        uint64_t cookies;
        uint32_t count;
        uint32_t multi_flags;
        uint32_t pid;
        uint32_t reserved;
};

/* The one place of a perf event, or all places of an uprobe_multi link. */
typedef struct UprobeLink {
        int link_fd;
        int perf_fd;            /* -EBADF for uprobe_multi */
        uint64_t pin;           /* instead of both; 0: there is none */
        struct bpf_link *other; /* the same, of another kind; NULL: there is none */
} UprobeLink;

struct Uprobe {
        const Pins *pins; /* the caller's */
        size_t n;
        UprobeLink links[];
};

static int multi_link_create(struct uprobe_multi_attr attr, const char *path) {
        long fd;

        attr.attach_type = ATTACH_UPROBE_MULTI;
        attr.path = (uint64_t) (uintptr_t) path;
        fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
        return fd < 0 ? -errno : (int) fd;
}

/*
 * What the kernel says of a link at the very beginning of a file, with a program that does nothing.
 */
static int multi_link_try(const char *path, uint32_t pid) {
        static const struct bpf_insn insns[] = {
                { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
                { .code = BPF_JMP | BPF_EXIT },
        };
        _cleanup_close_ int prog_fd = -EBADF;
        static const uint64_t zero = 0;
        struct bpf_prog_load_opts opts;

        opts_init(&opts);
        opts.expected_attach_type = ATTACH_UPROBE_MULTI;
        prog_fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, ELEMENTSOF(insns), &opts);
        if (prog_fd < 0)
                return -errno;
        return multi_link_create(
                (struct uprobe_multi_attr) {
                        .prog_fd = (uint32_t) prog_fd,
                        .offsets = (uint64_t) (uintptr_t) &zero,
                        .cookies = (uint64_t) (uintptr_t) &zero,
                        .count = 1,
                        .pid = pid,
                },
                path);
}

bool uprobe_multi_is_supported(void) {
        /*
         * A directory cannot be probed: a kernel that knows the link type gets as far as saying so.
         */
        _cleanup_close_ int link_fd = multi_link_try("/", 0);

        return link_fd == -EBADF;
}

static void *try_thread(void *arg) {
        int *result = arg;

        *result = multi_link_try("/proc/self/exe", (uint32_t) gettid());
        return NULL;
}

bool uprobe_multi_takes_processes(void) {
        _cleanup_close_ int link_fd = -EBADF;
        pthread_t thread;

        /* A kernel that means processes knows none by the id of a thread that leads none. */
        if (pthread_create(&thread, NULL, try_thread, &link_fd) != 0)
                return false;
        (void) pthread_join(thread, NULL);
        return link_fd == -ESRCH;
}

void uprobe_multi_prepare(struct bpf_program *prog) {
        (void) bpf_program__set_expected_attach_type(prog,
                                                     (enum bpf_attach_type) ATTACH_UPROBE_MULTI);
}

/* Reads "8", "config:0" or "config:32-63": the number at the end, or the lower one. */
static int read_number(const char *path, unsigned *ret) {
        _cleanup_fclose_ FILE *f = NULL;
        char line[64], *colon, *end;
        unsigned long n;

        f = fopen(path, "re");
        if (!f)
                return -errno;
        if (!fgets(line, sizeof(line), f))
                return -EIO;

        colon = strchr(line, ':');
        n = strtoul(colon ? colon + 1 : line, &end, 10);
        if (*end != '\n' && *end != '\0' && *end != '-')
                return -EIO;
        *ret = (unsigned) n;
        return 0;
}

static int perf_uprobe_open(const char *path, const ElfPlace *place, bool is_return) {
        struct perf_event_attr attr = {
                .size = sizeof(attr),
                .config1 = (uint64_t) (uintptr_t) path,
                .config2 = place->offset,
        };
        unsigned type, bit = 0;
        long fd;
        int r;

        r = read_number("/sys/bus/event_source/devices/uprobe/type", &type);
        if (r < 0)
                return r;
        if (is_return) {
                r = read_number("/sys/bus/event_source/devices/uprobe/format/retprobe", &bit);
                if (r < 0)
                        return r;
                attr.config |= 1ULL << bit;
        }
        if (place->semaphore) {
                r = read_number("/sys/bus/event_source/devices/uprobe/format/ref_ctr_offset", &bit);
                if (r < 0)
                        return r;
                attr.config |= place->semaphore << bit;
        }
        attr.type = type;

        fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
        return fd < 0 ? -errno : (int) fd;
}

static int perf_event_open_tracepoint(uint64_t id) {
        struct perf_event_attr attr = {
                .size = sizeof(attr),
                .type = PERF_TYPE_TRACEPOINT,
                .config = id,
        };
        /* On one CPU, but the program is run on all of them. */
        long fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

        return fd < 0 ? -errno : (int) fd;
}

/*
 * A hit that was underway when the program came has seen the probe without it, and will see that of
 * a predecessor only if that is still there. Who puts another probe at the place waits for it: the
 * kernel goes over the probes of a place as a reader of the lock that this takes as a writer
 * (kernel/events/uprobes.c, handler_chain(), before Linux 6.13).
 */
static void perf_await_hits(const char *path, const ElfPlace *place, bool is_return) {
        safe_close(perf_uprobe_open(path, place, is_return));
}

static int perf_attach(const UprobeSpec *spec, const char *path, size_t i, UprobeLink *link) {
        struct bpf_link_create_opts opts;
        ElfPlace place = {
                .offset = spec->offsets[i],
                .semaphore = spec->semaphores ? spec->semaphores[i] : 0,
        };
        int fd;

        fd = spec->is_event ? perf_event_open_tracepoint(place.offset)
                            : perf_uprobe_open(path, &place, spec->is_return);
        if (fd < 0)
                return fd;
        link->perf_fd = fd;

        opts_init(&opts);
        opts.perf_event.bpf_cookie = spec->cookie;
        fd = bpf_link_create(spec->prog_fd, link->perf_fd, BPF_PERF_EVENT, &opts);
        if (fd < 0)
                return fd;
        link->link_fd = fd;
        if (!spec->is_event && spec->pins && pins_have_inherited(spec->pins))
                perf_await_hits(path, &place, spec->is_return);
        return 0;
}

static int multi_attach(const UprobeSpec *spec, const char *path, UprobeLink *link) {
        _cleanup_free_ uint64_t *cookies = NULL;
        int fd;

        cookies = calloc(spec->n_offsets, sizeof(*cookies));
        if (!cookies)
                return -ENOMEM;
        for (size_t i = 0; i < spec->n_offsets; i++)
                cookies[i] = spec->cookie;

        fd = multi_link_create(
                (struct uprobe_multi_attr) {
                        .prog_fd = (uint32_t) spec->prog_fd,
                        .offsets = (uint64_t) (uintptr_t) spec->offsets,
                        .ref_ctr_offsets = (uint64_t) (uintptr_t) spec->semaphores,
                        .cookies = (uint64_t) (uintptr_t) cookies,
                        .count = (uint32_t) spec->n_offsets,
                        .multi_flags = spec->is_return ? UPROBE_MULTI_RETURN : 0,
                        .pid = spec->pid,
                },
                path);
        if (fd < 0)
                return fd;
        link->link_fd = fd;
        return 0;
}

/* A link holds what it needs: who holds the link needs no more. */
static void link_pin(Pins *pins, uint32_t file, UprobeLink *link) {
        if (!pins || pins_add(pins, link->link_fd, file, &link->pin) < 0)
                return;
        link->link_fd = safe_close(link->link_fd);
        link->perf_fd = safe_close(link->perf_fd);
}

static void link_end(const Pins *pins, UprobeLink *link) {
        (void) bpf_link__destroy(link->other);
        if (link->pin)
                link->link_fd = pins_take(pins, link->pin);
        safe_close(link->link_fd);
        safe_close(link->perf_fd);
}

static Uprobe *uprobe_alloc(const Pins *pins, size_t n) {
        Uprobe *uprobe;

        uprobe = malloc(sizeof(*uprobe) + n * sizeof(uprobe->links[0]));
        if (!uprobe)
                return NULL;
        uprobe->pins = pins;
        uprobe->n = n;
        for (size_t i = 0; i < n; i++)
                uprobe->links[i] = (UprobeLink) { .link_fd = -EBADF, .perf_fd = -EBADF };
        return uprobe;
}

uint32_t uprobe_file_group(uint64_t device, uint64_t inode) {
        uint64_t mixed = (inode ^ device << 40 ^ device >> 24) * UINT64_C(0x9e3779b97f4a7c15);

        return (uint32_t) (mixed >> 32);
}

int uprobe_attach(const UprobeSpec *spec, Uprobe **ret) {
        _cleanup_(uprobe_detachp) Uprobe *uprobe = NULL;
        size_t n = spec->multi ? 1 : spec->n_offsets;
        char path[64];
        int r = 0;

        uprobe = uprobe_alloc(spec->pins, n);
        if (!uprobe)
                return -ENOMEM;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%i", spec->file_fd);
        if (spec->multi)
                r = multi_attach(spec, path, &uprobe->links[0]);
        for (size_t i = 0; !spec->multi && r >= 0 && i < n; i++)
                r = perf_attach(spec, path, i, &uprobe->links[i]);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                link_pin(spec->pins, spec->file, &uprobe->links[i]);

        *ret = TAKE_PTR(uprobe);
        return 0;
}

Uprobe *uprobe_inherit(const Pins *pins, uint64_t pin) {
        Uprobe *uprobe = uprobe_alloc(pins, 1);

        if (uprobe)
                uprobe->links[0].pin = pin;
        return uprobe;
}

Uprobe *uprobe_of_links(struct bpf_link *const *links, size_t n) {
        Uprobe *uprobe = uprobe_alloc(NULL, n);

        for (size_t i = 0; uprobe && i < n; i++)
                uprobe->links[i].other = links[i];
        return uprobe;
}

int uprobe_of_fd(Pins *pins, int fd, Uprobe **ret) {
        Uprobe *uprobe = uprobe_alloc(pins, 1);

        if (!uprobe)
                return -ENOMEM;
        uprobe->links[0].link_fd = fd;
        link_pin(pins, 0, &uprobe->links[0]);
        *ret = uprobe;
        return 0;
}

Uprobe *uprobe_drop(Uprobe *uprobe) {
        for (size_t i = 0; uprobe && i < uprobe->n; i++)
                if (uprobe->links[i].pin) {
                        pins_remove(uprobe->pins, uprobe->links[i].pin);
                        uprobe->links[i].pin = 0;
                }
        return uprobe_detach(uprobe);
}

Uprobe *uprobe_detach(Uprobe *uprobe) {
        if (!uprobe)
                return NULL;

        for (size_t i = 0; i < uprobe->n; i++)
                link_end(uprobe->pins, &uprobe->links[i]);
        free(uprobe);
        return NULL;
}
