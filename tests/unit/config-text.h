/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CONFIG_TEXT_H
#define CONFIG_TEXT_H

#include <string.h>
#include <syslog.h>

#include "config/config.h"
#include "test.h"

/* For tests of configurations: texts in memory, and what comes of them. */

static inline Config *parse(ConfigFileKind kind, const char *text) {
        Config *config = NULL;

        assert_ok(config_new(&config));
        assert_ok(config_parse(config, kind, "f", text, strlen(text)));
        return config;
}

static inline void assert_message(const Config *config, size_t i, const char *words) {
        assert_in_range(i + 1, 1, config->n_messages);
        assert_non_null(strstr(config->messages[i].text, words));
        assert_int_equal(config->messages[i].level, LOG_WARNING);
}

static inline Binding *get(const Config *config, const char *name) {
        Binding *binding = binding_table_get(&config->bindings, name);

        assert_non_null(binding);
        return binding;
}

#endif
