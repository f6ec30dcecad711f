/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The canned bindings, and org.tlob1.Binding for whatever bindings there are. */

#include "fake-binding.h"

#include "base/cleanup.h"
#include "tlob-bus.h"

static const FakeBinding canned[] = {
        {
                .name = "broken",
                .source = "/etc/tlob/bindings.d/broken.conf:1",
                .executable = "/usr/bin/true",
                .start = "nosuch",
                .stop = "return",
                .state = "failed",
                .reason = "There is no function 'nosuch' in /usr/bin/true",
                .budget_ns = 1000000,
                .configured_ns = 1000000,
                .start_offset = UINT64_MAX,
        },
        {
                .name = "fsync",
                .source = "/etc/tlob/bindings.d/fsync.conf:1",
                .executable = "/usr/lib/x86_64-linux-gnu/libc.so.6",
                .start = "fsync",
                .stop = "return",
                .state = "active",
                .backend = "bpf",
                .backend_reason = "The first back end that can measure it",
                .reach = "the processes of its unit (2)",
                .budget_ns = UINT64_MAX,
                .configured_ns = UINT64_MAX,
                .start_offset = 0xf8f40,
                .windows = 7,
                .open = 2,
        },
        {
                .name = "nginx.service/request",
                .unit = "nginx.service",
                .source = "/etc/systemd/system/nginx.service.d/50-latency.conf:2",
                .executable = "/usr/sbin/nginx",
                .start = "ngx_http_process_request",
                .stop = "return",
                .start_note = "push rbp (emulated)",
                .build_id = "3fe2",
                .price = "0.4 us at the start and 9.5 us (single-stepped) at the stop",
                .stop_note = "3 ways out: 3 returns",
                .cost = "The probes are in all 9 processes that map /usr/sbin/nginx",
                .state = "active",
                .backend = "bpf",
                .backend_reason = "The first back end that can measure it",
                .budget_ns = 5000000,
                .configured_ns = 5000000,
                .start_offset = 0x12a0,
                .windows = 1000,
                .violations = 3,
                .open = 1,
        },
};

FakeBinding *fake_find_binding(Fake *fake, const char *name) {
        for (size_t i = 0; i < fake->n; i++)
                if (streq(fake->bindings[i].name, name))
                        return fake->bindings + i;
        return NULL;
}

int fake_binding_path(const FakeBinding *binding, char **ret) {
        return sd_bus_path_encode(TLOB_BUS_BINDING_PREFIX, binding->name, ret);
}

static int get_string(sd_bus *bus, const char *path, const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append_basic(reply, 's', userdata);
}

static int get_counters(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        FakeBinding *binding = userdata;
        int r;

        r = sd_bus_message_open_container(reply, 'a', "{st}");
        if (r >= 0)
                r = sd_bus_message_append(reply, "{st}{st}{st}", "starts", binding->windows,
                                          "in-budget", binding->windows - binding->violations,
                                          "lost", UINT64_MAX);
        if (r >= 0 && binding->open > 0)
                r = sd_bus_message_append(reply, "{st}", "open", binding->open);
        if (r >= 0 && binding->is_mark)
                r = sd_bus_message_append(reply, "{st}", "without-traps", binding->untrapped);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* Those in budget took less than 1.04 ms; the last bucket has no upper bound. */
static int get_histogram(sd_bus *bus, const char *path, const char *interface, const char *property,
                         sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        FakeBinding *binding = userdata;

        if (binding->windows == 0)
                return sd_bus_message_append(reply, "a(tt)", 0);
        return sd_bus_message_append(reply, "a(tt)", 2, UINT64_C(1040000),
                                     binding->windows - binding->violations, UINT64_MAX,
                                     binding->violations);
}

static int get_unknown(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "t", UINT64_MAX);
}

static int get_ways_out(sd_bus *bus, const char *path, const char *interface, const char *property,
                        sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        return sd_bus_message_append(reply, "u", 3);
}

static int get_tail_calls(sd_bus *bus, const char *path, const char *interface,
                          const char *property, sd_bus_message *reply, void *userdata,
                          sd_bus_error *error) {
        const FakeBinding *binding = userdata;

        return sd_bus_message_append(reply, "u", strstr(binding->stop_note, "tail call") ? 1 : 0);
}

