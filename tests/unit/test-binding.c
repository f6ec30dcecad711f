/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * binding.h: names, every key with good and bad values, what is checked as a whole, and resolution
 * in libc.
 */

#include "binding/binding.h"

#include <syslog.h>

#include "binding/keys.h"
#include "binding/resolve.h"
#include "binding/window-key.h"
#include "test.h"

static Binding *make(const char *name) {
        Binding *binding = NULL;

        assert_ok(binding_new(name, &binding));
        return binding;
}

static void set(Binding *binding, const char *key, const char *value) {
        _cleanup_free_ char *error = NULL;

        assert_ok(binding_set_key(binding, key, value, &error));
        assert_null(error);
}

static void assert_get(const Binding *binding, const char *key, const char *value) {
        _cleanup_free_ char *text = NULL;

        assert_int_equal(binding_get_key(binding, key, &text), value != NULL);
        if (value)
                assert_string_equal(text, value);
        else
                assert_null(text);
}

static void test_names(void **state) {
        static const char *const good[] = { "a", "fsync", "A-b_c.9", "-",
                                            "1234567890123456789012345678901234567890" };
        static const char *const bad[] = {
                "",    ".a",          "a b", "a/b",
                "a@b", "caf\xc3\xa9", "a\n", "12345678901234567890123456789012345678901",
        };
        static const char *const full[] = { "fsync", "nginx.service/request", "a@b.service/x",
                                            "user-1.slice/x", "dev-\\x2d.service/x" };
        static const char *const not_full[] = {
                "/x", "x/", "nginx/x", "a.service/b/c", ".service/x", "a.service/", "@.service/x"
        };

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                assert_true(binding_name_is_valid(good[i]));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_false(binding_name_is_valid(bad[i]));
        for (size_t i = 0; i < ELEMENTSOF(full); i++)
                assert_true(binding_full_name_is_valid(full[i]));
        for (size_t i = 0; i < ELEMENTSOF(not_full); i++) {
                Binding *binding = NULL;

                assert_int_equal(binding_new(not_full[i], &binding), -EINVAL);
                assert_null(binding);
        }
}

static void test_defaults(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("x");

        assert_true(binding->enabled);
        assert_false(binding->required);
        assert_int_equal(binding->priority, LOG_WARNING);
        assert_int_equal(binding->choice, BACKEND_CHOICE_AUTO);
        assert_int_equal(binding_budget_ns(binding), BUDGET_NONE);
        for (size_t i = 0; i < TLOB_N_BUDGETS; i++)
                assert_int_equal(binding->budget_ns[i], BUDGET_NONE);
        for (const char *const *key = binding_keys(); *key; key++)
                if (!streq(*key, "Function") && !streq(*key, "Syscall") && !streq(*key, "Mark"))
                        assert_get(binding, *key, NULL);
}

/* Each key comes back as it was given, and an empty value resets it. */
static void test_keys(void **state) {
        static const struct {
                const char *key, *value, *back;
        } cases[] = {
                { "Executable", "/usr/bin/a b", "/usr/bin/a b" },
                { "Executable", "libc.so.6", "libc.so.6" },
                { "Start", "fsync+0x10", "fsync+0x10" },
                { "Stop", "return", "return" },
                { "BudgetSec", "1500us", "1.5ms" },
                { "BudgetSec", "infinity", "infinity" },
                { "BudgetSec", "1us", "1us" },
                { "BudgetSec", "60min", "1h" },
                { "RunningBudgetSec", "1ms", "1ms" },
                { "WaitingBudgetSec", "2ms", "2ms" },
                { "SleepingBudgetSec", "3ms", "3ms" },
                { "Unit", "foo@.service", "foo@.service" },
                { "Unit", "user-1000.slice", "user-1000.slice" },
                { "Backend", "kernel", "kernel" },
                { "Backend", "auto", NULL },
                { "Priority", "err", "err" },
                { "Priority", "3", "err" },
                { "Priority", "warning", NULL },
                { "OnViolation", "capture@.service", "capture@.service" },
                { "OnViolationIntervalSec", "90s", "1min 30s" },
                { "OnViolationIntervalSec", "1min", NULL },
                { "Tolerance", "3/100", "3/100" },
                { "Tolerance", "0.10%", "0.10%" },
                { "ToleranceWindowSec", "90min", "1h 30min" },
                { "ToleranceWindowSec", "720h", "720h" },
                { "ToleranceWindowSec", "1h", NULL },
                { "Required", "yes", "yes" },
                { "Required", "FALSE", NULL },
                { "Enabled", "off", "no" },
                { "Enabled", "1", NULL },
        };
        _cleanup_(binding_freep) Binding *binding = make("x");

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                set(binding, cases[i].key, cases[i].value);
                assert_get(binding, cases[i].key, cases[i].back);
                set(binding, cases[i].key, "");
                assert_get(binding, cases[i].key, NULL);
        }

        assert_int_equal(binding_set_key(binding, "Budget", "1ms", NULL), -ENOENT);
        assert_int_equal(binding_set_key(binding, "budgetsec", "1ms", NULL), -ENOENT);
}

