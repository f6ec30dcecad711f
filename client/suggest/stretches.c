/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Two samples of a thread show the same call of a function if it is at the same place of the stack
 * in both, and all that is outside of it too. A call that is in one sample and not in the next has
 * ended in between: a function of which no call ever ends is a main loop, and nothing to be
 * measured.
 *
 * Among the others, those come first in which most time is spent, which are mostly the outermost:
 * what serves a request from its beginning to its end. One that also waits for work is the loop
 * around that, and is left out.
 */

#include "suggest/stretches.h"

/* What waits for work in all but this part of its time is the loop around it: 1 in 4. */
#define IDLE_PART 4

typedef struct Thread {
        pid_t tid;
        size_t n;
        StretchFrame frames[STRETCH_FRAMES_MAX];
} Thread;

struct Stretches {
        Thread **threads;
        size_t n_threads;
        Stretch *functions; /* by number */
        size_t n_functions;
        uint64_t spent_ns;
};

int stretches_new(Stretches **ret) {
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

Stretches *stretches_free(Stretches *stretches) {
        if (!stretches)
                return NULL;
        for (size_t i = 0; i < stretches->n_threads; i++)
                free(stretches->threads[i]);
        free(stretches->threads);
        free(stretches->functions);
        free(stretches);
        return NULL;
}

static Thread *find_thread(const Stretches *stretches, pid_t tid) {
        for (size_t i = 0; i < stretches->n_threads; i++)
                if (stretches->threads[i]->tid == tid)
                        return stretches->threads[i];
        return NULL;
}

static int get_thread(Stretches *stretches, pid_t tid, Thread **ret) {
        Thread *thread = find_thread(stretches, tid), **threads;

        if (!thread) {
                threads = reallocarray(stretches->threads, stretches->n_threads + 1,
                                       sizeof(*threads));
                if (!threads)
                        return -ENOMEM;
                stretches->threads = threads;
                thread = calloc(1, sizeof(*thread));
                if (!thread)
                        return -ENOMEM;
                thread->tid = tid;
                threads[stretches->n_threads++] = thread;
        }
        *ret = thread;
        return 0;
}

static int know_functions(Stretches *stretches, const StretchFrame *frames, size_t n) {
        size_t needed = stretches->n_functions;
        Stretch *functions;

        for (size_t i = 0; i < n; i++)
                if (frames[i].function >= needed)
                        needed = (size_t) frames[i].function + 1;
        if (needed == stretches->n_functions)
                return 0;
        functions = reallocarray(stretches->functions, needed, sizeof(*functions));
        if (!functions)
                return -ENOMEM;
        stretches->functions = functions;
        for (size_t i = stretches->n_functions; i < needed; i++)
                functions[i] = (Stretch) { .function = (uint32_t) i };
        stretches->n_functions = needed;
        return 0;
}

/* Of a function that calls itself, the outermost call. */
static bool is_inner(const StretchFrame *frames, size_t i) {
        for (size_t j = 0; j < i; j++)
                if (frames[j].function == frames[i].function)
                        return true;
        return false;
}

static void spend(Stretches *stretches, const StretchStack *stack, uint64_t ns) {
        if (!stack->is_idle)
                stretches->spent_ns += ns;
        for (size_t i = 0; i < stack->n; i++) {
                Stretch *function = &stretches->functions[stack->frames[i].function];

                if (is_inner(stack->frames, i))
                        continue;
                function->n_seen++;
                if (stack->is_idle)
                        function->idle_ns += ns;
                else
                        function->spent_ns += ns;
        }
}

/* Those that are not where they were have ended. */
static void end_calls(Stretches *stretches, const Thread *thread, const StretchFrame *frames,
                      size_t n) {
        size_t same = 0;

        while (same < n && same < thread->n &&
               thread->frames[same].function == frames[same].function &&
               thread->frames[same].sp == frames[same].sp)
                same++;
        for (size_t i = same; i < thread->n; i++)
                if (!is_inner(thread->frames, i))
                        stretches->functions[thread->frames[i].function].n_ended++;
}

/* What is not known in full says nothing of what has ended. */
static int follow(Stretches *stretches, const StretchStack *stack) {
        Thread *thread;
        int r;

        if (!stack->is_complete)
                return 0;
        r = get_thread(stretches, stack->tid, &thread);
        if (r < 0)
                return r;
        end_calls(stretches, thread, stack->frames, stack->n);
        memcpy(thread->frames, stack->frames, stack->n * sizeof(*stack->frames));
        thread->n = stack->n;
        return 0;
}

int stretches_add(Stretches *stretches, const StretchStack *stack, uint64_t weight_ns) {
        int r;

        if (stack->n > STRETCH_FRAMES_MAX)
                return -E2BIG;
        r = know_functions(stretches, stack->frames, stack->n);
        if (r >= 0)
                r = follow(stretches, stack);
        if (r < 0)
                return r;
        spend(stretches, stack, weight_ns);
        return 0;
}

uint64_t stretches_get_spent_in(const Stretches *stretches, uint32_t function) {
        return function < stretches->n_functions ? stretches->functions[function].spent_ns : 0;
}

uint64_t stretches_get_spent(const Stretches *stretches) {
        return stretches->spent_ns;
}

static bool is_candidate(const Stretches *stretches, const Stretch *function) {
        return function->n_ended > 0 && function->spent_ns > 0 &&
               function->spent_ns >= stretches->spent_ns / STRETCHES_SMALL_PART &&
               function->spent_ns > (function->spent_ns + function->idle_ns) / IDLE_PART;
}

/* At equal times, the one of which fewer calls have ended contains the other. */
static int compare(const void *a, const void *b) {
        const Stretch *x = a, *y = b;

        if (x->spent_ns != y->spent_ns)
                return x->spent_ns < y->spent_ns ? 1 : -1;
        if (x->n_ended != y->n_ended)
                return x->n_ended > y->n_ended ? 1 : -1;
        return (x->function > y->function) - (x->function < y->function);
}

size_t stretches_rank(const Stretches *stretches, Stretch *ret, size_t n) {
        _cleanup_free_ Stretch *all = calloc(stretches->n_functions + 1, sizeof(*all));
        size_t n_all = 0;

        for (size_t i = 0; all && i < stretches->n_functions; i++)
                if (is_candidate(stretches, &stretches->functions[i]))
                        all[n_all++] = stretches->functions[i];
        if (n_all > 0)
                qsort(all, n_all, sizeof(*all), compare);
        if (n_all > n)
                n_all = n;
        if (n_all > 0)
                memcpy(ret, all, n_all * sizeof(*ret));
        return n_all;
}
