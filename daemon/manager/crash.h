/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_CRASH_H
#define MANAGER_CRASH_H

#include "manager/internal.h"

/* The main process of the unit has ended: its bindings are given up if it crashes all the time. */
void manager_note_end(Manager *manager, const char *unit, const UnitEnd *end);

#endif
