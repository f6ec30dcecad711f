/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The verbs that change something, for which the daemon asks polkit: add-binding, remove-binding,
 * set-budget, reload, reset-statistics. What a binding may be is the daemon's to decide; here only
 * what is on the command line is brought into the form that D-Bus wants.
 *
 * A line of the kernel's monitor names a binding by file and start offset, not by name. To remove
 * one, the binding is looked up by these two, whatever its name: a name made from the file's last
 * component would also fit a file of the same name elsewhere.
 */

#include <err.h>
#include <inttypes.h>

#include "base/duration.h"
#include "base/sentence.h"
#include "binding/binding.h"
#include "monitor-line.h"
#include "note.h"
#include "properties.h"
#include "proxy.h"
#include "tlob-bus.h"
#include "unit-query.h"
#include "verbs.h"

static uint64_t flags_of(const Options *options) {
        return options->persist ? TLOB_FLAG_PERSIST : 0;
}

/* Parses a line of the kernel's syntax, or says what is wrong with it. */
static int parse_line(const char *s, MonitorLine *ret) {
        _cleanup_free_ char *sentence = NULL;
        int r;

        r = monitor_line_parse(s, ret, &sentence);
        if (r < 0)
                warnx("%s", sentence ?: "Out of memory");
        return r;
}

/* That is no error: the unit may be installed later. */
static void note_missing_unit(Client *client) {
        _cleanup_free_ char *missing = NULL;

        if (client->options.unit &&
            unit_find_missing(&client->connection, client->options.unit, &missing) > 0)
                note("There is no unit %s; the binding waits until there is one", missing);
}

static int add_binding(Client *client, const char *name, const MonitorLine *line,
                       sd_bus_message **ret_reply) {
        _cleanup_message_ sd_bus_message *call = NULL;
        Connection *connection = &client->connection;
        int r;

        r = connection_new_call(connection, NULL, TLOB_BUS_MANAGER_INTERFACE, "AddBinding", &call);
        if (r < 0)
                return r;
        r = sd_bus_message_append(call, "s", name);
        if (r < 0)
                return connection_complain_arguments(r);
        r = properties_append_options(call, &client->options, line);
        if (r < 0)
                return connection_complain_arguments(r);
        r = sd_bus_message_append(call, "t", flags_of(&client->options));
        if (r < 0)
                return connection_complain_arguments(r);
        r = connection_send(connection, call, ret_reply);
        if (r >= 0)
                note_missing_unit(client);
        return r;
}

static int show_added(Output *output, const char *name, const char *path) {
        _cleanup_json_ json_object *added = json_object_new_object();
        int r = added ? 0 : -ENOMEM;

        if (r >= 0)
                r = json_add_string(added, "Name", name);
        if (r >= 0)
                r = json_add_string(added, "Path", path);
        return r < 0 ? r : output_json(output, added);
}

/* Others than those that are measured may pay for it. */
static void note_cost(Connection *connection, const char *path) {
        _cleanup_free_ char *cost = NULL;

        if (proxy_get_cost(connection, path, &cost) >= 0 && *cost)
                note("%s", cost);
}

/* A window can end before the work does, or the program break. */
static void note_stop(Connection *connection, const char *path) {
        _cleanup_json_ json_object *binding = NULL;
        const char *stop_note;

        if (proxy_get_binding_at(connection, path, &binding) < 0)
                return;
        stop_note = json_string(binding, "StopNote");
        /* Mere returns are as expected. A daemon that is older does not tell the number. */
        if (*stop_note != '\0' && json_number(binding, "TailCalls") != UINT64_MAX &&
            (json_number(binding, "TailCalls") > 0 || json_number(binding, "WaysOut") == 0))
                note("'%s': %s", json_string(binding, "Name"), stop_note);
}

/* Says what was added: to programs always, to people when the name was made here. */
static ExitStatus report_added(Client *client, const char *name, bool derived,
                               sd_bus_message *reply) {
        Output *output = &client->output;
        const char *path;
        int r;

        r = sd_bus_message_read(reply, "o", &path);
        if (r < 0)
                return status_of(connection_complain_reply(r));
        note_cost(&client->connection, path);
        note_stop(&client->connection, path);
        if (output->json != JSON_OFF)
                return status_of_memory(show_added(output, name, path));
        if (derived)
                (void) printf("Added as '%s'.\n", name);
        return STATUS_DONE;
}

