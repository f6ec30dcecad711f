/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a monitor of v3 to v6 answers to lines: each of these was seen on a kernel with tlob v3 or
 * v6. The stand-in has to say the same; with TLOB_TEST_REAL_MONITOR=1 the kernel that this runs on
 * is asked, so that the two cannot drift apart. Its monitor must be empty then. From v4 on, a
 * binding is known by its file and not by the name that was found, and the monitor is not shown to
 * everybody.
 */

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "test.h"
#include "tracefs.h"

#define MONITOR      "rv/monitors/tlob/monitor"
#define POISON       "/proc/self/exe:0x40"
#define ANSWER_READS (-1) /* what the file reads then */
#define FILE_SIZE    876056
#define LINE_SIZE    512

typedef enum Version {
        VERSION_ANY,
        VERSION_3,
        VERSION_4_ON,
} Version;

static const struct {
        int error;
        const char *line; /* '@' is a directory of our own */
        Version version;
} answers[] = {
        /* garbage */
        { EINVAL, "p" },
        { EINVAL, "x" },
        { EINVAL, "p:NAME @/t1:0x10 0x20 threshold=5000" },
        { EINVAL, "p\t@/t1:0x16d5 0x16e8 threshold=5000000" },
        { EINVAL, "q @/t1:0x16d5 0x16e8 threshold=5000" },
        { EINVAL, "P @/t1:0x16d5 0x16e8 threshold=5000" },
        { EINVAL, " p @/t1:0x16d5 0x16e8 threshold=5000" },
        { EINVAL, "5000:0x16d5:0x16e8:@/t1" },
        { EINVAL, "-:x" },
        { EINVAL, "+@/t1:0x16d5" },
        { EINVAL, "\n" },
        /* path */
        { EINVAL, "p @/t1 0x16e8 threshold=5000" },
        { EINVAL, "p /:0x100 0x200 threshold=5000" },
        { EINVAL, "p //:0x100 0x200 threshold=5000" },
        { EINVAL, "p t1:0x16d5 0x16e8 threshold=5000" },
        { EINVAL, "p :0x16d5 0x16e8 threshold=5000" },
        { ENOENT, "p @/none:0x16d5 0x16e8 threshold=5000" },
        { ENOTDIR, "p @/t1/x:0x16d5 0x16e8 threshold=5000" },
        { ELOOP, "p @/loopa:0x16d5 0x16e8 threshold=5000" },
        { EINVAL, "p @/dd:0x16d5 0x16e8 threshold=5000" },
        { EINVAL, "p @/ff:0x16d5 0x16e8 threshold=5000" },
        { EINVAL, "p /dev/null:0x16d5 0x16e8 threshold=5000" },
        { ENOENT, "p /proc/self/tlobd-none:0x10 0x20 threshold=5000" },
        { ERANGE, "p /proc/self/tlobd-none:0x10 0x20 threshold=999" },
        /* offsets */
        { EINVAL, "p @/t1:-1 0x16e8 threshold=5000" },
        { EINVAL, "p @/t1:abc 0x16e8 threshold=5000" },
        { EINVAL, "p @/t1: 0x16e8 threshold=5000" },
        { EINVAL, "p @/t1:0x16d5 -1 threshold=5000" },
        { EINVAL, "p @/t1:0x16d5 abc threshold=5000" },
        { EINVAL, "p @/t1:0x16d5 threshold=5000" },
        { EINVAL, "p @/t1:0x16d5 0x16e8" },
        { EINVAL, "p @/t1:0x16d5 0x16e8 0x99 threshold=5000" },
        { EINVAL, "p @/t1:0x16d5 0x16e8 threshold=5000 x" },
        { EINVAL, "p @/t1:0x16d5 0x16d5 threshold=5000" },
        { EINVAL, "p @/t1:0x7fffffffffffffff 0x16e8 threshold=5000" },
        { EINVAL, "p @/t1:0x16d5 0x7fffffffffffffff threshold=5000" },
        { EINVAL, "p @/t1:0xffffffffffffffff 0x16e8 threshold=5000" },
        { EINVAL, "p @/t1:99999999 0x16e8 threshold=5000" },
        { EINVAL, "p @/t1:0x16d5 99999999 threshold=5000" },
        { EINVAL, "p @/empty:0 1 threshold=5000" },
        { 0, "p @/t1:876056 0x10 threshold=5000" },
        { EINVAL, "p @/t1:876057 0x10 threshold=5000" },
        { ANSWER_READS, "p @/t1:0xd5e18 0x10 threshold=5000\n" },
        { 0, "-@/t1:876056" },
        /* threshold */
        { EINVAL, "p @/t1:0x16d5 0x16e8 threshold=" },
        { EINVAL, "p @/t1:0x16d5 0x16e8 threshold=abc" },
        { EINVAL, "p @/t1:0x16d5 0x16e8 threshold=-5" },
        { EINVAL, "p @/t1:0x16d5 0x16e8 threshold=5000x" },
        { EINVAL, "p @/t1:0x16d5 0x16e8 threshold=5us" },
        { EINVAL, "p @/t1:0x16d5 0x16e8 threshold=18446744073709551616" },
        { ERANGE, "p @/t1:0x16d5 0x16e8 threshold=18446744073709551615" },
        { ERANGE, "p @/t1:0x16d5 0x16e8 threshold=0" },
        { ERANGE, "p @/t1:0x16d5 0x16e8 threshold=1" },
        { ERANGE, "p @/t1:0x16d5 0x16e8 threshold=999" },
        { ERANGE, "p @/t1:0x16d5 0x16e8 threshold=3600000000001" },
        { ERANGE, "p @/t1:0x16d5 threshold=999" },
        { ERANGE, "p /none:1 threshold=0" },
        { EINVAL, "p @/t1:0x16d5 0x16e8 Threshold=5000" },
        { ERANGE, "p @/t1:0x16d5 0x16e8 threshold=5000 threshold=1" },
        /* accepted forms (each removed again) */
        { 0, "p @/t1:0x16d5 0x16e8 threshold=1000" },
        { ANSWER_READS, "p @/t1:0x16d5 0x16e8 threshold=1000\n" },
        { 0, "-@/t1:0x16d5" },
        { 0, "p @/t1:0x16d5 0x16e8 threshold=3600000000000" },
        { ANSWER_READS, "p @/t1:0x16d5 0x16e8 threshold=3600000000000\n" },
        { 0, "-@/t1:0x16d5" },
        { 0, "p    @/t1:0x16d5\t  0x16e8 \tthreshold=0x1388" },
        { ANSWER_READS, "p @/t1:0x16d5 0x16e8 threshold=5000\n" },
        { 0, "-@/t1:0x16d5" },
        { 0, "p @/t1:0x16d5 threshold=010000 0x16e8" },
        { ANSWER_READS, "p @/t1:0x16d5 0x16e8 threshold=4096\n" },
        { 0, "-@/t1:0x16d5" },
        { 0, "p @/t1:0x16d5 0x16e8 threshold=2000 threshold=+7000" },
        { ANSWER_READS, "p @/t1:0x16d5 0x16e8 threshold=7000\n" },
        { 0, "-@/t1:0x16d5" },
        { 0, "p @/t1:0x16d5zz 0x16e8junk threshold=5000" },
        { ANSWER_READS, "p @/t1:0x16d5 0x16e8 threshold=5000\n" },
        { 0, "-@/t1:0x16d5" },
        { 0, "p @/t1:013325 5864 threshold=5000" },
        { ANSWER_READS, "p @/t1:0x16d5 0x16e8 threshold=5000\n" },
        { 0, "-@/t1:5845" },
        { 0, "p @/lnk:0x16d5 0x16e8 threshold=5000" },
        { ANSWER_READS, "p @/t1:0x16d5 0x16e8 threshold=5000\n" },
        { 0, "-@/t1:0x16d5" },
        { 0, "p @/../e/./t1:0x16d5 0x16e8 threshold=5000\n" },
        { ANSWER_READS, "p @/t1:0x16d5 0x16e8 threshold=5000\n" },
        { 0, "-@/t1:0x16d5" },
        { EINVAL, "p @/t1:+5845 0x16e8 threshold=5000" },
        { ENOENT, "-@/t1:0x16d5" },
        { 0, "p @/a:b:0x16d5 0x16e8 threshold=5000" },
        { ANSWER_READS, "p @/a:b:0x16d5 0x16e8 threshold=5000\n" },
        { 0, "-@/a:b:0x16d5" },
        /* duplicates, order, modify */
        { 0, "p @/t1:0x16fb 0x170e threshold=7000" },
        { 0, "p @/t1:0x16d5 0x16e8 threshold=5000" },
        { EEXIST, "p @/t1:0x16d5 0x170e threshold=6000" },
        { EEXIST, "p @/lnk:0x16d5 0x170e threshold=6000" },
        { 0, "p @/t1:0x16e8 0x170e threshold=9000" },
        { 0, "p @/t2:0x16d5 0x16e8 threshold=5000" },
        { EEXIST, "p @/hard:0x16d5 0x16e8 threshold=5001", VERSION_4_ON },
        { ANSWER_READS,
          "p @/t1:0x16fb 0x170e threshold=7000\n"
          "p @/t1:0x16d5 0x16e8 threshold=5000\n"
          "p @/t1:0x16e8 0x170e threshold=9000\n"
          "p @/t2:0x16d5 0x16e8 threshold=5000\n",
          VERSION_4_ON },
        { 0, "p @/hard:0x16d5 0x16e8 threshold=5001", VERSION_3 },
        { ANSWER_READS,
          "p @/t1:0x16fb 0x170e threshold=7000\n"
          "p @/t1:0x16d5 0x16e8 threshold=5000\n"
          "p @/t1:0x16e8 0x170e threshold=9000\n"
          "p @/t2:0x16d5 0x16e8 threshold=5000\n"
          "p @/hard:0x16d5 0x16e8 threshold=5001\n",
          VERSION_3 },
        /* removal */
        { EINVAL, "-" },
        { EINVAL, "-x" },
        { EINVAL, "-t1:0x16d5" },
        { EINVAL, "-@/t1" },
        { EINVAL, "-@/t1:" },
        { EINVAL, "-@/t1:abc" },
        { EINVAL, "-/:0x10" },
        { ENOENT, "-@/t1:-1", VERSION_3 },
        { EINVAL, "-@/t1:-1", VERSION_4_ON },
        { ENOENT, "-@/t1:0x99" },
        { ENOENT, "-@/none:0x16d5" },
        { ELOOP, "-@/loopa:0x16d5" },
        { ENOENT, "-@/dd:0x1" },
        { EINVAL, "- @/t1:0x16d5" },
        { 0, "-@/t1:0x16fb 0x170e" },
        { 0, "-@/lnk:0x16d5junk" },
        { ENOENT, "-@/t1:0x16d5" },
        { 0, "-@/hard:0x16d5", VERSION_3 },
        { ENOENT, "-@/hard:0x16d5" },
        { EINVAL, "-:tlobd-none" },
        { 0, "-@/t2:0x16d5\n" },
        { 0, "-@/t1:0x16e8" },
        { EIO, "p /proc/version:0x0 0x1 threshold=5000" },
        { ANSWER_READS, "" },
        /* two in one write: the last colon rules */
        { 0, "p @/t2:0x16d5 0x16e8 threshold=5000" },
        { 0, "p @/t2:0x16fb 0x170e threshold=6000" },
        { ENOENT, "-@/t2:0x16e8\n-@/t2:0x16fb" },
        { EINVAL, "p @/t2:0x170e 0x16fb threshold=6000\np @/t2:0x40 0x50 threshold=6000" },
        { 0, "-@/t2:0x16d5" },
        { 0, "-@/t2:0x16fb" },
        { ANSWER_READS, "" },
};

