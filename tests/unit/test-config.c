/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * config.h: what files mean and what is said of mistakes in them, on text in memory; precedence,
 * overrides and what is written, in a directory made for the test.
 */

#include "config.h"

#include <sys/stat.h>
#include <syslog.h>

#include "temporary.h"
#include "test.h"

static Config *parse(ConfigFileKind kind, const char *text) {
        Config *config = NULL;

        assert_ok(config_new(&config));
        assert_ok(config_parse(config, kind, "f", text, strlen(text)));
        return config;
}

static void assert_message(const Config *config, size_t i, const char *words) {
        assert_in_range(i + 1, 1, config->n_messages);
        assert_non_null(strstr(config->messages[i].text, words));
        assert_int_equal(config->messages[i].level, LOG_WARNING);
}

static Binding *get(const Config *config, const char *name) {
        Binding *binding = binding_table_get(&config->bindings, name);

        assert_non_null(binding);
        return binding;
}

static void test_defaults(void **state) {
        _cleanup_(config_freep) Config *config = parse(CONFIG_FILE_DAEMON, "");

        assert_int_equal(config->backend, BACKEND_CHOICE_AUTO);
        assert_int_equal(config->rate_limit_interval_ns, UINT64_C(10000000000));
        assert_int_equal(config->rate_limit_burst, 20);
        assert_int_equal(config->bindings_max, 1024);
        assert_int_equal(config->tasks_max, 8192);
        assert_int_equal(config->ring_buffer_size, 1 << 20);
        assert_int_equal(config->violations_max, 256);
        assert_int_equal(config->n_messages, 0);
}

static void test_daemon(void **state) {
        _cleanup_(config_freep) Config *config =
                parse(CONFIG_FILE_DAEMON, "[Daemon]\nBackend=bpf\nRateLimitIntervalSec=500ms\n"
                                          "RateLimitBurst=5\nBindingsMax=10\nTasksMax=100\n"
                                          "RingBufferSize=65K\nViolationsMax=0\n"
                                          "DeadlineMode=switch-tick\n");

        assert_int_equal(config->n_messages, 0);
        assert_int_equal(config->deadline_mode, DEADLINE_SWITCH_TICK);
        assert_int_equal(config->backend, BACKEND_CHOICE_BPF);
        assert_int_equal(config->rate_limit_interval_ns, 500000000);
        assert_int_equal(config->rate_limit_burst, 5);
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
        assert_message(config, 9, "f:15: DeadlineMode=soon is no deadline mode");
        assert_message(config, 0, "f:2: Backend=ebpf is no back end");
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
        assert_string_equal(a->source, "f:1");
        assert_string_equal(a->start, "fsync");
        assert_int_equal(a->budget_ns[TLOB_BUDGET_TOTAL], 1000000);
        assert_int_equal(a->budget_ns[TLOB_BUDGET_RUNNING], BUDGET_NONE);
        assert_null(a->error);
        assert_string_equal(get(config, "b")->source, "g:4");
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
        assert_string_equal(get(config, "a")->error,
                            "f:2: BudgetSec=soon is not a time: write a number with a unit, such "
                            "as 250us, 1.5ms or 2s");
}

/* A later good value of the same key makes a bad one good, of another key not. */
static void test_binding_repaired(void **state) {
        _cleanup_(config_freep) Config *config =
                parse(CONFIG_FILE_BINDINGS, "[Binding a]\nBudgetSec=soon\nStart=return\n"
                                            "Stop=a b\nPriority=err\n");
        Binding *a = get(config, "a");

        assert_non_null(strstr(a->error, "f:2: "));
        assert_ok(config_parse(config, CONFIG_FILE_BINDINGS, "g", "[Binding a]\nBudgetSec=1ms\n",
                               26));
        assert_non_null(strstr(a->error, "f:3: "));
        assert_ok(config_parse(config, CONFIG_FILE_BINDINGS, "g", "[Binding a]\nFunction=f\n", 23));
        assert_null(a->error);
}

