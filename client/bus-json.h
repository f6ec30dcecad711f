/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BUS_JSON_H
#define BUS_JSON_H

#include <json-c/json.h>
#include <systemd/sd-bus.h>

#include "base/cleanup.h"

/*
 * What tlobd says over D-Bus, as JSON: dictionaries become objects, arrays and structures arrays,
 * variants what is in them. UINT64_MAX, which in this interface stands for "infinity" or "not
 * known", becomes null.
 */

DEFINE_CLEANUP(json_object, json_object_put);
#define _cleanup_json_ _cleanup_(json_object_putp)

/*
 * Reads a message that is one value, of that type: whatever has answered there, -EBADMSG if it has
 * said anything else. Returns 0 or a negative errno. The caller owns *ret.
 */
int bus_json_read_message(sd_bus_message *m, const char *signature, json_object **ret);

/*
 * Reads the next values, one for each name up to NULL, and adds them to object. The name "" is for
 * a dictionary whose members go into the object itself. Returns 0 or a negative errno.
 */
int bus_json_read_members(sd_bus_message *m, const char *const *names, json_object *object);

/* Reads an array of structures ("(ss)"), each into an object as bus_json_read_members() does. */
int bus_json_read_rows(sd_bus_message *m, const char *contents, const char *const *names,
                       json_object **ret);

/*
 * Adds to an object or array. They own value from then on, and free it on failure. Return 0 or
 * -ENOMEM.
 */
int json_add(json_object *object, const char *key, json_object *value);
int json_append(json_object *array, json_object *value);

/* Adds a string. Returns 0 or -ENOMEM. */
int json_add_string(json_object *object, const char *key, const char *value);

/* Adds a number; UINT64_MAX: null. Returns 0 or -ENOMEM. */
int json_add_number(json_object *object, const char *key, uint64_t value);

/* The string below key: "" if there is none, or null. Owned by the object. */
const char *json_string(const json_object *object, const char *key);

/* The number below key: UINT64_MAX if there is none, or null. */
uint64_t json_number(const json_object *object, const char *key);

/*
 * The items of an array, and one of them: 0 and NULL if it is none. What is inside of a variant may
 * be of another type than ours, if the tlobd of another machine is of another version, or is none.
 */
size_t json_length(const json_object *array);
json_object *json_item(const json_object *array, size_t i);

#endif
