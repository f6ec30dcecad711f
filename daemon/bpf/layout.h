/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_LAYOUT_H
#define BPF_LAYOUT_H

#include <linux/types.h>

#include "base/words.h"
#include "tlob-mark-page.h"

/*
 * What the BPF programs and this back end share: the layout of the maps that both touch, and of the
 * records in the ring buffer. Fixed-width types only, no padding that is not spelled out. No other
 * part of the daemon includes it: what leaves this back end is in words (base/words.h).
 *
 * All times are CLOCK_MONOTONIC nanoseconds.
 */

/*
 * Programs take over the maps of others that have the same types (bpf/layout-hash.c). To be raised
 * when what is there means something else and its type does not show it.
 */
#define TLOB_LAYOUT_VERSION 1

/* TLOB_N_ENDS, as a power of two: an index that is masked fits, as every verifier sees. */
#define TLOB_ENDS_SIZE 8
_Static_assert(TLOB_N_ENDS <= TLOB_ENDS_SIZE, "an end has no place");

/* The first two stay what they are: bpf/carried.c counts those of other builds. */
enum tlob_record_type {
        TLOB_RECORD_VIOLATION,
        TLOB_RECORD_COMPLETION,
        TLOB_RECORD_STACK,
        TLOB_RECORD_INSTANCE,
        TLOB_RECORD_NOTICE, /* its type only: there is something to be read in the counters */
};

/* A part of the kernel, from begin to before end. Without an end: it is not known. */
struct tlob_text {
        __u64 begin;
        __u64 end;
};

/* Where the running kernel has what. */
struct tlob_symbols {
        struct tlob_text interrupts; /* where interrupts, and not exceptions, enter the kernel */
        struct tlob_text softirqs;   /* the function that runs what interrupts have left to do */
        struct tlob_text network;    /* and what packets that have come are handled by there */

        /* Variables, which a kernel without CONFIG_KALLSYMS_ALL does not tell: 0. */
        __u64 per_cpu_offset; /* an array: where each CPU has its own variables */
        __u64 steal_time;     /* one of these: what KVM has given to others */
};

/* Who woke a task, or kept it from its CPU. */
struct tlob_peer {
        __u64 time_ns; /* 0: nobody did */
        __u32 tid;     /* in the daemon's pid namespace, 0 if not visible there */
        __u32 pid;     /* the same, of its process */
        __u32 kind;    /* enum tlob_peer_kind; of others than tasks the rest says nothing */
        __u32 reserved;
        char comm[TLOB_COMM_LEN]; /* of the thread */
};

/* Tasks that had the CPU that another waited for; of more, those with the least are forgotten. */
#define TLOB_HOLDERS_MAX 4

struct tlob_holder {
        __u64 since_ns; /* its time begins there */
        __u32 kernel_tid;
        __u32 reserved;
        struct tlob_peer peer;
};

/* A CPU, and the slots of tasks in windows that wait for it; 0: none, else the slot plus one. */
#define TLOB_CPU_WAITERS_MAX 8

struct tlob_cpu {
        __u64 since_ns;   /* last change of the task that runs there, noted while somebody waits */
        __u32 kernel_tid; /* the task that runs there since then; 0: not known, or the idle task */
        __u32 reserved;
        struct tlob_peer holder; /* the same task */
        __u32 waiters[TLOB_CPU_WAITERS_MAX];
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
        __u64 stolen_ns; /* of the time running, what the hypervisor gave to others */
        __u64 probes_ns; /* the same, what probes inside of the window took; an estimate */
        __u64 cgroup_id; /* of the task, in the cgroup v2 hierarchy */
        __u64 late_ns;   /* violation: time_ns after the moment when the budget ran out */
        __u32 budget;    /* enum tlob_budget: the one that was broken first */
        __u32 exceeded;  /* bit mask over enum tlob_budget: every budget broken so far */
        __u32 state;     /* enum tlob_state at that moment; TLOB_N_STATES: it has a key */
        __u32 end;       /* completion: enum tlob_end */
        __u32 tid;       /* in the daemon's pid namespace, 0 if not visible there */
        __u32 pid;
        char comm[TLOB_COMM_LEN];
        struct tlob_peer woken_by;     /* who ended the sleep in which the budget ran out */
        struct tlob_peer preempted_by; /* who kept the window from its CPU for most of its wait */
};

/*
 * Where in the kernel the sleeping task of a violation was: names of functions, the innermost
 * first. It comes before the violation, and only as many frames as there are come with it.
 */
struct tlob_stack_record {
        __u32 type; /* TLOB_RECORD_STACK */
        __u32 reserved;
        __u64 id; /* of the window */
        char frame[TLOB_FRAMES_MAX][TLOB_SYMBOL_LEN];
};

