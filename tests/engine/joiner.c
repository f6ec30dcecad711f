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
 *   parts:N    the same, with N windows in each of which are one of "part" and one of "key"
 *   beyond:N   a window of each of four marks; then in each of N threads, one after another, two
 *              of a fifth, for which lanes have no room
 *   signal:N   N windows, while a timer interrupts them with windows of its own
 *   fork:N     in a window: a child is forked that ends it, and makes N windows
 *   vfork:N    in a window: a child that shares the memory makes N windows
 *   idle:NS    sleeps so long, in no window
 *   jump:N     N times a jump out of a signal handler, wherever it comes in windows
 *   spawn:N    N windows in which a program is run
 *   begin end  one of them
 *   exec       in a window: becomes "true"
 *   live       four threads at once, with windows of which some leave the CPU, until SIGTERM
 *   wait       until SIGTERM comes once more
 *   ledger:FILE  from now on, how many have begun and ended is also in that file, whatever happens
 *   alone      fails if anybody listens for ten seconds still
 *   tell:WORD  writes the word
 *   say:WORD   the same, and waits for a line
 *   scribble:MS  writes anything anywhere into what is shared, and has windows in between
 *   hoard:N    asks N times for what is shared, keeps it, and says "hoarded-" and how often
 *   cost:N     N windows; writes "cost NS 0 0" for each of them
 *
 * At its end it writes "result N": how many windows it began.
 */

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define TLOB_MARK_JOIN
#define TLOB_MARK_SOCKET getenv("TLOB_TEST_MARKS")
#include "tlob-mark.h"

TLOB_MARK(request);
TLOB_MARK(part);
TLOB_MARK(key); /* is also what the functions with keys end in */
TLOB_MARK(fourth);
TLOB_MARK(fifth);

#define READY_NS 80000000000ULL /* longer than the pauses between attempts to join get */
#define ALONE_NS 10000000000ULL
#define THREADS  4

static struct Ledger {
        unsigned long n_begun;
        unsigned long n_ended; /* but for those by other words than begin and end */
} own_ledger, *ledger = &own_ledger;

static uint64_t now_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

static void begin(void) {
        (void) __atomic_add_fetch(&ledger->n_begun, 1, __ATOMIC_RELAXED);
        tlob_begin(request);
}

__attribute__((noinline)) void joiner_pass(void);
void joiner_pass(void) {
        __asm__ __volatile__("");
}

