/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The back end that measures with BPF programs of our own (tlob.bpf.c). It keeps their maps in step
 * with the bindings, and turns their records into reports.
 *
 * It shares the tasks and their windows with the programs through memory (the map is mapped): that
 * is how it counts open windows, and how it ends those of a binding that is taken away.
 */

#include "bpf/backend.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <syslog.h>

#include "base/clock.h"
#include "base/sentence.h"
#include "bpf/events.h"
#include "bpf/memory.h"

/* For so long reports are handed over at once: the event loop has others to serve. */
#define DISPATCH_USEC 2000

static void entry_write_budgets(BpfBackend *b, const Entry *entry) {
        struct tlob_binding *shared = bpf_backend_shared(b, entry->user.binding);

        for (size_t i = 0; i < TLOB_N_BUDGETS; i++)
                __atomic_store_n(&shared->budget_ns[i], entry->budget_ns[i], __ATOMIC_RELAXED);
}

/* A daemon before us may have been killed in between. */
void bpf_backend_begin_change(const BpfBackend *b) {
        __u64 *n = &b->programs.bpf->bss->n_changes;

        __atomic_store_n(n, *n | 1, __ATOMIC_SEQ_CST);
}

void bpf_backend_end_change(const BpfBackend *b) {
        __u64 *n = &b->programs.bpf->bss->n_changes;

        __atomic_store_n(n, (*n | 1) + 1, __ATOMIC_RELEASE);
}

/* From here on hits of its probes count. */
static void entry_publish(BpfBackend *b, const Entry *entry) {
        struct tlob_binding *shared = bpf_backend_shared(b, entry->user.binding);

        shared->start_cookie_before = shared->stop_cookie_before = 0;
        shared->start_cookie = site_table_cookie(&b->start_sites, entry->start_site);
        shared->stop_cookie = site_table_cookie(&b->stop_sites, entry->stop_site);
        shared->unit = entry->user.unit;
        shared->stop = entry->stop;
        shared->has_frame = entry->has_frame;
        shared->stop_depth = entry->stop_depth;
        shared->is_keyed = entry->is_keyed;
        shared->owner = entry->owner;
        shared->n_keyed = 0;
        shared->reported_until_ns = 0;
        entry_write_budgets(b, entry);
        __atomic_store_n(&shared->generation, entry->generation, __ATOMIC_RELEASE);
}

/*
 * From here on hits of its probes count too, beside those of the daemon before this one: for a
 * moment both are there, so that none is missed.
 */
static void entry_publish_again(BpfBackend *b, const Entry *entry) {
        struct tlob_binding *shared = bpf_backend_shared(b, entry->user.binding);

        /* One that was killed before it had finished may not have had all its probes. */
        if (b->was_complete || !shared->start_cookie_before) {
                shared->stop_cookie_before = shared->stop_cookie;
                shared->start_cookie_before = shared->start_cookie;
        }
        entry_write_budgets(b, entry);
        __atomic_store_n(&shared->stop_cookie, site_table_cookie(&b->stop_sites, entry->stop_site),
                         __ATOMIC_RELEASE);
        __atomic_store_n(&shared->start_cookie,
                         site_table_cookie(&b->start_sites, entry->start_site), __ATOMIC_RELEASE);
}

/* From here on starts and stops find no generation any more. */
static void entry_withdraw(BpfBackend *b, const Entry *entry) {
        __atomic_store_n(&bpf_backend_shared(b, entry->user.binding)->generation, 0,
                         __ATOMIC_SEQ_CST);
}

static Entry *find_free_entry(BpfBackend *b) {
        for (size_t i = 0; i < b->n_entries; i++)
                if (!b->entries[i].generation)
                        return &b->entries[i];
        return NULL;
}

static uint64_t next_generation(BpfBackend *b) {
        return b->kept ? ++b->kept->common->generation : ++b->generation;
}

static uint32_t stop_depth_of(const FunctionExits *exits) {
        return exits->depth | (exits->depth_of_frame_pointer ? TLOB_DEPTH_OF_FRAME_POINTER : 0);
}

static Entry make_entry(const BpfBackend *b, const Entry *place, const Binding *binding) {
        Entry entry = {
                .stop = binding->resolved.sites.how,
                .has_frame = binding->resolved.sites.has_frame,
                .stop_depth = stop_depth_of(&binding->resolved.sites.exits),
                .is_keyed = binding->resolved.sites.key != NULL,
                .is_event = binding_has_events(binding),
                .has_call_events = binding_has_call_events(binding),
                .owner = binding->lent.user,
                .user = { .binding = (uint32_t) (place - b->entries),
                          .unit = TLOB_UNIT_NONE,
                          .is_mark = binding_is_of_mark(binding) && !binding->resolved.sites.key },
        };

        memcpy(entry.budget_ns, binding->budget_ns, sizeof(entry.budget_ns));
        return entry;
}

