/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_LENT_FILE_H
#define BINDING_LENT_FILE_H

#include "binding/binding.h"

/*
 * Opens what a process of a user has opened for reading, if it is that user's or for everybody, and
 * nothing else: there may be whatever is known to do harm. *ret_fd is a file on a file system that
 * answers, the caller's. Until that is known, this can take for ever. Returns 0 or a negative
 * errno, most with a sentence.
 */
int lent_file_open(const BindingLent *lent, int *ret_fd, char **ret_error);

#endif
