/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_CENSUS_H
#define KERNEL_CENSUS_H

#include <stddef.h>

#include "kernel/file.h"

/*
 * Counts threads as kernel_threads_count() does, for the event loop: it waits for a third of a
 * second at most. Returns 0 or a negative errno: -EOPNOTSUPP, with a sentence that names the
 * process, if one does not answer for what it has mapped, or has not yet since a count before.
 */
int kernel_census(const KernelFile *files, size_t n_files, unsigned max, unsigned *each,
                  unsigned *ret_total, char **ret_reason);

#endif
