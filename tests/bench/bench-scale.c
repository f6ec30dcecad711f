/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Whether a window gets dearer with the number of bindings: all on one site, each confined to
 * another cgroup, as the instances of a template are; or each on a site of its own. Only the first
 * binding is hit. How long it takes to add them is measured on the way, from the name of the
 * function to the probe that is set.
 *
 * The cgroups are those beside the one that this is run in: tools/bench makes them.
 *
 * usage: bench-scale ROUNDS
 */

#include "bench.h"

#define CALLS  500
#define SLICES 20 /* of so many calls each, in each step */

#define N_BINDINGS 100

static const size_t steps[] = { 1, 10, N_BINDINGS };

/* Nothing of them is single-stepped: that would hide all else. */
BENCH_DEFINE_STACK_FAILURE;
BENCH_DEFINE_TARGET(scale_one, BENCH_GUARD);

/* scale_own_0 to scale_own_99 */
__asm__(".text\n.altmacro\n"
        ".macro scale_target i\n"
        ".balign 64\n.type scale_own_\\i, @function\n"
        ".globl scale_own_\\i\nscale_own_\\i:\n.cfi_startproc\n" BENCH_GUARD "\n"
        "ret\n.cfi_endproc\n.size scale_own_\\i, .-scale_own_\\i\n"
        ".endm\n"
        ".set i, 0\n"
        ".rept 100\nscale_target %i\n.set i, i + 1\n.endr\n"
        ".noaltmacro\n");
void scale_own_0(void);

typedef enum Shape {
        SHAPE_ONE,
        SHAPE_OWN,
        N_SHAPES,
} Shape;

static const struct {
        const char *name;
        void (*call)(void);
} shapes[] = {
        [SHAPE_ONE] = { "one", scale_one },
        [SHAPE_OWN] = { "own", scale_own_0 },
};

typedef struct Bench {
        Backend *backend;
        BenchCgroup cgroups[N_BINDINGS];
        Shape shape;
        uint32_t bindings[N_BINDINGS];
        size_t n_bindings;
        uint64_t n_calls;
} Bench;

static int add_one(Bench *bench) {
        char function[32] = "scale_one";
        size_t i = bench->n_bindings;
        int r;

        if (bench->shape == SHAPE_OWN)
                (void) snprintf(function, sizeof(function), "scale_own_%zu", i);
        /* All are confined, so that the number of bindings is all that differs. */
        r = bench_add(bench->backend, function, "10ms",
                      bench->cgroups[bench->shape == SHAPE_ONE ? i : 0], &bench->bindings[i]);
        if (r >= 0)
                bench->n_bindings++;
        return r;
}

static double call_ns(Bench *bench) {
        uint64_t begin = bench_cpu_ns();

        for (unsigned i = 0; i < CALLS; i++)
                shapes[bench->shape].call();
        bench->n_calls += CALLS;
        return (double) (bench_cpu_ns() - begin) / CALLS;
}

static double memory_kb(void) {
        _cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");
        unsigned long size, resident;

        if (!f || fscanf(f, "%lu %lu", &size, &resident) != 2)
                return 0;
        return (double) resident * (double) sysconf(_SC_PAGESIZE) / 1024;
}

static int run_step(Bench *bench, unsigned round, size_t n, uint64_t *attach_ns) {
        const char *name = shapes[bench->shape].name;
        uint64_t begin = bench_now_ns();
        int r;

        while (bench->n_bindings < n) {
                r = add_one(bench);
                if (r < 0)
                        return r;
        }
        *attach_ns += bench_now_ns() - begin;
        bench_sample(round, (double) *attach_ns / 1e6, "%s.%zu.attach", name, n);
        bench_sample(round, memory_kb(), "%s.%zu.rss", name, n);

        (void) call_ns(bench);
        for (unsigned i = 0; i < SLICES; i++)
                bench_sample(round, call_ns(bench), "%s.%zu.window", name, n);
        return 0;
}

static int run_shape(Bench *bench, unsigned round) {
        uint64_t attach_ns = 0;
        int r = 0;

        bench->n_bindings = 0;
        bench->n_calls = 0;
        for (size_t i = 0; i < ELEMENTSOF(steps) && r >= 0; i++)
                r = run_step(bench, round, steps[i], &attach_ns);
        for (size_t i = 0; i < bench->n_bindings && r >= 0; i++)
                r = bench_remove(bench->backend, bench->bindings[i], i == 0 ? bench->n_calls : 0);
        return r;
}

/* With a back end of its own, which is free when all probes of the round are gone. */
static int run_round(Bench *bench, unsigned round) {
        int r;

        r = bench_backend_new(&bench_backend_config, &bench->backend);
        if (r < 0)
                return r;
        for (bench->shape = 0; bench->shape < N_SHAPES && r >= 0; bench->shape++)
                r = run_shape(bench, round);
        bench_backend_free(bench->backend);
        return r;
}

int main(int argc, char *argv[]) {
        unsigned n_rounds = bench_argument(argc, argv, 1, 3);
        Bench bench = {};
        int r;

        r = bench_pin();
        if (r >= 0)
                r = bench_cgroups(N_BINDINGS, bench.cgroups);
        for (unsigned round = 1; round <= n_rounds && r >= 0; round++)
                r = run_round(&bench, round);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
