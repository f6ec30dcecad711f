/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a mark (tlob-mark.h) costs the program that has it: while nobody listens, as a window, one
 * with a key, with two empty probes on its nops, and without traps.
 *
 * Each way has a mark of its own in a loop of its own, with its probes set throughout. They take
 * turns, and the clock is the thread's own time on the CPU.
 *
 * usage: bench-mark ROUNDS
 */

#include "bench.h"
#include "bpf/uprobe.h"
#include "empty.h"
#include "joined.h"
#include "tlob-mark.h"

#define PROBED 500 /* windows a turn */
#define FREE   100000

#define JOIN_TRIES 5000

#define PLACES_MAX 16 /* of one side of a mark: compilers copy loops */

TLOB_MARK(silent);
TLOB_MARK(window);
TLOB_MARK(confined);
TLOB_MARK(keyed);
TLOB_MARK(empty);

/* The compiler must not see that nothing happens in between. */
#define WORK() __asm__ volatile("" ::: "memory")

#define DEFINE_LOOP(way, begin, end)                                                               \
        __attribute__((noinline)) static void loop_##way(unsigned n) {                             \
                for (unsigned i = 0; i < n; i++) {                                                 \
                        begin;                                                                     \
                        WORK();                                                                    \
                        end;                                                                       \
                }                                                                                  \
        }

DEFINE_LOOP(silent, tlob_begin(silent), tlob_end(silent))
DEFINE_LOOP(window, tlob_begin(window), tlob_end(window))
DEFINE_LOOP(confined, tlob_begin(confined), tlob_end(confined))
DEFINE_LOOP(keyed, tlob_begin_key(keyed, i), tlob_end_key(keyed, i))
DEFINE_LOOP(empty, tlob_begin(empty), tlob_end(empty))

__attribute__((noinline)) static void loop_bare(unsigned n) {
        for (unsigned i = 0; i < n; i++)
                WORK();
}

static const struct {
        const char *name;
        void (*loop)(unsigned n);
        unsigned n;
} ways[] = {
        { "bare", loop_bare, FREE },           { "silent", loop_silent, FREE },
        { "empty", loop_empty, PROBED },       { "window", loop_window, PROBED },
        { "confined", loop_confined, PROBED }, { "keyed", loop_keyed, PROBED },
        { "joined", joined_loop, FREE },       { "clock", joined_clock, FREE },
};

typedef struct Bench {
        Backend *backend;
        BenchCgroup cgroup; /* that we are in */
        int empty_fd;
        Uprobe *empty[2];
        uint32_t window, confined, keyed, joined;
        unsigned n_joining; /* windows until the last of these could do without traps */
} Bench;

static int attach(int prog_fd, bool multi, const BindingFile *file, const ElfSite *site,
                  Uprobe **ret) {
        uint64_t offsets[PLACES_MAX], semaphores[PLACES_MAX];
        UprobeSpec spec = {
                .prog_fd = prog_fd,
                .multi = multi,
                .file_fd = file->fd,
                .offsets = offsets,
                .semaphores = semaphores,
                .n_offsets = site->n_places,
        };

        if (site->n_places > PLACES_MAX)
                return bench_fail(-E2BIG, "A mark is at %zu places", site->n_places);
        for (size_t i = 0; i < site->n_places; i++) {
                offsets[i] = site->places[i].offset;
                semaphores[i] = site->places[i].semaphore;
        }
        return uprobe_attach(&spec, ret);
}

static int set_empty(Bench *bench) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        bool multi = uprobe_multi_is_supported();
        int r;

        r = bench->empty_fd = empty_load(multi);
        if (r < 0)
                return r;
        r = bench_resolve_mark("empty", "10ms", &binding, &file);
        if (r < 0)
                return r;
        r = attach(bench->empty_fd, multi, file, &binding->resolved.sites.start, &bench->empty[0]);
        if (r >= 0)
                r = attach(bench->empty_fd, multi, file, &binding->resolved.sites.stop,
                           &bench->empty[1]);
        return r < 0 ? bench_fail(r, "Failed to set an empty probe") : 0;
}

static void ignore_report(const Report *report, void *userdata) {
}

/* Until the windows of that mark take no trap. */
static int join(Bench *bench) {
        for (unsigned i = 0; i < JOIN_TRIES; i++) {
                joined_loop(1);
                if (joined_is_quick())
                        return 0;
                bench->n_joining++;
                (void) bench->backend->ops->dispatch(bench->backend, ignore_report, NULL);
                (void) usleep(1000);
        }
        return bench_fail(-ETIMEDOUT, "A mark has not been joined");
}

static int set_up(Bench *bench) {
        int r;

        r = bench_pin();
        if (r >= 0)
                r = bench_cgroups(1, &bench->cgroup);
        if (r >= 0)
                r = bench_backend_new_joined(1, &bench->backend);
        if (r >= 0)
                r = bench_add_mark(bench->backend, "window", "10ms", BENCH_UNCONFINED,
                                   &bench->window);
        if (r >= 0)
                r = bench_add_mark(bench->backend, "confined", "10ms", bench->cgroup,
                                   &bench->confined);
        if (r >= 0)
                r = bench_add_mark(bench->backend, "keyed", "10ms", bench->cgroup, &bench->keyed);
        if (r >= 0)
                r = bench_add_mark(bench->backend, "joined", "10ms", bench->cgroup, &bench->joined);
        if (r >= 0)
                r = join(bench);
        return r < 0 ? r : set_empty(bench);
}

static double window_ns(size_t way) {
        uint64_t begin_ns = bench_cpu_ns();

        ways[way].loop(ways[way].n);
        return (double) (bench_cpu_ns() - begin_ns) / ways[way].n;
}

static void run(unsigned n_rounds) {
        /* The first round, 0, warms everything up. */
        for (unsigned round = 0; round <= n_rounds; round++)
                for (unsigned turn = 0; turn < ELEMENTSOF(ways); turn++) {
                        size_t way = (turn + round) % ELEMENTSOF(ways);
                        double ns = window_ns(way);

                        if (round > 0)
                                bench_sample(round, ns, "mark.%s", ways[way].name);
                }
}

/* All windows must have been seen; and who listens must be as it was said. */
static int check(const Bench *bench, uint64_t n_windows) {
        int r;

        if (tlob_enabled(silent) || !tlob_enabled(empty))
                return bench_fail(-EBADMSG, "Listeners are not counted as they should be");
        r = bench_remove(bench->backend, bench->window, n_windows);
        if (r >= 0)
                r = bench_remove(bench->backend, bench->confined, n_windows);
        if (r >= 0)
                r = bench_remove(bench->backend, bench->joined,
                                 n_windows / PROBED * FREE + bench->n_joining + 1);
        return r < 0 ? r : bench_remove(bench->backend, bench->keyed, n_windows);
}

static void tear_down(Bench *bench) {
        uprobe_detach(bench->empty[0]);
        uprobe_detach(bench->empty[1]);
        safe_close(bench->empty_fd);
        bench_backend_free(bench->backend);
}

int main(int argc, char *argv[]) {
        Bench bench = { .empty_fd = -EBADF };
        unsigned n_rounds = bench_argument(argc, argv, 1, 100);
        int r;

        r = set_up(&bench);
        if (r >= 0) {
                run(n_rounds);
                r = check(&bench, (uint64_t) (n_rounds + 1) * PROBED);
        }
        tear_down(&bench);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
