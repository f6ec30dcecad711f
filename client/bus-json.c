/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From D-Bus to JSON, by the types that a message itself names: a property that a newer daemon adds
 * appears in --json= by itself. All that tlobctl shows goes through here: the tables and sentences
 * for people are made from the same objects as the JSON for programs (output.c, event.c), so that
 * the two never say different things.
 *
 * The one rule that is this interface's own: UINT64_MAX is no number that a program should compute
 * with (most would round it, too), so it becomes null.
 */

#include "bus-json.h"

#include <stdbool.h>
#include <stdint.h>

/* Takes a value that json-c just made, or failed to make. */
static int made(json_object *value, json_object **ret) {
        if (!value)
                return -ENOMEM;
        *ret = value;
        return 0;
}

int json_add(json_object *object, const char *key, json_object *value) {
        if (json_object_object_add(object, key, value) < 0) {
                json_object_put(value);
                return -ENOMEM;
        }
        return 0;
}

int json_add_number(json_object *object, const char *key, uint64_t value) {
        json_object *number = value == UINT64_MAX ? NULL : json_object_new_uint64(value);

        return value != UINT64_MAX && !number ? -ENOMEM : json_add(object, key, number);
}

int json_append(json_object *array, json_object *value) {
        if (json_object_array_add(array, value) < 0) {
                json_object_put(value);
                return -ENOMEM;
        }
        return 0;
}

int json_add_string(json_object *object, const char *key, const char *value) {
        json_object *string = json_object_new_string(value);

        return string ? json_add(object, key, string) : -ENOMEM;
}

static int make_basic(char type, const void *value, json_object **ret) {
        switch (type) {
        case SD_BUS_TYPE_STRING:
        case SD_BUS_TYPE_OBJECT_PATH:
        case SD_BUS_TYPE_SIGNATURE:
                return made(json_object_new_string(*(const char *const *) value), ret);
        case SD_BUS_TYPE_BOOLEAN:
                return made(json_object_new_boolean(*(const int *) value), ret);
        case SD_BUS_TYPE_BYTE:
                return made(json_object_new_int(*(const uint8_t *) value), ret);
        case SD_BUS_TYPE_INT16:
                return made(json_object_new_int(*(const int16_t *) value), ret);
        case SD_BUS_TYPE_UINT16:
                return made(json_object_new_int(*(const uint16_t *) value), ret);
        case SD_BUS_TYPE_INT32:
                return made(json_object_new_int(*(const int32_t *) value), ret);
        case SD_BUS_TYPE_UINT32:
                return made(json_object_new_int64(*(const uint32_t *) value), ret);
        case SD_BUS_TYPE_INT64:
                return made(json_object_new_int64(*(const int64_t *) value), ret);
        case SD_BUS_TYPE_UINT64:
                if (*(const uint64_t *) value == UINT64_MAX) {
                        *ret = NULL;
                        return 0;
                }
                return made(json_object_new_uint64(*(const uint64_t *) value), ret);
        case SD_BUS_TYPE_DOUBLE:
                return made(json_object_new_double(*(const double *) value), ret);
        default:
                return -EBADMSG;
        }
}

static int read_basic(sd_bus_message *m, char type, json_object **ret) {
        union {
                const char *s;
                uint64_t t;
                double d;
        } value = {};
        int r;

        r = sd_bus_message_read_basic(m, type, &value);
        if (r < 0)
                return r;
        return make_basic(type, &value, ret);
}

static int read_value(sd_bus_message *m, json_object **ret);

