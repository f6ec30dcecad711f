/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_CHOICE_H
#define MANAGER_CHOICE_H

#include "manager/internal.h"

/* Where a binding has its probes, or would have them. */
typedef struct Place {
        const BackendOps *ops;
        Backend *backend; /* NULL: it is not in use */
        uint32_t index;
        char *reason; /* why there; the taker's */
} Place;

/* The back end that would measure a resolved binding, by what both can do, and why this one. */
int manager_choose_backend(Manager *manager, Binding *binding, const BindingFile *file,
                           const BackendOps **ret_backend, char **ret_reason, char **ret_error);

/* Sets the probes of a resolved binding, with the first back end that can. */
int manager_attach_binding(Manager *manager, Binding *binding, const BindingFile *file,
                           char **ret_error);

/* Takes the probes of a binding away, if it has any, and with them its former. */
void manager_detach_binding(Manager *manager, Binding *binding);

/* Its former goes, if it has one; its counters stay. */
void manager_detach_former(Manager *manager, Binding *binding);

/* What the binding asks for, else what tlobd.conf does. */
BackendChoice manager_choice_of(const Manager *manager, const Binding *binding);
bool backend_is_wanted(const BackendOps *ops, BackendChoice choice);

/*
 * Tries the back ends in their order, but for except: why, or what it says itself. take: sets the
 * probes too, and goes on to the next when that fails.
 */
int manager_try_backends(Manager *manager, const Binding *binding, const BindingFile *file,
                         bool take, const BackendOps *except, const char *why, Place *ret,
                         char **ret_error);

/* The binding has its probes there now. Takes the reason of the place. */
void manager_settle_in(Manager *manager, Binding *binding, const Place *place);

/* Bindings that were attached are all that belong together, unless more are being applied. */
void manager_complete_bindings(Manager *manager);

/*
 * To be called before budgets of a binding change: the reports that are on their way were found
 * with those that it has had so far.
 */
void manager_flush_binding(Manager *manager, const Binding *binding);

#endif
