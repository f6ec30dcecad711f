/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a user may have put where a file is said to be, also while that is looked at. */

#include "binding/lent-file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "temporary.h"
#include "test.h"

#define N_ROUNDS 3000
#define NUMBER   100 /* of the descriptor */

static Temporary tmp;

/* Who holds the files; it sees to its end itself. */
static pid_t holder;

static int hold(const char *path, int flags) {
        int fd = open(path, flags | O_CLOEXEC);

        assert_true(fd >= 0);
        return fd;
}

/* Of a process. */
typedef enum Rights {
        RIGHTS_USER,
        RIGHTS_MORE, /* it has been more than its user, who cannot look into it any longer */
} Rights;

static int become(uid_t user, Rights rights) {
        if (user != getuid() &&
            (setresgid(user, user, user) < 0 || setresuid(user, user, user) < 0))
                return -errno;
        return prctl(PR_SET_DUMPABLE, rights == RIGHTS_USER);
}

/* A process of that user that has these at the number, in turns. b: negative for none. */
static void start_holder(uid_t user, Rights rights, int a, int b) {
        pid_t parent = getpid();

        holder = fork();
        assert_true(holder >= 0);
        if (holder > 0)
                return;
        if (become(user, rights) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
            getppid() != parent || dup2(a, NUMBER) < 0)
                _exit(1);
        (void) raise(SIGSTOP);
        for (;;) {
                if (b < 0) {
                        (void) pause();
                        continue;
                }
                (void) dup2(b, NUMBER);
                (void) dup2(a, NUMBER);
        }
}

static void await_holder(void) {
        int status;

        assert_int_equal(waitpid(holder, &status, WUNTRACED), holder);
        assert_true(WIFSTOPPED(status));
        assert_int_equal(kill(holder, SIGCONT), 0);
}

static void end_holder(void) {
        assert_int_equal(kill(holder, SIGKILL), 0);
        assert_int_equal(waitpid(holder, NULL, 0), holder);
}

static int open_lent(uid_t user, int *ret_fd, char **ret_error) {
        const BindingLent lent = {
                .user = user,
                .holder = holder,
                .file_fd = NUMBER,
                .file = (char *) "it",
        };

        return lent_file_open(&lent, ret_fd, ret_error);
}

/* What is said of a file, which is closed; words NULL: that it is the right one. */
static void check_with(Rights rights, int fd, uid_t holder_user, uid_t user, int error,
                       const char *words) {
        _cleanup_close_ int opened = -EBADF;
        _cleanup_free_ char *sentence = NULL;
        struct stat st, other;

        start_holder(holder_user, rights, fd, -EBADF);
        await_holder();
        assert_int_equal(open_lent(user, &opened, &sentence), error);
        end_holder();
        if (words)
                assert_non_null(strstr(sentence, words));
        else {
                assert_int_equal(fstat(fd, &st), 0);
                assert_int_equal(fstat(opened, &other), 0);
                assert_true(st.st_dev == other.st_dev && st.st_ino == other.st_ino);
        }
        (void) close(fd);
}

static void check(int fd, uid_t user, int error, const char *words) {
        check_with(RIGHTS_USER, fd, getuid(), user, error, words);
}

#define NO_FILE "it is no file that can be read"

static void test_files(void **state) {
        const char *file = temporary_path(&tmp, "public");
        uid_t user = getuid();
        int pair[2];

        check(hold(file, O_RDONLY), user, 0, NULL);
        check(hold(file, O_RDWR), user, 0, NULL);
        check(hold(file, O_WRONLY), user, -EINVAL, NO_FILE);
        check(hold(file, O_PATH), user, -EINVAL, NO_FILE);
        check(hold(file, O_RDONLY), user + 1, -EINVAL, NO_FILE);
        check(hold(tmp.path, O_RDONLY), user, -EINVAL, NO_FILE);
        check(hold("/dev/null", O_RDONLY), user, -EINVAL, NO_FILE);
        check(hold("/proc/self/maps", O_RDONLY), user, -EOPNOTSUPP, "may not answer");
        assert_int_equal(pipe(pair), 0);
        (void) close(pair[1]);
        check(pair[0], user, -EINVAL, NO_FILE);
}

static int hold_as(uid_t owner, mode_t mode) {
        const char *file = temporary_path(&tmp, "public");

        assert_int_equal(chown(file, owner, 0), 0);
        assert_int_equal(chmod(file, mode), 0);
        return hold(file, O_RDONLY);
}

/* Whoever has it open need not be who may read it: a program can have more rights than its user. */
static void test_rights(void **state) {
        uid_t user = 65534;

        if (getuid() != 0)
                fail_msg("This test has to be run as root.");
        check_with(RIGHTS_USER, hold_as(0, 0644), user, user, 0, NULL);
        check_with(RIGHTS_USER, hold_as(0, 0640), user, user, -EINVAL, NO_FILE);
        check_with(RIGHTS_USER, hold_as(user, 0600), user, user, 0, NULL);
        check_with(RIGHTS_USER, hold_as(user, 0066), user, user, -EINVAL, NO_FILE);
        check_with(RIGHTS_USER, hold_as(0, 0644), user, 0, -EINVAL, NO_FILE);
        check_with(RIGHTS_MORE, hold_as(0, 0644), user, user, -EINVAL, NO_FILE);
        check_with(RIGHTS_USER, hold_as(0, 0644), 0, user, -EINVAL, NO_FILE);
}

/* One that has been removed, or that has another name by now, is still the same. */
static void test_removed(void **state) {
        int fd;

        temporary_write(&tmp, "removed", "text");
        fd = hold(temporary_path(&tmp, "removed"), O_RDONLY);
        assert_int_equal(unlink(temporary_path(&tmp, "removed")), 0);
        check(fd, getuid(), 0, NULL);
}

static void test_nobody(void **state) {
        int fd;

        holder = fork();
        if (holder == 0)
                _exit(0);
        assert_int_equal(waitpid(holder, NULL, 0), holder);
        assert_int_equal(open_lent(getuid(), &fd, NULL), -ESRCH);
}

/* Whoever cannot read a file can hold it, and put it in the place of one that he can read. */
static void test_put_in_its_place(void **state) {
        _cleanup_close_ int open_fd = hold(temporary_path(&tmp, "public"), O_RDONLY);
        _cleanup_close_ int secret_fd = hold(temporary_path(&tmp, "secret"), O_PATH);
        unsigned n_refused = 0;
        struct stat st, right;

        assert_int_equal(fstat(open_fd, &right), 0);
        start_holder(getuid(), RIGHTS_USER, open_fd, secret_fd);
        await_holder();
        /* Both must have come up. */
        for (unsigned i = 0; i < N_ROUNDS || n_refused == 0 || n_refused == i; i++) {
                _cleanup_close_ int fd = -EBADF;

                if (open_lent(getuid(), &fd, NULL) < 0) {
                        n_refused++;
                        continue;
                }
                assert_int_equal(fstat(fd, &st), 0);
                assert_int_equal(st.st_ino, right.st_ino);
        }
        end_holder();
}

static int set_up(void **state) {
        temporary_init(&tmp);
        temporary_write(&tmp, "public", "text");
        temporary_write(&tmp, "secret", "text");
        return 0;
}

static int tear_down(void **state) {
        temporary_done(&tmp);
        return 0;
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_files),
                cmocka_unit_test(test_rights),
                cmocka_unit_test(test_removed),
                cmocka_unit_test(test_nobody),
                cmocka_unit_test(test_put_in_its_place),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
