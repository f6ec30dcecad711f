/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program to be measured, which does what its arguments say:
 *
 *   a( ... )   call the function victim_a, which does what is between the brackets; also b, c
 *   d( ... )   the same, but what is written about it is written at the end of the thread
 *   <x  >x     call victim_begin_x and victim_end_x (x, y, z), which do nothing: windows that cross
 *   sleep:NS spin:NS yield:N    spend time; yield gives the CPU away N times
 *   burn:NS    spin until the thread has had the CPU for so long
 *   pin:CPU    stay on that CPU
 *   storm:N    call victim_storm N times, which takes 2 us; nothing is written about that
 *   repeat:N ( ... )  do it N times
 *   thread( ... )     do it in a thread of its own, and wait for that
 *   threads:N ( ... ) do it in N threads at once, and wait for them
 *   fork( ... )       do it in a child, and wait for that
 *   jump       longjmp() out of all functions, to the end of what the thread or the child does
 *   jump( ... )  what is in here may be jumped out of, to behind its bracket
 *   leave      pthread_exit()
 *   stack( ... )  do it on another stack, which lies above those of threads
 *   signal( ... ) do it in a signal handler, on a stack like that
 *   exit kill exec    end: by exit(0), by SIGKILL, by becoming "true"
 *   stop       stop itself, by SIGSTOP
 *   user:UID   become that user; the kernel lets nobody look into it then
 *   dumpable   but after this, that user may
 *   say:WORD   write the word to standard output, and wait for a line on standard input
 *
 * For each window of a, b, c, d and x, y, z it writes "NAME START END TID" to standard output, in
 * nanoseconds of CLOCK_MONOTONIC, read inside the window: so elapsed can only be longer than END -
 * START.
 *
 * How deep the stack is tells how many brackets are open, of whatever kind: two calls of a function
 * in one thread have the same stack pointer if they are equally deep in brackets, and the deeper
 * one has the lower one. So who reads the arguments knows what the probes will see.
 */

#include <alloca.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#include "base/cleanup.h"

#define NOINLINE __attribute__((noinline))

#define LEVEL_SIZE  2048 /* of stack, for what is between two brackets */
#define THREADS_MAX 16
#define KEPT_MAX    1024
#define STACK_SIZE  (1 << 20)

/* Where we are: how many brackets are open, in which thread, and where a jump goes. */
typedef struct Context {
        char *stack; /* of the thread: where it began */
        size_t depth;
        jmp_buf *out;
} Context;

NOINLINE char **victim_a(char **p, const Context *c);
NOINLINE char **victim_b(char **p, const Context *c);
NOINLINE char **victim_c(char **p, const Context *c);
NOINLINE char **victim_d(char **p, const Context *c);
NOINLINE void victim_storm(void);
NOINLINE void victim_begin_x(void);
NOINLINE void victim_end_x(void);
NOINLINE void victim_begin_y(void);
NOINLINE void victim_end_y(void);
NOINLINE void victim_begin_z(void);
NOINLINE void victim_end_z(void);

void victim_begin_x(void) {
        __asm__ volatile("");
}

void victim_end_x(void) {
        __asm__ volatile("nop");
}

void victim_begin_y(void) {
        __asm__ volatile("nop; nop");
}

void victim_end_y(void) {
        __asm__ volatile("nop; nop; nop");
}

void victim_begin_z(void) {
        __asm__ volatile("nop; nop; nop; nop");
}

void victim_end_z(void) {
        __asm__ volatile("nop; nop; nop; nop; nop");
}

