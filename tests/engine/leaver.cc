/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program whose functions are left in every way that there is, to be measured while it does so.
 * It computes something on the way, and prints "result N" at its end: what it prints with and
 * without probes must be the same, and so must be that it ends well.
 *
 * usage: leaver exception|rethrow|longjmp|pthread_exit|cancel|coroutine|coroutine-above|
 *               coroutine-above-unguarded|coroutine-above-thread|sigaltstack|sigaltstack-above|
 *               recursion|returns|switch|tail|cold|pointer|loop
 */

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define EXPORT extern "C" __attribute__((noinline, used))
#define N      100

static volatile long sink;
static long result;

/* What must happen on the way out of a frame. */
struct Guard {
        ~Guard() {
                result += 1;
        }
};

EXPORT long leave_by_exception(long n) {
        Guard guard;

        sink = n;
        if (n % 2)
                throw static_cast<int>(n);
        return n;
}

static void exception() {
        for (long i = 0; i < N; i++)
                try {
                        result += leave_by_exception(i);
                } catch (int n) {
                        result += 1000;
                }
}

/* The exception is caught in it, and goes on from it. */
EXPORT long leave_by_rethrow(long n) {
        try {
                return leave_by_exception(n);
        } catch (int) {
                if (n % 3 == 0)
                        throw;
                return 7;
        }
}

static void rethrow() {
        for (long i = 0; i < N; i++)
                try {
                        result += leave_by_rethrow(i);
                } catch (int n) {
                        result += 1000;
                }
}

static jmp_buf away;

EXPORT long leave_by_longjmp(long n) {
        sink = n;
        if (n % 2)
                longjmp(away, 1);
        return n + sink;
}

static void jump() {
        for (volatile long i = 0; i < N; i++)
                if (setjmp(away) == 0)
                        result += leave_by_longjmp(i);
                else
                        result += 1000;
}

EXPORT long leave_by_pthread_exit(long n) {
        Guard guard;

        sink = n;
        if (n % 2)
                pthread_exit(nullptr);
        return n + sink;
}

static void *exiting(void *p) {
        Guard guard;

        result += leave_by_pthread_exit(reinterpret_cast<intptr_t>(p));
        return nullptr;
}

static void thread_exit() {
        for (intptr_t i = 0; i < N; i++) {
                pthread_t thread;

                if (pthread_create(&thread, nullptr, exiting, reinterpret_cast<void *>(i)) != 0)
                        abort();
                pthread_join(thread, nullptr);
        }
}

EXPORT long leave_by_cancel(long n) {
        Guard guard;

        sink = n;
        pause();
        return n;
}

static void *cancelled(void *) {
        result += leave_by_cancel(1);
        return nullptr;
}

static void cancel() {
        pthread_t thread;

        if (pthread_create(&thread, nullptr, cancelled, nullptr) != 0)
                abort();
        usleep(20000);
        pthread_cancel(thread);
        pthread_join(thread, nullptr);
}

/* Two coroutines that call the same function, and change places in it. */
static ucontext_t main_context, contexts[2];
static char stacks[2][65536];

EXPORT long leave_in_coroutine(long n) {
        sink = n;
        swapcontext(&contexts[n % 2], &contexts[(n + 1) % 2]);
        return n + sink;
}

static void even_body() {
        for (long i = 0; i < N; i++)
                result += leave_in_coroutine(2 * i);
}

static void odd_body() {
        for (long i = 0; i < N; i++)
                result += 3 * leave_in_coroutine(2 * i + 1);
}

static void coroutine() {
        static void (*const bodies[2])() = { even_body, odd_body };

        for (int i = 0; i < 2; i++) {
                getcontext(&contexts[i]);
                contexts[i].uc_stack.ss_sp = stacks[i];
                contexts[i].uc_stack.ss_size = sizeof(stacks[i]);
                contexts[i].uc_link = &main_context;
                makecontext(&contexts[i], bodies[i], 0);
        }
        swapcontext(&main_context, &contexts[0]);
}

