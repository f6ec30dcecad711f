/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_EXPECT_H
#define MANAGER_EXPECT_H

#include "manager/internal.h"

/*
 * Its unit runs: whether it has the binding's file is looked at, if that has not been done since it
 * was started.
 */
void manager_expect_unit(Manager *manager, Binding *binding);

/* If nobody looks any more, that is done as if it had just been started. */
void manager_look_anew(Binding *binding);

/* Its unit does not run. */
void manager_forget_unit(Binding *binding);

/* The next look, after that time. */
void manager_look_in(Manager *manager, Binding *binding, uint64_t delay_usec);

/* The next look, as far after the one before as its number says. */
void manager_look_later(Manager *manager, Binding *binding);

/*
 * What its back end has to remark, which it must have; the caller frees it. NULL: nothing, or no
 * memory.
 */
char *manager_remark_of_backend(const Binding *binding);

/* What it is in its back end, if it has one, when its unit runs. */
BindingState manager_state_in_backend(const Binding *binding);

/* Why it sees nothing though it is active; NULL: nothing is wrong. Logged once. */
void manager_set_remark(Manager *manager, Binding *binding, const char *remark);

#endif
