/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TOP_TALLIES_H
#define TOP_TALLIES_H

#include <systemd/sd-bus.h>

#include "filter.h"
#include "top/tally.h"

/*
 * Reads what the bindings that match have counted from the reply of GetManagedObjects(). The
 * pattern is part of the name of a binding or unit, or a shell pattern for it; NULL: any. Returns 0
 * or a negative errno; the caller owns what is in *ret.
 */
int top_read_tallies(sd_bus_message *reply, const Filter *filter, const char *pattern,
                     Tallies *ret);

/* Does that pattern find a binding of that name and unit? */
bool top_pattern_matches(const char *pattern, const char *binding, const char *unit);

#endif
