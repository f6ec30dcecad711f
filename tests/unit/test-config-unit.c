/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * config.h: the sections of units, what is merged of them, and what is said of those that are
 * nearly ours.
 */

#include <sys/resource.h>

#include "config-text.h"
#include "temporary.h"

static Config *parse_unit(const char *unit, const char *text) {
        Config *config = NULL;

        assert_ok(config_new(&config));
        assert_ok(config_parse_unit(config, unit, "f", text, strlen(text)));
        return config;
}

/* As fingers write it. */
static void test_near_keys(void **state) {
        _cleanup_(config_freep) Config *config = parse_unit(
                "x.service", "[X-Tlob a]\nFuncton=f\nbudgetsec=1s\nToleranceWindow=1h\n");

        assert_int_equal(config->n_messages, 3);
        assert_message(config, 0,
                       "f:2: Unknown key 'Functon' in section [X-Tlob a], ignoring; near "
                       "names: Function");
        assert_message(config, 1,
                       "f:3: Unknown key 'budgetsec' in section [X-Tlob a], ignoring; "
                       "near names: BudgetSec");
        assert_message(config, 2,
                       "f:4: Unknown key 'ToleranceWindow' in section [X-Tlob a], "
                       "ignoring; near names: ToleranceWindowSec");
}

static void test_unit(void **state) {
        _cleanup_(config_freep) Config *config =
                parse_unit("foo@a.service", "\xef\xbb\xbf[Unit]\r\nDescription=x\r\n"
                                            "[X-Tlob request]\r\nFunction=f\r\nBudgetSec=5ms\r\n"
                                            "[Service]\nExecStart=/bin/x\nBudgetSec=never\n"
                                            "[X-Tlob  sync ]\nExecutable=libc.so.6\n"
                                            "[X-Other z]\nFunction=g\n"
                                            "[X-Tlob request]\nBudgetSec=7ms\n");
        const Binding *binding;

        assert_int_equal(config->n_messages, 1);
        assert_message(config, 0, "f:9: 'sync ' cannot be the name of a binding");
        assert_int_equal(config->bindings.n, 1);
        binding = get(config, "foo@a.service/request");
        assert_string_equal(binding->unit, "foo@a.service");
        assert_string_equal(binding->source.place, "f:3");
        assert_string_equal(binding->start, "f");
        assert_int_equal(binding->configured_budget_ns[TLOB_BUDGET_TOTAL], 7000000);
}

/* systemd is as silent about a section that is nearly ours as about ours. */
static void test_unit_near_misses(void **state) {
        _cleanup_(config_freep) Config *config =
                parse_unit("x.service", "[X-tlob f]\nFunction=f\n[X-Tlobd f]\n[Tlob f]\n"
                                        "[X-Container]\n[X-Tlob f]\nFunction=f\nBudgetSec=1ms\n");

        assert_int_equal(config->n_messages, 3);
        assert_message(config, 0, "f:1: Section [X-tlob f] is not read: write [X-Tlob NAME]");
        assert_message(config, 1, "f:3: Section [X-Tlobd f] is not read");
        assert_message(config, 2, "f:4: Section [Tlob f] is not read");
        assert_int_equal(config->bindings.n, 1);
        assert_null(get(config, "x.service/f")->source.error);
}

/*
 * One letter may be wrong, missing or too much, or two swapped. What others call theirs is left
 * alone.
 */
static void test_unit_slips(void **state) {
        static const char *const slips[] = {
                "X-Tolb a",  "X-Tlop a", "X-Tob a",  "X-Lob a", "X-TTlob a",
                "X-Tloob a", "Tolb a",   "X-LTob a", "x-tlo a",
        };
        static const char *const foreign[] = {
                "X-Latency a", "X-Tool a", "X-Tolb", "X-Glob",
                "X-T a",       "X-Tbol a", "X- a",   "X-Tl a",
        };

        for (size_t i = 0; i < ELEMENTSOF(slips) + ELEMENTSOF(foreign); i++) {
                bool is_slip = i < ELEMENTSOF(slips);
                _cleanup_(config_freep) Config *config = NULL;
                char text[64], expected[128];

                (void) snprintf(text, sizeof(text), "[%s]\nFunction=f\n",
                                is_slip ? slips[i] : foreign[i - ELEMENTSOF(slips)]);
                config = parse_unit("x.service", text);
                assert_int_equal(config->n_messages, is_slip);
                assert_int_equal(config->bindings.n, 0);
                if (!is_slip)
                        continue;
                (void) snprintf(expected, sizeof(expected),
                                "f:1: Section [%s] is not read: write [X-Tlob NAME]", slips[i]);
                assert_message(config, 0, expected);
        }
}

