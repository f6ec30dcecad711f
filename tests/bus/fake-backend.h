/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FAKE_BACKEND_H
#define FAKE_BACKEND_H

#include "backend/backend.h"

/*
 * A back end that measures nothing: the test says what it reports and counts. There is one at a
 * time.
 */

extern const BackendOps fake_backend_ops;
extern const BackendOps *const fake_backends[]; /* it alone */

/* What was asked of it, since the start of the program. */
typedef struct FakeCalls {
        unsigned add;
        unsigned remove;
        unsigned set_budget;
        unsigned statistics;
        unsigned dispatch;
        ReportLimit limit; /* as last set */
} FakeCalls;

FakeCalls *fake_calls(void);

/* Makes the next add() fail. */
void fake_fail_add(int error, const char *reason);

/* Queues a report; the file descriptor becomes readable. */
void fake_report(const Report *report);

/* What it has cannot be read until it is false. */
void fake_fail_dispatch(bool fails);

/* It finds a report there when it is made next, of what a daemon that died has left. */
void fake_leave(const Report *report);

/* Counts n violations of its first binding that the limit of the back end did not let through. */
void fake_suppress(uint64_t n);

/*
 * What its first binding leaves of its limit to the next daemon; or what one that comes finds, if
 * it is written before that.
 */
BindingLimit *fake_limit(void);

/* Probes that were taken away are on their way out until it is false. */
void fake_remove_slowly(bool slowly);

/* From now on its statistics take so long. */
void fake_take_time(unsigned usec);

/* From now on its probes are in the processes of units only. */
void fake_spare_others(void);

/*
 * From now on the probes of the binding at that index (they begin at 0, in the order of add()) take
 * that much of a CPU, and an alarm is raised.
 */
void fake_take_cpu(uint32_t index, unsigned percent);

/* They have taken that much at once. */
void fake_spend(uint32_t index, uint64_t ns);

/* What the places of bindings that are added from now on have cost before. */
void fake_set_past_cost(uint64_t ns);

/* Counts n lost records. */
void fake_lose(uint64_t n);

/* The same when it is made next, for a daemon before this one, which has told so many of them. */
void fake_leave_lost(uint64_t n, uint64_t told);

/* How many of them the next daemon will find told. */
uint64_t fake_lost_as_told(void);

#endif
