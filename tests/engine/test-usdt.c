/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Windows between USDT probes, on a program that was made with sys/sdt.h, counts what it passes,
 * and sees its own semaphores.
 */

#include <stdlib.h>

#include "binding/resolve.h"
#include "binding/sites.h"
#include "engine.h"
#include "test.h"

#define MSEC UINT64_C(1000000)

static const char *marked_path(void) {
        const char *path = getenv("TLOB_TEST_MARKED");

        if (!path)
                fail_msg("TLOB_TEST_MARKED does not name the program with USDT probes.");
        return path;
}

static uint32_t add_pair(Engine *engine, const char *start, const char *stop, const char *budget) {
        return engine_add(engine,
                          KEYS("Executable", marked_path(), "Start", start, "Stop", stop,
                               "BudgetSec", budget),
                          NULL);
}

#define PAIR(path, budget)                                                                         \
        KEYS("Executable", path, "Start", "usdt:tlobtest:begin", "Stop", "usdt:tlobtest:end",      \
             "BudgetSec", budget)

static uint32_t add(Engine *engine, const char *budget) {
        return engine_add(engine, PAIR(marked_path(), budget), NULL);
}

static void run(Engine *engine, Victim *victim, const char *words) {
        program_start(victim, marked_path(), words);
        victim_finish(victim);
        engine_collect(engine);
}

static Counters counters(Engine *engine, uint32_t index) {
        return engine_statistics(engine, index).counters;
}

static void assert_whole(Engine *engine, uint32_t index, uint64_t n) {
        Counters c = counters(engine, index);

        assert_int_equal(c.starts, n);
        assert_int_equal(c.in_budget + c.violated, n);
        assert_int_equal(c.nested + c.unmatched, 0);
}

/* pair, other and nap have their own copies of both. */
static void test_all_places(void **state) {
        Engine *engine = *state;
        uint32_t index = add(engine, "1s");
        _cleanup_(victim_done) Victim victim = {};

        run(engine, &victim, "pair:10 other:7 nap:1000 pair:3");
        assert_whole(engine, index, 21);
}

static void test_without_semaphores(void **state) {
        Engine *engine = *state;
        uint32_t index =
                add_pair(engine, "usdt:tlobtest:bare_begin", "usdt:tlobtest:bare_end", "1s");
        _cleanup_(victim_done) Victim victim = {};

        run(engine, &victim, "bare:100 pair:3");
        assert_whole(engine, index, 100);
}

static void test_length(void **state) {
        Engine *engine = *state;
        uint32_t index = add(engine, "1ms");
        _cleanup_(victim_done) Victim victim = {};
        const Report *report;

        run(engine, &victim, "nap:20000000");
        assert_int_equal(victim.n_windows, 1);
        assert_int_equal(engine_count(engine, REPORT_COMPLETION, index), 1);
        report = engine_report(engine, REPORT_COMPLETION, index, 0);
        assert_report_is_sound(report);
        assert_true(report->elapsed_ns >= 20 * MSEC);
        assert_true(report->elapsed_ns <= victim.windows[0].end_ns - victim.windows[0].start_ns);
        assert_true(report->spent_ns[TLOB_SLEEPING] > 10 * MSEC);
}

/* Each place counts once, whoever shares its probe. */
static void expect_semaphores(Victim *victim, const Binding *binding) {
        const BindingSites *sites = &binding->resolved.sites;
        char word[64];

        assert_true(sites->start.n_places > 2 && sites->stop.n_places > 2);
        (void) snprintf(word, sizeof(word), "semaphores-%zu-%zu", sites->start.n_places,
                        sites->stop.n_places);
        victim_expect(victim, word);
}

/* A program sees who listens, whether it was there before or not, and when nobody does any more. */
static void test_semaphores(void **state) {
        _cleanup_(victim_done) Victim victim = {}, later = {};
        _cleanup_(binding_freep) Binding *binding = NULL;
        Engine *engine = *state;
        uint32_t first, second;

        program_start(&victim, marked_path(), "pair:5 look look pair:5 look pair:5 look pair:5");
        victim_expect(&victim, "semaphores-0-0");
        first = engine_add(engine, PAIR(marked_path(), "1s"), &binding);
        victim_continue(&victim);
        expect_semaphores(&victim, binding);
        second = add(engine, "2s");
        victim_continue(&victim);
        expect_semaphores(&victim, binding);
        program_start(&later, marked_path(), "look");
        expect_semaphores(&later, binding);
        victim_continue(&later);
        victim_finish(&later);
        assert_whole(engine, first, 5);
        assert_whole(engine, second, 5);

        engine_remove(engine, first, NULL);
        engine_remove(engine, second, NULL);
        engine_await_detached();
        victim_continue(&victim);
        victim_expect(&victim, "semaphores-0-0");
        victim_continue(&victim);
        victim_finish(&victim);
        assert_int_equal(victim.status, 0);
}

