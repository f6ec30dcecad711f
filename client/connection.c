/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The connection to tlobd. It opens the bus on first use, so that a command line that is wrong is
 * refused without one, and turns every way in which a call can fail into one sentence that says
 * what to do. The daemon's own errors (org.tlob1.Error.*) come with such a sentence, which is
 * passed on.
 *
 * Calls that ask polkit may take as long as a person takes to find a password; so the timeout is
 * minutes, not sd-bus's 25 seconds. A daemon that died answers at once all the same: the bus does.
 *
 * A daemon that was stopped stays so when somebody only looks: the bus starts it for calls that
 * need rights. One that is being restarted is waited for.
 */

#include "connection.h"

#include <err.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/sentence.h"
#include "restart.h"
#include "tlob-bus.h"

/* Somebody may have to type a password; and otherwise, that of the bus. */
#define CHANGE_TIMEOUT_USEC (UINT64_C(180) * 1000 * 1000)
#define READ_TIMEOUT_USEC   (UINT64_C(25) * 1000 * 1000)

#define ERROR_PREFIX "org.tlob1.Error."
#define DENIAL       "Access denied: "
#define SPAWN_PREFIX "org.freedesktop.DBus.Error.Spawn."

void connection_done(Connection *connection) {
        connection->bus = sd_bus_flush_close_unref(connection->bus);
        polkit_agent_close(&connection->agent);
}

bool connection_is_local(const Connection *connection) {
        return !connection->options->host && !connection->options->machine;
}

int connection_complain_elsewhere(const Connection *connection, const char *what) {
        const Options *options = connection->options;

        warnx("%s can only be read on its own machine; log in there with '%s %s', and run tlobctl",
              what, options->host ? "ssh" : "machinectl shell", options->host ?: options->machine);
        return -EOPNOTSUPP;
}

static int complain_open(const Options *options, int r) {
        errno = -r;
        if (options->host)
                warn("Failed to connect to '%s'; check that 'ssh %s' works", options->host,
                     options->host);
        else if (options->machine)
                warn("Failed to connect to '%s'; check that 'machinectl list' shows it",
                     options->machine);
        else
                warn("Failed to connect to the %s bus; check that 'busctl%s list' works",
                     options->user ? "user" : "system", options_scope_text(options));
        return r;
}

/* Opens the bus and waits until it has greeted us: ssh, for one, fails only then. */
static int open_bus(const Options *options, sd_bus **ret) {
        _cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
        const char *name;
        int r;

        if (options->host)
                r = sd_bus_open_system_remote(&bus, options->host);
        else if (options->machine)
                r = sd_bus_open_system_machine(&bus, options->machine);
        else if (options->user)
                r = sd_bus_open_user(&bus);
        else
                r = sd_bus_open_system(&bus);
        if (r < 0)
                return r;
        r = sd_bus_get_unique_name(bus, &name);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(bus);
        return 0;
}

static uint64_t timeout_usec(const Connection *connection) {
        return connection->needs_rights ? CHANGE_TIMEOUT_USEC : READ_TIMEOUT_USEC;
}

int connection_open(Connection *connection) {
        const Options *options = connection->options;
        int r;

        if (connection->bus)
                return 0;
        r = open_bus(options, &connection->bus);
        if (r < 0)
                return connection->is_quiet ? r : complain_open(options, r);

        /* Another machine's polkit has agents of its own, and a user's bus has no polkit. */
        if (connection->needs_rights && options->ask_password && !options->user &&
            connection_is_local(connection))
                polkit_agent_open(&connection->agent);
        (void) sd_bus_set_method_call_timeout(connection->bus, timeout_usec(connection));
        (void) sd_bus_set_allow_interactive_authorization(connection->bus, options->ask_password);
        return 0;
}

static int complain(int r, const char *sentence) {
        warnx("%s", r == -ENOMEM ? "Out of memory" : sentence);
        return r;
}

