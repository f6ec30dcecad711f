/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_PINS_H
#define BPF_PINS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "bpf/pin-directory.h"

/*
 * Keeps BPF links and maps alive without a file descriptor each, in a BPF file system of our own
 * that is mounted nowhere. It ends with the last descriptor of it, and all that is in it: see the
 * top of pins.c. Or in a directory that stays when this process ends without pins_free().
 */

typedef struct Pins Pins;

struct bpf_link;
struct bpf_program;

/* A program that is attached, and goes on without us if its link is pinned. */
typedef struct PinnedLink {
        struct bpf_link *link; /* NULL: it is not attached */
        uint64_t pin;          /* 0: there is none */
} PinnedLink;

/*
 * keep_fd: where to make a directory for them; NULL: they are in a file system of their own.
 * Returns 0, or a negative errno: links must be kept by their descriptors then.
 */
int pins_new(const int *keep_fd, Pins **ret);

/*
 * The file system or directory that a predecessor has left, by a descriptor that becomes the pins'.
 * What it has pinned is not taken over: pins_end_inherited(). Returns 0, -ESTALE if it is no BPF
 * file system, another negative errno; then fd stays the caller's.
 */
int pins_inherit(int fd, Pins **ret);

/* Then what is pinned in a directory is still there after pins_free(). */
void pins_leave(Pins *pins);

/* What is still pinned goes away in the background, if nobody else has the file system. */
Pins *pins_free(Pins *pins);
DEFINE_CLEANUP(Pins, pins_free);

/* Of the file system or directory; owned by the pins. */
int pins_get_fd(const Pins *pins);

/*
 * Keeps the link of that descriptor, which can be closed. group: any number; see below. *ret_pin is
 * never 0.
 */
int pins_add(Pins *pins, int link_fd, uint32_t group, uint64_t *ret_pin);

/* Attaches the program, and keeps its link if it can. pins: NULL: there are none. */
int pins_attach(Pins *pins, const struct bpf_program *program, PinnedLink *ret);

/*
 * A descriptor of the link, which is pinned no longer: to close it ends the link. Can be called by
 * any thread. Returns it or a negative errno; then the link goes away in the background.
 */
int pins_take(const Pins *pins, uint64_t pin);

/* The link goes away in the background. */
void pins_remove(const Pins *pins, uint64_t pin);

/* Are there links of a predecessor? */
bool pins_have_inherited(const Pins *pins);

/* Calls the visitor for those of a group. */
void pins_visit_inherited(const Pins *pins, uint32_t group,
                          void (*visitor)(uint64_t pin, void *userdata), void *userdata);

/* Calls the visitor for each of them, once in all. */
void pins_end_inherited(Pins *pins, void (*visitor)(uint64_t pin, void *userdata), void *userdata);

/* Where what has that name is pinned. */
PinPath pins_path(const Pins *pins, const char *name);

/* What has a name stays for the successors. Returns 0 or a negative errno. */
int pins_add_named(const Pins *pins, const char *name, int fd);

/* What has a name that begins with kind goes away in the background, but for that with keep. */
void pins_remove_others(const Pins *pins, const char *kind, const char *keep);

#endif
