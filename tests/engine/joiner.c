/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program whose marks are measured without traps, which does what its arguments say. Each begin
 * and end of "request" is counted by the program itself.
 *
 *   ready      windows until they take no trap
 *   quick      fails if they do
 *   pair:N     N windows
 *   nap:NS     a window that sleeps so long; writes "nap START END TID"
 *   spin:NS    the same, running
 *   turns:N    N windows, each of which leaves the CPU
 *   calls:N    N windows with a system call in each, getpgid()
 *   nest:N     a window in a window, N times
 *   thread:N   four threads at once, each ready, with N windows
 *   signal:N   N windows, while a timer interrupts them with windows of its own
 *   fork:N     in a window: a child is forked that ends it, and makes N windows
 *   vfork:N    in a window: a child that shares the memory makes N windows
 *   idle:NS    sleeps so long, in no window
 *   jump:N     N times a jump out of a signal handler, wherever it comes in windows
 *   spawn:N    N windows in which a program is run
 *   begin end  one of them
 *   exec       in a window: becomes "true"
 *   say:WORD   writes the word, and waits for a line
 *   scribble:MS  writes anything anywhere into what is shared, and has windows in between
 *   cost:N     N windows; writes "cost NS 0 0" for each of them
 *
 * At its end it writes "result N": how many windows it began.
 */

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define TLOB_MARK_JOIN
#define TLOB_MARK_SOCKET getenv("TLOB_TEST_MARKS")
#include "tlob-mark.h"

TLOB_MARK(request);

#define READY_NS 10000000000ULL
#define THREADS  4

static unsigned long n_begun;

static uint64_t now_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

static void begin(void) {
        (void) __atomic_add_fetch(&n_begun, 1, __ATOMIC_RELAXED);
        tlob_begin(request);
}

__attribute__((noinline)) void joiner_pass(void);
void joiner_pass(void) {
        __asm__ __volatile__("");
}

static void end(void) {
        tlob_end(request);
        joiner_pass();
}

static void pair(unsigned long n) {
        for (unsigned long i = 0; i < n; i++) {
                begin();
                end();
        }
}

/* As the header does it. */
static int is_quick(void) {
        const struct tlob_lane_mark *m =
                tlob_lane_mark_(tlob_lane_of_thread_(), &tlob_mark_request);

        return m && m->budget_ns && m->until_ns > now_ns();
}

static void ready(void) {
        uint64_t until = now_ns() + READY_NS;

        while (!is_quick()) {
                pair(1);
                (void) usleep(1000);
                if (now_ns() > until) {
                        (void) fprintf(stderr, "joiner: no lane\n");
                        exit(EXIT_FAILURE);
                }
        }
}

static void report(const char *what, uint64_t start_ns) {
        (void) printf("%s %llu %llu %i\n", what, (unsigned long long) start_ns,
                      (unsigned long long) now_ns(), gettid());
}

static void nap(unsigned long ns) {
        struct timespec time = { (time_t) (ns / 1000000000), (long) (ns % 1000000000) };
        uint64_t start_ns = now_ns();

        begin();
        (void) nanosleep(&time, NULL);
        end();
        report("nap", start_ns);
}

static void idle(unsigned long ns) {
        struct timespec time = { (time_t) (ns / 1000000000), (long) (ns % 1000000000) };

        (void) nanosleep(&time, NULL);
}

static void spin(unsigned long ns) {
        uint64_t start_ns = now_ns();

        begin();
        while (now_ns() - start_ns < ns)
                ;
        end();
        report("spin", start_ns);
}

static void turns(unsigned long n) {
        for (unsigned long i = 0; i < n; i++) {
                begin();
                (void) usleep(1);
                end();
        }
}

static void calls(unsigned long n) {
        for (unsigned long i = 0; i < n; i++) {
                begin();
                (void) getpgid(0);
                end();
        }
}

static void nest(unsigned long n) {
        for (unsigned long i = 0; i < n; i++) {
                tlob_begin(request);
                tlob_begin(request);
                tlob_end(request);
                tlob_end(request);
        }
}

static void *work(void *n) {
        ready();
        pair((unsigned long) (uintptr_t) n);
        return NULL;
}

static void threads(unsigned long n) {
        pthread_t all[THREADS];

        for (int i = 0; i < THREADS; i++)
                if (pthread_create(&all[i], NULL, work, (void *) (uintptr_t) n) != 0)
                        exit(EXIT_FAILURE);
        for (int i = 0; i < THREADS; i++)
                (void) pthread_join(all[i], NULL);
}

static volatile sig_atomic_t n_signals;

static void on_signal(int number) {
        (void) number;
        n_signals++;
        tlob_begin(request);
        tlob_end(request);
}

static void signals(unsigned long n) {
        const struct itimerval each = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };

        (void) signal(SIGALRM, on_signal);
        (void) setitimer(ITIMER_REAL, &each, NULL);
        for (unsigned long i = 0; i < n; i++) {
                tlob_begin(request);
                tlob_end(request);
        }
        (void) setitimer(ITIMER_REAL, &never, NULL);
}

static sigjmp_buf away;