int connection_complain_reply(int r) {
        return complain(r, "The reply of tlobd is not understood; check that tlobd and tlobctl "
                           "have the same version");
}

int connection_complain_arguments(int r) {
        return complain(r, "An argument is not valid UTF-8; names and values must be");
}

/* Errors that mean that nobody has the name, and that nobody can be started to take it. */
static bool is_not_running(const sd_bus_error *error) {
        static const char *const names[] = {
                SD_BUS_ERROR_SERVICE_UNKNOWN,          SD_BUS_ERROR_NAME_HAS_NO_OWNER,
                "org.freedesktop.systemd1.NoSuchUnit", "org.freedesktop.systemd1.LoadFailed",
                "org.freedesktop.systemd1.UnitMasked",
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (sd_bus_error_has_name(error, names[i]))
                        return true;
        return error->name && strncmp(error->name, SPAWN_PREFIX, strlen(SPAWN_PREFIX)) == 0;
}

/* Errors that mean that the daemon of that name knows less than we do. */
static bool is_unknown_member(const sd_bus_error *error) {
        return sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_METHOD) ||
               sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_INTERFACE) ||
               sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_OBJECT) ||
               sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_PROPERTY);
}

/* Errors that are the daemon's own verdict. */
static bool is_verdict(const sd_bus_error *error) {
        return error->name && strncmp(error->name, ERROR_PREFIX, strlen(ERROR_PREFIX)) == 0;
}

/* Errors that mean that the caller may not do it. */
static bool is_denial(const sd_bus_error *error) {
        return sd_bus_error_has_name(error, SD_BUS_ERROR_ACCESS_DENIED) ||
               sd_bus_error_has_name(error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED);
}

/* The polkit action that a method asks for. */
static const char *action_of(const char *method) {
        return streq(method, "Verify") ? TLOB_ACTION_INSPECT : TLOB_ACTION_MANAGE_BINDINGS;
}

static char *explain_absence(const Connection *connection) {
        const Options *options = connection->options;
        const char *on = connection_is_local(connection) ? "" : " on ";
        const char *machine = options->host ?: options->machine ?: "";

        if (restart_unit_is_missing(connection->bus))
                return sentence_make("tlobd is not installed%s%s: systemd has no tlobd.service; "
                                     "install the package tlobd",
                                     on, machine);
        return sentence_make("tlobd is not running%s%s; start it with 'systemctl%s start tlobd'",
                             on, machine, options_scope_text(options));
}

/* What was there when its path was asked for. */
static bool is_gone(sd_bus_message *call, const sd_bus_error *error) {
        const char *path = sd_bus_message_get_path(call);

        return sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_OBJECT) &&
               strncmp(path, TLOB_BUS_BINDING_PREFIX, strlen(TLOB_BUS_BINDING_PREFIX)) == 0;
}

static char *explain(const Connection *connection, sd_bus_message *call,
                     const sd_bus_error *error) {
        const char *member = sd_bus_message_get_member(call);
        const Options *options = connection->options;
        const char *text = error->message ?: error->name ?: "no reason given";

        if (is_verdict(error))
                return sentence_make("%s", text);
        if (is_not_running(error))
                return explain_absence(connection);
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED))
                return sentence_make("This needs a password; run it as root%s",
                                     options->ask_password ? "" : ", or without --no-ask-password");
        /* The daemon's own sentence names the action; the bus may have refused the call, too. */
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_ACCESS_DENIED) &&
            strncmp(text, DENIAL, strlen(DENIAL)) == 0)
                return sentence_make("%s", text);
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_ACCESS_DENIED))
                return sentence_make("Access denied: run it as root, or have polkit allow %s (%s)",
                                     action_of(member), text);
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) ||
            sd_bus_error_has_name(error, SD_BUS_ERROR_TIMEOUT))
                return sentence_make("tlobd did not answer; see 'systemctl%s status tlobd'",
                                     options_scope_text(options));
        if (sd_bus_error_has_name(error, SD_BUS_ERROR_DISCONNECTED))
                return sentence_make("The connection to the bus is lost");
        if (is_gone(call, error))
                return sentence_make("The binding has gone meanwhile");
        if (is_unknown_member(error) && (options->host || options->machine))
                return sentence_make("tlobd does not know %s there: it is of an older version",
                                     member);
        if (is_unknown_member(error))
                return sentence_make("The running tlobd does not know %s; after an update, run "
                                     "'systemctl%s restart tlobd'",
                                     member, options_scope_text(options));
        return sentence_make("tlobd could not do it: %s", text);
}