/* Its books go on. Returns 1, 0 if it cannot take that place, or a negative errno. */
static int take_over(BpfBackend *b, Entry *place, const Binding *binding, const BindingFile *file,
                     char **ret_reason) {
        Entry entry = make_entry(b, place, binding);
        int r;

        entry.generation = place->generation;
        entry.base = place->base;
        r = bpf_entry_confine_again(b, &entry, binding, place->user.unit);
        if (r == -ENOENT) {
                bpf_entry_release(b, &entry);
                return 0;
        }
        if (r >= 0)
                r = bpf_entry_attach(b, &entry, binding, file, ret_reason);
        if (r < 0) {
                bpf_entry_release(b, &entry);
                return r;
        }
        entry.taken_over = true;
        *place = entry;
        entry_publish_again(b, place);
        return 1;
}

static int begin(BpfBackend *b, Entry *place, const Binding *binding, const BindingFile *file,
                 char **ret_reason) {
        int r;

        *place = make_entry(b, place, binding);
        place->generation = next_generation(b);
        r = bpf_entry_clear_books(b, place->user.binding);
        if (r >= 0)
                r = bpf_entry_confine(b, place, binding);
        if (r >= 0)
                r = bpf_entry_attach(b, place, binding, file, ret_reason);
        if (r < 0) {
                bpf_entry_release(b, place);
                *place = (Entry) {};
                return r;
        }
        entry_publish(b, place);
        bpf_entry_keep(b, place, binding);
        if (b->carried && b->kept)
                (void) carried_give(b->carried, b->kept, place->user.binding);
        return 0;
}

/* A record of the ring buffer takes that much at most, with a stack. */
#define RECORD_SIZE (sizeof(struct tlob_record) + sizeof(struct tlob_stack_record) + 16)

/* Half of the ring buffer is for all bindings in equal shares, of one record at least. */
static void share_ring(BpfBackend *b) {
        struct tlob_bpf__bss *bss = b->programs.bpf->bss;
        size_t half = b->records.ring.size / 2, n = 0, share;

        for (size_t i = 0; i < b->n_entries; i++)
                n += b->entries[i].generation != 0;
        share = n > 0 ? half / RECORD_SIZE / n : 0;
        __atomic_store_n(&bss->ring_share, share > 0 ? (uint32_t) share : 1, __ATOMIC_RELAXED);
        __atomic_store_n(&bss->ring_common, half, __ATOMIC_RELAXED);
}

/* In the place of the predecessor's, or in a free one. */
static int put(BpfBackend *b, const Binding *binding, const BindingFile *file, Entry **ret_entry,
               char **ret_reason) {
        Entry *entry = bpf_entry_find_inherited(b, binding);
        int r;

        *ret_entry = entry;
        r = entry ? take_over(b, entry, binding, file, ret_reason) : 0;
        if (r != 0)
                return r;
        *ret_entry = entry = find_free_entry(b);
        if (!entry) {
                (void) sentence_error(0, ret_reason,
                                      "There are %zu bindings already; raise BindingsMax= in "
                                      "tlobd.conf",
                                      b->n_entries);
                return -ENOSPC;
        }
        r = bpf_memory_reach(&b->bindings, (size_t) (entry - b->entries) + 1);
        return r < 0 ? r : begin(b, entry, binding, file, ret_reason);
}

static int bpf_backend_add(Backend *backend, const Binding *binding, const BindingFile *file,
                           uint32_t *ret_index, char **ret_reason) {
        BpfBackend *b = BPF(backend);
        Entry *entry;
        int r;

        r = bpf_backend_leave_rewritten(b, binding);
        if (r < 0)
                return r;
        bpf_backend_begin_change(b);
        r = put(b, binding, file, &entry, ret_reason);
        bpf_backend_end_change(b);
        if (r < 0)
                return r;
        share_ring(b);
        lane_table_recall(&b->lanes);
        *ret_index = entry->user.binding;
        return 0;
}

static int bpf_backend_complete(Backend *backend) {
        BpfBackend *b = BPF(backend);
        int r;

        r = unit_table_complete(&b->units);
        return r < 0 ? r : process_reader_run_due_round(&b->processes);
}

