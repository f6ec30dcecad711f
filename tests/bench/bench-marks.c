/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The price of a window between two marks, which begin with "push": without probes, and with those
 * that whoever runs it has set on marks_kernel_begin and _end, marks_bpf_begin and _end. Prints ns
 * a window, "marks.WAY ROUND NS", by the CPU time of the thread.
 *
 * The kernel's monitor gives a slot back only after a grace period, and leaves out windows for want
 * of one: so windows come in small batches, with a pause after each.
 *
 * It needs no library but the C library: it is run in guests.
 *
 * usage: bench-marks ROUNDS
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"

#define WINDOWS  32 /* half of the monitor's slots */
#define PAUSE_NS 50000000

BENCH_DEFINE_TARGET(marks_none_begin, BENCH_PUSH);
BENCH_DEFINE_TARGET(marks_none_end, BENCH_PUSH);
BENCH_DEFINE_TARGET(marks_kernel_begin, BENCH_PUSH);
BENCH_DEFINE_TARGET(marks_kernel_end, BENCH_PUSH);
BENCH_DEFINE_TARGET(marks_bpf_begin, BENCH_PUSH);
BENCH_DEFINE_TARGET(marks_bpf_end, BENCH_PUSH);

static const struct {
        const char *name;
        void (*begin)(void);
        void (*end)(void);
} ways[] = {
        { "none", marks_none_begin, marks_none_end },
        { "kernel", marks_kernel_begin, marks_kernel_end },
        { "bpf", marks_bpf_begin, marks_bpf_end },
};

static uint64_t cpu_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}

static double window_ns(size_t way) {
        uint64_t begin = cpu_ns();

        for (unsigned i = 0; i < WINDOWS; i++) {
                ways[way].begin();
                ways[way].end();
        }
        return (double) (cpu_ns() - begin) / WINDOWS;
}

int main(int argc, char *argv[]) {
        const struct timespec pause = { .tv_nsec = PAUSE_NS };
        long n_rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;

        if (n_rounds <= 0) {
                (void) fprintf(stderr, "usage: bench-marks ROUNDS\n");
                return 2;
        }
        /* The first round, 0, warms everything up. */
        for (long round = 0; round <= n_rounds; round++)
                for (size_t turn = 0; turn < ELEMENTSOF(ways); turn++) {
                        size_t way = (turn + (size_t) round) % ELEMENTSOF(ways);
                        double ns = window_ns(way);

                        if (round > 0)
                                (void) printf("marks.%s %li %.0f\n", ways[way].name, round, ns);
                        (void) nanosleep(&pause, NULL);
                }
        return 0;
}
