/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The back end that measures with BPF programs of our own (tlob.bpf.c). It loads them, keeps their
 * maps in step with the bindings, and turns their records into reports. The scheduler hooks are
 * attached as long as the back end exists, so the manager makes one only when there is a binding for
 * it.
 *
 * It shares the tasks and their windows with the programs through memory (the map is mapped): that
 * is how it counts open windows, and how it ends those of a binding that is taken away.
 */

#include "backend.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/stat.h>

#include "bpf-detacher.h"
#include "bpf-histograms.h"
#include "bpf-memory.h"
#include "bpf-programs.h"
#include "bpf-sites.h"
#include "bpf-tasks.h"
#include "bpf-units.h"
#include "cgroup.h"
#include "sentence.h"

/* A binding here; free when generation is 0. Its place in the array is its index in the maps. */
typedef struct Entry {
        uint64_t generation;
        uint32_t start_site;
        uint32_t stop_site;
        SiteUser user;
        uint64_t budget_ns[TLOB_N_BUDGETS];
        bool stop_is_return;
        bool retired;                /* removed, and its last reports not dispatched yet */
        struct tlob_statistics base; /* what was counted at the last reset */
} Entry;

#define STACKS_MAX      64
#define LIMITATIONS_MAX 6
#define LIMITATION_MAX  160

/* Of a violation that is still to come. */
typedef struct PendingStack {
        uint64_t id;
        Stack stack;
} PendingStack;

typedef struct BpfBackend {
        Backend backend; /* first */
        BpfPrograms programs;
        struct ring_buffer *records;
        TaskTable tasks;
        size_t n_cpus;
        SiteTable start_sites;
        SiteTable stop_sites;
        UnitTable units;
        HistogramTable histograms;
        struct tlob_binding *bindings; /* shared with the programs */
        Detacher *detacher;
        Entry *entries;
        size_t n_entries;
        uint64_t generation;
        Report *pending; /* of windows that remove() ended */
        size_t n_pending;

        PendingStack stacks[STACKS_MAX];
        const char *limitations[LIMITATIONS_MAX + 1];
        char limitation[4][LIMITATION_MAX]; /* those of them with a figure in it */
        unsigned next_stack;

        /* During dispatch() */
        BackendReportHandler handler;
        void *userdata;
} BpfBackend;

static BpfBackend *BPF(Backend *backend) {
        return (BpfBackend *) backend;
}

static int bpf_backend_probe(char **ret_reason) {
        static const struct {
                const char *path;
                const char *what;
        } needed[] = {
                { "/sys/kernel/btf/vmlinux", "type information (CONFIG_DEBUG_INFO_BTF)" },
                { "/sys/bus/event_source/devices/uprobe", "uprobes (CONFIG_UPROBE_EVENTS)" },
        };

        for (size_t i = 0; i < ELEMENTSOF(needed); i++)
                if (access(needed[i].path, R_OK) < 0) {
                        return sentence_error(-errno, ret_reason,
                                              "The kernel has no %s: %s is missing", needed[i].what,
                                              needed[i].path);
                }
        return 0;
}

static void report_from_record(const struct tlob_record *record, Report *ret) {
        *ret = (Report){
                .type = record->type == TLOB_RECORD_VIOLATION ? REPORT_VIOLATION
                                                              : REPORT_COMPLETION,
                .backend_index = record->binding,
                .id = record->id,
                .time_ns = record->time_ns,
                .late_ns = record->late_ns,
                .elapsed_ns = record->elapsed_ns,
                .spent_ns = { record->spent_ns[0], record->spent_ns[1], record->spent_ns[2] },
                .cgroup_id = record->cgroup_id,
                .budget = record->budget,
                .exceeded = record->exceeded,
                .state = record->state,
                .end = record->end,
                .tid = record->tid,
                .pid = record->pid,
        };
        memcpy(ret->comm, record->comm, sizeof(record->comm));
        ret->peers = (Peers){
                .woken_by = record->woken_by,
                .preempted_by = record->preempted_by,
                .ran_before = record->ran_before,
        };
}