static uint64_t clock_ns(clockid_t clock) {
        struct timespec ts;

        (void) clock_gettime(clock, &ts);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

static uint64_t now_ns(void) {
        return clock_ns(CLOCK_MONOTONIC);
}

static void record(const char *name, uint64_t start, uint64_t end) {
        char line[128];
        int n;

        /* One write, so that threads do not mix. */
        n = snprintf(line, sizeof(line), "%s %llu %llu %d\n", name, (unsigned long long) start,
                     (unsigned long long) end, gettid());
        if (write(STDOUT_FILENO, line, (size_t) n) != n)
                abort();
}

/* Windows of this thread, so that their windows hold nothing but what was asked for. */
static __thread struct {
        uint64_t start_ns[KEPT_MAX];
        uint64_t end_ns[KEPT_MAX];
        size_t n;
} kept;

static void keep(const char *name, uint64_t start, uint64_t end) {
        if (kept.n == KEPT_MAX)
                abort();
        kept.start_ns[kept.n] = start;
        kept.end_ns[kept.n++] = end;
}

static void record_kept(void) {
        for (size_t i = 0; i < kept.n; i++)
                record("d", kept.start_ns[i], kept.end_ns[i]);
        kept.n = 0;
}

/* Past the ")" that belongs to the "(" before p. */
static char **skip(char **p) {
        for (int depth = 1; *p && depth > 0; p++)
                if (streq(*p, ")"))
                        depth--;
                else if ((*p)[strlen(*p) - 1] == '(')
                        depth++;
        return p;
}

static char **run(char **p, const Context *c);

#define DEFINE_FUNCTION(letter, write_down)                                                        \
        char **victim_##letter(char **p, const Context *c) {                                       \
                uint64_t start = now_ns();                                                         \
                                                                                                   \
                p = run(p, c);                                                                     \
                write_down(#letter, start, now_ns());                                              \
                return p;                                                                          \
        }

DEFINE_FUNCTION(a, record)
DEFINE_FUNCTION(b, record)
DEFINE_FUNCTION(c, record)
DEFINE_FUNCTION(d, keep)

static const struct {
        const char *token;
        char **(*call)(char **p, const Context *c);
} functions[] = {
        { "a(", victim_a },
        { "b(", victim_b },
        { "c(", victim_c },
        { "d(", victim_d },
};

static const struct {
        const char *begin;
        const char *end;
        void (*call_begin)(void);
        void (*call_end)(void);
} markers[] = {
        { "<x", ">x", victim_begin_x, victim_end_x },
        { "<y", ">y", victim_begin_y, victim_end_y },
        { "<z", ">z", victim_begin_z, victim_end_z },
};

static void nap(uint64_t ns) {
        struct timespec ts = { (time_t) (ns / 1000000000U), (long) (ns % 1000000000U) };

        while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
                ;
}

static void spin(uint64_t ns) {
        uint64_t end = now_ns() + ns;

        while (now_ns() < end)
                ;
}

void victim_storm(void) {
        spin(2000);
}

static void burn(uint64_t ns) {
        uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

        while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
                ;
}

/* All that a thread does, whether it comes to its end or jumps there. */
static void *run_all(void *arg) {
        jmp_buf out;

        if (setjmp(out) == 0)
                run(arg, &(Context) { .stack = __builtin_frame_address(0), .out = &out });
        record_kept();
        return NULL;
}

static char **run_threads(char **p, size_t n) {
        pthread_t threads[THREADS_MAX];

        if (n > THREADS_MAX)
                abort();
        for (size_t i = 0; i < n; i++)
                if (pthread_create(&threads[i], NULL, run_all, p) != 0)
                        abort();
        for (size_t i = 0; i < n; i++)
                (void) pthread_join(threads[i], NULL);
        return skip(p);
}

static char **run_fork(char **p) {
        pid_t pid = fork();

        if (pid < 0)
                abort();
        if (pid == 0) {
                (void) run_all(p);
                _exit(0);
        }
        (void) waitpid(pid, NULL, 0);
        return skip(p);
}

static char **run_jump(char **p, const Context *c) {
        jmp_buf out;

        if (setjmp(out) == 0)
                return run(p, &(Context) { .stack = c->stack, .depth = c->depth, .out = &out });
        return skip(p);
}

/* Two of them, made before any thread. */
static char *stacks;

static __thread char **elsewhere; /* what is to be done there, then where that ends */

static void run_elsewhere(void) {
        elsewhere = run(elsewhere, &(Context) { .stack = __builtin_frame_address(0) });
}

static char **run_stack(char **p) {
        ucontext_t here, there;

        if (getcontext(&there) < 0)
                abort();
        there.uc_stack = (stack_t) { .ss_sp = stacks, .ss_size = STACK_SIZE };
        there.uc_link = &here;
        makecontext(&there, run_elsewhere, 0);
        elsewhere = p;
        if (swapcontext(&here, &there) < 0)
                abort();
        return elsewhere;
}

static void on_signal(int signal) {
        run_elsewhere();
}

static char **run_signal(char **p) {
        static const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
        const stack_t stack = { .ss_sp = stacks + STACK_SIZE, .ss_size = STACK_SIZE };

        if (sigaltstack(&stack, NULL) < 0 || sigaction(SIGUSR1, &action, NULL) < 0)
                abort();
        elsewhere = p;
        if (raise(SIGUSR1) != 0)
                abort();
        return elsewhere;
}

static char **repeat(char **p, unsigned long n, const Context *c) {
        for (unsigned long i = 0; i < n; i++)
                run(p + 1, c);
        return skip(p + 1);
}

static void pin(unsigned long cpu) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (sched_setaffinity(0, sizeof(set), &set) < 0)
                abort();
}

