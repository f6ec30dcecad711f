/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl monitor": the signals of tlobd as they come, a sentence or a JSON object a line.
 *
 * It uses plain matches on broadcast signals, which anyone may receive. (A monitor in the sense of
 * "busctl monitor" sees everybody's traffic, and therefore needs rights.) The matches name the
 * daemon by its well-known name, so they hold when the daemon is restarted, or is started only
 * later; NameOwnerChanged tells when. The daemon is not started for this: there is nothing to see
 * without bindings.
 */

#include <err.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>

#include "base/sentence.h"
#include "bus-json.h"
#include "event.h"
#include "filter.h"
#include "restart.h"
#include "sender.h"
#include "tlob-bus.h"
#include "verbs.h"

typedef struct Monitor {
        Client *client;
        Filter filter;
        Sender sender;
} Monitor;

static void monitor_done(Monitor *monitor) {
        filter_done(&monitor->filter);
        sender_done(&monitor->sender);
}

/* Writes it out at once: the reader may be a program that waits for the line. */
static int write_event(Monitor *monitor, json_object *event, ReportType type) {
        Client *client = monitor->client;
        _cleanup_free_ char *sentence = NULL;
        char time[EVENT_TIME_MAX];

        if (client->output.json != JSON_OFF)
                return output_json(&client->output, event);

        sentence = event_to_sentence(event, type);
        if (!sentence)
                return -ENOMEM;
        (void) event_format_time(event, false, time);
        (void) printf("%s %s\n", time, sentence);
        return 0;
}

static int read_event(sd_bus_message *m, const char *const *arguments, json_object **ret) {
        _cleanup_json_ json_object *event = json_object_new_object();
        int r;

        if (!event)
                return -ENOMEM;
        r = json_add_string(event, "event", sd_bus_message_get_member(m));
        if (r < 0)
                return r;
        r = bus_json_read_members(m, arguments, event);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(event);
        return 0;
}

/* Returns 1, 0 if it is not from tlobd, or a negative errno after it has said what is wrong. */
static int take_event(Monitor *monitor, sd_bus_message *m, const char *const *arguments,
                      json_object **ret) {
        int r;

        if (!sender_is_tlobd(&monitor->sender, m))
                return 0;
        r = read_event(m, arguments, ret);
        return r < 0 ? connection_complain_reply(r) : 1;
}

static bool is_wanted(const Monitor *monitor, const json_object *event) {
        return filter_matches(&monitor->filter, json_string(event, "binding"),
                              json_string(event, "unit"));
}

static int on_report(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Monitor *monitor = userdata;
        bool completed = streq(sd_bus_message_get_member(m), "Completed");
        _cleanup_json_ json_object *event = NULL;
        int r;

        r = take_event(monitor, m, event_arguments, &event);
        if (r <= 0 || !is_wanted(monitor, event))
                return r < 0 ? r : 0;
        return write_event(monitor, event, completed ? REPORT_COMPLETION : REPORT_VIOLATION);
}

static int on_records_lost(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        static const char *const arguments[] = { "count", NULL };
        _cleanup_json_ json_object *event = NULL;
        Monitor *monitor = userdata;
        int r;

        r = take_event(monitor, m, arguments, &event);
        if (r <= 0)
                return r;
        if (monitor->client->output.json != JSON_OFF)
                return output_json(&monitor->client->output, event);
        warnx("%llu reports were lost because the kernel's buffer was full",
              (unsigned long long) json_number(event, "count"));
        return 0;
}

static int on_tolerance(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        static const char *const arguments[] = { "binding", "path",       "unit",      "state",
                                                 "windows", "violations", "burn_rate", NULL };
        _cleanup_json_ json_object *event = NULL;
        _cleanup_free_ char *name = NULL;
        Monitor *monitor = userdata;
        int r;

        r = take_event(monitor, m, arguments, &event);
        if (r <= 0 || !is_wanted(monitor, event))
                return r < 0 ? r : 0;
        if (monitor->client->output.json != JSON_OFF)
                return output_json(&monitor->client->output, event);
        name = text_escape(json_string(event, "binding"));
        if (!name)
                return -ENOMEM;
        if (*json_string(event, "state") == '\0') {
                printf("%s: tolerance no longer judged\n", name);
                return 0;
        }
        printf("%s: tolerance %s: %" PRIu64 " of %" PRIu64 " windows over budget\n", name,
               streq(json_string(event, "state"), "broken") ? "broken" : "kept again",
               json_number(event, "violations"), json_number(event, "windows"));
        return 0;
}

static int on_name_owner_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *name, *old, *new;
        int r;

        if (!sender_is_bus(m))
                return 0;
        r = sd_bus_message_read(m, "sss", &name, &old, &new);
        if (r < 0)
                return connection_complain_reply(r);
        if (*new == '\0')
                warnx("tlobd has stopped; waiting for it to come back");
        else
                warnx("tlobd has started");
        return 0;
}

