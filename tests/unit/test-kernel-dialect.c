/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Verdicts on monitors of all versions, and on evidence that contradicts itself. */

#include "kernel/dialect.h"
#include "test.h"

/* A kernel with v3, as one was seen. */
static DialectEvidence evidence_v3(void) {
        return (DialectEvidence) {
                .has_rv = true,
                .has_monitor = true,
                .has_error_event = true,
                .has_detail_event = true,
                .detail_in_ns = true,
                .probe_errors = { ERANGE, ENOENT, EINVAL, EINVAL, EINVAL, EINVAL },
        };
}

static DialectEvidence evidence_v2(void) {
        DialectEvidence e = evidence_v3();

        e.detail_in_ns = false;
        e.detail_in_us = true;
        e.probe_errors[PROBE_SHORT] = ENOENT;
        return e;
}

static void assert_judged(const DialectEvidence *e, int error, KernelDialect expected,
                          const char *said) {
        _cleanup_free_ char *reason = NULL;
        KernelDialect dialect;

        assert_int_equal(dialect_judge(e, &dialect, &reason), error);
        assert_int_equal(dialect, expected);
        if (said)
                assert_non_null(strstr(reason, said));
        else
                assert_null(reason);
}

static void test_usable(void **state) {
        DialectEvidence e = evidence_v3();

        assert_judged(&e, 0, DIALECT_V3, NULL);
        e.has_parking = true;
        assert_judged(&e, 0, DIALECT_V5, NULL);
        e = evidence_v2();
        assert_judged(&e, 0, DIALECT_V2, NULL);
}

static void test_absent(void **state) {
        DialectEvidence e = {};

        assert_judged(&e, -ENOENT, DIALECT_UNKNOWN, "CONFIG_RV");
        e.has_rv = true;
        assert_judged(&e, -ENOENT, DIALECT_UNKNOWN, "no tlob monitor");
}

static void test_refused(void **state) {
        DialectEvidence first = {
                .has_rv = true,
                .has_monitor = true,
                .has_budget_event = true,
                .probe_errors = { EINVAL, EINVAL, EINVAL, ENOENT, EINVAL, EINVAL },
        };
        assert_judged(&first, -EOPNOTSUPP, DIALECT_V1, "first version");
}

/* A version with names, of which no more is used than its answers tell. */
static void test_named(void **state) {
        DialectEvidence good = {
                .has_rv = true,
                .has_monitor = true,
                .has_error_event = true,
                .has_change_event = true,
                .probe_errors = { EINVAL, EINVAL, ENOENT, EINVAL, ERANGE, ENOENT },
        };
        DialectEvidence e = good;

        assert_judged(&e, 0, DIALECT_NAMED, NULL);
        /* A name need not be given. */
        e.probe_errors[PROBE_PLAIN] = ENOENT;
        e.probe_errors[PROBE_SHORT] = ERANGE;
        assert_judged(&e, 0, DIALECT_NAMED, NULL);

        e = good;
        e.probe_errors[PROBE_NAMED_SHORT] = ENOENT;
        assert_judged(&e, -EOPNOTSUPP, DIALECT_NAMED, "may not be nanoseconds");
        e = good;
        e.probe_errors[PROBE_NAMED_REMOVE] = EINVAL;
        assert_judged(&e, -EOPNOTSUPP, DIALECT_NAMED, "could not be removed");
        e = good;
        e.has_change_event = false;
        assert_judged(&e, -EOPNOTSUPP, DIALECT_NAMED, "time in each state");

        /* Names, and events of another version. */
        e = good;
        e.has_detail_event = e.detail_in_ns = true;
        assert_judged(&e, -EOPNOTSUPP, DIALECT_UNKNOWN, "off by a factor of 1000");
}

/* Nothing may be used whose unit is not certain. */
static void test_contradictions(void **state) {
        DialectEvidence e;

        /* The event says microseconds, the answers nanoseconds; and the other way round. */
        e = evidence_v3();
        e.detail_in_us = true;
        e.detail_in_ns = false;
        assert_judged(&e, -EOPNOTSUPP, DIALECT_UNKNOWN, "by its events it is v2");
        e = evidence_v2();
        e.detail_in_us = false;
        e.detail_in_ns = true;
        assert_judged(&e, -EOPNOTSUPP, DIALECT_UNKNOWN, "by its answers v2");

        /* Both fields, or neither. */
        e = evidence_v3();
        e.detail_in_us = true;
        assert_judged(&e, -EOPNOTSUPP, DIALECT_UNKNOWN, "a version that tlobd does not know");
        e.detail_in_us = e.detail_in_ns = false;
        assert_judged(&e, -EOPNOTSUPP, DIALECT_UNKNOWN, "a version that tlobd does not know");

        /* Events of one version with those of another. */
        e = evidence_v3();
        e.has_budget_event = true;
        assert_judged(&e, -EOPNOTSUPP, DIALECT_UNKNOWN, "v1");
        e = evidence_v3();
        e.has_detail_event = e.detail_in_ns = false;
        assert_judged(&e, -EOPNOTSUPP, DIALECT_UNKNOWN, "names");
}

/* Any single answer that is not as it should be. */
static void test_strange_answers(void **state) {
        static const int errors[] = { 0, EINVAL, ENOENT, ERANGE, EIO, EBUSY, 524 };

        for (size_t probe = 0; probe < DIALECT_N_PROBES; probe++)
                for (size_t i = 0; i < ELEMENTSOF(errors); i++) {
                        _cleanup_free_ char *reason = NULL;
                        DialectEvidence e = evidence_v3();
                        KernelDialect dialect;

                        if (errors[i] == e.probe_errors[probe])
                                continue;
                        e.probe_errors[probe] = errors[i];
                        assert_int_equal(dialect_judge(&e, &dialect, &reason), -EOPNOTSUPP);
                        assert_non_null(reason);
                }
}

static void test_limitations(void **state) {
        static const KernelDialect used[] = { DIALECT_V2, DIALECT_V3, DIALECT_V5, DIALECT_NAMED };

        for (size_t i = 0; i < ELEMENTSOF(used); i++) {
                const char *const *p = dialect_limitations(used[i]);

                assert_non_null(p[0]);
                for (; *p; p++)
                        assert_int_equal(strncmp(*p, "In the kernel's monitor, ", 25), 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_usable),         cmocka_unit_test(test_absent),
                cmocka_unit_test(test_refused),        cmocka_unit_test(test_named),
                cmocka_unit_test(test_contradictions), cmocka_unit_test(test_strange_answers),
                cmocka_unit_test(test_limitations),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
