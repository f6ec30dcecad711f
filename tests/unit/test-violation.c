/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* violation.h: the sentences, word by word, and the ring of recent violations. */

#include "report/violation.h"

#include "test.h"

static Violation example(ReportType type) {
        return (Violation) {
                .report = {
                        .type = type,
                        .elapsed_ns = 5000000,
                        .spent_ns = { 200000, 100000, 4700000 },
                        .pid = 4711,
                        .tid = 4711,
                        .comm = "nginx",
                },
                .binding = (char *) "nginx.service/request",
                .unit = (char *) "nginx.service",
                .budget_ns = 5000000,
        };
}

static void assert_sentence(const Violation *violation, const char *expected) {
        _cleanup_free_ char *sentence = violation_to_sentence(violation);

        assert_string_equal(sentence, expected);
}

static void test_violation(void **state) {
        Violation violation = example(REPORT_VIOLATION);

        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 0.2ms, waiting 0.1ms, sleeping 4.7ms)");

        violation.report.tid = 4712;
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711/4712]: 5.0ms so "
                        "far (running 0.2ms, waiting 0.1ms, sleeping 4.7ms)");

        violation.report.tid = 4711;
        violation.report.budget = TLOB_BUDGET_SLEEPING;
        violation.budget_ns = 4500000;
        violation.suppressed = 1;
        assert_sentence(&violation,
                        "nginx.service/request: over its 4.5ms sleeping budget in nginx[4711]: "
                        "5.0ms so far (running 0.2ms, waiting 0.1ms, sleeping 4.7ms); "
                        "1 report before this one was held back");
}

static void test_cause(void **state) {
        Violation violation = example(REPORT_VIOLATION);

        violation.cause.blocked_in = (char *) "pipe_read";
        violation.cause.preempted_by = (char *) "stress[4]";
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 0.2ms, waiting 0.1ms, sleeping 4.7ms), blocked in pipe_read");

        violation.cause.blocked_in = (char *) "get_signal";
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 0.2ms, waiting 0.1ms, sleeping 4.7ms), stopped or frozen in "
                        "get_signal");

        /* Who had its CPU meanwhile is not why it slept. */
        violation.cause.blocked_in = NULL;
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 0.2ms, waiting 0.1ms, sleeping 4.7ms)");
        violation.cause.woken_by = (char *) "interrupt";
        violation.suppressed = 1;
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 0.2ms, waiting 0.1ms, sleeping 4.7ms), woken by interrupt; "
                        "1 report before this one was held back");

        violation.suppressed = 0;
        violation.report.spent_ns[TLOB_WAITING] = 4700000;
        violation.report.spent_ns[TLOB_SLEEPING] = 100000;
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 0.2ms, waiting 4.7ms, sleeping 0.1ms), preempted by stress[4]");

        violation.report.spent_ns[TLOB_RUNNING] = 4800000;
        violation.report.spent_ns[TLOB_WAITING] = 100000;
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 4.8ms, waiting 0.1ms, sleeping 0.1ms)");

        /* But a quarter of the time without a CPU is worth a word. */
        violation.report.spent_ns[TLOB_RUNNING] = 3700000;
        violation.report.spent_ns[TLOB_WAITING] = 1250000;
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 3.7ms, waiting 1.3ms, sleeping 0.1ms), preempted by stress[4]");
}

/* One that ran nearly all the time. */
static Violation example_of_running(void) {
        Violation violation = example(REPORT_VIOLATION);

        violation.report.spent_ns[TLOB_RUNNING] = 4800000;
        violation.report.spent_ns[TLOB_SLEEPING] = 100000;
        return violation;
}

/* It is said when it is worth a word, and is the cause when it is most of the time. */
static void test_steal(void **state) {
        Violation violation = example_of_running();

        violation.report.stolen_ns = 200000;
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 4.8ms, waiting 0.1ms, sleeping 0.1ms)");
        violation.report.stolen_ns = 2400000;
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 4.8ms of which 2.4ms stolen, waiting 0.1ms, sleeping 0.1ms)");
        violation.report.stolen_ns = 2400001;
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 4.8ms of which 2.4ms stolen, waiting 0.1ms, sleeping 0.1ms), "
                        "preempted by the hypervisor");
}