static void test_binding_bad_lines(void **state) {
        char text[512] = "[Binding a]\nBudgetSec=";
        _cleanup_(config_freep) Config *config = NULL;

        memset(text + strlen(text), '1', 300);
        config = parse(CONFIG_FILE_BINDINGS, text);
        assert_non_null(strstr(get(config, "a")->error, "f:2: This line is too long"));
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

/* Three directories in a temporary one. */
typedef struct Fixture {
        Temporary tmp;
        char paths[3][256];
        const char *directories[4];
} Fixture;

static void fixture_init(Fixture *fixture) {
        static const char *const names[] = { "etc", "run", "usr" };

        *fixture = (Fixture){};
        temporary_init(&fixture->tmp);
        for (size_t i = 0; i < 3; i++)
                fixture->directories[i] =
                        strcpy(fixture->paths[i], temporary_path(&fixture->tmp, names[i]));
}

static void fixture_done(Fixture *fixture) {
        temporary_done(&fixture->tmp);
}

static Config *load(const Fixture *fixture) {
        Config *config = NULL;

        assert_ok(config_load(fixture->directories, &config));
        return config;
}

static void test_load_nothing(void **state) {
        _cleanup_(fixture_done) Fixture fixture;
        _cleanup_(config_freep) Config *config = NULL;

        fixture_init(&fixture);
        config = load(&fixture);
        assert_int_equal(config->n_messages, 0);
        assert_int_equal(config->bindings.n, 0);
        assert_int_equal(config->rate_limit_burst, 20);
}

static void test_load_precedence(void **state) {
        _cleanup_(fixture_done) Fixture fixture;
        _cleanup_(config_freep) Config *config = NULL;

        fixture_init(&fixture);
        temporary_write(&fixture.tmp, "usr/tlobd.conf", "[Daemon]\nRateLimitBurst=1\nTasksMax=1\n");
        temporary_write(&fixture.tmp, "etc/tlobd.conf", "[Daemon]\nRateLimitBurst=2\n");
        temporary_write(&fixture.tmp, "usr/tlobd.conf.d/50.conf", "[Daemon]\nBindingsMax=5\n");
        temporary_write(&fixture.tmp, "run/tlobd.conf.d/60.conf", "[Daemon]\nBindingsMax=6\n");
        temporary_write(&fixture.tmp, "etc/bindings.d/20.conf", "[Binding a]\nBudgetSec=2ms\n");
        temporary_write(&fixture.tmp, "usr/bindings.d/20.conf", "[Binding masked]\n");
        temporary_write(&fixture.tmp, "usr/bindings.d/30.conf", "[Binding a]\nBudgetSec=3ms\n");
        temporary_write(&fixture.tmp, "usr/bindings.d/40.conf", "[Binding masked]\n");
        assert_ok(symlink("/dev/null", temporary_path(&fixture.tmp, "etc/bindings.d/40.conf")));

        config = load(&fixture);
        assert_int_equal(config->rate_limit_burst, 2);
        assert_int_equal(config->tasks_max, 8192);
        assert_int_equal(config->bindings_max, 6);
        assert_int_equal(config->bindings.n, 1);
        assert_int_equal(get(config, "a")->budget_ns[TLOB_BUDGET_TOTAL], 3000000);
        assert_int_equal(config->n_messages, 0);
}

/* One bad file never stops the others. */
static void test_load_bad_files(void **state) {
        _cleanup_(fixture_done) Fixture fixture;
        _cleanup_(config_freep) Config *config = NULL;

        fixture_init(&fixture);
        temporary_write(&fixture.tmp, "etc/tlobd.conf/not-a-file", "");
        temporary_write(&fixture.tmp, "etc/bindings.d/10.conf/not-a-file", "");
        temporary_write(&fixture.tmp, "etc/bindings.d/20.conf", "\xff\xfe\x01garbage\n[\n=\n");
        temporary_write(&fixture.tmp, "etc/bindings.d/30.conf", "[Binding a]\nBudgetSec=1ms\n");
        temporary_write(&fixture.tmp, "etc/overrides.d", "a file");
        assert_ok(mkfifo(temporary_path(&fixture.tmp, "etc/bindings.d/40.conf"), 0600));
        assert_ok(symlink("nowhere", temporary_path(&fixture.tmp, "etc/bindings.d/50.conf")));

        config = load(&fixture);
        assert_int_equal(config->bindings.n, 1);
        assert_int_equal(config->n_messages, 6);
        assert_message(config, 0, "etc/tlobd.conf: Cannot read it (Is a directory), ignoring");
        assert_message(config, 1, "etc/bindings.d/10.conf: Cannot read it (Is a directory)");
        assert_message(config, 2, "etc/bindings.d/20.conf:1: This line is not in any section");
        assert_message(config, 3, "etc/bindings.d/20.conf:2: This section begins");
        assert_message(config, 4, "etc/bindings.d/40.conf: Cannot read it (it is not a regular");
        assert_message(config, 5, "etc/overrides.d: Cannot read it (Not a directory)");
}

static void test_load_file(void **state) {
        _cleanup_(fixture_done) Fixture fixture;
        _cleanup_(config_freep) Config *config = NULL;

        fixture_init(&fixture);
        temporary_write(&fixture.tmp, "x.conf", "[Binding a]\nBudgetSec=1ms\n");
        assert_int_equal(config_load_file(temporary_path(&fixture.tmp, "no.conf"), &config),
                         -ENOENT);
        assert_int_equal(config_load_file(fixture.tmp.path, &config), -EISDIR);
        assert_null(config);
        assert_ok(config_load_file(temporary_path(&fixture.tmp, "x.conf"), &config));
        assert_int_equal(config->bindings.n, 1);
}

/* Every key that differs from its default comes back from the file. */
static void test_write_binding(void **state) {
        static const char *const values[][2] = {
                { "Executable", "/opt/a b;c/d" },
                { "Start", "f+0x10" },
                { "Stop", "usdt:a:b" },
                { "BudgetSec", "infinity" },
                { "RunningBudgetSec", "1.5ms" },
                { "WaitingBudgetSec", "1min 30s" },
                { "SleepingBudgetSec", "1us" },
                { "Unit", "a-\\x2d@b.service" },
                { "Backend", "bpf" },
                { "Priority", "err" },
                { "Required", "yes" },
                { "Enabled", "no" },
        };
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_(fixture_done) Fixture fixture;
        struct stat st;

        fixture_init(&fixture);
        assert_ok(binding_new("one", &binding));
        for (size_t i = 0; i < ELEMENTSOF(values); i++)
                assert_ok(binding_set_key(binding, values[i][0], values[i][1], NULL));
        assert_ok(config_write_binding(fixture.directories[1], binding));
        assert_ok(config_write_binding(fixture.directories[1], binding));
        assert_ok(stat(temporary_path(&fixture.tmp, "run/bindings.d/tlobctl-one.conf"), &st));
        assert_int_equal(st.st_mode & 0777, 0644);

        config = load(&fixture);
        assert_int_equal(config->n_messages, 0);
        assert_null(get(config, "one")->error);
        for (size_t i = 0; i < ELEMENTSOF(values); i++) {
                _cleanup_free_ char *value = NULL;

                assert_int_equal(binding_get_key(get(config, "one"), values[i][0], &value), 1);
                assert_string_equal(value, values[i][1]);
        }

        assert_int_equal(config_remove_binding(fixture.directories[1], "one"), 1);
        assert_int_equal(config_remove_binding(fixture.directories[1], "one"), 0);
        assert_int_equal(config_remove_binding(fixture.directories[2], "one"), 0);
        assert_int_equal(config_remove_binding(fixture.directories[1], "../one"), -EINVAL);
}

/* The longest value that a key takes can be read back. */
static void test_write_longest(void **state) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_(fixture_done) Fixture fixture;
        char longest[BINDING_VALUE_MAX + 1] = "/";

        fixture_init(&fixture);
        memset(longest + 1, 'x', sizeof(longest) - 2);
        assert_ok(binding_new("1234567890123456789012345678901234567890", &binding));
        assert_ok(binding_set_key(binding, "Executable", longest, NULL));
        assert_ok(config_write_binding(fixture.directories[0], binding));
        config = load(&fixture);
        assert_int_equal(config->n_messages, 0);
        assert_string_equal(get(config, binding->name)->executable, longest);
}

