/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FAKE_BACKEND_H
#define FAKE_BACKEND_H

#include "backend.h"

/*
 * A back end that measures nothing: the test says what it reports and counts. There is one at a time.
 */

extern const BackendOps fake_backend_ops;
extern const BackendOps *const fake_backends[]; /* it alone */

/* What was asked of it, since the start of the program. */
typedef struct FakeCalls {
        unsigned add;
        unsigned remove;
        unsigned set_budget;
} FakeCalls;

FakeCalls *fake_calls(void);

/* Makes the next add() fail. */
void fake_fail_add(int error, const char *reason);

/* Queues a report; the file descriptor becomes readable. */
void fake_report(const Report *report);

/* Counts n lost records. */
void fake_lose(uint64_t n);

#endif
