/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Windows without traps (engine/joiner.c): counted and judged as those with traps are, by the
 * program's own count and clock, with everything that can come between.
 */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bpf/join.h"
#include "engine.h"
#include "test.h"

#define MSEC UINT64_C(1000000)

static uint32_t add_mark(Engine *engine, const char *mark, const char *budget) {
        const char *path = getenv("TLOB_TEST_JOINER");

        if (!path)
                fail_msg("TLOB_TEST_JOINER does not name what has marks.");
        return engine_add(engine, KEYS("Executable", path, "Mark", mark, "BudgetSec", budget),
                          NULL);
}

static uint32_t add(Engine *engine, const char *budget) {
        return add_mark(engine, "request", budget);
}

static void start(Victim *victim, const char *words) {
        program_start(victim, getenv("TLOB_TEST_JOINER"), words);
}

typedef struct Result {
        unsigned long n_begun;
        int n_signals;
} Result;

/* Whoever asks for lanes is answered by the back end: it has to be looked at meanwhile. */
static Result finish(Engine *engine, Victim *victim) {
        char text[RESULT_MAX];
        Result result;
        siginfo_t info;

        do {
                info.si_pid = 0;
                engine_collect(engine);
                (void) usleep(1000);
                assert_int_equal(
                        waitid(P_PID, (id_t) victim->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
        } while (info.si_pid == 0);
        program_finish(victim, text);
        assert_int_equal(sscanf(text, "result %lu %i", &result.n_begun, &result.n_signals), 2);
        engine_collect(engine);
        return result;
}

/* The same until it says that word. */
static void expect(Engine *engine, Victim *victim, const char *word) {
        struct pollfd out = { .fd = fileno(victim->out), .events = POLLIN };

        while (poll(&out, 1, 1) == 0)
                engine_collect(engine);
        victim_expect(victim, word);
}

static Result run(Engine *engine, Victim *victim, const char *words) {
        start(victim, words);
        return finish(engine, victim);
}

/* path: a template for mkstemp(). */
static void copy_program(const char *from, char *path) {
        int in = open(from, O_RDONLY | O_CLOEXEC), out = mkstemp(path);
        struct stat st;

        assert_true(in >= 0 && out >= 0);
        assert_int_equal(fstat(in, &st), 0);
        assert_int_equal(sendfile(out, in, NULL, (size_t) st.st_size), st.st_size);
        assert_int_equal(fchmod(out, 0755), 0);
        (void) close(in);
        (void) close(out);
}

static uint64_t n_lengths(Engine *engine, uint32_t index) {
        Histogram histogram = {};
        uint64_t n = 0;

        assert_int_equal(engine->backend->ops->histogram(engine->backend, index, &histogram), 0);
        for (size_t i = 0; i < TLOB_BUCKETS; i++)
                n += histogram.counts[i];
        return n;
}

/* As many as the program has begun, each with its end and its length. */
static Statistics assert_whole(Engine *engine, uint32_t index, unsigned long n) {
        Statistics s = engine_statistics(engine, index);

        assert_int_equal(s.counters.starts, n);
        assert_int_equal(s.counters.in_budget + s.counters.violated, n);
        assert_int_equal(s.counters.nested, 0);
        assert_int_equal(s.counters.unmatched, 0);
        assert_int_equal(s.open, 0);
        assert_int_equal(n_lengths(engine, index), n);
        return s;
}

/* Nearly none of them takes a trap. */
static void many(Engine *engine, const char *words, unsigned long n) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(engine, "1min");
        uint64_t trap_ns = engine->backend->ops->prices(engine->backend)->ns[PROBE_EMULATED];
        Statistics s;
        Result result;

        result = run(engine, &victim, words);
        s = assert_whole(engine, index, result.n_begun);
        assert_true(result.n_begun > n);
        assert_int_equal(s.counters.violations, 0);
        assert_true(s.cost_ns < trap_ns * (n / 10));
        assert_true(s.counters.untrapped > n / 100 * 99);
        /* Each other one takes a trap at least. */
        assert_true(s.counters.untrapped < result.n_begun);
        assert_true(s.cost_ns >= trap_ns * (result.n_begun - s.counters.untrapped));
        assert_true(s.counters.spent_ns[TLOB_RUNNING] > 0);
        assert_true(s.max_ns >= s.counters.elapsed_ns / result.n_begun);
}

static void test_many(void **state) {
        many(*state, "ready pair:1000000", 1000000);
}

/* In four threads. */
static void test_millions(void **state) {
        if (machine_is_emulated())
                many(*state, "ready thread:250000", 1000000);
        else
                many(*state, "ready thread:2500000", 10000000);
}

#define RACES 5UL

/*
 * Threads join at the same time, number their marks, and take lanes that others have left. With
 * thread sanitizer, the joiner has it, too.
 */
static void test_races(void **state) {
        Engine *engine = *state;
        uint32_t index = add(engine, "1s"), part = add_mark(engine, "part", "1s"),
                 key = add_mark(engine, "key", "1s");
        unsigned long n = 0;

        for (unsigned i = 0; i < RACES; i++) {
                _cleanup_(victim_done) Victim victim = {};

                n += run(engine, &victim, "parts:3000 thread:1000 parts:3000").n_begun;
        }
        assert_whole(engine, index, n);
        assert_whole(engine, part, RACES * 2 * 4 * 3000);
        assert_whole(engine, key, RACES * 2 * 4 * 3000);
}

/* Their number is in the books at any moment; of a program that finds no socket, it is none. */
static void test_untrapped(void **state) {
        Engine *engine = *state;
        _cleanup_(victim_done) Victim joined = {}, refused = {};
        uint32_t index = add(engine, "1s");
        const char *path = getenv("TLOB_TEST_MARKS");
        Statistics s;
        Result result;

        start(&joined, "ready pair:100000 say:counted pair:100000");
        expect(engine, &joined, "counted");
        assert_true(engine_statistics(engine, index).counters.untrapped > 99000);
        assert_int_equal(engine->backend->ops->reset_statistics(engine->backend, index), 0);
        assert_int_equal(engine_statistics(engine, index).counters.untrapped, 0);
        victim_continue(&joined);
        (void) finish(engine, &joined);
        s = assert_whole(engine, index, 100000);
        assert_true(s.counters.untrapped > 99000 && s.counters.untrapped <= 100000);

        assert_int_equal(engine->backend->ops->reset_statistics(engine->backend, index), 0);
        assert_int_equal(setenv("TLOB_TEST_MARKS", "/nonexistent", true), 0);
        result = run(engine, &refused, "pair:1000");
        assert_int_equal(setenv("TLOB_TEST_MARKS", path, true), 0);
        assert_int_equal(assert_whole(engine, index, result.n_begun).counters.untrapped, 0);
}

/* What a lane has is in the books while the thread goes on, and does not go back. */
static void test_looks(void **state) {
        Engine *engine = *state;
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(engine, "1s");
        uint64_t last = 0, now;
        unsigned n_grown = 0;
        Statistics s;
        Result result;

        start(&victim, "ready pair:20000000");
        for (unsigned i = 0; i < 500; i++) {
                (void) usleep(2000);
                engine_collect(engine);
                assert_int_equal(engine->backend->ops->statistics(engine->backend, index, &s), 0);
                now = s.counters.starts;
                assert_true(now >= last);
                n_grown += now > last;
                last = now;
        }
        assert_true(n_grown > 50);
        result = finish(engine, &victim);
        assert_whole(engine, index, result.n_begun);
}

/* The only violation in that record. The others are of a CPU that has stood still. */
static const Report *violation_in(Engine *engine, uint32_t index, const Window *record) {
        const Report *report, *found = NULL;

        for (size_t i = 0; i < engine_count(engine, REPORT_VIOLATION, index); i++) {
                report = engine_report(engine, REPORT_VIOLATION, index, i);
                if (report->time_ns < record->start_ns || report->time_ns > record->end_ns)
                        continue;
                assert_null(found);
                found = report;
        }
        assert_non_null(found);
        return found;
}

/* A window that sleeps is one of the kernel's: its states are as exact as any. */
static void test_states(void **state) {
        Engine *engine = *state;
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(engine, "250ms");
        const Report *violation, *completion;
        const Window *nap;
        Result result;

        result = run(engine, &victim, "ready nap:500000000 pair:100");
        assert_whole(engine, index, result.n_begun);
        violation = violation_in(engine, index, &victim.windows[0]);
        completion = engine_completion(engine, violation);
        assert_report_is_sound(violation);
        assert_report_is_sound(completion);
        assert_true(violation->elapsed_ns >= 250 * MSEC);
        /* It was open when it was found. An emulated CPU can stand still for longer than it was. */
        if (!machine_is_emulated()) {
                assert_int_equal(violation->state, TLOB_SLEEPING);
                assert_true(violation->elapsed_ns < completion->elapsed_ns);
        }
        nap = &victim.windows[0];
        assert_true(completion->elapsed_ns <= nap->end_ns - nap->start_ns);
        assert_true(completion->elapsed_ns >= 500 * MSEC);
        /* Its timer runs before it sleeps: what it takes until then, it does not sleep. */
        assert_true(completion->spent_ns[TLOB_SLEEPING] >= 250 * MSEC);
}

/* The tick finds one that runs. */
static void test_running(void **state) {
        Engine *engine = *state;
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(engine, "5ms");
        const Report *violation, *completion;
        Result result;

        result = run(engine, &victim, "ready spin:500000000 pair:100");
        assert_whole(engine, index, result.n_begun);
        violation = violation_in(engine, index, &victim.windows[0]);
        completion = engine_completion(engine, violation);
        assert_report_is_sound(violation);
        assert_true(violation->elapsed_ns < completion->elapsed_ns);
        assert_true(completion->elapsed_ns >= 500 * MSEC);
}

/* Over before any tick: found at the end. */
static void test_short_budget(void **state) {
        Engine *engine = *state;
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(engine, "50us");
        Statistics s;
        Result result;

        result = run(engine, &victim, "ready spin:100000 spin:100000 spin:100000");
        s = assert_whole(engine, index, result.n_begun);
        assert_true(s.counters.violations >= 3);
        assert_int_equal(s.counters.violations, s.counters.violated);
}

static void test_ways(void **state) {
        static const char *const ways[] = {
                "ready turns:2000",           "ready thread:300000",
                "ready fork:50 pair:50",      "ready vfork:50 ready pair:50 quick",
                "ready spawn:20 ready quick",
        };

        for (size_t i = 0; i < ELEMENTSOF(ways); i++) {
                _cleanup_(victim_done) Victim victim = {};
                uint32_t index = add(*state, "1min");
                Result result;
                Statistics s;

                result = run(*state, &victim, ways[i]);
                s = engine_statistics(*state, index);
                assert_int_equal(s.counters.starts, result.n_begun);
                assert_int_equal(s.counters.in_budget, result.n_begun);
                /* The end in the child. */
                assert_int_equal(s.counters.unmatched, strstr(ways[i], " fork:") ? 1 : 0);
                assert_int_equal(s.counters.nested, 0);
                engine_remove(*state, index, NULL);
        }
}

/* The outer window ends with the inner one, as with probes. */
static void test_nested(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(*state, "1min");
        Result result;
        Counters c;

        result = run(*state, &victim, "ready nest:2000");
        c = engine_statistics(*state, index).counters;
        assert_int_equal(c.starts, result.n_begun + 2000);
        assert_int_equal(c.in_budget, result.n_begun + 2000);
        assert_int_equal(c.nested, 2000);
        assert_int_equal(c.unmatched, 2000);
}

/* A handler of the same mark comes at any instruction: hardly anything is counted twice. */
static void test_in_a_handler(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(*state, "1min");
        unsigned long n_made;
        Result result;
        Counters c;

        result = run(*state, &victim, "ready signal:3000000");
        c = engine_statistics(*state, index).counters;
        n_made = result.n_begun + 3000000 + (unsigned long) result.n_signals;
        assert_true(result.n_signals > 10);
        assert_true(c.starts <= n_made);
        assert_true(c.starts + c.nested <= n_made + (unsigned long) result.n_signals / 10);
        /* Of two that meet, one is nested; one in the middle of a begin or end is lost. */
        assert_true(c.starts + 2 * (unsigned long) result.n_signals >= n_made);
        assert_int_equal(c.violations, 0);
        assert_int_equal(n_lengths(*state, index), c.in_budget);
}

/* A jump out of anywhere: the thread is seen again. */
static void test_jumps(void **state) {
        Engine *engine = *state;
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(engine, "30ms");

        (void) run(engine, &victim,
                   "ready jump:300 idle:1100000000 ready pair:3 nap:60000000 ready "
                   "quick nap:60000000");
        (void) engine_statistics(engine, index);
        assert_true(engine_count(engine, REPORT_VIOLATION, index) >= 2);
}

/* A window of another kind that begins in one without traps, while ticks come. */
static void test_beside_a_call(void **state) {
        Engine *engine = *state;
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(engine, "10us"), call;
        Result result;
        Counters c;

        call = engine_add(engine, KEYS("Syscall", "getpgid", "BudgetSec", "1min"), NULL);
        result = run(engine, &victim, "ready calls:300000");
        c = engine_statistics(engine, index).counters;
        assert_int_equal(c.starts, result.n_begun);
        assert_int_equal(c.in_budget + c.violated, result.n_begun);
        c = engine_statistics(engine, call).counters;
        assert_int_equal(c.in_budget, c.starts);
        assert_true(c.starts >= 300000);
}

static void test_exit_and_exec(void **state) {
        Engine *engine = *state;
        _cleanup_(victim_done) Victim first = {}, second = {};
        uint32_t index = add(engine, "1min");
        Counters c;

        run(engine, &first, "ready begin");
        c = engine_statistics(engine, index).counters;
        assert_int_equal(c.ended[TLOB_END_EXIT], 1);
        start(&second, "ready say:ready exec");
        expect(engine, &second, "ready");
        victim_continue(&second);
        victim_finish(&second);
        engine_collect(engine);
        c = engine_statistics(engine, index).counters;
        assert_int_equal(c.ended[TLOB_END_EXEC], 1);
        assert_int_equal(c.starts, c.in_budget + 2);
}

/* Killed at any moment, what was counted until then is in the books, and a page is free again. */
static void test_killed(void **state) {
        Engine *engine = *state;
        uint32_t index = add(engine, "1min");

        for (unsigned i = 0; i < 3 * ENGINE_PAGES_MAX; i++) {
                _cleanup_(victim_done) Victim victim = {};
                Statistics s;

                start(&victim, "ready say:ready pair:1000000000");
                expect(engine, &victim, "ready");
                victim_continue(&victim);
                (void) usleep(1000 * (i % 7));
                assert_int_equal(kill(victim.pid, SIGKILL), 0);
                assert_int_equal(waitpid(victim.pid, NULL, 0), victim.pid);
                victim.pid = 0;
                engine_collect(engine);
                s = engine_statistics(engine, index);
                assert_int_equal(s.open, 0);
                assert_int_equal(n_lengths(engine, index),
                                 s.counters.in_budget + s.counters.ended[TLOB_END_EXIT]);
        }
}

/* Another budget holds from then on, and one that is removed leaves nothing. */
static void test_changes(void **state) {
        Engine *engine = *state;
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(engine, "1s");
        uint64_t budget_ns[TLOB_N_BUDGETS];
        Statistics final;
        Result result;

        for (size_t i = 0; i < TLOB_N_BUDGETS; i++)
                budget_ns[i] = UINT64_MAX;
        budget_ns[TLOB_BUDGET_TOTAL] = MSEC;
        start(&victim, "ready spin:2000000 say:ready spin:2000000 spin:2000000 say:again "
                       "pair:100000");
        expect(engine, &victim, "ready");
        assert_int_equal(engine->backend->ops->set_budget(engine->backend, index, budget_ns), 0);
        victim_continue(&victim);
        expect(engine, &victim, "again");
        engine_collect(engine);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, index), 2);
        engine_remove(engine, index, &final);
        assert_int_equal(final.counters.violated, 2);
        index = add(engine, "1s");
        victim_continue(&victim);
        result = finish(engine, &victim);
        assert_whole(engine, index, 100000);
        assert_int_equal(result.n_begun, final.counters.starts + 100000);
}

