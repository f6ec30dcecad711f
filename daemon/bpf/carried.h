/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_CARRIED_H
#define BPF_CARRIED_H

#include "bpf/kept.h"
#include "bpf/pins.h"

/*
 * What a predecessor has counted whose maps nobody can go on with: those of an older build, or of
 * other sizes. It becomes the past of the same bindings, measured anew.
 */

typedef struct Carried Carried;

/*
 * From here on nothing counts for the predecessor any more; its windows that are open have ended,
 * as "removed". Returns 0, -ESTALE (its books have another form, too), or another negative errno.
 */
int carried_take(const Kept *kept, const Pins *pins, Carried **ret);
Carried *carried_free(Carried *carried);
DEFINE_CLEANUP(Carried, carried_free);

/*
 * One more, whose places are gone before its binding has others: *carried is made if it is NULL.
 * Takes what past has. Returns 0 or -ENOMEM.
 */
int carried_add(Carried **carried, const KeptBinding *kept, Past *past);

/*
 * Gives the successor's binding at that index, whose name and places it has, its past: once.
 * Returns 0 or -ENOMEM.
 */
int carried_give(Carried *carried, Kept *kept, uint32_t index);

/*
 * Gives the successor what is of no binding. Returns the reports that are lost in all: those that
 * the predecessor has told as lost, and those that waited for it.
 */
uint64_t carried_give_common(const Carried *carried, Kept *kept);

#endif
