/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a measured system call costs: the one that is measured, the same one in other units, and all
 * others; and for comparison a window of a function that makes the call, and one between the events
 * of the kernel at its begin and end.
 *
 * In each round each way is set up, measured and taken down, and the next round begins with another
 * one: what others pay is only seen against the time when nobody measures any call.
 *
 * usage: bench-call ROUNDS
 */

#include <sys/syscall.h>

#include "bench.h"

#define CALLS   2000
#define BATCHES 5 /* and one before, in which the CPU gets used to it */

/* getppid(), in a function that begins with a push. */
BENCH_DEFINE_TARGET(make_call, "push %rbp\nmov $110, %eax\nsyscall\npop %rbp");

typedef enum Way {
        WAY_BARE,
        WAY_OTHER,     /* another call is measured */
        WAY_ELSEWHERE, /* this one is, in another unit */
        WAY_WINDOW,
        WAY_FUNCTION,
        WAY_OTHER_EVENTS, /* the same three, by events */
        WAY_EVENTS_ELSEWHERE,
        WAY_EVENTS,
        N_WAYS,
} Way;

static const char *const way_names[] = {
        [WAY_BARE] = "bare",
        [WAY_OTHER] = "other",
        [WAY_ELSEWHERE] = "elsewhere",
        [WAY_WINDOW] = "window",
        [WAY_FUNCTION] = "function",
        [WAY_OTHER_EVENTS] = "other-events",
        [WAY_EVENTS_ELSEWHERE] = "events-elsewhere",
        [WAY_EVENTS] = "events",
};

typedef struct Bench {
        Backend *backend;
        BenchCgroup cgroups[2]; /* ours, and another one */
} Bench;

static int begin(const Bench *bench, Way way, uint32_t *ret) {
        switch (way) {
        case WAY_OTHER:
                return bench_add_call(bench->backend, "fremovexattr", "10ms", bench->cgroups[0],
                                      ret);
        case WAY_ELSEWHERE:
                return bench_add_call(bench->backend, "getppid", "10ms", bench->cgroups[1], ret);
        case WAY_WINDOW:
                return bench_add_call(bench->backend, "getppid", "10ms", bench->cgroups[0], ret);
        case WAY_FUNCTION:
                return bench_add(bench->backend, "make_call", "10ms", bench->cgroups[0], ret);
        case WAY_OTHER_EVENTS:
                return bench_add_events(bench->backend, "fremovexattr", "10ms", bench->cgroups[0],
                                        ret);
        case WAY_EVENTS_ELSEWHERE:
                return bench_add_events(bench->backend, "getppid", "10ms", bench->cgroups[1], ret);
        case WAY_EVENTS:
                return bench_add_events(bench->backend, "getppid", "10ms", bench->cgroups[0], ret);
        default:
                return 0;
        }
}

static void drop_report(const Report *report, void *userdata) {
}

/* All calls must have been seen, and no others. */
static int end(const Bench *bench, Way way, uint32_t index) {
        int r;

        if (way == WAY_BARE)
                return 0;
        r = bench_remove(bench->backend, index,
                         way == WAY_WINDOW || way == WAY_FUNCTION || way == WAY_EVENTS
                                 ? (BATCHES + 1) * CALLS
                                 : 0);
        /* Its place is free when it has nothing more to report. */
        if (r >= 0)
                r = bench->backend->ops->flush(bench->backend, drop_report, NULL);
        /* While probes leave the kernel, all else takes longer. */
        while (bench->backend->ops->is_removing(bench->backend))
                (void) usleep(1000);
        return r;
}

static double call_ns(void) {
        uint64_t begin_ns = bench_cpu_ns();

        for (unsigned i = 0; i < CALLS; i++)
                make_call();
        return (double) (bench_cpu_ns() - begin_ns) / CALLS;
}

static int measure(const Bench *bench, Way way, unsigned round) {
        uint32_t index = 0;
        int r;

        r = begin(bench, way, &index);
        if (r < 0)
                return r;
        for (unsigned i = 0; i <= BATCHES; i++) {
                double ns = call_ns();

                /* The first round, 0, warms everything up. */
                if (round > 0 && i > 0)
                        bench_sample(round, ns, "call.%s", way_names[way]);
        }
        return end(bench, way, index);
}

int main(int argc, char *argv[]) {
        unsigned n_rounds = bench_argument(argc, argv, 1, 100);
        Bench bench = {};
        int r;

        r = bench_pin();
        if (r >= 0)
                r = bench_cgroups(ELEMENTSOF(bench.cgroups), bench.cgroups);
        if (r >= 0)
                r = bench_backend_new(&bench_backend_config, &bench.backend);
        for (unsigned round = 0; round <= n_rounds && r >= 0; round++)
                for (unsigned turn = 0; turn < N_WAYS && r >= 0; turn++)
                        r = measure(&bench, (turn + round) % N_WAYS, round);
        bench_backend_free(bench.backend);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
