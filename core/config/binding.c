/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sections that define bindings: [Binding NAME] below bindings.d, and [X-Tlob NAME] in the files of
 * a unit, where the unit's name comes before the binding's own. Their keys are the same, but for
 * Unit=, which a unit's own files cannot give.
 *
 * Sections of the same name add up, in whatever file they are: what is wrong with a key stays with
 * the binding until a later value of that key is good.
 *
 * In a unit's files everything else is systemd's: sections of other names are passed over without a
 * word, and without a look at their lines. Those that are nearly ours are nobody's, since systemd
 * ignores most of them as silently as ours: these are warned about, as is a section that is right
 * in the other kind of file.
 */

#include <ctype.h>

#include "base/near-name.h"
#include "base/sentence.h"
#include "base/unit-name.h"
#include "config/internal.h"

static int add_binding(ConfigLoader *loader, const ConfigPlace *place, const char *name) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        int r;

        r = binding_new(name, &binding);
        if (r < 0)
                return r;
        binding->source.place = sentence_make("%s:%u", place->file, place->line);
        if (!binding->source.place)
                return -ENOMEM;
        r = binding_table_put(&loader->config->bindings, binding);
        if (r < 0)
                return r;
        loader->binding = TAKE_PTR(binding);
        return 0;
}

static int bad_name(ConfigLoader *loader, const ConfigPlace *place, const char *name) {
        return config_warn(loader, place,
                           "'%s' cannot be the name of a binding, ignoring: write 1 to %i "
                           "letters, digits, '-', '_' or '.', not beginning with '.'",
                           name, BINDING_NAME_MAX);
}

/* The section is about the binding of that full name. Returns 1. */
static int begin_binding(ConfigLoader *loader, const ConfigPlace *place, const char *full_name) {
        int r;

        loader->places = (PlaceKeys) {};
        loader->has_place_error = false;
        loader->binding = binding_table_get(&loader->config->bindings, full_name);
        if (!loader->binding) {
                r = add_binding(loader, place, full_name);
                if (r < 0)
                        return r;
        }
        return 1;
}

static int on_binding_section(const ConfigPlace *place, const char *section, void *userdata) {
        const char *name = config_section_argument(section, "Binding");
        ConfigLoader *loader = userdata;

        loader->binding = NULL;
        if (config_section_argument(section, CONFIG_UNIT_SECTION))
                return config_warn(loader, place,
                                   "Section [%s] is only read in the files of a unit, which "
                                   "'tlobctl verify --unit=UNIT' checks: write [Binding NAME] here",
                                   section);
        if (!name)
                return config_unknown_section(loader, place, section);
        if (!binding_name_is_valid(name))
                return bad_name(loader, place, name);
        return begin_binding(loader, place, name);
}

static bool equal_letters(const char *a, const char *b, size_t n) {
        return strncasecmp(a, b, n) == 0;
}

/* One letter of b is another, missing or doubled in a, or two of them are swapped. */
static bool is_one_slip(const char *a, size_t n, const char *b) {
        size_t m = strlen(b), same = 0;

        while (same < n && same < m && equal_letters(a + same, b + same, 1))
                same++;
        a += same, n -= same;
        b += same, m -= same;
        if (n == 0 || m == 0)
                return n + m <= 1;
        if (n == m)
                return equal_letters(a + 1, b + 1, n - 1) ||
                       (n > 1 && equal_letters(a, b + 1, 1) && equal_letters(a + 1, b, 1) &&
                        equal_letters(a + 2, b + 2, n - 2));
        return n == m + 1   ? equal_letters(a + 1, b, m)
               : m == n + 1 ? equal_letters(a, b + 1, n)
                            : false;
}

/* [X-tlob f], [X-Tlobd f], [Tlob f], [X-Tolb f] */
static bool is_nearly_ours(const char *section) {
        size_t prefix = equal_letters(section, "X-", 2) ? 2 : 0, n = 0;

        if (strcasestr(section, "tlob"))
                return true;
        section += prefix;
        while (section[n] != '\0' && !isspace((unsigned char) section[n]))
                n++;
        /* Without a name for a binding it is somebody else's. */
        return section[n] != '\0' && is_one_slip(section, n, "tlob");
}

static int on_other_section(ConfigLoader *loader, const ConfigPlace *place, const char *section) {
        const char *name = config_section_argument(section, "Binding");

        if (name)
                return config_warn(loader, place,
                                   "Section [%s] is not read in the files of a unit: write [%s %s]",
                                   section, CONFIG_UNIT_SECTION, name);
        if (!is_nearly_ours(section))
                return 0;
        return config_warn(loader, place, "Section [%s] is not read: write [%s NAME]", section,
                           CONFIG_UNIT_SECTION);
}