static void end(void) {
        tlob_end(request);
        (void) __atomic_add_fetch(&ledger->n_ended, 1, __ATOMIC_RELAXED);
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

static void quick(void) {
        if (!is_quick()) {
                (void) fprintf(stderr, "joiner: the next window traps\n");
                exit(EXIT_FAILURE);
        }
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
        uint64_t start_ns = now_ns(), begun_ns;

        begin();
        begun_ns = now_ns();
        while (now_ns() - begun_ns < ns)
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

static void *work_in_parts(void *n) {
        for (unsigned long i = 0; i < (unsigned long) (uintptr_t) n; i++) {
                begin();
                tlob_begin(part);
                tlob_end(part);
                tlob_begin(key);
                tlob_end(key);
                end();
        }
        return NULL;
}

static void threads(void *(*function)(void *), unsigned long n) {
        pthread_t all[THREADS];

        for (int i = 0; i < THREADS; i++)
                if (pthread_create(&all[i], NULL, function, (void *) (uintptr_t) n) != 0)
                        exit(EXIT_FAILURE);
        for (int i = 0; i < THREADS; i++)
                (void) pthread_join(all[i], NULL);
}

static void run_threads(unsigned long n) {
        threads(work, n);
}

static void run_parts(unsigned long n) {
        threads(work_in_parts, n);
}

static void *work_beyond(void *unused) {
        (void) unused;
        for (int i = 0; i < 2; i++) {
                tlob_begin(fifth);
                tlob_end(fifth);
        }
        return NULL;
}

static void beyond(unsigned long n) {
        (void) work_in_parts((void *) (uintptr_t) 1);
        tlob_begin(fourth);
        tlob_end(fourth);
        for (unsigned long i = 0; i < n; i++) {
                pthread_t one;

                if (pthread_create(&one, NULL, work_beyond, NULL) != 0)
                        exit(EXIT_FAILURE);
                (void) pthread_join(one, NULL);
        }
}

static volatile sig_atomic_t n_ends;

static void on_end(int number) {
        (void) number;
        n_ends++;
}

static void *live_as_one(void *unused) {
        (void) unused;
        while (n_ends == 0) {
                pair(1000);
                turns(1);
                idle(1000000);
        }
        return NULL;
}

static void live(void) {
        (void) signal(SIGTERM, on_end);
        threads(live_as_one, 0);
}

static void wait_for_end(void) {
        while (n_ends < 2)
                (void) usleep(1000);
}

static void keep_ledger(const char *path) {
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        struct Ledger *kept = MAP_FAILED;

        if (fd >= 0 && ftruncate(fd, sizeof(*kept)) == 0)
                kept = mmap(NULL, sizeof(*kept), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (kept == MAP_FAILED) {
                perror("joiner: the ledger");
                exit(EXIT_FAILURE);
        }
        ledger = kept;
        (void) close(fd);
}

static void alone(void) {
        uint64_t until = now_ns() + ALONE_NS;

        while (tlob_enabled(request)) {
                (void) usleep(1000);
                if (now_ns() > until) {
                        (void) fprintf(stderr, "joiner: somebody listens\n");
                        exit(EXIT_FAILURE);
                }
        }
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
        ledger->n_begun += n;
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
        ledger->n_begun += n;
}

static void tell(const char *word) {
        (void) printf("%s\n", word);
        (void) fflush(stdout);
}

static void say(const char *word) {
        char line[16];

        tell(word);
        if (!fgets(line, sizeof(line), stdin))
                exit(EXIT_FAILURE);
}

static _Noreturn void become_another(void) {
        begin();
        (void) execlp("true", "true", NULL);
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

/* Asks so often, as who asks again does, and keeps all that it gets. */
static void hoard(unsigned long n) {
        char word[32];
        unsigned got = 0;

        for (unsigned long i = 0; i < n; i++) {
                int fd = tlob_ask_();
                struct pollfd answer = { .fd = fd, .events = POLLIN };

                if (fd < 0)
                        exit(EXIT_FAILURE);
                if (poll(&answer, 1, 10000) == 1)
                        got += tlob_receive_(fd) >= 0;
                (void) close(fd);
        }
        (void) snprintf(word, sizeof(word), "hoarded-%u", got);
        say(word);
}

static void cost(unsigned long n) {
        uint64_t start_ns = now_ns();

        for (unsigned long i = 0; i < n; i++) {
                tlob_begin(request);
                tlob_end(request);
        }
        ledger->n_begun += n;
        (void) printf("cost %llu 0 0\n", (unsigned long long) ((now_ns() - start_ns) / n));
}

static const struct Word {
        const char *name;
        void (*plain)(void);
        void (*number)(unsigned long n);
        void (*text)(const char *value);
} words[] = {
        { "ready", .plain = ready },
        { "quick", .plain = quick },
        { "pair", .number = pair },
        { "nap", .number = nap },
        { "spin", .number = spin },
        { "turns", .number = turns },
        { "calls", .number = calls },
        { "nest", .number = nest },
        { "thread", .number = run_threads },
        { "parts", .number = run_parts },
        { "beyond", .number = beyond },
        { "signal", .number = signals },
        { "fork", .number = fork_in_window },
        { "vfork", .number = vfork_in_window },
        { "idle", .number = idle },
        { "jump", .number = jumps },
        { "spawn", .number = spawn },
        { "begin", .plain = begin },
        { "end", .plain = end },
        { "exec", .plain = become_another },
        { "live", .plain = live },
        { "wait", .plain = wait_for_end },
        { "ledger", .text = keep_ledger },
        { "alone", .plain = alone },
        { "tell", .text = tell },
        { "say", .text = say },
        { "scribble", .number = scribble },
        { "hoard", .number = hoard },
        { "cost", .number = cost },
};

static void do_word(const char *word) {
        const char *colon = strchr(word, ':'), *value = colon ? colon + 1 : "";
        size_t length = colon ? (size_t) (colon - word) : strlen(word);
        const struct Word *w = words, *end_of_words = words + sizeof(words) / sizeof(words[0]);

        while (w < end_of_words &&
               (length != strlen(w->name) || strncmp(word, w->name, length) != 0))
                w++;
        if (w == end_of_words) {
                (void) fprintf(stderr, "joiner: '%s' is no word\n", word);
                exit(EXIT_FAILURE);
        }
        if (w->plain)
                w->plain();
        else if (w->number)
                w->number(strtoul(value, NULL, 10));
        else
                w->text(value);
}

int main(int argc, char *argv[]) {
        for (int i = 1; i < argc; i++)
                do_word(argv[i]);
        (void) printf("result %lu %i\n", ledger->n_begun, (int) n_signals);
        return 0;
}
