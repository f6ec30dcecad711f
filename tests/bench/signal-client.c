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
#include <systemd/sd-bus.h>
#include <time.h>

#include "bench.h"
#include "tlob-bus.h"

#define INTERVAL_NS  UINT64_C(100000000)
#define WINDOW_NS    UINT64_C(10000000)
#define TIMEOUT_USEC UINT64_C(10000000)

typedef struct Client {
        unsigned n_windows;
        unsigned n_a_round;
        unsigned n_received;
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

/* One entry of the details: those that are numbers and have that name. */
static int read_detail(sd_bus_message *m, uint64_t *time_ns, uint64_t *late_ns) {
        const char *name, *type;
        uint64_t *to;
        int r;

        r = sd_bus_message_read(m, "s", &name);
        if (r < 0)
                return r;
        to = streq(name, "time_ns") ? time_ns : streq(name, "late_ns") ? late_ns : NULL;
        r = sd_bus_message_peek_type(m, NULL, &type);
        if (r < 0)
                return r;
        if (!to || !streq(type, "t"))
                return sd_bus_message_skip(m, "v");
        return sd_bus_message_read(m, "v", "t", to);
}

/* When the budget ran out. */
static int read_deadline(sd_bus_message *m, uint64_t *ret_ns) {
        uint64_t time_ns = 0, late_ns = 0;
        int r;

        r = sd_bus_message_skip(m, "ssuttttt");
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_detail(m, &time_ns, &late_ns);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        if (time_ns == 0)
                return -EBADMSG;
        *ret_ns = time_ns - late_ns;
        return 0;
}

static int on_violation(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        uint64_t now = bench_now_ns(), deadline;
        Client *client = userdata;
        int r;

        r = read_deadline(m, &deadline);
        if (r < 0)
                return bench_fail(r, "Failed to read a Violation");
        bench_sample(1 + client->n_received++ / client->n_a_round,
                     (double) (int64_t) (now - deadline) / 1000, "signal");
        return 0;
}

static int receive(sd_bus *bus, const Client *client) {
        while (client->n_received < client->n_windows) {
                int r = sd_bus_process(bus, NULL);

                if (r < 0)
                        return bench_fail(r, "The bus is gone");
                if (r > 0)
                        continue;
                r = sd_bus_wait(bus, TIMEOUT_USEC);
                if (r == 0)
                        r = -ETIMEDOUT;
                if (r < 0 && r != -EINTR)
                        return bench_fail(r, "%u violations came of %u", client->n_received,
                                          client->n_windows);
        }
        return 0;
}

int main(int argc, char *argv[]) {
        Client client = { .n_a_round = bench_argument(argc, argv, 2, 50) };
        sd_bus *bus = NULL;
        pthread_t thread;
        int r;

        client.n_windows = bench_argument(argc, argv, 1, 2) * client.n_a_round;
        r = sd_bus_open_system(&bus);
        if (r >= 0)
                r = sd_bus_match_signal(bus, NULL, TLOB_BUS_NAME, TLOB_BUS_PATH,
                                        TLOB_BUS_MANAGER_INTERFACE, "Violation", on_violation,
                                        &client);
        if (r < 0)
                return bench_fail(r, "Failed to listen on the bus"), EXIT_FAILURE;
        r = pthread_create(&thread, NULL, run_windows, &client);
        if (r != 0)
                return bench_fail(-r, "Failed to start a thread"), EXIT_FAILURE;

        r = receive(bus, &client);
        if (r >= 0)
                (void) pthread_join(thread, NULL);
        sd_bus_flush_close_unref(bus);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
