/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl verify": asks the daemon what would become of a binding, without setting its probes. The
 * binding comes from options, as for add-binding, or from files, which are read here (with the
 * daemon's own parser), so that a file can be tried before it is put into a directory that counts.
 *
 * With --unit= alone the files are those of that unit, as systemd reads them.
 *
 * Complaints about files go to standard error as "file:line: sentence", which editors understand.
 */

#include <err.h>

#include "base/sentence.h"
#include "note.h"
#include "properties.h"
#include "proxy.h"
#include "tlob-bus.h"
#include "unit-query.h"
#include "verify.h"

static const Field fields[] = {
        { "executable", "Executable", FIELD_TEXT },
        { "build-id", "Build ID", FIELD_TEXT },
        { "start", "Start", FIELD_TEXT },
        { "start-offset", "Start offset", FIELD_OFFSET },
        { "start-note", "Starts at", FIELD_TEXT },
        { "start-places", "Start places", FIELD_COUNT },
        { "stop", "Stop", FIELD_TEXT },
        { "stop-offset", "Stop offset", FIELD_OFFSET },
        { "stop-places", "Stop places", FIELD_COUNT },
        { "stop-note", "Stops at", FIELD_TEXT },
        { "semaphore-note", "Semaphore", FIELD_TEXT },
        { "key", "Key", FIELD_TEXT },
        { "inlined-note", "Inlined", FIELD_TEXT },
        { "price", "A window costs", FIELD_TEXT },
        { "cost", "Cost", FIELD_TEXT },
        { "unwinding-cost", "Unwinding", FIELD_TEXT },
        { "backend", "Back end", FIELD_TEXT },
        { "reason", "Reason", FIELD_TEXT },
        {},
};

void verification_done(Verification *verification) {
        json_object_put(verification->results);
}

/* Name and Source, for a binding that has them. */
static int add_place(json_object *result, const Binding *binding) {
        int r;

        if (!binding)
                return 0;
        r = json_add_string(result, "Name", binding->name);
        return r < 0 ? r : json_add_string(result, "Source", binding->source.place);
}

static int append_properties(sd_bus_message *call, const Options *options, const Binding *binding) {
        return binding ? properties_append_binding(call, binding)
                       : properties_append_options(call, options, NULL);
}

/*
 * Asks the daemon about a binding; NULL: that of the options. Fails as connection_ask() does, but
 * without a sentence when it was said already.
 */
static int ask(Client *client, const Binding *binding, json_object **ret, char **ret_sentence) {
        _cleanup_message_ sd_bus_message *call = NULL, *reply = NULL;
        Connection *connection = &client->connection;
        int r;

        r = connection_new_call(connection, NULL, TLOB_BUS_MANAGER_INTERFACE, "Verify", &call);
        if (r < 0)
                return r;
        r = append_properties(call, &client->options, binding);
        if (r < 0)
                return connection_complain_arguments(r);
        r = connection_ask(connection, call, &reply, ret_sentence);
        if (r < 0)
                return r;
        r = bus_json_read_message(reply, "a{sv}", ret);
        return r < 0 ? connection_complain_reply(r) : 0;
}

/* What can be set up: a sheet, or an element of the JSON. Takes a reference of result. */
static int report_good(Verification *verification, const Binding *binding, json_object *result) {
        Output *output = &verification->client->output;
        _cleanup_free_ char *title = NULL;

        if (!verification->results)
                return 0;
        if (output->json != JSON_OFF)
                return json_append(verification->results, json_object_get(result));

        title = binding ? sentence_make("%s (%s)", binding->name, binding->source.place)
                        : strdup("This binding can be set up");
        return title ? output_sheet(output, title, fields, result) : -ENOMEM;
}

/* What cannot. The sentence of a binding from a file begins with its place. */
static int report_bad(Verification *verification, const Binding *binding, const char *sentence) {
        _cleanup_json_ json_object *result = NULL;
        int r;

        verification->bad = true;
        if (binding)
                (void) fprintf(stderr, "%s\n", sentence);
        else
                warnx("%s", sentence);
        if (!verification->results || verification->client->output.json == JSON_OFF)
                return 0;

        result = json_object_new_object();
        if (!result)
                return -ENOMEM;
        r = add_place(result, binding);
        if (r >= 0)
                r = json_add_string(result, "error", sentence);
        return r < 0 ? r : json_append(verification->results, TAKE_PTR(result));
}

/*
 * systemd starts units that tlobd has never heard of, but none that do not exist. Returns 1 if it
 * does not.
 */
static int report_if_missing(Verification *verification, const Binding *binding, const char *unit) {
        Client *client = verification->client;
        _cleanup_free_ char *sentence = NULL, *missing = NULL;
        int r;

        if (!unit)
                return 0;
        r = unit_find_missing(&client->connection, unit, &missing);
        if (r <= 0)
                return r;
        sentence = sentence_make("%s%sThere is no unit %s; see 'systemctl%s list-unit-files'",
                                 binding ? binding->source.place : "", binding ? ": " : "", missing,
                                 options_scope_text(&client->options));
        if (!sentence)
                return -ENOMEM;
        r = report_bad(verification, binding, sentence);
        return r < 0 ? r : 1;
}

/* The unit that it is for, and the one that it starts. */
static int report_missing_units(Verification *verification, const Binding *binding) {
        const Options *options = &verification->client->options;
        const char *units[] = {
                binding ? binding->unit : options->unit,
                binding ? binding->on_violation : options_get_key(options, "OnViolation"),
        };
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(units) && r == 0; i++)
                r = report_if_missing(verification, binding, units[i]);
        return r;
}

