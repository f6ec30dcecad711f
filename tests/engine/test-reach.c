/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A binding that is confined to a unit, on a function of a library that others use too: those have
 * no probe, and the unit's processes have one however they come to be there.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "binding/resolve.h"
#include "bpf/layout.h"
#include "bpf/uprobe.h"
#include "cgroup.h"
#include "engine.h"
#include "service.h"
#include "test.h"

#define SLICE "tlob-reach.slice"
#define ONE   SLICE "/one.service"
#define TWO   SLICE "/two.service"

static int root_fd = -EBADF;

static const char *variable(const char *name) {
        const char *value = getenv(name);

        if (!value)
                fail_msg("%s is not set.", name);
        return value;
}

static int setup(void **state) {
        root_fd = cgroup_open_root();
        assert_true(root_fd >= 0);
        (void) mkdirat(root_fd, SLICE, 0755);
        (void) mkdirat(root_fd, ONE, 0755);
        (void) mkdirat(root_fd, TWO, 0755);
        return engine_setup(state);
}

static int teardown(void **state) {
        int r = engine_teardown(state);

        (void) service_remove_group(root_fd, TWO);
        (void) service_remove_group(root_fd, ONE);
        (void) service_remove_group(root_fd, SLICE);
        root_fd = safe_close(root_fd);
        return r;
}