static char *explain_slow_restart(const Connection *connection) {
        return sentence_make("tlobd is being started again, which takes long; see 'systemctl%s "
                             "status tlobd'",
                             options_scope_text(connection->options));
}

int connection_new_call(Connection *connection, const char *path, const char *interface,
                        const char *method, sd_bus_message **ret) {
        int r;

        r = connection_open(connection);
        if (r < 0)
                return r;
        r = sd_bus_message_new_method_call(connection->bus, ret, TLOB_BUS_NAME,
                                           path ?: TLOB_BUS_PATH, interface, method);
        if (r >= 0)
                r = sd_bus_message_set_auto_start(*ret, connection->needs_rights);
        return r < 0 ? connection_complain_reply(r) : 0;
}

/* It may be on its way, and has not begun what it is asked for; or that does no harm twice. */
static bool is_worth_waiting(const Connection *connection, const sd_bus_error *error) {
        return is_not_running(error) ||
               (!connection->needs_rights && sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY));
}

int connection_ask(Connection *connection, sd_bus_message *call, sd_bus_message **ret_reply,
                   char **ret_sentence) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        uint64_t begin = now_ns();
        int r, back = 0;

        r = sd_bus_call(connection->bus, call, 0, &error, ret_reply);
        /* One that hangs is not asked twice. */
        if (r < 0 && is_worth_waiting(connection, &error) &&
            now_ns() - begin < timeout_usec(connection) * NSEC_PER_USEC)
                back = restart_wait(connection->bus);
        if (back > 0) {
                sd_bus_error_free(&error);
                r = sd_bus_call(connection->bus, call, 0, &error, ret_reply);
        }
        if (r >= 0)
                return 0;
        if (!sd_bus_error_is_set(&error))
                (void) sd_bus_error_set_errno(&error, r);
        connection->is_denied = is_denial(&error);
        *ret_sentence = back == -ETIMEDOUT ? explain_slow_restart(connection)
                                           : explain(connection, call, &error);
        return is_verdict(&error) ? -EREMOTEIO : r;
}

/* -ENOBUFS: LimitsExceeded. */
bool connection_was_refused(int error) {
        return error == -EREMOTEIO || error == -ENOBUFS || error == -ENOMEM;
}

int connection_send(Connection *connection, sd_bus_message *call, sd_bus_message **ret_reply) {
        _cleanup_free_ char *sentence = NULL;
        int r;

        r = connection_ask(connection, call, ret_reply, &sentence);
        if (r < 0 && !connection->is_quiet)
                warnx("%s", sentence ?: "Out of memory");
        return r;
}

int connection_call(Connection *connection, const char *method, sd_bus_message **ret_reply,
                    const char *types, ...) {
        _cleanup_message_ sd_bus_message *call = NULL;
        va_list ap;
        int r;

        r = connection_new_call(connection, NULL, TLOB_BUS_MANAGER_INTERFACE, method, &call);
        if (r < 0)
                return r;
        va_start(ap, types);
        r = sd_bus_message_appendv(call, types ?: "", ap);
        va_end(ap);
        if (r < 0)
                return connection_complain_arguments(r);
        return connection_send(connection, call, ret_reply);
}
