/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Bindings that are confined to a cgroup, on real cgroups: a group like a slice with two in it like
 * services. The victim is moved in before its first window.
 */

#include <fcntl.h>
#include <sys/stat.h>

#include "cgroup.h"
#include "engine.h"
#include "test.h"

#define SLICE "tlob-test.slice"
#define ONE   SLICE "/one.service"
#define TWO   SLICE "/two.service"

static int root_fd = -EBADF;

static void make_groups(void) {
        root_fd = cgroup_open_root();
        assert_true(root_fd >= 0);
        (void) mkdirat(root_fd, SLICE, 0755);
        (void) mkdirat(root_fd, ONE, 0755);
        (void) mkdirat(root_fd, TWO, 0755);
}

static void remove_groups(void) {
        (void) unlinkat(root_fd, TWO, AT_REMOVEDIR);
        (void) unlinkat(root_fd, ONE, AT_REMOVEDIR);
        (void) unlinkat(root_fd, SLICE, AT_REMOVEDIR);
        root_fd = safe_close(root_fd);
}

static int setup(void **state) {
        make_groups();
        return engine_setup(state);
}

static int teardown(void **state) {
        int r = engine_teardown(state);

        remove_groups();
        return r;
}

static void move(pid_t pid, const char *group) {
        char path[128], text[16];
        int fd, n;

        (void) snprintf(path, sizeof(path), "%s/cgroup.procs", group);
        n = snprintf(text, sizeof(text), "%i", pid);
        fd = openat(root_fd, path, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, (size_t) n), n);
        (void) close(fd);
}

/* A binding of a, of a unit that does not run yet. */
static uint32_t add(Engine *engine, const char *unit) {
        const char *const keys[] = {
                "Executable", "%v", "Function", "victim_a", "BudgetSec", "10s", "Unit", unit, NULL,
        };

        return engine_add(engine, keys, NULL);
}

static void run_unit(Engine *engine, uint32_t index, const char *group) {
        uint64_t id = 0;
        unsigned level = 0;

        if (group)
                assert_int_equal(cgroup_path_get_id(root_fd, group, &id, &level), 0);
        assert_int_equal(engine->backend->ops->set_cgroup(engine->backend, index, id, level), 0);
}

/* So many windows of a, begun and ended in that group. */
static void windows_in(Engine *engine, const char *group, const char *words) {
        _cleanup_(victim_done) Victim victim = {};
        char all[256];

        (void) snprintf(all, sizeof(all), "say:ready %s", words);
        victim_start(&victim, all);
        victim_expect(&victim, "ready");
        move(victim.pid, group);
        victim_continue(&victim);
        victim_finish(&victim);
        engine_collect(engine);
}

static uint64_t starts(Engine *engine, uint32_t index) {
        return engine_statistics(engine, index).counters.starts;
}

static void test_a_unit_is_measured_while_it_runs(void **state) {
        Engine *engine = *state;
        uint32_t one = add(engine, "one.service");

        windows_in(engine, ONE, "a( ) a( )");
        assert_int_equal(starts(engine, one), 0);

        run_unit(engine, one, ONE);
        windows_in(engine, ONE, "a( ) a( )");
        windows_in(engine, TWO, "a( )");
        windows_in(engine, SLICE, "a( )");
        assert_int_equal(starts(engine, one), 2);

        run_unit(engine, one, NULL);
        windows_in(engine, ONE, "a( )");
        assert_int_equal(starts(engine, one), 2);
        assert_int_equal(engine_statistics(engine, one).counters.unmatched, 0);
}

static void test_each_window_counts_where_it_belongs(void **state) {
        Engine *engine = *state;
        uint32_t one = add(engine, "one.service"), two = add(engine, "two.service"),
                 slice = add(engine, SLICE), again = add(engine, "one.service");

        run_unit(engine, one, ONE);
        run_unit(engine, two, TWO);
        run_unit(engine, slice, SLICE);

        windows_in(engine, ONE, "a( )");
        windows_in(engine, TWO, "a( ) a( )");
        windows_in(engine, SLICE, "a( ) a( ) a( )");
        assert_int_equal(starts(engine, one), 1);
        assert_int_equal(starts(engine, again), 1);
        assert_int_equal(starts(engine, two), 2);
        assert_int_equal(starts(engine, slice), 6);
}

/* More bindings on one site than it lists itself, with holes made and filled again. */
static void test_many_units_on_one_site(void **state) {
        Engine *engine = *state;
        uint32_t index[40], slice;
        char name[32];

        for (size_t i = 0; i < ELEMENTSOF(index); i++) {
                (void) snprintf(name, sizeof(name), "many@%zu.service", i);
                index[i] = add(engine, name);
        }
        slice = add(engine, SLICE);
        run_unit(engine, slice, SLICE);

        /* One that the site lists, and one in a scope. */
        run_unit(engine, index[3], ONE);
        run_unit(engine, index[35], TWO);
        windows_in(engine, ONE, "a( )");
        windows_in(engine, TWO, "a( ) a( )");
        assert_int_equal(starts(engine, index[3]), 1);
        assert_int_equal(starts(engine, index[35]), 2);
        assert_int_equal(starts(engine, slice), 3);

        engine_remove(engine, index[3], NULL);
        engine_remove(engine, index[35], NULL);
        windows_in(engine, ONE, "a( )");
        windows_in(engine, TWO, "a( )");
        assert_int_equal(starts(engine, slice), 5);

        index[3] = add(engine, "other.service");
        index[35] = add(engine, "more.service");
        run_unit(engine, index[3], ONE);
        run_unit(engine, index[35], TWO);
        windows_in(engine, ONE, "a( ) a( )");
        windows_in(engine, TWO, "a( )");
        assert_int_equal(starts(engine, index[3]), 2);
        assert_int_equal(starts(engine, index[35]), 1);
        assert_int_equal(starts(engine, slice), 8);
        for (size_t i = 0; i < ELEMENTSOF(index); i++)
                if (i != 3 && i != 35)
                        assert_int_equal(starts(engine, index[i]), 0);
}

/* A window belongs to the task that began it, wherever that goes. */
static void test_a_window_ends_where_its_task_is(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t one = add(engine, "one.service");
        Statistics s;

        run_unit(engine, one, ONE);
        victim_start(&victim, "say:ready a( say:inside )");
        victim_expect(&victim, "ready");
        move(victim.pid, ONE);
        victim_continue(&victim);
        victim_expect(&victim, "inside");
        move(victim.pid, TWO);
        victim_continue(&victim);
        victim_finish(&victim);

        s = engine_statistics(engine, one);
        assert_int_equal(s.counters.in_budget, 1);
        assert_int_equal(s.counters.unmatched, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_unit_is_measured_while_it_runs, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_each_window_counts_where_it_belongs, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_many_units_on_one_site, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_window_ends_where_its_task_is, setup,
                                                teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
