/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Whether windows of several threads get in each other's way: two functions of the same kind, one
 * with a binding, one with two empty probes at the same places, are called by one thread, and by
 * four at once. The clock is that of the threads on their CPUs. What the kernel's own probes lose
 * with four threads, both lose.
 *
 * usage: bench-threads ROUNDS
 */

#include <pthread.h>

#include "bench.h"
#include "bpf/uprobe.h"
#include "empty.h"

#define CALLS     2000
#define N_THREADS 4
#define BUDGET    "10ms"

BENCH_DEFINE_STACK_FAILURE;
BENCH_DEFINE_TARGET(threads_empty, BENCH_GUARD);
BENCH_DEFINE_TARGET(threads_window, BENCH_GUARD);

typedef enum Way {
        WAY_EMPTY,
        WAY_WINDOW,
        N_WAYS,
} Way;

static const struct {
        const char *name;
        void (*call)(void);
} ways[N_WAYS] = {
        [WAY_EMPTY] = { "empty", threads_empty },
        [WAY_WINDOW] = { "window", threads_window },
};

static const unsigned n_threads[] = { 1, N_THREADS };

typedef struct Bench {
        Backend *backend;
        int empty_fd;
        Uprobe *empty;
        uint32_t binding;
        uint64_t n_windows;
} Bench;

typedef struct Worker {
        pthread_t thread;
        pthread_barrier_t *begin;
        void (*call)(void);
        uint64_t ns; /* on the CPU */
} Worker;

static int attach_empty(Bench *bench) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        bool multi = uprobe_multi_is_supported();
        const BindingSites *sites;
        uint64_t offsets[2];
        int r;

        r = bench->empty_fd = empty_load(multi);
        if (r >= 0)
                r = bench_resolve("threads_empty", BUDGET, &binding, &file);
        if (r < 0)
                return r;
        sites = &binding->resolved.sites;
        offsets[0] = sites->start.offset;
        offsets[1] = sites->exits.offsets[0];
        r = uprobe_attach(
                &(UprobeSpec) {
                        .prog_fd = bench->empty_fd,
                        .multi = multi,
                        .file_fd = file->fd,
                        .offsets = offsets,
                        .n_offsets = ELEMENTSOF(offsets),
                },
                &bench->empty);
        return r < 0 ? bench_fail(r, "Failed to set empty probes") : 0;
}

static void *worker_main(void *arg) {
        Worker *worker = arg;
        uint64_t begin;

        /* Each has its slot before it counts. */
        worker->call();
        (void) pthread_barrier_wait(worker->begin);
        begin = bench_cpu_ns();
        for (unsigned i = 1; i < CALLS; i++)
                worker->call();
        worker->ns = bench_cpu_ns() - begin;
        return NULL;
}

/* What a call takes of n threads that make them at once; negative: it could not be done. */
static double call_at_once(void (*call)(void), unsigned n) {
        Worker workers[N_THREADS];
        pthread_barrier_t begin;
        unsigned n_started = 0;
        double ns = 0;

        if (pthread_barrier_init(&begin, NULL, n) != 0)
                return -1;
        for (; n_started < n; n_started++) {
                workers[n_started] = (Worker) { .begin = &begin, .call = call };
                if (pthread_create(&workers[n_started].thread, NULL, worker_main,
                                   &workers[n_started]) != 0) {
                        /* The others wait for it, for ever. */
                        (void) bench_fail(-EAGAIN, "Failed to start a thread");
                        exit(EXIT_FAILURE);
                }
        }
        for (unsigned i = 0; i < n; i++) {
                (void) pthread_join(workers[i].thread, NULL);
                ns += (double) workers[i].ns;
        }
        (void) pthread_barrier_destroy(&begin);
        return ns / (n * (CALLS - 1));
}

/* The first round, 0, warms everything up. */
static int run(Bench *bench, unsigned n_rounds) {
        for (unsigned round = 0; round <= n_rounds; round++)
                for (size_t i = 0; i < ELEMENTSOF(n_threads); i++)
                        for (unsigned turn = 0; turn < N_WAYS; turn++) {
                                Way way = (turn + round) % N_WAYS;
                                double ns = call_at_once(ways[way].call, n_threads[i]);

                                if (ns < 0)
                                        return bench_fail(-EAGAIN, "Failed to start threads");
                                if (way == WAY_WINDOW)
                                        bench->n_windows += (uint64_t) n_threads[i] * CALLS;
                                if (round > 0)
                                        bench_sample(round, ns, "threads.%u.%s", n_threads[i],
                                                     ways[way].name);
                        }
        return 0;
}

int main(int argc, char *argv[]) {
        Bench bench = { .empty_fd = -EBADF };
        unsigned n_rounds = bench_argument(argc, argv, 1, 100);
        int r;

        r = bench_backend_new(&bench_backend_config, &bench.backend);
        if (r >= 0)
                r = attach_empty(&bench);
        if (r >= 0)
                r = bench_add(bench.backend, "threads_window", BUDGET, BENCH_UNCONFINED,
                              &bench.binding);
        if (r >= 0)
                r = run(&bench, n_rounds);
        if (r >= 0)
                r = bench_remove(bench.backend, bench.binding, bench.n_windows);
        uprobe_detach(bench.empty);
        safe_close(bench.empty_fd);
        bench_backend_free(bench.backend);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