static int bpf_backend_remove(Backend *backend, uint32_t index, Statistics *ret_final,
                              Histogram *histogram) {
        BpfBackend *b = BPF(backend);
        Statistics final = {}, removed = {};
        Entry *entry = &b->entries[index];
        int r;

        entry->retired = true;
        bpf_entry_forget(b, entry);
        entry_withdraw(b, entry);
        lane_table_withdraw(&b->lanes, entry->generation);
        bpf_entry_detach(b, entry);
        bpf_entry_release(b, entry);

        /* First, so that one that ends by itself meanwhile is in the books that are read then. */
        entry->has_windows = bpf_entry_end_windows(b, entry, &removed, histogram) < 0;
        r = bpf_entry_read_statistics(b, entry, removed.counters.ended[TLOB_END_REMOVED], &final);
        if (r >= 0 && histogram)
                r = bpf_entry_read_histogram(b, entry, histogram);
        statistics_add(&final, &removed);
        final.open = 0;
        /* They do not go on: how long they were is all that nobody will know. */
        if (entry->has_windows)
                final.counters.ended[TLOB_END_REMOVED] += books_get_open(&final.counters);
        if (ret_final)
                *ret_final = final;
        return r;
}

static int bpf_backend_set_cgroup(Backend *backend, uint32_t index, uint64_t cgroup_id,
                                  unsigned level) {
        BpfBackend *b = BPF(backend);

        return bpf_entry_set_cgroup(b, &b->entries[index], cgroup_id, level);
}

static int check_slot(uint32_t slot, void *userdata) {
        return bpf_programs_check_slot(userdata, slot);
}

static int bpf_backend_set_budget(Backend *backend, uint32_t index,
                                  const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        BpfBackend *b = BPF(backend);
        Entry *entry = &b->entries[index];
        int r;

        memcpy(entry->budget_ns, budget_ns, sizeof(entry->budget_ns));
        entry_write_budgets(b, entry);
        lane_table_set_budget(&b->lanes, entry->generation, entry->budget_ns);
        r = task_table_visit(&b->tasks, entry->generation, check_slot, &b->programs);
        return r >= 0 && entry->is_keyed ? bpf_programs_tend_keyed(&b->programs) : r;
}

static int bpf_backend_get_fd(Backend *backend) {
        return BPF(backend)->epoll_fd;
}

/* Windows of a removed binding that could not be reached then: no other may be taken for it. */
static void end_windows_again(BpfBackend *b, Entry *entry) {
        Statistics unused = {};

        entry->has_windows = bpf_entry_end_windows(b, entry, &unused, NULL) < 0;
}

/* What removed bindings had to report has been: their places are free, and their shares. */
static void release_retired(BpfBackend *b) {
        bool any = false;

        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].has_windows) {
                        end_windows_again(b, &b->entries[i]);
                } else if (b->entries[i].retired) {
                        b->entries[i] = (Entry) {};
                        any = true;
                }
        if (any)
                share_ring(b);
}

/*
 * There was none for a window with a key: those make some whose end was never passed, as it seems.
 * The programs wake us for that at most once in TLOB_STALE_NS.
 */
static void make_room_for_keys(BpfBackend *b) {
        struct tlob_bpf__bss *bss = b->programs.bpf->bss;
        uint64_t refused_ns = __atomic_load_n(&bss->keyed_refused_ns, __ATOMIC_RELAXED);

        if (refused_ns == b->keyed_refused_ns)
                return;
        b->keyed_refused_ns = refused_ns;
        __atomic_store_n(&bss->keyed_stale_ns, now_ns(), __ATOMIC_RELAXED);
        (void) bpf_programs_tend_keyed(&b->programs);
        __atomic_store_n(&bss->keyed_stale_ns, 0, __ATOMIC_RELAXED);
}

static int bpf_backend_dispatch(Backend *backend, BackendReportHandler handler, void *userdata) {
        BpfBackend *b = BPF(backend);
        bool all = false;
        int n, r;

        b->handler = handler;
        b->userdata = userdata;
        bpf_backend_leave_predecessor(b);
        /* That processes cannot be looked for keeps no report back. */
        r = process_reader_dispatch(&b->processes);
        if (b->joins)
                join_server_dispatch(b->joins);
        n = record_reader_dispatch(&b->records, DISPATCH_USEC, &all);
        if (all)
                release_retired(b);
        make_room_for_keys(b);
        return r < 0 ? r : n;
}

