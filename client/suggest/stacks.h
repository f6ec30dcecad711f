/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUGGEST_STACKS_H
#define SUGGEST_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/file.h"
#include "suggest/mapping.h"
#include "suggest/sampler.h"
#include "suggest/stretches.h"

/* From the stack of a task, as sampled, to the functions that it is in. */

typedef struct Stacks Stacks;

/* A function that was seen, by the number that StretchFrame has. */
typedef struct SeenFunction {
        const char *path;     /* of its file, as its process sees it, or saw it */
        const char *build_id; /* of that file; NULL: it has none */
        uint64_t offset;      /* in the file: where it begins, if that is known */
        const char *name;     /* NULL: it has none */
        FileFate fate;        /* of that file */
        bool is_program;      /* that file is the program of a process */
        bool is_fetched;      /* that name, which is of no use for tlobd */
        bool is_known;        /* where it begins */
        bool is_library;      /* it is one of libc's, or of the dynamic loader */
        bool is_lock;         /* it waits for a lock, as far as its name tells */
} SeenFunction;

int stacks_new(Stacks **ret);
Stacks *stacks_free(Stacks *stacks);
DEFINE_CLEANUP(Stacks, stacks_free);

/*
 * The frames of a sample, outermost first; *ret_complete: all of them, else some that are outside
 * are missing. Returns how many there are; 0: it could not be unwound, because its process has
 * ended or its files cannot be read; or -ENOMEM.
 */
int stacks_unwind(Stacks *stacks, const StackSample *sample,
                  StretchFrame ret[static STRETCH_FRAMES_MAX], bool *ret_complete);

/* Is a lock waited for in the innermost of these frames? */
bool stacks_wait_for_lock(const Stacks *stacks, const StretchFrame *frames, size_t n);

const SeenFunction *stacks_get(const Stacks *stacks, uint32_t function);

/*
 * The files that functions were seen in, as their processes see them, but for libc and those that
 * are not at their paths any more: the next one, *i is 0 at first. NULL: there are no more.
 */
const char *stacks_next_file(const Stacks *stacks, size_t *i);

/* Asks for the name of one that has none: see elf_file_set_debug_finder(). */
void stacks_fetch_name(Stacks *stacks, uint32_t function, ElfDebugFinder finder, void *userdata);

/*
 * The function that begins there, if it was seen: in what is at that path, or in the program that
 * was. Returns 0 or -ENOENT.
 */
int stacks_find(const Stacks *stacks, const char *path, uint64_t offset, uint32_t *ret);

#endif
