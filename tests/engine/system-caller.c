/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program that makes system calls by itself, without a library, and counts them. It does what its
 * arguments say:
 *
 *   try:N        rt_sigtimedwait() N times, without waiting
 *   wait:NS      rt_sigtimedwait() once, which waits in vain for so long, and then writes
 *                "wait START END TID"
 *   within:NS    the same, in the function caller_within
 *   nap:NS       nanosleep() once, until then or until SIGALRM
 *   spin:NS      computes until it has had a CPU for so long
 *   ppid:N       getppid() N times
 *   compat:N     getuid() N times, as 32-bit programs do: by the number of fremovexattr()
 *   x32:N        the same in the numbers of x32
 *   fork:N       fork() N times, by the system call of that name; children end at once
 *   vfork:NS     vfork() once; the child ends after so long; writes "vfork START END TID"
 *   alarm:NS     the next call is interrupted after so long, by a handler that does "try:1"; or, if
 *                that is 0, when somebody else sends SIGALRM
 *   deny:CALL    from now on a filter denies the system call of that number
 *   storm:T:N    in T threads: "try:N", 50 ms on a CPU, "try:N", and that twice; writes
 *                "long START END TID" for each call that took 20 ms or more
 *   thread:NS    "wait:NS" in a thread of its own
 *   join         make the last such thread's wait end, and wait for the thread
 *   exec exit    become "true", exit
 *   say:WORD     write the word to standard output, and wait for a line on standard input
 *
 * START and END, of CLOCK_MONOTONIC, are read before and after the call.
 */

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64
#define SPIN_NS     UINT64_C(50000000)
#define LONG_NS     UINT64_C(20000000)
#define X32_BIT     0x40000000L

static uint64_t clock_ns(clockid_t clock) {
        struct timespec ts;

        (void) clock_gettime(clock, &ts);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

#if defined(__aarch64__)

static long call(long number, long a, long b, long c, long d) {
        register long which __asm__("x8") = number;
        register long first __asm__("x0") = a;
        register long second __asm__("x1") = b;
        register long third __asm__("x2") = c;
        register long fourth __asm__("x3") = d;

        __asm__ volatile("svc 0"
                         : "+r"(first)
                         : "r"(which), "r"(second), "r"(third), "r"(fourth)
                         : "memory");
        return first;
}

#else

static long call(long number, long a, long b, long c, long d) {
        register long fourth __asm__("r10") = d;
        long result;

        __asm__ volatile("syscall"
                         : "=a"(result)
                         : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                         : "rcx", "r11", "memory");
        return result;
}

#endif

static void need(bool good, const char *what) {
        if (good)
                return;
        fprintf(stderr, "system-caller: %s\n", what);
        abort();
}

/* A signal that is blocked, and that only "join" sends. */
static const uint64_t awaited = UINT64_C(1) << (SIGUSR2 - 1);

static void try_in_vain(unsigned long n) {
        const struct timespec time = {};

        for (unsigned long i = 0; i < n; i++)
                (void) call(SYS_rt_sigtimedwait, (long) &awaited, 0, (long) &time, sizeof(awaited));
}

static void record(const char *name, uint64_t start, uint64_t end) {
        (void) printf("%s %llu %llu %i\n", name, (unsigned long long) start,
                      (unsigned long long) end, gettid());
        (void) fflush(stdout);
}

static void wait_in_vain(uint64_t ns) {
        struct timespec time = { (time_t) (ns / 1000000000), (long) (ns % 1000000000) };
        uint64_t start, end;

        start = clock_ns(CLOCK_MONOTONIC);
        (void) call(SYS_rt_sigtimedwait, (long) &awaited, 0, (long) &time, sizeof(awaited));
        end = clock_ns(CLOCK_MONOTONIC);
        record("wait", start, end);
}

__attribute__((noinline)) void caller_within(uint64_t ns);

void caller_within(uint64_t ns) {
        wait_in_vain(ns);
        __asm__ volatile("");
}

static void *wait_in_thread(void *ns) {
        wait_in_vain((uint64_t) (uintptr_t) ns);
        return NULL;
}

static pthread_t last_thread;

static void start_thread(uint64_t ns) {
        need(pthread_create(&last_thread, NULL, wait_in_thread, (void *) (uintptr_t) ns) == 0,
             "no thread");
}

static void join(void) {
        need(pthread_kill(last_thread, SIGUSR2) == 0, "nobody to be woken");
        (void) pthread_join(last_thread, NULL);
}

static void nap(uint64_t ns) {
        struct timespec time = { (time_t) (ns / 1000000000), (long) (ns % 1000000000) };
        long result = call(SYS_nanosleep, (long) &time, 0, 0, 0);

        need(result == 0 || result == -EINTR, "no nap");
}

static void ppid(unsigned long n) {
        for (unsigned long i = 0; i < n; i++)
                need(call(SYS_getppid, 0, 0, 0, 0) > 0, "no parent");
}

/* As 32-bit programs do it. */
static void compat(unsigned long n) {
#if defined(__x86_64__)
        for (unsigned long i = 0; i < n; i++) {
                long result;

                __asm__ volatile("int $0x80"
                                 : "=a"(result)
                                 : "a"(SYS_fremovexattr)
                                 : "memory", "r8", "r9", "r10", "r11");
                need(result == (long) getuid(), "no system call of 32 bits");
        }
#else
        need(n == 0, "no system calls of 32 bits on this machine");
#endif
}

static void x32(unsigned long n) {
        const struct timespec time = {};

        for (unsigned long i = 0; i < n; i++)
                (void) call(X32_BIT | SYS_rt_sigtimedwait, (long) &awaited, 0, (long) &time,
                            sizeof(awaited));
}

/* Newer machines have clone() only. */
static long call_fork(void) {
#ifdef SYS_fork
        return call(SYS_fork, 0, 0, 0, 0);
#else
        return call(SYS_clone, SIGCHLD, 0, 0, 0);
#endif
}

static void forks(unsigned long n) {
        for (unsigned long i = 0; i < n; i++) {
                long pid = call_fork();

                if (pid == 0)
                        _exit(0);
                need(pid > 0 && waitpid((pid_t) pid, NULL, 0) == pid, "no child");
        }
}

static void vforks(uint64_t ns) {
        struct timespec time = { (time_t) (ns / 1000000000), (long) (ns % 1000000000) };
        uint64_t begin = clock_ns(CLOCK_MONOTONIC);
        pid_t pid;

        pid = vfork();
        if (pid == 0) {
                (void) nanosleep(&time, NULL);
                _exit(0);
        }
        record("vfork", begin, clock_ns(CLOCK_MONOTONIC));
        need(pid > 0 && waitpid(pid, NULL, 0) == pid, "no child");
}

static void on_alarm(int signal) {
        try_in_vain(1);
}

static void set_alarm(uint64_t ns) {
        struct itimerval timer = { .it_value.tv_usec = (suseconds_t) (ns / 1000) };
        struct sigaction action = { .sa_handler = on_alarm };

        need(sigaction(SIGALRM, &action, NULL) == 0, "no handler");
        need(setitimer(ITIMER_REAL, &timer, NULL) == 0, "no timer");
}

static void deny(unsigned number) {
        struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

        need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "privileges");
        need(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "no filter");
}

