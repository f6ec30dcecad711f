/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_KEYS_H
#define BINDING_KEYS_H

#include "binding/binding.h"

/* The keys of a binding, and their values as text. */

/*
 * Sets one key of the contract from its text. An empty value resets the key to its default. A
 * budget is both configured and what holds, until an override is put in its place. Returns 0,
 * -ENOENT (no such key), -ENOMEM, or another negative errno for a bad value, with a sentence in
 * *ret_error that names key and value (without a file name).
 */
int binding_set_key(Binding *binding, const char *key, const char *value, char **ret_error);

/* Which keys of a section, or of one request, have said where the window starts and stops. */
typedef struct PlaceKeys {
        const char *start; /* names of keys, static; NULL: none */
        const char *stop;
} PlaceKeys;

/*
 * As binding_set_key(), for one key after the other of a section: -EINVAL also if another one has
 * said otherwise what it says. Stop= holds also if Function= comes after it.
 */
int binding_set_next_key(Binding *binding, PlaceKeys *given, const char *key, const char *value,
                         char **ret_error);

/* Does that key say where the window starts or stops? */
bool binding_key_is_place(const char *key);

/* A new binding of the same name and unit, with the same keys and budgets. */
int binding_copy(const Binding *binding, Binding **ret);

/*
 * A new binding with the same keys, of that unit and with its name in front, in the place of one of
 * another unit. Its errors are not copied.
 */
int binding_copy_for_unit(const Binding *binding, const char *unit, Binding **ret);

/* Is the same written of both, names and errors included? */
bool binding_same_configuration(const Binding *a, const Binding *b);

/* The keys that binding_set_key() knows, NULL after the last; static. */
const char *const *binding_keys(void);

/*
 * The text of a key as configured, for binding_set_key(). Returns 1, 0 (it has its default),
 * -ENOENT (no such key, or one that is short for others), -ENOMEM.
 */
int binding_get_key(const Binding *binding, const char *key, char **ret_value);

int backend_choice_from_string(const char *s, BackendChoice *ret); /* -EINVAL */
const char *backend_choice_to_string(BackendChoice choice);

#endif
