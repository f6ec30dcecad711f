/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Whether the books balance under load: 200 threads, all inside a window of one binding for the
 * whole time, and each going through 500 a second of another, some of which run over their budget.
 * The threads count their own calls, and what the back end has counted is compared with that. For
 * the last seconds nobody reads the reports, so that some must be lost: every one of them has to
 * be counted.
 *
 * usage: bench-flood SECONDS
 */

#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "bench.h"

#define N_THREADS   200
#define PERIOD_NS   UINT64_C(20000000)
#define A_PERIOD    10  /* calls, of each thread */
#define ONE_IN      200 /* of the calls runs over */
#define OVER_NS     UINT64_C(2000000)
#define BUDGET      "1ms"
#define UNREAD_NS   UINT64_C(2000000000)
#define RING_BUFFER 65536

typedef struct Bench {
        Backend *backend;
        uint32_t outer;
        uint32_t inner;
        uint64_t begin_ns;
        uint64_t end_ns;
        uint64_t n_calls;
        uint64_t n_reports;
} Bench;

typedef struct Worker {
        const Bench *bench;
        pthread_t thread;
        unsigned number;
        uint64_t n_calls;
} Worker;

void flood_outer(Worker *worker);
void flood_inner(bool over);

static void sleep_until(uint64_t ns) {
        struct timespec ts = { (time_t) (ns / 1000000000U), (long) (ns % 1000000000U) };

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
}

__attribute__((noinline)) void flood_inner(bool over) {
        if (over)
                sleep_until(bench_now_ns() + OVER_NS);
}

/* Threads begin their periods at different times. */
__attribute__((noinline)) void flood_outer(Worker *worker) {
        uint64_t next = worker->bench->begin_ns + PERIOD_NS * worker->number / N_THREADS;

        for (; next < worker->bench->end_ns; next += PERIOD_NS) {
                sleep_until(next);
                for (unsigned i = 0; i < A_PERIOD; i++)
                        flood_inner((++worker->n_calls + worker->number) % ONE_IN == 0);
        }
}

static void *worker_main(void *arg) {
        flood_outer(arg);
        return NULL;
}

static void on_report(const Report *report, void *userdata) {
        Bench *bench = userdata;

        bench->n_reports++;
}

static int read_reports(Bench *bench) {
        const BackendOps *ops = bench->backend->ops;
        uint64_t until = bench->end_ns - UNREAD_NS;
        int r;

        while (bench_now_ns() < until) {
                struct pollfd fd = { .fd = ops->get_fd(bench->backend), .events = POLLIN };

                if (poll(&fd, 1, 100) <= 0)
                        continue;
                r = ops->dispatch(bench->backend, on_report, bench);
                if (r < 0)
                        return bench_fail(r, "Failed to read reports");
        }
        bench_sample(1, (double) ops->lost(bench->backend), "flood.lost.read");
        return 0;
}

static int run_workers(Bench *bench) {
        static Worker workers[N_THREADS];
        unsigned n;
        int r = 0;

        for (n = 0; n < N_THREADS; n++) {
                workers[n] = (Worker) { .bench = bench, .number = n };
                r = pthread_create(&workers[n].thread, NULL, worker_main, &workers[n]);
                if (r != 0)
                        break;
        }
        if (r != 0)
                r = bench_fail(-r, "Failed to start a thread");
        else
                r = read_reports(bench);
        for (unsigned i = 0; i < n; i++) {
                (void) pthread_join(workers[i].thread, NULL);
                bench->n_calls += workers[i].n_calls;
        }
        return r;
}

static uint64_t distance(uint64_t a, uint64_t b) {
        return a > b ? a - b : b - a;
}

static uint64_t count_ends(const Statistics *statistics) {
        const Counters *c = &statistics->counters;
        uint64_t n = c->in_budget + c->violated + c->over_limit + statistics->open;

        for (size_t i = 0; i < TLOB_N_ENDS; i++)
                n += c->ended[i];
        return n;
}

static void print_books(const Bench *bench, const Statistics *outer, const Statistics *inner) {
        const Counters *c = &inner->counters;
        uint64_t ends = count_ends(inner), missing;

        bench_sample(1, (double) bench->n_calls * 1e9 / (double) (bench->end_ns - bench->begin_ns),
                     "flood.rate");
        bench_sample(1, (double) c->starts, "flood.starts");
        bench_sample(1, (double) ends, "flood.ends");
        missing = distance(bench->n_calls, c->starts) + distance(c->starts, ends) +
                  distance(N_THREADS, outer->counters.starts) +
                  distance(N_THREADS, count_ends(outer));
        bench_sample(1, (double) missing, "flood.missing");
        bench_sample(1, (double) (c->over_limit + outer->counters.over_limit), "flood.over_limit");
        bench_sample(1, (double) c->violations, "flood.violations");
        bench_sample(1, (double) c->lost, "flood.lost");
        /* Each violation makes one report, and another when its window has ended. */
        bench_sample(1, (double) distance(c->violations + c->violated, bench->n_reports + c->lost),
                     "flood.uncounted");
}

static int set_up(Bench *bench, unsigned seconds) {
        BackendConfig config = bench_backend_config;
        int r;

        config.ring_buffer_size = RING_BUFFER;
        r = bench_backend_new(&config, &bench->backend);
        if (r >= 0)
                r = bench_add(bench->backend, "flood_outer", "infinity", BENCH_UNCONFINED,
                              &bench->outer);
        if (r >= 0)
                r = bench_add(bench->backend, "flood_inner", BUDGET, BENCH_UNCONFINED,
                              &bench->inner);
        bench->begin_ns = bench_now_ns() + PERIOD_NS;
        bench->end_ns = bench->begin_ns + seconds * UINT64_C(1000000000) + UNREAD_NS;
        return r;
}

static int run(Bench *bench) {
        const BackendOps *ops = bench->backend->ops;
        Statistics outer, inner;
        int r;

        r = run_workers(bench);
        if (r < 0)
                return r;
        r = ops->flush(bench->backend, on_report, bench);
        if (r >= 0)
                r = ops->statistics(bench->backend, bench->outer, &outer);
        if (r >= 0)
                r = ops->statistics(bench->backend, bench->inner, &inner);
        if (r < 0)
                return bench_fail(r, "Failed to read the books");
        print_books(bench, &outer, &inner);
        return 0;
}

int main(int argc, char *argv[]) {
        Bench bench = {};
        int r;

        r = set_up(&bench, bench_argument(argc, argv, 1, 5));
        if (r >= 0)
                r = run(&bench);
        bench_backend_free(bench.backend);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
