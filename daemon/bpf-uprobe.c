/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Attaching one BPF program to one place of one file, through whichever of the kernel's two
 * interfaces is the better here: an uprobe_multi link, or a perf event with a link on it. Which
 * programs go where, and when they go away, is not decided here.
 *
 * The file is named to the kernel as /proc/self/fd/N, so that the probe lands in the file that was
 * looked into, whatever has become of its path since. uprobe_multi is younger than the libbpf and
 * the kernel headers of Debian 12: what is needed of its interface is declared below.
 */

#include "bpf-uprobe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

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

struct Uprobe {
        int link_fd;
        int perf_fd; /* -EBADF for uprobe_multi */
};

static int multi_link_create(int prog_fd, const char *path, uint64_t offset, uint64_t cookie,
                             uint32_t flags) {
        struct uprobe_multi_attr attr = {
                .prog_fd = (uint32_t) prog_fd,
                .attach_type = ATTACH_UPROBE_MULTI,
                .path = (uint64_t) (uintptr_t) path,
                .offsets = (uint64_t) (uintptr_t) &offset,
                .cookies = (uint64_t) (uintptr_t) &cookie,
                .count = 1,
                .multi_flags = flags,
        };
        long fd;

        fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
        return fd < 0 ? -errno : (int) fd;
}

bool uprobe_multi_is_supported(void) {
        static const struct bpf_insn insns[] = {
                { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
                { .code = BPF_JMP | BPF_EXIT },
        };
        LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = ATTACH_UPROBE_MULTI);
        _cleanup_close_ int prog_fd = -EBADF, link_fd = -EBADF;

        prog_fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, ELEMENTSOF(insns), &opts);
        if (prog_fd < 0)
                return false;

        /* A directory cannot be probed: a kernel that knows the link type gets as far as saying so. */
        link_fd = multi_link_create(prog_fd, "/", 0, 0, 0);
        return link_fd == -EBADF;
}

void uprobe_multi_prepare(struct bpf_program *prog) {
        (void) bpf_program__set_expected_attach_type(prog,
                                                     (enum bpf_attach_type) ATTACH_UPROBE_MULTI);
}

/* Reads "8" or "config:0": the number at the end. */
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
        if (*end != '\n' && *end != '\0')
                return -EIO;
        *ret = (unsigned) n;
        return 0;
}

static int perf_uprobe_open(const char *path, uint64_t offset, bool is_return) {
        struct perf_event_attr attr = {
                .size = sizeof(attr),
                .config1 = (uint64_t) (uintptr_t) path,
                .config2 = offset,
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
        attr.type = type;

        fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
        return fd < 0 ? -errno : (int) fd;
}

static int perf_attach(const UprobeSpec *spec, const char *path, Uprobe *uprobe) {
        LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = spec->cookie);
        int fd;

        fd = perf_uprobe_open(path, spec->offset, spec->is_return);
        if (fd < 0)
                return fd;
        uprobe->perf_fd = fd;

        fd = bpf_link_create(spec->prog_fd, uprobe->perf_fd, BPF_PERF_EVENT, &opts);
        if (fd < 0)
                return fd;
        uprobe->link_fd = fd;
        return 0;
}

int uprobe_attach(const UprobeSpec *spec, Uprobe **ret) {
        _cleanup_(uprobe_detachp) Uprobe *uprobe = NULL;
        char path[64];
        int r;

        uprobe = malloc(sizeof(*uprobe));
        if (!uprobe)
                return -ENOMEM;
        *uprobe = (Uprobe){ .link_fd = -EBADF, .perf_fd = -EBADF };

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%i", spec->file_fd);
        if (spec->multi) {
                r = multi_link_create(spec->prog_fd, path, spec->offset, spec->cookie,
                                      spec->is_return ? UPROBE_MULTI_RETURN : 0);
                if (r >= 0)
                        uprobe->link_fd = r;
        } else
                r = perf_attach(spec, path, uprobe);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(uprobe);
        return 0;
}

Uprobe *uprobe_detach(Uprobe *uprobe) {
        if (!uprobe)
                return NULL;

        safe_close(uprobe->link_fd);
        safe_close(uprobe->perf_fd);
        free(uprobe);
        return NULL;
}
