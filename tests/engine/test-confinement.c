/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Bindings that are confined to a cgroup, on real cgroups: a group like a slice with two in it like
 * services. The victim is moved in before its first window.
 */

#include <bpf/bpf.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "binding/keys.h"
#include "binding/resolve.h"
#include "bpf/backend.h"
#include "bpf/skeleton.h"
#include "bpf/uprobe.h"
#include "cgroup.h"
#include "engine.h"
#include "service.h"
#include "test.h"

#define SLICE "tlob-test.slice"
#define ONE   SLICE "/one.service"
#define TWO   SLICE "/two.service"
#define NEW   SLICE "/new@a.service"
#define NEWER SLICE "/new@b.service"
#define INNER ONE "/new@c.service" /* of someone else, who has a name for it */

static int root_fd = -EBADF;

static void make_groups(void) {
        root_fd = cgroup_open_root();
        assert_true(root_fd >= 0);
        (void) mkdirat(root_fd, SLICE, 0755);
        (void) mkdirat(root_fd, ONE, 0755);
        (void) mkdirat(root_fd, TWO, 0755);
}

static void make_group(const char *group) {
        assert_int_equal(mkdirat(root_fd, group, 0755), 0);
}

static void remove_groups(void) {
        (void) service_remove_group(root_fd, INNER);
        (void) service_remove_group(root_fd, NEWER);
        (void) service_remove_group(root_fd, NEW);
        (void) service_remove_group(root_fd, TWO);
        (void) service_remove_group(root_fd, ONE);
        (void) service_remove_group(root_fd, SLICE);
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

/* Whether any task remembers a start of that binding, and nothing was changed since. */
static bool is_remembered(const Engine *engine, uint32_t index) {
        const struct tlob_bpf *bpf = ((const BpfBackend *) engine->backend)->programs.bpf;

        for (uint32_t slot = 0; slot < bpf->bss->slots_end; slot++) {
                struct tlob_task task;

                assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(bpf->maps.tasks), &slot, &task),
                                 0);
                for (size_t i = 0; i < TLOB_REMEMBERED_MAX; i++)
                        if (task.remembered[i].cookie && task.remembered[i].binding == index &&
                            task.remembered[i].changes == bpf->bss->n_changes)
                                return true;
        }
        return false;
}

/* To the next word that it says. */
static void go_on(Victim *victim, const char *word) {
        victim_continue(victim);
        victim_expect(victim, word);
}

/*
 * Of several bindings at a site a task remembers the one that it was for, until any are changed, or
 * it moves.
 */
static void test_what_a_start_was_for_is_remembered(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t one = add(engine, "one.service"), two = add(engine, "two.service"),
                 slice = add(engine, SLICE), inner = add(engine, "new@c.service"), all;

        make_group(INNER);
        run_unit(engine, one, ONE);
        run_unit(engine, two, TWO);
        run_unit(engine, inner, INNER);
        victim_start(&victim, "say:ready a( ) a( ) say:once a( ) say:all a( ) say:without a( ) "
                              "say:slice a( ) say:inside a( ) say:removed a( ) a( )");
        victim_expect(&victim, "ready");
        move(victim.pid, ONE);
        go_on(&victim, "once");
        assert_int_equal(starts(engine, one), 2);
        assert_true(is_remembered(engine, one));

        all = engine_add(engine, FUNCTION("a", "10s"), NULL);
        assert_false(is_remembered(engine, one));
        go_on(&victim, "all");
        assert_int_equal(starts(engine, one), 3);
        assert_int_equal(starts(engine, all), 1);

        engine_remove(engine, all, NULL);
        go_on(&victim, "without");
        assert_int_equal(starts(engine, one), 4);
        assert_true(is_remembered(engine, one));

        run_unit(engine, slice, SLICE);
        go_on(&victim, "slice");
        assert_int_equal(starts(engine, one), 5);
        assert_int_equal(starts(engine, slice), 1);

        run_unit(engine, slice, NULL);
        go_on(&victim, "inside");
        assert_true(is_remembered(engine, one));
        move(victim.pid, INNER);
        go_on(&victim, "removed");
        assert_int_equal(starts(engine, one), 7);
        assert_int_equal(starts(engine, inner), 1);

        move(victim.pid, ONE);
        engine_remove(engine, one, NULL);
        one = add(engine, "one.service");
        run_unit(engine, one, ONE);
        victim_continue(&victim);
        victim_finish(&victim);
        assert_int_equal(starts(engine, one), 2);
        assert_int_equal(starts(engine, inner), 1);
        assert_int_equal(starts(engine, two), 0);
        assert_int_equal(starts(engine, slice), 1);
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
        go_on(&victim, "inside");
        move(victim.pid, TWO);
        victim_continue(&victim);
        victim_finish(&victim);

        s = engine_statistics(engine, one);
        assert_int_equal(s.counters.in_budget, 1);
        assert_int_equal(s.counters.unmatched, 0);
}

