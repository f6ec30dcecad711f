/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the programs of the bench share: clocks, a CPU of their own, a back end with bindings on
 * the program itself, and the one way in which values are printed. No figures are computed here:
 * that is done in tools/bench, for all alike.
 *
 * Nothing has to be cleaned up when a program is killed: probes and BPF programs belong to file
 * descriptors, and the cgroups are those of tools/bench.
 */

#include "bench.h"
#include "base/sentence.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <time.h>

#include "binding/keys.h"
#include "binding/resolve.h"
#include "cgroup.h"

static uint64_t read_clock(clockid_t clock) {
        struct timespec ts;

        (void) clock_gettime(clock, &ts);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

uint64_t bench_now_ns(void) {
        return read_clock(CLOCK_MONOTONIC);
}

uint64_t bench_cpu_ns(void) {
        return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

int bench_last_cpu(void) {
        cpu_set_t set;

        if (sched_getaffinity(0, sizeof(set), &set) < 0)
                return bench_fail(-errno, "Failed to ask which CPUs may be used");
        for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--)
                if (CPU_ISSET(cpu, &set))
                        return cpu;
        return bench_fail(-ENXIO, "There is no CPU to run on");
}

int bench_pin(void) {
        cpu_set_t set;
        int cpu = bench_last_cpu();

        if (cpu < 0)
                return cpu;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (sched_setaffinity(0, sizeof(set), &set) < 0)
                return bench_fail(-errno, "Failed to stay on CPU %i", cpu);
        return 0;
}

int bench_fail(int r, const char *format, ...) {
        va_list ap;

        (void) fprintf(stderr, "%s: ", program_invocation_short_name);
        va_start(ap, format);
        (void) vfprintf(stderr, format, ap);
        va_end(ap);
        (void) fprintf(stderr, ": %s\n", strerror(-r));
        return r;
}

unsigned bench_argument(int argc, char *argv[], int i, unsigned otherwise) {
        unsigned long n;
        char *end;

        if (i >= argc)
                return otherwise;
        n = strtoul(argv[i], &end, 10);
        if (*end != '\0' || n == 0 || n > UINT32_MAX) {
                (void) fprintf(stderr, "%s: '%s' is not a number of rounds or the like.\n",
                               program_invocation_short_name, argv[i]);
                exit(2);
        }
        return (unsigned) n;
}

void bench_sample(unsigned round, double value, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void) vprintf(format, ap);
        va_end(ap);
        (void) printf(" %u %.3f\n", round, value);
        (void) fflush(stdout);
}

/* The path of the cgroup v2 that this process is in, from the root of the hierarchy. */
static int own_cgroup_path(char **ret) {
        _cleanup_fclose_ FILE *f = fopen("/proc/self/cgroup", "re");
        char line[4096];

        if (!f)
                return -errno;
        while (fgets(line, sizeof(line), f))
                if (strncmp(line, "0::", 3) == 0) {
                        line[strcspn(line, "\n")] = '\0';
                        *ret = strdup(line + 3);
                        return *ret ? 0 : -ENOMEM;
                }
        return -ENOENT;
}

/* Those beside own_id that there are, at most n. Returns how many. */
static int siblings(int root_fd, const char *path, uint64_t own_id, size_t n, BenchCgroup *ret) {
        _cleanup_free_ char *parent = strdup(path);
        _cleanup_closedir_ DIR *dir = NULL;
        struct dirent *entry;
        size_t found = 0;
        int fd;

        if (!parent)
                return -ENOMEM;
        *strrchr(parent, '/') = '\0';
        fd = openat(root_fd, parent[0] ? parent + 1 : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        dir = fdopendir(fd);
        if (!dir) {
                safe_close(fd);
                return -ENOMEM;
        }
        while (found < n && (entry = readdir(dir))) {
                if (entry->d_type != DT_DIR || entry->d_name[0] == '.' || entry->d_ino == own_id)
                        continue;
                ret[found++].id = entry->d_ino;
        }
        return (int) found;
}

int bench_cgroups(size_t n, BenchCgroup ret[static n]) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int root_fd = -EBADF;
        int r;

        r = root_fd = cgroup_open_root();
        if (r >= 0)
                r = own_cgroup_path(&path);
        if (r >= 0)
                r = cgroup_path_get_id(root_fd, path, &ret[0].id, &ret[0].level);
        if (r >= 0 && n > 1) {
                r = siblings(root_fd, path, ret[0].id, n - 1, ret + 1);
                if (r >= 0 && (size_t) r < n - 1)
                        r = -ENOENT;
        }
        if (r < 0)
                return bench_fail(r, "There are not %zu cgroups v2 to be in and beside", n);

        for (size_t i = 1; i < n; i++)
                ret[i].level = ret[0].level;
        return 0;
}

const BackendConfig bench_backend_config = {
        .bindings_max = 256,
        .tasks_max = 512,
        .ring_buffer_size = 1 << 20,
};

int bench_backend_new(const BackendConfig *config, Backend **ret) {
        _cleanup_free_ char *reason = NULL;
        int r;

        r = backend_bpf_ops.probe(&reason);
        if (r >= 0)
                r = backend_bpf_ops.new(config, ret, &reason);
        if (r < 0)
                return bench_fail(r, "%s", reason ?: "The BPF back end does not work here");
        return 0;
}

