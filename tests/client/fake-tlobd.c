/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A stand-in for tlobd, for the tests of its clients: it answers as org.tlob1.xml says, on whatever
 * bus DBUS_SYSTEM_BUS_ADDRESS names, but measures nothing. It begins with canned bindings and
 * violations; AddBinding(), RemoveBinding() and SetBudget() change the bindings.
 *
 * It tells by sd_notify() when it has its name. Lines on standard input make it send signals
 * ("violation", "other", "completed", "hostile-violation", "flood", "lost", "strange"), change the
 * bindings ("work", "ended", "uncounted", "empty", "many", "marks", "hostile") or the types of all
 * properties ("types at"), refuse to tell of them ("refuse"), or go from the bus as if systemd
 * restarted it ("crash"), did so for ever ("loop"), had given up ("fail") or had no unit of it
 * ("uninstall"); it ends with the input, or by SIGTERM. What no real daemon would do, so that a
 * test can see it: StateReason of a binding that was added has the flags and properties as they
 * came, and the name "denied" stands for a caller without rights.
 */

#include <err.h>
#include <poll.h>
#include <signal.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>

#include "base/cleanup.h"
#include "fake-binding.h"
#include "fake-systemd.h"
#include "fake-types.h"
#include "tlob-bus.h"

#define LONG_LIMITATION                                                                                 \
        "What it says of itself takes more than the eighty columns that a terminal has, \u00fcberall, " \
        "and is as long as that"

#define REALTIME_NS UINT64_C(981173106000000000) /* 3 February 2001, 04:05:06 UTC */

static int no_such(sd_bus_error *error, const char *name) {
        return sd_bus_error_setf(error, TLOB_ERROR_NO_SUCH_BINDING,
                                 "No binding '%s': 'tlobctl list-bindings' shows all", name);
}

static int get_manager(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Fake *fake = userdata;
        uint64_t windows = 0, violations = 0;
        unsigned active = 0, failed = 0;

        for (size_t i = 0; i < fake->n; i++) {
                windows += fake->bindings[i].windows;
                violations += fake->bindings[i].violations;
                active += streq(fake->bindings[i].state, "active");
                failed += streq(fake->bindings[i].state, "failed");
        }
        if (streq(property, "Version"))
                return sd_bus_message_append(reply, "s", "0.fake");
        if (streq(property, "Backends"))
                return sd_bus_message_append(reply, "as", 2, "bpf", "kernel");
        if (streq(property, "Limitations"))
                return sd_bus_message_append(reply, "as", 3, "It is a fake", "It measures nothing",
                                             LONG_LIMITATION);
        if (streq(property, "Ignored"))
                return sd_bus_message_append(reply, "as", 1,
                                             "/etc/tlob/tlobd.conf:3: Unknown key 'Lim\x1bit'");
        if (streq(property, "DeadlineMode"))
                return sd_bus_message_append(reply, "s", "fentry");
        if (streq(property, "NBindings"))
                return sd_bus_message_append(reply, "u", (unsigned) fake->n);
        if (streq(property, "NUserBindings"))
                return sd_bus_message_append(reply, "u", 5);
        if (streq(property, "NActive"))
                return sd_bus_message_append(reply, "u", active);
        if (streq(property, "NFailed"))
                return sd_bus_message_append(reply, "u", failed);
        if (streq(property, "Windows"))
                return sd_bus_message_append(reply, "t", windows);
        if (streq(property, "Violations"))
                return sd_bus_message_append(reply, "t", violations);
        if (streq(property, "Undelivered"))
                return sd_bus_message_append(reply, "a{st}", 2, "journal-stalled", UINT64_C(0),
                                             "signals", UINT64_C(12));
        if (streq(property, "Usage"))
                return sd_bus_message_append(reply, "a{st}", 4, "memory-bytes", UINT64_C(36175872),
                                             "descriptors", UINT64_C(87), "descriptors-max",
                                             UINT64_C(65536), "cpu-ns", UINT64_C(1234567890));
        if (streq(property, "ProbesNSec"))
                return sd_bus_message_append(reply, "t", UINT64_C(2500000));
        return sd_bus_message_append(reply, "t", UINT64_C(0));
}

