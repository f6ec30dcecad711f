/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TASK_NAME_H
#define TASK_NAME_H

#include <stdint.h>

#include "base/words.h"

/*
 * The name of a thread, from /proc, as a string: any bytes that it has given itself, newlines among
 * them. Returns 0, or a negative errno with "" as the name: it may be gone.
 */
int task_read_name(uint32_t tid, char ret[static TLOB_COMM_LEN + 1]);

#endif
