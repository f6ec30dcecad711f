/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_DECLARED_NAME_H
#define ELF_DECLARED_NAME_H

#include "elf/symbol.h"

/* Functions of C++ and Rust by the names that people write, and others by a part of theirs. */

/*
 * Looks for the function that is called that in the source: with its path ("ns::Class::method"), or
 * also with the types of its arguments, "ns::f(int)"; blanks do not matter. A star stands for any
 * text, if there is none with a star in its name: "ns::Vec<*>::push", "parse.constprop.*". Returns
 * 1, 0 if there is none, -ENOTUNIQ with a sentence that lists some of them, -ENOMEM. path: the
 * file, for the sentence.
 */
int declared_name_find(const SymbolTable *table, const char *path, const char *name, size_t length,
                       SymbolMatch *ret, char **ret_error);

/*
 * Where there is none of that name: looks for what the compiler has made of it, "f.isra.0" or
 * "f.constprop.0", of which the file may have nothing else. name: also one of C. Returns the same.
 */
int declared_name_find_clone(const SymbolTable *table, const char *path, const char *name,
                             size_t length, SymbolMatch *ret, char **ret_error);

/* Is that the name of what a compiler has made of a function, "f.isra.0"? */
bool declared_name_is_clone(const char *name);

/* Is that what the function with that mangled name is called? Without stars. */
bool declared_name_is_of(const char *name, size_t length, const char *mangled);

/*
 * How many functions have that name: 0, 1, or 2 for more, and for a name that nobody could write or
 * that would take long to look for.
 */
int declared_name_count(const SymbolTable *table, const char *name);

#endif
