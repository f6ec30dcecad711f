/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What happens around windows without traps (TLOB_MARK_JOIN): how long a process and a thread take
 * until their windows are such, what one costs that is over its budget, how late that is reported,
 * and what switches cost two threads that have lanes, in windows and outside.
 *
 * usage: bench-join ROUNDS
 */

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include "bench.h"
#include "joined.h"

#define OVER_BUDGET "1us"
#define LATE_BUDGET "1ms"
#define LATE_USEC   20000
#define OVERS       200 /* windows a round */
#define ROUND_TRIPS 5000
#define JOIN_MAX_NS 10000000000
#define PAGES       8 /* one is given back some time after its process has ended */

typedef struct Bench {
        Backend *backend;
        uint32_t joined, over, late;
        uint64_t n_joined, n_over, n_late; /* windows */
        uint64_t late_ns;                  /* of the last report of "late" */
} Bench;

static void take_report(const Report *report, void *userdata) {
        Bench *bench = userdata;

        if (report->type == REPORT_VIOLATION && report->backend_index == bench->late)
                bench->late_ns = report->late_ns;
}

static void dispatch(Bench *bench) {
        (void) bench->backend->ops->dispatch(bench->backend, take_report, bench);
}

/* Until the windows of this thread take no trap; returns how many did. */
static uint64_t join(Bench *bench) {
        uint64_t n = 0, end_ns = bench_now_ns() + JOIN_MAX_NS;

        do {
                joined_loop(1);
                n++;
                if (bench)
                        dispatch(bench);
                (void) usleep(100);
        } while (!joined_is_quick() && bench_now_ns() < end_ns);
        return n;
}

static int set_up(Bench *bench) {
        BenchCgroup cgroup;
        int r;

        r = bench_cgroups(1, &cgroup);
        if (r >= 0)
                r = bench_backend_new_joined(PAGES, &bench->backend);
        if (r >= 0)
                r = bench_add_mark(bench->backend, "joined", "10s", cgroup, &bench->joined);
        if (r >= 0)
                r = bench_add_mark(bench->backend, "over", OVER_BUDGET, cgroup, &bench->over);
        if (r >= 0)
                r = bench_add_mark(bench->backend, "late", LATE_BUDGET, cgroup, &bench->late);
        if (r < 0)
                return r;
        bench->n_joined += join(bench);
        return joined_is_quick() ? 0 : bench_fail(-ETIMEDOUT, "A mark has not been joined");
}

typedef struct Joining {
        uint64_t n; /* windows until then */
        uint64_t ns;
} Joining;

/* In a child, which joins anew. */
static _Noreturn void join_process(int fd) {
        uint64_t begin_ns = bench_now_ns();
        Joining joining = { .n = join(NULL) };

        joining.ns = bench_now_ns() - begin_ns;
        _exit(!joined_is_quick() || write(fd, &joining, sizeof(joining)) != sizeof(joining));
}

static int measure_process(Bench *bench, unsigned round) {
        _cleanup_close_ int in = -EBADF, out = -EBADF;
        int fds[2], status = 0;
        Joining joining = {};
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return bench_fail(-errno, "Failed to make a pipe");
        in = fds[0];
        out = fds[1];
        pid = fork();
        if (pid == 0)
                join_process(out);
        if (pid < 0)
                return bench_fail(-errno, "Failed to fork");
        while (waitpid(pid, &status, WNOHANG) == 0) {
                dispatch(bench);
                (void) usleep(100);
        }
        if (status != 0 || read(in, &joining, sizeof(joining)) != sizeof(joining))
                return bench_fail(-ETIMEDOUT, "A process has not joined");
        bench->n_joined += joining.n;
        bench_sample(round, (double) joining.ns, "join.process");
        return 0;
}

static void *join_thread(void *arg) {
        uint64_t *ns = arg, begin_ns = bench_cpu_ns();

        joined_loop(1);
        *ns = joined_is_quick() ? bench_cpu_ns() - begin_ns : 0;
        return NULL;
}

static int measure_thread(Bench *bench, unsigned round) {
        pthread_t thread;
        uint64_t ns = 0;

        if (pthread_create(&thread, NULL, join_thread, &ns) != 0 || pthread_join(thread, NULL) != 0)
                return bench_fail(-EAGAIN, "Failed to run a thread");
        bench->n_joined++;
        if (ns == 0)
                return bench_fail(-EBADMSG, "A thread has no lane after its first window");
        bench_sample(round, (double) ns, "join.thread");
        return 0;
}