static int bpf_backend_flush(Backend *backend, BackendReportHandler handler, void *userdata) {
        BpfBackend *b = BPF(backend);
        int n, r;

        b->handler = handler;
        b->userdata = userdata;
        bpf_backend_leave_predecessor(b);
        r = process_reader_dispatch(&b->processes);
        if (b->joins)
                join_server_dispatch(b->joins);
        n = record_reader_flush(&b->records);
        if (n >= 0)
                release_retired(b);
        return r < 0 ? r : n;
}

static void set_limit(struct tlob_limit *limit, uint64_t interval_ns, uint64_t n) {
        uint64_t each = n > 0 ? interval_ns / n : 0;

        __atomic_store_n(&limit->burst_ns, interval_ns - each, __ATOMIC_RELAXED);
        __atomic_store_n(&limit->each_ns, each, __ATOMIC_RELAXED);
}

static void bpf_backend_set_report_limit(Backend *backend, const ReportLimit *limit) {
        struct tlob_bpf__bss *bss = BPF(backend)->programs.bpf->bss;

        set_limit(&bss->report_limit, limit->interval_ns, limit->n);
        set_limit(&bss->overall_limit, limit->interval_ns, limit->n_overall);
}

static uint64_t bpf_backend_lost(Backend *backend) {
        return __atomic_load_n(&BPF(backend)->programs.bpf->bss->n_lost, __ATOMIC_RELAXED);
}

static int bpf_backend_statistics(Backend *backend, uint32_t index, Statistics *ret) {
        BpfBackend *b = BPF(backend);

        return bpf_entry_read_statistics(b, &b->entries[index], 0, ret);
}

static int bpf_backend_histogram(Backend *backend, uint32_t index, Histogram *histogram) {
        BpfBackend *b = BPF(backend);

        return bpf_entry_read_histogram(b, &b->entries[index], histogram);
}

static int bpf_backend_reset_statistics(Backend *backend, uint32_t index) {
        BpfBackend *b = BPF(backend);
        Entry *entry = &b->entries[index];
        Statistics now;
        int r;

        entry->base = (Counters) {};
        r = bpf_entry_read_statistics(b, entry, 0, &now);
        if (r < 0)
                return r;

        /* The windows that are open: whichever those are, the books balance when all have ended. */
        entry->base = now.counters;
        entry->base.starts = books_get_ended(&now.counters);
        entry->cost_base_ns = bpf_entry_get_cost(b, entry);
        r = bpf_entry_reset_histogram(b, entry);
        if (r < 0)
                return r;
        lane_table_forget_longest(&b->lanes, entry->generation);
        bpf_entry_keep_base(b, entry);
        return bpf_entry_clear_maximum(b, index);
}

static uint64_t bpf_backend_cost(Backend *backend, uint32_t index) {
        BpfBackend *b = BPF(backend);

        return index == BACKEND_NO_INDEX ? bpf_backend_get_cost(b)
                                         : bpf_entry_get_cost(b, &b->entries[index]);
}

static const ProbePrices *bpf_backend_prices(Backend *backend) {
        return &BPF(backend)->price.hit;
}

static bool bpf_backend_take_alarm(Backend *backend) {
        return __atomic_exchange_n(&BPF(backend)->programs.bpf->bss->hits_alarm, 0,
                                   __ATOMIC_RELAXED) > 0;
}

static char *bpf_backend_reach(Backend *backend, uint32_t index) {
        BpfBackend *b = BPF(backend);

        return bpf_entry_describe_reach(b, &b->entries[index]);
}

static bool can_limit_to_processes(void) {
        return uprobe_multi_is_supported() && uprobe_multi_takes_processes();
}

static bool bpf_backend_can_spare_others(const Binding *binding, const BindingFile *file) {
        return binding->unit && binding_has_file(binding) && !file->is_program &&
               can_limit_to_processes();
}

static bool bpf_backend_taxes_unwinding(void) {
        return !can_limit_to_processes();
}

static bool bpf_backend_spares_others(Backend *backend, uint32_t index) {
        BpfBackend *b = BPF(backend);

        return bpf_entry_spares_others(b, &b->entries[index]);
}

static const char *const *bpf_backend_limitations(Backend *backend) {
        BpfBackend *b = BPF(backend);

        return limitations_update(&b->limitations, &b->programs, &b->price,
                                  b->pins && b->programs.multi, b->late.user_events);
}

