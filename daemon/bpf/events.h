/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_EVENTS_H
#define BPF_EVENTS_H

#include "backend/backend.h"

/*
 * Can that binding, if it is between events of the kernel, be measured on this kernel? Returns 0,
 * or a negative errno, for -EOPNOTSUPP with a sentence in *ret_reason.
 */
int bpf_events_check(const Binding *binding, char **ret_reason);

#endif