static void spin(uint64_t ns) {
        uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        volatile unsigned n = 0;

        /* The clock of a thread is read by a system call; so it is rarely. */
        while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin < ns)
                for (unsigned i = 0; i < 1000000; i++)
                        n = i;
        (void) n;
}

static void try_and_record_long(unsigned long n) {
        for (unsigned long i = 0; i < n; i++) {
                uint64_t start = clock_ns(CLOCK_MONOTONIC), end;

                try_in_vain(1);
                end = clock_ns(CLOCK_MONOTONIC);
                if (end - start >= LONG_NS)
                        record("long", start, end);
        }
}

static void *storm_in_thread(void *n) {
        for (unsigned i = 0; i < 2; i++) {
                try_and_record_long((unsigned long) (uintptr_t) n);
                spin(SPIN_NS);
                try_and_record_long((unsigned long) (uintptr_t) n);
        }
        return NULL;
}

static void storm(const char *what) {
        pthread_t threads[THREADS_MAX];
        unsigned long n_threads, n;
        char *end;

        n_threads = strtoul(what, &end, 10);
        n = strtoul(end + 1, NULL, 10);
        need(n_threads <= THREADS_MAX, "too many threads");
        for (unsigned long i = 0; i < n_threads; i++)
                need(pthread_create(&threads[i], NULL, storm_in_thread, (void *) (uintptr_t) n) ==
                             0,
                     "no thread");
        for (unsigned long i = 0; i < n_threads; i++)
                (void) pthread_join(threads[i], NULL);
}

static void say(const char *word) {
        char line[16];

        (void) printf("%s\n", word);
        (void) fflush(stdout);
        need(fgets(line, sizeof(line), stdin), "nobody answers");
}

static void do_word(const char *word) {
        const char *value = strchr(word, ':') ?: "";
        unsigned long n = *value ? strtoul(++value, NULL, 10) : 0;

#define IS(name) (strncmp(word, name ":", strlen(name ":")) == 0)
        if (IS("try"))
                try_in_vain(n);
        else if (IS("wait"))
                wait_in_vain(n);
        else if (IS("within"))
                caller_within(n);
        else if (IS("nap"))
                nap(n);
        else if (IS("spin"))
                spin(n);
        else if (IS("ppid"))
                ppid(n);
        else if (IS("compat"))
                compat(n);
        else if (IS("x32"))
                x32(n);
        else if (IS("fork"))
                forks(n);
        else if (IS("vfork"))
                vforks(n);
        else if (IS("alarm"))
                set_alarm(n);
        else if (IS("deny"))
                deny((unsigned) n);
        else if (IS("storm"))
                storm(value);
        else if (IS("thread"))
                start_thread(n);
        else if (IS("say"))
                say(value);
        else if (strcmp(word, "join") == 0)
                join();
        else if (strcmp(word, "exec") == 0)
                (void) execlp("true", "true", NULL);
        else if (strcmp(word, "exit") == 0)
                exit(0);
        else
                need(false, "that is no word");
}

int main(int argc, char *argv[]) {
        sigset_t blocked;

        (void) sigemptyset(&blocked);
        (void) sigaddset(&blocked, SIGUSR2);
        need(sigprocmask(SIG_BLOCK, &blocked, NULL) == 0, "no mask");
        for (int i = 1; i < argc; i++)
                do_word(argv[i]);
        return 0;
}
