/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What tlobd costs those who switch and wake each other as often as they can: two processes on one
 * CPU that hand a byte to and fro through two pipes. In rounds that take turns: without a binding;
 * with one that is never hit; with both processes inside an open window all the time; and, for
 * comparison, with programs that do nothing in the places of those hooks that a round trip runs
 * into. A round trip is paid for in CPU time of the two, so that what others do on the CPU does not
 * count. All but the window are done with "perf bench sched pipe" as well, where perf is installed.
 *
 * usage: bench-switch ROUNDS
 */

#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "bench.h"

#define ROUND_TRIPS 20000
#define PERF_TRIPS  "50000"

BENCH_DEFINE_TARGET(switch_never, BENCH_PUSH);

typedef enum Way {
        WAY_NONE,
        WAY_EMPTY,
        WAY_IDLE,
        WAY_WINDOW,
        N_WAYS,
} Way;

static const char *const way_names[] = {
        [WAY_NONE] = "none",
        [WAY_EMPTY] = "empty",
        [WAY_IDLE] = "idle",
        [WAY_WINDOW] = "window",
};

/* Which function the binding is on. */
static const char *const functions[] = {
        [WAY_IDLE] = "switch_never",
        [WAY_WINDOW] = "switch_play",
};

typedef enum Side {
        SIDE_SERVES,
        SIDE_RETURNS,
} Side;

bool switch_play(Side side, int in, int out);

/* One side of the game, all of it in one window. */
__attribute__((noinline)) bool switch_play(Side side, int in, int out) {
        char ball = 0;

        for (unsigned i = 0; i < ROUND_TRIPS; i++) {
                if (side == SIDE_SERVES && write(out, &ball, 1) != 1)
                        return false;
                if (read(in, &ball, 1) != 1)
                        return false;
                if (side == SIDE_RETURNS && write(out, &ball, 1) != 1)
                        return false;
        }
        return true;
}

static int start_player(Side side, int in, int out, pid_t *ret) {
        pid_t pid = fork();

        if (pid < 0)
                return -errno;
        if (pid == 0)
                _exit(switch_play(side, in, out) ? 0 : 1);
        *ret = pid;
        return 0;
}

/* Adds what it has spent on a CPU, in microseconds. */
static int wait_for(pid_t pid, double *usec) {
        struct rusage usage;
        int status;

        if (wait4(pid, &status, 0, &usage) < 0)
                return -errno;
        *usec += (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
                 (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

/* The price of a round trip, in nanoseconds. */
static int play(double *ret_ns) {
        _cleanup_close_ int to_in = -EBADF, to_out = -EBADF, fro_in = -EBADF, fro_out = -EBADF;
        pid_t one = 0, other = 0;
        double usec = 0;
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return bench_fail(-errno, "Failed to make a pipe");
        to_in = fds[0];
        to_out = fds[1];
        if (pipe2(fds, O_CLOEXEC) < 0)
                return bench_fail(-errno, "Failed to make a pipe");
        fro_in = fds[0];
        fro_out = fds[1];

        r = start_player(SIDE_RETURNS, to_in, fro_out, &one);
        if (r >= 0)
                r = start_player(SIDE_SERVES, fro_in, to_out, &other);
        if (r < 0 && one > 0)
                (void) kill(one, SIGKILL);
        if (one > 0 && wait_for(one, &usec) < 0)
                r = -ECHILD;
        if (other > 0 && wait_for(other, &usec) < 0)
                r = -ECHILD;
        if (r < 0)
                return bench_fail(r, "Failed to play");
        *ret_ns = usec * 1000 / ROUND_TRIPS;
        return 0;
}

/* What perf makes of it. Returns 0 if it was not to be had. */
static int play_with_perf(double *ret_usec) {
        char *argv[] = {
                (char *) "perf", (char *) "bench",  (char *) "--format=simple", (char *) "sched",
                (char *) "pipe", (char *) "--loop", (char *) PERF_TRIPS,        NULL
        };
        _cleanup_fclose_ FILE *out = NULL;
        posix_spawn_file_actions_t actions;
        double seconds = 0, usec = 0;
        int fds[2], n, r;
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return bench_fail(-errno, "Failed to make a pipe");
        out = fdopen(fds[0], "r");
        r = posix_spawn_file_actions_init(&actions);
        if (r == 0) {
                r = posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
                if (r == 0)
                        r = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
                (void) posix_spawn_file_actions_destroy(&actions);
        }
        safe_close(fds[1]);
        if (r == ENOENT)
                return 0;
        if (r != 0 || !out)
                return bench_fail(r ? -r : -ENOMEM, "Failed to start perf");

        n = fscanf(out, "%lf", &seconds);
        r = wait_for(pid, &usec);
        if (n != 1 || r < 0)
                return bench_fail(-ECHILD, "perf bench sched pipe failed");
        *ret_usec = seconds * 1e6 / strtod(PERF_TRIPS, NULL);
        return 1;
}

static int measure(Way way, unsigned round) {
        double ns = 0, usec = 0;
        int r;

        r = play(&ns);
        if (r < 0)
                return r;
        if (round > 0)
                bench_sample(round, ns, "switch.%s", way_names[way]);
        if (way == WAY_WINDOW)
                return 0;
        r = play_with_perf(&usec);
        if (r > 0 && round > 0)
                bench_sample(round, usec, "perf.%s", way_names[way]);
        return r;
}

/* A program that does nothing, at the tracepoints that a round trip passes. */
static int run_empty(unsigned round) {
        static const char *const names[] = { "sched_switch", "sched_waking", "sched_wakeup" };
        static const struct bpf_insn insns[] = {
                { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
                { .code = BPF_JMP | BPF_EXIT },
        };
        int prog_fd, fds[ELEMENTSOF(names)] = { -EBADF, -EBADF, -EBADF }, r = 0;

        prog_fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL, "GPL", insns, ELEMENTSOF(insns),
                                NULL);
        if (prog_fd < 0)
                return bench_fail(prog_fd, "Failed to load an empty BPF program");
        for (size_t i = 0; i < ELEMENTSOF(names) && r >= 0; i++) {
                fds[i] = bpf_raw_tracepoint_open(names[i], prog_fd);
                if (fds[i] < 0)
                        r = bench_fail(fds[i], "Failed to attach it to %s", names[i]);
        }
        if (r >= 0)
                r = measure(WAY_EMPTY, round);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                safe_close(fds[i]);
        safe_close(prog_fd);
        return r;
}

static int run_turn(Way way, unsigned round) {
        _cleanup_(bench_backend_freep) Backend *backend = NULL;
        uint32_t index;
        int r;

        if (way == WAY_NONE)
                return measure(way, round);
        if (way == WAY_EMPTY)
                return run_empty(round);

        r = bench_backend_new(&bench_backend_config, &backend);
        if (r >= 0)
                r = bench_add(backend, functions[way], "1h", BENCH_UNCONFINED, &index);
        if (r >= 0)
                r = measure(way, round);
        /* Else the price is not that of windows that were open. */
        if (r >= 0)
                r = bench_remove(backend, index, way == WAY_WINDOW ? 2 : 0);
        return r;
}

int main(int argc, char *argv[]) {
        unsigned n_rounds = bench_argument(argc, argv, 1, 10);
        int r = bench_pin();

        /* The first round, 0, warms everything up. */
        for (unsigned round = 0; round <= n_rounds; round++)
                for (unsigned turn = 0; turn < N_WAYS && r >= 0; turn++)
                        r = run_turn((turn + round) % N_WAYS, round);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