/* The same of probes, which are hit where measured code calls measured code. */
static void test_probes(void **state) {
        Violation violation = example_of_running();

        violation.report.probes_ns = 200000;
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 4.8ms, waiting 0.1ms, sleeping 0.1ms)");
        violation.report.probes_ns = 2400001;
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 4.8ms of which 2.4ms in probes, waiting 0.1ms, sleeping 0.1ms), "
                        "slowed by its probes");
        violation.report.stolen_ns = 1000000;
        violation.report.probes_ns = 2000000;
        assert_sentence(&violation,
                        "nginx.service/request: over its 5ms budget in nginx[4711]: 5.0ms so far "
                        "(running 4.8ms of which 1.0ms stolen and 2.0ms in probes, waiting 0.1ms, "
                        "sleeping 0.1ms)");
}

static void test_completion(void **state) {
        Violation violation = example(REPORT_COMPLETION);

        violation.report.elapsed_ns = 8100000;
        violation.report.spent_ns[TLOB_SLEEPING] = 7800000;
        assert_sentence(&violation,
                        "nginx.service/request: ended after 8.1ms in nginx[4711], 3.1ms over its "
                        "5ms budget (running 0.2ms, waiting 0.1ms, sleeping 7.8ms)");

        violation.report.end = TLOB_END_EXIT;
        violation.report.budget = TLOB_BUDGET_SLEEPING;
        violation.suppressed = 12;
        assert_sentence(&violation,
                        "nginx.service/request: ended after 8.1ms in nginx[4711] because the task "
                        "exited, 2.8ms over its 5ms sleeping budget (running 0.2ms, waiting "
                        "0.1ms, sleeping 7.8ms); 12 reports before this one were held back");
}

static void test_minimum(void **state) {
        Violation violation = example(REPORT_VIOLATION);

        violation.report.budget = TLOB_BUDGET_MINIMUM;
        violation.budget_ns = 20000000;
        assert_sentence(&violation,
                        "nginx.service/request: under its 20ms minimum in nginx[4711]: 5.0ms "
                        "(running 0.2ms, waiting 0.1ms, sleeping 4.7ms)");

        violation.report.type = REPORT_COMPLETION;
        assert_sentence(&violation,
                        "nginx.service/request: ended after 5.0ms in nginx[4711], 15.0ms under its "
                        "20ms minimum (running 0.2ms, waiting 0.1ms, sleeping 4.7ms)");
}

static void test_unknown(void **state) {
        Violation violation = example(REPORT_VIOLATION);

        for (size_t i = 0; i < TLOB_N_STATES; i++)
                violation.report.spent_ns[i] = STATISTIC_UNKNOWN;
        violation.report.pid = 0;
        assert_sentence(&violation, "nginx.service/request: over its 5ms budget in nginx[4711]: "
                                    "5.0ms so far");

        violation.report.elapsed_ns = STATISTIC_UNKNOWN;
        violation.report.tid = 0;
        violation.report.comm[0] = '\0';
        assert_sentence(&violation, "nginx.service/request: over its 5ms budget in a task");
        violation.report.type = REPORT_COMPLETION;
        violation.report.spent_ns[TLOB_RUNNING] = 1000;
        assert_sentence(&violation, "nginx.service/request: ended in a task, over its 5ms budget "
                                    "(running 1.0us)");
}

/* A task calls itself what it likes, and fills the whole field. */
static void test_odd_comm(void **state) {
        Violation violation = example(REPORT_VIOLATION);

        memcpy(violation.report.comm,
               "\n\xff"
               "23456789abcdefgh",
               TLOB_COMM_LEN + 1);
        assert_sentence(&violation, "nginx.service/request: over its 5ms budget in "
                                    "\\x0a\\xff23456789abcdef[4711]: 5.0ms so far "
                                    "(running 0.2ms, waiting 0.1ms, sleeping 4.7ms)");
}

