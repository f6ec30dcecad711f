/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CAUSE_H
#define CAUSE_H

#include <linux/types.h>
#include <stddef.h>

#include "cleanup.h"
#include "tlob-record.h"

/* Why a window took so long, in words: as far as the back end could tell. */

/* Where in the kernel a task was: names of functions, the innermost first. */
typedef struct Stack {
        size_t n;
        char frames[TLOB_FRAMES_MAX][TLOB_SYMBOL_LEN];
} Stack;

/* Drops what is not the task's own: the frames above the scheduler's. */
void stack_trim(Stack *stack);

/* What a report tells of other tasks; a time_ns of 0: nothing. */
typedef struct Peers {
        struct tlob_peer woken_by;
        struct tlob_peer preempted_by;
        struct tlob_peer ran_before;
} Peers;

/* Strings are escaped, and NULL where nothing is known. */
typedef struct Cause {
        char *blocked_in;   /* function of the kernel */
        char *woken_by;     /* "redis-server[812]", "interrupt" */
        char *preempted_by; /* "stress[4]", "stress[4], kworker/0:1[19]": first and last */
        char **stack;       /* ends with NULL */
} Cause;

/* stack may be NULL. Returns 0 or -ENOMEM; then *ret is not touched. */
int cause_make(const Stack *stack, const Peers *peers, Cause *ret);
int cause_copy(const Cause *cause, Cause *ret);
void cause_done(Cause *cause);

#endif
