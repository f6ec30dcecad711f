/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TLOB_RECORD_H
#define TLOB_RECORD_H

/*
 * What the BPF programs and the daemon share: the layout of the maps that both touch, and of the
 * records in the ring buffer. Fixed-width types only, no padding that is not spelled out.
 *
 * Include <linux/types.h> (the daemon) or the BPF program's own types first.
 *
 * All times are CLOCK_MONOTONIC nanoseconds.
 */

/* The three states that the time of a window is split in, as in the kernel's tlob monitor. */
enum tlob_state {
        TLOB_RUNNING,  /* on a CPU */
        TLOB_WAITING,  /* runnable, on a run queue */
        TLOB_SLEEPING, /* blocked */
        TLOB_N_STATES,
};

/* Which budget: index in budget_ns[]. The last three are 1 + the state. */
enum tlob_budget {
        TLOB_BUDGET_TOTAL,
        TLOB_BUDGET_RUNNING,
        TLOB_BUDGET_WAITING,
        TLOB_BUDGET_SLEEPING,
        TLOB_N_BUDGETS,
};

/* How a window ended. */
enum tlob_end {
        TLOB_END_STOP,
        TLOB_END_EXIT,      /* the task exited */
        TLOB_END_EXEC,      /* the task began another program */
        TLOB_END_ABANDONED, /* its return can no longer come: longjmp(), an exception */
        TLOB_END_REMOVED,   /* the binding was removed */
        TLOB_N_ENDS,
};

#define TLOB_ENDS_SIZE 8 /* a power of two: an index that is masked fits, as every verifier sees */

enum tlob_record_type {
        TLOB_RECORD_VIOLATION,
        TLOB_RECORD_COMPLETION,
        TLOB_RECORD_STACK,
        TLOB_RECORD_INSTANCE,
};

#define TLOB_COMM_LEN 16 /* TASK_COMM_LEN */

/* Who woke a task, or had its CPU. */
struct tlob_peer {
        __u64 time_ns;   /* 0: nobody did */
        __u32 tid;       /* in the daemon's pid namespace, 0 if not visible there */
        __u32 interrupt; /* an interrupt handler, not the task that it came upon */
        char comm[TLOB_COMM_LEN];
};

/* One entry of the ring buffer. */
struct tlob_record {
        __u32 type;    /* enum tlob_record_type */
        __u32 binding; /* index of the binding */
        __u64 binding_generation;
        __u64 id; /* of the window, the same in its violation and its completion */
        __u64 time_ns;
        __u64 elapsed_ns; /* = spent_ns[0] + [1] + [2] */
        __u64 spent_ns[TLOB_N_STATES];
        __u64 cgroup_id; /* of the task, in the cgroup v2 hierarchy */
        __u64 late_ns;   /* violation: time_ns after the moment when the budget ran out */
        __u32 budget;    /* enum tlob_budget: the first budget broken */
        __u32 exceeded;  /* bit mask over enum tlob_budget: every budget broken so far */
        __u32 state;     /* enum tlob_state at that moment */
        __u32 end;       /* completion: enum tlob_end */
        __u32 tid;       /* in the daemon's pid namespace, 0 if not visible there */
        __u32 pid;
        char comm[TLOB_COMM_LEN];
        struct tlob_peer woken_by;     /* last, since a window of the task was in violation */
        struct tlob_peer preempted_by; /* last, since the window began: it was next on the CPU */
        struct tlob_peer ran_before;   /* the same: it was last on the CPU that the task got back */
};

/*
 * Where in the kernel the sleeping task of a violation was: names of functions, the innermost first.
 * It comes before the violation, and only as many frames as there are come with it.
 */
#define TLOB_FRAMES_MAX 24
#define TLOB_SYMBOL_LEN 48 /* longer names are cut off */

struct tlob_stack_record {
        __u32 type; /* TLOB_RECORD_STACK */
        __u32 reserved;
        __u64 id; /* of the window */
        char frame[TLOB_FRAMES_MAX][TLOB_SYMBOL_LEN];
};

/*
 * A site: a place where a probe sits. The cookie of the probe is the site's index and generation, so
 * that a hit of a probe that is just being taken away finds a generation that is no longer there.
 *
 * Lists of bindings change while programs walk along them: each place is written at once, and what is
 * found there is believed only if the binding says that it belongs to that site (its cookies).
 */