/* A binding of a for an instance that is not known. */
static uint32_t add_spare(Engine *engine, unsigned number) {
        const char *const keys[] = {
                "Executable", "%v",   "Function",        "victim_a", "BudgetSec",
                "10s",        "Unit", "new@any.service", NULL,
        };
        _cleanup_(binding_freep) Binding *binding = NULL;

        assert_int_equal(binding_new("new@any.service/test", &binding), 0);
        engine_set_keys(binding, keys);
        binding->cgroup.path = strdup("/elsewhere.slice/new@any.service");
        binding->spare = number;
        return engine_add_binding(engine, binding);
}

static size_t instances(const Engine *engine, uint32_t index) {
        return engine_count(engine, REPORT_INSTANCE, index);
}

static bool limitation_is_shown(Engine *engine, const char *what) {
        const char *const *limitations = engine->backend->ops->limitations(engine->backend);

        for (; *limitations; limitations++)
                if (strstr(*limitations, what))
                        return true;
        return false;
}

/*
 * Both bindings of a spare go to the same instance; the next one gets the next spare, wherever it
 * is.
 */
static void test_an_instance_takes_a_spare(void **state) {
        Engine *engine = *state;
        uint32_t first = add_spare(engine, 1), also = add_spare(engine, 1),
                 second = add_spare(engine, 2);
        const Report *report;
        uint64_t id;
        unsigned level;

        make_group(NEW);
        windows_in(engine, NEW, "a( ) a( )");
        assert_int_equal(instances(engine, first) + instances(engine, also), 1);
        assert_int_equal(instances(engine, second), 0);
        assert_int_equal(starts(engine, first), 2);
        assert_int_equal(starts(engine, also), 2);
        assert_int_equal(starts(engine, second), 0);
        report = engine_report(engine, REPORT_INSTANCE, first, 0);
        assert_int_equal(cgroup_path_get_id(root_fd, NEW, &id, &level), 0);
        assert_int_equal(report->cgroup_id, id);
        assert_int_equal(report->cgroup_level, level);

        /* It is known by now, also when it starts again. */
        assert_ok(service_remove_group(root_fd, NEW));
        make_group(NEW);
        windows_in(engine, NEW, "a( )");
        assert_int_equal(starts(engine, first), 3);
        assert_int_equal(starts(engine, second), 0);

        make_group(NEWER);
        windows_in(engine, NEWER, "a( )");
        assert_int_equal(instances(engine, second), 1);
        assert_int_equal(starts(engine, second), 1);
        assert_int_equal(starts(engine, first), 3);
        assert_false(limitation_is_shown(engine, "SpareInstances="));
}

static void test_an_instance_starts_again_before_it_is_told(void **state) {
        Engine *engine = *state;
        uint32_t first = add_spare(engine, 1), second = add_spare(engine, 2);

        make_group(NEW);
        assert_ok(service_remove_group(root_fd, NEW));
        make_group(NEW);
        windows_in(engine, NEW, "a( )");
        assert_int_equal(instances(engine, first), 1);
        assert_int_equal(starts(engine, first), 1);
        assert_int_equal(starts(engine, second), 0);
}