static void test_function(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("x");
        char *value = NULL;

        set(binding, "Function", "fsync");
        assert_string_equal(binding->start, "fsync");
        assert_true(binding_stop_is_return(binding));
        assert_int_equal(binding_get_key(binding, "Function", &value), -ENOENT);
        set(binding, "Stop", "fsync+4");
        assert_false(binding_stop_is_return(binding));
        set(binding, "Function", "ns::f(int, char const*)");
        assert_string_equal(binding->start, "ns::f(int, char const*)");
        assert_int_equal(binding_set_key(binding, "Start", "ns::f(int,\tchar)", NULL), -EINVAL);
        set(binding, "Function", "");
        assert_null(binding->start);
        assert_null(binding->stop);
}

static void test_build_id(void **state) {
        static const char *const bad[] = { "123456", "123456789", "0x12345678", "12 34567", "-" };
        _cleanup_(binding_freep) Binding *binding = make("x");

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_free_ char *error = NULL;

                assert_int_equal(binding_set_key(binding, "BuildID", bad[i], &error), -EINVAL);
                assert_non_null(strstr(error, "is not a build-id"));
        }
        set(binding, "BuildID", "00ABCDEF");
        assert_get(binding, "BuildID", "00abcdef");
}

static void test_bad_values(void **state) {
        static const struct {
                const char *key, *value;
                int error;
                const char *words;
        } cases[] = {
                { "Executable", "bin/x", -EINVAL, "Executable=bin/x is neither" },
                { "Executable", "./x", -EINVAL, "neither an absolute path" },
                { "Executable", "/proc/self/exe", -EINVAL, "tlobd included" },
                { "Executable", "/proc/thread-self/exe", -EINVAL, "write the path" },
                { "Executable", "//proc/.///self/./root/bin/x", -EINVAL, "in each process" },
                { "Executable", "/proc/self", -EINVAL, "in each process" },
                { "Executable", "/dev/fd/3", -EINVAL, "in each process" },
                { "Executable", "/dev/stdin", -EINVAL, "in each process" },
                { "Executable", "/bin/\xff", -EINVAL, "/bin/\\xff" },
                { "Executable", "/bin/x\n", -EINVAL, "\\x0a" },
                { "Executable", " /bin/x", -EINVAL, "neither" },
                { "Executable", "/bin/x ", -EINVAL, "white space" },
                { "Executable", "/bin/x ;y", -EINVAL, "semicolon" },
                { "Executable", "/bin/x\\", -EINVAL, "ends with a backslash" },
                { "Start", "return", -EINVAL, "only Stop=" },
                { "Function", "return", -EINVAL, "Function=return" },
                { "Start", "a b", -EINVAL, "Start=a b" },
                { "Stop", "\x01", -EINVAL, "\\x01" },
                { "BudgetSec", "1ms1", -EINVAL,
                  "BudgetSec=1ms1 is not a time: a number after a unit needs a unit" },
                { "BudgetSec", "0", -ERANGE, "BudgetSec=0 is not a possible budget" },
                { "BudgetSec", "999ns", -ERANGE, "from 1us" },
                { "BudgetSec", "3601s", -ERANGE, "1h" },
                { "BudgetSec", "99999999999999999999h", -ERANGE, "1h" },
                { "SleepingBudgetSec", "soon", -EINVAL, "SleepingBudgetSec=soon is not a time" },
                { "Unit", "nginx", -EINVAL, "nginx.service" },
                { "Unit", "a.socket", -EINVAL, "a.socket" },
                { "Unit", "../a.service", -EINVAL, "not the name" },
                { "Backend", "ebpf", -EINVAL, "auto, kernel or bpf" },
                { "Priority", "8", -EINVAL, "0 to 7" },
                { "Priority", "loud", -EINVAL, "emerg" },
                { "Required", "maybe", -EINVAL, "neither yes nor no" },
        };
        _cleanup_(binding_freep) Binding *binding = make("x");

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *error = NULL;

                assert_int_equal(binding_set_key(binding, cases[i].key, cases[i].value, &error),
                                 cases[i].error);
                assert_non_null(strstr(error, cases[i].words));
                if (!streq(cases[i].key, "Function"))
                        assert_get(binding, cases[i].key, NULL);
        }
}