/* An instance has taken a spare: told as coming from any of its bindings. */
static void take_instance(BpfBackend *b, const struct tlob_instance_record *record) {
        Report report = {
                .type = REPORT_INSTANCE,
                .cgroup_id = record->cgroup_id,
                .cgroup_path = record->path.path,
                .cgroup_level = record->level - b->programs.root_level,
        };

        if (unit_table_take_spare(&b->units, record) <= 0)
                return;
        for (size_t i = 0; i < b->n_entries; i++) {
                const Entry *entry = &b->entries[i];

                if (entry->generation && !entry->retired && entry->user.unit == record->unit) {
                        report.backend_index = (uint32_t) i;
                        b->handler(&report, b->userdata);
                        return;
                }
        }
}

/* Stacks come before their violations, and those of other CPUs may come in between. */
static void keep_stack(BpfBackend *b, const struct tlob_stack_record *record, size_t size) {
        PendingStack *p = &b->stacks[b->next_stack++ % ELEMENTSOF(b->stacks)];

        p->id = record->id;
        p->stack.n = (size - offsetof(struct tlob_stack_record, frame)) / sizeof(record->frame[0]);
        if (p->stack.n > TLOB_FRAMES_MAX)
                p->stack.n = TLOB_FRAMES_MAX;
        memcpy(p->stack.frames, record->frame, p->stack.n * sizeof(record->frame[0]));
        stack_trim(&p->stack);
}

static const Stack *find_stack(const BpfBackend *b, uint64_t id) {
        for (size_t i = 0; i < ELEMENTSOF(b->stacks); i++)
                if (b->stacks[i].id == id)
                        return &b->stacks[i].stack;
        return NULL;
}

static int on_record(void *userdata, void *data, size_t size) {
        const struct tlob_record *record = data;
        BpfBackend *b = userdata;
        Report report;

        if (size >= offsetof(struct tlob_stack_record, frame) &&
            record->type == TLOB_RECORD_STACK) {
                keep_stack(b, data, size);
                return 0;
        }
        if (size >= sizeof(struct tlob_instance_record) && record->type == TLOB_RECORD_INSTANCE) {
                take_instance(b, data);
                return 0;
        }

        /* A binding that has gone since: its last records were dispatched before it went. */
        if (size < sizeof(*record) || record->binding >= b->n_entries ||
            b->entries[record->binding].generation != record->binding_generation)
                return 0;

        report_from_record(record, &report);
        if (report.type == REPORT_VIOLATION)
                report.stack = find_stack(b, report.id);
        b->handler(&report, b->userdata);
        return 0;
}

static Backend *bpf_backend_free(Backend *backend) {
        BpfBackend *b = BPF(backend);

        if (!b)
                return NULL;

        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].generation && !b->entries[i].retired)
                        (void) backend->ops->remove(backend, (uint32_t) i, NULL, NULL);
        detacher_free(b->detacher);
        site_table_done(&b->stop_sites);
        site_table_done(&b->start_sites);
        unit_table_done(&b->units);
        histogram_table_done(&b->histograms);
        bpf_memory_unmap(b->bindings, b->n_entries, sizeof(*b->bindings));
        free(b->entries);
        free(b->pending);
        ring_buffer__free(b->records);
        task_table_done(&b->tasks);
        bpf_programs_done(&b->programs);
        free(b);
        return NULL;
}

