/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUGGEST_STRETCHES_H
#define SUGGEST_STRETCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/*
 * In which calls of which functions the tasks of a service spend their time, from stacks that were
 * sampled. Functions are numbers here.
 */

typedef struct Stretches Stretches;

#define STRETCH_FRAMES_MAX 128

/* What does not come to this part of all that was seen is not worth a thought: 1 in 100. */
#define STRETCHES_SMALL_PART 100

typedef struct StretchFrame {
        uint32_t function;
        uint64_t sp; /* tells one call of it from another */
} StretchFrame;

/* What is known of a function. */
typedef struct Stretch {
        uint32_t function;
        uint64_t spent_ns; /* in it, and in what it calls, but for waiting for work */
        uint64_t idle_ns;  /* waiting for work */
        uint64_t n_seen;   /* samples */
        uint64_t n_ended;  /* calls that were seen, and were over at a later sample */
} Stretch;

int stretches_new(Stretches **ret);
Stretches *stretches_free(Stretches *stretches);
DEFINE_CLEANUP(Stretches, stretches_free);

typedef struct StretchStack {
        pid_t tid;
        const StretchFrame *frames; /* outermost first; not owned */
        size_t n;
        bool is_complete; /* else frames outside of these are missing */
        bool is_idle;     /* it waits for work */
} StretchStack;

/* A stack that stands for so much time. Returns 0, -ENOMEM, or -E2BIG. */
int stretches_add(Stretches *stretches, const StretchStack *stack, uint64_t weight_ns);

/*
 * The functions whose calls come and go, those first in which most time is spent; of several that
 * contain the same time, the outermost first. Left out are those that wait for work themselves.
 * At most n; returns how many.
 */
size_t stretches_rank(const Stretches *stretches, Stretch *ret, size_t n);

/* The time that was spent in that function; 0: it was not seen. */
uint64_t stretches_get_spent_in(const Stretches *stretches, uint32_t function);

/* The time that was seen, but for waiting for work. */
uint64_t stretches_get_spent(const Stretches *stretches);

#endif
