/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_EVENT_H
#define BINDING_EVENT_H

#include "binding/binding.h"

/* Bindings that have no file: their windows are between events of the kernel. */

/*
 * Whether that place, if it is an event, is one between which can be measured. key: whose value it
 * is, as written. Returns 0, or a negative errno with a sentence in *ret_error.
 */
int place_check_event(const char *key, const char *value, char **ret_error);

/* As binding_resolve(); the file is none. */
int binding_resolve_events(Binding *binding, BindingFile **ret_file, char **ret_error);

/*
 * Who pays for one, and how much, as a sentence without a full stop; the caller's. NULL for want of
 * memory.
 */
char *binding_describe_event_cost(const Binding *binding);

#endif
