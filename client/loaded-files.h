/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LOADED_FILES_H
#define LOADED_FILES_H

#include <stdint.h>

/*
 * The files of which a process has mapped code, as it sees them, but for those that are deleted.
 * Returns 0, -ENOMEM, or what reading /proc/PID/maps fails with.
 */
int loaded_files_list(uint32_t pid, char ***ret);

#endif