#define TLOB_SITE_BINDINGS_MAX  4 /* more go into scopes */
#define TLOB_SCOPE_BINDINGS_MAX 16
#define TLOB_NO_BINDING         (~0U) /* a hole in a list */

struct tlob_site {
        __u32 generation;   /* 0: not in use */
        __u32 n_bindings;   /* in all, those in scopes too */
        __u32 n_scoped;     /* of these, how many are in scopes */
        __u32 n_unconfined; /* of the latter, how many are confined to no unit */
        __u32 n;            /* how far binding[] is in use */
        __u32 apart;        /* no two of them are for the same cgroup */
        __u32 binding[TLOB_SITE_BINDINGS_MAX];
};

#define TLOB_COOKIE(site, generation) (((__u64) (generation) << 32) | (__u32) (site))

/*
 * A unit that bindings are confined to. Unit 0 stands for no confinement. One that does not run has
 * no cgroup, and nothing of it is measured.
 */
#define TLOB_UNIT_NONE   0
#define TLOB_UNIT_LEVELS 32 /* a unit must lie less deep: bits of unit_levels */

struct tlob_unit {
        __u64 cgroup_id; /* 0: it does not run; else an id, or one of those below */
        __u32 level;     /* depth of that cgroup */
        __u32 levels;    /* TLOB_CGROUP_MANY: bit mask of the depths of its instances */
};

/* A template: what runs in the cgroups that are noted as those of its instances. */
#define TLOB_CGROUP_MANY (~0ULL)

/* A spare: it will be the first instance of its template that nobody knows yet. */
#define TLOB_CGROUP_SPARE (~0ULL - 1)

/*
 * Where the cgroup of a unit is, below the root that the daemon sees; filled up with zeros. For a
 * template it is the name of the cgroup only, without that of the instance ("foo@.service"): instances
 * can be in different slices.
 */
#define TLOB_UNIT_PATH_MAX 256 /* with a zero at the end */

struct tlob_unit_path {
        char path[TLOB_UNIT_PATH_MAX];
};

/* The spares of a template. Those that are taken are seen by their cgroup. */
#define TLOB_SPARES_MAX 64

struct tlob_spares {
        __u32 n;
        __u32 unit[TLOB_SPARES_MAX];
};

/* An instance has taken a spare; it comes before all that is reported of that instance. */
struct tlob_instance_record {
        __u32 type; /* TLOB_RECORD_INSTANCE */
        __u32 unit;
        __u64 cgroup_id;
        __u32 level;
        __u32 reserved;
        struct tlob_unit_path path;
};

/* What has no room at its site: (site, unit) gives a list of bindings. */
struct tlob_scope_key {
        __u32 site;
        __u32 unit;
};

struct tlob_scope {
        __u32 n;
        __u32 binding[TLOB_SCOPE_BINDINGS_MAX];
};

/* In and out of the program that finds where the daemon's view of the cgroup tree begins. */
struct tlob_root {
        __u64 cgroup_id;
        __u32 level;
        __u32 found;
};

/* A binding, as the BPF programs see it. Written with its generation last. */
struct tlob_binding {
        __u64 generation;                /* unique for the lifetime of the maps; 0: not in use */
        __u64 budget_ns[TLOB_N_BUDGETS]; /* ~0: none */
        __u64 start_cookie;
        __u64 stop_cookie;
        __u32 unit;
        __u32 stop_is_return; /* starts and returns are matched by stack pointer */
};

/*
 * The books of one binding. They balance at any moment of rest:
 * starts = in_budget + violated + open windows + ended[] + over_limit, where in_budget and violated
 * are windows that ended by their stop, and ended[] counts every other end.
 */
struct tlob_statistics {
        __u64 starts;
        __u64 in_budget;
        __u64 violated;
        __u64 ended[TLOB_ENDS_SIZE]; /* [TLOB_END_STOP] stays 0: those are the two above */
        __u64 over_limit;            /* no room: too many windows on the task, or too many tasks */
        __u64 nested;                /* starts inside an open window of the same binding */
        __u64 unmatched;             /* stops without an open window */
        __u64 violations;            /* each counted when it is found */
        __u64 lost;                  /* records for which the ring buffer had no room */
        __u64 spent_ns[TLOB_N_STATES]; /* by windows that ended */
};

