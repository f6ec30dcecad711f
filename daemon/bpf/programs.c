/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From the BPF object that is built into the daemon to programs in the kernel: which of its
 * programs this kernel can take is found by loading them, best first. Then the maps are given what
 * the programs rely on: a timer for each slot, and the slots that are free. Bindings and windows
 * are none of its business.
 */

#include "bpf/programs.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <stddef.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/system-call.h"
#include "bpf/fentry.h"
#include "bpf/hooks.h"
#include "bpf/iterator.h"
#include "bpf/layout-hash.h"
#include "bpf/layout.h"
#include "bpf/opts.h"
#include "bpf/preempt-count.h"
#include "bpf/registers.h"
#include "bpf/skeleton.h"
#include "bpf/uprobe-timers.h"
#include "bpf/uprobe.h"
#include "bpf/variants.h"
#include "cgroup.h"

#define INSTANCES_MAX   16384       /* of templates; memory is taken as they come */
#define PIDNS_INIT_INUM 0xEFFFFFFCU /* PROC_PID_INIT_INO */

/* libbpf's own messages are for its developers: what fails is said by us. */
static int ignore_libbpf(enum libbpf_print_level level, const char *format, va_list ap) {
        return 0;
}

static uint32_t pid_namespace(void) {
        struct stat st;

        if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == PIDNS_INIT_INUM)
                return 0;
        return (uint32_t) st.st_ino;
}

static int set_sizes(struct tlob_bpf *bpf, const BackendConfig *config) {
        int n_cpus = libbpf_num_possible_cpus();
        struct {
                struct bpf_map *map;
                size_t n;
        } sizes[] = {
                { bpf->maps.start_sites, bpf_programs_sites_max(config) },
                { bpf->maps.stop_sites, bpf_programs_sites_max(config) },
                { bpf->maps.start_hits, bpf_programs_sites_max(config) },
                { bpf->maps.stop_hits, bpf_programs_sites_max(config) },
                { bpf->maps.timer_hits, config->bindings_max },
                { bpf->maps.start_scopes, bpf_programs_sites_max(config) },
                { bpf->maps.stop_scopes, bpf_programs_sites_max(config) },
                { bpf->maps.units, config->bindings_max + 1 },
                { bpf->maps.units_by_cgroup, config->bindings_max + 1 },
                { bpf->maps.units_by_path, config->bindings_max + 1 },
                { bpf->maps.instances, INSTANCES_MAX },
                { bpf->maps.spares, config->bindings_max },
                { bpf->maps.bindings, config->bindings_max },
                { bpf->maps.statistics, config->bindings_max },
                { bpf->maps.maxima, config->bindings_max },
                { bpf->maps.histograms,
                  (config->bindings_max + TLOB_HISTOGRAMS_GROUP - 1) / TLOB_HISTOGRAMS_GROUP },
                { bpf->maps.cpus, n_cpus > 0 ? (size_t) n_cpus : 1 },
                { bpf->maps.tasks, config->tasks_max },
                { bpf->maps.stacks, config->tasks_max },
                { bpf->maps.timers, config->tasks_max },
                { bpf->maps.free_slots, config->tasks_max },
                { bpf->maps.free_untimed_slots, config->tasks_max },
                { bpf->maps.slots_by_task, config->tasks_max },
                { bpf->maps.key_places, 2 * (size_t) config->bindings_max },
                { bpf->maps.keyed_windows, config->tasks_max },
                { bpf->maps.unarmed_slots, config->tasks_max },
                { bpf->maps.untimed_slots, config->tasks_max },
                { bpf->maps.pages, config->mark_pages_max ?: 1 },
                { bpf->maps.pages_by_process, config->mark_pages_max ?: 1 },
                { bpf->maps.lane_holders, (size_t) (config->mark_pages_max ?: 1) * TLOB_LANES },
                { bpf->maps.records, config->ring_buffer_size },
        };

        for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                int r = bpf_map__set_max_entries(sizes[i].map, (uint32_t) sizes[i].n);

                if (r < 0)
                        return r;
        }
        return 0;
}

/*
 * All maps but constants: the programs that a predecessor has left attached have their own. What is
 * pinned already is taken; one that somebody has removed belongs to those programs all the same.
 */