/* Methods */

static int set_property(FakeBinding *binding, const char *key, const char *value) {
        if (streq(key, "Executable"))
                (void) snprintf(binding->executable, sizeof(binding->executable), "%s", value);
        else if (streq(key, "Start") || streq(key, "Function") || streq(key, "Syscall") ||
                 streq(key, "Mark"))
                (void) snprintf(binding->start, sizeof(binding->start), "%s", value);
        else if (streq(key, "Stop"))
                (void) snprintf(binding->stop, sizeof(binding->stop), "%s", value);
        else if (streq(key, "Unit"))
                (void) snprintf(binding->unit, sizeof(binding->unit), "%s", value);
        else if (!strstr(key, "BudgetSec") && !streq(key, "Backend") && !streq(key, "Priority") &&
                 !streq(key, "Required") && !streq(key, "Enabled") && !streq(key, "BuildID"))
                return -ENOENT;
        if (streq(key, "Function"))
                (void) snprintf(binding->stop, sizeof(binding->stop), "return");
        return 0;
}

static int read_properties(sd_bus_message *m, FakeBinding *binding, sd_bus_error *error) {
        const char *key, *value;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read(m, "{sv}", &key, "s", &value)) > 0) {
                size_t n = strlen(binding->reason);

                (void) snprintf(binding->reason + n, sizeof(binding->reason) - n, " %s=%s", key,
                                value);
                if (set_property(binding, key, value) < 0)
                        return sd_bus_error_setf(error, TLOB_ERROR_INVALID_BINDING,
                                                 "There is no key '%s'", key);
        }
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;

        if (streq(binding->executable, ""))
                return sd_bus_error_setf(error, TLOB_ERROR_INVALID_BINDING,
                                         "Executable= is missing: write a path");
        if (streq(binding->start, "nosuch"))
                return sd_bus_error_setf(error, TLOB_ERROR_NO_SUCH_SYMBOL,
                                         "There is no function 'nosuch' in %s; near: nosync",
                                         binding->executable);
        return 0;
}

static int on_add(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_free_ char *path = NULL;
        Fake *fake = userdata;
        FakeBinding binding = { .added = true, .state = "active", .backend = "bpf" };
        const char *name;
        uint64_t flags;
        char *reason;
        int r;

        r = sd_bus_message_read(m, "s", &name);
        if (r < 0)
                return r;
        r = read_properties(m, &binding, error);
        if (r < 0)
                return r;
        r = sd_bus_message_read(m, "t", &flags);
        if (r < 0)
                return r;
        if (streq(name, "denied"))
                return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED, "not by you");
        if (streq(name, "asks"))
                return sd_bus_error_setf(error,
                                         sd_bus_message_get_allow_interactive_authorization(m)
                                                 ? SD_BUS_ERROR_ACCESS_DENIED
                                                 : SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                         "a password");
        if (fake_find_binding(fake, name) || fake->n >= BINDINGS_MAX)
                return sd_bus_error_setf(error, TLOB_ERROR_BINDING_EXISTS,
                                         "There is '%s' already, at %s", name,
                                         fake_find_binding(fake, name)->source);

        binding.budget_ns = binding.configured_ns = 5000000;
        binding.start_offset = 0x1000;
        if (streq(binding.executable, "/usr/lib/wide"))
                (void) snprintf(binding.cost, sizeof(binding.cost),
                                "The probes are in all 5 processes that map %.64s",
                                binding.executable);
        if (streq(binding.start, "wrapper"))
                (void) snprintf(binding.stop_note, sizeof(binding.stop_note),
                                "1 way out: 1 tail call (to other), whose time is not measured");
        else if (streq(binding.start, "plain"))
                (void) snprintf(binding.stop_note, sizeof(binding.stop_note),
                                "1 way out: 1 return");
        (void) snprintf(binding.name, sizeof(binding.name), "%s", name);
        (void) snprintf(binding.source, sizeof(binding.source),
                        "/run/tlob/bindings.d/tlobctl-%s.conf:1", name);
        if (asprintf(&reason, "flags=%i%s", (int) flags, binding.reason) < 0)
                return -ENOMEM;
        (void) snprintf(binding.reason, sizeof(binding.reason), "%s", reason);
        free(reason);
        fake->bindings[fake->n++] = binding;

        r = fake_binding_path(&binding, &path);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(m, "o", path);
}