_Noreturn static void on_jump(int number) {
        (void) number;
        siglongjmp(away, 1);
}

/* One that comes between two windows does no harm; what it leaves in one ends with the next. */
static void jumps(unsigned long n) {
        const struct itimerval once = { { 0, 0 }, { 0, 300 } };

        (void) signal(SIGALRM, on_jump);
        for (volatile unsigned long i = 0; i < n; i++)
                if (sigsetjmp(away, 1) == 0) {
                        (void) setitimer(ITIMER_REAL, &once, NULL);
                        for (;;) {
                                tlob_begin(request);
                                tlob_end(request);
                        }
                }
}

static void spawn(unsigned long n) {
        char name[] = "true", *arguments[] = { name, NULL };

        for (unsigned long i = 0; i < n; i++) {
                pid_t pid;

                begin();
                if (posix_spawnp(&pid, name, NULL, NULL, arguments, NULL) != 0 ||
                    waitpid(pid, NULL, 0) != pid)
                        exit(EXIT_FAILURE);
                end();
        }
}

static void fork_in_window(unsigned long n) {
        pid_t pid;

        begin();
        pid = fork();
        if (pid == 0) {
                end();
                pair(n);
                _exit(EXIT_SUCCESS);
        }
        if (pid < 0 || waitpid(pid, NULL, 0) != pid)
                exit(EXIT_FAILURE);
        end();
        n_begun += n;
}

static void vfork_in_window(unsigned long n) {
        pid_t pid;

        begin();
        pid = vfork();
        if (pid == 0) {
                for (unsigned long i = 0; i < n; i++) {
                        tlob_begin(request);
                        tlob_end(request);
                }
                _exit(EXIT_SUCCESS);
        }
        if (pid < 0 || waitpid(pid, NULL, 0) != pid)
                exit(EXIT_FAILURE);
        end();
        n_begun += n;
}

static void say(const char *word) {
        char line[16];

        (void) printf("%s\n", word);
        (void) fflush(stdout);
        if (!fgets(line, sizeof(line), stdin))
                exit(EXIT_FAILURE);
}

static void scribble(unsigned long ms) {
        size_t n = TLOB_LANES * sizeof(struct tlob_lane) / sizeof(unsigned long);
        volatile unsigned long *shared = (volatile unsigned long *) tlob_process_v1->lanes;
        uint64_t until = now_ns() + ms * 1000000;

        for (unsigned long i = 0; i % 64 || now_ns() < until; i++) {
                const unsigned long values[] = {
                        0, 1, 2, 3, ~0UL, 0x100000001UL, now_ns(), (unsigned long) random(),
                };
                size_t place = (size_t) random() % n;

                /* Where it matters most, mostly. */
                if (i % 2)
                        place = (size_t) random() % (sizeof(struct tlob_lane_mark) * 2 / 8);
                shared[place] = values[(unsigned long) random() % 8];
                tlob_begin(request);
                tlob_end(request);
        }
}

static void cost(unsigned long n) {
        uint64_t start_ns = now_ns();

        for (unsigned long i = 0; i < n; i++) {
                tlob_begin(request);
                tlob_end(request);
        }
        n_begun += n;
        (void) printf("cost %llu 0 0\n", (unsigned long long) ((now_ns() - start_ns) / n));
}

static void do_word(const char *word) {
        const char *colon = strchr(word, ':'), *value = colon ? colon + 1 : "";
        size_t length = colon ? (size_t) (colon - word) : strlen(word);
        unsigned long n = strtoul(value, NULL, 10);

#define IS(name) (length == strlen(name) && strncmp(word, name, length) == 0)
        if (IS("ready"))
                ready();
        else if (IS("quick")) {
                if (!is_quick()) {
                        (void) fprintf(stderr, "joiner: the next window traps\n");
                        exit(EXIT_FAILURE);
                }
        } else if (IS("pair"))
                pair(n);
        else if (IS("nap"))
                nap(n);
        else if (IS("idle"))
                idle(n);
        else if (IS("spin"))
                spin(n);
        else if (IS("turns"))
                turns(n);
        else if (IS("calls"))
                calls(n);
        else if (IS("nest"))
                nest(n);
        else if (IS("thread"))
                threads(n);
        else if (IS("signal"))
                signals(n);
        else if (IS("jump"))
                jumps(n);
        else if (IS("spawn"))
                spawn(n);
        else if (IS("fork"))
                fork_in_window(n);
        else if (IS("vfork"))
                vfork_in_window(n);
        else if (IS("begin"))
                begin();
        else if (IS("end"))
                end();
        else if (IS("exec")) {
                begin();
                (void) execlp("true", "true", NULL);
                exit(EXIT_FAILURE);
        } else if (IS("say"))
                say(value);
        else if (IS("scribble"))
                scribble(n);
        else if (IS("cost"))
                cost(n);
        else {
                (void) fprintf(stderr, "joiner: '%s' is no word\n", word);
                exit(EXIT_FAILURE);
        }
}

int main(int argc, char *argv[]) {
        for (int i = 1; i < argc; i++)
                do_word(argv[i]);
        (void) printf("result %lu %i\n", n_begun, (int) n_signals);
        return 0;
}
