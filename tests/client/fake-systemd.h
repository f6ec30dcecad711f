/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FAKE_SYSTEMD_H
#define FAKE_SYSTEMD_H

#include "fake-binding.h"

/* Becomes systemd on its bus, too. Returns 0 or a negative errno. */
int fake_systemd_start(Fake *fake);

/*
 * tlobd goes from the bus, and its unit has that state. When somebody has looked at this so often,
 * it is back; 0: it never is. NULL: there is no such unit.
 */
int fake_systemd_take_away(Fake *fake, const char *unit_state, unsigned looks);

#endif
