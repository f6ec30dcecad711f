/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MOMENT_H
#define MOMENT_H

#include <stdint.h>

/*
 * A moment in the past, as journalctl takes it for --since=: "2026-11-24 09:30", "09:30:15",
 * "today", "yesterday", "@1795561395", "1h ago", "-2d"; also "1h", as nothing else can be meant. In
 * microseconds of CLOCK_REALTIME, as now_usec is. Returns 0, -EINVAL (it is none), or -ERANGE (it
 * is not in the past).
 */
int moment_parse(const char *s, uint64_t now_usec, uint64_t *ret_usec);

#endif
