/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_BACKEND_FACTS_H
#define MANAGER_BACKEND_FACTS_H

#include "manager/backends.h"

/* What holds for all back ends together, from what each of those that are in use says of itself. */

/*
 * The i-th thing that cannot be promised on this machine, as a sentence; NULL: there are no more.
 */
const char *backends_get_limitation(const Backends *backends, size_t i);

/* How deadlines are found at least, as BackendOps has it; "": none is in use. */
const char *backends_get_deadline_mode(const Backends *backends);

/* Are probes that were taken away still on their way out of the kernel? */
bool backends_are_removing(const Backends *backends);

/* What all probes have cost so far, as BackendOps has it. */
uint64_t backends_get_cost(const Backends *backends);

/* What probes of that one cost here; NULL: it is not in use, or does not know. */
const ProbePrices *backends_get_prices(const Backends *backends, const BackendOps *ops);

/* Is what they cost worth a look? */
bool backends_take_alarm(const Backends *backends);

#endif
