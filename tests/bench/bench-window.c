/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a window costs the program that is measured, against two empty probes at the same places. The
 * function is called in this process, in rounds that take turns: no probes, empty probes, a window,
 * a window confined to this process's cgroup. Ratios are formed within a round, so that what the
 * machine does meanwhile falls on both sides. Each turn has a back end of its own: freeing it waits
 * until its probes have left the kernel, so that no turn pays for the one before it.
 */

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sys/stat.h>
#include <time.h>

#include "backend.h"
#include "bpf-uprobe.h"
#include "cgroup.h"

#define ROUNDS 11
#define CALLS  20000

/* One function for each kind of first instruction. */
#if defined(__x86_64__)
#define DEFINE_TARGET(name, begin)                                                                 \
        __asm__(".text\n.type " name ", @function\n"                                               \
                ".globl " name "\n" name ":\n" begin "\n"                                          \
                "ret\n.size " name ", .-" name "\n");
DEFINE_TARGET("target_push", "push %rbp\nmov %rsp, %rbp\npop %rbp")
DEFINE_TARGET("target_nop5", ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00")
DEFINE_TARGET("target_endbr64", "endbr64\npush %rbp\nmov %rsp, %rbp\npop %rbp")
#else
#error "Say here what functions begin with on this machine."
#endif

void target_push(void);
void target_nop5(void);
void target_endbr64(void);

static const struct {
        const char *name;
        void (*call)(void);
} targets[] = {
        { "target_push", target_push },
        { "target_nop5", target_nop5 },
        { "target_endbr64", target_endbr64 },
};

typedef enum Kind {
        KIND_NONE,
        KIND_EMPTY,
        KIND_WINDOW,
        KIND_CONFINED,
        N_KINDS,
} Kind;

static const char *const kind_names[] = {
        [KIND_NONE] = "no probes",
        [KIND_EMPTY] = "two empty probes",
        [KIND_WINDOW] = "window",
        [KIND_CONFINED] = "window, unit filter",
};

typedef struct Bench {
        int empty_fd;
        bool multi;
        uint64_t cgroup_id;
        unsigned cgroup_level;
} Bench;

static uint64_t now_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

static double call_ns(void (*call)(void)) {
        uint64_t begin;

        for (unsigned i = 0; i < CALLS / 10; i++)
                call();
        begin = now_ns();
        for (unsigned i = 0; i < CALLS; i++)
                call();
        return (double) (now_ns() - begin) / CALLS;
}

static int load_empty(bool multi) {
        static const struct bpf_insn insns[] = {
                { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
                { .code = BPF_JMP | BPF_EXIT },
        };
        LIBBPF_OPTS(bpf_prog_load_opts, opts);

        if (multi)
                opts.expected_attach_type = 48; /* BPF_TRACE_UPROBE_MULTI */
        return bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", insns, ELEMENTSOF(insns), &opts);
}

static int own_cgroup(uint64_t *ret_id, unsigned *ret_level) {
        _cleanup_fclose_ FILE *f = fopen("/proc/self/cgroup", "re");
        _cleanup_close_ int root = cgroup_open_root();
        char line[4096];

        if (!f || root < 0)
                return -ENOENT;
        while (fgets(line, sizeof(line), f))
                if (strncmp(line, "0::", 3) == 0) {
                        line[strcspn(line, "\n")] = '\0';
                        return cgroup_path_get_id(root, line + 3, ret_id, ret_level);
                }
        return -ENOENT;
}

static int resolve(const char *function, Binding **ret, ElfFile **ret_elf, char **ret_error) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        char path[4096];
        ssize_t n;
        int r;

        n = readlink("/proc/self/exe", path, sizeof(path) - 1);
        if (n < 0)
                return -errno;
        path[n] = '\0';

        r = binding_new("bench", &binding);
        if (r < 0)
                return r;
        r = binding_set_key(binding, "Executable", path, ret_error);
        if (r >= 0)
                r = binding_set_key(binding, "Function", function, ret_error);
        if (r >= 0)
                r = binding_set_key(binding, "BudgetSec", "1h", ret_error);
        if (r >= 0)
                r = binding_resolve(binding, ret_elf, ret_error);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(binding);
        return 0;
}

static int attach_empty(const Bench *bench, const Binding *binding, const ElfFile *elf,
                        Uprobe *probes[static 2]) {
        UprobeSpec spec = {
                .prog_fd = bench->empty_fd,
                .multi = bench->multi,
                .file_fd = elf_file_fd(elf),
                .offset = binding->start_site.offset,
        };
        int r;

        r = uprobe_attach(&spec, &probes[0]);
        if (r < 0)
                return r;
        spec.is_return = true;
        return uprobe_attach(&spec, &probes[1]);
}

static int measure_empty(const Bench *bench, const Binding *binding, const ElfFile *elf,
                         void (*call)(void), double *ret) {
        Uprobe *probes[2] = {};
        int r;

        r = attach_empty(bench, binding, elf, probes);
        if (r >= 0)
                *ret = call_ns(call);
        uprobe_detach(probes[0]);
        uprobe_detach(probes[1]);
        return r;
}

static int measure_window(Binding *binding, const ElfFile *elf, void (*call)(void), double *ret,
                          char **ret_error) {
        static const BackendConfig config = {
                .bindings_max = 16,
                .tasks_max = 64,
                .ring_buffer_size = 65536,
        };
        Statistics statistics;
        Backend *backend;
        uint32_t index;
        int r;

        r = backend_bpf_ops.new(&config, &backend, ret_error);
        if (r < 0)
                return r;
        r = backend_bpf_ops.add(backend, binding, elf, &index, ret_error);
        if (r >= 0) {
                *ret = call_ns(call);
                r = backend_bpf_ops.remove(backend, index, &statistics, NULL);
        }
        if (r >= 0 && statistics.counters.in_budget != CALLS + CALLS / 10)
                r = -EBADMSG;
        backend_bpf_ops.free(backend);
        return r;
}

/* The cost of a call, in ns, with that kind of probes on it. */
static int measure(const Bench *bench, Kind kind, size_t target, double *ret, char **ret_error) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_(binding_freep) Binding *binding = NULL;
        void (*call)(void) = targets[target].call;
        int r;

        r = resolve(targets[target].name, &binding, &elf, ret_error);
        if (r < 0)
                return r;

        switch (kind) {
        case KIND_NONE:
                *ret = call_ns(call);
                return 0;
        case KIND_EMPTY:
                return measure_empty(bench, binding, elf, call, ret);
        case KIND_CONFINED:
                binding->cgroup_id = bench->cgroup_id;
                binding->cgroup_level = bench->cgroup_level;
                break;
        default:
                break;
        }
        return measure_window(binding, elf, call, ret, ret_error);
}