static int bpf_backend_set_up(BpfBackend *b, const BackendConfig *config) {
        struct tlob_bpf *bpf;
        void *bindings;
        int n_cpus, r;

        b->entries = calloc(config->bindings_max, sizeof(*b->entries));
        if (!b->entries)
                return -ENOMEM;
        b->n_entries = config->bindings_max;

        n_cpus = libbpf_num_possible_cpus();
        if (n_cpus < 0)
                return n_cpus;
        b->n_cpus = (size_t) n_cpus;

        r = detacher_new(&b->detacher);
        if (r < 0)
                return r;
        r = bpf_programs_load(&b->programs, config);
        if (r < 0)
                return r;
        bpf = b->programs.bpf;
        r = task_table_init(&b->tasks, bpf_map__fd(bpf->maps.tasks), config->tasks_max,
                            &bpf->bss->slots_end);
        if (r < 0)
                return r;
        r = unit_table_init(&b->units, config->bindings_max + 1,
                            &(const UnitMaps){
                                    .units = bpf_map__fd(bpf->maps.units),
                                    .by_cgroup = bpf_map__fd(bpf->maps.units_by_cgroup),
                                    .by_path = bpf_map__fd(bpf->maps.units_by_path),
                                    .instances = bpf_map__fd(bpf->maps.instances),
                                    .spares = bpf_map__fd(bpf->maps.spares),
                            },
                            &bpf->bss->unit_levels, b->programs.root_level);
        if (r < 0)
                return r;
        r = bpf_memory_map(bpf_map__fd(bpf->maps.bindings), b->n_entries, sizeof(*b->bindings),
                           &bindings);
        if (r < 0)
                return r;
        b->bindings = bindings;
        r = histogram_table_init(&b->histograms, b->n_entries, b->n_cpus,
                                 bpf_map__fd(bpf->maps.histograms));
        if (r < 0)
                return r;
        r = site_table_init(&b->start_sites, config->bindings_max,
                            bpf_programs_start_fd(&b->programs), bpf_map__fd(bpf->maps.start_sites),
                            bpf_map__fd(bpf->maps.start_scopes), b->programs.multi);
        if (r < 0)
                return r;
        r = site_table_init(&b->stop_sites, config->bindings_max,
                            bpf_programs_stop_fd(&b->programs), bpf_map__fd(bpf->maps.stop_sites),
                            bpf_map__fd(bpf->maps.stop_scopes), b->programs.multi);
        if (r < 0)
                return r;

        b->records =
                ring_buffer__new(bpf_map__fd(b->programs.bpf->maps.records), on_record, b, NULL);
        if (!b->records)
                return -errno;

        return tlob_bpf__attach(b->programs.bpf);
}

static int bpf_backend_new(const BackendConfig *config, Backend **ret, char **ret_reason) {
        BpfBackend *b;
        int r;

        b = calloc(1, sizeof(*b));
        if (!b)
                return -ENOMEM;
        b->backend.ops = &backend_bpf_ops;

        r = bpf_backend_set_up(b, config);
        if (r < 0) {
                bpf_backend_free(&b->backend);
                return sentence_error(
                        r, ret_reason,
                        "The kernel refused the BPF programs: %s; tlobd needs Linux 6.1 or "
                        "newer, and CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN",
                        strerror(-r));
        }

        *ret = &b->backend;
        return 0;
}

static void entry_write_budgets(BpfBackend *b, const Entry *entry) {
        struct tlob_binding *shared = &b->bindings[entry->user.binding];

        for (size_t i = 0; i < TLOB_N_BUDGETS; i++)
                __atomic_store_n(&shared->budget_ns[i], entry->budget_ns[i], __ATOMIC_RELAXED);
}

/* From here on hits of its probes count. */
static void entry_publish(BpfBackend *b, const Entry *entry) {
        struct tlob_binding *shared = &b->bindings[entry->user.binding];

        shared->start_cookie = site_table_cookie(&b->start_sites, entry->start_site);
        shared->stop_cookie = site_table_cookie(&b->stop_sites, entry->stop_site);
        shared->unit = entry->user.unit;
        shared->stop_is_return = entry->stop_is_return;
        entry_write_budgets(b, entry);
        __atomic_store_n(&shared->generation, entry->generation, __ATOMIC_RELEASE);
}

/* From here on starts and stops find no generation any more. */
static void entry_withdraw(BpfBackend *b, const Entry *entry) {
        __atomic_store_n(&b->bindings[entry->user.binding].generation, 0, __ATOMIC_SEQ_CST);
}

static int entry_clear_maximum(BpfBackend *b, uint32_t index) {
        _cleanup_free_ uint64_t *maxima = NULL;

        maxima = calloc(b->n_cpus, sizeof(*maxima));
        if (!maxima)
                return -ENOMEM;
        if (bpf_map_update_elem(bpf_map__fd(b->programs.bpf->maps.maxima), &index, maxima,
                                BPF_ANY) < 0)
                return -errno;
        return 0;
}

