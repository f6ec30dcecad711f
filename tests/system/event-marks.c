/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Marks that are events, where they could do harm. Each ends with "well", or says what is wrong.
 *
 * usage: event-marks-user closed FILE     all descriptors are closed, and others are FILE
 *        event-marks-user forked          windows of a child, of its child, and of a vfork()
 *        event-marks-user unloaded LIB    a library with marks goes, and something else is there
 *        event-marks-user forgotten LIB   the same, when all descriptors are closed
 *        event-marks-user reloaded LIB    it comes and goes many times
 *        event-marks-user late LIB        it comes when there are threads
 *        event-marks-user busy            a thread makes windows while the process ends
 *        event-marks-user plain           windows, and no more
 *
 * Each waits for a line before it does anything, and those that say "unloaded" for another one.
 */

#define TLOB_MARK_USER_EVENTS

#include <dlfcn.h>
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <tlob-mark.h>
#include <unistd.h>

TLOB_MARK(harmless);

#ifdef LIBRARY

void *library_window(void);

/* Where its mark is. */
void *library_window(void) {
        TLOB_SCOPE(harmless);
        return &tlob_mark_harmless;
}

#else

#define WINDOWS     100
#define DESCRIPTORS 1024
#define RELOADS     100

static void await_line(void) {
        char line[16];

        if (!fgets(line, sizeof(line), stdin))
                errx(EXIT_FAILURE, "no line");
}

static void make_windows(void) {
        for (unsigned i = 0; i < WINDOWS; i++) {
                TLOB_SCOPE(harmless);
        }
}

static void closed(const char *path) {
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

        if (fd < 0)
                err(EXIT_FAILURE, "%s", path);
        for (int i = STDERR_FILENO + 1; i < DESCRIPTORS; i++)
                if (i != fd && dup2(fd, i) < 0)
                        err(EXIT_FAILURE, "dup2");
        make_windows();
        if (lseek(fd, 0, SEEK_END) != 0)
                errx(EXIT_FAILURE, "something was written to %s", path);
}

static void forked(void) {
        pid_t pid = fork();
        int status = 0;

        if (pid == 0) {
                make_windows();
                pid = fork();
                if (pid == 0)
                        make_windows();
                if (pid > 0)
                        (void) waitpid(pid, NULL, 0);
                _exit(pid < 0);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
                errx(EXIT_FAILURE, "the child has ended with status %i", status);
        make_windows();
}

static void *load(const char *path, struct tlob_mark **ret_mark) {
        void *(*window)(void), *handle = dlopen(path, RTLD_NOW);

        if (!handle)
                errx(EXIT_FAILURE, "%s", dlerror());
        window = (void *(*) (void) ) dlsym(handle, "library_window");
        *ret_mark = window();
        return handle;
}

/* The kernel has a bit to set there, as long as the library has not said that it goes. */
static void unloaded(const char *path, int closes) {
        size_t size = (size_t) sysconf(_SC_PAGESIZE);
        struct tlob_mark *mark;
        void *handle = load(path, &mark), *page;

        if (mark->reserved[1] != 1)
                errx(EXIT_FAILURE, "it is not registered");
        for (int i = STDERR_FILENO + 1; closes && i < DESCRIPTORS; i++)
                (void) close(i);
        if (dlclose(handle) != 0 || dlopen(path, RTLD_NOW | RTLD_NOLOAD))
                errx(EXIT_FAILURE, "it is not unloaded");
        page = (void *) ((uintptr_t) mark & ~(size - 1));
        if (mmap(page, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0) != page)
                err(EXIT_FAILURE, "mmap");
        memset(page, 0, size);
        (void) printf("unloaded\n");
        (void) fflush(stdout);
        await_line();
        for (size_t i = 0; i < size / sizeof(uint64_t); i++)
                if (((uint64_t *) page)[i] != 0)
                        errx(EXIT_FAILURE, "something was written there");
}

static void reloaded(const char *path) {
        int first = fcntl(STDIN_FILENO, F_DUPFD, 64);
        struct tlob_mark *mark;

        (void) close(first);
        for (unsigned i = 0; i < RELOADS; i++)
                if (dlclose(load(path, &mark)) != 0)
                        errx(EXIT_FAILURE, "%s", dlerror());
        if (fcntl(STDIN_FILENO, F_DUPFD, 64) != first)
                errx(EXIT_FAILURE, "descriptors are left");
}

static void *sleep_on(void *arg) {
        (void) pause();
        return arg;
}

static void late(const char *path) {
        struct tlob_mark *mark;
        pthread_t thread;

        if (pthread_create(&thread, NULL, sleep_on, NULL) != 0)
                errx(EXIT_FAILURE, "no thread");
        (void) load(path, &mark);
        if (mark->reserved[1] || mark->reserved[2])
                errx(EXIT_FAILURE, "it is registered");
}

static void *make_windows_on(void *arg) {
        for (;;)
                make_windows();
        return arg;
}

static int written_to = -1;

/* After the marks are gone. */
__attribute__((destructor(101))) static void look_at_descriptor(void) {
        if (written_to >= 0 && fcntl(written_to, F_GETFD) < 0)
                (void) printf("what a thread writes to is closed\n");
}

static void busy(void) {
        pthread_t thread;

        written_to = tlob_events_v1.fd_plus_one - 1;
        if (written_to < 0)
                errx(EXIT_FAILURE, "it is not registered");
        if (pthread_create(&thread, NULL, make_windows_on, NULL) != 0)
                errx(EXIT_FAILURE, "no thread");
        (void) usleep(10000);
}

int main(int argc, char *argv[]) {
        const char *how = argc > 1 ? argv[1] : "";

        (void) printf("ready\n");
        (void) fflush(stdout);
        await_line();
        if (strcmp(how, "closed") == 0 && argc == 3)
                closed(argv[2]);
        else if (strcmp(how, "forked") == 0)
                forked();
        else if (strcmp(how, "unloaded") == 0 && argc == 3)
                unloaded(argv[2], 0);
        else if (strcmp(how, "forgotten") == 0 && argc == 3)
                unloaded(argv[2], 1);
        else if (strcmp(how, "reloaded") == 0 && argc == 3)
                reloaded(argv[2]);
        else if (strcmp(how, "late") == 0 && argc == 3)
                late(argv[2]);
        else if (strcmp(how, "busy") == 0)
                busy();
        else
                make_windows();
        (void) printf("well\n");
        return 0;
}

#endif