/*
 * A coroutine that lets another one run, whose stack lies above its own: both as libraries make
 * them, close below the thread's own data: with a page between them that cannot be touched, or
 * without.
 */
EXPORT long leave_for_above(long n) {
        sink = n;
        swapcontext(&contexts[0], &contexts[1]);
        return n + sink;
}

static void below_body() {
        for (long i = 0; i < N; i++)
                result += leave_for_above(i);
}

static void above_body() {
        for (;;) {
                usleep(100);
                swapcontext(&contexts[1], &contexts[0]);
        }
}

static bool guarded = true;

static void *coroutine_above(void *) {
        static void (*const bodies[2])() = { below_body, above_body };
        const size_t size = 65536;
        void *area = mmap(nullptr, 4 * size, guarded ? PROT_NONE : PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        for (int i = 0; i < 2; i++) {
                char *stack = static_cast<char *>(area) + (2 * i + 1) * size;

                if (area == MAP_FAILED || mprotect(stack, size, PROT_READ | PROT_WRITE) < 0)
                        abort();
                getcontext(&contexts[i]);
                contexts[i].uc_stack.ss_sp = stack;
                contexts[i].uc_stack.ss_size = size;
                contexts[i].uc_link = &main_context;
                makecontext(&contexts[i], bodies[i], 0);
        }
        swapcontext(&main_context, &contexts[0]);
        return nullptr;
}

static void main_coroutine_above() {
        coroutine_above(nullptr);
}

static void unguarded_coroutine_above() {
        guarded = false;
        coroutine_above(nullptr);
}

/* In a thread with a stack of 64 kB, so that the coroutines' are close to it. */
static void thread_coroutine_above() {
        pthread_attr_t attr;
        pthread_t thread;

        pthread_attr_init(&attr);
        pthread_attr_setstacksize(&attr, 65536);
        if (pthread_create(&thread, &attr, coroutine_above, nullptr) != 0)
                abort();
        pthread_join(thread, nullptr);
}

EXPORT long leave_on_any_stack(long n) {
        sink = n;
        if (n > 0)
                raise(SIGUSR1);
        return n + 1;
}

static void handler(int) {
        result += leave_on_any_stack(0);
}

static void handle_on(char *memory, size_t size) {
        struct sigaction action = {};
        stack_t stack = {};

        stack.ss_sp = memory;
        stack.ss_size = size;
        sigaltstack(&stack, nullptr);
        action.sa_handler = handler;
        action.sa_flags = SA_ONSTACK;
        sigaction(SIGUSR1, &action, nullptr);
        for (long i = 0; i < N; i++)
                result += leave_on_any_stack(i);
}

static void other_stack() {
        static char memory[65536];

        handle_on(memory, sizeof(memory));
}

/* The thread's stack comes first, and that of its handlers lies above it. */
static struct {
        char of_thread[1 << 20];
        char of_handlers[65536];
} stack_memory __attribute__((aligned(4096)));

static void *handling(void *) {
        handle_on(stack_memory.of_handlers, sizeof(stack_memory.of_handlers));
        return nullptr;
}

static void stack_above() {
        pthread_attr_t attributes;
        pthread_t thread;

        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, stack_memory.of_thread, sizeof(stack_memory.of_thread));
        if (pthread_create(&thread, &attributes, handling, nullptr) != 0)
                abort();
        pthread_join(thread, nullptr);
}

EXPORT long leave_recursively(long n) {
        sink = n;
        if (n == 0)
                return 1;
        if (n % 3 == 0)
                return leave_recursively(n - 1) + leave_recursively(0) + sink;
        return leave_recursively(n - 1) ^ sink;
}

static void recursion() {
        for (long i = 0; i < N; i++)
                result += leave_recursively(i % 20);
}