/* Another binding may have had this index. */
static int entry_clear_books(BpfBackend *b, uint32_t index) {
        _cleanup_free_ struct tlob_statistics *statistics = NULL;
        int r;

        statistics = calloc(b->n_cpus, sizeof(*statistics));
        if (!statistics)
                return -ENOMEM;
        if (bpf_map_update_elem(bpf_map__fd(b->programs.bpf->maps.statistics), &index, statistics,
                                BPF_ANY) < 0)
                return -errno;
        r = histogram_table_clear(&b->histograms, index);
        if (r < 0)
                return r;
        return entry_clear_maximum(b, index);
}

/* Counters are 64-bit words without exception: over CPUs, and less what was there at the reset. */
static void sum_counters(const struct tlob_statistics *per_cpu, size_t n_cpus,
                         const struct tlob_statistics *base, struct tlob_statistics *ret) {
        const uint64_t *from = (const uint64_t *) base;
        uint64_t *to = (uint64_t *) ret;

        for (size_t i = 0; i < sizeof(*ret) / sizeof(*to); i++) {
                to[i] = 0;
                for (size_t cpu = 0; cpu < n_cpus; cpu++)
                        to[i] += ((const uint64_t *) &per_cpu[cpu])[i];
                to[i] -= from[i];
        }
}

static int read_statistics(BpfBackend *b, const Entry *entry, Statistics *ret) {
        _cleanup_free_ struct tlob_statistics *statistics = NULL;
        _cleanup_free_ uint64_t *maxima = NULL;
        uint32_t index = entry->user.binding;

        statistics = calloc(b->n_cpus, sizeof(*statistics));
        maxima = calloc(b->n_cpus, sizeof(*maxima));
        if (!statistics || !maxima)
                return -ENOMEM;
        if (bpf_map_lookup_elem(bpf_map__fd(b->programs.bpf->maps.statistics), &index, statistics) <
                    0 ||
            bpf_map_lookup_elem(bpf_map__fd(b->programs.bpf->maps.maxima), &index, maxima) < 0)
                return -errno;

        *ret = (Statistics){};
        sum_counters(statistics, b->n_cpus, &entry->base, &ret->counters);
        for (size_t cpu = 0; cpu < b->n_cpus; cpu++)
                if (maxima[cpu] > ret->max_ns)
                        ret->max_ns = maxima[cpu];
        ret->open = task_table_count(&b->tasks, entry->generation);
        return 0;
}

static Entry *find_free_entry(BpfBackend *b) {
        for (size_t i = 0; i < b->n_entries; i++)
                if (!b->entries[i].generation)
                        return &b->entries[i];
        return NULL;
}

static int entry_attach(BpfBackend *b, Entry *entry, const Binding *binding, const ElfFile *elf,
                        char **ret_reason) {
        SiteKey start, stop;
        struct stat st;
        int r;

        if (fstat(elf_file_fd(elf), &st) < 0)
                return -errno;

        start = (SiteKey){
                .dev = st.st_dev,
                .inode = st.st_ino,
                .offset = binding->start_site.offset,
        };
        stop = start;
        stop.is_return = entry->stop_is_return;
        if (!stop.is_return)
                stop.offset = binding->stop_site.offset;

        /* The stop first: no window may open that cannot end. */
        r = site_table_join(&b->stop_sites, &stop, elf_file_fd(elf), &entry->user,
                            &entry->stop_site, ret_reason);
        if (r < 0)
                return r;
        r = site_table_join(&b->start_sites, &start, elf_file_fd(elf), &entry->user,
                            &entry->start_site, ret_reason);
        if (r < 0)
                detacher_push(b->detacher,
                              site_table_leave(&b->stop_sites, entry->stop_site, &entry->user));
        return r;
}

static int entry_set_cgroup(BpfBackend *b, const Entry *entry, uint64_t cgroup_id, unsigned level) {
        return unit_table_set_cgroup(&b->units, entry->user.unit, cgroup_id,
                                     b->programs.root_level + level);
}