static int add_matches(sd_bus *bus, Monitor *monitor) {
        static const struct {
                const char *member;
                sd_bus_message_handler_t handler;
        } signals[] = {
                { "Violation", on_report },
                { "Completed", on_report },
                { "RecordsLost", on_records_lost },
                { "ToleranceChanged", on_tolerance },
        };
        int r;

        r = sd_bus_add_match(bus, NULL, RESTART_MATCH, on_name_owner_changed, monitor);
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(signals); i++)
                r = sd_bus_match_signal(bus, NULL, TLOB_BUS_NAME, TLOB_BUS_PATH,
                                        TLOB_BUS_MANAGER_INTERFACE, signals[i].member,
                                        signals[i].handler, monitor);
        return r < 0 ? r : 0;
}

/* Tells whether there is a daemon to wait for events from. */
static void say_state(sd_bus *bus, bool legend) {
        if (sd_bus_get_name_creds(bus, TLOB_BUS_NAME, 0, NULL) < 0)
                warnx("tlobd is not running; waiting for it to start");
        else if (legend)
                warnx("Waiting for violations; press Ctrl-C to stop");
}

/*
 * Also for the end of whoever reads the output: there may be nothing to write for days. Returns 1,
 * 0 when nobody reads it any more, or a negative errno.
 */
static int wait_for_event(sd_bus *bus) {
        struct pollfd fds[] = {
                { .fd = sd_bus_get_fd(bus), .events = (short) sd_bus_get_events(bus) },
                { .fd = STDOUT_FILENO },
        };

        if (poll(fds, ELEMENTSOF(fds), -1) < 0)
                return errno == EINTR ? 1 : -errno;
        if (fds[1].revents == 0)
                return 1;
        /* As if something had been written. */
        (void) raise(SIGPIPE);
        return 0;
}

/* Returns a negative errno when the bus is gone, 0 when nobody reads the output any more. */
static int run(sd_bus *bus) {
        for (;;) {
                int r;

                r = sd_bus_process(bus, NULL);
                if (r < 0)
                        return r;
                if (fflush(stdout) != 0 || ferror(stdout))
                        return 0;
                if (r > 0)
                        continue;
                r = wait_for_event(bus);
                if (r <= 0)
                        return r;
        }
}

ExitStatus verb_monitor(Client *client, int argc, char **argv) {
        _cleanup_(monitor_done) Monitor monitor = { .client = client };
        int r;

        client->output.pager_wanted = false;
        if (connection_open(&client->connection) < 0)
                return STATUS_FAILED;
        r = filter_init(&monitor.filter, &client->connection);
        if (r < 0)
                return status_of_memory(r);
        r = add_matches(client->connection.bus, &monitor);
        if (r >= 0) {
                say_state(client->connection.bus, client->options.legend);
                r = run(client->connection.bus);
        }
        /* The matches go before what they point to. */
        connection_done(&client->connection);
        if (r < 0) {
                errno = -r;
                warn("The connection to the bus is lost; start 'tlobctl%s monitor' again",
                     options_scope_text(&client->options));
        }
        return STATUS_FAILED;
}