/* More than a site lists itself: they are looked up by their cgroup. */
static void test_many_spares(void **state) {
        Engine *engine = *state;
        uint32_t spares[12];

        for (size_t i = 0; i < ELEMENTSOF(spares); i++)
                spares[i] = add_spare(engine, (unsigned) i + 1);
        for (size_t i = 0; i < ELEMENTSOF(spares); i++) {
                make_group(NEW);
                windows_in(engine, NEW, "a( )");
                assert_int_equal(starts(engine, spares[i]), 1);
                engine_remove(engine, spares[i], NULL);
                engine_collect(engine);
                assert_ok(service_remove_group(root_fd, NEW));
        }
}

/* Names below anything but slices are not the system manager's. */
static void test_others_take_no_spare(void **state) {
        Engine *engine = *state;
        uint32_t spare = add_spare(engine, 1);

        make_group(INNER);
        windows_in(engine, INNER, "a( )");
        assert_int_equal(instances(engine, spare), 0);
        assert_int_equal(starts(engine, spare), 0);
        assert_false(limitation_is_shown(engine, "SpareInstances="));
}

static void test_a_spare_too_few_is_counted(void **state) {
        Engine *engine = *state;
        uint32_t spare = add_spare(engine, 1);

        make_group(NEW);
        make_group(NEWER);
        windows_in(engine, NEW, "a( )");
        windows_in(engine, NEWER, "a( )");
        assert_int_equal(starts(engine, spare), 1);
        assert_true(limitation_is_shown(engine, "1 instances of templates were not measured"));
}

/* One that is taken back before it was told is nobody's, and leaves nothing. */
static void test_a_spare_is_taken_back(void **state) {
        Engine *engine = *state;
        uint32_t spare = add_spare(engine, 1), other;

        make_group(NEW);
        engine_remove(engine, spare, NULL);
        engine_collect(engine);
        assert_int_equal(engine->n_reports, 0);

        other = add_spare(engine, 2);
        assert_ok(service_remove_group(root_fd, NEW));
        make_group(NEW);
        windows_in(engine, NEW, "a( )");
        assert_int_equal(instances(engine, other), 1);
        assert_int_equal(starts(engine, other), 1);
}

/* A template's binding is for its instances wherever they are, those that run already too. */
static void test_instances_in_other_slices(void **state) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        const char *const keys[] = {
                "Executable", "%v",   "Function",     "victim_a", "BudgetSec",
                "10s",        "Unit", "new@.service", NULL,
        };
        Engine *engine = *state;
        uint32_t many;

        make_group(NEW);
        make_group(INNER);
        assert_int_equal(binding_new("test", &binding), 0);
        engine_set_keys(binding, keys);
        binding->cgroup.path = strdup("/a.slice/a-b.slice/new@.service");
        many = engine_add_binding(engine, binding);
        windows_in(engine, NEW, "a( )");
        assert_int_equal(starts(engine, many), 1);
        make_group(NEWER);
        windows_in(engine, NEWER, "a( )");
        assert_int_equal(starts(engine, many), 2);
        windows_in(engine, INNER, "a( )");
        assert_int_equal(starts(engine, many), 2);
}

static Binding *lend(const char *path, int fd) {
        Binding *binding = engine_lend(path, fd);

        assert_int_equal(binding_set_key(binding, "Unit", "one.service", NULL), 0);
        return binding;
}

/* As windows_in(), of a program at that path. */
static void run_in(Engine *engine, const char *path, const char *group, const char *words) {
        _cleanup_(victim_done) Victim victim = {};
        char all[256];

        (void) snprintf(all, sizeof(all), "say:ready %s", words);
        program_start(&victim, path, all);
        victim_expect(&victim, "ready");
        move(victim.pid, group);
        victim_continue(&victim);
        victim_finish(&victim);
        engine_collect(engine);
}

