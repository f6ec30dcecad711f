/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "cause.h"
#include "test.h"

#define FRAMES(stack_, ...)                                                                        \
        do {                                                                                       \
                static const char *const frames_[] = { __VA_ARGS__ };                              \
                (stack_)->n = ELEMENTSOF(frames_);                                                 \
                for (size_t i_ = 0; i_ < ELEMENTSOF(frames_); i_++)                                \
                        (void) snprintf((stack_)->frames[i_], TLOB_SYMBOL_LEN, "%s", frames_[i_]); \
        } while (0)

static struct tlob_peer peer(uint64_t time_ns, uint32_t tid, const char *comm) {
        struct tlob_peer p = { .time_ns = time_ns, .tid = tid };

        memcpy(p.comm, comm, strlen(comm));
        return p;
}

static void test_the_scheduler_is_not_the_cause(void **state) {
        _cleanup_(cause_done) Cause cause = {};
        Stack stack = {};

        FRAMES(&stack, "bpf_prog_6deef7357e7b4530_on_switch", "bpf_trace_run4", "__schedule",
               "schedule", "schedule_hrtimeout_range_clock", "ep_poll.constprop.0",
               "do_epoll_wait");
        stack_trim(&stack);
        assert_int_equal(stack.n, 5);
        assert_int_equal(cause_make(&stack, &(Peers){}, &cause), 0);
        assert_string_equal(cause.blocked_in, "ep_poll");
        assert_string_equal(cause.stack[0], "__schedule");
        assert_string_equal(cause.stack[4], "do_epoll_wait");
        assert_null(cause.stack[5]);
        assert_null(cause.woken_by);
        assert_null(cause.preempted_by);
}

static void test_a_stack_of_nothing_else(void **state) {
        _cleanup_(cause_done) Cause cause = {};
        Stack stack = {};

        stack_trim(&stack);
        assert_int_equal(cause_make(&stack, &(Peers){}, &cause), 0);
        assert_null(cause.blocked_in);
        assert_null(cause.stack);

        FRAMES(&stack, "__schedule", "schedule", "io_schedule_timeout");
        assert_int_equal(cause_make(&stack, &(Peers){}, &cause), 0);
        assert_null(cause.blocked_in);

        cause_done(&cause);
        FRAMES(&stack, "scheduler_of_my_own");
        assert_int_equal(cause_make(&stack, &(Peers){}, &cause), 0);
        assert_string_equal(cause.blocked_in, "scheduler_of_my_own");
}

static void test_peers(void **state) {
        _cleanup_(cause_done) Cause cause = {};
        Peers peers = {
                .woken_by = peer(30, 812, "redis-server"),
                .preempted_by = peer(10, 4, "stress\n"),
                .ran_before = peer(20, 4, "stress\n"),
        };

        assert_int_equal(cause_make(NULL, &peers, &cause), 0);
        assert_string_equal(cause.woken_by, "redis-server[812]");
        assert_string_equal(cause.preempted_by, "stress\\x0a[4]");

        cause_done(&cause);
        peers.woken_by.interrupt = 1;
        peers.ran_before = peer(20, 19, "kworker/0:1");
        assert_int_equal(cause_make(NULL, &peers, &cause), 0);
        assert_string_equal(cause.woken_by, "interrupt");
        assert_string_equal(cause.preempted_by, "stress\\x0a[4], kworker/0:1[19]");

        /* It had the CPU before the task was preempted. */
        cause_done(&cause);
        peers.ran_before.time_ns = 5;
        assert_int_equal(cause_make(NULL, &peers, &cause), 0);
        assert_string_equal(cause.preempted_by, "stress\\x0a[4]");

        /* Woken, and kept waiting. */
        cause_done(&cause);
        peers.preempted_by.time_ns = 0;
        assert_int_equal(cause_make(NULL, &peers, &cause), 0);
        assert_string_equal(cause.preempted_by, "kworker/0:1[19]");
}

static void test_copies(void **state) {
        _cleanup_(cause_done) Cause cause = {}, copy = {};
        Peers peers = { .woken_by = peer(1, 0, "all sixteen byte") };
        Stack stack = {};

        FRAMES(&stack, "pipe_read", "vfs_read");
        assert_int_equal(cause_make(&stack, &peers, &cause), 0);
        assert_int_equal(cause_copy(&cause, &copy), 0);
        assert_string_equal(copy.blocked_in, "pipe_read");
        assert_string_equal(copy.stack[1], "vfs_read");
        assert_null(copy.stack[2]);
        /* A task of another pid namespace has no number here. */
        assert_string_equal(copy.woken_by, "all sixteen byte");
        assert_true(copy.blocked_in != cause.blocked_in);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_scheduler_is_not_the_cause),
                cmocka_unit_test(test_a_stack_of_nothing_else),
                cmocka_unit_test(test_peers),
                cmocka_unit_test(test_copies),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