static void measure_over(Bench *bench, unsigned round) {
        uint64_t begin_ns = bench_cpu_ns(), between_ns;

        for (unsigned i = 0; i < OVERS; i++)
                joined_spin();
        between_ns = bench_cpu_ns();
        for (unsigned i = 0; i < OVERS; i++)
                joined_over();
        bench_sample(round, (double) (bench_cpu_ns() - between_ns) / OVERS, "join.over");
        bench_sample(round, (double) (between_ns - begin_ns) / OVERS, "join.spin");
        bench->n_over += OVERS;
        dispatch(bench);
}

static void sleep_long(void) {
        (void) usleep(LATE_USEC);
}

static void run_long(void) {
        uint64_t end_ns = bench_now_ns() + LATE_USEC * UINT64_C(1000);

        while (bench_now_ns() < end_ns)
                ;
}

static int measure_late(Bench *bench, unsigned round, const char *how, void (*work)(void)) {
        bench->late_ns = 0;
        joined_late(work);
        bench->n_late++;
        dispatch(bench);
        if (bench->late_ns == 0)
                return bench_fail(-EBADMSG, "A window over its budget was not reported");
        bench_sample(round, (double) bench->late_ns, "join.late.%s", how);
        return 0;
}

typedef enum Way {
        WAY_STRANGERS, /* without a lane */
        WAY_LANES,
        WAY_WINDOWS,
        N_WAYS,
} Way;

static const char *const way_names[N_WAYS] = { "strangers", "lanes", "windows" };

typedef struct Player {
        Way way;
        int in, out;
        uint64_t ns; /* on a CPU, in the game; 0: it went wrong */
} Player;

static bool play_on(const Player *player) {
        char ball = 0;

        for (unsigned i = 0; i < ROUND_TRIPS; i++)
                if (write(player->out, &ball, 1) != 1 || read(player->in, &ball, 1) != 1)
                        return false;
        return true;
}

static void *play(void *arg) {
        Player *player = arg;
        uint64_t begin_ns;
        bool well;

        if (player->way != WAY_STRANGERS)
                joined_loop(1);
        if (player->way == WAY_WINDOWS)
                joined_begin();
        begin_ns = bench_cpu_ns();
        well = play_on(player);
        player->ns = well ? bench_cpu_ns() - begin_ns : 0;
        if (player->way == WAY_WINDOWS)
                joined_end();
        return NULL;
}

/* Both throw a ball, so that neither waits for the other at first. */
static int measure_switch(Bench *bench, unsigned round, Way way) {
        Player players[2] = {};
        pthread_t threads[2];
        int fds[2], n = 0;

        for (size_t i = 0; i < 2; i++) {
                if (pipe2(fds, O_CLOEXEC) < 0)
                        return bench_fail(-errno, "Failed to make a pipe");
                players[i].way = way;
                players[i].in = fds[0];
                players[1 - i].out = fds[1];
        }
        for (size_t i = 0; i < 2; i++)
                n += pthread_create(&threads[i], NULL, play, &players[i]) == 0;
        for (int i = 0; i < n; i++)
                (void) pthread_join(threads[i], NULL);
        for (size_t i = 0; i < 2; i++) {
                safe_close(players[i].in);
                safe_close(players[i].out);
        }
        if (n < 2 || players[0].ns == 0 || players[1].ns == 0)
                return bench_fail(-ECHILD, "Failed to play");
        bench->n_joined += way == WAY_STRANGERS ? 0 : way == WAY_LANES ? 2 : 4;
        bench_sample(round, (double) (players[0].ns + players[1].ns) / ROUND_TRIPS,
                     "join.switch.%s", way_names[way]);
        return 0;
}

static int run(Bench *bench, unsigned n_rounds) {
        int r = 0;

        for (unsigned round = 1; r >= 0 && round <= n_rounds; round++) {
                r = measure_process(bench, round);
                if (r >= 0)
                        r = measure_thread(bench, round);
                if (r >= 0)
                        measure_over(bench, round);
                if (r >= 0)
                        r = measure_late(bench, round, "asleep", sleep_long);
                if (r >= 0)
                        r = measure_late(bench, round, "running", run_long);
                for (unsigned turn = 0; r >= 0 && turn < N_WAYS; turn++)
                        r = measure_switch(bench, round, (turn + round) % N_WAYS);
        }
        return r;
}

static int check(const Bench *bench) {
        int r;

        r = bench_remove(bench->backend, bench->joined, bench->n_joined);
        if (r >= 0)
                r = bench_remove(bench->backend, bench->over, bench->n_over);
        return r < 0 ? r : bench_remove(bench->backend, bench->late, bench->n_late);
}

int main(int argc, char *argv[]) {
        Bench bench = {};
        unsigned n_rounds = bench_argument(argc, argv, 1, 20);
        int r;

        r = bench_pin();
        if (r >= 0)
                r = set_up(&bench);
        if (r >= 0)
                r = run(&bench, n_rounds);
        if (r >= 0)
                r = check(&bench);
        bench_backend_free(bench.backend);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