static void test_number_without_unit(void **state) {
        _cleanup_(config_freep) Config *daemon =
                parse(CONFIG_FILE_DAEMON, "[Daemon]\nRateLimitIntervalSec=1s5\n");
        _cleanup_(config_freep) Config *override =
                parse(CONFIG_FILE_OVERRIDES, "[Override a]\nBudgetSec=1ms1\n");

        assert_message(
                daemon, 0,
                "f:2: RateLimitIntervalSec=1s5 is not a time: a number after a unit needs a unit");
        assert_message(
                override, 0,
                "f:2: BudgetSec=1ms1 is not a time, ignoring: a number after a unit needs a unit");
        assert_int_equal(override->n_overrides, 0);
}

/* The sentence names the line. */
static void test_own_to_each(void **state) {
        _cleanup_(config_freep) Config *config = parse(
                CONFIG_FILE_BINDINGS, "[Binding a]\nExecutable=/proc/self/exe\nFunction=main\n");

        assert_non_null(
                strstr(get(config, "a")->source.error,
                       "f:2: Executable=/proc/self/exe names a different file in each process"));
}

/* The section of the other kind of file. */
static void test_mixed_up_sections(void **state) {
        static const char text[] = "[X-Tlob a]\nFunction=f\nBudgetSec=1ms\n";
        _cleanup_(config_freep) Config *unit =
                parse_unit("x.service", "[Binding a]\nFunction=f\nBudgetSec=1ms\n");
        _cleanup_(config_freep) Config *own = NULL;

        assert_int_equal(unit->n_messages, 1);
        assert_message(unit, 0,
                       "f:1: Section [Binding a] is not read in the files of a unit: write "
                       "[X-Tlob a]");
        assert_int_equal(unit->bindings.n, 0);

        assert_ok(config_new(&own));
        assert_ok(config_parse(own, CONFIG_FILE_BINDINGS, "f", text, strlen(text)));
        assert_int_equal(own->n_messages, 1);
        assert_message(own, 0,
                       "f:1: Section [X-Tlob a] is only read in the files of a unit, which "
                       "'tlobctl verify --unit=UNIT' checks: write [Binding NAME] here");
        assert_int_equal(own->bindings.n, 0);
}

/*
 * Drop-ins come after the fragment: the later key wins, an empty value resets, errors are mended.
 */
static void test_unit_merging(void **state) {
        static const char *const files[] = {
                "[X-Tlob a]\nFunction=f\nBudgetSec=5ms\nPriority=err\n"
                "[X-Tlob bad]\nFunction=f\nBudgetSec=soon\n"
                "[X-Tlob worse]\nFunction=f\nBudgetSec=1s\n",
                "[X-Tlob a]\nBudgetSec=6ms\nPriority=\n[X-Tlob bad]\nBudgetSec=1ms\n"
                "[X-Tlob worse]\nBudgetSec=1parsec\n[X-Tlob b]\nEnabled=no\n",
        };
        _cleanup_(config_freep) Config *config = NULL;
        const Binding *binding;

        assert_ok(config_new(&config));
        assert_ok(config_parse_unit(config, "x.service", "one", files[0], strlen(files[0])));
        assert_ok(config_parse_unit(config, "x.service", "two", files[1], strlen(files[1])));
        assert_int_equal(config->n_messages, 0);
        assert_int_equal(config->bindings.n, 4);

        binding = get(config, "x.service/a");
        assert_int_equal(binding->configured_budget_ns[TLOB_BUDGET_TOTAL], 6000000);
        assert_int_equal(binding->priority, LOG_WARNING);
        assert_string_equal(binding->source.place, "one:1");
        assert_null(get(config, "x.service/bad")->source.error);
        assert_non_null(
                strstr(get(config, "x.service/worse")->source.error, "two:7: BudgetSec=1parsec"));
        assert_false(get(config, "x.service/b")->enabled);
}

static void test_unit_mistakes(void **state) {
        _cleanup_(config_freep) Config *config =
                parse_unit("x.service", "Function=f\n[X-Tlob]\nFunction=f\n[X-Tlob .x]\n"
                                        "[X-Tlob a]\nUnit=y.service\nColour=red\n"
                                        "Function=\\\n[X-Tlob c]\nBudgetSec=1s\n"
                                        "[Service]\nExecStart=x \\\n# comment\n[X-Tlob d]\n"
                                        "Function=f\n[X-Tlob e");

        assert_int_equal(config->n_messages, 6);
        assert_message(config, 0, "f:1: This line is not in any section");
        assert_message(config, 1, "f:2: This section has no name");
        assert_message(config, 2, "f:4: '.x' cannot be the name of a binding");
        assert_message(config, 3, "f:6: Unit= is not allowed in the files of a unit");
        assert_message(config, 4, "f:7: Unknown key 'Colour' in section [X-Tlob a]");
        assert_message(config, 5, "f:16: This section begins with '['");

        assert_int_equal(config->bindings.n, 1);
        assert_string_equal(get(config, "x.service/a")->unit, "x.service");
        assert_string_equal(get(config, "x.service/a")->source.error,
                            "f:8: This line continues in the next one: write it on one line");
}