/*
 * A site: a place where a probe sits. The cookie of the probe is the site's index and generation,
 * so that a hit of a probe that is just being taken away finds a generation that is no longer
 * there.
 *
 * Lists of bindings change while programs walk along them: each place is written at once, and what
 * is found there is believed only if the binding says that it belongs to that site (its cookies).
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
        __u32 whole_marks;  /* each of them measures the mark of which this is a side */
        __u32 user_event;   /* the number of the event that it is, if a program writes that */
        __u32 binding[TLOB_SITE_BINDINGS_MAX];
        __u64 n_outside; /* hits of tasks that none of them is for */
        __u64 price_ns;  /* of a hit, for who is measured; an estimate */
};

/*
 * How often the probes of a site were hit on one CPU, or the timers of a binding. Each so many
 * hits, a program looks whether they came faster than the daemon takes for harmless.
 */
#define TLOB_HITS_LOOK 4096 /* a power of two */

struct tlob_hits {
        __u64 n;
        __u64 looked_ns; /* when a program did last */
};

/*
 * What the perf events of an event that programs write have in their config2: the side, and whose
 * they are. Cookies do not tell: others count from the same number on.
 */
#define TLOB_USER_EVENT_OF(hooks_number, side)                                                     \
        (0x746c6f0000000000ULL | (__u64) (side) << 32 | (hooks_number))

/* What begins or ends with a system call. */
enum tlob_call_role {
        TLOB_CALL_WINDOW, /* a window, and with it */
        TLOB_CALL_BEGIN_STARTS,
        TLOB_CALL_BEGIN_STOPS,
        TLOB_CALL_END_STARTS,
        TLOB_CALL_END_STOPS,
        TLOB_CALL_ROLES,
};

/*
 * A system call in one of these: the cookie of the site where its bindings are. What a probe is
 * elsewhere is a place in an array of these here, by the number of the call.
 */
#define TLOB_CALLS_MAX 512 /* a power of two; those of x32 are above, and are not measured */

struct tlob_call {
        __u64 cookie;        /* 0: nobody measures it */
        __u64 cookie_before; /* the same of the daemon before this one, until that has gone */
};

#define TLOB_COOKIE(site, generation) (((__u64) (generation) << 32) | (__u32) (site))

/*
 * In the cookie of a site's probe in all processes, when others are in some processes only: it does
 * not count in those. Generations stay below that bit.
 */
#define TLOB_COOKIE_WIDE (1ULL << 63)
#define TLOB_NO_COOKIE   (~0ULL) /* of no probe: there is no such site */

/*
 * A unit that bindings are confined to. Unit 0 stands for no confinement. One that does not run has
 * no cgroup, and nothing of it is measured.
 */
#define TLOB_UNIT_NONE   0
#define TLOB_UNIT_LEVELS 32 /* a unit must lie less deep: bits of tlob_levels */

/* Bit masks of the depths at which cgroups lie; bits are never taken away. */
struct tlob_levels {
        __u32 units;
        __u32 instances; /* of templates; they are among the others */
};

struct tlob_unit {
        __u64 cgroup_id; /* 0: it does not run; else an id, or one of those below */
        __u32 level;     /* depth of that cgroup */
        __u32 levels;    /* TLOB_CGROUP_MANY: bit mask of the depths of its instances */
        __u32 followed;  /* its processes are told of */
        __u32 reserved;
};

/* A template: what runs in the cgroups that are noted as those of its instances. */
#define TLOB_CGROUP_MANY (~0ULL)

/* A spare: it will be the first instance of its template that nobody knows yet. */
#define TLOB_CGROUP_SPARE (~0ULL - 1)

/*
 * Where the cgroup of a unit is, below the root that the daemon sees; filled up with zeros. For a
 * template it is the name of the cgroup only, without that of the instance ("foo@.service"):
 * instances can be in different slices.
 */
#define TLOB_UNIT_PATH_MAX 256 /* with a zero at the end */

struct tlob_unit_path {
        char path[TLOB_UNIT_PATH_MAX];
};

/* The spares of a template. Those that are taken are seen by their cgroup. */
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

/* A process, and a unit that it is in. It is told more than once, and once for each such unit. */
enum tlob_process_event {
        TLOB_PROCESS_FORKED,
        TLOB_PROCESS_EXECUTED,
        TLOB_PROCESS_MOVED, /* into the unit */
        TLOB_PROCESS_FOUND, /* it was there when they were looked for */
        TLOB_PROCESS_EXITED,
        TLOB_PROCESS_UNWINDS, /* it has had a window that unwinding could have ended */
};

