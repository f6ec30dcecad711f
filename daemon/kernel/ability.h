/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_ABILITY_H
#define KERNEL_ABILITY_H

#include <stdint.h>

#include "binding/binding.h"

/* Can the monitor express that binding? As BackendOps.can(). */
int kernel_can(const Binding *binding, const BindingFile *file, char **ret_reason);
int kernel_check_budget(uint64_t budget_ns, char **ret_reason);

/* Where the window of a binding ends: its stop, or the one place where the function returns. */
int kernel_find_stop(const Binding *binding, uint64_t *ret, char **ret_reason);

#endif