/* Who also wants to know of one end of the mark sees each of them. */
static void test_others(void **state) {
        Engine *engine = *state;
        _cleanup_(victim_done) Victim victim = {};
        uint32_t index = add(engine, "1s"), other;
        Result result;

        other = engine_add(engine,
                           KEYS("Executable", getenv("TLOB_TEST_JOINER"), "Start",
                                "usdt:tlob:request__begin", "Stop", "joiner_pass", "BudgetSec",
                                "1s"),
                           NULL);
        result = run(engine, &victim, "pair:50000");
        assert_whole(engine, index, result.n_begun);
        assert_whole(engine, other, result.n_begun);
}

/* What a program writes into its page makes its own numbers wrong, and no others. */
static void test_scribbles(void **state) {
        Engine *engine = *state;
        _cleanup_(victim_done) Victim bad = {};
        char path[] = "/tmp/tlob-scribbler-XXXXXX", words[64], text[RESULT_MAX];
        const char *given = getenv("TLOB_SCRIBBLE_SECONDS");
        unsigned seconds = given ? (unsigned) atoi(given) : 2;
        uint64_t end_ns = now_ns() + seconds * UINT64_C(1000000000);
        uint32_t index = add(engine, "1min"), other;
        unsigned long n = 0;

        copy_program(getenv("TLOB_TEST_JOINER"), path);
        other = engine_add(engine, KEYS("Executable", path, "Mark", "request", "BudgetSec", "1ms"),
                           NULL);
        (void) snprintf(words, sizeof(words), "ready say:ready scribble:%u000", seconds);
        program_start(&bad, path, words);
        expect(engine, &bad, "ready");
        victim_continue(&bad);
        do {
                _cleanup_(victim_done) Victim good = {};

                n += run(engine, &good, "ready pair:3000000 turns:500 thread:100000 nap:5000000")
                             .n_begun;
        } while (now_ns() < end_ns);
        assert_whole(engine, index, n);
        assert_int_equal(engine_count(engine, REPORT_VIOLATION, index), 0);
        program_finish(&bad, text);
        engine_collect(engine);
        /* Its binding can be taken away, whatever its books say. */
        engine->added[other] = false;
        assert_int_equal(engine->backend->ops->remove(engine->backend, other, NULL, NULL), 0);
        assert_int_equal(unlink(path), 0);
}

