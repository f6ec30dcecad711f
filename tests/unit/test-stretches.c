/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which functions are candidates, from stacks that are made up: those of a server. */

#include "suggest/stretches.h"

#include <sys/syscall.h>

#include "budget.h"
#include "suggest/candidates.h"
#include "suggest/members.h"
#include "suggest/sleepers.h"
#include "test.h"

#define MSEC UINT64_C(1000000)

enum {
        MAIN,
        LOOP,
        ITERATION,
        WAIT,
        REQUEST,
        WORK,
        SYNC,
};

#define STACK(...)                                                                                 \
        (const StretchFrame[]){ __VA_ARGS__ },                                                     \
                sizeof((const StretchFrame[]) { __VA_ARGS__ }) / sizeof(StretchFrame)

static int set_up(void **state) {
        return stretches_new((Stretches **) state);
}

static int tear_down(void **state) {
        stretches_free(*state);
        return 0;
}

static void add(Stretches *s, pid_t tid, const StretchFrame *frames, size_t n, uint64_t ns) {
        const StretchStack stack = {
                .tid = tid,
                .frames = frames,
                .n = n,
                .is_complete = frames[0].function == MAIN,
                .is_idle = frames[n - 1].function == WAIT,
        };

        assert_ok(stretches_add(s, &stack, ns));
}

/* A request in a thread: its frame is at another place each time that its caller's is. */
static void serve(Stretches *s, pid_t tid, uint64_t sp) {
        /* It waits for the request, works, and syncs. */
        add(s, tid, STACK({ MAIN, 1000 }, { LOOP, 900 }, { ITERATION, 800 }, { WAIT, 700 }),
            90 * MSEC);
        add(s, tid,
            STACK({ MAIN, 1000 }, { LOOP, 900 }, { ITERATION, 800 }, { REQUEST, sp },
                  { WORK, sp - 100 }),
            5 * MSEC);
        add(s, tid,
            STACK({ MAIN, 1000 }, { LOOP, 900 }, { ITERATION, 800 }, { REQUEST, sp },
                  { SYNC, sp - 50 }),
            20 * MSEC);
}

static void test_a_server(void **state) {
        static const uint32_t expected[] = { REQUEST, SYNC, WORK };
        Stretches *s = *state;
        Stretch ranked[16];

        for (unsigned i = 0; i < 20; i++)
                serve(s, 1 + (pid_t) (i % 2), 600 - i);
        assert_int_equal(stretches_rank(s, ranked, 16), ELEMENTSOF(expected));
        for (size_t i = 0; i < ELEMENTSOF(expected); i++)
                assert_int_equal(ranked[i].function, expected[i]);
        assert_int_equal(ranked[0].spent_ns, 20 * 25 * MSEC);
        assert_int_equal(ranked[0].n_seen, 40);
        /* One is not over at the end of each thread. */
        assert_int_equal(ranked[0].n_ended, 18);
        assert_int_equal(ranked[1].spent_ns, 20 * 20 * MSEC);
        assert_int_equal(stretches_get_spent(s), 20 * 25 * MSEC);
        assert_int_equal(stretches_get_spent_in(s, WAIT), 0);
        assert_int_equal(stretches_get_spent_in(s, 12345), 0);
}

/* What is outside is not known: that nothing of it is there does not mean that it has ended. */
static void test_in_part(void **state) {
        Stretches *s = *state;
        Stretch ranked[16];

        for (unsigned i = 0; i < 10; i++) {
                serve(s, 1, 600 - i);
                add(s, 1, STACK({ SYNC, 550 - i }), 20 * MSEC);
        }
        assert_int_equal(stretches_rank(s, ranked, 16), 3);
        assert_int_equal(ranked[0].function, SYNC);
        assert_int_equal(ranked[1].function, REQUEST);
        assert_int_equal(ranked[1].n_ended, 9);
}

/* At most so many, and the first. */
static void test_so_many(void **state) {
        Stretches *s = *state;
        Stretch ranked[1];

        for (unsigned i = 0; i < 4; i++)
                serve(s, 1, 600 - i);
        assert_int_equal(stretches_rank(s, ranked, 1), 1);
        assert_int_equal(ranked[0].function, REQUEST);
}

/* A function that calls itself has spent its time once. */
static void test_recursion(void **state) {
        Stretches *s = *state;

        add(s, 1, STACK({ MAIN, 9 }, { WORK, 8 }, { REQUEST, 7 }, { WORK, 6 }), 5 * MSEC);
        assert_int_equal(stretches_get_spent_in(s, WORK), 5 * MSEC);
}

