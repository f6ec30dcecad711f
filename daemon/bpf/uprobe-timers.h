/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_UPROBE_TIMERS_H
#define BPF_UPROBE_TIMERS_H

#include <stdbool.h>

/*
 * May a program on a uprobe use timers here? Linux 7.0 is the first that lets it. Asked of the
 * kernel, with a program that does nothing; true also if there is no answer.
 */
bool uprobe_timers_are_allowed(void);

#endif