/* As clients have it: escaped, and so longer than the name. */
static void test_escaped_comm(void **state) {
        Violation violation = example(REPORT_VIOLATION);
        static char comm[] = "a\\xff\\xfe\\xed\\xa0\\x80\\xff\\xfe\\xed\\xa0\\x80";
        _cleanup_free_ char *sentence = NULL;

        violation.report.comm[0] = '\0';
        violation.comm = comm;
        sentence = violation_to_sentence(&violation);
        assert_non_null(strstr(sentence, comm));
}

static void test_names(void **state) {
        for (unsigned i = 0; i < TLOB_N_STATES; i++)
                assert_non_null(tlob_state_to_string(i));
        for (unsigned i = 0; i < TLOB_N_ENDS; i++)
                assert_non_null(tlob_end_to_string(i));
        assert_string_equal(tlob_end_to_string(TLOB_END_ABANDONED), "abandoned");
        assert_string_equal(tlob_end_to_string(TLOB_END_SWITCHED), "switched");
        assert_non_null(tlob_end_why_unseen("switched"));
        assert_non_null(tlob_end_why_unseen("removed"));
        assert_null(tlob_end_why_unseen("stop"));
        assert_null(tlob_end_why_unseen("exit"));
        assert_null(tlob_end_why_unseen("something of a newer version"));
}

static void test_log(void **state) {
        _cleanup_(violation_log_done) ViolationLog log = {};
        Violation violation = example(REPORT_VIOLATION);

        assert_ok(violation_log_init(&log, 3));
        assert_null(violation_log_get(&log, 0));
        for (uint64_t id = 1; id <= 5; id++) {
                violation.report.id = id;
                assert_ok(violation_log_add(&log, &violation));
        }
        assert_int_equal(log.n, 3);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(violation_log_get(&log, i)->report.id, 5 - i);
        assert_null(violation_log_get(&log, 3));
        assert_ptr_not_equal(violation_log_get(&log, 0)->binding, violation.binding);
        assert_string_equal(violation_log_get(&log, 0)->binding, violation.binding);
}

static void test_log_of_none(void **state) {
        _cleanup_(violation_log_done) ViolationLog log = {};
        Violation violation = example(REPORT_VIOLATION);

        assert_ok(violation_log_init(&log, 0));
        assert_ok(violation_log_add(&log, &violation));
        assert_null(violation_log_get(&log, 0));
}

/* Who had the CPU for most of the time is known when it is over; where it was blocked, before. */
static void test_causes_in_the_log(void **state) {
        _cleanup_(violation_log_done) ViolationLog log = {};
        _cleanup_(cause_done) Cause cause = {};
        Violation violation = example(REPORT_VIOLATION);
        const Violation *found;

        violation.report.id = 7;
        violation.cause.blocked_in = (char *) "pipe_read";
        violation.cause.preempted_by = (char *) "first[1]";
        assert_ok(violation_log_init(&log, 3));
        assert_ok(violation_log_add(&log, &violation));
        cause.blocked_in = strdup("elsewhere");
        cause.preempted_by = strdup("most[2]");
        violation_log_complete(&log, &violation.report, &cause);
        found = violation_log_find(&log, 7);
        assert_non_null(found);
        assert_string_equal(found->cause.blocked_in, "pipe_read");
        assert_string_equal(found->cause.preempted_by, "most[2]");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_violation),
                cmocka_unit_test(test_cause),
                cmocka_unit_test(test_steal),
                cmocka_unit_test(test_probes),
                cmocka_unit_test(test_completion),
                cmocka_unit_test(test_minimum),
                cmocka_unit_test(test_unknown),
                cmocka_unit_test(test_odd_comm),
                cmocka_unit_test(test_escaped_comm),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_log),
                cmocka_unit_test(test_log_of_none),
                cmocka_unit_test(test_causes_in_the_log),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
