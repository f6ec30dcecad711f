/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Files are read in processes of their own, because a file system may never answer, and then not
 * even SIGKILL ends the process that waits for it; because a file may claim to be of any size; and
 * because it may be made to crash who reads it. Each is the problem of one reader.
 *
 * All are children of a process that is started before the daemon has anything: they share no
 * memory, maps, probes or connections with it. A reader can read any file, as the daemon can, but
 * do nothing else (confine.h), and has no more memory than the largest of symbol tables need. It is
 * the first to go when memory gets short.
 *
 * A question may take for ever where a file system is slow, but not with the processor's time.
 */

#include "file/reader.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/packet.h"
#include "elf/recent.h"
#include "file/binding-question.h"
#include "file/confine.h"

#define LINGER_USEC       100000 /* for readers to end, so that systemd finds none of them left */
#define LINGER_STEPS      100
#define PROCESSOR_SEC_MAX 10
#define IDLE_MSEC         100

/* More questions about the file that was read last come soon, or not at all. */
static void drop_file_when_idle(int fd) {
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

        if (elf_recent_is_there() && poll(&poll_fd, 1, IDLE_MSEC) == 0)
                elf_recent_drop();
}

/* starter: who has made this process, and does not leave it behind, whatever it does. */
static _Noreturn void read_files(int fd, pid_t starter) {
        static const struct itimerval budget = { .it_value.tv_sec = PROCESSOR_SEC_MAX };
        static Packet question, answer;

        confine_to_reading(starter);
        elf_recent_begin();
        for (;;) {
                _cleanup_close_ int unwanted = -EBADF, passed = -EBADF;

                drop_file_when_idle(fd);
                if (packet_receive(fd, &question, &unwanted) <= 0)
                        _exit(EXIT_SUCCESS);
                (void) setitimer(ITIMER_PROF, &budget, NULL);
                if (question_answer(&question, &answer, &passed) < 0 ||
                    packet_send(fd, &answer, passed) < 0)
                        _exit(EXIT_FAILURE);
        }
}

/* Of all that this process has, only the socket is left. */
static int keep_only(int fd) {
        int moved = fcntl(fd, F_DUPFD_CLOEXEC, 5);
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        for (int i = 0; i < 3 && null >= 0; i++)
                (void) dup2(null, i);
        if (moved < 0 || dup3(moved, 3, O_CLOEXEC) < 0 || close_range(4, ~0U, 0) < 0)
                return fd;
        return 3;
}

/*
 * Readers end by themselves now, unless a file system does not let them: the signal of the timer
 * ends this one then.
 */
static _Noreturn void see_them_end(void) {
        static const struct itimerval patience = { .it_value.tv_usec = LINGER_USEC };

        (void) setitimer(ITIMER_REAL, &patience, NULL);
        while (wait(NULL) >= 0 || errno == EINTR)
                ;
        _exit(EXIT_SUCCESS);
}

static _Noreturn void start_readers(int fd) {
        static Packet packet;
        pid_t self = getpid();

        for (;;) {
                _cleanup_close_ int reader = -EBADF;

                if (packet_receive(fd, &packet, &reader) <= 0)
                        see_them_end();
                if (reader >= 0 && fork() == 0) {
                        safe_close(fd);
                        read_files(reader, self);
                }
        }
}

/* It ends when its socket is closed; what the terminal or systemd sends to all is not for it. */
static void ignore_signals(void) {
        static const int signals[] = { SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGCHLD, SIGPIPE };
        sigset_t none;

        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                (void) signal(signals[i], SIG_IGN);
        /* What the daemon ignores ends these processes: their own timers. */
        (void) signal(SIGALRM, SIG_DFL);
        (void) signal(SIGPROF, SIG_DFL);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The first is ours: the daemon never waits for its readers here. */
static int make_pair(int ret[static 2]) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
                return -errno;
        (void) fcntl(ret[0], F_SETFL, O_RDWR | O_NONBLOCK);
        return 0;
}

int file_readers_start(FileReaders *ret) {
        _cleanup_close_ int ours = -EBADF, theirs = -EBADF;
        int pair[2], r;
        pid_t pid;

        r = make_pair(pair);
        if (r < 0)
                return r;
        ours = pair[0];
        theirs = pair[1];
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                (void) prctl(PR_SET_NAME, "tlobd-files");
                ignore_signals();
                start_readers(keep_only(theirs));
        }
        *ret = (FileReaders) { .fd = TAKE_FD(ours), .pid = pid };
        return 0;
}

void file_readers_stop(FileReaders *readers) {
        if (readers->fd < 0)
                return;
        readers->fd = safe_close(readers->fd);
        for (unsigned i = 0; i < LINGER_STEPS; i++) {
                if (waitpid(readers->pid, NULL, WNOHANG) != 0)
                        return;
                (void) usleep(2 * LINGER_USEC / LINGER_STEPS);
        }
        /* It never waits for a file. */
        (void) kill(readers->pid, SIGKILL);
        (void) waitpid(readers->pid, NULL, 0);
}

int file_readers_add(const FileReaders *readers, int *ret_fd) {
        _cleanup_close_ int ours = -EBADF, theirs = -EBADF;
        static Packet packet;
        int pair[2], r;

        r = make_pair(pair);
        if (r < 0)
                return r;
        ours = pair[0];
        theirs = pair[1];
        /* A message without any data would be the end. */
        packet_init(&packet);
        packet_put_number(&packet, 0);
        r = packet_send(readers->fd, &packet, theirs);
        if (r < 0)
                return r;
        *ret_fd = TAKE_FD(ours);
        return 0;
}
