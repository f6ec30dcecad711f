/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUGGEST_CANDIDATES_H
#define SUGGEST_CANDIDATES_H

#include <stdint.h>

#include "suggest/stacks.h"
#include "suggest/stretches.h"

/* What could be measured in a service, as the keys of a binding. */

typedef struct Candidate {
        char *label;      /* for people */
        char *executable; /* NULL: a system call, or two events of the kernel */
        char *build_id;   /* of a function's file; NULL: it has none, or there is no function */
        char *start;
        char *stop;
        uint64_t spent_ns; /* seen in it; 0: nobody has looked */
} Candidate;

#define CANDIDATES_MAX 24
#define OLD_FILES_MAX  8

/* Functions in it cannot be measured, as the daemon would measure what is at its path. */
typedef struct OldFile {
        const char *path; /* owned by the stacks */
        FileFate fate;
} OldFile;

typedef struct Candidates {
        Candidate items[CANDIDATES_MAX];
        size_t n;
        OldFile old[OLD_FILES_MAX];
        size_t n_old;
} Candidates;

void candidates_done(Candidates *candidates);

/*
 * Asks for the names of those that could be added next and have none: see
 * elf_file_set_debug_finder().
 */
void candidates_fetch_names(const Stretches *stretches, Stacks *stacks, ElfDebugFinder finder,
                            void *userdata);

/*
 * Adds the functions in which most time was spent, and the old files that others of them are in. Of
 * those that contain the same time, it takes one. Returns 0 or -ENOMEM.
 */
int candidates_add_functions(Candidates *candidates, const Stretches *stretches,
                             const Stacks *stacks);

/*
 * Adds the system calls in which most time was spent: spent_ns is by their numbers. Those that do
 * not come to a hundredth of whole_ns are left out. Returns as above.
 */
int candidates_add_calls(Candidates *candidates, const uint64_t *spent_ns, size_t n,
                         uint64_t whole_ns);

/*
 * Adds the steps of an event loop: from the end of the call in which it waits for work to the begin
 * of the next. idle_ns is by the numbers of the calls in which threads have waited; that one counts
 * in which they did most, of those that event loops make. A program in Go, which is at outside, has
 * none: its threads wait for all of its goroutines. Returns as above.
 */
int candidates_add_loop(Candidates *candidates, const uint64_t *idle_ns, size_t n,
                        const char *outside);

/*
 * Adds pairs of USDT probes of a program or library, which is at outside for us and at inside for
 * its processes: those whose names say that they are a beginning and its end, and whose beginning
 * is in a function that was seen; as many as there is room for. A file that cannot be read has
 * none. Returns 0 or -ENOMEM.
 */
int candidates_add_usdt(Candidates *candidates, const Stretches *stretches, const Stacks *stacks,
                        const char *outside, const char *inside);

/*
 * A name for a section, from the label; number: 1, or more if there are others of that name before
 * it. NULL for want of memory.
 */
char *candidate_make_name(const Candidate *candidate, unsigned number);

#endif