struct tlob_process_record {
        __u32 event; /* enum tlob_process_event */
        __u32 unit; /* TLOB_UNIT_NONE: the event has to do with none; UNWINDS: whose window it is */
        __u32 tgid; /* as the kernel counts */
        __u32 pid;  /* the same in the daemon's pid namespace, 0 if not visible there */
        __u64 time_ns;
};

/* A process that has a probe of its own at a site. */
struct tlob_process_site {
        __u32 tgid;
        __u32 site;
        __u32 side; /* 0: of starts, 1: of stops */
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

/*
 * Where the key of a window lies when a probe is hit: what tells it apart from others of its
 * binding, whichever thread ends it (elf/argument.h).
 */
enum tlob_argument_kind {
        TLOB_ARGUMENT_CONSTANT,
        TLOB_ARGUMENT_REGISTER,
        TLOB_ARGUMENT_MEMORY, /* at base + index * scale + value */
};

struct tlob_argument {
        __u16 page_offset; /* of the place that it is for: the low bits of its address */
        __u8 kind;         /* enum tlob_argument_kind */
        __u8 size;         /* in bytes, up to 8 */
        __u8 is_signed;
        __u8 scale; /* 0: there is no index */
        __u16 base; /* registers, by where struct pt_regs has them */
        __u16 index;
        __u16 reserved[3];
        __s64 value;
};

#define TLOB_PAGE_OFFSET(address) ((address) & 0xfff)
#define TLOB_KEY_PLACES_MAX       16 /* at which a key lies in different ways */

/* One side of a binding. If there is one place, it is for all of them. */
struct tlob_key_places {
        __u32 n;
        __u32 reserved;
        struct tlob_argument places[TLOB_KEY_PLACES_MAX];
};

/* The sides of bindings are numbered: those of starts are even. */
#define TLOB_KEY_SIDE(binding, side) ((binding) << 1 | (side))

/* What is the same for both ends of a window: a value means something in its process only. */
struct tlob_key {
        __u64 value;
        __u32 tgid; /* as the kernel counts */
        __u32 binding;
};

/* In and out of the program that finds where the daemon's view of the cgroup tree begins. */
struct tlob_root {
        __u64 cgroup_id;
        __u32 level;
        __u32 found;
};

/* A binding, as the BPF programs see it. Written with its generation last. */
struct tlob_binding {
        __u64 generation; /* first; unique for the lifetime of the maps; 0: not in use */
        __u64 budget_ns[TLOB_N_BUDGETS]; /* ~0: none */
        __u64 start_cookie;
        __u64 stop_cookie;
        /* the same of the daemon before this one, whose probes are there for a moment; 0: none */
        __u64 start_cookie_before;
        __u64 stop_cookie_before;
        __u32 unit;
        /* enum tlob_stop; but for a place, starts and stops are matched by stack pointer */
        __u32 stop;
        /*
         * The start is the entry of a function, and the stop lies in that function or is its
         * return: a window lasts no longer than its frame, which begins at the stack pointer of the
         * start.
         */
        __u32 has_frame;
        __u32 is_keyed; /* its windows are told apart by a key, and not by their tasks */
        __u32 owner;    /* the user whose tasks alone are measured; 0: everybody's */
        /*
         * How far the stack pointer lies at a stop below where it is at a return, in bytes; or with
         * that bit the frame pointer.
         */
#define TLOB_DEPTH_OF_FRAME_POINTER 0x80000000U
        __u32 stop_depth;
        /* the programs': */
        __u32 n_keyed;           /* of these, those that are open */
        __u32 n_shared;          /* records in its share of the ring buffer */
        __u64 shared_until;      /* where there the last of them begins, or before */
        __u64 reported_until_ns; /* how far its limit of reports is used up */
};

/*
 * A limit of reports: one each so many nanoseconds, and as many at once as fit into the burst, and
 * one. Of zeros: there is none.
 */
struct tlob_limit {
        __u64 each_ns;
        __u64 burst_ns;
};

/*
 * The books of one binding, 64-bit words without exception; without the map they are Counters
 * (report/statistics.h). They balance at any moment of rest:
 * starts = in_budget + violated + open windows + ended[] + over_limit, where in_budget and violated
 * are windows that ended by their stop, and ended[] counts every other end.
 */
struct tlob_books {
        __u64 starts;
        __u64 in_budget;
        __u64 violated;
        __u64 ended[TLOB_ENDS_SIZE]; /* [TLOB_END_STOP] stays 0: those are the two above */
        __u64 over_limit;            /* no room: too many windows on the task, or too many tasks */
        __u64 nested;                /* starts inside an open window of the same binding */
        __u64 unmatched;             /* stops without an open window */
        __u64 violations;            /* each counted when it is found */
        __u64 lost;                  /* records for which the ring buffer had no room */
        __u64 suppressed; /* violations without a record: more than the limit lets through */
        __u64 untrapped;  /* of in_budget: begun and ended in a lane */
        /*
         * by windows that ended, but for those that were abandoned or switched; of those with a
         * key, where that was is not known, and all of it is here as sleeping
         */
        __u64 spent_ns[TLOB_N_STATES];
};

/* How long windows took, but for those that were abandoned or switched. */
struct tlob_histogram {
        __u64 counts[TLOB_BUCKETS];
};

/* The histograms of so many bindings are made at once, when the first of them is there. */
#define TLOB_HISTOGRAMS_GROUP 16

#define TLOB_WINDOWS_MAX 8 /* open at once on one task */

/*
 * Who may do what with a window is decided by its claim, which is only ever swapped. Whoever
 * reports a violation (a timer, a tick, the stop, the daemon) swaps it from "open" to "violated":
 * one of them wins. It holds the number of the window from then on, and the budget that was broken.
 * Whoever ends the window (its task, or the daemon) swaps it to "closed": one of them finds that it
 * was not yet.
 */
#define TLOB_ID_SUPPRESSED              0 /* of all windows whose violations have no record */
#define TLOB_CLAIM_CLOSED               0ULL
#define TLOB_CLAIM_OPEN(start_ns)       ((__u64) (start_ns) << 1)
#define TLOB_CLAIM_VIOLATED(id, budget) ((__u64) (id) << 4 | (__u64) (budget) << 1 | 1)
#define TLOB_CLAIM_IS_VIOLATED(claim)   ((claim) & 1)
#define TLOB_CLAIM_ID(claim)            ((claim) >> 4)
#define TLOB_CLAIM_BUDGET(claim)        ((claim) >> 1 & 7)

struct tlob_window {
        __u64 generation; /* of its binding */
        __u64 claim;
        __u64 start_ns;
        __u64 base_ns[TLOB_N_STATES];   /* the task's totals at the start */
        __u64 base_stolen_ns;           /* the same of stolen_ns */
        __u64 base_probes_ns;           /* and of probes_ns */
        __u64 passed_ns[TLOB_N_STATES]; /* when the budget of a state was used up; 0: not noted */
        __u64 holder_ns[TLOB_HOLDERS_MAX]; /* the task's at the start */
        __u64 over_sleep;          /* in which sleep of the task a budget ran out; 0: in none */
        struct tlob_peer woken_by; /* who ended that one, once the task sleeps again */
        /* the task has left the window's frame when its stack pointer is above; 0: has none */
        __u64 frame;
        __u64 return_address; /* what lies there as long as the frame does; 0: not known */
        /* TLOB_STOP_GO, instead of both: whose it is, and how deep in its stack it began */
        __u64 goroutine;
        __u64 depth;
        __u32 binding;
        __u32 call; /* the number of the system call that it is, plus one; 0: it is none */
};

/*
 * What the slot of a window with a key has. Such a window belongs to no task: it takes a slot for
 * itself, whose totals stand still, so that only its length is known.
 */
struct tlob_keyed {
        struct tlob_key key;
        __u64 ticket;    /* whoever swaps it for 0 ends the window; others find another, or none */
        __u64 cgroup_id; /* of the task that began it */
        __u64 cookie;    /* of the probe that did; while daemons take turns there are two */
        __u64 is_told;   /* the other one has told of the same begin */
        char comm[TLOB_COMM_LEN];
};

/* So many parts of all slots are for those of a binding. */
#define TLOB_KEYED_SHARE 4

/*
 * One that is over its budget, and open for at least that long and for that many times the budget,
 * is stale: its end will not be passed any more, as it seems. So is one that is open for an hour,
 * over its budget or without one.
 */
#define TLOB_STALE_NS        10000000000ULL
#define TLOB_STALE_BUDGETS   100
#define TLOB_STALE_ANYHOW_NS 3600000000000ULL

#define TLOB_TASK_OF_KEY 1 /* instead of a task's address: the slot is that of a key */

#define TLOB_NEVER  (~0ULL)
#define TLOB_NO_CPU (~0U)

/* In last_cpu: it waits though no hook was told, and not only for the CPU that it gets. */
#define TLOB_CPU_LEFT 0xffff

/*
 * What a task remembers of a start with several bindings that was for just one of them: the next
 * one there is for the same, if nothing was changed since.
 */
#define TLOB_REMEMBERED_MAX 4 /* of as many sites; a power of two */

struct tlob_remembered {
        __u64 cookie; /* 0: nothing */
        __u64 cgroup_id;
        __u64 changes; /* the number of them by then */
        __u32 binding;
        __u32 reserved;
};

/*
 * A task that has, or had, a window. The scheduler hooks add to the totals, whatever the number of
 * windows; a window is the difference of the totals between its start and its end.
 *
 * next_*: when the first budget runs out: the moment for the total budgets, and for each state the
 * total at which the first budget of that state is used up. They may be too early (windows have
 * ended meanwhile), and never too late.
 */
struct tlob_task {
        __u64 task;     /* address of its task_struct, TLOB_TASK_OF_KEY; 0: this slot is free */
        __u64 sequence; /* odd while a hook changes what follows */
        __u64 last_ns;
        __u64 total_ns[TLOB_N_STATES]; /* up to last_ns */
        __u64 stolen_ns;      /* of its time running, up to the last switch; see steal.bpf.h */
        __u64 steal_begin_ns; /* the steal of its CPU when it began to run */
        __u64 probes_ns;      /* what its hits of probes took; only the task itself adds to it */
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
        __u32 timer_cpu; /* where it was armed */
        __u32 elsewhere; /* bit mask: windows with a frame, while the task is on another stack */
        __u32 calls;     /* the same of windows that are system calls, and some that were */
        __u32 stack_is_known; /* else what follows is a guess */
        __u32 timer_binding;  /* for whose budget the timer is armed, mostly */
        __u64 lowest_frame;   /* no window has a lower one; too low is not wrong */
        __u64 stack_begin;    /* the stack that the thread was made with; see frame.bpf.h */
        __u64 stack_end;      /* 0: nobody knows */
        __u64 frame_pointer;  /* at the stop that it is at */
        __u32 n_put_off;      /* looks of the timer in vain, one after the other */
        __u16 arrived;        /* a hook has seen it get the CPU that it runs on, at last_ns */
        __u16 last_cpu;       /* that it has left last: the low bits of its number */
        __u32 queued;         /* it is in unarmed_slots, or untimed_slots */
        __u32 owner;          /* of the binding of the window that began last */
        __u32 wait_cpu; /* the CPU that it waits for; TLOB_NO_CPU: another one than it began to */
        __u32 unwinding_epoch; /* the last one in which its process was told; 0: it was not */
        __u32 lane;            /* the index of its lane, plus one; 0: it has none */
        __u32 throttled;       /* it waits, and did for its quota when that was looked at last */
        __u32 listed;          /* it waits, and is among the waiters of its CPU */
        __u32 reserved;
        __u64 throttled_ns; /* what the kernel had counted of that by then; see quota.bpf.h */
        __u64 queue;        /* of that struct cfs_rq */
        __u64 quota_ns;     /* of the throttle that went on then: credited, or before the wait */
        __u64 n_sleeps;
        __u64 slept_ns;                    /* when the last one began */
        __u64 over_sleep;                  /* the last in which the budget of a window ran out */
        struct tlob_peer woken_by;         /* who ended the last one */
        __u64 holder_ns[TLOB_HOLDERS_MAX]; /* for how long that was held by each of them */
        union {
                struct tlob_holder holders[TLOB_HOLDERS_MAX];
                struct tlob_keyed keyed; /* TLOB_TASK_OF_KEY */
        };
        /*
         * The generation of each open window's binding; 0: that place is free. Apart from the
         * windows, so that to look for one takes one cache line and not eight.
         */
        __u64 open[TLOB_WINDOWS_MAX];
        struct tlob_window windows[TLOB_WINDOWS_MAX];
        struct tlob_remembered remembered[TLOB_REMEMBERED_MAX];
};

/*
 * A lane (tlob-mark-page.h), as the programs know it: what is in the lane itself can be written by
 * its process. Its index is that of its page, times TLOB_LANES, plus its place there.
 */
struct tlob_lane_grant {
        __u64 generation; /* of the binding that the windows of a mark are for; 0: of none */
        __u32 binding;
        __u32 reserved;
};

struct tlob_lane_holder {
        __u64 task; /* address of its task_struct; 0: nobody has it */
        __u64 since_ns;
        __u64 begun; /* changes of the numbers in the lane by the programs: that one has begun, */
        __u64 done;  /* and that it is done */
        __u32 tag;   /* of the page that is there now, as its process says it */
        __u32 reserved;
        struct tlob_lane_grant grants[TLOB_LANE_MARKS];
};

/*
 * A stack, kept apart from the task that it has to do with: its own when it sleeps, or that of its
 * waker.
 */
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