static int get_time(sd_bus *bus, const char *path, const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        FakeBinding *binding = userdata;

        return sd_bus_message_append(reply, "t", UINT64_C(1500000) + binding->worked_ns);
}

static int get_budgets(sd_bus *bus, const char *path, const char *interface, const char *property,
                       sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        const uint64_t *total_ns = userdata;

        return *total_ns == UINT64_MAX
                       ? sd_bus_message_append(reply, "a{st}", 0)
                       : sd_bus_message_append(reply, "a{st}", 1, "total", *total_ns);
}

/* Of an older daemon, which does not know the method. */
static int on_cost(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeBinding *binding = userdata;

        if (streq(binding->name, "broken"))
                return sd_bus_error_setf(error, SD_BUS_ERROR_UNKNOWN_METHOD, "No GetCost()");
        return sd_bus_reply_method_return(m, "s", binding->cost);
}

static int on_reset_one(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        FakeBinding *binding = userdata;

        binding->windows = binding->violations = 0;
        return sd_bus_reply_method_return(m, NULL);
}

#define AT(member) offsetof(FakeBinding, member)

static const sd_bus_vtable binding_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("ResetStatistics", "", "", on_reset_one, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD("GetCost", "", "s", on_cost, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Name", "s", get_string, AT(name), 0),
        SD_BUS_PROPERTY("Unit", "s", get_string, AT(unit), 0),
        SD_BUS_PROPERTY("Source", "s", get_string, AT(source), 0),
        SD_BUS_PROPERTY("Executable", "s", get_string, AT(executable), 0),
        SD_BUS_PROPERTY("Start", "s", get_string, AT(start), 0),
        SD_BUS_PROPERTY("Stop", "s", get_string, AT(stop), 0),
        SD_BUS_PROPERTY("StartOffset", "t", NULL, AT(start_offset), 0),
        SD_BUS_PROPERTY("StopOffset", "t", get_unknown, 0, 0),
        SD_BUS_PROPERTY("WaysOut", "u", get_ways_out, 0, 0),
        SD_BUS_PROPERTY("TailCalls", "u", get_tail_calls, 0, 0),
        SD_BUS_PROPERTY("StartNote", "s", get_string, AT(start_note), 0),
        SD_BUS_PROPERTY("BuildID", "s", get_string, AT(build_id), 0),
        SD_BUS_PROPERTY("Price", "s", get_string, AT(price), 0),
        SD_BUS_PROPERTY("StopNote", "s", get_string, AT(stop_note), 0),
        SD_BUS_PROPERTY("BudgetNSec", "t", NULL, AT(budget_ns), 0),
        SD_BUS_PROPERTY("ConfiguredBudgetNSec", "t", NULL, AT(configured_ns), 0),
        SD_BUS_PROPERTY("Budgets", "a{st}", get_budgets, AT(budget_ns), 0),
        SD_BUS_PROPERTY("ConfiguredBudgets", "a{st}", get_budgets, AT(configured_ns), 0),
        SD_BUS_PROPERTY("State", "s", get_string, AT(state), 0),
        SD_BUS_PROPERTY("StateReason", "s", get_string, AT(reason), 0),
        SD_BUS_PROPERTY("Backend", "s", get_string, AT(backend), 0),
        SD_BUS_PROPERTY("BackendReason", "s", get_string, AT(backend_reason), 0),
        SD_BUS_PROPERTY("Reach", "s", get_string, AT(reach), 0),
        SD_BUS_PROPERTY("Windows", "t", NULL, AT(windows), 0),
        SD_BUS_PROPERTY("Violations", "t", NULL, AT(violations), 0),
        SD_BUS_PROPERTY("RunningNSec", "t", get_time, 0, 0),
        SD_BUS_PROPERTY("WaitingNSec", "t", get_unknown, 0, 0),
        SD_BUS_PROPERTY("SleepingNSec", "t", get_time, 0, 0),
        SD_BUS_PROPERTY("MaxNSec", "t", get_time, 0, 0),
        SD_BUS_PROPERTY("ProbesNSec", "t", get_time, 0, 0),
        SD_BUS_PROPERTY("Histogram", "a(tt)", get_histogram, 0, 0),
        SD_BUS_PROPERTY("Counters", "a{st}", get_counters, 0, 0),
        SD_BUS_VTABLE_END,
};

static int find_object(sd_bus *bus, const char *path, const char *interface, void *userdata,
                       void **ret, sd_bus_error *error) {
        _cleanup_free_ char *name = NULL;
        int r;

        r = sd_bus_path_decode(path, TLOB_BUS_BINDING_PREFIX, &name);
        if (r <= 0)
                return r;
        *ret = fake_find_binding(userdata, name);
        return *ret != NULL;
}

static int enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret,
                     sd_bus_error *error) {
        Fake *fake = userdata;
        char **paths = calloc(fake->n + 1, sizeof(char *));

        if (!paths)
                return -ENOMEM;
        for (size_t i = 0; i < fake->n; i++)
                (void) fake_binding_path(fake->bindings + i, paths + i);
        *ret = paths;
        return 1;
}

