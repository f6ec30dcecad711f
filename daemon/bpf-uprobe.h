/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_UPROBE_H
#define BPF_UPROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "cleanup.h"

/* One uprobe with a BPF program on it. */

struct bpf_program;

typedef struct Uprobe Uprobe;

typedef struct UprobeSpec {
        int prog_fd;
        bool multi;  /* the program is for uprobe_multi links: see uprobe_multi_is_supported() */
        int file_fd; /* only used during the call */
        uint64_t offset;
        bool is_return;
        uint64_t cookie;
} UprobeSpec;

/*
 * Whether this kernel has uprobe_multi links (Linux 6.6), by trying. They cost less a hit and are
 * gone sooner than perf events.
 */
bool uprobe_multi_is_supported(void);

/* Makes a program that is not loaded yet one for uprobe_multi links. */
void uprobe_multi_prepare(struct bpf_program *prog);

/* Returns 0 or a negative errno from the kernel. */
int uprobe_attach(const UprobeSpec *spec, Uprobe **ret);

/* Takes the probe out of the kernel: waits for a grace period there, 0.04 to 0.5 s. */
Uprobe *uprobe_detach(Uprobe *uprobe);
DEFINE_CLEANUP(Uprobe, uprobe_detach);

#endif
