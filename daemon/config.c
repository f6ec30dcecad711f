/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The configuration, from files to a Config: what sections and keys mean, and what becomes of what
 * is wrong in them. Which files there are and how one is read is config-file.c's; sections that
 * define bindings are config-binding.c's; the values are for config-keys.c and binding-keys.c.
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

#include "config.h"

#include <ctype.h>
#include <stdarg.h>
#include <syslog.h>

#include "config-internal.h"
#include "duration.h"
#include "sentence.h"

const char *const config_directories[] = {
        "/etc/tlob", "/run/tlob", "/usr/local/lib/tlob", "/usr/lib/tlob", NULL,
};

#define N_OVERRIDE_DIRECTORIES 2

static void config_init(Config *config) {
        *config = (Config){};
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
        _cleanup_free_ char *text = config_place_sentence(place, sentence);
        ConfigMessage *messages;

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
        messages[config->n_messages++] = (ConfigMessage){ .level = level, .text = TAKE_PTR(text) };
        return 0;
}

int config_warn(ConfigLoader *loader, const ConfigPlace *place, const char *format, ...) {
        _cleanup_free_ char *sentence = NULL;
        va_list ap;
        int n;

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

static ConfigOverride *find_override(const Config *config, const char *name) {
        for (size_t i = 0; i < config->n_overrides; i++)
                if (streq(config->overrides[i].name, name))
                        return &config->overrides[i];
        return NULL;
}

void config_forget_override(Config *config, const char *name) {
        ConfigOverride *override = find_override(config, name);

        if (!override)
                return;
        free(override->name);
        *override = config->overrides[--config->n_overrides];
}

int config_put_override(Config *config, const char *name, uint64_t budget_ns) {
        ConfigOverride *override = find_override(config, name), *overrides;
        _cleanup_free_ char *copy = NULL;

        if (override) {
                override->budget_ns = budget_ns;
                return 0;
        }
        copy = strdup(name);
        if (!copy)
                return -ENOMEM;
        overrides = reallocarray(config->overrides, config->n_overrides + 1, sizeof(*overrides));
        if (!overrides)
                return -ENOMEM;
        config->overrides = overrides;
        overrides[config->n_overrides++] =
                (ConfigOverride){ .name = TAKE_PTR(copy), .budget_ns = budget_ns };
        return 0;
}

static int on_override_key(const ConfigPlace *place, const char *key, const char *value,
                           void *userdata) {
        ConfigLoader *loader = userdata;
        uint64_t ns;

        if (!streq(key, "BudgetSec"))
                return config_warn(loader, place,
                                   "Unknown key '%s' in section [Override %s], ignoring", key,
                                   loader->override);
        if (*value == '\0') {
                config_forget_override(loader->config, loader->override);
                return 0;
        }
        if (duration_parse(value, &ns) < 0 || binding_check_budget(ns) < 0)
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

void config_apply_overrides(Config *config) {
        for (size_t i = 0; i < config->n_overrides; i++) {
                Binding *binding = binding_table_get(&config->bindings, config->overrides[i].name);

                if (binding)
                        binding->budget_ns[TLOB_BUDGET_TOTAL] = config->overrides[i].budget_ns;
        }
}

/* Reads the *.conf of a subdirectory in their order. */
static int read_all(ConfigLoader *loader, const char *const *directories, size_t n,
                    const char *subdirectory, const ConfigHandlers *handlers) {
        _cleanup_(config_file_list_done) ConfigFileList list = {};
        int r;

        r = config_file_list(directories, n, subdirectory, handlers, loader, &list);
        for (size_t i = 0; i < list.n && r >= 0; i++)
                r = config_file_read(list.paths[i], handlers, loader);
        return r;
}

static int read_daemon(ConfigLoader *loader, const char *const *directories, size_t n) {
        _cleanup_free_ char *path = NULL;
        int r;

        r = config_file_find(directories, n, "tlobd.conf", &path);
        if (r >= 0)
                r = config_file_read(path, &daemon_handlers, loader);
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

int config_load_file(const char *path, Config **ret) {
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
        r = config_parse(config, CONFIG_FILE_BINDINGS, path, text, size);
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

        return config_file_read(file, &config_unit_handlers, &loader);
}
