/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Violations as the kernel's monitor says them, at a rate, on a machine that has no such monitor:
 * the tests' stand-in of it, whose events are uprobe events on functions of this program.
 *
 * usage: monitor-events world COMMAND [ARGUMENT...]   runs a command where there is the stand-in
 *        monitor-events raise RATE N          N violations, RATE a second; prints the real rate
 *        monitor-events signal RATE N ROUND   the same, and how long the signal of each takes
 */

#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include "bench.h"
#include "signals.h"
#include "test.h"
#include "tracefs.h"

#define THRESHOLD UINT64_C(5000000) /* of the only binding */

typedef struct Source {
        unsigned rate;
        unsigned n;
        unsigned round;
        pthread_t thread;
        uint64_t begin_ns;
        uint64_t end_ns;
} Source;

static void *raise_all(void *userdata) {
        Source *source = userdata;
        int id = (int) gettid();

        raise_on_cpu(0);
        source->begin_ns = bench_now_ns();
        for (unsigned i = 0; i < source->n; i++) {
                uint64_t ns = source->begin_ns + i * UINT64_C(1000000000) / source->rate;
                struct timespec ts = { (time_t) (ns / 1000000000), (long) (ns % 1000000000) };

                if (ns > bench_now_ns())
                        (void) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
                raise_error_env(id, "sleeping", "budget_exceeded");
                raise_detail(id, THRESHOLD, 1000000, 0, THRESHOLD);
        }
        source->end_ns = bench_now_ns();
        return NULL;
}

static int start(void *userdata) {
        Source *source = userdata;

        return -pthread_create(&source->thread, NULL, raise_all, source);
}

static void on_violation(uint64_t ns, unsigned i, void *userdata) {
        const Source *source = userdata;

        bench_sample(source->round, (double) ns / 1000, "monitor.signal.%u", source->rate);
}

static int run_signal(Source *source) {
        sd_bus *bus = NULL;
        int r;

        r = signals_open(&bus);
        if (r >= 0)
                r = signals_receive(bus, source->n, start, on_violation, source);
        if (r >= 0)
                (void) pthread_join(source->thread, NULL);
        sd_bus_flush_close_unref(bus);
        return r;
}

static int run_raise(Source *source) {
        (void) raise_all(source);
        (void) printf("%.0f\n", source->n * 1e9 / (double) (source->end_ns - source->begin_ns));
        return 0;
}

static int run_world(char *command[]) {
        int status, r;
        Tracefs t;
        pid_t pid;

        assert_ok(tracefs_setup_namespace(NULL));
        tracefs_start(&t, "v3");
        r = posix_spawnp(&pid, command[0], NULL, NULL, command, environ);
        if (r == 0)
                assert_int_equal(waitpid(pid, &status, 0), pid);
        tracefs_finish(&t);
        assert_ok(tracefs_teardown_namespace(NULL));
        if (r != 0)
                return bench_fail(-r, "Failed to run %s", command[0]);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static Source read_source(int argc, char *argv[]) {
        return (Source) {
                .rate = bench_argument(argc, argv, 2, 1),
                .n = bench_argument(argc, argv, 3, 1),
                .round = bench_argument(argc, argv, 4, 1),
        };
}

int main(int argc, char *argv[]) {
        Source source;
        int r = -EINVAL;

        if (argc > 2 && streq(argv[1], "world"))
                return run_world(argv + 2) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        source = read_source(argc, argv);
        if (argc > 3 && streq(argv[1], "raise"))
                r = run_raise(&source);
        else if (argc > 4 && streq(argv[1], "signal"))
                r = run_signal(&source);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