#define LENT_PLACES 4 /* of the windows of a task */

/* A user's windows leave half of the places of a task to others. */
static void test_a_user_takes_half_of_the_places(void **state) {
        char path[] = "/tmp/tlob-user-victim-XXXXXX";
        uint32_t lent[LENT_PLACES + 1], own;
        _cleanup_close_ int fd = -EBADF;
        uint64_t n_over = 0;
        Engine *engine = *state;

        /* Else the test below is all that there is. */
        if (!uprobe_multi_takes_processes())
                return;
        engine_copy_victim(path, &fd);
        for (size_t i = 0; i < ELEMENTSOF(lent); i++) {
                _cleanup_(binding_freep) Binding *binding = lend(path, fd);

                lent[i] = engine_add_binding(engine, binding);
                run_unit(engine, lent[i], ONE);
        }
        own = engine_add(
                engine, KEYS("Executable", path, "Function", "victim_a", "BudgetSec", "10s"), NULL);
        run_in(engine, path, ONE, "user:65534 dumpable a( )");
        for (size_t i = 0; i < ELEMENTSOF(lent); i++) {
                assert_int_equal(starts(engine, lent[i]), 1);
                n_over += engine_statistics(engine, lent[i]).counters.over_limit;
        }
        assert_int_equal(n_over, 1);
        assert_int_equal(starts(engine, own), 1);
        assert_int_equal(engine_statistics(engine, own).counters.in_budget, 1);
        (void) unlink(path);
}

/* Whose tasks are measured is seen in each of them, also where a program has changed who it is. */
static void test_a_user_has_own_tasks_only(void **state) {
        char path[] = "/tmp/tlob-user-victim-XXXXXX";
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_close_ int fd = -EBADF;
        Engine *engine = *state;
        uint32_t one;

        engine_copy_victim(path, &fd);
        binding = lend(path, fd);
        if (!engine->backend->ops->can_spare_others(binding, &(BindingFile) { .fd = fd })) {
                _cleanup_(binding_file_freep) BindingFile *file = NULL;
                _cleanup_free_ char *error = NULL;

                assert_int_equal(engine_resolve(binding, &file, &error), 0);
                assert_int_equal(
                        engine->backend->ops->add(engine->backend, binding, file, &one, &error),
                        -EOPNOTSUPP);
                assert_non_null(strstr(error, "cannot limit probes to processes"));
                (void) unlink(path);
                return;
        }
        one = engine_add_binding(engine, binding);
        run_unit(engine, one, ONE);
        run_in(engine, path, ONE, "a( )");
        assert_int_equal(starts(engine, one), 0);
        run_in(engine, path, ONE, "user:65534 a( )");
        assert_int_equal(starts(engine, one), 0);
        run_in(engine, path, ONE, "user:65534 dumpable a( ) a( )");
        assert_int_equal(starts(engine, one), 2);
        run_in(engine, path, TWO, "user:65534 dumpable a( )");
        run_in(engine, path, ONE, "user:65533 dumpable a( )");
        assert_int_equal(starts(engine, one), 2);
        assert_int_equal(engine_statistics(engine, one).counters.unmatched, 0);
        (void) unlink(path);
}

ENGINE_TESTS(confinement) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_unit_is_measured_while_it_runs, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_each_window_counts_where_it_belongs, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_many_units_on_one_site, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_a_start_was_for_is_remembered, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_window_ends_where_its_task_is, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_an_instance_takes_a_spare, setup, teardown),
                cmocka_unit_test_setup_teardown(test_an_instance_starts_again_before_it_is_told,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_spares, setup, teardown),
                cmocka_unit_test_setup_teardown(test_others_take_no_spare, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_spare_too_few_is_counted, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_spare_is_taken_back, setup, teardown),
                cmocka_unit_test_setup_teardown(test_instances_in_other_slices, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_user_has_own_tasks_only, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_user_takes_half_of_the_places, setup,
                                                teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