static int on_remove(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeBinding *binding;
        Fake *fake = userdata;
        const char *name;
        uint64_t flags;
        int r;

        r = sd_bus_message_read(m, "st", &name, &flags);
        if (r < 0)
                return r;
        if (streq(name, "denied"))
                return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED, "not by you");
        binding = fake_find_binding(fake, name);
        if (!binding)
                return no_such(error, name);
        if (!binding->added || flags != 0)
                return sd_bus_error_setf(error, TLOB_ERROR_INVALID_BINDING,
                                         "'%s' comes from %s: change that file", name,
                                         binding->source);
        *binding = fake->bindings[--fake->n];
        return sd_bus_reply_method_return(m, NULL);
}

static int on_get(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_free_ char *path = NULL;
        FakeBinding *binding;
        const char *name;
        int r;

        r = sd_bus_message_read(m, "s", &name);
        if (r < 0)
                return r;
        binding = fake_find_binding(userdata, name);
        if (binding)
                r = fake_binding_path(binding, &path);
        else if (streq(name, "vanishing")) /* it has gone before anything else is asked */
                r = sd_bus_path_encode(TLOB_BUS_BINDING_PREFIX, name, &path);
        else
                return no_such(error, name);
        if (r < 0)
                return r;
        return sd_bus_reply_method_return(m, "o", path);
}

static int on_set_budget(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeBinding *binding;
        const char *name;
        uint64_t ns, flags;
        int r;

        r = sd_bus_message_read(m, "stt", &name, &ns, &flags);
        if (r < 0)
                return r;
        binding = fake_find_binding(userdata, name);
        if (!binding)
                return no_such(error, name);
        binding->budget_ns = ns == TLOB_BUDGET_CONFIGURED ? binding->configured_ns : ns;
        if (binding->added)
                (void) snprintf(binding->reason, sizeof(binding->reason), "budget flags=%i",
                                (int) flags);
        return sd_bus_reply_method_return(m, NULL);
}