static const char *dialect; /* of the stand-in; NULL: a real kernel is asked */
static Version version;
static char directory[64];
static char own[64]; /* a directory "e" in it, as one of the lines wants */
static Tracefs tracefs;

static void make_file(const char *name, off_t size) {
        char path[128];
        int fd;

        (void) snprintf(path, sizeof(path), "%s/%s", own, name);
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
        assert_true(fd >= 0);
        assert_ok(ftruncate(fd, size));
        (void) close(fd);
}

static void make_link(const char *target, const char *name) {
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/%s", own, name);
        assert_ok(symlink(target, path));
}

static int setup(void **state) {
        char from[128], to[128];

        struct stat st;

        if (dialect) {
                assert_ok(tracefs_setup_namespace(state));
                tracefs_start(&tracefs, dialect);
                assert_ok(tracefs_write(MONITOR, "-" POISON));
        }
        assert_ok(stat("/sys/kernel/tracing/" MONITOR, &st));
        version = st.st_mode & S_IROTH ? VERSION_3 : VERSION_4_ON;

        strcpy(directory, "/run/tlob-answers-XXXXXX");
        assert_non_null(mkdtemp(directory));
        (void) snprintf(own, sizeof(own), "%s/e", directory);
        assert_ok(mkdir(own, 0755));
        make_file("t1", FILE_SIZE);
        make_file("t2", FILE_SIZE);
        make_file("a:b", FILE_SIZE);
        make_file("empty", 0);
        make_link("t1", "lnk");
        make_link("loopb", "loopa");
        make_link("loopa", "loopb");
        (void) snprintf(from, sizeof(from), "%s/t1", own);
        (void) snprintf(to, sizeof(to), "%s/hard", own);
        assert_ok(link(from, to));
        (void) snprintf(to, sizeof(to), "%s/dd", own);
        assert_ok(mkdir(to, 0755));
        (void) snprintf(to, sizeof(to), "%s/ff", own);
        assert_ok(mkfifo(to, 0644));
        return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

static int teardown(void **state) {
        assert_ok(nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS));
        if (!dialect)
                return 0;
        assert_ok(tracefs_write(MONITOR, "p " POISON " 0x44 threshold=7000000"));
        tracefs_finish(&tracefs);
        return tracefs_teardown_namespace(state);
}

