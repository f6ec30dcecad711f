/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

/*
 * The words in which measurements are described everywhere: in BPF programs, back ends, reports, on
 * D-Bus and in files. No types and no layouts, so that BPF programs can include this header too.
 */

/* The three states that the time of a window is split in, as in the kernel's tlob monitor. */
enum tlob_state {
        TLOB_RUNNING,  /* on a CPU */
        TLOB_WAITING,  /* runnable, on a run queue */
        TLOB_SLEEPING, /* blocked */
        TLOB_N_STATES,
};

/* Which budget: index in budget_ns[]. Those of states are 1 + the state. */
enum tlob_budget {
        TLOB_BUDGET_TOTAL,
        TLOB_BUDGET_RUNNING,
        TLOB_BUDGET_WAITING,
        TLOB_BUDGET_SLEEPING,
        TLOB_BUDGET_MINIMUM, /* broken by a window that ends sooner; the others by longer ones */
        TLOB_N_BUDGETS,
};

/* How a window ended. */
enum tlob_end {
        TLOB_END_STOP,
        TLOB_END_EXIT,      /* the task exited */
        TLOB_END_EXEC,      /* the task began another program */
        TLOB_END_ABANDONED, /* its return can no longer come: longjmp(), an exception */
        TLOB_END_REMOVED,   /* the binding was removed */
        TLOB_END_SWITCHED,  /* its goroutine has left the task: what it did since is not known */
        TLOB_N_ENDS,
};

/* How the windows of a binding end. */
enum tlob_stop {
        TLOB_STOP_PLACE, /* at a place that the task comes to */
        /* when the function has returned: its return address is taken already */
        TLOB_STOP_RETURN_PROBE,
        TLOB_STOP_EXITS, /* at a way out of the function: its return address is still there */
        TLOB_STOP_CALL,  /* when the system call that it is has come to its end */
        /* as TLOB_STOP_EXITS, of a function of Go; or where a goroutine leaves its thread */
        TLOB_STOP_GO,
};

/* Who woke a task, or kept it from its CPU. */
enum tlob_peer_kind {
        TLOB_PEER_TASK,
        TLOB_PEER_INTERRUPT, /* a handler, not the task that it came upon */
        TLOB_PEER_QUOTA,     /* the CPU quota of its own cgroup, or of one above, was used up */
};

#define TLOB_COMM_LEN 16 /* TASK_COMM_LEN: the name of a task, without a zero at its end */

/* Of a stack in the kernel. */
#define TLOB_FRAMES_MAX 24
#define TLOB_SYMBOL_LEN 48 /* longer names are cut off */

/*
 * How long windows took, in buckets: of the same width up to 2^TLOB_SUB_BUCKET_BITS ns, and from
 * there on so many for each power of two. Longer than the last one's lower bound (73 min) is all
 * the same.
 */
#define TLOB_SUB_BUCKET_BITS 4
#define TLOB_BUCKETS         624

#define TLOB_SPARES_MAX 64 /* of one template */

#endif