/* A line of another section, of any length, is nothing to us. */
static void test_unit_long_lines(void **state) {
        static const char before[] = "[Service]\nExecStart=/bin/sh -c '",
                          after[] = "'\n[X-Tlob a]\nFunction=f\n";
        size_t n = 4 << 20, size = strlen(before) + n + strlen(after);
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_free_ char *text = malloc(size);

        assert_non_null(text);
        memcpy(text, before, strlen(before));
        memset(text + strlen(before), 'x', n);
        memcpy(text + strlen(before) + n, after, strlen(after));
        assert_ok(config_new(&config));
        assert_ok(config_parse_unit(config, "x.service", "f", text, size));
        assert_int_equal(config->n_messages, 0);
        assert_string_equal(get(config, "x.service/a")->source.place, "f:3");
}

/* A template's file is that of each instance: what is wrong with it is said once. */
static void test_unit_instances(void **state) {
        _cleanup_(config_freep) Config *config = NULL;
        static const char text[] = "[X-Tlob a]\nColour=red\n",
                          override[] = "[Override x@2.service/a]\nBudgetSec=9ms\n";
        uint64_t budget_ns;

        assert_ok(config_new(&config));
        assert_ok(config_parse_unit(config, "x@1.service", "f", text, strlen(text)));
        assert_ok(config_parse_unit(config, "x@2.service", "f", text, strlen(text)));
        assert_int_equal(config->n_messages, 1);
        assert_int_equal(config->bindings.n, 2);

        assert_ok(config_parse(config, CONFIG_FILE_OVERRIDES, "o", override, strlen(override)));
        config_apply_overrides(config);
        assert_true(config_get_override(config, "x@2.service/a", &budget_ns));
        assert_int_equal(get(config, "x@2.service/a")->budget_ns[TLOB_BUDGET_TOTAL], 9000000);
        assert_int_equal(get(config, "x@1.service/a")->budget_ns[TLOB_BUDGET_TOTAL], BUDGET_NONE);
}

static void test_unit_file(void **state) {
        _cleanup_(temporary_done) Temporary tmp = {};
        _cleanup_(config_freep) Config *config = NULL;

        temporary_init(&tmp);
        temporary_write(&tmp, "x.service", "[X-Tlob a]\nFunction=f\n");
        assert_ok(config_new(&config));
        assert_ok(config_load_unit(config, "x.service", temporary_path(&tmp, "x.service")));
        assert_ok(config_load_unit(config, "x.service", temporary_path(&tmp, "gone.conf")));
        assert_ok(config_load_unit(config, "x.service", tmp.path));
        assert_int_equal(config->bindings.n, 1);
        assert_int_equal(config->n_messages, 1);
        assert_message(config, 0, "Is a directory");
        assert_false(config->is_incomplete);
}

/* That it cannot be opened says nothing of what is in it. */
static void test_unit_file_that_is_not_known(void **state) {
        _cleanup_(temporary_done) Temporary tmp = {};
        _cleanup_(config_freep) Config *config = NULL;
        struct rlimit before, none = { .rlim_cur = 3 };
        int r;

        temporary_init(&tmp);
        temporary_write(&tmp, "x.service", "[X-Tlob a]\nFunction=f\n");
        assert_ok(config_new(&config));
        assert_ok(getrlimit(RLIMIT_NOFILE, &before));
        none.rlim_max = before.rlim_max;
        assert_ok(setrlimit(RLIMIT_NOFILE, &none));
        r = config_load_unit(config, "x.service", temporary_path(&tmp, "x.service"));
        assert_ok(setrlimit(RLIMIT_NOFILE, &before));
        assert_ok(r);
        assert_int_equal(config->bindings.n, 0);
        assert_message(config, 0, "Too many open files");
        assert_true(config->is_incomplete);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_unit),
                cmocka_unit_test(test_unit_merging),
                cmocka_unit_test(test_unit_mistakes),
                cmocka_unit_test(test_unit_near_misses),
                cmocka_unit_test(test_unit_slips),
                cmocka_unit_test(test_number_without_unit),
                cmocka_unit_test(test_own_to_each),
                cmocka_unit_test(test_mixed_up_sections),
                cmocka_unit_test(test_unit_long_lines),
                cmocka_unit_test(test_unit_instances),
                cmocka_unit_test(test_unit_file),
                cmocka_unit_test(test_unit_file_that_is_not_known),
                cmocka_unit_test(test_near_keys),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
