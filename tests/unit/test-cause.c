/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/cause.h"
#include "test.h"

#define FRAMES(stack_, ...)                                                                        \
        do {                                                                                       \
                static const char *const frames_[] = { __VA_ARGS__ };                              \
                (stack_)->n = ELEMENTSOF(frames_);                                                 \
                for (size_t i_ = 0; i_ < ELEMENTSOF(frames_); i_++)                                \
                        (void) snprintf((stack_)->frames[i_], TLOB_SYMBOL_LEN, "%s", frames_[i_]); \
        } while (0)

static Peer peer(uint32_t tid, const char *comm) {
        Peer p = { .is_known = true, .tid = tid };

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
        assert_int_equal(cause_make(&stack, &(Peers) {}, &cause), 0);
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
        assert_int_equal(cause_make(&stack, &(Peers) {}, &cause), 0);
        assert_null(cause.blocked_in);
        assert_null(cause.stack);

        FRAMES(&stack, "__schedule", "schedule", "io_schedule_timeout");
        assert_int_equal(cause_make(&stack, &(Peers) {}, &cause), 0);
        assert_null(cause.blocked_in);

        cause_done(&cause);
        FRAMES(&stack, "__schedule", "schedule", "rt_mutex_schedule", "__rt_mutex_slowlock");
        assert_int_equal(cause_make(&stack, &(Peers) {}, &cause), 0);
        assert_string_equal(cause.blocked_in, "__rt_mutex_slowlock");

        /* A read of TCP, and one of an eventfd. */
        cause_done(&cause);
        FRAMES(&stack, "__schedule", "schedule", "schedule_timeout", "wait_woken", "sk_wait_data");
        assert_int_equal(cause_make(&stack, &(Peers) {}, &cause), 0);
        assert_string_equal(cause.blocked_in, "sk_wait_data");

        cause_done(&cause);
        FRAMES(&stack, "__schedule", "schedule", "do_wait_intr_irq", "eventfd_read");
        assert_int_equal(cause_make(&stack, &(Peers) {}, &cause), 0);
        assert_string_equal(cause.blocked_in, "eventfd_read");

        cause_done(&cause);
        FRAMES(&stack, "scheduler_of_my_own");
        assert_int_equal(cause_make(&stack, &(Peers) {}, &cause), 0);
        assert_string_equal(cause.blocked_in, "scheduler_of_my_own");
}

static void test_peers(void **state) {
        _cleanup_(cause_done) Cause cause = {};
        Peers peers = {
                .woken_by = peer(812, "redis-server"),
                .preempted_by = peer(4, "stress\n"),
        };

        assert_int_equal(cause_make(NULL, &peers, &cause), 0);
        assert_string_equal(cause.woken_by, "redis-server[812]");
        assert_string_equal(cause.preempted_by, "stress\\x0a[4]");

        cause_done(&cause);
        peers.woken_by.kind = TLOB_PEER_INTERRUPT;
        peers.preempted_by.pid = 3;
        assert_int_equal(cause_make(NULL, &peers, &cause), 0);
        assert_string_equal(cause.woken_by, "interrupt");
        assert_string_equal(cause.preempted_by, "stress\\x0a[3/4]");
        assert_string_equal(cause_words_for_peer(cause.preempted_by), "preempted by");

        cause_done(&cause);
        peers.preempted_by.kind = TLOB_PEER_QUOTA;
        assert_int_equal(cause_make(NULL, &peers, &cause), 0);
        assert_string_equal(cause.preempted_by, "CPU quota");
        assert_string_equal(cause_words_for_peer(cause.preempted_by), "held back by a");
        assert_false(cause_is_quota_of_unit(cause.preempted_by));
        assert_int_equal(cause_set_quota_of(&cause, "web-a.slice"), 0);
        assert_string_equal(cause.preempted_by, "CPU quota of web-a.slice");
        assert_string_equal(cause_words_for_peer(cause.preempted_by), "held back by the");

        cause_done(&cause);
        peers.preempted_by = peer(7, "CPU quota of x");
        assert_int_equal(cause_make(NULL, &peers, &cause), 0);
        assert_string_equal(cause_words_for_peer(cause.preempted_by), "preempted by");
        assert_string_equal(cause_words_for_peer(NULL), "preempted by");
}

/* Which number is what: a process, or a thread of one. */
static void test_names_of_tasks(void **state) {
        char buf[TASK_NAME_MAX];

        assert_string_equal(task_name_format("nginx", 4711, 4711, buf), "nginx[4711]");
        assert_string_equal(task_name_format("bio_aof", 812, 815, buf), "bio_aof[812/815]");
        assert_string_equal(task_name_format("nginx", 0, 4711, buf), "nginx[4711]");
        assert_string_equal(task_name_format("nginx", 4711, 0, buf), "nginx[4711]");
        assert_string_equal(task_name_format("nginx", 0, 0, buf), "nginx");
        assert_string_equal(task_name_format("sixteen bytes ..", UINT32_MAX, UINT32_MAX - 1, buf),
                            "sixteen bytes ..[4294967295/4294967294]");
}

static void test_copies(void **state) {
        _cleanup_(cause_done) Cause cause = {}, copy = {};
        Peers peers = { .woken_by = peer(0, "all sixteen byte") };
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
                cmocka_unit_test(test_names_of_tasks),
                cmocka_unit_test(test_copies),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