static int on_list(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        Fake *fake = userdata;
        int r;

        r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(sosssttt)");
        for (size_t i = 0; r >= 0 && i < fake->n; i++) {
                const FakeBinding *b = fake->bindings + i;
                _cleanup_free_ char *path = NULL;

                r = fake_binding_path(b, &path);
                if (r >= 0)
                        r = sd_bus_message_append(reply, "(sosssttt)", b->name, path, b->unit,
                                                  b->state, b->backend, b->budget_ns, b->windows,
                                                  b->violations);
        }
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

/*
 * Three violations, of two units; the second has ended. The newest is of a task with an evil name
 * and without a pid.
 */
static int on_violations(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        static const struct {
                const char *binding, *unit, *budget, *comm;
                uint32_t pid, tid;
                uint64_t budget_ns, elapsed_ns;
        } items[] = {
                { "fsync", "", "total", "ev\x1b[31mil", 0, 0, 20000000, UINT64_MAX },
                { "nginx.service/request", "nginx.service", "sleeping", "nginx", 4711, 4711,
                  15000000, 16000000 },
                { "fsync", "cron.service", "total", "cron", 12, 13, 20000000, 21000000 },
        };
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const Fake *fake = userdata;
        uint32_t max;
        int r;

        r = sd_bus_message_read(m, "u", &max);
        if (r >= 0)
                r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "a{sv}");
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(items) && (max == 0 || i < max); i++)
                r = sd_bus_message_append(
                        reply, "a{sv}", i == 1 || fake->has_ended ? 20 : 15, "binding", "s",
                        items[i].binding, "unit", "s", items[i].unit, "tid", "u", items[i].tid,
                        "budget_ns", "t", items[i].budget_ns, "elapsed_ns", "t",
                        items[i].elapsed_ns, "running_ns", "t", UINT64_C(200000), "waiting_ns", "t",
                        UINT64_C(100000), "sleeping_ns", "t", UINT64_C(15700000), "id", "t",
                        (uint64_t) 100 - i, "time_ns", "t", UINT64_C(1000000000) * (10 - i),
                        "realtime_ns", "t", REALTIME_NS - UINT64_C(1000000000) * i, "budget", "s",
                        items[i].budget, "state", "s", "sleeping", "comm", "s", items[i].comm,
                        "pid", "u", items[i].pid, "took_ns", "t", UINT64_C(561000000),
                        "took_running_ns", "t", UINT64_C(1000000), "took_waiting_ns", "t",
                        UINT64_C(540000000), "took_sleeping_ns", "t", UINT64_C(20000000),
                        "preempted_by", "s", "cc1[812]");
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int on_verify(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeBinding binding = {};
        int r;

        r = read_properties(m, &binding, error);
        if (r < 0)
                return r;
        if (streq(binding.start, "denied"))
                return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED, "not by you");
        if (streq(binding.start, "refused"))
                return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED,
                                         "Access denied: this requires root, or permission from "
                                         "polkit for " TLOB_ACTION_INSPECT);
        return sd_bus_reply_method_return(
                m, "a{sv}", 10, "executable", "s", binding.executable, "build-id", "s", "abcdef",
                "start", "s", binding.start, "start-offset", "t", UINT64_C(0x1000), "stop", "s",
                binding.stop, "ways-out", "u", 1, "stop-note", "s", "1 way out: 1 return", "cost",
                "s", "The probes are in all 3 processes that map it", "unwinding-cost", "s",
                "Each exception takes longer", "backend", "s", "bpf");
}

static int on_reload(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeBinding *broken = fake_find_binding(userdata, "broken");

        return sd_bus_reply_method_return(m, "a(ss)", broken ? 1 : 0, "broken",
                                          broken ? broken->reason : "");
}

static int on_reset(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Fake *fake = userdata;

        for (size_t i = 0; i < fake->n; i++)
                fake->bindings[i].windows = fake->bindings[i].violations = 0;
        return sd_bus_reply_method_return(m, NULL);
}

