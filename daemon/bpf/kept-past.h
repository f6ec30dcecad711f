/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_KEPT_PAST_H
#define BPF_KEPT_PAST_H

#include "bpf/kept.h"
#include "report/past.h"

/* What is kept of the past of bindings: see report/past.h. */

/* In place of what was kept of it before. Builds whose id has no room are left out. */
void kept_set_past(Kept *kept, uint32_t index, const Past *past);

/* Adds what is kept, as what came after past. Returns 0 or -ENOMEM. */
int kept_add_past(const Kept *kept, uint32_t index, Past *past);

/* In which build its binding is measured there; NULL: it is not known. */
const char *kept_get_build_id(const KeptBinding *binding);
void kept_set_build_id(KeptBinding *binding, const char *id);

#endif
