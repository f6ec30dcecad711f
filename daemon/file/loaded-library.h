/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FILE_LOADED_LIBRARY_H
#define FILE_LOADED_LIBRARY_H

#include "binding/binding.h"

/*
 * The library of the bare name of a binding's Executable= that a process of its unit has loaded,
 * the main process before others: from wherever its environment or it itself has had it. *ret_path:
 * in the tree that the binding is resolved in; the caller's. Returns 1 if it is the main process's,
 * 0 if it is another one's, -ENOENT: none has one that can be seen there, or -ENOMEM.
 */
int loaded_library_find(const Binding *binding, char **ret_path);

#endif
