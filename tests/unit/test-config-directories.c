/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * config.h, on files in a directory made for the test: which of them counts, and what is written.
 */

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binding/keys.h"
#include "config-text.h"
#include "config/directories.h"
#include "temporary.h"

/* However few descriptors are left: who is told that it failed finds nothing. */
static void test_a_failed_write_leaves_nothing(void **state) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(temporary_done) Temporary tmp = {};
        struct rlimit before, few;
        unsigned n_failed = 0;
        int r = -EMFILE;

        temporary_init(&tmp);
        assert_ok(binding_new("sync", &binding));
        assert_ok(getrlimit(RLIMIT_NOFILE, &before));
        for (rlim_t n = 3; r < 0 && n < 64; n++) {
                few = (struct rlimit) { .rlim_cur = n, .rlim_max = before.rlim_max };
                assert_ok(setrlimit(RLIMIT_NOFILE, &few));
                r = config_write_binding(tmp.path, binding);
                assert_ok(setrlimit(RLIMIT_NOFILE, &before));
                if (r == 0)
                        continue;
                assert_int_equal(r, -EMFILE);
                assert_int_equal(access(temporary_path(&tmp, "bindings.d/tlobctl-sync.conf"), F_OK),
                                 -1);
                n_failed++;
        }
        assert_int_equal(r, 0);
        assert_true(n_failed > 0);
}

/* Three directories in a temporary one. */
typedef struct Fixture {
        Temporary tmp;
        char paths[3][256];
        const char *directories[4];
} Fixture;

static void fixture_init(Fixture *fixture) {
        static const char *const names[] = { "etc", "run", "usr" };

        *fixture = (Fixture) {};
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
        assert_int_equal(config_load_file(temporary_path(&fixture.tmp, "no.conf"),
                                          CONFIG_FILE_BINDINGS, &config),
                         -ENOENT);
        assert_int_equal(config_load_file(fixture.tmp.path, CONFIG_FILE_BINDINGS, &config),
                         -EISDIR);
        assert_null(config);
        assert_ok(config_load_file(temporary_path(&fixture.tmp, "x.conf"), CONFIG_FILE_BINDINGS,
                                   &config));
        assert_int_equal(config->bindings.n, 1);
}

