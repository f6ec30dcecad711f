/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_EXECUTABLE_H
#define BINDING_EXECUTABLE_H

#include "base/root.h"
#include "binding/binding.h"
#include "elf/file.h"

/* The file that a binding means, as its unit's processes see it. */

/*
 * The tree in which it is resolved: as its unit's processes see it. path: of the file there, if it
 * is known, which can also be meant on the machine while a container runs. -EAGAIN: nobody sees
 * it, because the unit does not run.
 */
int binding_open_root(const Binding *binding, const char *path, Root *ret, char **ret_error);

/* The container that its unit starts is not there yet: what is found now may not be meant. */
bool binding_awaits_container(const Binding *binding);

/* Says so, of what is in its Executable=. Returns -EAGAIN or -ENOMEM. */
int binding_await_container(const Binding *binding, char **ret_error);

/*
 * The library of its Executable= as the dynamic loader finds it for the program of its unit: its
 * path in the tree. Returns 0, -ENOENT or -ENOMEM.
 */
int binding_look_up_library(const Binding *binding, const Root *root, char **ret_path);

/* Can there be a container in the cgroup of its unit, whose files are meant? */
bool binding_may_have_container(const Binding *binding);

/*
 * Do its files come and go with what runs: those of a container, or of a RootImage=, which is
 * another file system each time that it is mounted? That they do is no news.
 */
bool binding_has_passing_files(const Binding *binding);

/*
 * Opens its executable there, and gives its path in that tree. Errors are those of elf_file_open(),
 * with their sentence.
 */
int binding_open_executable(const Binding *binding, char **ret_inner_path, ElfFile **ret_elf,
                            char **ret_error);

/*
 * What the main process of its unit runs, or the first one of a container in it, as seen from
 * outside; NULL: it is not known.
 */
char *binding_running_program(const Binding *binding);

#endif