static void test_long_values(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("x");
        char longest[BINDING_VALUE_MAX + 2];

        memset(longest, 'f', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        for (const char *const *key = binding_keys(); *key; key++) {
                _cleanup_free_ char *error = NULL;

                assert_int_equal(binding_set_key(binding, *key, longest, &error), -EINVAL);
                assert_non_null(strstr(error, "too long"));
        }
}

/* Those of one process are good, and so is what only looks like the others. */
static void test_paths_of_a_process(void **state) {
        static const char *const good[] = {
                "/proc/1/exe",        "/proc/selfish", "/processes/self/x",
                "/srv/proc/self/exe", "/dev/shm/x",    "/",
        };
        _cleanup_(binding_freep) Binding *binding = make("x");

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                assert_ok(binding_set_key(binding, "Executable", good[i], NULL));
                assert_get(binding, "Executable", good[i]);
        }
}

static void assert_check(const Binding *binding, const char *words) {
        _cleanup_free_ char *error = NULL;

        assert_int_equal(binding_check(binding, &error), -EINVAL);
        assert_non_null(strstr(error, words));
}

static void test_check(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("x");

        assert_check(binding, "Executable= is missing");
        set(binding, "Executable", "libc.so.6");
        assert_check(binding, "Start= is missing");
        set(binding, "Start", "fsync");
        assert_check(binding, "Stop= is missing");
        set(binding, "Stop", "fsync");
        assert_check(binding, "both 'fsync'");
        set(binding, "Stop", "return");
        assert_check(binding, "BudgetSec= is missing");
        set(binding, "BudgetSec", "infinity");
        assert_ok(binding_check(binding, NULL));
        set(binding, "BudgetSec", "");
        set(binding, "WaitingBudgetSec", "5ms");
        assert_ok(binding_check(binding, NULL));
        assert_int_equal(binding_budget_ns(binding), 5000000);
        set(binding, "SleepingBudgetSec", "4ms");
        assert_int_equal(binding_budget_ns(binding), 4000000);
        set(binding, "BudgetSec", "1s");
        assert_int_equal(binding_budget_ns(binding), 1000000000);
}

static void test_minimum(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("x");

        set(binding, "Executable", "libc.so.6");
        set(binding, "Function", "fsync");
        set(binding, "BudgetMinSec", "2ms");
        assert_ok(binding_check(binding, NULL));
        assert_int_equal(binding_budget_ns(binding), BUDGET_NONE);
        set(binding, "BudgetSec", "2ms");
        assert_check(binding, "BudgetMinSec= is not shorter");
        set(binding, "BudgetSec", "3ms");
        assert_ok(binding_check(binding, NULL));
        assert_int_equal(binding_budget_ns(binding), 3000000);
}