/*
 * What is linked by lld is warned of, and rightly: the kernel counts in the wrong place as a
 * process starts. If this fails, it does not any more, and the warning can go.
 */
static void test_semaphores_in_a_shared_page(void **state) {
        _cleanup_(victim_done) Victim running = {}, later = {};
        _cleanup_(binding_freep) Binding *binding = NULL, *other = NULL;
        _cleanup_free_ char *note = NULL;
        const char *path = getenv("TLOB_TEST_MARKED_LLD");
        Engine *engine = *state;
        uint32_t index;

        if (!path)
                fail_msg("TLOB_TEST_MARKED_LLD does not name the program that lld has linked.");
        (void) engine_add(engine, PAIR(marked_path(), "1s"), &other);
        assert_int_equal(binding_describe_semaphores(other, &note), 0);
        assert_null(note);
        program_start(&running, path, "look pair:5");
        victim_expect(&running, "semaphores-0-0");
        index = engine_add(engine, PAIR(path, "1s"), &binding);
        assert_int_equal(binding_describe_semaphores(binding, &note), 0);
        assert_non_null(note);

        program_start(&later, path, "look pair:7");
        victim_expect(&later, "semaphores-0-0");
        victim_continue(&later);
        victim_finish(&later);
        assert_whole(engine, index, 0);
        victim_continue(&running);
        victim_finish(&running);
        assert_whole(engine, index, 5);
}

/* One can be alone, and begin where another one does. */
static void test_ends_that_are_missing(void **state) {
        Engine *engine = *state;
        uint32_t index = add(engine, "1s");
        _cleanup_(victim_done) Victim victim = {};
        Counters c;

        run(engine, &victim, "end begin begin end end pair:1");
        c = counters(engine, index);
        assert_int_equal(c.starts, 2);
        assert_int_equal(c.in_budget, 2);
        assert_int_equal(c.nested, 1);
        assert_int_equal(c.unmatched, 2);
}

/* From a probe to the return of a function, by its offset, or the other way round. */
static void test_with_another_place(void **state) {
        Engine *engine = *state;
        uint32_t index = add_pair(engine, "marked_bare", "usdt:tlobtest:bare_begin", "1s");
        _cleanup_(victim_done) Victim victim = {};

        run(engine, &victim, "bare:1 bare:1 bare:1");
        assert_whole(engine, index, 3);
}

static void assert_refused(Engine *engine, const char *const *keys) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *reason = NULL;
        uint32_t index;

        assert_ok(binding_new("other", &binding));
        engine_set_keys(binding, keys);
        assert_ok(binding_resolve(binding, &file, NULL));
        assert_int_equal(engine->backend->ops->add(engine->backend, binding, file, &index, &reason),
                         -EINVAL);
        assert_non_null(strstr(reason, "with another semaphore (USDT) or none"));
}

/* Somebody else has a probe there that says nothing of the semaphore. */
static void test_another_semaphore(void **state) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        Engine *engine = *state;
        char offset[32];

        (void) engine_add(engine, PAIR(marked_path(), "1s"), &binding);
        (void) snprintf(offset, sizeof(offset), "0x%llx",
                        (unsigned long long) binding->resolved.sites.start.offset);
        assert_refused(engine, KEYS("Executable", marked_path(), "Start", offset, "Stop",
                                    "usdt:tlobtest:bare_end", "BudgetSec", "1s"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, engine_setup, engine_teardown)

ENGINE_TESTS(usdt) {
        const struct CMUnitTest tests[] = {
                TEST(test_all_places),
                TEST(test_without_semaphores),
                TEST(test_length),
                TEST(test_semaphores),
                TEST(test_semaphores_in_a_shared_page),
                TEST(test_ends_that_are_missing),
                TEST(test_with_another_place),
                TEST(test_another_semaphore),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
