/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_STATE_H
#define MANAGER_STATE_H

#include "manager/internal.h"

/* The line of "systemctl status" is to be sent anew; and sends it, if it is. */
void manager_notify_status(Manager *manager);
void manager_send_status(Manager *manager);

/* Something of the binding has changed: told, unless nobody can know it yet. */
void manager_tell_changed(Manager *manager, const Binding *binding);

/* Takes on a state, and tells whoever wants to know. */
void manager_set_state(Manager *manager, Binding *binding, BindingState state, const char *reason);

/* What is wrong with instances of templates is told again. */
void manager_forget_failures(Manager *manager);

/* It is measured in the file at its path. */
void manager_forget_kept(Binding *binding);

/* Active; if there is something to be said of it nevertheless, that is the reason. */
void manager_set_state_active(Manager *manager, Binding *binding);

#endif