/*
 * Verifies one binding; NULL: that of the options. That it is bad is noted, and no failure: those
 * are that the daemon cannot be asked, or that there is no memory.
 */
static int verify(Verification *verification, const Binding *binding) {
        _cleanup_free_ char *reason = NULL, *sentence = NULL;
        _cleanup_json_ json_object *result = NULL;
        int r;

        r = ask(verification->client, binding, &result, &reason);
        if (r == -EREMOTEIO && reason) {
                sentence = binding ? sentence_make("%s: %s", binding->source.place, reason)
                                   : strdup(reason);
                return sentence ? report_bad(verification, binding, sentence) : -ENOMEM;
        }
        if (r < 0) {
                if (reason)
                        warnx("%s", reason);
                return r;
        }
        r = report_missing_units(verification, binding);
        if (r != 0)
                return r < 0 ? r : 0;
        r = add_place(result, binding);
        return r < 0 ? r : report_good(verification, binding, result);
}

static int verify_from_file(Verification *verification, const Binding *binding) {
        if (binding->source.n_errors == 0)
                return verify(verification, binding);
        for (size_t i = 0; i < binding->source.n_errors; i++) {
                int r;

                r = report_bad(verification, binding, binding->source.errors[i].text);
                if (r < 0)
                        return r;
        }
        return 0;
}

int verify_config(Verification *verification, const Config *config) {
        int r = 0;

        for (size_t i = 0; i < config->n_messages; i++)
                (void) fprintf(stderr, "%s\n", config->messages[i].text);
        if (config->n_more_messages > 0)
                (void) fprintf(stderr, "%zu more problems are not listed.\n",
                               config->n_more_messages);
        for (size_t i = 0; r >= 0 && i < config->bindings.n; i++)
                r = verify_from_file(verification, config->bindings.items[i]);
        return r;
}

/* What is ignored in the settings of the daemon is bad, as nothing else is in there. */
static int verify_settings(Verification *verification, const Config *config) {
        verification->bad |= config->n_messages > 0;
        return verify_config(verification, config);
}

static int verify_file(Verification *verification, const char *path) {
        ConfigFileKind kind = config_file_kind(path);
        _cleanup_(config_freep) Config *config = NULL;
        int r;

        r = config_load_file(path, kind, &config);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                errno = -r;
                if (r == -ENOENT && !strchr(path, '/'))
                        warnx("There is no file '%s'; for the drop-ins of a unit, write --unit=%s",
                              path, path);
                else
                        warn("Failed to read '%s'", path);
                verification->bad = true;
                return 0;
        }

        if (kind == CONFIG_FILE_DAEMON)
                return verify_settings(verification, config);
        r = verify_config(verification, config);
        if (r >= 0 && config->bindings.n == 0) {
                warnx("There is no binding in '%s'%s", path,
                      config->n_messages > 0 ? "" : "; write a section [Binding NAME]");
                verification->bad = true;
        }
        return r;
}

static int verify_unit(Verification *verification, const char *name) {
        const char *scope = options_scope_text(&verification->client->options);
        _cleanup_(unit_files_done) UnitFiles files = {};
        _cleanup_(config_freep) Config *config = NULL;
        int r;

        r = unit_files_query(&verification->client->connection, name, &files);
        if (r < 0)
                return r;
        r = config_new(&config);
        for (char **path = files.paths; r >= 0 && *path; path++)
                r = config_load_unit(config, files.id, *path);
        if (r < 0)
                return r;

        r = verify_config(verification, config);
        if (r >= 0 && config->bindings.n == 0) {
                warnx("There is no section [%s NAME] in the files that systemd has read for %s; "
                      "'tlobctl%s edit %s' adds one, and 'systemctl%s daemon-reload' applies one "
                      "that is new",
                      CONFIG_UNIT_SECTION, files.id, scope, files.id, scope);
                verification->bad = true;
        }
        if (files.needs_reload)
                note("The files of %s have changed; 'systemctl%s daemon-reload' applies them",
                     files.id, scope);
        return r;
}

static int verify_all(Verification *verification, int argc, char **argv) {
        const Options *options = &verification->client->options;
        Output *output = &verification->client->output;
        int r = 0;

        if (argc == 0 && options_has_keys(options))
                r = verify(verification, NULL);
        else if (argc == 0)
                r = verify_unit(verification, options->unit);
        for (int i = 0; r >= 0 && i < argc; i++)
                r = verify_file(verification, argv[i]);
        if (r < 0)
                return r;
        return output->json != JSON_OFF ? output_json(output, verification->results) : 0;
}

ExitStatus verb_verify(Client *client, int argc, char **argv) {
        _cleanup_(verification_done) Verification verification = { .client = client };
        const Options *options = &client->options;
        bool keys = options_has_keys(options);
        int r;

        if (argc > 0 && (keys || options->unit)) {
                warnx("'verify' takes either files, or the options of a binding");
                return STATUS_USAGE;
        }
        if (argc == 0 && !keys && !options->unit) {
                warnx("'verify' needs a file, a unit, or the options of a binding");
                return STATUS_USAGE;
        }

        verification.results = json_object_new_array();
        r = verification.results ? verify_all(&verification, argc, argv) : -ENOMEM;
        if (r < 0)
                return r == -ENOMEM ? status_of_memory(r) : STATUS_FAILED;
        return verification.bad ? STATUS_FAILED : STATUS_DONE;
}