/*
 * How long windows took, in buckets: of the same width up to 2^TLOB_SUB_BUCKET_BITS ns, and from
 * there on so many for each power of two. Longer than the last one's lower bound (73 min) is all the
 * same.
 */
#define TLOB_SUB_BUCKET_BITS 4
#define TLOB_BUCKETS         624

struct tlob_histogram {
        __u64 counts[TLOB_BUCKETS];
};

/* The histograms of so many bindings are made at once, when the first of them is there. */
#define TLOB_HISTOGRAMS_GROUP 16

#define TLOB_WINDOWS_MAX 8 /* open at once on one task */

/*
 * Who may do what with a window is decided by its claim, which is only ever swapped. Whoever reports a
 * violation (a timer, a tick, the stop, the daemon) swaps it from "open" to "violated": one of them
 * wins. It holds the number of the window from then on, and the budget that was broken. Whoever ends
 * the window (its task, or the daemon) swaps it to "closed": one of them finds that it was not yet.
 */
#define TLOB_CLAIM_CLOSED               0ULL
#define TLOB_CLAIM_OPEN(start_ns)       ((__u64) (start_ns) << 1)
#define TLOB_CLAIM_VIOLATED(id, budget) ((__u64) (id) << 3 | (__u64) (budget) << 1 | 1)
#define TLOB_CLAIM_IS_VIOLATED(claim)   ((claim) &1)
#define TLOB_CLAIM_ID(claim)            ((claim) >> 3)
#define TLOB_CLAIM_BUDGET(claim)        ((claim) >> 1 & 3)

struct tlob_window {
        __u64 generation; /* of its binding */
        __u64 claim;
        __u64 start_ns;
        __u64 base_ns[TLOB_N_STATES]; /* the task's totals at the start */
        __u64 stack_pointer;
        __u32 binding;
        __u32 reserved;
};

#define TLOB_NEVER (~0ULL)

/*
 * A task that has, or had, a window. The scheduler hooks add to the totals, whatever the number of
 * windows; a window is the difference of the totals between its start and its end.
 *
 * next_*: when the first budget runs out: the moment for the total budgets, and for each state the
 * total at which the first budget of that state is used up. They may be too early (windows have
 * ended meanwhile), and never too late.
 */
struct tlob_task {
        __u64 task;     /* address of its task_struct; 0: this slot is free */
        __u64 sequence; /* odd while a hook changes what follows */
        __u64 last_ns;
        __u64 total_ns[TLOB_N_STATES]; /* up to last_ns */
        __u64 run_delay_ns; /* what the kernel had counted as waiting when the task left its CPU */
        __u32 state;
        __u32 tid;
        __u32 pid;
        __u32 unstored; /* known by the hash only */
        __u64 n_opens;  /* windows ever opened in this slot */
        __u64 next_ns;
        __u64 next_total_ns[TLOB_N_STATES];
        __u64 timer_ns; /* when the timer of the slot fires; 0: it is not armed */
        __u64 ending;   /* a stop is under way, and finds itself what has run over */
        __u32 kernel_tid;
        __u32 reserved;
        struct tlob_peer woken_by;
        struct tlob_peer preempted_by;
        struct tlob_peer ran_before;
        /*
         * The generation of each open window's binding; 0: that place is free. Apart from the windows, so that to
         * look for one takes one cache line and not eight.
         */
        __u64 open[TLOB_WINDOWS_MAX];
        struct tlob_window windows[TLOB_WINDOWS_MAX];
};

/* A stack that has to do with a task, kept apart from it: its own, and later that of its waker. */
#define TLOB_STACK_MAX 48

struct tlob_stack {
        __s64 size; /* in bytes; not positive: there is none */
        __u64 ip[TLOB_STACK_MAX];
};

/* In and out of the program that sets up the timers of slots. */
struct tlob_timers {
        __u32 first;
        __u32 n;
        __u32 done; /* how many it could set up, from the first on */
};

#endif
