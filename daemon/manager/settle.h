/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_SETTLE_H
#define MANAGER_SETTLE_H

#include "manager/internal.h"

/*
 * Checks and resolves what can be wrong with a binding, whether or not its unit runs. *ret_file is
 * NULL if it cannot be resolved yet, because the unit or its program is not there: *ret_error may
 * say what is not. Fails with binding->question set if its file has not answered yet.
 */
int manager_prepare_binding(Manager *manager, Binding *binding, BindingFile **ret_file,
                            bool *ret_runs, char **ret_error);

/*
 * Brings a binding into the state that configuration and unit ask for. Never fails: see its state.
 */
void manager_settle_binding(Manager *manager, Binding *binding);

/* The same for one that has no probes; gives the error, and does not fail the binding. */
int manager_try_to_settle(Manager *manager, Binding *binding, char **ret_error);

/* Sets the probes of a binding for an instance that nobody knows yet. Its state is left alone. */
int manager_attach_spare(Manager *manager, Binding *binding, char **ret_error);

/*
 * A binding whose unit does not run waits for it. is_resolved: its file is known; else why it is
 * not, or NULL. Returns 0 or -ENOMEM.
 */
int manager_wait_for_unit(Manager *manager, Binding *binding, bool is_resolved, const char *why);

/* It has its probes, and its unit runs. */
void manager_set_active(Manager *manager, Binding *binding);

/* manager_detach_former(), and the state no longer speaks of it. */
void manager_drop_former(Manager *manager, Binding *binding);

/*
 * Takes its probes away until manager_forget_given_up(). why: a sentence, which is taken over;
 * NULL: there was no memory for it, and nothing changes.
 */
void manager_give_up(Manager *manager, Binding *binding, char *why);

/* Of all bindings: the next time that they are settled, they may have their probes again. */
void manager_forget_given_up(Manager *manager);

#endif
