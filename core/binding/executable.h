/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_EXECUTABLE_H
#define BINDING_EXECUTABLE_H

#include "base/root.h"
#include "binding/binding.h"
#include "elf/file.h"

/* The file that a binding means, as its unit's processes see it. */

/*
 * The tree in which it is resolved: as its unit's processes see it. -EAGAIN: nobody sees it,
 * because the unit does not run.
 */
int binding_open_root(const Binding *binding, Root *ret, char **ret_error);

/*
 * Opens its executable there, and gives its path in that tree. Errors are those of elf_file_open(),
 * with their sentence.
 */
int binding_open_executable(const Binding *binding, char **ret_inner_path, ElfFile **ret_elf,
                            char **ret_error);

/* What the main process of its unit runs, as seen from outside; NULL: it is not known. */
char *binding_running_program(const Binding *binding);

#endif
