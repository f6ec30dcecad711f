/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A daemon for a package, and its library: -DVERSION=1, 2 or 3. In each version the functions are
 * at other places, and the third lacks those that are measured. It calls them without an end,
 * checks what they return, and at SIGTERM writes one line: "VERSION SERVES WORKS".
 *
 * SIGHUP starts another process of the program that is there now, as daemons do which hand over to
 * their next version.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

/* clang-format off */
#if VERSION == 2
__asm__(".text\n.skip 1088, 0x90\n");
#endif
/* clang-format on */

long packaged_work(long n);
long packaged_other(long n);

#if LIBRARY

#if VERSION < 3
NOINLINE long packaged_work(long n) {
        for (volatile long i = 0; i < 200; i++)
                ;
        return n + 1;
}
#endif

NOINLINE long packaged_other(long n) {
        return n + 2;
}

#else

NOINLINE long serve(long n);

static volatile sig_atomic_t is_over, is_asked;

static void end(int signal) {
        is_over = 1;
}

static void ask(int signal) {
        is_asked = 1;
}

#if VERSION == 3
#define serve         serve_anew
#define packaged_work packaged_other
NOINLINE long serve(long n);
#endif

NOINLINE long serve(long n) {
        for (volatile long i = 0; i < VERSION * 2000; i++)
                ;
        return n + VERSION;
}

static void check(long value, long expected) {
        if (value != expected)
                abort();
}

static void start_another(char *program) {
        char *arguments[] = { program, NULL };

        is_asked = 0;
        if (fork() == 0) {
                (void) execv(program, arguments);
                _exit(1);
        }
}

int main(int argc, char **argv) {
        const struct timespec pause = { .tv_nsec = 200000 };
        unsigned long n = 0;
        char line[64];
        int length;

        (void) signal(SIGTERM, end);
        (void) signal(SIGHUP, ask);
        for (; !is_over; n++) {
                check(serve((long) n), (long) n + VERSION);
                check(packaged_work((long) n), (long) n + (VERSION < 3 ? 1 : 2));
                check(packaged_other((long) n), (long) n + 2);
                if (is_asked)
                        start_another(argv[0]);
                (void) nanosleep(&pause, NULL);
        }
        length = snprintf(line, sizeof(line), "%d %lu %lu\n", VERSION, VERSION < 3 ? n : 0,
                          VERSION < 3 ? n : 0);
        return write(STDOUT_FILENO, line, (size_t) length) == length ? 0 : 1;
}

#endif
