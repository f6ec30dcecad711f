/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The configuration, from files to a Config: what sections and keys mean, and what becomes of what
 * is wrong in them. Which files there are and how one is read is config/file.c's; sections that
 * define bindings are config/binding.c's; the values are for config/keys.c and binding/keys.c.
 *
 * Nothing in a file makes config_load() fail. What concerns one binding stays with it as its error,
 * until a later value of the same key is good; everything else is a message. So a drop-in can
 * repair what a packaged file has wrong.
 *
 * Overrides are the odd one out: below /run they win over those below /etc, because a budget that
 * is set until the next reboot is meant to hold until then.
 *
 * Bindings of units come on top: which files a unit has, only systemd knows.
 */

#include "config/config.h"

#include <ctype.h>
#include <stdarg.h>
#include <syslog.h>

#include "base/duration.h"
#include "base/sentence.h"
#include "config/internal.h"

const char *const config_directories[] = {
        "/etc/tlob", "/run/tlob", "/usr/local/lib/tlob", "/usr/lib/tlob", NULL,
};

#define N_OVERRIDE_DIRECTORIES 2

/* Nobody reads more; each new one is compared with all that are there. */
#define MESSAGES_MAX 200

static void config_init(Config *config) {
        *config = (Config) {};
        for (const char *const *key = config_keys(); *key; key++)
                (void) config_set_key(config, *key, "", NULL);
}

int config_new(Config **ret) {
        Config *config = malloc(sizeof(*config));

        if (!config)
                return -ENOMEM;
        config_init(config);
        *ret = config;
        return 0;
}

Config *config_free(Config *config) {
        if (!config)
                return NULL;

        for (size_t i = 0; i < config->n_messages; i++)
                free(config->messages[i].text);
        free(config->messages);
        for (size_t i = 0; i < config->n_overrides; i++)
                free(config->overrides[i].name);
        free(config->overrides);
        binding_table_done(&config->bindings);
        free(config);
        return NULL;
}

char *config_place_sentence(const ConfigPlace *place, const char *sentence) {
        if (place->line == 0)
                return sentence_make("%s: %s", place->file, sentence);
        return sentence_make("%s:%u: %s", place->file, place->line, sentence);
}

static int add_message(Config *config, int level, const ConfigPlace *place, const char *sentence) {
        _cleanup_free_ char *text = NULL;
        ConfigMessage *messages;

        text = config_place_sentence(place, sentence);
        if (!text)
                return -ENOMEM;
        /* A file can be that of many units. */
        for (size_t i = 0; i < config->n_messages; i++)
                if (streq(config->messages[i].text, text))
                        return 0;
        messages = reallocarray(config->messages, config->n_messages + 1, sizeof(*messages));
        if (!messages)
                return -ENOMEM;
        config->messages = messages;
        messages[config->n_messages++] = (ConfigMessage) { .level = level, .text = TAKE_PTR(text) };
        return 0;
}

int config_warn(ConfigLoader *loader, const ConfigPlace *place, const char *format, ...) {
        _cleanup_free_ char *sentence = NULL;
        va_list ap;
        int n;

        if (loader->config->n_messages == MESSAGES_MAX) {
                loader->config->n_more_messages++;
                return 0;
        }
        va_start(ap, format);
        n = vasprintf(&sentence, format, ap);
        va_end(ap);
        if (n < 0) {
                sentence = NULL;
                return -ENOMEM;
        }
        return add_message(loader->config, LOG_WARNING, place, sentence);
}

int config_unknown_section(ConfigLoader *loader, const ConfigPlace *place, const char *section) {
        /* As in systemd's files, these are for others. */
        if (strncmp(section, "X-", 2) == 0)
                return 0;
        return config_warn(loader, place, "Unknown section [%s], ignoring", section);
}

int config_on_problem(const ConfigPlace *place, const char *key, const char *sentence,
                      void *userdata) {
        return config_warn(userdata, place, "%s, ignoring", sentence);
}

const char *config_section_argument(const char *section, const char *prefix) {
        size_t n = strlen(prefix);

        if (strncmp(section, prefix, n) != 0 || !isspace((unsigned char) section[n]))
                return NULL;
        section += n;
        while (isspace((unsigned char) *section))
                section++;
        return section;
}

/* [Daemon] */

static int on_daemon_section(const ConfigPlace *place, const char *section, void *userdata) {
        return streq(section, "Daemon") ? 1 : config_unknown_section(userdata, place, section);
}

