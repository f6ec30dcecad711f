/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program that unwinds its stack by functions of its own: it is linked statically, so that no
 * probe in a library sees it. Every other call of each function is left by no way out of the
 * function; what follows calls deeper than that was, and sleeps there, longer than the budget that
 * the test gives. Or it calls the same function again, from deeper.
 */

#include <csetjmp>
#include <ctime>

#define EXPORT extern "C" __attribute__((noinline, noclone, used))

static const int CALLS = 6;
static const long IDLE_NS = 450000000;

static jmp_buf away;
static volatile int sink;

EXPORT int unseen_throw(int n) {
        sink = sink + 1;
        if (n % 2)
                throw n;
        return n;
}

EXPORT int unseen_jump(int n) {
        sink = sink + 1;
        if (n % 2)
                longjmp(away, 1);
        return n;
}

EXPORT int unseen_again(int n) {
        sink = sink + 1;
        if (n % 2)
                throw n;
        return n;
}

EXPORT int unseen_deeper(int n) {
        volatile char some_of_the_stack[256];

        for (volatile char &c : some_of_the_stack)
                c = 1;
        return unseen_again(n) + some_of_the_stack[0];
}

EXPORT void unseen_idle(int depth) {
        const struct timespec time = { 0, IDLE_NS };
        volatile char some_of_the_stack[256];

        some_of_the_stack[0] = 1;
        if (depth > 0)
                unseen_idle(depth - 1);
        else
                nanosleep(&time, nullptr);
        sink = sink + some_of_the_stack[0];
}

int main() {
        for (volatile int i = 0; i < CALLS; i = i + 1) {
                try {
                        unseen_throw(i);
                } catch (int) {
                }
                try {
                        unseen_again(1);
                } catch (int) {
                }
                unseen_deeper(0);
                unseen_idle(3);
                if (!setjmp(away))
                        unseen_jump(i);
                unseen_idle(3);
        }
        return 0;
}