static void assert_not_resolved(Binding *binding, int error, const char *words) {
        _cleanup_free_ char *sentence = NULL;
        BindingFile *file = NULL;

        assert_int_equal(binding_resolve(binding, &file, &sentence), error);
        assert_non_null(strstr(sentence, words));
        assert_null(file);
}

static void test_resolve(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("x");
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        char place[64];
        uint64_t offset;

        set(binding, "Executable", "libc.so.6");
        set(binding, "Function", "fsync");
        set(binding, "BudgetSec", "5ms");
        assert_ok(binding_resolve(binding, &file, NULL));
        file = binding_file_free(file);
        assert_int_equal(binding->resolved.path[0], '/');
        assert_string_equal(binding->resolved.sites.start.function, "fsync");
        offset = binding->resolved.sites.start.offset;

        /* Twice the same place, in two ways of writing it. */
        (void) snprintf(place, sizeof(place), "0x%llx", (unsigned long long) offset);
        set(binding, "Stop", place);
        assert_not_resolved(binding, -EINVAL, "the same place");
        assert_int_equal(binding->resolved.sites.start.offset, offset);
        set(binding, "Stop", "close");
        assert_ok(binding_resolve(binding, &file, NULL));
        assert_int_not_equal(binding->resolved.sites.stop.offset,
                             binding->resolved.sites.start.offset);

        /* Of another build nothing is looked at. */
        assert_non_null(binding->resolved.build_id);
        set(binding, "BuildID", binding->resolved.build_id);
        file = binding_file_free(file);
        assert_ok(binding_resolve(binding, &file, NULL));
        set(binding, "BuildID", "0123456789ABCDEF");
        set(binding, "Stop", "no_such_function");
        assert_not_resolved(binding, -EAGAIN, ", not BuildID=0123456789abcdef");
        set(binding, "BuildID", "");
        assert_not_resolved(binding, -ESRCH, "no_such_function");
        set(binding, "Executable", "libnothing.so.0");
        assert_not_resolved(binding, -ENOENT, "have no library 'libnothing.so.0'");
        set(binding, "Executable", "/nonexistent/x");
        assert_not_resolved(binding, -ENOENT, "/nonexistent/x");
        set(binding, "Executable", "");
        assert_not_resolved(binding, -EINVAL, "Executable= is missing");
        assert_non_null(binding->resolved.path);
}

static void test_errors(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("x");

        assert_null(binding->source.error);
        assert_ok(binding_add_error(binding, "Start", "a:1: one"));
        assert_ok(binding_add_error(binding, "Stop", "a:2: two"));
        assert_string_equal(binding->source.error, "a:1: one");
        assert_ok(binding_add_error(binding, "Start", "a:3: three"));
        assert_string_equal(binding->source.error, "a:2: two");
        binding_clear_error(binding, "Stop");
        binding_clear_error(binding, "Stop");
        assert_string_equal(binding->source.error, "a:3: three");
        binding_clear_error(binding, "Start");
        assert_null(binding->source.error);
}

static void test_state(void **state) {
        _cleanup_(binding_freep) Binding *binding = make("x"), *other = make("x");

        assert_ok(binding_set_state(binding, BINDING_FAILED, "because"));
        assert_string_equal(binding_state_to_string(binding->measurement.state), "failed");
        assert_string_equal(binding->measurement.reason, "because");
        assert_ok(binding_set_state(binding, BINDING_ACTIVE, NULL));
        assert_null(binding->measurement.reason);

        set(binding, "Function", "fsync");
        assert_false(binding_same_probes(binding, other));
        set(other, "Start", "fsync");
        set(other, "Stop", "return");
        set(other, "BudgetSec", "1s");
        set(other, "Priority", "err");
        assert_true(binding_same_probes(binding, other));
        set(other, "Enabled", "no");
        assert_false(binding_same_probes(binding, other));
}

/*
 * Whatever is in it, and whatever will be: each byte of what became of a binding goes to the one
 * that takes its place, and none of how that is configured is touched.
 */