static int on_daemon_key(const ConfigPlace *place, const char *key, const char *value,
                         void *userdata) {
        _cleanup_free_ char *sentence = NULL;
        ConfigLoader *loader = userdata;
        int r;

        r = config_set_key(loader->config, key, value, &sentence);
        if (r == -ENOENT)
                return config_warn(loader, place, "Unknown key '%s' in section [Daemon], ignoring",
                                   key);
        if (r < 0 && sentence)
                return config_warn(loader, place, "%s, ignoring", sentence);
        return r;
}

static const ConfigHandlers daemon_handlers = {
        .section = on_daemon_section,
        .key = on_daemon_key,
        .problem = config_on_problem,
};

/* [Override FULLNAME] */

static int on_override_section(const ConfigPlace *place, const char *section, void *userdata) {
        const char *name = config_section_argument(section, "Override");
        ConfigLoader *loader = userdata;

        if (!name)
                return config_unknown_section(loader, place, section);
        if (!binding_full_name_is_valid(name))
                return config_warn(loader, place, "'%s' is not the name of a binding, ignoring",
                                   name);
        strcpy(loader->override, name);
        return 1;
}

static int compare_override(const void *name, const void *override) {
        return strcmp(name, ((const ConfigOverride *) override)->name);
}

static ConfigOverride *find_override(const Config *config, const char *name) {
        return config->n_overrides == 0 ? NULL
                                        : bsearch(name, config->overrides, config->n_overrides,
                                                  sizeof(*config->overrides), compare_override);
}

/* In the order of their names. */
static void insert_override(Config *config, char *name, uint64_t budget_ns) {
        size_t first = 0, last = config->n_overrides;
        ConfigOverride *place;

        while (first < last) {
                size_t middle = first + (last - first) / 2;

                if (strcmp(config->overrides[middle].name, name) < 0)
                        first = middle + 1;
                else
                        last = middle;
        }
        place = config->overrides + first;
        memmove(place + 1, place, (config->n_overrides - first) * sizeof(*place));
        *place = (ConfigOverride) { .name = name, .budget_ns = budget_ns };
        config->n_overrides++;
}

void config_forget_override(Config *config, const char *name) {
        ConfigOverride *override = find_override(config, name);

        if (!override)
                return;
        free(override->name);
        config->n_overrides--;
        memmove(override, override + 1,
                (size_t) (config->overrides + config->n_overrides - override) * sizeof(*override));
}

/* At each power of two, there comes to be room for twice as many. */
static int make_room_for_override(Config *config) {
        size_t n = config->n_overrides;
        ConfigOverride *overrides;

        if ((n & (n - 1)) != 0)
                return 0;
        overrides = reallocarray(config->overrides, n == 0 ? 1 : 2 * n, sizeof(*overrides));
        if (!overrides)
                return -ENOMEM;
        config->overrides = overrides;
        return 0;
}

int config_put_override(Config *config, const char *name, uint64_t budget_ns) {
        ConfigOverride *override = find_override(config, name);
        _cleanup_free_ char *copy = NULL;
        int r;

        if (override) {
                override->budget_ns = budget_ns;
                return 0;
        }
        copy = strdup(name);
        if (!copy)
                return -ENOMEM;
        r = make_room_for_override(config);
        if (r < 0)
                return r;
        insert_override(config, TAKE_PTR(copy), budget_ns);
        return 0;
}

static int on_override_key(const ConfigPlace *place, const char *key, const char *value,
                           void *userdata) {
        ConfigLoader *loader = userdata;
        uint64_t ns;
        int r;

        if (!streq(key, "BudgetSec"))
                return config_warn(loader, place,
                                   "Unknown key '%s' in section [Override %s], ignoring", key,
                                   loader->override);
        if (*value == '\0') {
                config_forget_override(loader->config, loader->override);
                return 0;
        }
        r = duration_parse(value, &ns);
        if (r == -EBADMSG)
                return config_warn(loader, place,
                                   "BudgetSec=%s is not a time, ignoring: " DURATION_NO_UNIT,
                                   value);
        if (r < 0 || binding_check_budget(ns) < 0)
                return config_warn(
                        loader, place,
                        "BudgetSec=%s is not a possible budget, ignoring: write a time from "
                        "1us to 1h, or infinity",
                        value);
        return config_put_override(loader->config, loader->override, ns);
}

static const ConfigHandlers override_handlers = {
        .section = on_override_section,
        .key = on_override_key,
        .problem = config_on_problem,
};

bool config_get_override(const Config *config, const char *name, uint64_t *ret_budget_ns) {
        const ConfigOverride *override = find_override(config, name);

        if (!override)
                return false;
        *ret_budget_ns = override->budget_ns;
        return true;
}

