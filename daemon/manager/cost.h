/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_COST_H
#define MANAGER_COST_H

#include "manager/internal.h"

/* As manager_describe_price(), of a binding that would be set up with that back end. */
int manager_foretell_price(Manager *manager, const Binding *binding, const BackendOps *ops,
                           char **ret);

/*
 * As manager_describe_cost(), of a binding that would be set up with that back end. -EINPROGRESS:
 * binding->question is the question.
 */
int manager_foretell_cost(Manager *manager, Binding *binding, const BindingFile *file,
                          const BackendOps *ops, char **ret);

/* What it costs programs that unwind their stacks, as a sentence; static. NULL: nothing. */
const char *manager_foretell_unwinding_cost(const Binding *binding, const BackendOps *ops);

#endif