static void test_write_fails(void **state) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(fixture_done) Fixture fixture;

        fixture_init(&fixture);
        assert_ok(binding_new("one", &binding));
        assert_int_equal(config_write_binding(temporary_path(&fixture.tmp, "none/etc"), binding),
                         -ENOENT);
        temporary_write(&fixture.tmp, "etc/bindings.d", "a file");
        assert_int_equal(config_write_binding(fixture.directories[0], binding), -ENOTDIR);
        /* Nothing stays behind where a directory is in the way. */
        temporary_write(&fixture.tmp, "run/bindings.d/tlobctl-one.conf/x", "");
        assert_true(config_write_binding(fixture.directories[1], binding) < 0);
        assert_ok(unlink(temporary_path(&fixture.tmp, "run/bindings.d/tlobctl-one.conf/x")));
        assert_ok(rmdir(temporary_path(&fixture.tmp, "run/bindings.d/tlobctl-one.conf")));
        assert_ok(rmdir(temporary_path(&fixture.tmp, "run/bindings.d")));
}

static void test_write_override(void **state) {
        static const char name[] = "a-\\x2d@b.service/one";
        _cleanup_(config_freep) Config *both = NULL, *etc = NULL, *none = NULL;
        _cleanup_(fixture_done) Fixture fixture;
        uint64_t ns = 0;

        fixture_init(&fixture);
        assert_ok(config_remove_override(fixture.directories[0], name));
        assert_ok(config_write_override(fixture.directories[0], name, 5000000));
        assert_ok(config_write_override(fixture.directories[1], name, 1500));
        assert_int_equal(config_write_override(fixture.directories[0], name, 1), -ERANGE);
        assert_int_equal(config_write_override(fixture.directories[0], "a b", 5000), -EINVAL);
        assert_ok(access(
                temporary_path(&fixture.tmp, "etc/overrides.d/a-\\x5cx2d@b.service\\x2fone.conf"),
                R_OK));

        both = load(&fixture);
        assert_true(config_get_override(both, name, &ns));
        assert_int_equal(ns, 1500);
        assert_ok(config_remove_override(fixture.directories[1], name));
        etc = load(&fixture);
        assert_true(config_get_override(etc, name, &ns));
        assert_int_equal(ns, 5000000);
        assert_ok(config_remove_override(fixture.directories[0], name));
        none = load(&fixture);
        assert_false(config_get_override(none, name, &ns));
}

