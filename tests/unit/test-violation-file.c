/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* violation-file.h: what units read of a violation, and that there are never many such files. */

#include "manager/violation-file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temporary.h"
#include "test.h"

static Violation example(uint64_t id) {
        return (Violation){
                .report = {
                        .id = id,
                        .elapsed_ns = 5000000,
                        .late_ns = STATISTIC_UNKNOWN,
                        .spent_ns = { 200000, 100000, 4700000 },
                        .stolen_ns = 0,
                        .pid = 4711,
                        .tid = 4712,
                        .comm = "nginx",
                },
                .binding = (char *) "nginx.service/request",
                .unit = (char *) "nginx.service",
                .comm = (char *) "a=\"b\" \\$HOME `c` 'd' # e",
                .backend = "bpf",
                .budget_ns = 5000000,
        };
}

static void test_text(void **state) {
        Violation violation = example(17);
        Temporary tmp;
        char buf[2048];
        size_t n;
        FILE *f;

        temporary_init(&tmp);
        assert_ok(violation_file_write(tmp.path, &violation, NULL, 0));
        f = fopen(temporary_path(&tmp, "violations/17"), "re");
        assert_non_null(f);
        n = fread(buf, 1, sizeof(buf) - 1, f);
        (void) fclose(f);
        buf[n] = '\0';
        assert_string_equal(
                buf, "TLOB_MESSAGE=\"nginx.service/request: over its 5ms budget in "
                     "nginx[4711/4712]: 5.0ms so far (running 0.2ms, waiting 0.1ms, sleeping "
                     "4.7ms)\"\n"
                     "TLOB_BINDING=\"nginx.service/request\"\nTLOB_WINDOW_ID=\"17\"\n"
                     "TLOB_BACKEND=\"bpf\"\nTLOB_TIME_NS=\"0\"\nTLOB_BUDGET=\"total\"\n"
                     "TLOB_BUDGET_NS=\"5000000\"\nTLOB_ELAPSED_NS=\"5000000\"\n"
                     "TLOB_RUNNING_NS=\"200000\"\nTLOB_WAITING_NS=\"100000\"\n"
                     "TLOB_SLEEPING_NS=\"4700000\"\nTLOB_STATE=\"running\"\n"
                     "TLOB_TID=\"4712\"\nTLOB_PID=\"4711\"\n"
                     "TLOB_COMM=\"a=\\\"b\\\" \\\\\\$HOME \\`c\\` 'd' # e\"\n"
                     "TLOB_UNIT=\"nginx.service\"\n");
        temporary_done(&tmp);
}

static size_t count(Temporary *tmp) {
        _cleanup_closedir_ DIR *directory = opendir(temporary_path(tmp, "violations"));
        size_t n = 0;

        assert_non_null(directory);
        for (const struct dirent *entry; (entry = readdir(directory));)
                n += entry->d_name[0] != '.';
        return n;
}

static void test_the_oldest_goes(void **state) {
        const uint64_t used[] = { 7, UINT64_MAX - 8 };
        Temporary tmp;

        temporary_init(&tmp);
        /* Back ends have numbers of their own: the oldest need not be the smallest. */
        for (uint64_t i = 0; i < 100; i++) {
                Violation violation = example(i % 2 ? i : UINT64_MAX - i);
                const struct timespec times[] = { { .tv_sec = 1000 }, { .tv_sec = (time_t) i } };
                char name[64];

                assert_ok(violation_file_write(tmp.path, &violation, used, 2));
                (void) snprintf(name, sizeof(name), "violations/%" PRIu64, violation.report.id);
                assert_ok(utimensat(AT_FDCWD, temporary_path(&tmp, name), times, 0));
        }
        assert_int_equal(count(&tmp), 64);
        assert_int_equal(access(temporary_path(&tmp, "violations/37"), F_OK), -1);
        assert_ok(access(temporary_path(&tmp, "violations/39"), F_OK));
        assert_ok(access(temporary_path(&tmp, "violations/99"), F_OK));
        assert_ok(access(temporary_path(&tmp, "violations/7"), F_OK));
        assert_ok(access(temporary_path(&tmp, "violations/18446744073709551607"), F_OK));
        temporary_done(&tmp);
}

/* What is not ours stays, and nothing is written through a link. */
static void test_others(void **state) {
        Violation violation = example(3);
        Temporary tmp;

        temporary_init(&tmp);
        temporary_write(&tmp, "violations/name", "x");
        temporary_write(&tmp, "elsewhere", "x");
        assert_ok(symlinkat("../elsewhere", AT_FDCWD, temporary_path(&tmp, "violations/3")));
        assert_int_equal(violation_file_write(tmp.path, &violation, NULL, 0), -ELOOP);
        assert_int_equal(count(&tmp), 2);
        temporary_done(&tmp);
}

/* A user's directory for what is gone with the session need not be there yet. */
static void test_the_directory_is_made(void **state) {
        Violation violation = example(17);
        Temporary tmp;

        temporary_init(&tmp);
        assert_ok(violation_file_write(temporary_path(&tmp, "run/tlob"), &violation, NULL, 0));
        assert_ok(access(temporary_path(&tmp, "run/tlob/violations/17"), R_OK));
        temporary_done(&tmp);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_directory_is_made),
                cmocka_unit_test(test_text),
                cmocka_unit_test(test_the_oldest_goes),
                cmocka_unit_test(test_others),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
