/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* config.h: what files mean, and what is said of mistakes in them. */

#include "config/config.h"

#include <stdlib.h>
#include <unistd.h>

#include "config-text.h"

/*
 * Half a million of them: nobody reads them all, and to find out what is new takes no longer each
 * time.
 */
static void test_bad_lines_without_end(void **state) {
        _cleanup_(config_freep) Config *config = NULL;
        const size_t n = 500000;
        _cleanup_free_ char *text = malloc(2 * n);

        assert_non_null(text);
        for (size_t i = 0; i < n; i++)
                memcpy(text + 2 * i, "x\n", 2);
        assert_ok(config_new(&config));
        (void) alarm(10);
        assert_ok(config_parse(config, CONFIG_FILE_BINDINGS, "f", text, 2 * n));
        (void) alarm(0);
        assert_int_equal(config->n_messages, 200);
        assert_int_equal(config->n_more_messages, n - 200);
}

static void test_many_overrides(void **state) {
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_free_ char *text = NULL;
        uint64_t budget_ns;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        for (unsigned i = 0; i < 20000; i++)
                (void) fprintf(f, "[Override b%u]\nBudgetSec=%uus\n", i * 7919 % 20000, i + 1);
        assert_ok(fclose(f));
        config = parse(CONFIG_FILE_OVERRIDES, text);
        assert_int_equal(config->n_overrides, 20000);
        assert_true(config_get_override(config, "b7919", &budget_ns));
        assert_int_equal(budget_ns, 2000);
        config_forget_override(config, "b7919");
        assert_false(config_get_override(config, "b7919", &budget_ns));
        assert_int_equal(config->n_overrides, 19999);
        assert_true(config_get_override(config, "b0", &budget_ns));
        assert_true(config_get_override(config, "b9999", &budget_ns));
}

static void test_defaults(void **state) {
        _cleanup_(config_freep) Config *config = parse(CONFIG_FILE_DAEMON, "");

        assert_int_equal(config->backend, BACKEND_CHOICE_AUTO);
        assert_int_equal(config->rate_limit_interval_ns, UINT64_C(10000000000));
        assert_int_equal(config->rate_limit_burst, 20);
        assert_int_equal(config->overall_rate_limit_burst, 1000);
        assert_int_equal(config->bindings_max, 1024);
        assert_int_equal(config->tasks_max, 8192);
        assert_int_equal(config->ring_buffer_size, 1 << 20);
        assert_int_equal(config->violations_max, 256);
        assert_int_equal(config->n_messages, 0);
}

static void test_daemon(void **state) {
        _cleanup_(config_freep) Config *config = parse(
                CONFIG_FILE_DAEMON, "[Daemon]\nBackend=bpf\nRateLimitIntervalSec=500ms\n"
                                    "RateLimitBurst=5\nOverallRateLimitBurst=50\nBindingsMax=10\n"
                                    "TasksMax=100\n"
                                    "RingBufferSize=65K\nViolationsMax=0\n"
                                    "DeadlineMode=switch-tick\n");

        assert_int_equal(config->n_messages, 0);
        assert_int_equal(config->deadline_mode, DEADLINE_SWITCH_TICK);
        assert_int_equal(config->backend, BACKEND_CHOICE_BPF);
        assert_int_equal(config->rate_limit_interval_ns, 500000000);
        assert_int_equal(config->rate_limit_burst, 5);
        assert_int_equal(config->overall_rate_limit_burst, 50);
        assert_int_equal(config->bindings_max, 10);
        assert_int_equal(config->tasks_max, 100);
        assert_int_equal(config->ring_buffer_size, 128 << 10);
        assert_int_equal(config->violations_max, 0);
}

static void test_daemon_mistakes(void **state) {
        _cleanup_(config_freep) Config *config =
                parse(CONFIG_FILE_DAEMON,
                      "[Daemon]\nBackend=ebpf\nRateLimitIntervalSec=infinity\nRateLimitBurst=0\n"
                      "BindingsMax=-1\nTasksMax=99999999999999999999999\nRingBufferSize=2G\n"
                      "ViolationsMax=1x\nColour=red\n[Deamon]\nBackend=bpf\n[X-Mine]\nz=1\n"
                      "[Daemon]\nDeadlineMode=soon\n");

        assert_int_equal(config->n_messages, 10);
        assert_message(config, 9, "f:15: DeadlineMode=soon is not a deadline mode");
        assert_message(config, 0, "f:2: Backend=ebpf is not a back end");
        assert_message(config, 1, "f:3: RateLimitIntervalSec=infinity");
        assert_message(config, 2, "f:4: RateLimitBurst=0 is not a possible number");
        assert_message(config, 3, "f:5: BindingsMax=-1");
        assert_message(config, 4, "f:6: TasksMax=999");
        assert_message(config, 5, "f:7: RingBufferSize=2G");
        assert_message(config, 6, "f:8: ViolationsMax=1x");
        assert_message(config, 7, "f:9: Unknown key 'Colour' in section [Daemon], ignoring");
        assert_message(config, 8, "f:10: Unknown section [Deamon], ignoring");
        assert_int_equal(config->backend, BACKEND_CHOICE_AUTO);
        assert_int_equal(config->rate_limit_burst, 20);
        assert_int_equal(config->ring_buffer_size, 1 << 20);
}