EXPORT long leave_in_many_ways(long n) {
        if (n == 1)
                return 17;
        sink = n;
        if (n % 5 == 0) {
                for (long i = 0; i < n; i++)
                        sink = sink + i;
                return sink;
        }
        if (n % 7 == 0)
                return write(-1, nullptr, 0) + sink;
        return n;
}

static void returns() {
        for (long i = 0; i < N; i++)
                result += leave_in_many_ways(i);
}

/* One that compilers make a table of, with a jump by it. */
EXPORT long leave_by_switch(long n, long x) {
        switch (n) {
        case 0:
                return x * 3;
        case 1:
                return x ^ sink;
        case 2:
                sink = x;
                return x / 3;
        case 3:
                return x - sink;
        case 4:
                return x << 2;
        case 5:
                return write(-1, nullptr, 0);
        case 6:
                return x | 1;
        case 7:
                return ~x;
        default:
                return 99;
        }
}

static void by_switch() {
        for (long i = 0; i < N; i++)
                result += leave_by_switch(i % 10, i);
}

EXPORT long tail_other(long n) {
        sink = n;
        return n * 2;
}

EXPORT long leave_by_tail_call(long n) {
        sink = n;
        if (n % 2)
                return n;
        return tail_other(n + 1);
}

static void tail() {
        for (long i = 0; i < N; i++)
                result += leave_by_tail_call(i);
}

/* What is hardly ever run lies elsewhere: "leave_from_cold.cold". */
EXPORT __attribute__((cold)) long rare(long n) {
        sink = n;
        return n;
}

EXPORT long leave_from_cold(long n) {
        sink = n;
        if (__builtin_expect(n % 10 == 3, 0)) {
                long sum = rare(n) + rare(sink);

                if (sum > 50)
                        return rare(sum) * sum;
                sink = rare(sum);
        }
        return n + sink;
}

static void cold() {
        for (long i = 0; i < N; i++)
                result += leave_from_cold(i);
}

static long (*volatile pointer)(long) = tail_other;

EXPORT long leave_by_pointer(long n) {
        sink = n;
        return pointer(n);
}

static void by_pointer() {
        for (long i = 0; i < N; i++)
                result += leave_by_pointer(i);
}

/* Its first instruction is that of a loop. */
EXPORT long leave_a_loop(const char *s);
__asm__(".globl leave_a_loop\n"
        ".type leave_a_loop, %function\n"
        "leave_a_loop:\n"
        ".cfi_startproc\n"
#if defined(__aarch64__)
        "1:     ldrb w1, [x0, #1]!\n"
        "       cbnz w1, 1b\n"
#else
        "       endbr64\n"
        "1:     inc %rdi\n"
        "       cmpb $0, (%rdi)\n"
        "       jne 1b\n"
        "       mov %rdi, %rax\n"
#endif
        "       ret\n"
        ".cfi_endproc\n"
        ".size leave_a_loop, . - leave_a_loop\n");

static void loop() {
        static const char text[] = "a text of some length";

        for (long i = 0; i < N; i++)
                result += leave_a_loop(text) - reinterpret_cast<intptr_t>(text);
}

static const struct {
        const char *name;
        void (*run)();
} ways[] = {
        { "exception", exception },
        { "rethrow", rethrow },
        { "longjmp", jump },
        { "pthread_exit", thread_exit },
        { "cancel", cancel },
        { "coroutine", coroutine },
        { "coroutine-above", main_coroutine_above },
        { "coroutine-above-unguarded", unguarded_coroutine_above },
        { "coroutine-above-thread", thread_coroutine_above },
        { "sigaltstack", other_stack },
        { "sigaltstack-above", stack_above },
        { "recursion", recursion },
        { "returns", returns },
        { "switch", by_switch },
        { "tail", tail },
        { "cold", cold },
        { "pointer", by_pointer },
        { "loop", loop },
};

int main(int argc, char **argv) {
        for (const auto &way : ways)
                if (argc == 2 && strcmp(argv[1], way.name) == 0) {
                        way.run();
                        (void) printf("result %ld\n", result);
                        return 0;
                }
        return 2;
}