/* Deeper than anybody looks. */
static void test_deep(void **state) {
        StretchFrame frames[STRETCH_FRAMES_MAX + 1];
        StretchStack stack = { .tid = 1, .frames = frames, .n = STRETCH_FRAMES_MAX };
        Stretches *s = *state;

        for (size_t i = 0; i <= STRETCH_FRAMES_MAX; i++)
                frames[i] = (StretchFrame) { (uint32_t) i, 10000 - i };
        assert_ok(stretches_add(s, &stack, MSEC));
        assert_int_equal(stretches_get_spent_in(s, STRETCH_FRAMES_MAX - 1), MSEC);
        stack.n++;
        assert_int_equal(stretches_add(s, &stack, MSEC), -E2BIG);
}

static void test_waiting(void **state) {
        assert_true(call_is_of_waiting("epoll_wait"));
        assert_true(call_is_of_waiting("clock_nanosleep"));
        assert_false(call_is_of_waiting("fsync"));
        assert_false(call_is_of_waiting("futex"));
        assert_false(call_is_of_waiting(""));
}

/* As in /proc/PID/task/TID/syscall. */
static void test_sleepers(void **state) {
        static const char *const others[] = {
                "running\n", "-1 0x7ffc8a0 0x55d0\n", "", "0\n", "fsync 1 2 3\n",
        };
        uint32_t call = 0;
        uint64_t sp, ip;

        assert_true(sleeper_parse("270 0x0 0x0 0x0 0x0 0x7ffdc8a0f3b0 0x0 0x7ffdc8a0f388 "
                                  "0x7f2b3c4e6d47\n",
                                  &call, &sp, &ip));
        assert_int_equal(call, 270);
        assert_int_equal(sp, 0x7ffdc8a0f388);
        assert_int_equal(ip, 0x7f2b3c4e6d47);
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                assert_false(sleeper_parse(others[i], &call, &sp, &ip));
}

static void test_calls(void **state) {
        _cleanup_(candidates_done) Candidates candidates = {};
        uint64_t spent_ns[400] = {
                [SYS_fsync] = 50,    [SYS_fdatasync] = 700, [SYS_execve] = 900,
                [SYS_unlinkat] = 60, [SYS_write] = 9,
        };

        assert_ok(candidates_add_calls(&candidates, spent_ns, ELEMENTSOF(spent_ns), 1000));
        assert_int_equal(candidates.n, 2);
        assert_string_equal(candidates.items[0].label, "syscall:fdatasync");
        assert_string_equal(candidates.items[1].start, "syscall:unlinkat");
        assert_null(candidates.items[1].executable);
}

static void test_members(void **state) {
        assert_true(line_is_in_cgroup("0::/a.slice/b.service\n", "/a.slice/b.service"));
        assert_true(line_is_in_cgroup("0::/a.slice/b.service/c\n", "/a.slice/b.service"));
        assert_false(line_is_in_cgroup("0::/a.slice/b.service2\n", "/a.slice/b.service"));
        assert_false(line_is_in_cgroup("0::/a.slice\n", "/a.slice/b.service"));
        assert_false(
                line_is_in_cgroup("1:name=systemd:/a.slice/b.service\n", "/a.slice/b.service"));
}

static void test_budgets(void **state) {
        static const uint64_t cases[][2] = {
                { 0, 1000 },
                { 1, 1000 },
                { 1000, 1500 },
                { 4123456, 6200000 },
                { 66000000, 99000000 },
                { 67000000, 110000000 },
                { 1000000000, 1500000000 },
                { UINT64_C(3500000000000), UINT64_MAX },
                { UINT64_MAX, UINT64_MAX },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_int_equal(budget_propose(cases[i][0]), cases[i][1]);
}

static void test_section_names_are_told_apart(void **state) {
        const Candidate candidate = { .label = (char *) "Beta::process" };
        _cleanup_free_ char *name = candidate_make_name(&candidate, 2);

        assert_string_equal(name, "process-2");
}

static void test_section_names(void **state) {
        static const char *const cases[][2] = {
                { "processCommand", "processCommand" },
                { "syscall:fsync", "fsync" },
                { "usdt:postgresql:query__start", "query__start" },
                { "Mark=request", "request" },
                { "ns::Class::method", "method" },
                { "a<b, c>::operator()", "operator" },
                { "0x1a2b", "0x1a2b" },
                { "()", "window" },
                { "a_function_with_a_name_that_is_far_too_long_for_a_section",
                  "a_function_with_a_name_that_is_far_too_l" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const Candidate candidate = { .label = (char *) cases[i][0] };
                _cleanup_free_ char *name = candidate_make_name(&candidate, 1);

                assert_string_equal(name, cases[i][1]);
        }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_server),
                TEST(test_in_part),
                TEST(test_so_many),
                TEST(test_recursion),
                TEST(test_deep),
                cmocka_unit_test(test_waiting),
                cmocka_unit_test(test_sleepers),
                cmocka_unit_test(test_calls),
                cmocka_unit_test(test_members),
                cmocka_unit_test(test_budgets),
                cmocka_unit_test(test_section_names),
                cmocka_unit_test(test_section_names_are_told_apart),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