static void test_daemon_reset(void **state) {
        _cleanup_(config_freep) Config *config =
                parse(CONFIG_FILE_DAEMON,
                      "[Daemon]\nRateLimitBurst=5\nRingBufferSize=1\nRateLimitIntervalSec=0\n");

        assert_int_equal(config->ring_buffer_size, sysconf(_SC_PAGESIZE));
        assert_int_equal(config->rate_limit_interval_ns, 0);
        assert_ok(config_parse(config, CONFIG_FILE_DAEMON, "g", "[Daemon]\nRateLimitBurst=\n", 25));
        assert_int_equal(config->rate_limit_burst, 20);
}

static void test_bindings(void **state) {
        static const char more[] = "[Binding a]\nBudgetSec=1ms\nRunningBudgetSec=\n"
                                   "[Binding b]\nFunction=g\n";
        _cleanup_(config_freep) Config *config =
                parse(CONFIG_FILE_BINDINGS, "[Binding a]\nExecutable=libc.so.6\nFunction=fsync\n"
                                            "BudgetSec=5ms\nRunningBudgetSec=2ms\n");
        Binding *a;

        assert_ok(config_parse(config, CONFIG_FILE_BINDINGS, "g", more, strlen(more)));
        assert_int_equal(config->bindings.n, 2);
        assert_int_equal(config->n_messages, 0);
        a = get(config, "a");
        assert_string_equal(a->source.place, "f:1");
        assert_string_equal(a->start, "fsync");
        assert_int_equal(a->budget_ns[TLOB_BUDGET_TOTAL], 1000000);
        assert_int_equal(a->budget_ns[TLOB_BUDGET_RUNNING], BUDGET_NONE);
        assert_null(a->source.error);
        assert_string_equal(get(config, "b")->source.place, "g:4");
}

static void test_binding_mistakes(void **state) {
        _cleanup_(config_freep) Config *config =
                parse(CONFIG_FILE_BINDINGS,
                      "[Binding a]\nBudgetSec=soon\nColour=red\nFunction=f ; comment\n"
                      "[Binding .b]\nBudgetSec=1ms\n[Binding]\n[Binding a b]\n"
                      "[Binding 12345678901234567890123456789012345678901]\n[Daemon]\n"
                      "[Binding odd\x01]\n[X-Mine]\nz\n");

        assert_int_equal(config->bindings.n, 1);
        assert_int_equal(config->n_messages, 7);
        assert_message(config, 0, "f:3: Unknown key 'Colour' in section [Binding a], ignoring");
        assert_message(config, 1, "f:5: '.b' cannot be the name of a binding");
        assert_message(config, 2, "f:7: Unknown section [Binding], ignoring");
        assert_message(config, 3, "f:8: 'a b'");
        assert_message(config, 4, "f:9: '12345678901234567890123456789012345678901'");
        assert_message(config, 5, "f:10: Unknown section [Daemon]");
        assert_message(config, 6, "f:11: 'odd\\x01'");
        assert_string_equal(get(config, "a")->source.error,
                            "f:2: BudgetSec=soon is not a time: write a number with a unit, such "
                            "as 250us, 1.5ms or 2s");
}

/* A later good value of the same key makes a bad one good, of another key not. */
static void test_binding_repaired(void **state) {
        _cleanup_(config_freep) Config *config =
                parse(CONFIG_FILE_BINDINGS, "[Binding a]\nBudgetSec=soon\nStart=return\n"
                                            "Stop=a b\nPriority=err\n");
        Binding *a = get(config, "a");

        assert_non_null(strstr(a->source.error, "f:2: "));
        assert_ok(config_parse(config, CONFIG_FILE_BINDINGS, "g", "[Binding a]\nBudgetSec=1ms\n",
                               26));
        assert_non_null(strstr(a->source.error, "f:3: "));
        assert_ok(config_parse(config, CONFIG_FILE_BINDINGS, "g", "[Binding a]\nFunction=f\n", 23));
        assert_null(a->source.error);
}

