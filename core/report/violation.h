/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef REPORT_VIOLATION_H
#define REPORT_VIOLATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/budget.h"
#include "base/cleanup.h"
#include "base/words.h"
#include "report/cause.h"
#include "report/statistics.h"

/* What a back end reports, in its own words, and the log of recent violations. */

typedef enum ReportType {
        REPORT_VIOLATION,
        REPORT_COMPLETION,
        /* the spare that the binding belongs to has become an instance; see Binding */
        REPORT_INSTANCE,
} ReportType;

typedef struct Report {
        ReportType type;
        uint32_t backend_index; /* of the binding */
        uint64_t id;            /* of the window, unique for this boot */
        uint64_t time_ns;       /* CLOCK_MONOTONIC */
        uint64_t late_ns;       /* after the moment when the budget ran out; UINT64_MAX: unknown */
        uint64_t elapsed_ns;
        uint64_t spent_ns[TLOB_N_STATES];
        uint64_t
                /* of the time running, what the hypervisor gave to others; 0: none is known */
                stolen_ns;
        uint64_t probes_ns; /* of the time running, what probes inside took; an estimate */
        uint64_t cgroup_id; /* of the task; 0: unknown */
        enum tlob_budget budget;
        unsigned exceeded;     /* bit mask over enum tlob_budget */
        enum tlob_state state; /* TLOB_N_STATES: unknown */
        enum tlob_end end;     /* completions only */
        uint32_t tid;
        uint32_t pid;
        char comm[TLOB_COMM_LEN + 1];
        Peers peers;
        const Stack *stack; /* of a sleeper; NULL: not known. Valid only while it is reported */
        /*
         * Of an instance, with its id and level; or of any task, for who cannot learn it from the
         * id. Valid as stack is.
         */
        const char *cgroup_path;
        unsigned cgroup_level;
        bool is_repeated; /* a daemon that was killed then may have told it already */
} Report;

/* A report with what the manager knows of it: what journal and bus show. */
typedef struct Violation {
        Report report;
        char *binding; /* full name */
        char *unit;    /* of the task, "" outside units */
        char *comm;    /* the task's name, escaped: it can be any bytes; NULL: unknown */
        Cause cause;
        char *executable;     /* its program, escaped; NULL if it could not be read */
        const char *backend;  /* static */
        uint64_t budget_ns;   /* the budget that was broken */
        uint64_t realtime_ns; /* CLOCK_REALTIME at time_ns: it goes on in a suspend */
        int priority;
        uint64_t suppressed; /* reports of this binding held back before this one */
        bool held_back;      /* by the rate limit: in the log only */

        /* Of a violation in the log, when its window has ended. */
        bool ended;
        uint64_t took_ns;
        uint64_t took_spent_ns[TLOB_N_STATES];
        uint64_t took_stolen_ns;
        uint64_t took_probes_ns;
        enum tlob_end end;
} Violation;

/* Did the hypervisor take most of the time running? Then that is the cause, and not the work. */
#define VIOLATION_HYPERVISOR "the hypervisor"
static inline bool violation_is_stolen(uint64_t stolen_ns, uint64_t running_ns) {
        return stolen_ns > running_ns / 2;
}

/* The same of probes: without them the window would have been half as long. */
#define VIOLATION_PROBES "its probes"
static inline bool violation_is_of_probes(uint64_t probes_ns, uint64_t running_ns) {
        return probes_ns > running_ns / 2;
}

/* Did a window that mostly ran have to wait for a quarter of that time? Then both are the cause. */
static inline bool violation_has_waited(uint64_t waiting_ns, uint64_t running_ns) {
        return waiting_ns > running_ns / 3;
}

/* Of a window that no task has, only the length is known. */
void report_forget_states(Report *report);

void violation_done(Violation *violation);

/*
 * The sentence of the contract: "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms
 * so far (running 0.2ms, waiting 0.1ms, sleeping 4.7ms)", and what is known of the cause: ",
 * blocked in folio_wait_bit_common". Owned by the caller; NULL for want of memory.
 */
char *violation_to_sentence(const Violation *violation);
const char *tlob_state_to_string(enum tlob_state state);
const char *tlob_end_to_string(enum tlob_end end);

/*
 * Why it is not known when a window with that end was left, and so how long it was: it was only
 * found to be gone, or is not waited for any more. NULL: it is known.
 */
const char *tlob_end_why_unseen(const char *end);

/* A ring of the most recent violations, newest last; a full one forgets the oldest. */
typedef struct ViolationLog {
        Violation *items;
        size_t size;
        size_t first;
        size_t n;
} ViolationLog;

int violation_log_init(ViolationLog *log, size_t size);
void violation_log_done(ViolationLog *log);

/* Copies. Returns 0 or -ENOMEM. */
int violation_log_add(ViolationLog *log, const Violation *violation);

/*
 * Adds to the violation of a window, if it is remembered, how long the window took and why, as its
 * completion tells. Takes what it needs out of cause.
 */
void violation_log_complete(ViolationLog *log, const Report *completion, Cause *cause);

/* i = 0 is the newest; NULL past the oldest. Owned by the log. */
const Violation *violation_log_get(const ViolationLog *log, size_t i);

/* The violation of that window, NULL if it is forgotten. Owned by the log. */
const Violation *violation_log_find(const ViolationLog *log, uint64_t id);

#endif