/* A template, which stands for all its instances. */
static int entry_confine_many(BpfBackend *b, Entry *entry, const Binding *binding) {
        _cleanup_free_ char *name = NULL;
        int r;

        r = cgroup_path_get_template(binding->cgroup_path, &name);
        if (r < 0)
                return r;
        r = unit_table_join(&b->units, binding->cgroup_path, name, &entry->user.unit);
        if (r < 0)
                return r;
        entry->user.many = true;
        return unit_table_set_template(&b->units, entry->user.unit, name,
                                       b->programs.root_level +
                                               cgroup_path_get_level(binding->cgroup_path));
}

/* Bindings of one spare go to the same instance. */
static int entry_confine_spare(BpfBackend *b, Entry *entry, const Binding *binding) {
        _cleanup_free_ char *name = NULL, *spare = NULL;
        int r;

        r = cgroup_path_get_template(binding->cgroup_path, &name);
        if (r < 0)
                return r;
        if (asprintf(&spare, "%s#%u", name, binding->spare) < 0) {
                spare = NULL;
                return -ENOMEM;
        }
        r = unit_table_join(&b->units, spare, NULL, &entry->user.unit);
        if (r < 0)
                return r;
        return unit_table_set_spare(&b->units, entry->user.unit, name);
}

static int entry_confine(BpfBackend *b, Entry *entry, const Binding *binding) {
        int r;

        if (!binding->unit && !binding->cgroup_id)
                return 0;
        if (binding->spare)
                return entry_confine_spare(b, entry, binding);
        if (binding->unit && unit_name_is_template(binding->unit))
                return entry_confine_many(b, entry, binding);
        /* Names can be aliases, the place of the cgroup is one. */
        r = unit_table_join(&b->units, binding->cgroup_path ?: binding->unit, binding->cgroup_path,
                            &entry->user.unit);
        if (r < 0)
                return r;
        return entry_set_cgroup(b, entry, binding->cgroup_id, binding->cgroup_level);
}

static int bpf_backend_add(Backend *backend, const Binding *binding, const ElfFile *elf,
                           uint32_t *ret_index, char **ret_reason) {
        BpfBackend *b = BPF(backend);
        Entry *entry;
        uint32_t index;
        int r;

        entry = find_free_entry(b);
        if (!entry) {
                return sentence_error(
                        -ENOSPC, ret_reason,
                        "There are %zu bindings already; raise BindingsMax= in tlobd.conf",
                        b->n_entries);
        }
        index = (uint32_t) (entry - b->entries);

        *entry = (Entry){
                .generation = ++b->generation,
                .stop_is_return = binding_stop_is_return(binding),
                .user = { .binding = index, .unit = TLOB_UNIT_NONE },
        };
        memcpy(entry->budget_ns, binding->budget_ns, sizeof(entry->budget_ns));

        r = entry_clear_books(b, index);
        if (r >= 0)
                r = entry_confine(b, entry, binding);
        if (r >= 0)
                r = entry_attach(b, entry, binding, elf, ret_reason);
        if (r < 0) {
                unit_table_leave(&b->units, entry->user.unit);
                *entry = (Entry){};
                return r;
        }

        entry_publish(b, entry);
        *ret_index = index;
        return 0;
}

static int bpf_backend_complete(Backend *backend) {
        return unit_table_complete(&BPF(backend)->units);
}

/* Which budgets a report breaks: exceeded, and of the first of them budget and late_ns. */
static void judge(Report *report, const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        for (int i = TLOB_N_BUDGETS - 1; i >= 0; i--) {
                uint64_t value =
                        i == TLOB_BUDGET_TOTAL ? report->elapsed_ns : report->spent_ns[i - 1];

                if (value <= budget_ns[i])
                        continue;
                report->exceeded |= 1U << i;
                report->budget = (enum tlob_budget) i;
                report->late_ns = value - budget_ns[i];
        }
}

static void push_pending(BpfBackend *b, const Report *report, Statistics *final) {
        Report *p;

        p = reallocarray(b->pending, b->n_pending + 1, sizeof(*p));
        if (!p) {
                final->counters.lost++;
                return;
        }
        b->pending = p;
        b->pending[b->n_pending++] = *report;
}

typedef struct Removal {
        BpfBackend *b;
        const Entry *entry;
        Statistics *final;
        Histogram *histogram; /* NULL: nobody asks */
} Removal;

