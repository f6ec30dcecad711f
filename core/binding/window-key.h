/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_WINDOW_KEY_H
#define BINDING_WINDOW_KEY_H

#include "binding/binding.h"

/*
 * The key of windows that another thread may end than began them: an argument of both places, which
 * has the same value for one window, such as the address of a request (Key=arg1). A mark has one if
 * the program gives it.
 */

#define WINDOW_KEY_MAX 16 /* with a zero at the end */

/*
 * "arg1" to "arg12", with ":u32" or the like behind it if only so much of it counts, or "". Returns
 * 0 or -EINVAL.
 */
int window_key_parse(const char *text, KeyArgument *ret);

/* As it was found, else as configured; "": there is none. Returns text. */
const char *window_key_format(const Binding *binding, char text[static WINDOW_KEY_MAX]);

/*
 * Finds where the key lies at both places, which are resolved: sites->key. Does nothing if there is
 * none. Returns 0, or a negative errno with a sentence in *ret_error.
 */
int window_key_resolve(const Binding *binding, const ElfFile *elf, BindingSites *sites,
                       char **ret_error);

#endif
