/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_UPROBE_H
#define BPF_UPROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/pins.h"

/*
 * Probes in one file with a BPF program on them, which tell it the same cookie; or the same on an
 * event of the kernel.
 */

struct bpf_link;
struct bpf_program;

typedef struct Uprobe Uprobe;

typedef struct UprobeSpec {
        int prog_fd;
        bool multi;  /* the program is for uprobe_multi links: see uprobe_multi_is_supported() */
        int file_fd; /* only used during the call */
        const uint64_t *offsets;
        size_t n_offsets;           /* at least 1 */
        const uint64_t *semaphores; /* as in SiteKey */
        bool is_return;
        bool is_event; /* the offset is the number of one; without a file, and not multi */
        uint64_t cookie;
        uint32_t pid;  /* only in that process, see uprobe_multi_takes_processes(); 0: in all */
        Pins *pins;    /* keeps the links, and outlives the probes; NULL: there is none */
        uint32_t file; /* the group that they belong to there, see uprobe_file_group() */
} UprobeSpec;

/*
 * Whether this kernel has uprobe_multi links (Linux 6.6), by trying. They cost less a hit and are
 * gone sooner than perf events.
 */
bool uprobe_multi_is_supported(void);

/*
 * Whether such links can be limited to a process, by trying (Linux 6.10). Those before count only
 * one thread of it. A process is one as long as it lives, whatever program it executes; its
 * children are others.
 */
bool uprobe_multi_takes_processes(void);

/* Makes a program that is not loaded yet one for uprobe_multi links. */
void uprobe_multi_prepare(struct bpf_program *prog);

/* The same for all probes in one file, and hardly any other. */
uint32_t uprobe_file_group(uint64_t device, uint64_t inode);

/* All of them or none. Returns 0 or a negative errno from the kernel. */
int uprobe_attach(const UprobeSpec *spec, Uprobe **ret);

/* A link that a predecessor has pinned. Returns it, or NULL: there is no memory. */
Uprobe *uprobe_inherit(const Pins *pins, uint64_t pin);

/*
 * Links of other kinds, to go as probes do. Takes ownership of them (NULL: it is none). Returns
 * NULL if there is no memory; then they stay the caller's.
 */
Uprobe *uprobe_of_links(struct bpf_link *const *links, size_t n);

/*
 * Something else in the kernel, to go as probes do: it lives as long as that descriptor, or what is
 * pinned of it. Takes ownership of it. Returns 0 or a negative errno; then it stays the caller's.
 */
int uprobe_of_fd(Pins *pins, int fd, Uprobe **ret);

/*
 * Takes the probes out of the kernel: waits for a grace period there, 0.04 to 0.5 s; without
 * uprobe_multi links, for each of them.
 */
Uprobe *uprobe_detach(Uprobe *uprobe);
DEFINE_CLEANUP(Uprobe, uprobe_detach);

/* The same for probes that nobody can hit any more: does not wait if that can be avoided. */
Uprobe *uprobe_drop(Uprobe *uprobe);

#endif