static ExitStatus add_line(Client *client, const char *text) {
        _cleanup_(monitor_line_done) MonitorLine line = {};
        _cleanup_message_ sd_bus_message *reply = NULL;
        static const char *const in_line[] = { "Executable", "Start", "Stop",     "Function",
                                               "Syscall",    "Mark",  "BudgetSec" };
        _cleanup_free_ char *derived = NULL;

        for (size_t i = 0; i < ELEMENTSOF(in_line); i++)
                if (options_get_key(&client->options, in_line[i])) {
                        warnx("%s= is in the line already; leave out the option", in_line[i]);
                        return STATUS_USAGE;
                }
        if (parse_line(text, &line) < 0)
                return STATUS_USAGE;
        if (!line.name) {
                derived = monitor_line_derive_name(&line);
                if (!derived)
                        return status_of_memory(-ENOMEM);
        }
        if (add_binding(client, line.name ?: derived, &line, &reply) < 0)
                return STATUS_FAILED;
        return report_added(client, line.name ?: derived, derived != NULL, reply);
}

ExitStatus verb_add_binding(Client *client, int argc, char **argv) {
        _cleanup_message_ sd_bus_message *reply = NULL;

        if (monitor_line_is_add(argv[0]))
                return add_line(client, argv[0]);
        if (monitor_line_is_remove(argv[0])) {
                warnx("'%s' removes a binding; use 'tlobctl remove-binding -- %s'", argv[0],
                      argv[0]);
                return STATUS_USAGE;
        }
        if (add_binding(client, argv[0], NULL, &reply) < 0)
                return STATUS_FAILED;
        return report_added(client, argv[0], false, reply);
}

/* True if a binding starts where the line says: as configured, or where its probe went. */
static bool starts_at(const json_object *binding, const MonitorLine *line, const char *real_path) {
        const char *executable = json_string(binding, "Executable");
        const char *start = json_string(binding, "Start");
        unsigned long long configured;
        char *end;

        if (!streq(executable, line->path) && !streq_empty(executable, real_path))
                return false;
        if (json_number(binding, "StartOffset") == line->start)
                return true;
        if (strncmp(start, "0x", 2) != 0)
                return false;
        configured = strtoull(start, &end, 16);
        return *end == '\0' && configured == line->start;
}

/* The one binding that starts where the line says, owned by bindings. */
static int find_by_line(json_object *bindings, const MonitorLine *line, const char *real_path,
                        const char **ret) {
        const char *found = NULL;

        for (size_t i = 0; i < json_object_array_length(bindings); i++) {
                json_object *binding = json_object_array_get_idx(bindings, i);

                if (!starts_at(binding, line, real_path))
                        continue;
                if (found) {
                        warnx("Both '%s' and '%s' start at %s:0x%" PRIx64 "; give the name of "
                              "the one to remove",
                              found, json_string(binding, "Name"), line->path, line->start);
                        return -ENOTUNIQ;
                }
                found = json_string(binding, "Name");
        }
        if (!found) {
                warnx("No binding starts at %s:0x%" PRIx64 "; 'tlobctl list-bindings' lists the "
                      "bindings",
                      line->path, line->start);
                return -ENOENT;
        }
        *ret = found;
        return 0;
}

static int remove_by_line(Client *client, const MonitorLine *line) {
        _cleanup_json_ json_object *bindings = NULL;
        _cleanup_free_ char *real_path = NULL;
        const char *name = line->name;
        int r;

        if (!name) {
                r = proxy_get_bindings(&client->connection, &bindings);
                if (r < 0)
                        return r;
                /* The daemon shows the path without links; on another machine we cannot know. */
                if (connection_is_local(&client->connection))
                        real_path = realpath(line->path, NULL);
                r = find_by_line(bindings, line, real_path, &name);
                if (r < 0)
                        return r;
        }
        return connection_call(&client->connection, "RemoveBinding", NULL, "st", name, UINT64_C(0));
}

static ExitStatus remove_one(Client *client, const char *name) {
        _cleanup_(monitor_line_done) MonitorLine line = {};

        if (!monitor_line_is_remove(name))
                return status_of(connection_call(&client->connection, "RemoveBinding", NULL, "st",
                                                 name, UINT64_C(0)));
        if (parse_line(name, &line) < 0)
                return STATUS_USAGE;
        return status_of(remove_by_line(client, &line));
}

/* Before any of them is removed. */
static int check_lines(int n, char **names) {
        int r = 0;

        for (int i = 0; r >= 0 && i < n; i++) {
                _cleanup_(monitor_line_done) MonitorLine line = {};

                if (monitor_line_is_remove(names[i]))
                        r = parse_line(names[i], &line);
        }
        return r;
}

