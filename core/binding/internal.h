/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_INTERNAL_H
#define BINDING_INTERNAL_H

#include "binding/keys.h"

/* What the keys*.c files share. */

typedef struct BindingKey {
        const char *name;
        int (*set)(Binding *binding, const struct BindingKey *key, const char *value,
                   char **ret_error);
        int (*get)(const Binding *binding, const struct BindingKey *key, char **ret_value);
        size_t where; /* offsetof() its field, or which budget */
} BindingKey;

/* keys.c: text that comes back as it was, after it was written to a file. */
int key_check_text(const BindingKey *key, const char *value, char **ret_error);
int key_set_text(Binding *binding, const BindingKey *key, const char *value, char **ret_error);

/* key-places.c: what is measured. */
int key_set_executable(Binding *binding, const BindingKey *key, const char *value,
                       char **ret_error);
int key_set_start(Binding *binding, const BindingKey *key, const char *value, char **ret_error);
int key_set_stop(Binding *binding, const BindingKey *key, const char *value, char **ret_error);
int key_set_function(Binding *binding, const BindingKey *key, const char *value, char **ret_error);
int key_set_system_call(Binding *binding, const BindingKey *key, const char *value,
                        char **ret_error);
int key_set_mark(Binding *binding, const BindingKey *key, const char *value, char **ret_error);
int key_set_window_key(Binding *binding, const BindingKey *key, const char *value,
                       char **ret_error);
int key_set_build_id(Binding *binding, const BindingKey *key, const char *value, char **ret_error);

#endif
