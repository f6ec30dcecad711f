/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a process can still do that reads files: each attempt is made in a child of its own, whose
 * exit status tells how it ended.
 */

#include "file/confine.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/sanitizer.h"
#include "test.h"

#define REFUSED 77

/* How an attempt ends that is made when only reading is left. */
static int try(int (*attempt)(void)) {
        pid_t self = getpid(), pid;
        int status;

        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                confine_to_reading(self);
                _exit(attempt());
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static int read_a_file(void) {
        _cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        char magic[4];

        return fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) &&
                               memcmp(magic, "\177ELF", sizeof(magic)) == 0
                       ? EXIT_SUCCESS
                       : EXIT_FAILURE;
}

static int map_a_file(void) {
        _cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        char *data = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

        return data != MAP_FAILED && data[1] == 'E' ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int look_up_a_process(void) {
        char path[PATH_MAX];

        return readlink("/proc/self/root", path, sizeof(path)) == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Buffers that qsort() and malloc() want. */
static int have_memory(void) {
        char *data = malloc(32 << 20);

        if (!data)
                return EXIT_FAILURE;
        memset(data, 1, 32 << 20);
        free(data);
        return EXIT_SUCCESS;
}

static void test_what_it_needs(void **state) {
        assert_int_equal(try(read_a_file), EXIT_SUCCESS);
        assert_int_equal(try(map_a_file), EXIT_SUCCESS);
        assert_int_equal(try(look_up_a_process), EXIT_SUCCESS);
        assert_int_equal(try(have_memory), EXIT_SUCCESS);
}

/* Sanitizers need both, and so are not kept from them. */
#ifndef SANITIZED
static int outcome(long result) {
        return result >= 0 ? EXIT_SUCCESS : errno == EPERM ? REFUSED : EXIT_FAILURE;
}

static int too_much_memory(void) {
        return malloc((size_t) 2 << 30) ? EXIT_SUCCESS : REFUSED;
}

static int open_to_write(void) {
        return outcome(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static int open_to_read_and_write(void) {
        return outcome(open("/dev/null", O_RDWR | O_CLOEXEC));
}

static int create(void) {
        return outcome(open("/tmp/tlob-test-confine", O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int truncate_it(void) {
        return outcome(open("/dev/null", O_RDONLY | O_TRUNC | O_CLOEXEC));
}

/* Newer machines have openat() only. */
static int open_otherwise(void) {
#ifdef SYS_open
        return outcome(syscall(SYS_open, "/dev/null", O_WRONLY, 0));
#else
        return outcome(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_WRONLY, 0));
#endif
}

static int write_it(void) {
        return outcome(write(STDERR_FILENO, "", 0));
}

static int remove_it(void) {
        return outcome(unlink("/tmp/tlob-test-confine"));
}

static int connect_to_somebody(void) {
        return outcome(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int start_a_program(void) {
        return outcome(execl("/bin/true", "true", NULL));
}

static int start_a_process(void) {
        return outcome(fork());
}

static int signal_another(void) {
        return outcome(kill(getppid(), 0));
}

static int trace_another(void) {
        return outcome(ptrace(PTRACE_SEIZE, 1, NULL, NULL));
}

static int write_into_another(void) {
        return outcome(syscall(SYS_process_vm_writev, 1, NULL, 0, NULL, 0, 0));
}

static int load_a_program(void) {
        return outcome(syscall(SYS_bpf, 0, NULL, 0));
}

static int set_a_probe(void) {
        return outcome(syscall(SYS_perf_event_open, NULL, 0, 0, -1, 0));
}

static int change_its_root(void) {
        return outcome(chroot("/proc"));
}

static int mount_something(void) {
        return outcome(syscall(SYS_mount, NULL, "/proc", NULL, 0, NULL));
}

static int enter_a_namespace(void) {
        return outcome(syscall(SYS_setns, 0, 0));
}

/* The kernel sends that one when there is something to read. */
static int own_a_signal(void) {
        return outcome(fcntl(STDIN_FILENO, F_SETOWN, 1));
}

static int choose_a_signal(void) {
        return outcome(fcntl(STDIN_FILENO, F_SETSIG, SIGKILL));
}

static int ask_for_signals(void) {
        return outcome(fcntl(STDIN_FILENO, F_SETFL, O_ASYNC));
}

static int watch_a_directory(void) {
        return outcome(fcntl(STDIN_FILENO, F_NOTIFY, DN_MODIFY));
}

static int lock_a_file(void) {
        return outcome(fcntl(STDIN_FILENO, F_SETLK, &(struct flock) { .l_type = F_RDLCK }));
}

static int lease_a_file(void) {
        return outcome(fcntl(STDIN_FILENO, F_SETLEASE, F_RDLCK));
}

static int control_a_device(void) {
        return outcome(syscall(SYS_ioctl, 0, 0, 0));
}

static void test_what_is_left_of_it(void **state) {
        static int (*const attempts[])(void) = {
                open_to_write,
                open_to_read_and_write,
                create,
                truncate_it,
                open_otherwise,
                write_it,
                remove_it,
                connect_to_somebody,
                start_a_program,
                start_a_process,
                signal_another,
                trace_another,
                write_into_another,
                load_a_program,
                set_a_probe,
                change_its_root,
                mount_something,
                enter_a_namespace,
                own_a_signal,
                choose_a_signal,
                ask_for_signals,
                watch_a_directory,
                lock_a_file,
                lease_a_file,
                control_a_device,
                too_much_memory,
        };

        for (size_t i = 0; i < ELEMENTSOF(attempts); i++) {
                int status = try(attempts[i]);

                if (status != REFUSED)
                        fail_msg("attempt %zu ended with %i", i, status);
        }
}

#endif

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_it_needs),
#ifndef SANITIZED
                cmocka_unit_test(test_what_is_left_of_it),
#endif
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