int bench_backend_new_joined(unsigned n, Backend **ret) {
        BackendConfig config = bench_backend_config;
        char socket[64];

        (void) snprintf(socket, sizeof(socket), "/tmp/tlob-bench-%i", getpid());
        if (setenv("TLOB_BENCH_MARKS", socket, true) < 0)
                return -errno;
        config.marks_socket = socket;
        config.mark_pages_max = n;
        return bench_backend_new(&config, ret);
}

Backend *bench_backend_free(Backend *backend) {
        return backend ? backend->ops->free(backend) : NULL;
}

/* key: that of what there is in this program. */
static int resolve(const char *key, const char *name, const char *budget, Binding **ret,
                   BindingFile **ret_file) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *error = NULL;
        char path[4096];
        ssize_t n;
        int r;

        n = readlink("/proc/self/exe", path, sizeof(path) - 1);
        if (n < 0)
                return bench_fail(-errno, "Failed to find the program itself");
        path[n] = '\0';

        r = binding_new("bench", &binding);
        if (r >= 0)
                r = binding_set_key(binding, "Executable", path, &error);
        if (r >= 0)
                r = binding_set_key(binding, key, name, &error);
        if (r >= 0)
                r = binding_set_key(binding, "BudgetSec", budget, &error);
        if (r >= 0)
                r = binding_resolve(binding, ret_file, &error);
        if (r < 0)
                return bench_fail(r, "%s", error ?: name);
        *ret = TAKE_PTR(binding);
        return 0;
}

int bench_resolve(const char *function, const char *budget, Binding **ret, BindingFile **ret_file) {
        return resolve("Function", function, budget, ret, ret_file);
}

int bench_resolve_mark(const char *mark, const char *budget, Binding **ret,
                       BindingFile **ret_file) {
        return resolve("Mark", mark, budget, ret, ret_file);
}

/* As if a unit ran in that cgroup: one for all bindings there. */
static int confine(Binding *binding, const BenchCgroup *cgroup) {
        _cleanup_free_ char *error = NULL;
        char unit[64];
        int r;

        if (!cgroup->id)
                return 0;
        (void) snprintf(unit, sizeof(unit), "bench-%" PRIu64 ".service", cgroup->id);
        r = binding_set_key(binding, "Unit", unit, &error);
        if (r < 0)
                return bench_fail(r, "%s", error ?: unit);
        binding->cgroup.id = cgroup->id;
        binding->cgroup.level = cgroup->level;
        return 0;
}

static int add(Backend *backend, Binding *binding, const BindingFile *file, BenchCgroup cgroup,
               uint32_t *ret_index) {
        _cleanup_free_ char *reason = NULL;
        int r;

        r = confine(binding, &cgroup);
        if (r < 0)
                return r;
        r = backend->ops->add(backend, binding, file, ret_index, &reason);
        if (r < 0)
                return bench_fail(r, "%s", reason ?: binding->start);
        return 0;
}

int bench_add(Backend *backend, const char *function, const char *budget, BenchCgroup cgroup,
              uint32_t *ret_index) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        int r;

        r = bench_resolve(function, budget, &binding, &file);
        return r < 0 ? r : add(backend, binding, file, cgroup, ret_index);
}

int bench_add_mark(Backend *backend, const char *mark, const char *budget, BenchCgroup cgroup,
                   uint32_t *ret_index) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        int r;

        r = bench_resolve_mark(mark, budget, &binding, &file);
        return r < 0 ? r : add(backend, binding, file, cgroup, ret_index);
}

/* keys: alternating keys and values, NULL at the end. */
static int add_keys(Backend *backend, const char *const *keys, BenchCgroup cgroup,
                    uint32_t *ret_index) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_free_ char *error = NULL;
        int r;

        r = binding_new("bench", &binding);
        for (size_t i = 0; r >= 0 && keys[i]; i += 2)
                r = binding_set_key(binding, keys[i], keys[i + 1], &error);
        if (r >= 0)
                r = binding_resolve(binding, &file, &error);
        if (r < 0)
                return bench_fail(r, "%s", error ?: keys[1]);
        return add(backend, binding, file, cgroup, ret_index);
}

int bench_add_call(Backend *backend, const char *name, const char *budget, BenchCgroup cgroup,
                   uint32_t *ret_index) {
        const char *const keys[] = { "Syscall", name, "BudgetSec", budget, NULL };

        return add_keys(backend, keys, cgroup, ret_index);
}

int bench_add_events(Backend *backend, const char *name, const char *budget, BenchCgroup cgroup,
                     uint32_t *ret_index) {
        _cleanup_free_ char *start = sentence_make("event:syscalls:sys_enter_%s", name),
                            *stop = sentence_make("event:syscalls:sys_exit_%s", name);
        const char *const keys[] = { "Start", start, "Stop", stop, "BudgetSec", budget, NULL };

        return start && stop ? add_keys(backend, keys, cgroup, ret_index) : -ENOMEM;
}

int bench_remove(Backend *backend, uint32_t index, uint64_t n_windows) {
        Statistics final;
        uint64_t ended;
        int r;

        r = backend->ops->remove(backend, index, &final, NULL);
        if (r < 0)
                return bench_fail(r, "Failed to remove a binding");
        ended = final.counters.in_budget + final.counters.violated;
        if (final.counters.starts != n_windows || ended != n_windows)
                return bench_fail(-EBADMSG,
                                  "Of %" PRIu64 " windows %" PRIu64 " were seen to begin, %" PRIu64
                                  " to end",
                                  n_windows, (uint64_t) final.counters.starts, ended);
        return 0;
}