/* The members of the dictionary that m stands in. */
static int read_entries(sd_bus_message *m, const char *contents, json_object *object) {
        int r;

        while ((r = sd_bus_message_enter_container(m, SD_BUS_TYPE_DICT_ENTRY, contents)) > 0) {
                _cleanup_json_ json_object *key = NULL, *value = NULL;

                r = read_basic(m, contents[0], &key);
                if (r < 0)
                        return r;
                r = read_value(m, &value);
                if (r < 0)
                        return r;
                r = json_add(object, json_object_get_string(key), TAKE_PTR(value));
                if (r < 0)
                        return r;
                r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r;
}

/* "sv" of "{sv}", for sd_bus_message_enter_container(). NULL for want of memory. */
static char *entry_contents(const char *entry) {
        return strndup(entry + 1, strlen(entry) - 2);
}

static int read_dictionary_into(sd_bus_message *m, const char *contents, json_object *object) {
        _cleanup_free_ char *entry = entry_contents(contents);
        int r;

        if (!entry)
                return -ENOMEM;
        r = sd_bus_message_enter_container(m, SD_BUS_TYPE_ARRAY, contents);
        if (r < 0)
                return r;
        r = read_entries(m, entry, object);
        if (r < 0)
                return r;
        return sd_bus_message_exit_container(m);
}

/* An array or structure. */
static int read_items(sd_bus_message *m, char type, const char *contents, json_object *array) {
        int r;

        r = sd_bus_message_enter_container(m, type, contents);
        if (r < 0)
                return r;
        while ((r = sd_bus_message_at_end(m, false)) == 0) {
                _cleanup_json_ json_object *item = NULL;

                r = read_value(m, &item);
                if (r < 0)
                        return r;
                r = json_append(array, TAKE_PTR(item));
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        return sd_bus_message_exit_container(m);
}

static int read_variant(sd_bus_message *m, const char *contents, json_object **ret) {
        _cleanup_json_ json_object *value = NULL;
        int r;

        r = sd_bus_message_enter_container(m, SD_BUS_TYPE_VARIANT, contents);
        if (r < 0)
                return r;
        r = read_value(m, &value);
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(value);
        return 0;
}

static int read_value(sd_bus_message *m, json_object **ret) {
        _cleanup_json_ json_object *value = NULL;
        const char *contents;
        char type;
        int r;

        r = sd_bus_message_peek_type(m, &type, &contents);
        if (r < 0)
                return r;
        if (r == 0)
                return -EBADMSG;
        if (type == SD_BUS_TYPE_VARIANT)
                return read_variant(m, contents, ret);
        if (type != SD_BUS_TYPE_ARRAY && type != SD_BUS_TYPE_STRUCT)
                return read_basic(m, type, ret);

        if (type == SD_BUS_TYPE_ARRAY && contents[0] == SD_BUS_TYPE_DICT_ENTRY_BEGIN) {
                value = json_object_new_object();
                r = value ? read_dictionary_into(m, contents, value) : -ENOMEM;
        } else {
                value = json_object_new_array();
                r = value ? read_items(m, type, contents, value) : -ENOMEM;
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(value);
        return 0;
}

int bus_json_read_message(sd_bus_message *m, const char *signature, json_object **ret) {
        int r = sd_bus_message_has_signature(m, signature);

        if (r < 0)
                return r;
        return r == 0 ? -EBADMSG : read_value(m, ret);
}

int bus_json_read_members(sd_bus_message *m, const char *const *names, json_object *object) {
        for (; *names; names++) {
                _cleanup_json_ json_object *value = NULL;
                int r;

                if (**names == '\0') {
                        r = read_dictionary_into(m, "{sv}", object);
                        if (r < 0)
                                return r;
                        continue;
                }
                r = read_value(m, &value);
                if (r < 0)
                        return r;
                r = json_add(object, *names, TAKE_PTR(value));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_row(sd_bus_message *m, const char *const *names, json_object *rows) {
        _cleanup_json_ json_object *row = json_object_new_object();
        int r;

        if (!row)
                return -ENOMEM;
        r = bus_json_read_members(m, names, row);
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;
        return json_append(rows, TAKE_PTR(row));
}

int bus_json_read_rows(sd_bus_message *m, const char *contents, const char *const *names,
                       json_object **ret) {
        _cleanup_free_ char *structure = entry_contents(contents);
        _cleanup_json_ json_object *rows = json_object_new_array();
        int r;

        if (!structure || !rows)
                return -ENOMEM;
        r = sd_bus_message_enter_container(m, SD_BUS_TYPE_ARRAY, contents);
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, SD_BUS_TYPE_STRUCT, structure)) > 0) {
                r = read_row(m, names, rows);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(rows);
        return 0;
}

const char *json_string(const json_object *object, const char *key) {
        json_object *value;

        if (!json_object_object_get_ex(object, key, &value) ||
            !json_object_is_type(value, json_type_string))
                return "";
        return json_object_get_string(value);
}

uint64_t json_number(const json_object *object, const char *key) {
        json_object *value;

        if (!json_object_object_get_ex(object, key, &value) ||
            !json_object_is_type(value, json_type_int))
                return UINT64_MAX;
        return json_object_get_uint64(value);
}

size_t json_length(const json_object *array) {
        return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

json_object *json_item(const json_object *array, size_t i) {
        return i < json_length(array) ? json_object_array_get_idx(array, i) : NULL;
}