/* Said once: what is missed from then on is counted. */
static int bpf_backend_next_notice(Backend *backend, BackendNotice *ret) {
        BpfBackend *b = BPF(backend);
        const struct tlob_bpf__bss *bss = b->programs.bpf->bss;
        char *text;

        if (!b->refusal_told && __atomic_load_n(&bss->n_tasks_refused, __ATOMIC_RELAXED) > 0) {
                text = sentence_make("More than %zu threads have windows open at once; windows of "
                                     "further threads are not measured: raise TasksMax= in "
                                     "tlobd.conf",
                                     b->tasks.memory.n);
                b->refusal_told = text;
        } else if (!b->keyed_refusal_told &&
                   __atomic_load_n(&bss->n_keyed_refused, __ATOMIC_RELAXED) > 0) {
                text = sentence_make("More windows with keys are open at once than there is room "
                                     "for, which are %zu of a binding; further ones are not "
                                     "measured: name all places where they end, or raise TasksMax= "
                                     "in tlobd.conf",
                                     b->tasks.memory.n / TLOB_KEYED_SHARE);
                b->keyed_refusal_told = text;
        } else
                return 0;
        if (!text)
                return 0;
        *ret = (BackendNotice) { .level = LOG_WARNING, .index = BACKEND_NO_INDEX, .text = text };
        return 1;
}

static char *bpf_backend_remark(Backend *backend, uint32_t index) {
        BpfBackend *b = BPF(backend);

        return bpf_entry_remark(b, &b->entries[index]);
}

static int bpf_backend_can(const Binding *binding, const BindingFile *file, char **ret_reason) {
        return bpf_events_check(binding, ret_reason);
}

static const char *bpf_backend_deadline_mode(Backend *backend) {
        static const char *const names[] = {
                [DEADLINE_UPROBE] = "uprobe",
                [DEADLINE_FENTRY] = "fentry",
                [DEADLINE_SWITCH_TICK] = "switch-tick",
        };

        return names[BPF(backend)->programs.mode];
}

static bool bpf_backend_is_removing(Backend *backend) {
        return detacher_is_busy(BPF(backend)->detacher);
}

const BackendOps backend_bpf_ops = {
        .name = "bpf",
        .capabilities = BACKEND_CAN_RETURN | BACKEND_CAN_STATE_BUDGET | BACKEND_CAN_MINIMUM |
                        BACKEND_CAN_INFINITE | BACKEND_CAN_CONFINE | BACKEND_CAN_AWAIT |
                        BACKEND_CAN_CALL | BACKEND_CAN_USDT | BACKEND_CAN_EVENT |
                        BACKEND_CAN_COUNT | BACKEND_CAN_KEY | BACKEND_CAN_LEND,
        .probe = bpf_backend_probe,
        .can = bpf_backend_can,
        .new = bpf_backend_new,
        .free = bpf_backend_free,
        .add = bpf_backend_add,
        .finish = bpf_backend_finish,
        .keep = bpf_backend_keep,
        .find_kept = bpf_backend_find_kept,
        .complete = bpf_backend_complete,
        .remove = bpf_backend_remove,
        .is_removing = bpf_backend_is_removing,
        .set_cgroup = bpf_backend_set_cgroup,
        .set_budget = bpf_backend_set_budget,
        .get_fd = bpf_backend_get_fd,
        .dispatch = bpf_backend_dispatch,
        .flush = bpf_backend_flush,
        .set_report_limit = bpf_backend_set_report_limit,
        .lost = bpf_backend_lost,
        .kept_lost = bpf_backend_kept_lost,
        .kept_unwritten = bpf_backend_kept_unwritten,
        .kept_limit = bpf_backend_kept_limit,
        .has_carried = bpf_backend_has_carried,
        .keep_past = bpf_backend_keep_past,
        .add_past = bpf_backend_add_past,
        .statistics = bpf_backend_statistics,
        .histogram = bpf_backend_histogram,
        .reset_statistics = bpf_backend_reset_statistics,
        .next_notice = bpf_backend_next_notice,
        .remark = bpf_backend_remark,
        .cost = bpf_backend_cost,
        .prices = bpf_backend_prices,
        .take_alarm = bpf_backend_take_alarm,
        .reach = bpf_backend_reach,
        .can_spare_others = bpf_backend_can_spare_others,
        .spares_others = bpf_backend_spares_others,
        .taxes_unwinding = bpf_backend_taxes_unwinding,
        .limitations = bpf_backend_limitations,
        .deadline_mode = bpf_backend_deadline_mode,
};