/* A window that ended because its binding is being removed: books, and the reports that it owes. */
static void on_window_removed(Report *report, uint64_t claim, void *userdata) {
        Removal *removal = userdata;
        Statistics *final = removal->final;
        BpfBackend *b = removal->b;

        for (size_t i = 0; i < TLOB_N_STATES; i++)
                final->counters.spent_ns[i] += report->spent_ns[i];
        final->counters.ended[TLOB_END_REMOVED]++;
        if (removal->histogram)
                removal->histogram->counts[histogram_bucket(report->elapsed_ns)]++;
        if (report->elapsed_ns > final->max_ns)
                final->max_ns = report->elapsed_ns;

        judge(report, removal->entry->budget_ns);
        if (!report->exceeded && !TLOB_CLAIM_IS_VIOLATED(claim))
                return;

        if (TLOB_CLAIM_IS_VIOLATED(claim)) {
                report->id = TLOB_CLAIM_ID(claim);
                report->budget = (enum tlob_budget) TLOB_CLAIM_BUDGET(claim);
                report->exceeded |= 1U << report->budget;
        } else {
                final->counters.violations++;
                report->id = __atomic_fetch_add(&b->programs.bpf->data->next_window_id, 1,
                                                __ATOMIC_RELAXED);
                report->type = REPORT_VIOLATION;
                push_pending(b, report, final);
        }
        report->type = REPORT_COMPLETION;
        push_pending(b, report, final);
}

static int bpf_backend_remove(Backend *backend, uint32_t index, Statistics *ret_final,
                              Histogram *histogram) {
        BpfBackend *b = BPF(backend);
        Entry *entry = &b->entries[index];
        Statistics final = {};
        int r;

        entry->retired = true;
        entry_withdraw(b, entry);
        detacher_push(b->detacher,
                      site_table_leave(&b->start_sites, entry->start_site, &entry->user));
        detacher_push(b->detacher,
                      site_table_leave(&b->stop_sites, entry->stop_site, &entry->user));
        unit_table_leave(&b->units, entry->user.unit);

        r = read_statistics(b, entry, &final);
        if (r >= 0 && histogram)
                r = histogram_table_read(&b->histograms, index, histogram);
        final.open = 0;
        task_table_end(&b->tasks, entry->generation, on_window_removed,
                       &(Removal){
                               .b = b,
                               .entry = entry,
                               .final = &final,
                               .histogram = histogram,
                       });
        if (ret_final)
                *ret_final = final;
        return r;
}

static int bpf_backend_set_cgroup(Backend *backend, uint32_t index, uint64_t cgroup_id,
                                  unsigned level) {
        BpfBackend *b = BPF(backend);

        return entry_set_cgroup(b, &b->entries[index], cgroup_id, level);
}

static int check_slot(uint32_t slot, void *userdata) {
        return bpf_programs_check_slot(userdata, slot);
}

static int bpf_backend_set_budget(Backend *backend, uint32_t index,
                                  const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        BpfBackend *b = BPF(backend);
        Entry *entry = &b->entries[index];

        memcpy(entry->budget_ns, budget_ns, sizeof(entry->budget_ns));
        entry_write_budgets(b, entry);
        return task_table_visit(&b->tasks, entry->generation, check_slot, &b->programs);
}

static int bpf_backend_get_fd(Backend *backend) {
        return ring_buffer__epoll_fd(BPF(backend)->records);
}

static int bpf_backend_dispatch(Backend *backend, BackendReportHandler handler, void *userdata) {
        BpfBackend *b = BPF(backend);
        int n;

        b->handler = handler;
        b->userdata = userdata;
        n = ring_buffer__consume(b->records);
        if (n < 0)
                return n;

        for (size_t i = 0; i < b->n_pending; i++, n++)
                handler(&b->pending[i], userdata);
        b->n_pending = 0;

        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].retired)
                        b->entries[i] = (Entry){};
        return n;
}

static uint64_t bpf_backend_lost(Backend *backend) {
        return __atomic_load_n(&BPF(backend)->programs.bpf->bss->n_lost, __ATOMIC_RELAXED);
}