static void move(pid_t pid, const char *group) {
        char path[128];
        int fd;

        (void) snprintf(path, sizeof(path), "%s/cgroup.procs", group);
        fd = openat(root_fd, path, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_true(dprintf(fd, "%i", pid) > 0);
        (void) close(fd);
}

/* A process that has the library, and where the function is in it. */
typedef struct Caller {
        Victim victim;
        off_t address;
} Caller;

static void caller_done(Caller *caller) {
        victim_done(&caller->victim);
}

/* It says "ready" first; group: where it is then, NULL: nowhere special. */
static void caller_start(Caller *caller, const char *group, const char *words) {
        char all[256], line[64];
        unsigned long address;

        (void) snprintf(all, sizeof(all), "where say:ready %s", words);
        program_start(&caller->victim, variable("TLOB_TEST_CALLER"), all);
        assert_non_null(fgets(line, sizeof(line), caller->victim.out));
        address = strtoul(line, NULL, 16);
        assert_int_not_equal(address, 0);
        caller->address = (off_t) address;
        victim_expect(&caller->victim, "ready");
        if (group)
                move(caller->victim.pid, group);
}

/* The first byte of the function, as that process has it. */
static unsigned char text(const Caller *caller) {
        unsigned char byte = 0;
        char path[64];
        int fd;

        (void) snprintf(path, sizeof(path), "/proc/%i/mem", caller->victim.pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(pread(fd, &byte, 1, caller->address), 1);
        (void) close(fd);
        return byte;
}

static uint64_t read_number(Caller *caller) {
        char line[64];

        assert_non_null(fgets(line, sizeof(line), caller->victim.out));
        return strtoull(line, NULL, 10);
}

static void run_unit(Engine *engine, uint32_t index, const char *group) {
        unsigned level = 0;
        uint64_t id = 0;

        assert_int_equal(cgroup_path_get_id(root_fd, group, &id, &level), 0);
        assert_int_equal(engine->backend->ops->set_cgroup(engine->backend, index, id, level), 0);
        engine_collect(engine);
}

static uint32_t add(Engine *engine, const char *unit, const char *group) {
        const char *library = variable("TLOB_TEST_LIBRARY");
        uint32_t index;

        index = engine_add(engine,
                           KEYS("Executable", library, "Start", "reach_call", "Stop", "reach_end",
                                "BudgetSec", "10s", "Unit", unit),
                           NULL);
        if (group)
                run_unit(engine, index, group);
        return index;
}

static uint64_t starts(Engine *engine, uint32_t index) {
        return engine_statistics(engine, index).counters.starts;
}

/* What it says of itself, which must be what text() shows of the others. */
static bool spares_others(Engine *engine, uint32_t index) {
        return engine->backend->ops->spares_others(engine->backend, index);
}

/* From "say:" to "say:", with what has happened taken in. */
static void step(Engine *engine, Caller *caller, const char *word) {
        victim_continue(&caller->victim);
        victim_expect(&caller->victim, word);
        engine_collect(engine);
}

static void test_a_process_outside_has_no_probe(void **state) {
        _cleanup_(caller_done) Caller inside = {}, outside = {};
        Engine *engine = *state;
        unsigned char byte;
        uint64_t before;
        uint32_t one;

        caller_start(&inside, ONE, "call:7 say:done");
        caller_start(&outside, TWO, "cost:10000 say:costs cost:10000 say:done");
        byte = text(&outside);
        assert_int_equal(text(&inside), byte);
        victim_continue(&outside.victim);
        before = read_number(&outside);
        victim_expect(&outside.victim, "costs");

        one = add(engine, "one.service", ONE);
        assert_int_not_equal(text(&inside), byte);
        assert_int_equal(text(&outside), byte);
        assert_true(spares_others(engine, one));

        step(engine, &inside, "done");
        victim_continue(&outside.victim);
        /* A probe makes it a hundred times as much. */
        assert_in_range(read_number(&outside), 0, 10 * before);
        assert_int_equal(starts(engine, one), 7);
        assert_int_equal(engine_statistics(engine, one).counters.outside, 0);
        assert_int_equal(engine_statistics(engine, one).counters.processes, 1);
}

static void test_no_process_has_a_probe_while_the_unit_is_stopped(void **state) {
        _cleanup_(caller_done) Caller outside = {};
        Engine *engine = *state;
        unsigned char byte;

        caller_start(&outside, TWO, "say:done");
        byte = text(&outside);
        (void) add(engine, "one.service", ONE);
        assert_int_equal(text(&outside), byte);
}

static void test_who_moves_into_the_unit_is_measured(void **state) {
        _cleanup_(caller_done) Caller caller = {};
        Engine *engine = *state;
        uint32_t one = add(engine, "one.service", ONE);

        caller_start(&caller, NULL, "call:1 say:out call:2 say:in");
        step(engine, &caller, "out");
        move(caller.victim.pid, ONE);
        engine_collect(engine);
        step(engine, &caller, "in");
        assert_int_equal(starts(engine, one), 2);
        assert_int_equal(engine_statistics(engine, one).counters.processes, 1);
        assert_int_not_equal(engine_statistics(engine, one).late_max_ns, 0);
}

/*
 * A record that a program on another CPU has begun, and was preempted in, hides those behind it
 * until it is whole.
 */
static void collect_for_a_while(Engine *engine) {
        for (unsigned i = 0; i < 50; i++) {
                (void) usleep(10000);
                engine_collect(engine);
        }
}

static void test_threads_and_programs_that_follow(void **state) {
        _cleanup_(caller_done) Caller caller = {};
        Engine *engine = *state;
        uint32_t one = add(engine, "one.service", ONE);

        caller_start(&caller, ONE,
                     "thread:2 exec call:3 say:again exec-thread say:anew call:5 say:done");
        engine_collect(engine);
        step(engine, &caller, "again");
        assert_int_equal(starts(engine, one), 5);
        step(engine, &caller, "anew");
        collect_for_a_while(engine);
        step(engine, &caller, "done");
        assert_int_equal(starts(engine, one), 10);
}

static void test_a_child_gets_a_probe_of_its_own(void **state) {
        _cleanup_(caller_done) Caller caller = {};
        Engine *engine = *state;
        uint32_t one = add(engine, "one.service", ONE);

        caller_start(&caller, ONE,
                     "fork say:child call:3 fork exec say:grandchild call:4 say:done");
        engine_collect(engine);
        step(engine, &caller, "child");
        step(engine, &caller, "grandchild");
        assert_int_equal(starts(engine, one), 3);
        step(engine, &caller, "done");
        assert_int_equal(starts(engine, one), 7);
        assert_int_equal(engine_statistics(engine, one).counters.processes, 3);
}

/* Of two units on one site, each has its own. */
static void test_bindings_of_two_units(void **state) {
        _cleanup_(caller_done) Caller a = {}, b = {}, c = {};
        Engine *engine = *state;
        unsigned char byte;
        uint32_t one, two;

        caller_start(&a, ONE, "call:1 say:done");
        caller_start(&b, TWO, "call:2 say:done say:end");
        caller_start(&c, SLICE, "call:4 say:done");
        byte = text(&c);
        one = add(engine, "one.service", ONE);
        two = add(engine, "two.service", TWO);
        step(engine, &a, "done");
        step(engine, &b, "done");
        step(engine, &c, "done");
        assert_int_equal(starts(engine, one), 1);
        assert_int_equal(starts(engine, two), 2);
        assert_int_equal(text(&c), byte);
        assert_int_not_equal(text(&b), byte);

        /* The one that stays keeps its probe, the other's process loses it. */
        engine_remove(engine, one, NULL);
        while (text(&a) != byte)
                (void) usleep(1000);
        assert_int_not_equal(text(&b), byte);
}

/* Each has its own stop, in a process of the other there is none. */
static void test_bindings_of_two_units_with_one_start(void **state) {
        _cleanup_(caller_done) Caller a = {}, b = {};
        const char *library = variable("TLOB_TEST_LIBRARY");
        Engine *engine = *state;
        uint32_t one = add(engine, "one.service", ONE), two;

        two = engine_add(engine,
                         KEYS("Executable", library, "Function", "reach_call", "BudgetSec", "10s",
                              "Unit", "two.service"),
                         NULL);
        run_unit(engine, two, TWO);
        caller_start(&a, ONE, "call:3 say:done");
        caller_start(&b, TWO, "call:4 say:done");
        engine_collect(engine);
        step(engine, &a, "done");
        step(engine, &b, "done");
        assert_int_equal(starts(engine, one), 3);
        assert_int_equal(starts(engine, two), 4);
        assert_int_equal(engine_statistics(engine, one).counters.in_budget, 3);
        assert_int_equal(engine_statistics(engine, two).counters.in_budget, 4);
}

/* What is refused takes nothing from those that are there. */
static void test_too_many_bindings_of_a_unit(void **state) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(caller_done) Caller caller = {};
        const char *library = variable("TLOB_TEST_LIBRARY");
        uint32_t indices[TLOB_SITE_BINDINGS_MAX + TLOB_SCOPE_BINDINGS_MAX], index;
        uint64_t n_starts = 0;
        Engine *engine = *state;

        for (size_t i = 0; i < ELEMENTSOF(indices); i++)
                indices[i] = add(engine, "one.service", ONE);
        assert_ok(binding_new("last", &binding));
        engine_set_keys(binding, KEYS("Executable", library, "Start", "reach_call", "Stop",
                                      "reach_end", "BudgetSec", "10s", "Unit", "one.service"));
        assert_ok(binding_resolve(binding, &file, NULL));
        assert_int_equal(
                cgroup_path_get_id(root_fd, ONE, &binding->cgroup.id, &binding->cgroup.level), 0);
        for (size_t i = 0; i < ELEMENTSOF(indices); i++)
                assert_int_equal(
                        engine->backend->ops->add(engine->backend, binding, file, &index, NULL),
                        -E2BIG);
        caller_start(&caller, ONE, "call:5 say:done");
        engine_collect(engine);
        step(engine, &caller, "done");
        /* A thread has room for fewer windows at once. */
        for (size_t i = 0; i < ELEMENTSOF(indices); i++)
                n_starts += starts(engine, indices[i]);
        assert_true(n_starts >= 5);
}

/*
 * Too many for probes of their own: all are measured nevertheless, until they have gone. Those that
 * have one hit two probes meanwhile; the first sites are nobody's then.
 */
static void test_a_crowd_shares_one_probe(void **state) {
        _cleanup_(caller_done) Caller crowd = {}, outside = {};
        Engine *engine = *state;
        uint32_t before = engine_add(engine, FUNCTION("a", "1min"), NULL);
        uint32_t one = add(engine, "one.service", ONE);
        unsigned char byte;
        Statistics s;

        engine_remove(engine, before, NULL);
        caller_start(&outside, TWO, "call:5 say:done say:end");
        byte = text(&outside);
        caller_start(&crowd, ONE, "call:1 say:begun crowd:200 say:done");
        engine_collect(engine);
        step(engine, &crowd, "begun");
        step(engine, &crowd, "crowd");
        /* Those that come are admitted one by one, and others have their turn in between. */
        for (unsigned i = 0; spares_others(engine, one); i++) {
                assert_true(i < 1000);
                engine_collect(engine);
        }
        assert_int_not_equal(text(&outside), byte);
        step(engine, &outside, "done");
        step(engine, &crowd, "done");

        s = engine_statistics(engine, one);
        assert_int_equal(s.counters.starts, 201);
        assert_int_equal(s.counters.in_budget, 201);
        assert_int_equal(s.counters.outside, 5);
        assert_int_equal(s.counters.unmatched, 0);

        victim_continue(&crowd.victim);
        victim_finish(&crowd.victim);
        engine_collect(engine);
        for (unsigned i = 0; text(&outside) != byte; i++) {
                engine_collect(engine);
                (void) usleep(1000);
                assert_true(i < 60000);
        }
        assert_true(spares_others(engine, one));
}

/* Before Linux 6.10 the probe is in every process, and what others hit is counted. */
static void test_where_probes_are_in_all_processes(void **state) {
        _cleanup_(caller_done) Caller inside = {}, outside = {};
        Engine *engine = *state;
        unsigned char byte;
        uint32_t one;

        caller_start(&inside, ONE, "call:7 say:done");
        caller_start(&outside, TWO, "call:3 say:done");
        byte = text(&outside);
        one = add(engine, "one.service", ONE);
        assert_int_not_equal(text(&inside), byte);
        assert_int_not_equal(text(&outside), byte);
        assert_false(spares_others(engine, one));
        step(engine, &inside, "done");
        step(engine, &outside, "done");
        assert_int_equal(starts(engine, one), 7);
        assert_int_equal(engine_statistics(engine, one).counters.outside, 3);
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

ENGINE_TESTS(reach) {
        const struct CMUnitTest tests[] = {
                test(test_a_process_outside_has_no_probe),
                test(test_no_process_has_a_probe_while_the_unit_is_stopped),
                test(test_who_moves_into_the_unit_is_measured),
                test(test_threads_and_programs_that_follow),
                test(test_a_child_gets_a_probe_of_its_own),
                test(test_bindings_of_two_units),
                test(test_bindings_of_two_units_with_one_start),
                test(test_too_many_bindings_of_a_unit),
                test(test_a_crowd_shares_one_probe),
        };

        const struct CMUnitTest tests_without[] = {
                test(test_where_probes_are_in_all_processes),
        };

        if (!uprobe_multi_takes_processes())
                return cmocka_run_group_tests(tests_without, NULL, NULL);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