/* With the directory in the place of each '@'. */
static void expand(const char *line, char ret[static LINE_SIZE]) {
        size_t n = 0;

        for (; *line; line++) {
                assert_true(n + sizeof(own) < LINE_SIZE);
                if (*line == '@')
                        n += (size_t) snprintf(ret + n, LINE_SIZE - n, "%s", own);
                else
                        ret[n++] = *line;
        }
        ret[n] = '\0';
}

static void test_answers(void **state) {
        size_t n_wrong = 0;

        for (size_t i = 0; i < ELEMENTSOF(answers); i++) {
                _cleanup_free_ char *text = NULL;
                char line[LINE_SIZE];
                int r;

                if (answers[i].version != VERSION_ANY && answers[i].version != version)
                        continue;
                expand(answers[i].line, line);
                if (answers[i].error == ANSWER_READS) {
                        text = tracefs_read(MONITOR);
                        if (streq(text, line))
                                continue;
                        print_error("The monitor reads '%s' instead of '%s'.\n", text, line);
                } else {
                        r = tracefs_write(MONITOR, line);
                        if (r == -answers[i].error)
                                continue;
                        print_error("'%s' gives '%s' instead of '%s'.\n", line, strerror(-r),
                                    strerror(answers[i].error));
                }
                n_wrong++;
        }
        assert_int_equal(n_wrong, 0);
}

