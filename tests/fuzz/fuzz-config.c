/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Any text as tlobd.conf, as a file of bindings, as one of overrides, and as a unit: all that is
 * wrong must end as text that can be shown, and every value that was taken must be one that can be
 * written back.
 */

#include "base/cleanup.h"
#include "base/sentence.h"
#include "binding/keys.h"
#include "config/config.h"
#include "fuzz.h"

static void check_binding(const Binding *binding) {
        _cleanup_(binding_freep) Binding *copy = NULL;

        fuzz_assert(binding_full_name_is_valid(binding->name));
        fuzz_assert(!binding->source.error || text_is_printable(binding->source.error));
        fuzz_assert(binding_new(binding->name, &copy) == 0);
        for (const char *const *key = binding_keys(); *key; key++) {
                _cleanup_free_ char *value = NULL;
                int r = binding_get_key(binding, *key, &value);

                fuzz_assert(r <= 0 || binding_set_key(copy, *key, value, NULL) == 0);
        }
        fuzz_assert(binding_same_probes(binding, copy));
        fuzz_assert(binding_budget_ns(copy) == binding_budget_ns(binding));
}

static void check_config(const Config *config) {
        for (size_t i = 0; i < config->n_messages; i++)
                fuzz_assert(text_is_printable(config->messages[i].text));
        for (size_t i = 0; i < config->bindings.n; i++)
                check_binding(config->bindings.items[i]);
        for (size_t i = 0; i < config->n_overrides; i++)
                fuzz_assert(binding_full_name_is_valid(config->overrides[i].name) &&
                            binding_check_budget(config->overrides[i].budget_ns) == 0);
}

static void parse(ConfigFileKind kind, const char *text, size_t size) {
        _cleanup_(config_freep) Config *config = NULL;

        fuzz_assert(config_new(&config) == 0);
        fuzz_assert(config_parse(config, kind, "f", text, size) == 0);
        check_config(config);
}

static void parse_unit(const char *text, size_t size) {
        _cleanup_(config_freep) Config *config = NULL;

        fuzz_assert(config_new(&config) == 0);
        fuzz_assert(config_parse_unit(config, "u@i.service", "f", text, size) == 0);
        check_config(config);
        for (size_t i = 0; i < config->bindings.n; i++)
                fuzz_assert(streq(config->bindings.items[i]->unit, "u@i.service"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        parse(CONFIG_FILE_DAEMON, (const char *) data, size);
        parse(CONFIG_FILE_BINDINGS, (const char *) data, size);
        parse(CONFIG_FILE_OVERRIDES, (const char *) data, size);
        parse_unit((const char *) data, size);
        return 0;
}
