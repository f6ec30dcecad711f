/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_RESOLVE_H
#define BINDING_RESOLVE_H

#include "binding/binding.h"

/*
 * Finds executable, symbols and offsets and fills in what is resolved. Changes nothing on failure.
 * Errors are those of elf_file_open() and elf_file_resolve(), with their sentence in *ret_error.
 * *ret_file is what the probes are set with; it holds nothing for a binding that has no file.
 */
int binding_resolve(Binding *binding, BindingFile **ret_file, char **ret_error);

#endif
