/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef REPORT_CAUSE_H
#define REPORT_CAUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/words.h"

/* Why a window took so long, in words: as far as the back end could tell. */

/* A name may be escaped already. */
#define COMM_ESCAPED_MAX ((size_t) 4 * TLOB_COMM_LEN)
#define TASK_NAME_MAX    (COMM_ESCAPED_MAX + sizeof("[4294967295/4294967295]"))

/*
 * A task for people: "nginx[4711]", the thread's name and its process; "bio_aof[812/815]", a thread
 * other than the first one of its process. An id of 0 is not known. Returns buf.
 */
const char *task_name_format(const char *comm, uint32_t pid, uint32_t tid,
                             char buf[static TASK_NAME_MAX]);

/* Where in the kernel a task was: names of functions, the innermost first. */
typedef struct Stack {
        size_t n;
        char frames[TLOB_FRAMES_MAX][TLOB_SYMBOL_LEN];
} Stack;

/* Drops what is not the task's own: the frames above the scheduler's. */
void stack_trim(Stack *stack);

/* The innermost that is not the scheduler's; NULL: none is known. */
const char *stack_blocked_in(const Stack *stack);

/* Another task that a report names, or what takes its place: then there is only the kind. */
typedef struct Peer {
        bool is_known;
        enum tlob_peer_kind kind;
        uint32_t tid;                 /* 0: unknown */
        uint32_t pid;                 /* of its process; 0: unknown */
        char comm[TLOB_COMM_LEN + 1]; /* of the thread */
} Peer;

typedef struct Peers {
        Peer woken_by;     /* who ended the sleep in which the budget ran out */
        Peer preempted_by; /* who kept the window from its CPU for most of its wait */
} Peers;

/*
 * What goes before the function of the kernel in which a task is blocked: "blocked in", or what was
 * done to it where that is no sleep of its own, "stopped or frozen in". Static.
 */
const char *cause_words_for(const char *blocked_in);

/*
 * The same before preempted_by of a cause: "preempted by"; "held back by a" before CAUSE_QUOTA,
 * and "held back by the" before that of a unit.
 */
const char *cause_words_for_peer(const char *preempted_by);

#define CAUSE_QUOTA    "CPU quota"
#define CAUSE_QUOTA_OF CAUSE_QUOTA " of "

/* Does preempted_by of a cause tell of that? A task has no name that is so long. */
bool cause_is_quota_of_unit(const char *preempted_by);

/* Strings are escaped, and NULL where nothing is known. */
typedef struct Cause {
        char *blocked_in; /* function of the kernel */
        char *woken_by;   /* "redis-server[812]", "bio_aof[812/815]" (a thread), "interrupt" */

        /* Who had the CPU for most of the wait; or CAUSE_QUOTA, or CAUSE_QUOTA_OF and a unit. */
        char *preempted_by;
        char **stack; /* ends with NULL */
} Cause;

/* stack may be NULL. Returns 0 or -ENOMEM; then *ret is not touched. */
int cause_make(const Stack *stack, const Peers *peers, Cause *ret);
int cause_copy(const Cause *cause, Cause *ret);
void cause_done(Cause *cause);

/* The quota that it tells of is that unit's. Returns 0 or -ENOMEM; then it is as before. */
int cause_set_quota_of(Cause *cause, const char *unit);

#endif