static const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("AddBinding", "sa{sv}t", "o", on_add, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("RemoveBinding", "st", "", on_remove, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetBinding", "s", "o", on_get, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("SetBudget", "stt", "", on_set_budget, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ListBindings", "", "a(sosssttt)", on_list, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetViolations", "u", "aa{sv}", on_violations, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Verify", "a{sv}", "a{sv}", on_verify, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("Reload", "", "a(ss)", on_reload, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("ResetStatistics", "", "", on_reset, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Version", "s", get_manager, 0, 0),
        SD_BUS_PROPERTY("Backends", "as", get_manager, 0, 0),
        SD_BUS_PROPERTY("Limitations", "as", get_manager, 0, 0),
        SD_BUS_PROPERTY("Ignored", "as", get_manager, 0, 0),
        SD_BUS_PROPERTY("DeadlineMode", "s", get_manager, 0, 0),
        SD_BUS_PROPERTY("NBindings", "u", get_manager, 0, 0),
        SD_BUS_PROPERTY("NUserBindings", "u", get_manager, 0, 0),
        SD_BUS_PROPERTY("NActive", "u", get_manager, 0, 0),
        SD_BUS_PROPERTY("NFailed", "u", get_manager, 0, 0),
        SD_BUS_PROPERTY("Windows", "t", get_manager, 0, 0),
        SD_BUS_PROPERTY("Violations", "t", get_manager, 0, 0),
        SD_BUS_PROPERTY("Lost", "t", get_manager, 0, 0),
        SD_BUS_PROPERTY("Suppressed", "t", get_manager, 0, 0),
        SD_BUS_PROPERTY("Undelivered", "a{st}", get_manager, 0, 0),
        SD_BUS_PROPERTY("ProbesNSec", "t", get_manager, 0, 0),
        SD_BUS_PROPERTY("Usage", "a{st}", get_manager, 0, 0),
        SD_BUS_VTABLE_END,
};

/* Signals, on command */

static int emit_report(Fake *fake, const char *member, const char *binding, const char *unit) {
        return sd_bus_emit_signal(
                fake->bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, member, "ssuttttta{sv}",
                binding, unit, 4712, UINT64_C(5000000), UINT64_C(5012345), UINT64_C(200000),
                UINT64_C(100000), UINT64_C(4712345), 10, "id", "t", UINT64_C(42), "time_ns", "t",
                UINT64_C(1000000000), "realtime_ns", "t", REALTIME_NS, "budget", "s", "total",
                "state", "s", "sleeping", "pid", "u", 4711, "comm", "s", "nginx", "late_ns", "t",
                UINT64_MAX, "suppressed", "t", UINT64_C(3), "end", "s", "exit");
}

/* A hundred windows, of which one took longer than any before. */
static int work(Fake *fake) {
        FakeBinding *binding = fake_find_binding(fake, "nginx.service/request");

        binding->windows += 100;
        binding->violations++;
        binding->worked_ns += 30000000;
        return 0;
}

/* Of a task and in a function whose names are markup. */
static int emit_hostile(Fake *fake) {
        return sd_bus_emit_signal(fake->bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Violation",
                                  "ssuttttta{sv}", "<script>alert(1)</script>", "<b>\n.service", 1,
                                  UINT64_C(5000000), UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                  7, "id", "t", UINT64_C(43), "time_ns", "t", UINT64_C(1000000000),
                                  "budget", "s", "<i>total", "state", "s", "sleeping", "comm", "s",
                                  "\u202e\x1b[0m</li>", "blocked_in", "s", "<img src=x>",
                                  "woken_by", "s", "a\nb\u2028c[1]");
}

/* More than anybody keeps. */
static int flood(Fake *fake) {
        int r = 0;

        for (uint64_t i = 0; i < 500 && r >= 0; i++)
                r = sd_bus_emit_signal(fake->bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE,
                                       "Violation", "ssuttttta{sv}", "fsync", "", 1,
                                       UINT64_C(5000000), UINT64_C(5000001), UINT64_C(5000001),
                                       UINT64_C(0), UINT64_C(0), 4, "id", "t", 1000 + i, "time_ns",
                                       "t", i, "budget", "s", "total", "state", "s", "running");
        return r;
}

static int set_types(Fake *fake, const char *line) {
        static char types[64];

        (void) snprintf(types, sizeof(types), "%.*s", (int) strcspn(line, "\n"), line);
        fake->types = types;
        return 0;
}

static int obey(Fake *fake, const char *command) {
        if (streq(command, "violation\n"))
                return emit_report(fake, "Violation", "nginx.service/request", "nginx.service");
        if (streq(command, "completed\n"))
                return emit_report(fake, "Completed", "nginx.service/request", "nginx.service");
        if (streq(command, "other\n"))
                return emit_report(fake, "Violation", "fsync", "");
        if (streq(command, "lost\n"))
                return sd_bus_emit_signal(fake->bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE,
                                          "RecordsLost", "t", UINT64_C(17));
        if (streq(command, "work\n"))
                return work(fake);
        if (fake_bindings_change(fake, command))
                return 0;
        if (streq(command, "hostile-violation\n"))
                return emit_hostile(fake);
        if (streq(command, "hostile-tolerance\n"))
                return sd_bus_emit_signal(fake->bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE,
                                          "ToleranceChanged", "sossttd", "\x1b[31m\u202e", "/x", "",
                                          "broken", UINT64_C(9), UINT64_C(8), 1.0);
        if (strncmp(command, "types ", strlen("types ")) == 0)
                return set_types(fake, command + strlen("types "));
        if (streq(command, "flood\n"))
                return flood(fake);
        if (streq(command, "crash\n"))
                return fake_systemd_take_away(fake, "active", 3);
        if (streq(command, "loop\n"))
                return fake_systemd_take_away(fake, "activating", 0);
        if (streq(command, "fail\n"))
                return fake_systemd_take_away(fake, "failed", 0);
        if (streq(command, "uninstall\n"))
                return fake_systemd_take_away(fake, NULL, 0);
        if (streq(command, "strange\n"))
                return sd_bus_emit_signal(fake->bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE,
                                          "Violation", "i", 1);
        return -EINVAL;
}

/* SIGTERM gets through only while it waits, with the signal mask waiting. */
static int serve(Fake *fake, const sigset_t *waiting) {
        for (;;) {
                struct pollfd fds[] = {
                        { .fd = STDIN_FILENO, .events = POLLIN },
                        { .fd = sd_bus_get_fd(fake->bus) },
                };
                char command[64];
                int r;

                /* Who tells it something, and then asks, may have done both by now. */
                if (poll(fds, 1, 0) > 0) {
                        if (!fgets(command, sizeof(command), stdin))
                                return 0;
                        r = obey(fake, command);
                        if (r < 0)
                                return r;
                        continue;
                }
                r = sd_bus_process(fake->bus, NULL);
                if (r < 0)
                        return r;
                if (r > 0)
                        continue;
                fds[1].events = (short) sd_bus_get_events(fake->bus);
                if (ppoll(fds, ELEMENTSOF(fds), NULL, waiting) < 0)
                        return errno == EINTR ? 0 : -errno;
        }
}

/* As the daemon does it for who asks too often. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const Fake *fake = userdata;

        if (!fake->refuses || sd_bus_message_is_method_call(m, "org.freedesktop.DBus.ObjectManager",
                                                            "GetManagedObjects") <= 0)
                return 0;
        return sd_bus_reply_method_errorf(m, SD_BUS_ERROR_LIMITS_EXCEEDED,
                                          "You have kept tlobd busy for too long");
}

static int start(Fake *fake) {
        int r;

        r = sd_bus_open_system(&fake->bus);
        if (r >= 0)
                r = sd_bus_add_filter(fake->bus, NULL, on_message, fake);
        if (r >= 0)
                r = sd_bus_add_object_manager(fake->bus, NULL, TLOB_BUS_PATH);
        if (r >= 0)
                r = sd_bus_add_object_vtable(fake->bus, NULL, TLOB_BUS_PATH,
                                             TLOB_BUS_MANAGER_INTERFACE, manager_vtable, fake);
        if (r >= 0)
                r = fake_bindings_start(fake);
        if (r >= 0)
                r = fake_types_start(fake);
        if (r >= 0)
                r = fake_systemd_start(fake);
        if (r >= 0)
                r = sd_bus_request_name(fake->bus, TLOB_BUS_NAME, 0);
        return r;
}

static void on_signal(int number) {
}

static void catch_sigterm(sigset_t *ret_waiting) {
        static const struct sigaction action = { .sa_handler = on_signal };
        sigset_t mask;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGTERM);
        (void) sigprocmask(SIG_BLOCK, &mask, ret_waiting);
        (void) sigaction(SIGTERM, &action, NULL);
}

int main(void) {
        static Fake fake;
        sigset_t waiting;
        int r;

        /* One command a read: what is buffered, poll() does not see. */
        (void) setvbuf(stdin, NULL, _IONBF, 0);
        catch_sigterm(&waiting);
        r = start(&fake);
        if (r >= 0) {
                (void) sd_notify(0, "READY=1");
                r = serve(&fake, &waiting);
        }
        sd_bus_flush_close_unref(fake.bus);
        if (r < 0) {
                errno = -r;
                err(EXIT_FAILURE, "fake-tlobd");
        }
        return EXIT_SUCCESS;
}
