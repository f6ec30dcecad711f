/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which tlob monitor there is, in all its dialects, and whether it can be used: mounted here,
 * elsewhere or nowhere, locked, contradicting itself, or set to stop the machine.
 */

#include "kernel/tracing.h"
#include "test.h"
#include "tracefs.h"

/* Mounted at an unusual place: used there. */
static void test_mounted_elsewhere(void **state) {
        _cleanup_free_ char *reason = NULL;
        KernelTracing tracing;

        assert_ok(kernel_tracing_init(&tracing, &reason));
        assert_false(tracing.mounted);
        assert_string_not_equal(tracing.path, "/sys/kernel/tracing");
        assert_true(kernel_tracing_has(&tracing, "uprobe_events"));
        kernel_tracing_done(&tracing);
        assert_ok(kernel_tracing_init(&tracing, &reason));
        kernel_tracing_done(&tracing);
}

/* Nowhere: mounted as long as it is needed. */
static void test_not_mounted(void **state) {
        _cleanup_free_ char *reason = NULL;
        KernelTracing tracing;

        tracefs_unmount_real();
        assert_true(access("/sys/kernel/tracing/instances", F_OK) < 0);
        assert_ok(kernel_tracing_init(&tracing, &reason));
        assert_true(tracing.mounted);
        assert_true(kernel_tracing_has(&tracing, "uprobe_events"));
        kernel_tracing_done(&tracing);
        assert_true(access("/sys/kernel/tracing/instances", F_OK) < 0);
        tracefs_mount_real();
}

static void test_finding(void **state) {
        static const struct {
                const char *dialect;
                int error;
                const char *said;
        } cases[] = {
                { "none", -ENOENT, "no runtime verification" },
                { "other", -ENOENT, "no tlob monitor" },
                { "v1", -EOPNOTSUPP, "first version" },
                { "v2", 0, NULL },
                { "v3", 0, NULL },
                { "v4", 0, NULL },
                { "v5", 0, NULL },
                { "named", 0, NULL },
                { "locked", -EPERM, "locked down" },
                { "readonly", -EROFS, "may not write to" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *reason = NULL;
                Tracefs t;

                tracefs_start(&t, cases[i].dialect);
                assert_int_equal(backend_kernel_ops.probe(&reason), cases[i].error);
                if (cases[i].said)
                        assert_non_null(strstr(reason, cases[i].said));
                tracefs_finish(&t);
        }
}

/* Events of one version with the answers of another: never used. */
static void test_contradiction(void **state) {
        _cleanup_free_ char *reason = NULL;
        Tracefs t;

        tracefs_start(&t, "v2");
        tracefs_change_dialect(&t, "v3");
        assert_int_equal(backend_kernel_ops.probe(&reason), -EOPNOTSUPP);
        assert_non_null(strstr(reason, "off by a factor of 1000"));
        tracefs_finish(&t);
}

static void test_not_ready(void **state) {
        _cleanup_free_ char *off = NULL, *panic = NULL;
        Tracefs t;

        tracefs_start(&t, "v3");
        assert_ok(tracefs_write("rv/monitoring_on", "0"));
        assert_int_equal(backend_kernel_ops.probe(&off), -EOPNOTSUPP);
        assert_non_null(strstr(off, "switched off"));
        assert_ok(tracefs_write("rv/monitoring_on", "1"));

        assert_ok(tracefs_write("rv/monitors/tlob/reactors", "panic"));
        assert_int_equal(backend_kernel_ops.probe(&panic), -EOPNOTSUPP);
        assert_non_null(strstr(panic, "stop the machine"));
        assert_ok(tracefs_write("rv/monitors/tlob/reactors", "printk"));
        tracefs_finish(&t);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_mounted_elsewhere), cmocka_unit_test(test_not_mounted),
                cmocka_unit_test(test_finding),           cmocka_unit_test(test_contradiction),
                cmocka_unit_test(test_not_ready),
        };

        cmocka_set_test_filter(getenv("TLOB_TEST_FILTER"));
        return cmocka_run_group_tests(tests, tracefs_setup_namespace, tracefs_teardown_namespace);
}
