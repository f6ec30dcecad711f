/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CONFIG_DIRECTORIES_H
#define CONFIG_DIRECTORIES_H

#include "base/runtime-scope.h"
#include "base/strings.h"

/*
 * Where the configuration is, highest precedence first: what persists, what is gone after the next
 * boot or logout, and then what others have installed. Lists are the caller's.
 *
 * -ENXIO: the user who runs this process has no home or runtime directory in the environment, with
 * a sentence.
 */

#define CONFIG_DIRECTORIES_MAX 8

int config_directories_of(RuntimeScope scope, char ***ret, char **ret_error);

/* The two in which an administrator, or that user, has unit files and drop-ins for systemd. */
int config_unit_directories_of(RuntimeScope scope, char ***ret, char **ret_error);

/*
 * What is between the colons: two to CONFIG_DIRECTORIES_MAX absolute paths. Returns 0, -EINVAL or
 * -ENOMEM.
 */
int config_directories_parse(const char *list, char ***ret);

#endif