static void say(const char *word) {
        char line[16];

        (void) dprintf(STDOUT_FILENO, "%s\n", word);
        if (read(STDIN_FILENO, line, sizeof(line)) < 0)
                abort();
}

static int run_marker(const char *token) {
        static __thread uint64_t start[ELEMENTSOF(markers)];

        for (size_t i = 0; i < ELEMENTSOF(markers); i++)
                if (streq(token, markers[i].begin)) {
                        markers[i].call_begin();
                        start[i] = now_ns();
                        return 1;
                } else if (streq(token, markers[i].end)) {
                        record(markers[i].end + 1, start[i], now_ns());
                        markers[i].call_end();
                        return 1;
                }
        return 0;
}

static void run_action(const char *token) {
        char *argv[] = { (char *) "true", NULL };
        const char *colon = strchr(token, ':');
        uint64_t n = colon ? strtoull(colon + 1, NULL, 10) : 0;

        if (strncmp(token, "sleep:", 6) == 0)
                nap(n);
        else if (strncmp(token, "spin:", 5) == 0)
                spin(n);
        else if (strncmp(token, "storm:", 6) == 0)
                for (uint64_t i = 0; i < n; i++)
                        victim_storm();
        else if (strncmp(token, "burn:", 5) == 0)
                burn(n);
        else if (strncmp(token, "yield:", 6) == 0)
                for (uint64_t i = 0; i < n; i++)
                        (void) sched_yield();
        else if (strncmp(token, "pin:", 4) == 0)
                pin(n);
        else if (strncmp(token, "say:", 4) == 0)
                say(colon + 1);
        else if (strncmp(token, "user:", 5) == 0)
                (void) !setresuid((uid_t) n, (uid_t) n, (uid_t) n);
        else if (streq(token, "dumpable"))
                (void) prctl(PR_SET_DUMPABLE, 1);
        else if (streq(token, "leave"))
                pthread_exit(NULL);
        else if (streq(token, "exit"))
                exit(0);
        else if (streq(token, "kill"))
                (void) raise(SIGKILL);
        else if (streq(token, "stop"))
                (void) raise(SIGSTOP);
        else if (streq(token, "exec"))
                (void) execvp("true", argv);
        else {
                (void) fprintf(stderr, "victim: what is '%s'?\n", token);
                exit(2);
        }
}

static char **run_one(char **p, const Context *c) {
        const char *token = *p++;

        for (size_t i = 0; i < ELEMENTSOF(functions); i++)
                if (streq(token, functions[i].token))
                        return functions[i].call(p, c);
        if (streq(token, "thread("))
                return run_threads(p, 1);
        if (strncmp(token, "threads:", 8) == 0)
                return run_threads(p + 1, strtoul(token + 8, NULL, 10));
        if (streq(token, "stack("))
                return run_stack(p);
        if (streq(token, "signal("))
                return run_signal(p);
        if (streq(token, "fork("))
                return run_fork(p);
        if (streq(token, "jump("))
                return run_jump(p, c);
        if (streq(token, "jump"))
                longjmp(*c->out, 1);
        if (strncmp(token, "repeat:", 7) == 0)
                return repeat(p, strtoul(token + 7, NULL, 10), c);
        if (!run_marker(token))
                run_action(token);
        return p;
}

/* What is in a bracket. The stack is filled up to where the bracket's depth wants it. */
static NOINLINE char **run(char **p, const Context *c) {
        Context inner = { .stack = c->stack, .depth = c->depth + 1, .out = c->out };
        size_t used = (size_t) (c->stack - (char *) __builtin_frame_address(0));
        void *filling;

        if (used > inner.depth * LEVEL_SIZE)
                abort();
        filling = alloca(inner.depth * LEVEL_SIZE - used);
        __asm__ volatile("" : : "r"(filling) : "memory");

        while (*p && !streq(*p, ")"))
                p = run_one(p, &inner);
        return *p ? p + 1 : p;
}

int main(int argc, char *argv[]) {
        /* A test that fails does not clean up. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        stacks = mmap(NULL, 2UL * STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
        if (stacks == MAP_FAILED)
                abort();
        (void) run_all(argv + 1);
        return 0;
}
