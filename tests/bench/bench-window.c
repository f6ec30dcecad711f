/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a window costs the program that is measured, beside other probes at the same places: two
 * empty BPF programs, or what bpftrace makes of a script that measures the same.
 *
 * Each way has a function of its own, all alike, with its probes set throughout. They are called
 * in turns of a few milliseconds, so that what the machine does meanwhile falls on all of them,
 * and the clock is the thread's own time on the CPU. Ratios are to be formed within a round.
 *
 * usage: bench-window ROUNDS [bpftrace]
 */

#include "bench.h"
#include "bpf/uprobe.h"
#include "bpftrace.h"
#include "empty.h"

#define CALLS  500
#define BUDGET "10ms"

#define DEFINE_KIND(kind, begin)                                                                   \
        BENCH_DEFINE_TARGET(kind##_bare, begin);                                                   \
        BENCH_DEFINE_TARGET(kind##_empty, begin);                                                  \
        BENCH_DEFINE_TARGET(kind##_window, begin);                                                 \
        BENCH_DEFINE_TARGET(kind##_confined, begin);                                               \
        BENCH_DEFINE_TARGET(kind##_bpftrace, begin)

DEFINE_KIND(push, BENCH_PUSH);
DEFINE_KIND(endbr64, BENCH_ENDBR64);
DEFINE_KIND(guard, BENCH_GUARD);

BENCH_DEFINE_STACK_FAILURE;

typedef enum Way {
        WAY_BARE,
        WAY_EMPTY,
        WAY_WINDOW,
        WAY_CONFINED,
        WAY_BPFTRACE,
        N_WAYS,
} Way;

static const char *const way_names[] = {
        [WAY_BARE] = "bare",         [WAY_EMPTY] = "empty",       [WAY_WINDOW] = "window",
        [WAY_CONFINED] = "confined", [WAY_BPFTRACE] = "bpftrace",
};

#define KIND(kind)                                                                                 \
        {                                                                                          \
                #kind,                                                                             \
                {                                                                                  \
                        [WAY_BARE] = kind##_bare,                                                  \
                        [WAY_EMPTY] = kind##_empty,                                                \
                        [WAY_WINDOW] = kind##_window,                                              \
                        [WAY_CONFINED] = kind##_confined,                                          \
                        [WAY_BPFTRACE] = kind##_bpftrace,                                          \
                },                                                                                 \
        }

static const struct {
        const char *name;
        void (*call[N_WAYS])(void);
} kinds[] = { KIND(push), KIND(endbr64), KIND(guard) };

#define N_KINDS ELEMENTSOF(kinds)

typedef struct Bench {
        Backend *backend;
        BenchCgroup cgroup; /* that we are in */
        int empty_fd;
        Uprobe *empty[N_KINDS][2];
        uint32_t binding[N_KINDS][N_WAYS];
        Bpftrace *bpftrace; /* NULL: not compared with */
} Bench;

static int attach_empty(int prog_fd, bool multi, const char *function, Uprobe *probes[static 2]) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        UprobeSpec spec;
        int r;

        r = bench_resolve(function, BUDGET, &binding, &file);
        if (r < 0)
                return r;
        spec = (UprobeSpec) {
                .prog_fd = prog_fd,
                .multi = multi,
                .file_fd = file->fd,
                .offsets = &binding->resolved.sites.start.offset,
                .n_offsets = 1,
        };
        r = uprobe_attach(&spec, &probes[0]);
        if (r >= 0) {
                spec.is_return = true;
                r = uprobe_attach(&spec, &probes[1]);
        }
        if (r < 0)
                return bench_fail(r, "Failed to set an empty probe");
        return 0;
}

static int set_up_kind(Bench *bench, size_t kind, bool multi) {
        char function[32];
        int r;

        (void) snprintf(function, sizeof(function), "%s_empty", kinds[kind].name);
        r = attach_empty(bench->empty_fd, multi, function, bench->empty[kind]);
        for (Way way = WAY_WINDOW; way <= WAY_CONFINED && r >= 0; way++) {
                (void) snprintf(function, sizeof(function), "%s_%s", kinds[kind].name,
                                way_names[way]);
                r = bench_add(bench->backend, function, BUDGET,
                              way == WAY_CONFINED ? bench->cgroup : BENCH_UNCONFINED,
                              &bench->binding[kind][way]);
        }
        return r;
}

static int set_up(Bench *bench, bool bpftrace) {
        static const char *const functions[] = { "push_bpftrace", "endbr64_bpftrace",
                                                 "guard_bpftrace", NULL };
        bool multi = uprobe_multi_is_supported();
        int r;

        r = bench_pin();
        if (r >= 0)
                r = bench_cgroups(1, &bench->cgroup);
        if (r >= 0)
                r = bench_backend_new(&bench_backend_config, &bench->backend);
        if (r < 0)
                return r;
        r = bench->empty_fd = empty_load(multi);
        if (r < 0)
                return r;
        for (size_t kind = 0; kind < N_KINDS && r >= 0; kind++)
                r = set_up_kind(bench, kind, multi);
        if (r >= 0 && bpftrace)
                r = bpftrace_start(functions, &bench->bpftrace);
        return r;
}

static double call_ns(void (*call)(void)) {
        uint64_t begin = bench_cpu_ns();

        for (unsigned i = 0; i < CALLS; i++)
                call();
        return (double) (bench_cpu_ns() - begin) / CALLS;
}

static bool is_left_out(const Bench *bench, Way way) {
        return way == WAY_BPFTRACE && !bench->bpftrace;
}

static void run(const Bench *bench, unsigned n_rounds) {
        /* The first round, 0, warms everything up. */
        for (unsigned round = 0; round <= n_rounds; round++)
                for (size_t kind = 0; kind < N_KINDS; kind++)
                        for (unsigned turn = 0; turn < N_WAYS; turn++) {
                                Way way = (turn + round) % N_WAYS;
                                double ns;

                                if (is_left_out(bench, way))
                                        continue;
                                ns = call_ns(kinds[kind].call[way]);
                                if (round > 0)
                                        bench_sample(round, ns, "%s.%s", kinds[kind].name,
                                                     way_names[way]);
                        }
}

/* Takes all away, and checks that everybody has seen every call: else their price is not known. */
static int check(Bench *bench, uint64_t n_calls) {
        int r = 0;

        for (size_t kind = 0; kind < N_KINDS && r >= 0; kind++)
                for (Way way = WAY_WINDOW; way <= WAY_CONFINED && r >= 0; way++)
                        r = bench_remove(bench->backend, bench->binding[kind][way], n_calls);
        if (r >= 0 && bench->bpftrace)
                r = bpftrace_stop(bench->bpftrace, 3 * n_calls);
        return r;
}

static void tear_down(Bench *bench) {
        bpftrace_free(bench->bpftrace);
        for (size_t kind = 0; kind < N_KINDS; kind++) {
                uprobe_detach(bench->empty[kind][0]);
                uprobe_detach(bench->empty[kind][1]);
        }
        safe_close(bench->empty_fd);
        bench_backend_free(bench->backend);
}

int main(int argc, char *argv[]) {
        Bench bench = { .empty_fd = -EBADF };
        unsigned n_rounds = bench_argument(argc, argv, 1, 100);
        int r;

        r = set_up(&bench, argc > 2 && streq(argv[2], "bpftrace"));
        if (r >= 0) {
                run(&bench, n_rounds);
                r = check(&bench, (uint64_t) (n_rounds + 1) * CALLS);
        }
        tear_down(&bench);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
