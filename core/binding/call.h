/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_CALL_H
#define BINDING_CALL_H

#include "binding/binding.h"

/* Bindings that have no file: their windows are system calls, which the kernel tells of. */

/*
 * Whether that place is a system call that can be measured. key: whose value it is, as written.
 * Returns 0, or a negative errno with a sentence in *ret_error.
 */
int place_check_call(const char *key, const char *value, const char *call, char **ret_error);

/* As binding_resolve(); the file is none. */
int binding_resolve_call(Binding *binding, BindingFile **ret_file, char **ret_error);

/*
 * Who pays for one, and how much, as a sentence without a full stop; the caller's. NULL for want of
 * memory.
 */
char *binding_describe_call_cost(const Binding *binding);

#endif