ExitStatus verb_remove_binding(Client *client, int argc, char **argv) {
        ExitStatus worst = STATUS_DONE;

        if (check_lines(argc, argv) < 0)
                return STATUS_USAGE;
        for (int i = 0; i < argc && !client->connection.is_denied; i++) {
                ExitStatus status = remove_one(client, argv[i]);

                if (status > worst)
                        worst = status;
        }
        return worst;
}

/* "default" is TLOB_BUDGET_CONFIGURED. */
static int parse_budget(const char *s, uint64_t *ret) {
        uint64_t ns;
        int r;

        if (streq(s, "default")) {
                *ret = TLOB_BUDGET_CONFIGURED;
                return 0;
        }
        r = duration_parse(s, &ns);
        if (r == -EBADMSG) {
                warnx("'%s' is not a time; " DURATION_NO_UNIT, s);
                return r;
        }
        if (r == -EINVAL) {
                warnx("'%s' is not a time; write it like 250us, 1.5ms, 2s, or infinity to report "
                      "nothing, or default for the configured budget",
                      s);
                return r;
        }
        if (r < 0 || binding_check_budget(ns) < 0) {
                warnx("A budget of %s is out of range; write 1us to 1h, or infinity", s);
                return -ERANGE;
        }
        *ret = ns;
        return 0;
}

ExitStatus verb_set_budget(Client *client, int argc, char **argv) {
        uint64_t ns;

        if (parse_budget(argv[1], &ns) < 0)
                return STATUS_USAGE;
        return status_of(connection_call(&client->connection, "SetBudget", NULL, "stt", argv[0], ns,
                                         flags_of(&client->options)));
}

/* The daemon's reasons are sentences, but come from files: they are escaped on their way out. */
static int report_failed(json_object *failed) {
        for (size_t i = 0; i < json_object_array_length(failed); i++) {
                json_object *binding = json_object_array_get_idx(failed, i);
                _cleanup_free_ char *sentence = NULL;

                sentence = sentence_make("Binding '%s' failed: %s", json_string(binding, "Name"),
                                         json_string(binding, "StateReason"));
                if (!sentence)
                        return -ENOMEM;
                warnx("%s", sentence);
        }
        return 0;
}

/* What had no effect, so that nobody has to look for that in the log. */
static int report_ignored(Client *client) {
        _cleanup_json_ json_object *manager = NULL;
        json_object *ignored = NULL;
        int r;

        r = proxy_get_manager(&client->connection, &manager);
        if (r < 0)
                return 0;
        (void) json_object_object_get_ex(manager, "Ignored", &ignored);
        for (size_t i = 0; i < json_length(ignored); i++) {
                const char *text = json_object_get_string(json_item(ignored, i));
                _cleanup_free_ char *sentence = sentence_make("%s", text ?: "");

                if (!sentence)
                        return -ENOMEM;
                warnx("%s", sentence);
        }
        return 0;
}

ExitStatus verb_reload(Client *client, int argc, char **argv) {
        static const char *const names[] = { "Name", "StateReason", NULL };
        _cleanup_message_ sd_bus_message *reply = NULL;
        _cleanup_json_ json_object *failed = NULL;
        int r;

        if (connection_call(&client->connection, "Reload", &reply, NULL) < 0)
                return STATUS_FAILED;
        r = bus_json_read_rows(reply, "(ss)", names, &failed);
        if (r < 0)
                return status_of(connection_complain_reply(r));

        if (client->output.json != JSON_OFF)
                r = output_json(&client->output, failed);
        else
                r = report_failed(failed);
        if (r >= 0)
                r = report_ignored(client);
        if (r < 0)
                return status_of_memory(r);
        return json_object_array_length(failed) > 0 ? STATUS_FAILED : STATUS_DONE;
}

static int reset_one(Connection *connection, const char *name) {
        _cleanup_message_ sd_bus_message *call = NULL;
        _cleanup_free_ char *path = NULL;
        int r;

        r = proxy_get_binding_path(connection, name, &path);
        if (r < 0)
                return r;
        r = connection_new_call(connection, path, TLOB_BUS_BINDING_INTERFACE, "ResetStatistics",
                                &call);
        if (r < 0)
                return r;
        return connection_send(connection, call, NULL);
}

ExitStatus verb_reset_statistics(Client *client, int argc, char **argv) {
        ExitStatus status = STATUS_DONE;

        if (argc == 0)
                return status_of(
                        connection_call(&client->connection, "ResetStatistics", NULL, NULL));
        for (int i = 0; i < argc && !client->connection.is_denied; i++)
                if (reset_one(&client->connection, argv[i]) < 0)
                        status = STATUS_FAILED;
        return status;
}
