/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_FORMER_H
#define MANAGER_FORMER_H

#include "manager/internal.h"

/*
 * A file that another one has taken the place of is run on by the processes that have it: a service
 * until it is started again. Meanwhile the binding has its probes in the new file, before anybody
 * runs it, and its former has those in the old one.
 */

/*
 * A binding that has its probes: another file is at its path, or that of its program is another one
 * from its unit's next start on. is_early: it may have come just now,
 * and what does not work is no reason for anything yet. Returns whether that was all there is to be
 * done for now; else it is to be set up anew.
 */
bool manager_follow_replacement(Manager *manager, Binding *binding, bool is_early);

/* Somebody writes in the new file: its probes there go, and the former's are its own. */
void manager_fall_back(Manager *manager, Binding *binding);

/*
 * A process of its unit runs what was at its path before, binding->look.old, and no former has
 * probes there: it gets one. Returns 0, -EINPROGRESS with binding->look.question, or why it cannot
 * be, with a sentence or NULL.
 */
int manager_measure_old(Manager *manager, Binding *binding, char **ret_error);

/* Its former goes if no process has mapped that file any more, else it is looked at later. */
void manager_look_at_former(Manager *manager, Binding *binding);

#endif
