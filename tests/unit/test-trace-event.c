/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* trace-event.h: what may be written, without looking whether this kernel has it. */

#include "base/trace-event.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "test.h"

static void test_places(void **state) {
        assert_string_equal(trace_event_of_place("event:block:block_rq_issue"),
                            "block:block_rq_issue");
        assert_string_equal(trace_event_of_place("event:"), "");
        assert_string_equal(trace_event_of_place("user_event:request"), "user_event:request");
        assert_null(trace_event_of_place("user_events:request"));
        assert_null(trace_event_of_place("events:a:b"));
        assert_null(trace_event_of_place("main"));
        assert_null(trace_event_of_place(""));
}

static void test_what_may_be_written(void **state) {
        static const char *const events[] = {
                "block:block_rq_issue",
                "syscalls:sys_enter_openat",
                "vmscan:mm_vmscan_direct_reclaim_begin",
                "sched:sched_wakeup",
                "probe_libc:malloc__return",
                "x-y:z",
                "user_event:request",
                "user_events:request",
        };

        for (size_t i = 0; i < ELEMENTSOF(events); i++) {
                _cleanup_free_ char *why = NULL;

                assert_ok(trace_event_check(events[i], &why));
                assert_null(why);
        }
}

static void assert_refused(const char *event, int error, const char *words) {
        _cleanup_free_ char *why = NULL;

        assert_int_equal(trace_event_check(event, &why), error);
        assert_non_null(why);
        if (!strstr(why, words))
                fail_msg("'%s' is not in: %s", words, why);
}

static void test_what_is_no_event(void **state) {
        static const char *const events[] = {
                "",
                "block",
                ":",
                "block:",
                ":block_rq_issue",
                "a:b:c",
                "a/b:c",
                "..:..",
                ".:id",
                "a:../",
                "a b:c",
                "user_event:",
                "user_event:a:b",
                "user_event:../x",
                "block:block_rq_*",
                "a:b\n",
                "\xc3\xa4:b",
                "enable:",
                "a:.",
                "a:b ",
                "sixty-four-characters-are-too-many-for-the-name-of-a-group-they-are:b",
        };

        for (size_t i = 0; i < ELEMENTSOF(events); i++)
                assert_refused(events[i], -EINVAL, "write event:GROUP:NAME");
}

static void test_those_that_cannot_be(void **state) {
        assert_refused("sched:sched_switch", -EOPNOTSUPP, "tells running from waiting");
        assert_refused("kmem:kmalloc", -EOPNOTSUPP, "tlobd's own BPF programs");
        assert_refused("timer:hrtimer_start", -EOPNOTSUPP, "tlobd's own BPF programs");
        assert_refused("irq:softirq_entry", -EOPNOTSUPP, "no task");
        assert_refused("tlb:tlb_flush", -EOPNOTSUPP, "switches from one task");
        assert_refused("ftrace:function", -EOPNOTSUPP, "is not a tracepoint");
        assert_refused("irq_vectors:local_timer_entry", -EOPNOTSUPP, "no task");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_places),
                cmocka_unit_test(test_what_may_be_written),
                cmocka_unit_test(test_what_is_no_event),
                cmocka_unit_test(test_those_that_cannot_be),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