/* Two keys of a section that say what is measured, and differ; sections of their own add up. */
static void test_binding_contradictions(void **state) {
        static const struct {
                const char *lines, *error, *start, *stop;
        } cases[] = {
                { "Function=f\nSyscall=read\n",
                  "f:3: Syscall=read says what is measured, but "
                  "Function= has said so already: write one of them",
                  "f", "return" },
                { "Syscall=read\nFunction=f\n", "f:3: Function=f ", "syscall:read", "return" },
                { "Mark=m\nStart=f\n", "f:3: Start=f ", "usdt:tlob:m__begin", "usdt:tlob:m__end" },
                { "Start=f\nStop=g\nMark=m\n", "f:4: Mark=m ", "f", "g" },
                { "Function=f\nStart=g\n", "f:3: Start=g ", "f", "return" },
                { "Syscall=read\nStop=f\n", "f:3: Stop=f ", "syscall:read", "return" },
                { "Function=f\nSyscall=read\nFunction=g\n", "f:3: Syscall=read ", "g", "return" },
                { "Stop=bad place\nFunction=f\n", "f:2: Stop=bad place ", "f", "return" },
                { "Function=f\nStop=ret-sites\n", NULL, "f", "ret-sites" },
                { "Stop=ret-sites\nFunction=f\n", NULL, "f", "ret-sites" },
                { "Function=f\nFunction=g\n", NULL, "g", "return" },
                { "Function=f\nFunction=\nSyscall=read\n", NULL, "syscall:read", "return" },
                { "Function=f\n[Binding a]\nSyscall=read\n", NULL, "syscall:read", "return" },
                { "Start=f\nStop=g\n[Binding a]\nFunction=h\n", NULL, "h", "return" },
                { "Function=f\nSyscall=read\n[Binding a]\nMark=m\n", NULL, "usdt:tlob:m__begin",
                  "usdt:tlob:m__end" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(config_freep) Config *config = NULL;
                char text[256];
                const Binding *a;

                (void) snprintf(text, sizeof(text), "[Binding a]\n%s", cases[i].lines);
                config = parse(CONFIG_FILE_BINDINGS, text);
                a = get(config, "a");
                assert_string_equal(a->start, cases[i].start);
                assert_string_equal(a->stop, cases[i].stop);
                if (cases[i].error)
                        assert_ptr_equal(strstr(a->source.error, cases[i].error), a->source.error);
                else
                        assert_null(a->source.error);
        }
}

static void test_binding_bad_lines(void **state) {
        char text[512] = "[Binding a]\nBudgetSec=";
        _cleanup_(config_freep) Config *config = NULL;

        memset(text + strlen(text), '1', 300);
        config = parse(CONFIG_FILE_BINDINGS, text);
        assert_non_null(strstr(get(config, "a")->source.error, "f:2: This line is too long"));
        assert_int_equal(config->n_messages, 0);
}

static void test_overrides(void **state) {
        static const char text[] =
                "[Override a]\nBudgetSec=7ms\n[Override x.service/b]\nBudgetSec=infinity\n"
                "[Override c]\nBudgetSec=1h 1ns\n[Override a/b]\n[Override d]\nColour=red\n"
                "BudgetSec=1s\nBudgetSec=\n";
        _cleanup_(config_freep) Config *config =
                parse(CONFIG_FILE_BINDINGS, "[Binding a]\nBudgetSec=5ms\n");
        uint64_t ns = 4711;

        assert_ok(config_parse(config, CONFIG_FILE_OVERRIDES, "o", text, strlen(text)));
        assert_int_equal(config->n_messages, 3);
        assert_message(config, 0, "o:6: BudgetSec=1h 1ns is not a possible budget");
        assert_message(config, 1, "o:7: 'a/b' is not the name of a binding");
        assert_message(config, 2, "o:9: Unknown key 'Colour' in section [Override d]");
        assert_int_equal(get(config, "a")->budget_ns[TLOB_BUDGET_TOTAL], 7000000);
        assert_int_equal(get(config, "a")->configured_budget_ns[TLOB_BUDGET_TOTAL], 5000000);
        assert_false(config_get_override(config, "c", &ns));
        assert_false(config_get_override(config, "d", &ns));
        assert_int_equal(ns, 4711);
        assert_true(config_get_override(config, "x.service/b", &ns));
        assert_int_equal(ns, BUDGET_NONE);
}

/* The minimum may have come to the file since. */
static void test_override_below_minimum(void **state) {
        static const char text[] = "[Override a]\nBudgetSec=2ms\n[Override b]\nBudgetSec=3ms\n";
        _cleanup_(config_freep) Config *config =
                parse(CONFIG_FILE_BINDINGS, "[Binding a]\nBudgetSec=5ms\nBudgetMinSec=2ms\n"
                                            "[Binding b]\nBudgetSec=5ms\nBudgetMinSec=2ms\n");

        assert_ok(config_parse(config, CONFIG_FILE_OVERRIDES, "o", text, strlen(text)));
        assert_int_equal(get(config, "a")->budget_ns[TLOB_BUDGET_TOTAL], 5000000);
        assert_int_equal(get(config, "b")->budget_ns[TLOB_BUDGET_TOTAL], 3000000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_daemon),
                cmocka_unit_test(test_daemon_mistakes),
                cmocka_unit_test(test_daemon_reset),
                cmocka_unit_test(test_bindings),
                cmocka_unit_test(test_binding_mistakes),
                cmocka_unit_test(test_binding_repaired),
                cmocka_unit_test(test_binding_contradictions),
                cmocka_unit_test(test_binding_bad_lines),
                cmocka_unit_test(test_overrides),
                cmocka_unit_test(test_override_below_minimum),
                cmocka_unit_test(test_bad_lines_without_end),
                cmocka_unit_test(test_many_overrides),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