/* What a process is given is memory of the kernel's that counts as ours. */
static void test_who_keeps_a_page_gets_no_other(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;

        (void) add(engine, "1min");
        start(&victim, "pair:1 hoard:20");
        expect(engine, &victim, "hoarded-1");
        victim_continue(&victim);
        (void) finish(engine, &victim);
}

/*
 * As a library of the program does, which has marks of its own, in a moment in which no thread has
 * a lane.
 */
static void test_who_asks_again_keeps_its_page(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t index = add(engine, "1min");

        start(&victim, "pair:1 thread:1000 hoard:1 thread:1000");
        expect(engine, &victim, "hoarded-0");
        victim_continue(&victim);
        assert_whole(engine, index, finish(engine, &victim).n_begun);
}

/* It leaves the lanes to those that have room. */
static void test_a_fifth_mark_takes_no_lane(void **state) {
        static const char *const others[] = { "part", "key", "fourth" };
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t index = add(engine, "1min"), fifth;

        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                (void) add_mark(engine, others[i], "1min");
        fifth = add_mark(engine, "fifth", "1min");
        assert_whole(engine, index, run(engine, &victim, "ready beyond:40 thread:10").n_begun);
        assert_whole(engine, fifth, 80);
}

/* Another daemon on the machine, as one that shows what it can do, takes nothing away. */
static void test_a_socket_that_is_listened_at(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        const char *path = engine_marks_socket();
        struct stat before, after;
        JoinServer *other = NULL;
        Engine *engine = *state;

        (void) add(engine, "1min");
        assert_ok(stat(path, &before));
        assert_int_equal(
                join_server_new(path, &(LaneTable) {}, NULL, &(JoinHandlers) {}, NULL, &other),
                -EADDRINUSE);
        assert_ok(stat(path, &after));
        assert_int_equal(after.st_ino, before.st_ino);
        start(&victim, "ready");
        (void) finish(engine, &victim);
}

#define test(f) cmocka_unit_test_setup_teardown(f, engine_setup, engine_teardown)

ENGINE_TESTS(join) {
        const struct CMUnitTest tests[] = {
                test(test_many),
                test(test_millions),
                test(test_races),
                test(test_untrapped),
                test(test_looks),
                test(test_states),
                test(test_running),
                test(test_short_budget),
                test(test_ways),
                test(test_nested),
                test(test_in_a_handler),
                test(test_jumps),
                test(test_beside_a_call),
                test(test_exit_and_exec),
                test(test_killed),
                test(test_changes),
                test(test_others),
                test(test_scribbles),
                test(test_who_keeps_a_page_gets_no_other),
                test(test_who_asks_again_keeps_its_page),
                test(test_a_fifth_mark_takes_no_lane),
                test(test_a_socket_that_is_listened_at),
        };

        return cmocka_run_group_tests_name("join", tests, NULL, NULL);
}
