/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * How long it takes from a deadline to a client of the bus that is told of it. The windows, ten a
 * second, are in a thread of this program, on the function signal_window: whoever runs it has
 * given that a budget of 5 ms (bench-signal).
 *
 * usage: signal-client ROUNDS WINDOWS-A-ROUND
 */

#include <inttypes.h>
#include <pthread.h>
#include <time.h>

#include "bench.h"
#include "signals.h"

#define INTERVAL_NS UINT64_C(100000000)
#define WINDOW_NS   UINT64_C(10000000)

typedef struct Client {
        unsigned n_windows;
        unsigned n_a_round;
        pthread_t thread;
} Client;

void signal_window(void);

static void sleep_until(uint64_t ns) {
        struct timespec ts = { (time_t) (ns / 1000000000U), (long) (ns % 1000000000U) };

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
                ;
}

__attribute__((noinline)) void signal_window(void) {
        sleep_until(bench_now_ns() + WINDOW_NS);
}

static void *run_windows(void *arg) {
        const Client *client = arg;
        uint64_t begin = bench_now_ns();

        for (unsigned i = 0; i < client->n_windows; i++) {
                sleep_until(begin + i * INTERVAL_NS);
                signal_window();
        }
        return NULL;
}

static int start_windows(void *userdata) {
        Client *client = userdata;

        return -pthread_create(&client->thread, NULL, run_windows, client);
}

static void on_violation(uint64_t ns, unsigned i, void *userdata) {
        const Client *client = userdata;

        bench_sample(1 + i / client->n_a_round, (double) (int64_t) ns / 1000, "signal");
}

int main(int argc, char *argv[]) {
        Client client = { .n_a_round = bench_argument(argc, argv, 2, 50) };
        sd_bus *bus = NULL;
        int r;

        client.n_windows = bench_argument(argc, argv, 1, 2) * client.n_a_round;
        r = signals_open(&bus);
        if (r >= 0)
                r = signals_receive(bus, client.n_windows, start_windows, on_violation, &client);
        if (r >= 0)
                (void) pthread_join(client.thread, NULL);
        sd_bus_flush_close_unref(bus);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