bool config_override_budget(const Config *config, Binding *binding) {
        uint64_t budget_ns;

        if (!config_get_override(config, binding->name, &budget_ns) ||
            !binding_total_fits(binding, budget_ns))
                return false;
        binding->budget_ns[TLOB_BUDGET_TOTAL] = budget_ns;
        return true;
}

void config_apply_overrides(Config *config) {
        for (size_t i = 0; i < config->n_overrides; i++) {
                Binding *binding = binding_table_get(&config->bindings, config->overrides[i].name);

                if (binding)
                        (void) config_override_budget(config, binding);
        }
}

static int read_file(ConfigLoader *loader, const char *path, const ConfigHandlers *handlers) {
        int r = config_file_read(path, handlers, loader);

        if (r > 0)
                loader->config->is_incomplete = true;
        return r < 0 ? r : 0;
}

/* Reads the *.conf of a subdirectory in their order. */
static int read_all(ConfigLoader *loader, const char *const *directories, size_t n,
                    const char *subdirectory, const ConfigHandlers *handlers) {
        _cleanup_(config_file_list_done) ConfigFileList list = {};
        int r;

        r = config_file_list(directories, n, subdirectory, handlers, loader, &list);
        loader->config->is_incomplete |= list.is_incomplete;
        for (size_t i = 0; i < list.n && r >= 0; i++)
                r = read_file(loader, list.paths[i], handlers);
        return r;
}

static int read_daemon(ConfigLoader *loader, const char *const *directories, size_t n) {
        _cleanup_free_ char *path = NULL;
        int r;

        r = config_file_find(directories, n, "tlobd.conf", &path);
        if (r >= 0)
                r = read_file(loader, path, &daemon_handlers);
        if (r < 0 && r != -ENOENT)
                return r;
        return read_all(loader, directories, n, "tlobd.conf.d", &daemon_handlers);
}

static int read_overrides(ConfigLoader *loader, const char *const *directories, size_t n) {
        for (size_t i = 0; i < n && i < N_OVERRIDE_DIRECTORIES; i++) {
                int r;

                r = read_all(loader, directories + i, 1, "overrides.d", &override_handlers);
                if (r < 0)
                        return r;
        }
        return 0;
}

int config_load(const char *const *directories, Config **ret) {
        _cleanup_(config_freep) Config *config = NULL;
        ConfigLoader loader = {};
        size_t n = 0;
        int r;

        while (directories[n])
                n++;
        r = config_new(&config);
        if (r < 0)
                return r;
        loader.config = config;

        r = read_daemon(&loader, directories, n);
        if (r < 0)
                return r;
        r = read_all(&loader, directories, n, "bindings.d", &config_binding_handlers);
        if (r < 0)
                return r;
        r = read_overrides(&loader, directories, n);
        if (r < 0)
                return r;

        config_apply_overrides(config);
        *ret = TAKE_PTR(config);
        return 0;
}

int config_parse(Config *config, ConfigFileKind kind, const char *file, const char *text,
                 size_t size) {
        static const ConfigHandlers *const handlers[] = {
                [CONFIG_FILE_DAEMON] = &daemon_handlers,
                [CONFIG_FILE_BINDINGS] = &config_binding_handlers,
                [CONFIG_FILE_OVERRIDES] = &override_handlers,
        };
        ConfigLoader loader = { .config = config };
        int r;

        r = config_file_parse(file, text, size, handlers[kind], &loader);
        if (r < 0)
                return r;
        config_apply_overrides(config);
        return 0;
}

ConfigFileKind config_file_kind(const char *path) {
        static const char name[] = "tlobd.conf", directory[] = "tlobd.conf.d/";
        const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
        size_t n = strlen(directory);
        bool is_in = (size_t) (base - path) >= n && strncmp(base - n, directory, n) == 0 &&
                     ((size_t) (base - path) == n || base[-(ptrdiff_t) n - 1] == '/');

        return streq(base, name) || is_in ? CONFIG_FILE_DAEMON : CONFIG_FILE_BINDINGS;
}

int config_load_file(const char *path, ConfigFileKind kind, Config **ret) {
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r;

        r = config_file_load(path, &text, &size);
        if (r < 0)
                return r;
        r = config_new(&config);
        if (r < 0)
                return r;
        r = config_parse(config, kind, path, text, size);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(config);
        return 0;
}

int config_parse_unit(Config *config, const char *unit, const char *file, const char *text,
                      size_t size) {
        ConfigLoader loader = { .config = config, .unit = unit };

        return config_file_parse(file, text, size, &config_unit_handlers, &loader);
}

int config_load_unit(Config *config, const char *unit, const char *file) {
        ConfigLoader loader = { .config = config, .unit = unit };

        return read_file(&loader, file, &config_unit_handlers);
}
