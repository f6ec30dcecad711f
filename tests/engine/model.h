/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What must be counted when the victim does what its words say: the contract in plain C. It knows
 * nothing of how the back end comes to its figures.
 */

#define MODEL_BINDINGS_MAX 16
#define MODEL_WINDOWS_MAX  8 /* open at once on one thread */

/* A budget that is not set, or that no program here can break. */
#define MODEL_NEVER UINT64_MAX

typedef struct ModelBinding {
        const char *start; /* a function, in the victim's language: "a", "<x", ">x" */
        const char *stop;  /* another one, or NULL: the return from start */
        uint64_t total_ns; /* budgets */
        uint64_t running_ns;
        uint64_t sleeping_ns;
} ModelBinding;

typedef struct ModelBooks {
        uint64_t starts;
        uint64_t stopped; /* in budget or violated */
        uint64_t exited;
        uint64_t execed;
        uint64_t abandoned;
        uint64_t over_limit;
        uint64_t nested;
        uint64_t unmatched;

        /* Windows that must have passed a budget, and those that may have, as the machine likes. */
        uint64_t violations_min;
        uint64_t violations_max;
        /* Of them, those that ended by their stop. */
        uint64_t violated_min;
        uint64_t violated_max;
} ModelBooks;

/*
 * Replays the words. Bindings of one start take their places in the order given. Returns how long
 * the program takes at least, in ns.
 */
uint64_t model_run(const char *const *words, const ModelBinding *bindings, size_t n_bindings,
                   ModelBooks ret_books[static MODEL_BINDINGS_MAX]);

#endif