static int compare_doubles(const void *a, const void *b) {
        double x = *(const double *) a, y = *(const double *) b;

        return (x > y) - (x < y);
}

static void print(const char *what, double values[static ROUNDS], const char *unit) {
        qsort(values, ROUNDS, sizeof(*values), compare_doubles);
        (void) printf("  %-42s %8.2f %-2s  (%.2f to %.2f)\n", what, values[ROUNDS / 2], unit,
                      values[ROUNDS / 4], values[ROUNDS - 1 - ROUNDS / 4]);
}

static int bench_target(const Bench *bench, size_t target, char **ret_error) {
        double cost[N_KINDS][ROUNDS], ratio[N_KINDS][ROUNDS];

        for (size_t round = 0; round < ROUNDS; round++) {
                for (Kind kind = 0; kind < N_KINDS; kind++) {
                        int r = measure(bench, kind, target, &cost[kind][round], ret_error);

                        if (r < 0)
                                return r;
                }
                for (Kind kind = KIND_WINDOW; kind < N_KINDS; kind++)
                        ratio[kind][round] = cost[kind][round] / cost[KIND_EMPTY][round];
        }

        (void) printf("%s: a call, median (middle half) of %i rounds\n", targets[target].name,
                      ROUNDS);
        for (Kind kind = 0; kind < N_KINDS; kind++)
                print(kind_names[kind], cost[kind], "ns");
        print("window / two empty probes", ratio[KIND_WINDOW], "x");
        print("window, unit filter / two empty probes", ratio[KIND_CONFINED], "x");
        (void) fflush(stdout);
        return 0;
}

int main(void) {
        Bench bench = { .multi = uprobe_multi_is_supported() };
        _cleanup_free_ char *error = NULL;
        int r;

        r = bench.empty_fd = load_empty(bench.multi);
        if (r >= 0)
                r = own_cgroup(&bench.cgroup_id, &bench.cgroup_level);
        for (size_t i = 0; i < ELEMENTSOF(targets) && r >= 0; i++)
                r = bench_target(&bench, i, &error);
        if (r < 0)
                (void) fprintf(stderr, "bench-window: %s\n", error ?: strerror(-r));

        safe_close(bench.empty_fd);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
