/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The daemon, as tlobctl top sees it. Counters are asked for, one question at a time: a daemon that
 * is slow gets no second one before it has answered the first. The windows that are over their
 * budget are told by signals, after one question for those of before; that costs nothing while
 * nothing happens. While there are some, it is asked for their ends, too: no signal tells that of
 * one whose violation was held back.
 *
 * A daemon that goes away is waited for, however long; when it is back, it has what its predecessor
 * counted (see tlobd(8), RESTARTS), and the next difference is over all that time.
 */

#include "top-watch.h"

#include "base/clock.h"
#include "base/duration.h"
#include "event.h"
#include "report/cause.h"
#include "restart.h"
#include "tlob-bus.h"
#include "top-tallies.h"

#define OBJECT_MANAGER "org.freedesktop.DBus.ObjectManager"
#define TIMEOUT_USEC   (UINT64_C(30) * 1000 * 1000)
#define LATE_NS        NSEC_PER_SEC

static uint32_t json_id(const json_object *event, const char *key) {
        uint64_t id = json_number(event, key);

        return id > UINT32_MAX ? 0 : (uint32_t) id;
}

/* What it does, as far as that is known: "blocked in folio_wait_bit", "running". */
static char *describe(const json_object *event) {
        const char *state = json_string(event, "state");
        const char *where = json_string(event, "blocked_in");
        const char *who = json_string(event, "preempted_by");
        char *text;

        if (*where != '\0')
                return asprintf(&text, "%s %s", cause_words_for(where), where) < 0 ? NULL : text;
        if (*who != '\0')
                return asprintf(&text, "%s, %s %s", state, cause_words_for_peer(who), who) < 0
                               ? NULL
                               : text;
        return strdup(state);
}

static int add_window(TopWatch *watch, const json_object *event) {
        uint64_t time_ns = json_number(event, "time_ns"),
                 elapsed = json_number(event, "elapsed_ns");
        _cleanup_free_ char *where = describe(event);
        const Tally *tally = tallies_find(&watch->now, json_string(event, "binding"));
        char task[TASK_NAME_MAX];
        OpenWindow window = {
                .id = json_number(event, "id"),
                .binding = (char *) json_string(event, "binding"),
                .unit = (char *) json_string(event, "unit"),
                .task = task,
                .where = where,
                .budget_ns = json_number(event, "budget_ns"),
                .begin_ns = elapsed <= time_ns ? time_ns - elapsed : time_ns,
        };

        if (!where)
                return -ENOMEM;
        (void) task_name_format(json_string(event, "comm"), json_id(event, "pid"),
                                json_id(event, "tid"), task);
        /* Where nobody counts those that are open, nobody tells when they end. */
        if (!tally || tally->open == UINT64_MAX)
                return 0;
        return open_windows_add(&watch->windows, &window);
}

/* Remembers why it cannot go on. For sd-bus, everything is in order. */
static int fail(TopWatch *watch, int r) {
        if (r < 0 && watch->error >= 0)
                watch->error = r;
        return 0;
}

static int on_report(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_json_ json_object *event = json_object_new_object();
        TopWatch *watch = userdata;
        int r;

        if (!sender_is_tlobd(&watch->sender, m))
                return 0;
        r = event ? bus_json_read_members(m, event_arguments, event) : -ENOMEM;
        if (r < 0)
                return fail(watch, r);
        if (streq(sd_bus_message_get_member(m), "Violation"))
                return fail(watch, add_window(watch, event));
        open_windows_remove(&watch->windows, json_number(event, "id"));
        return 0;
}

static int on_windows(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_json_ json_object *violations = NULL;
        TopWatch *watch = userdata;
        int r;

        watch->asking_windows = sd_bus_slot_unref(watch->asking_windows);
        /* The counters are asked for, too, and tell more of it. */
        if (sd_bus_message_is_method_error(m, NULL))
                return 0;
        r = bus_json_read_message(m, "aa{sv}", &violations);
        for (size_t i = 0; r >= 0 && i < json_object_array_length(violations); i++) {
                json_object *violation = json_object_array_get_idx(violations, i);

                if (json_object_object_get_ex(violation, "took_ns", NULL))
                        open_windows_remove(&watch->windows, json_number(violation, "id"));
                else
                        r = add_window(watch, violation);
        }
        return fail(watch, r);
}

static int take_answer(TopWatch *watch, sd_bus_message *reply) {
        Tallies tallies;
        int r;

        r = top_read_tallies(reply, watch->filter, watch->pattern, &tallies);
        if (r < 0)
                return r;
        tallies_done(&watch->before);
        watch->before = watch->now;
        watch->now = tallies;
        watch->is_new = true;
        watch->is_silent = false;
        open_windows_check(&watch->windows, &watch->now);
        return 0;
}