/* Names that are longer than a file name may be, and differ only at their ends. */
static void test_override_long_names(void **state) {
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_(fixture_done) Fixture fixture;
        char a[300] = "", b[300];
        uint64_t ns = 0;

        fixture_init(&fixture);
        memset(a, '\\', 247);
        strcat(a, ".service/a");
        strcpy(b, a);
        b[strlen(b) - 1] = 'b';
        assert_ok(config_write_override(fixture.directories[1], a, 1000));
        assert_ok(config_write_override(fixture.directories[1], b, BUDGET_NONE));
        config = load(&fixture);
        assert_int_equal(config->n_messages, 0);
        assert_true(config_get_override(config, a, &ns));
        assert_int_equal(ns, 1000);
        assert_true(config_get_override(config, b, &ns));
        assert_int_equal(ns, BUDGET_NONE);
}

static Config *parse_unit(const char *unit, const char *text) {
        Config *config = NULL;

        assert_ok(config_new(&config));
        assert_ok(config_parse_unit(config, unit, "f", text, strlen(text)));
        return config;
}

static void test_unit(void **state) {
        _cleanup_(config_freep) Config *config =
                parse_unit("foo@a.service", "\xef\xbb\xbf[Unit]\r\nDescription=x\r\n"
                                            "[X-Tlob request]\r\nFunction=f\r\nBudgetSec=5ms\r\n"
                                            "[Service]\nExecStart=/bin/x\nBudgetSec=never\n"
                                            "[X-Tlob  sync ]\nExecutable=libc.so.6\n"
                                            "[X-Tlobbing z]\nFunction=g\n"
                                            "[X-Tlob request]\nBudgetSec=7ms\n");
        const Binding *binding;

        assert_int_equal(config->n_messages, 1);
        assert_message(config, 0, "f:9: 'sync ' cannot be the name of a binding");
        assert_int_equal(config->bindings.n, 1);
        binding = get(config, "foo@a.service/request");
        assert_string_equal(binding->unit, "foo@a.service");
        assert_string_equal(binding->source, "f:3");
        assert_string_equal(binding->start, "f");
        assert_int_equal(binding->configured_budget_ns[TLOB_BUDGET_TOTAL], 7000000);
}

/* Drop-ins come after the fragment: the later key wins, an empty value resets, errors are mended. */
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
        assert_string_equal(binding->source, "one:1");
        assert_null(get(config, "x.service/bad")->error);
        assert_non_null(strstr(get(config, "x.service/worse")->error, "two:7: BudgetSec=1parsec"));
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
        assert_message(config, 3, "f:6: Unit= cannot be given in the files of a unit");
        assert_message(config, 4, "f:7: Unknown key 'Colour' in section [X-Tlob a]");
        assert_message(config, 5, "f:16: This section begins with '['");

        assert_int_equal(config->bindings.n, 1);
        assert_string_equal(get(config, "x.service/a")->unit, "x.service");
        assert_string_equal(get(config, "x.service/a")->error,
                            "f:8: This line goes on in the next one: write it in one line");
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
        assert_string_equal(get(config, "x.service/a")->source, "f:3");
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
                cmocka_unit_test(test_binding_bad_lines),
                cmocka_unit_test(test_overrides),
                cmocka_unit_test(test_load_nothing),
                cmocka_unit_test(test_load_precedence),
                cmocka_unit_test(test_load_bad_files),
                cmocka_unit_test(test_load_file),
                cmocka_unit_test(test_write_binding),
                cmocka_unit_test(test_write_longest),
                cmocka_unit_test(test_write_fails),
                cmocka_unit_test(test_write_override),
                cmocka_unit_test(test_override_long_names),
                cmocka_unit_test(test_unit),
                cmocka_unit_test(test_unit_merging),
                cmocka_unit_test(test_unit_mistakes),
                cmocka_unit_test(test_unit_long_lines),
                cmocka_unit_test(test_unit_instances),
                cmocka_unit_test(test_unit_file),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
