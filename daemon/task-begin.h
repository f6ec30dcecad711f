/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TASK_BEGIN_H
#define TASK_BEGIN_H

#include <stdint.h>

/*
 * When a thread began, from /proc: nanoseconds of CLOCK_BOOTTIME, up to a clock tick earlier than
 * it did. Returns 0, or a negative errno: it may be gone.
 */
int task_read_begin(uint32_t tid, uint64_t *ret_ns);

#endif