static int bpf_backend_statistics(Backend *backend, uint32_t index, Statistics *ret) {
        BpfBackend *b = BPF(backend);

        return read_statistics(b, &b->entries[index], ret);
}

static int bpf_backend_histogram(Backend *backend, uint32_t index, Histogram *histogram) {
        return histogram_table_read(&BPF(backend)->histograms, index, histogram);
}

static int bpf_backend_reset_statistics(Backend *backend, uint32_t index) {
        BpfBackend *b = BPF(backend);
        Entry *entry = &b->entries[index];
        Statistics now;
        int r;

        entry->base = (struct tlob_statistics){};
        r = read_statistics(b, entry, &now);
        if (r < 0)
                return r;

        entry->base = now.counters;
        entry->base.starts -= now.open;
        r = histogram_table_reset(&b->histograms, index);
        if (r < 0)
                return r;
        return entry_clear_maximum(b, index);
}

/* "12 timers could not ...", NULL if there are none. */
static const char *describe_count(char buf[static LIMITATION_MAX], const __u64 *counter,
                                  const char *what) {
        __u64 n = __atomic_load_n(counter, __ATOMIC_RELAXED);

        if (n == 0)
                return NULL;
        (void) snprintf(buf, LIMITATION_MAX, "%llu %s", n, what);
        return buf;
}

static const char *const *bpf_backend_limitations(Backend *backend) {
        BpfBackend *b = BPF(backend);
        struct tlob_bpf__bss *bss = b->programs.bpf->bss;
        const char *const sentences[LIMITATIONS_MAX] = {
                b->programs.mode != DEADLINE_SWITCH_TICK
                        ? NULL
                        : "The deadline of a task that never leaves its CPU is found up to one "
                          "scheduler tick late",
                b->programs.stack_from_task
                        ? NULL
                        : "A task that sleeps inside a window has its stack taken each time, which "
                          "costs it some microseconds",
                describe_count(b->limitation[0], &bss->n_timer_failures,
                               "timers could not be armed: those deadlines were found at the next "
                               "tick or switch, or at the stop"),
                describe_count(
                        b->limitation[2], &bss->n_bridge_failures,
                        "starts could not arm a timer, because another was preempted while it "
                        "did: those deadlines were found at the next tick or switch"),
                describe_count(b->limitation[3], &bss->n_instances_missed,
                               "instances of templates were not measured from their first call, "
                               "because more started at once than SpareInstances= allows for"),
                describe_count(
                        b->limitation[1], &bss->n_missed_switches,
                        "times the kernel did not tell that a task got a CPU: how long it had waited "
                        "was found out later"),
        };
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(sentences); i++)
                if (sentences[i])
                        b->limitations[n++] = sentences[i];
        b->limitations[n] = NULL;
        return b->limitations;
}

static const char *bpf_backend_deadline_mode(Backend *backend) {
        static const char *const names[] = {
                [DEADLINE_UPROBE] = "uprobe",
                [DEADLINE_FENTRY] = "fentry",
                [DEADLINE_SWITCH_TICK] = "switch-tick",
        };

        return names[BPF(backend)->programs.mode];
}

const BackendOps backend_bpf_ops = {
        .name = "bpf",
        .capabilities = BACKEND_CAN_RETURN | BACKEND_CAN_STATE_BUDGET | BACKEND_CAN_INFINITE |
                        BACKEND_CAN_CONFINE | BACKEND_CAN_AWAIT,
        .probe = bpf_backend_probe,
        .new = bpf_backend_new,
        .free = bpf_backend_free,
        .add = bpf_backend_add,
        .complete = bpf_backend_complete,
        .remove = bpf_backend_remove,
        .set_cgroup = bpf_backend_set_cgroup,
        .set_budget = bpf_backend_set_budget,
        .get_fd = bpf_backend_get_fd,
        .dispatch = bpf_backend_dispatch,
        .lost = bpf_backend_lost,
        .statistics = bpf_backend_statistics,
        .histogram = bpf_backend_histogram,
        .reset_statistics = bpf_backend_reset_statistics,
        .limitations = bpf_backend_limitations,
        .deadline_mode = bpf_backend_deadline_mode,
};
