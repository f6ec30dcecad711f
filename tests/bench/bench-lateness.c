/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * How long after its deadline a window is found to run over, as the report's own time stamp tells:
 * with the task asleep, waiting for its CPU, and running, for each way to find deadlines that this
 * kernel has. Each window lasts until well after its deadline, so a report that is made at the stop
 * shows.
 *
 * All is done by one thread on one CPU. To have it wait, it wakes a real-time thread on the same
 * CPU, which spins until the deadline has long passed.
 *
 * usage: bench-lateness ROUNDS WINDOWS-A-ROUND
 */

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include "bench.h"

#define OVER_NS 2000000U /* how long a window lasts over its budget, but for one that runs */

typedef enum Way {
        WAY_ASLEEP,
        WAY_WAITING,
        WAY_RUNNING, /* the deadline comes, but for one in forty, before a tick */
        WAY_LONG,    /* running too, and the deadline comes later */
        N_WAYS,
} Way;

static const char *const way_names[] = {
        [WAY_ASLEEP] = "asleep",
        [WAY_WAITING] = "waiting",
        [WAY_RUNNING] = "running",
        [WAY_LONG] = "long",
};

/* DeadlineMode=, best first. */
static const char *const modes[] = { "uprobe", "fentry", "switch-tick" };

typedef struct Bench {
        pthread_t rival;
        sem_t rival_begins;
        bool done;

        /* Of the turn that is measured. */
        const char *mode;
        Way way;
        uint64_t budget_ns;
        unsigned round;
        unsigned n_violations;
} Bench;

void lateness_window(Bench *bench);

static void nap(uint64_t ns) {
        struct timespec ts = { (time_t) (ns / 1000000000U), (long) (ns % 1000000000U) };

        while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
                ;
}

static void spin(uint64_t ns) {
        uint64_t end = bench_now_ns() + ns;

        while (bench_now_ns() < end)
                ;
}

/* The scheduler's tick, in ns: as often as the coarse clock steps. */
static uint64_t tick_ns(void) {
        struct timespec ts;

        (void) clock_getres(CLOCK_MONOTONIC_COARSE, &ts);
        return (uint64_t) ts.tv_nsec;
}

__attribute__((noinline)) void lateness_window(Bench *bench) {
        switch (bench->way) {
        case WAY_ASLEEP:
                nap(bench->budget_ns + OVER_NS);
                break;
        case WAY_WAITING:
                (void) sem_post(&bench->rival_begins);
                break;
        default:
                spin(bench->budget_ns + 2 * tick_ns());
                break;
        }
}

static void *rival_main(void *arg) {
        Bench *bench = arg;

        for (;;) {
                while (sem_wait(&bench->rival_begins) < 0)
                        ;
                if (__atomic_load_n(&bench->done, __ATOMIC_ACQUIRE))
                        return NULL;
                spin(bench->budget_ns + OVER_NS);
        }
}

static int rival_start(Bench *bench) {
        struct sched_param parameters = { .sched_priority = 1 };
        pthread_attr_t attributes;
        int r;

        (void) sem_init(&bench->rival_begins, 0, 0);
        r = pthread_attr_init(&attributes);
        if (r == 0) {
                r = pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
                if (r == 0)
                        r = pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
                if (r == 0)
                        r = pthread_attr_setschedparam(&attributes, &parameters);
                if (r == 0)
                        r = pthread_create(&bench->rival, &attributes, rival_main, bench);
                (void) pthread_attr_destroy(&attributes);
        }
        if (r != 0)
                return bench_fail(-r, "Failed to start a real-time thread");
        return 0;
}

static void rival_stop(Bench *bench) {
        __atomic_store_n(&bench->done, true, __ATOMIC_RELEASE);
        (void) sem_post(&bench->rival_begins);
        (void) pthread_join(bench->rival, NULL);
        (void) sem_destroy(&bench->rival_begins);
}

static void on_report(const Report *report, void *userdata) {
        Bench *bench = userdata;

        if (report->type != REPORT_VIOLATION)
                return;
        bench->n_violations++;
        bench_sample(bench->round, (double) report->late_ns / 1000, "%s.%s", bench->mode,
                     way_names[bench->way]);
}

static uint64_t way_budget_ns(Way way) {
        switch (way) {
        case WAY_RUNNING:
                return tick_ns() / 40;
        case WAY_LONG:
                return tick_ns() * 3 / 2;
        default:
                return 1000000;
        }
}

static int run_turn(Bench *bench, Backend *backend, uint32_t binding, unsigned n_windows) {
        uint64_t budgets_ns[TLOB_N_BUDGETS] = {
                way_budget_ns(bench->way), BUDGET_NONE, BUDGET_NONE, BUDGET_NONE, BUDGET_NONE,
        };
        int r;

        r = backend->ops->set_budget(backend, binding, budgets_ns);
        if (r < 0)
                return bench_fail(r, "Failed to set a budget");
        bench->budget_ns = budgets_ns[TLOB_BUDGET_TOTAL];
        bench->n_violations = 0;
        for (unsigned i = 0; i < n_windows; i++) {
                /* So that windows begin at any time of a tick. */
                nap((uint64_t) rand() % tick_ns());
                lateness_window(bench);
        }
        r = backend->ops->flush(backend, on_report, bench);
        if (r < 0)
                return bench_fail(r, "Failed to read reports");
        if (bench->n_violations != n_windows)
                return bench_fail(-EBADMSG, "%u violations were reported of %u windows",
                                  bench->n_violations, n_windows);
        return 0;
}

/* Returns 0 if this version or this kernel does not have that mode. */
static int backend_for_mode(const char *mode, Backend **ret) {
        _cleanup_(bench_backend_freep) Backend *backend = NULL;
        BackendConfig backend_config = bench_backend_config;
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_free_ char *error = NULL;
        int r;

        r = config_new(&config);
        if (r < 0)
                return bench_fail(r, "Failed to make a configuration");
        if (config_set_key(config, "DeadlineMode", mode, &error) < 0)
                return 0;
        backend_config.deadline_mode = config->deadline_mode;
        r = bench_backend_new(&backend_config, &backend);
        if (r < 0)
                return r;
        if (!streq(backend->ops->deadline_mode(backend), mode))
                return 0;
        *ret = TAKE_PTR(backend);
        return 1;
}

static int run_mode(Bench *bench, const char *mode, unsigned n_rounds, unsigned n_windows) {
        _cleanup_(bench_backend_freep) Backend *backend = NULL;
        uint32_t index;
        int r;

        r = backend_for_mode(mode, &backend);
        if (r <= 0)
                return r;
        r = bench_add(backend, "lateness_window", "1h", BENCH_UNCONFINED, &index);
        bench->mode = mode;
        for (bench->round = 1; bench->round <= n_rounds; bench->round++)
                for (Way way = 0; way < N_WAYS && r >= 0; way++) {
                        bench->way = way;
                        r = run_turn(bench, backend, index, n_windows);
                }
        return r;
}

int main(int argc, char *argv[]) {
        unsigned n_rounds = bench_argument(argc, argv, 1, 5);
        unsigned n_windows = bench_argument(argc, argv, 2, 20);
        Bench bench = {};
        int r;

        r = bench_pin();
        if (r >= 0)
                r = rival_start(&bench);
        if (r < 0)
                return EXIT_FAILURE;

        bench_sample(0, (double) tick_ns() / 1000, "tick");
        for (size_t i = 0; i < ELEMENTSOF(modes) && r >= 0; i++)
                r = run_mode(&bench, modes[i], n_rounds, n_windows);
        rival_stop(&bench);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