static void test_nothing_stays_behind(void **state) {
        const size_t first = offsetof(Binding, former), n = sizeof(Binding) - first;
        _Alignas(Binding) unsigned char from[sizeof(Binding)], to[sizeof(Binding)];
        unsigned char was[2][sizeof(Binding)];
        Binding former = {};

        for (size_t i = 0; i < sizeof(Binding); i++) {
                from[i] = (unsigned char) (1 + i % 127);
                to[i] = (unsigned char) (128 + i % 127);
        }
        ((Binding *) from)->former = &former;
        ((Binding *) to)->former = NULL;
        memcpy(was[0], from, sizeof(from));
        memcpy(was[1], to, sizeof(to));
        binding_adopt((Binding *) to, (Binding *) from);
        assert_ptr_equal(former.latter, to);
        assert_memory_equal(to + first, was[0] + first, n);
        assert_memory_equal(from + first, was[1] + first, n);
        assert_memory_equal(to, was[1], first);
        assert_memory_equal(from, was[0], first);
}

static void test_handed_over(void **state) {
        _cleanup_(binding_freep) Binding *old = make("x"), *new = make("x");
        Histogram lengths = { .counts[3] = 7 };

        set(old, "Function", "fsync");
        set(new, "Function", "fsync");
        set(new, "BudgetSec", "7ms");
        old->resolved.path = strdup("/usr/lib/libc.so.6");
        old->resolved.sites.start.offset = 0x1234;
        old->cgroup.path = strdup("/x.service");
        old->cgroup.id = 42;
        old->watch.descriptor = 5;
        old->look.remark = strdup("Nobody has it");
        old->measurement.index = 3;
        old->limit.suppressed = 9;
        assert_ok(binding_set_state(old, BINDING_ACTIVE, "because"));
        assert_ok(past_add_lengths(&old->measurement.past, NULL, &lengths));
        new->cgroup.path = strdup("what it had before goes with the old one");

        binding_adopt(new, old);
        assert_string_equal(new->resolved.path, "/usr/lib/libc.so.6");
        assert_int_equal(new->resolved.sites.start.offset, 0x1234);
        assert_string_equal(new->cgroup.path, "/x.service");
        assert_int_equal(new->cgroup.id, 42);
        assert_int_equal(new->watch.descriptor, 5);
        assert_string_equal(new->look.remark, "Nobody has it");
        assert_int_equal(new->measurement.state, BINDING_ACTIVE);
        assert_string_equal(new->measurement.reason, "because");
        assert_int_equal(new->measurement.index, 3);
        assert_int_equal(new->measurement.past.lengths->counts[3], 7);
        assert_int_equal(new->limit.suppressed, 9);
        assert_int_equal(binding_budget_ns(new), 7000000);
        assert_null(old->resolved.path);
        assert_null(old->measurement.past.lengths);
}

static void test_key(void **state) {
        static const char *const good[] = {
                "arg1", "arg12", "arg2:u32", "arg3:s8", "arg6:u64", ""
        };
        static const char *const bad[] = { "arg",    "arg0",  "arg13",    "arg01",    "arg1 ",
                                           "arg1.5", "Arg1",  "1",        "arg-1",    "arg+1",
                                           "arg1:",  "arg1u", "arg1:u31", "arg1:u32 " };
        _cleanup_(binding_freep) Binding *binding = make("keyed");
        char text[WINDOW_KEY_MAX];
        KeyArgument key;

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                assert_ok(window_key_parse(good[i], &binding->key));
                assert_string_equal(window_key_format(binding, text), good[i]);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (window_key_parse(bad[i], &key) != -EINVAL)
                        fail_msg("\"%s\" is taken for a key", bad[i]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_key),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_keys),
                cmocka_unit_test(test_function),
                cmocka_unit_test(test_build_id),
                cmocka_unit_test(test_bad_values),
                cmocka_unit_test(test_long_values),
                cmocka_unit_test(test_paths_of_a_process),
                cmocka_unit_test(test_check),
                cmocka_unit_test(test_minimum),
                cmocka_unit_test(test_resolve),
                cmocka_unit_test(test_errors),
                cmocka_unit_test(test_state),
                cmocka_unit_test(test_nothing_stays_behind),
                cmocka_unit_test(test_handed_over),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
