/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef EMPTY_H
#define EMPTY_H

#include <stdbool.h>

/*
 * The program of empty probes, "return 0", for uprobe_multi links or for perf events. Returns its
 * descriptor, or says why and returns a negative errno.
 */
int empty_load(bool multi);

#endif