/* 383 bytes are looked at, 384 are too many. */
static void test_length(void **state) {
        char line[400];

        memset(line, 'x', sizeof(line));
        memcpy(line, "p /", 3);
        memcpy(line + 383 - 29, ":0x16d5 0x16e8 threshold=5000", 30);
        assert_int_equal(strlen(line), 383);
        assert_int_equal(tracefs_write(MONITOR, line), -ENAMETOOLONG);

        memset(line, 'x', sizeof(line));
        memcpy(line, "p /", 3);
        memcpy(line + 384 - 29, ":0x16d5 0x16e8 threshold=5000", 30);
        assert_int_equal(tracefs_write(MONITOR, line), -EINVAL);
}

/* A binding is found by its file, whatever has become of the path. */
static void test_by_descriptor(void **state) {
        char path[128], line[LINE_SIZE];
        int fd;

        (void) snprintf(path, sizeof(path), "%s/gone", own);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
        assert_true(fd >= 0);
        assert_ok(ftruncate(fd, FILE_SIZE));
        (void) snprintf(line, sizeof(line), "p /proc/self/fd/%i:0x16d5 0x16e8 threshold=5000", fd);
        assert_ok(tracefs_write(MONITOR, line));

        assert_ok(unlink(path));
        (void) snprintf(line, sizeof(line), "-%s:0x16d5", path);
        assert_int_equal(tracefs_write(MONITOR, line), -ENOENT);
        (void) snprintf(line, sizeof(line), "-/proc/self/fd/%i:0x16d5", fd);
        assert_ok(tracefs_write(MONITOR, line));
        (void) close(fd);
}

int main(void) {
        static const char *const dialects[] = { "v3", "v4", "v5" };
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_length),
                cmocka_unit_test(test_by_descriptor),
        };
        int n_failed = 0;

        if (getenv("TLOB_TEST_REAL_MONITOR"))
                return cmocka_run_group_tests(tests, setup, teardown);
        for (size_t i = 0; i < ELEMENTSOF(dialects); i++) {
                dialect = dialects[i];
                n_failed += cmocka_run_group_tests_name(dialect, tests, setup, teardown);
        }
        return n_failed;
}