static FakeBinding *add(Fake *fake) {
        FakeBinding *binding = fake->bindings + fake->n++;

        *binding = canned[ELEMENTSOF(canned) - 1];
        return binding;
}

static void stop_counting(Fake *fake) {
        for (size_t i = 0; i < fake->n; i++)
                fake->bindings[i].open = 0;
}

static void add_many(Fake *fake) {
        for (unsigned i = 0; i < 1000 && fake->n < BINDINGS_MAX; i++) {
                FakeBinding *binding = add(fake);

                (void) snprintf(binding->unit, sizeof(binding->unit), "many%u.service", i % 10);
                (void) snprintf(binding->name, sizeof(binding->name), "many%u.service/b%04u",
                                i % 10, i);
        }
}

static void add_hostile(Fake *fake) {
        static const char *const texts[] = {
                "<script>document.title='broken'</script>",
                "\x1b[31m\n\u202egnp.exe",
                "\"'`&lt;--><img src=x onerror=document.title='broken'>",
                "\u202e\u2066\t\r__proto__",
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                FakeBinding *binding = add(fake);

                (void) snprintf(binding->name, sizeof(binding->name), "%s", texts[i]);
                (void) snprintf(binding->unit, sizeof(binding->unit), "%s.service", texts[i]);
                (void) snprintf(binding->reason, sizeof(binding->reason), "%s", texts[i]);
                (void) snprintf(binding->executable, sizeof(binding->executable), "/%s", texts[i]);
        }

        FakeBinding *binding = add(fake);
        memset(binding->name, 'x', sizeof(binding->name) - 1);
        memset(binding->unit, 'y', sizeof(binding->unit) - 1);
}

static void add_marks(Fake *fake) {
        static const struct {
                uint64_t windows, untrapped;
        } counts[] = { { 0, 0 }, { 200, 0 }, { 3000, 1 }, { 3000, 2999 }, { 3000, 3000 } };

        for (unsigned i = 0; i < ELEMENTSOF(counts); i++) {
                FakeBinding *binding = add(fake);

                (void) snprintf(binding->name, sizeof(binding->name), "marked%u", i);
                binding->is_mark = true;
                binding->windows = counts[i].windows;
                binding->untrapped = counts[i].untrapped;
                binding->violations = 0;
        }
}

int fake_bindings_start(Fake *fake) {
        int r;

        memcpy(fake->bindings, canned, sizeof(canned));
        fake->n = ELEMENTSOF(canned);
        r = sd_bus_add_fallback_vtable(fake->bus, NULL, TLOB_BUS_BINDING_PREFIX,
                                       TLOB_BUS_BINDING_INTERFACE, binding_vtable, find_object,
                                       fake);
        return r < 0 ? r
                     : sd_bus_add_node_enumerator(fake->bus, NULL, TLOB_BUS_BINDING_PREFIX,
                                                  enumerate, fake);
}

static void end_all(Fake *fake) {
        fake->has_ended = true;
}

static void refuse(Fake *fake) {
        fake->refuses = true;
}

static void remove_all(Fake *fake) {
        fake->n = 0;
}

bool fake_bindings_change(Fake *fake, const char *command) {
        static const struct {
                const char *command;
                void (*change)(Fake *fake);
        } changes[] = {
                { "ended\n", end_all },       { "uncounted\n", stop_counting },
                { "refuse\n", refuse },       { "empty\n", remove_all },
                { "many\n", add_many },       { "marks\n", add_marks },
                { "hostile\n", add_hostile },
        };

        for (size_t i = 0; i < ELEMENTSOF(changes); i++)
                if (streq(command, changes[i].command)) {
                        changes[i].change(fake);
                        return true;
                }
        return false;
}