static int on_unit_section(const ConfigPlace *place, const char *section, void *userdata) {
        const char *name = config_section_argument(section, CONFIG_UNIT_SECTION);
        char full_name[UNIT_NAME_MAX + 1 + BINDING_NAME_MAX + 1];
        ConfigLoader *loader = userdata;
        int r;

        loader->binding = NULL;
        if (streq(section, CONFIG_UNIT_SECTION))
                return config_warn(loader, place,
                                   "This section has no name, ignoring: write [%s NAME]",
                                   CONFIG_UNIT_SECTION);
        if (!name)
                return on_other_section(loader, place, section);
        if (!binding_name_is_valid(name))
                return bad_name(loader, place, name);

        (void) snprintf(full_name, sizeof(full_name), "%s/%s", loader->unit, name);
        r = begin_binding(loader, place, full_name);
        if (r < 0 || loader->binding->unit)
                return r;
        loader->binding->unit = strdup(loader->unit);
        return loader->binding->unit ? r : -ENOMEM;
}

/* The key as it is in the table, so that it can be kept; NULL if it is not there. */
static const char *known_key(const char *name) {
        for (const char *const *key = binding_keys(); *key; key++)
                if (streq(*key, name))
                        return *key;
        return NULL;
}

static int add_binding_error(ConfigLoader *loader, const ConfigPlace *place, const char *key,
                             const char *sentence) {
        _cleanup_free_ char *text = config_place_sentence(place, sentence);

        if (!text)
                return -ENOMEM;
        return binding_add_error(loader->binding, key, text);
}

/* What a section measures takes the place of what one before it has said, right or wrong. */
static void clear_binding_errors(const ConfigLoader *loader, const char *key) {
        Binding *binding = loader->binding;

        if (binding_key_is_place(key) && loader->has_place_error)
                return;
        binding_clear_error(binding, key);
        if (!binding_key_is_place(key) || streq(key, "Stop"))
                return;
        for (const char *const *other = binding_keys(); *other; other++)
                if (binding_key_is_place(*other))
                        binding_clear_error(binding, *other);
}

/* It may be one of ours with a slip of the finger. */
static int warn_of_key(ConfigLoader *loader, const ConfigPlace *place, const char *name) {
        _cleanup_free_ char *list = NULL;
        NearNames near;

        near_names_init(&near, name, strlen(name));
        for (const char *const *key = binding_keys(); *key; key++)
                near_names_offer(&near, *key);
        list = near_names_list(&near, NULL, NULL);
        if (!list)
                return -ENOMEM;
        return config_warn(loader, place, "Unknown key '%s' in section [%s %s], ignoring%s%s", name,
                           loader->unit ? CONFIG_UNIT_SECTION : "Binding",
                           binding_own_name(loader->binding), *list != '\0' ? "; near names: " : "",
                           list);
}

/* No key of the contract: nobody may say so of a binding but tlobd, which writes it. */
static int set_added_by(ConfigLoader *loader, const ConfigPlace *place, const char *value) {
        unsigned long uid;
        char *end;

        errno = 0;
        uid = strtoul(value, &end, 10);
        if (errno != 0 || *end != '\0' || !isdigit((unsigned char) value[0]) || uid >= UINT32_MAX)
                return config_warn(loader, place, CONFIG_ADDED_BY "=%s is not a user ID, ignoring",
                                   value);
        loader->binding->source.added_by = (uid_t) uid;
        return 0;
}

static int on_binding_key(const ConfigPlace *place, const char *name, const char *value,
                          void *userdata) {
        _cleanup_free_ char *sentence = NULL;
        const char *key = known_key(name);
        ConfigLoader *loader = userdata;
        int r;

        if (!loader->unit && streq(name, CONFIG_ADDED_BY))
                return set_added_by(loader, place, value);
        if (!key)
                return warn_of_key(loader, place, name);
        if (loader->unit && streq(key, "Unit"))
                return config_warn(
                        loader, place,
                        "Unit= is not allowed in the files of a unit, ignoring: '%s' applies to "
                        "%s",
                        loader->binding->name, loader->unit);
        r = binding_set_next_key(loader->binding, &loader->places, key, value, &sentence);
        if (r < 0 && sentence) {
                loader->has_place_error |= binding_key_is_place(key);
                return add_binding_error(loader, place, key, sentence);
        }
        if (r >= 0)
                clear_binding_errors(loader, key);
        return r;
}

/* A line that cannot be read, but whose key is known, is a bad value of that key. */
static int on_binding_problem(const ConfigPlace *place, const char *name, const char *sentence,
                              void *userdata) {
        const char *key = name ? known_key(name) : NULL;
        ConfigLoader *loader = userdata;

        if (loader->binding && key)
                return add_binding_error(loader, place, key, sentence);
        return config_on_problem(place, name, sentence, userdata);
}

const ConfigHandlers config_binding_handlers = {
        .section = on_binding_section,
        .key = on_binding_key,
        .problem = on_binding_problem,
};

const ConfigHandlers config_unit_handlers = {
        .section = on_unit_section,
        .key = on_binding_key,
        .problem = on_binding_problem,
};
