/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_PAST_H
#define MANAGER_PAST_H

#include "manager/internal.h"

/*
 * The past of a binding: what was counted before its probes were set where they are now. It is
 * added to what they count, and noted where the next daemon finds it.
 */

/* Its probes were just set: what the daemon before this one had noted is its past too. */
void manager_take_over_past(Binding *binding);

/*
 * The back end has finished: what the daemon before this one had of the binding in other places has
 * been added to what was noted.
 */
void manager_read_past(Binding *binding);

/*
 * Its probes were just taken away, or those of its former: what they have counted, and the lengths
 * of the same windows.
 */
void manager_add_past(Binding *binding, const Statistics *final, const Histogram *lengths);

/* It counts from zero. */
void manager_clear_past(Binding *binding);

/* To be called when its place has changed. */
void manager_note_past(const Binding *binding);

#endif