static void test_file_kinds(void **state) {
        static const char *const settings[] = { "tlobd.conf", "/etc/tlob/tlobd.conf",
                                                "./tlobd.conf.d/x", "tlobd.conf.d/10-a.conf",
                                                "/a/tlobd.conf.d/b.conf" };
        static const char *const others[] = {
                "x.conf",      "/etc/tlob/bindings.d/tlobd.confx", "/a/mytlobd.conf.d/x",
                "atlobd.conf", "/etc/tlobd.conf.d/sub/x",          ""
        };

        for (size_t i = 0; i < ELEMENTSOF(settings); i++)
                assert_int_equal(config_file_kind(settings[i]), CONFIG_FILE_DAEMON);
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                assert_int_equal(config_file_kind(others[i]), CONFIG_FILE_BINDINGS);
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
        binding->source.added_by = 65534;
        assert_ok(config_write_binding(fixture.directories[1], binding));
        assert_ok(config_write_binding(fixture.directories[1], binding));
        assert_ok(stat(temporary_path(&fixture.tmp, "run/bindings.d/tlobctl-one.conf"), &st));
        assert_int_equal(st.st_mode & 0777, 0644);

        config = load(&fixture);
        assert_int_equal(config->n_messages, 0);
        assert_null(get(config, "one")->source.error);
        assert_int_equal(get(config, "one")->source.added_by, 65534);
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
        temporary_write(&fixture.tmp, "none", "a file");
        assert_int_equal(config_write_binding(temporary_path(&fixture.tmp, "none/a/etc"), binding),
                         -ENOTDIR);
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

static void assert_directories(RuntimeScope scope, const char *joined) {
        _cleanup_(strings_freep) char **directories = NULL, **wanted = NULL;

        assert_ok(config_directories_of(scope, &directories, NULL));
        assert_ok(config_directories_parse(joined, &wanted));
        assert_true(strings_equal(directories, wanted));
}

static void test_directories_of_the_machine(void **state) {
        assert_directories(RUNTIME_SCOPE_SYSTEM,
                           "/etc/tlob:/run/tlob:/usr/local/lib/tlob:/usr/lib/tlob");
}

#define INSTALLED "/etc/tlob/user:/usr/local/lib/tlob/user:/usr/lib/tlob/user"

static void test_directories_of_a_user(void **state) {
        _cleanup_(strings_freep) char **directories = NULL;
        _cleanup_free_ char *error = NULL;

        assert_ok(setenv("HOME", "/home/alice", 1));
        assert_ok(setenv("XDG_RUNTIME_DIR", "/run/user/1000", 1));
        assert_ok(unsetenv("XDG_CONFIG_HOME"));
        assert_directories(RUNTIME_SCOPE_USER,
                           "/home/alice/.config/tlob:/run/user/1000/tlob:" INSTALLED);
        assert_ok(config_unit_directories_of(RUNTIME_SCOPE_USER, &directories, NULL));
        assert_string_equal(directories[0], "/home/alice/.config/systemd/user");
        assert_string_equal(directories[1], "/run/user/1000/systemd/user");
        directories = strings_free(directories);
        assert_ok(setenv("XDG_CONFIG_HOME", "/home/alice/cfg", 1));
        assert_directories(RUNTIME_SCOPE_USER,
                           "/home/alice/cfg/tlob:/run/user/1000/tlob:" INSTALLED);
        assert_ok(setenv("XDG_CONFIG_HOME", "cfg", 1));
        assert_directories(RUNTIME_SCOPE_USER,
                           "/home/alice/.config/tlob:/run/user/1000/tlob:" INSTALLED);

        assert_ok(unsetenv("XDG_RUNTIME_DIR"));
        assert_int_equal(config_directories_of(RUNTIME_SCOPE_USER, &directories, &error), -ENXIO);
        assert_non_null(strstr(error, "XDG_RUNTIME_DIR"));
        free(error);
        error = NULL;
        assert_ok(setenv("HOME", "", 1));
        assert_int_equal(config_directories_of(RUNTIME_SCOPE_USER, &directories, &error), -ENXIO);
        assert_non_null(strstr(error, "HOME"));
        assert_null(directories);
}

static void test_lists_of_directories(void **state) {
        static const char *const bad[] = {
                "", "/a", "/a:b", "/a::/b", "/a:/b:", ":/a:/b", "/1:/2:/3:/4:/5:/6:/7:/8:/9"
        };
        _cleanup_(strings_freep) char **directories = NULL;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_int_equal(config_directories_parse(bad[i], &directories), -EINVAL);
        assert_null(directories);
        assert_ok(config_directories_parse("/a:/b:/c", &directories));
        assert_int_equal(strings_count(directories), 3);
        assert_string_equal(directories[1], "/b");
}

/* As ~/.config, of a user who has never had one. */
static void test_write_makes_parents(void **state) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(temporary_done) Temporary tmp = {};
        struct stat st;

        temporary_init(&tmp);
        assert_ok(binding_new("sync", &binding));
        assert_ok(config_write_binding(temporary_path(&tmp, "home/.config/tlob"), binding));
        assert_ok(stat(temporary_path(&tmp, "home/.config"), &st));
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_ok(access(temporary_path(&tmp, "home/.config/tlob/bindings.d/tlobctl-sync.conf"),
                         R_OK));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_directories_of_the_machine),
                cmocka_unit_test(test_directories_of_a_user),
                cmocka_unit_test(test_lists_of_directories),
                cmocka_unit_test(test_write_makes_parents),
                cmocka_unit_test(test_load_nothing),
                cmocka_unit_test(test_load_precedence),
                cmocka_unit_test(test_load_bad_files),
                cmocka_unit_test(test_load_file),
                cmocka_unit_test(test_file_kinds),
                cmocka_unit_test(test_write_binding),
                cmocka_unit_test(test_write_longest),
                cmocka_unit_test(test_write_fails),
                cmocka_unit_test(test_write_override),
                cmocka_unit_test(test_override_long_names),
                cmocka_unit_test(test_a_failed_write_leaves_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