static int pin_maps(const struct tlob_bpf *bpf, const Pins *pins, bool inherits) {
        struct bpf_map *map;

        bpf_object__for_each_map(map, bpf->obj) {
                char name[32];
                int r;

                if (map == bpf->maps.rodata)
                        continue;
                /* Names there have no dots. */
                (void) snprintf(name, sizeof(name), "map_%.26s", bpf_map__name(map));
                for (char *p = name; *p; p++)
                        if (*p == '.')
                                *p = '_';
                if (inherits && access(pins_path(pins, name).text, F_OK) < 0)
                        return -ESTALE;
                r = bpf_map__set_pin_path(map, pins_path(pins, name).text);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* CONFIG_FTRACE_SYSCALLS; and calls of 32-bit programs are only told apart on x86. */
bool bpf_programs_find_calls(const struct btf *btf) {
#if defined(__x86_64__)
        return btf__find_by_name_kind(btf, "btf_trace_sys_enter", BTF_KIND_TYPEDEF) > 0;
#else
        return false;
#endif
}

/* What the types of this kernel tell. */
static void find_abilities(BpfPrograms *programs) {
        struct btf *btf = btf__load_vmlinux_btf();

        if (!btf)
                return;
        programs->has_calls = bpf_programs_find_calls(btf);
        programs->preempt_count = preempt_count_find(btf);
        programs->sets_registers = programs->multi && registers_can_be_set(btf);
        btf__free(btf);
}

/* Its variables are those of the others, so they must lie where theirs do. */
#define ASSERT_SHARED(variable)                                                                    \
        _Static_assert(offsetof(struct tlob_bpf__bss, variable) ==                                 \
                               offsetof(struct tlob_bridge_bpf__bss, variable),                    \
                       #variable " is not where the bridge looks for it")
ASSERT_SHARED(n_timer_failures);
ASSERT_SHARED(n_missed_switches);
ASSERT_SHARED(unit_levels);
ASSERT_SHARED(report_limit);
ASSERT_SHARED(ring_share);
ASSERT_SHARED(own_tgid);

/* Lets the bridge use the maps of the others. Its constants are its own. */
static int share_maps(struct tlob_bridge_bpf *bridge, const struct tlob_bpf *bpf) {
        struct bpf_map *map;
        int r;

        r = bpf_map__reuse_fd(bridge->maps.bss, bpf_map__fd(bpf->maps.bss));
        if (r >= 0)
                r = bpf_map__reuse_fd(bridge->maps.data, bpf_map__fd(bpf->maps.data));
        bpf_object__for_each_map(map, bridge->obj) {
                const struct bpf_map *other;

                if (r < 0)
                        return r;
                if (bpf_map__is_internal(map))
                        continue;
                other = bpf_object__find_map_by_name(bpf->obj, bpf_map__name(map));
                r = other ? bpf_map__reuse_fd(map, bpf_map__fd(other)) : -ENOENT;
        }
        return r;
}

/* Attaches the program that arms timers to the one of the start. */
static int load_bridge(BpfPrograms *programs) {
        const struct tlob_bpf *bpf = programs->bpf;
        struct tlob_bridge_bpf *bridge;
        int r;

        bridge = tlob_bridge_bpf__open();
        if (!bridge)
                return -errno;
        programs->bridge = bridge;

        bridge->rodata->pidns_inum = bpf->rodata->pidns_inum;
        bridge->rodata->slots_max = bpf->rodata->slots_max;
        bridge->rodata->stack_from_task = bpf->rodata->stack_from_task;
        bridge->rodata->is_virtual = bpf->rodata->is_virtual;
        r = share_maps(bridge, bpf);
        if (r >= 0)
                r = bpf_program__set_attach_target(bridge->progs.arm_from_start,
                                                   bpf_programs_start_fd(programs),
                                                   "deadline_bridge");
        if (r >= 0)
                r = tlob_bridge_bpf__load(bridge);
        if (r >= 0)
                r = tlob_bridge_bpf__attach(bridge);
        /* It arms the timers of its start only, and goes with that. */
        if (r >= 0 && programs->pins)
                (void) pins_add(programs->pins, bpf_link__fd(bridge->links.arm_from_start), 0,
                                &(uint64_t) { 0 });
        return r;
}

#if defined(__x86_64__)

#define CPUID_HYPERVISOR (1U << 31)

static bool is_virtual_machine(void) {
        unsigned eax, ebx, ecx, edx;

        return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & CPUID_HYPERVISOR);
}

#else

/* It may be one. */
static bool is_virtual_machine(void) {
        return true;
}

#endif

static void set_calls_of_32_bits(struct tlob_bpf *bpf) {
        for (uint32_t i = 0; i < TLOB_CALLS_MAX; i++) {
                uint32_t number;

                if (system_call_of_32_bits(i, &number) < 0 || number > TLOB_CALLS_MAX)
                        number = TLOB_CALLS_MAX;
                bpf->rodata->calls_of_32_bits[i] = (uint16_t) number;
        }
}

static void unload(BpfPrograms *programs) {
        tlob_bridge_bpf__destroy(programs->bridge);
        programs->bridge = NULL;
        tlob_bpf__destroy(programs->bpf);
        programs->bpf = NULL;
}

/* The programs for a rung of the ladder of deadlines. */
static int load_rung(BpfPrograms *programs, const BackendConfig *config, DeadlineMode mode) {
        struct tlob_bpf *bpf;
        int r;

        bpf = skeleton_open();
        if (!bpf)
                return -errno;

        bpf->rodata->pidns_inum = pid_namespace();
        bpf->rodata->slots_max = config->tasks_max;
        bpf->rodata->stack_from_task = programs->stack_from_task;
        bpf->rodata->is_virtual = is_virtual_machine();
        bpf->rodata->per_cpu_offset = programs->symbols.per_cpu_offset;
        bpf->rodata->steal_time = programs->symbols.steal_time;
        bpf->rodata->preempt_count = programs->preempt_count;
        bpf->rodata->sets_registers = programs->sets_registers;
        memcpy(bpf->rodata->interrupts, &programs->symbols.interrupts, sizeof(struct tlob_text));
        memcpy(bpf->rodata->softirqs, &programs->symbols.softirqs, sizeof(struct tlob_text));
        memcpy(bpf->rodata->network, &programs->symbols.network, sizeof(struct tlob_text));
        set_calls_of_32_bits(bpf);
        bpf->data->next_window_id = now_usec();
        hooks_prepare(bpf);
        (void) bpf_program__set_autoattach(bpf->progs.set_callbacks, false);
        (void) bpf_program__set_autoattach(bpf->progs.find_processes, false);
        (void) bpf_program__set_autoattach(bpf->progs.tend_keyed, false);
        variants_select(bpf, programs->multi, mode, programs->preemptible);

        r = set_sizes(bpf, config);
        if (r >= 0 && programs->pins)
                r = pin_maps(bpf, programs->pins, programs->inherits);
        if (r >= 0)
                r = skeleton_load(bpf);
        /* libbpf asks once whether maps can be mapped, and takes any error for a no. */
        if (r >= 0 && (!bpf->bss || !bpf->data))
                r = -EOPNOTSUPP;
        if (r < 0) {
                tlob_bpf__destroy(bpf);
                return r;
        }
        programs->bpf = bpf;
        programs->mode = mode;
        if (mode == DEADLINE_FENTRY)
                r = load_bridge(programs);
        if (r < 0)
                unload(programs);
        return r;
}

/*
 * The stack of a sleeper through its task, else each time that it goes to sleep: on kernels that
 * are too old for the first rung anyway.
 */
static int load_with_stacks(BpfPrograms *programs, const BackendConfig *config, DeadlineMode mode) {
        int r;

        programs->stack_from_task = true;
        r = load_rung(programs, config, mode);
        if (r >= 0 || mode == DEADLINE_UPROBE)
                return r;
        programs->stack_from_task = false;
        return load_rung(programs, config, mode);
}

/* Down the ladder: whether a kernel can do it is found by doing it. */
static int load_best(BpfPrograms *programs, const BackendConfig *config) {
        int r = -EOPNOTSUPP;

        for (DeadlineMode mode = config->deadline_mode; r < 0 && mode <= DEADLINE_SWITCH_TICK;
             mode++) {
                /* Kernels where a uprobe may arm timers have uprobe_multi links, and preempt. */
                if (mode == DEADLINE_UPROBE && (!programs->multi || !programs->preemptible))
                        continue;
                if (mode == DEADLINE_FENTRY && !fentry_is_allowed())
                        continue;
                r = load_with_stacks(programs, config, mode);
        }
        return r;
}

/* The rung of the predecessor, whose hooks go on. */
static int load_same(BpfPrograms *programs, const BackendConfig *config,
                     const KeptFormat *inherited) {
        programs->stack_from_task = inherited->stack_from_task;
        return load_rung(programs, config, (DeadlineMode) inherited->mode);
}

static int run_program(const struct bpf_program *program, void *context, size_t size) {
        struct bpf_test_run_opts opts;

        opts_init(&opts);
        opts.ctx_in = context;
        opts.ctx_size_in = (uint32_t) size;
        return bpf_prog_test_run_opts(bpf_program__fd(program), &opts);
}

/*
 * Each timer takes memory that the kernel may not have at once: a batch that got nowhere is tried
 * again, and what has no timer in the end has its deadlines found by one timer for all of them.
 * Kernels were met that had memory for 300.
 */
static int prepare_timers(const BpfPrograms *programs, unsigned tasks_max) {
        unsigned done = 0, failures = 0;

        while (done < tasks_max && failures < 100) {
                struct tlob_timers request = { .first = done, .n = tasks_max - done };
                int r;

                r = run_program(programs->bpf->progs.prepare_timers, &request, sizeof(request));
                if (r < 0)
                        return r;
                failures = request.done > 0 ? 0 : failures + 1;
                done += request.done;
        }
        programs->bpf->bss->slots_timed = done;
        return 0;
}

/* Runs an iterator once, on our own thread. */
static int run_on_itself(const struct bpf_program *program) {
        union bpf_iter_link_info info = {
                .task.tid = (uint32_t) gettid(),
        };
        struct bpf_iter_attach_opts opts;

        opts_init(&opts);
        opts.link_info = &info;
        opts.link_info_len = sizeof(info);
        return iterator_run(program, &opts);
}

/*
 * In a container the depths of cgroups that we see begin at its root, those in the kernel do not.
 */
static int find_root_level(BpfPrograms *programs) {
        _cleanup_close_ int root_fd = -EBADF;
        uint64_t root_id;
        struct tlob_root root = {};
        unsigned level;
        int r;

        root_fd = cgroup_open_root();
        if (root_fd < 0)
                return 0;
        r = cgroup_path_get_id(root_fd, "/", &root_id, &level);
        if (r < 0)
                return r;
        root.cgroup_id = root_id;
        r = run_program(programs->bpf->progs.find_root_level, &root, sizeof(root));
        if (r < 0)
                return r;
        programs->root_level = root.found ? root.level : 0;
        programs->bpf->bss->unit_root_level = programs->root_level;
        programs->bpf->bss->unit_root_id = root_id;
        return 0;
}

static int fill_free_slots(const BpfPrograms *programs, uint32_t tasks_max) {
        const struct tlob_bpf *bpf = programs->bpf;

        /* Stacks: the lowest slot comes off first. */
        for (uint32_t slot = tasks_max; slot-- > 0;) {
                bool is_timed = slot < bpf->bss->slots_timed;

                if (bpf_map_update_elem(bpf_map__fd(is_timed ? bpf->maps.free_slots
                                                             : bpf->maps.free_untimed_slots),
                                        NULL, &slot, BPF_ANY) < 0)
                        return -errno;
        }
        return 0;
}

/* What the programs rely on in their maps. */
static int prepare(BpfPrograms *programs, const BackendConfig *config) {
        int r;

        r = prepare_timers(programs, config->tasks_max);
        if (r >= 0)
                r = run_on_itself(programs->bpf->progs.set_callbacks);
        if (r >= 0)
                r = fill_free_slots(programs, config->tasks_max);
        return r;
}

int bpf_programs_load(BpfPrograms *programs, const BackendConfig *config, Pins *pins,
                      const KeptFormat *inherited) {
        int r;

        (void) libbpf_set_print(ignore_libbpf);
        *programs = (BpfPrograms) {
                .multi = uprobe_multi_is_supported(),
                .preemptible = uprobe_timers_are_allowed(),
                .pins = pins,
                .inherits = inherited,
        };
        programs->by_process = programs->multi && uprobe_multi_takes_processes();
        find_abilities(programs);

        /* Where it is not known, nobody is said to have woken a task. */
        r = kernel_symbols_find(&programs->symbols);
        if (r == -EOPNOTSUPP)
                return r;

        r = inherited ? load_same(programs, config, inherited) : load_best(programs, config);
        if (r >= 0 && !inherited)
                r = prepare(programs, config);
        if (r >= 0)
                r = find_root_level(programs);
        if (r >= 0 && config->leave_out_self)
                r = run_program(programs->bpf->progs.leave_out_caller, NULL, 0);
        if (r < 0)
                return r;
        programs->pinned = inherited;
        return 0;
}

void bpf_programs_get_format(const BpfPrograms *programs, const BackendConfig *config,
                             KeptFormat *ret) {
        const LayoutHash hash = bpf_layout_hash();

        *ret = (KeptFormat) {
                .layout = hash.all,
                .books = hash.books,
                .mode = programs->mode,
                .allowed_mode = config->deadline_mode,
                .programs = skeleton_hash(),
                .bindings_max = config->bindings_max,
                .tasks_max = config->tasks_max,
                .ring_buffer_size = config->ring_buffer_size,
                .stack_from_task = programs->stack_from_task,
        };
}

bool bpf_programs_fit(const KeptFormat *format, const BackendConfig *config) {
        return format->layout && format->layout == bpf_layout_hash().all &&
               format->mode <= DEADLINE_SWITCH_TICK &&
               format->allowed_mode == config->deadline_mode &&
               format->bindings_max == config->bindings_max &&
               format->tasks_max == config->tasks_max &&
               format->ring_buffer_size == config->ring_buffer_size;
}

/* What the programs of another build had left to them is given to ours. */
static int replace_hooks(BpfPrograms *programs, KeptFormat *inherited, uint64_t own) {
        int r;

        r = hooks_attach(programs->bpf, programs->pins, &programs->pinned);
        if (r < 0)
                return r;
        if (!programs->pinned)
                return -ESTALE;
        r = run_on_itself(programs->bpf->progs.set_callbacks);
        if (r < 0)
                return r;
        inherited->programs = own;
        return 0;
}

int bpf_programs_attach(BpfPrograms *programs, KeptFormat *inherited) {
        uint64_t own;
        int r;

        if (!inherited)
                return hooks_attach(programs->bpf, programs->pins, &programs->pinned);
        own = skeleton_hash();
        if (inherited->programs != own) {
                r = replace_hooks(programs, inherited, own);
                if (r < 0)
                        return r;
        }
        hooks_remove_others(programs->bpf, programs->pins);
        return 0;
}

void bpf_programs_done(BpfPrograms *programs) {
        unload(programs);
        *programs = (BpfPrograms) {};
}

int bpf_programs_start_fd(const BpfPrograms *programs) {
        return bpf_program__fd(variant_start(programs->bpf, programs->multi, programs->mode));
}

int bpf_programs_stop_fd(const BpfPrograms *programs) {
        return bpf_program__fd(variant_stop(programs->bpf, programs->multi));
}

int bpf_programs_unwind_fd(const BpfPrograms *programs) {
        return bpf_program__fd(variant_unwind(programs->bpf, programs->multi));
}

int bpf_programs_check_slot(const BpfPrograms *programs, uint32_t slot) {
        return run_program(programs->bpf->progs.check_slot, &slot, sizeof(slot));
}

int bpf_programs_settle_page(const BpfPrograms *programs, uint32_t page) {
        return run_program(programs->bpf->progs.settle_page, &page, sizeof(page));
}

int bpf_programs_tend_keyed(const BpfPrograms *programs) {
        return run_on_itself(programs->bpf->progs.tend_keyed);
}
