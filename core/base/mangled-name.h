/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_MANGLED_NAME_H
#define BASE_MANGLED_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Writes the name as a C++ or Rust programmer wrote it to text, cut after size - 1 bytes: with the
 * types of its arguments, or only the path to the function ("node::MakeCallback"). False, and text
 * is empty, if the name is not a mangled one.
 */
bool mangled_name_decode(const char *mangled, bool arguments, char *text, size_t size);

/* Is that, "f.cold" or "f.cold.1", the part of a function that is hardly ever run? */
bool name_is_cold(const char *name);

/* Is that a name as in the source of C++ or Rust, and in no file? There may be blanks in it. */
bool name_is_of_source(const char *name);

#endif
