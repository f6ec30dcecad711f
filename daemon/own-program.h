/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef OWN_PROGRAM_H
#define OWN_PROGRAM_H

#include <stdbool.h>

/* Notes where the program of this process is: at its start. */
void own_program_note(void);

/*
 * Is another file there now, as after an upgrade? Not if there is none, or if it was not noted.
 */
bool own_program_is_replaced(void);

#endif