/*
 * When an answer was given is not known, only when it came: if that was late, because somebody had
 * stopped us, or the connection, rates would be wrong. Where each is late, they are all so alike.
 */
static bool is_to_be_dropped(TopWatch *watch) {
        watch->was_late = !watch->was_late && now_ns() - watch->asked_ns > LATE_NS;
        return watch->was_late;
}

/* It may have answered that it does not. */
static int note_refusal(TopWatch *watch, const sd_bus_error *error) {
        bool refuses = sd_bus_error_has_name(error, SD_BUS_ERROR_LIMITS_EXCEEDED);

        return free_and_strdup(&watch->refusal, refuses ? error->message : NULL);
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        TopWatch *watch = userdata;

        watch->asking = sd_bus_slot_unref(watch->asking);
        if (sd_bus_message_is_method_error(m, NULL)) {
                watch->is_silent = true;
                return fail(watch, note_refusal(watch, sd_bus_message_get_error(m)));
        }
        if (is_to_be_dropped(watch))
                return 0;
        return fail(watch, take_answer(watch, m));
}

static int ask(TopWatch *watch, const char *interface, const char *method, const char *types,
               sd_bus_slot **slot, sd_bus_message_handler_t handler) {
        _cleanup_message_ sd_bus_message *call = NULL;
        int r;

        if (*slot)
                return 0;
        r = sd_bus_message_new_method_call(watch->connection->bus, &call, TLOB_BUS_NAME,
                                           TLOB_BUS_PATH, interface, method);
        if (r >= 0)
                r = sd_bus_message_set_auto_start(call, false);
        if (r >= 0)
                r = sd_bus_message_append(call, types, 0);
        if (r >= 0)
                r = sd_bus_call_async(watch->connection->bus, slot, call, handler, watch,
                                      TIMEOUT_USEC);
        return r < 0 ? r : 0;
}

static int ask_windows(TopWatch *watch) {
        return ask(watch, TLOB_BUS_MANAGER_INTERFACE, "GetViolations", "u", &watch->asking_windows,
                   on_windows);
}

int top_watch_ask(TopWatch *watch) {
        int r;

        if (!watch->asking)
                watch->asked_ns = now_ns();
        r = ask(watch, OBJECT_MANAGER, "GetManagedObjects", "", &watch->asking, on_answer);

        return r >= 0 && watch->windows.n > 0 ? ask_windows(watch) : r;
}

static int on_name_owner_changed(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *name, *old, *new;
        TopWatch *watch = userdata;
        int r;

        if (!sender_is_bus(m))
                return 0;
        r = sd_bus_message_read(m, "sss", &name, &old, &new);
        if (r < 0)
                return fail(watch, r);
        watch->is_gone = *new == '\0';
        watch->has_moved = true;
        /* What becomes of its predecessor's windows, the next one does not tell. */
        open_windows_done(&watch->windows);
        return watch->is_gone ? 0 : fail(watch, ask_windows(watch));
}

static int add_matches(TopWatch *watch) {
        sd_bus *bus = watch->connection->bus;
        int r;

        r = sd_bus_add_match(bus, watch->matches, RESTART_MATCH, on_name_owner_changed, watch);
        if (r >= 0)
                r = sd_bus_match_signal(bus, watch->matches + 1, TLOB_BUS_NAME, TLOB_BUS_PATH,
                                        TLOB_BUS_MANAGER_INTERFACE, "Violation", on_report, watch);
        if (r >= 0)
                r = sd_bus_match_signal(bus, watch->matches + 2, TLOB_BUS_NAME, TLOB_BUS_PATH,
                                        TLOB_BUS_MANAGER_INTERFACE, "Completed", on_report, watch);
        return r;
}

int top_watch_open(TopWatch *watch) {
        _cleanup_message_ sd_bus_message *call = NULL, *reply = NULL;
        int r;

        r = connection_new_call(watch->connection, NULL, OBJECT_MANAGER, "GetManagedObjects",
                                &call);
        if (r < 0)
                return r;
        r = add_matches(watch);
        if (r < 0)
                return connection_complain_reply(r);
        r = connection_send(watch->connection, call, &reply);
        if (r < 0)
                return r;
        r = take_answer(watch, reply);
        if (r >= 0)
                r = ask_windows(watch);
        return r < 0 ? connection_complain_reply(r) : 0;
}

void top_watch_close(TopWatch *watch) {
        for (size_t i = 0; i < ELEMENTSOF(watch->matches); i++)
                watch->matches[i] = sd_bus_slot_unref(watch->matches[i]);
        watch->asking = sd_bus_slot_unref(watch->asking);
        watch->asking_windows = sd_bus_slot_unref(watch->asking_windows);
        tallies_done(&watch->before);
        tallies_done(&watch->now);
        open_windows_done(&watch->windows);
        free(TAKE_PTR(watch->refusal));
        sender_done(&watch->sender);
}
