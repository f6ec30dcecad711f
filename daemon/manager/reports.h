/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_REPORTS_H
#define MANAGER_REPORTS_H

#include "manager/internal.h"

/* The one place where reports come by: count, remember, limit, journal, observer. */
void manager_on_report(const Report *report, const Backend *backend, Binding *binding,
                       void *userdata);

/* n records did not reach us. */
void manager_on_loss(uint64_t n, void *userdata);

/*
 * To be told the books of a binding's back end whenever they are read: what its limit has kept from
 * being reported is held back too, like what the rate limit of the manager holds back.
 */
void manager_count_suppressed(Manager *manager, Binding *binding, const Statistics *statistics);

/*
 * The limit of a binding whose probes were just set goes on where the daemon before this one has
 * left it: what that one has not said is said yet.
 */
void manager_take_over_limit(Manager *manager, Binding *binding);

/* Says what was held back of a binding and has not been said yet. */
void manager_announce_suppressed(Manager *manager, Binding *binding);

/* To be called when something about the limit of a binding, or its place, has changed. */
void manager_note_limit(const Binding *binding);

/* Puts the limits of the configuration in force. */
void manager_limit_reports(Manager *manager);

#endif
