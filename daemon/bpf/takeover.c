/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * How one daemon takes over from another, which has ended in whatever way, while all that it had in
 * the kernel goes on: its maps and hooks are used as they are. A binding of the same name at the
 * same places keeps its index and generation, and with them its books and open windows. It gets
 * probes of its own; those of the predecessor are told apart by their cookies, count too as long as
 * they are there, and go when all bindings are in place. So at no moment a call is missed, and as
 * long as a hit of the old ones may be underway, none is taken for a second call.
 *
 * Not taken over: how far probes reach and how long processes went without (counted anew), and
 * which processes have probes on unwinding (told anew, with their next window).
 */

#include <sys/epoll.h>

#include "bpf/backend.h"
#include "bpf/kept-past.h"

static KeptPlaces places_of(const Binding *binding) {
        const BindingSites *sites = &binding->resolved.sites;
        KeptPlaces places = {
                .device = binding->resolved.device,
                .inode = binding->resolved.inode,
                .size = binding->resolved.stamp.size,
                .mtime_ns = binding->resolved.stamp.mtime_ns,
                .start = sites->start.offset,
                .stop = (uint8_t) sites->how,
                .start_event = (uint8_t) sites->start_event,
                .stop_event = (uint8_t) sites->stop_event,
                .has_frame = sites->has_frame,
                .key = sites->key ? (uint8_t) (sites->key->number | binding->key.size << 4) : 0,
        };

        if (sites->how == TLOB_STOP_PLACE)
                places.stops = sites->stop.offset;
        if (sites->how == TLOB_STOP_EXITS || sites->how == TLOB_STOP_GO)
                places.stops = kept_hash(sites->exits.offsets,
                                         sites->exits.n * sizeof(*sites->exits.offsets)) +
                               sites->exits.depth;
        return places;
}

/* Those that say where it measures. */
static uint64_t hash_keys(const Binding *binding) {
        const char *const keys[] = { binding->executable, binding->view.program, binding->start,
                                     binding->stop };
        uint64_t hash = 0;

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                hash = hash * 31 + kept_hash(keys[i] ?: "", keys[i] ? strlen(keys[i]) : 0);
        return hash;
}

void bpf_entry_keep(BpfBackend *b, const Entry *entry, const Binding *binding) {
        const char *unit = binding->unit ?: "";
        KeptBinding *kept;

        if (!b->kept)
                return;
        kept = &b->kept->bindings[entry->user.binding];
        __atomic_store_n(&kept->generation, 0, __ATOMIC_SEQ_CST);
        kept->limit = (BindingLimit) {};
        kept_set_past(b->kept, entry->user.binding, &(Past) {});
        kept->has_base_lengths = false;
        kept->name[0] = kept->unit[0] = '\0';
        if (strlen(binding->name) >= sizeof(kept->name) || strlen(unit) >= sizeof(kept->unit))
                return;
        kept->places = places_of(binding);
        kept->keys = hash_keys(binding);
        kept_set_build_id(kept, binding->resolved.build_id);
        kept->base = entry->base;
        /* Those of a user are chosen by the user, and whoever comes back asks for a new one. */
        if (!entry->owner) {
                strcpy(kept->name, binding->name);
                strcpy(kept->unit, unit);
        }
        __atomic_store_n(&kept->generation, entry->generation, __ATOMIC_RELEASE);
}

void bpf_entry_keep_base(BpfBackend *b, const Entry *entry) {
        uint32_t index = entry->user.binding;
        const Histogram *lengths = histogram_table_get_base(&b->histograms, index);

        if (!b->kept)
                return;
        b->kept->bindings[index].base = entry->base;
        if (lengths)
                b->kept->base_lengths[index] = *lengths;
        b->kept->bindings[index].has_base_lengths = lengths != NULL;
}

void bpf_entry_forget(BpfBackend *b, const Entry *entry) {
        if (b->kept)
                b->kept->bindings[entry->user.binding].generation = 0;
}

Entry *bpf_entry_find_inherited(BpfBackend *b, const Binding *binding) {
        KeptPlaces places;

        if (!b->is_taking_over)
                return NULL;
        places = places_of(binding);
        for (size_t i = 0; i < b->n_entries; i++) {
                const KeptBinding *kept = &b->kept->bindings[i];

                if (b->entries[i].inherited && kept->generation == b->entries[i].generation &&
                    streq(kept->name, binding->name) && streq(kept->unit, binding->unit ?: "") &&
                    memcmp(&kept->places, &places, sizeof(places)) == 0)
                        return &b->entries[i];
        }
        return NULL;
}

static bool is_latter(const BpfBackend *b, const Entry *entry, const KeptBinding *former) {
        const KeptBinding *kept = &b->kept->bindings[entry->user.binding];

        if (!entry->generation || entry->inherited || entry->retired)
                return false;
        return entry->taken_over ? kept_is_same(kept, former) : kept_has_same_keys(kept, former);
}

/*
 * A binding that the daemon before this one had in another file, be it that the one at its path was
 * replaced since, or that it had both: what was measured there is its past. Of two files that we
 * have, the one at its path was the last to get probes.
 */
static const Entry *find_latter(const BpfBackend *b, const Entry *entry) {
        const KeptBinding *former = &b->kept->bindings[entry->user.binding];
        const Entry *latter = NULL;

        for (size_t i = 0; i < b->n_entries; i++)
                if (is_latter(b, &b->entries[i], former) &&
                    (!latter || b->entries[i].generation > latter->generation))
                        latter = &b->entries[i];
        return latter;
}

/* What was counted at those places is the past of the binding elsewhere. latter: NULL: it comes. */
static int become_past(BpfBackend *b, const Entry *entry, const Entry *latter,
                       const Statistics *final, const Histogram *lengths) {
        _cleanup_(past_done) Past past = {};
        uint32_t index = entry->user.binding;
        const KeptBinding *kept = &b->kept->bindings[index];
        int r;

        r = kept_add_past(b->kept, index, &past);
        statistics_add(&past.statistics, final);
        if (r >= 0)
                r = past_add_lengths(&past, kept_get_build_id(kept), lengths);
        if (r >= 0 && !latter)
                return carried_add(&b->carried, kept, &past);
        if (r >= 0)
                r = kept_add_past(b->kept, latter->user.binding, &past);
        if (r >= 0)
                kept_set_past(b->kept, latter->user.binding, &past);
        return r;
}

/* Nobody has it in the configuration any more, or it is at other places now, or soon. */
static void remove_inherited(BpfBackend *b, Entry *entry) {
        const Entry *latter = find_latter(b, entry);
        uint32_t index = entry->user.binding;
        Statistics final = {}, removed = {};
        Histogram lengths = {};

        __atomic_store_n(&bpf_backend_shared(b, index)->generation, 0, __ATOMIC_SEQ_CST);
        lane_table_withdraw(&b->lanes, entry->generation);
        bpf_entry_forget(b, entry);
        /* What ends by itself until then is in the books. */
        bpf_entry_end_windows(b, entry, &removed, &lengths);
        if (latter || b->is_taking_over) {
                (void) bpf_entry_read_books(b, entry, &final);
                books_subtract_gone(&final.counters, &entry->base);
                (void) bpf_entry_read_histogram(b, entry, &lengths);
                statistics_add(&final, &removed);
                (void) become_past(b, entry, latter, &final, &lengths);
        }
        /* Its place is free when what it had to report has been. */
        entry->inherited = false;
        entry->retired = true;
}

typedef struct Detaching {
        const Pins *pins;
        Detacher *detacher;
} Detaching;

static void detach_inherited(uint64_t pin, void *userdata) {
        const Detaching *detaching = userdata;
        Uprobe *uprobe = uprobe_inherit(detaching->pins, pin);

        if (!uprobe)
                pins_remove(detaching->pins, pin);
        detacher_push(detaching->detacher, uprobe);
}

static bool was_rewritten(const KeptPlaces *before, const KeptPlaces *now) {
        return before->device == now->device && before->inode == now->inode &&
               (before->size != now->size || before->mtime_ns != now->mtime_ns);
}

/*
 * A probe has a copy of the instruction that was at its place when it was set, and shares that with
 * one that is set there before it goes. So when somebody has written in the file since, the old
 * ones go first, however long that takes.
 */
int bpf_backend_leave_rewritten(BpfBackend *b, const Binding *binding) {
        _cleanup_(detacher_freep) Detacher *detacher = NULL;
        KeptPlaces places = places_of(binding);
        bool any = false;
        int r;

        for (size_t i = 0; b->is_taking_over && i < b->n_entries; i++)
                if (b->entries[i].inherited &&
                    was_rewritten(&b->kept->bindings[i].places, &places)) {
                        remove_inherited(b, &b->entries[i]);
                        any = true;
                }
        if (!any)
                return 0;
        r = detacher_new(&detacher);
        if (r < 0)
                return r;
        pins_visit_inherited(b->pins, uprobe_file_group(places.device, places.inode),
                             detach_inherited, &(Detaching) { b->pins, detacher });
        return 0;
}

/*
 * Of two that are gone, the second may have been killed before it had probes for all of its
 * bindings: then those of the first are the ones that count.
 */
static void need_probes_of(BpfBackend *b, const struct tlob_binding *shared) {
        bool first = !b->was_complete && shared->start_cookie_before;

        site_table_need_inherited(&b->start_sites,
                                  first ? shared->start_cookie_before : shared->start_cookie);
        site_table_need_inherited(&b->stop_sites,
                                  first ? shared->stop_cookie_before : shared->stop_cookie);
}

static int watch_predecessor(const BpfBackend *b) {
        if (epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, detacher_get_fd(b->predecessor),
                      &(struct epoll_event) { .events = EPOLLIN }) < 0)
                return -errno;
        return 0;
}

static int inherit_lengths(BpfBackend *b) {
        int r = histogram_table_inherit(&b->histograms);

        for (uint32_t i = 0; r >= 0 && i < b->n_entries; i++)
                if (bpf_backend_shared(b, i)->generation && b->kept->bindings[i].has_base_lengths)
                        r = histogram_table_set_base(&b->histograms, i, &b->kept->base_lengths[i]);
        return r;
}

static bool is_of_calls(const KeptPlaces *places) {
        return places->stop == TLOB_STOP_CALL || trace_event_is_of_call(places->start_event) ||
               trace_event_is_of_call(places->stop_event);
}

/* As soon as there is a pair of ours on system calls, for a moment both pairs tell of a call. */
static void expect_both_pairs(const BpfBackend *b, uint32_t index, struct tlob_binding *shared) {
        if (!is_of_calls(&b->kept->bindings[index].places) ||
            (!b->was_complete && shared->start_cookie_before))
                return;
        __atomic_store_n(&shared->stop_cookie_before, shared->stop_cookie, __ATOMIC_RELEASE);
        __atomic_store_n(&shared->start_cookie_before, shared->start_cookie, __ATOMIC_RELEASE);
}

int bpf_backend_inherit(BpfBackend *b) {
        KeptCommon *common = b->kept->common;
        int r;

        b->is_taking_over = true;
        b->was_complete = common->is_complete;
        common->is_complete = false;
        for (size_t i = 0; i < b->n_entries; i++) {
                struct tlob_binding *shared = bpf_backend_shared(b, i);
                Entry *entry = &b->entries[i];

                if (!shared->generation)
                        continue;
                need_probes_of(b, shared);
                expect_both_pairs(b, (uint32_t) i, shared);
                *entry = (Entry) {
                        .generation = shared->generation,
                        .inherited = true,
                        .is_keyed = shared->is_keyed,
                        .user = { .binding = (uint32_t) i, .unit = shared->unit },
                        .base = b->kept->bindings[i].base,
                };
                memcpy(entry->budget_ns, shared->budget_ns, sizeof(entry->budget_ns));
                /* Windows are told apart by it: it must not come again. */
                if (common->generation < entry->generation)
                        common->generation = entry->generation;
        }
        calls_inherit(&b->calls, b->was_complete);
        site_table_drop_unneeded(&b->start_sites);
        site_table_drop_unneeded(&b->stop_sites);
        r = inherit_lengths(b);
        if (r < 0)
                return r;
        r = detacher_new(&b->predecessor);
        if (r >= 0)
                r = watch_predecessor(b);
        return r;
}

/* The start first: no window may open that cannot end. */
static void leave_probes_before(struct tlob_binding *shared) {
        __atomic_store_n(&shared->start_cookie_before, 0, __ATOMIC_RELEASE);
        __atomic_store_n(&shared->stop_cookie_before, 0, __ATOMIC_RELEASE);
}

void bpf_backend_leave_predecessor(BpfBackend *b) {
        if (!b->predecessor || b->is_taking_over || detacher_is_busy(b->predecessor))
                return;
        b->predecessor = detacher_free(b->predecessor);
        for (size_t i = 0; i < b->n_entries; i++)
                leave_probes_before(bpf_backend_shared(b, i));
        site_table_drop_inherited(&b->start_sites);
        site_table_drop_inherited(&b->stop_sites);
        calls_drop_inherited(&b->calls);
}

int bpf_backend_finish(Backend *backend) {
        BpfBackend *b = BPF(backend);

        b->carried = carried_free(b->carried);
        if (!b->is_taking_over)
                return 0;
        /* Whoever had probes of the predecessor has ours now. */
        (void) process_reader_run_due_round(&b->processes);
        b->is_taking_over = false;
        b->kept->common->is_complete = true;
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].inherited)
                        remove_inherited(b, &b->entries[i]);
        pins_end_inherited(b->pins, detach_inherited, &(Detaching) { b->pins, b->predecessor });
        unit_table_drop_inherited(&b->units);
        bpf_backend_leave_predecessor(b);
        return 1;
}

int bpf_backend_keep(Backend *backend, int ret_fds[static BACKEND_N_KEPT]) {
        const BpfBackend *b = BPF(backend);

        if (b->keep_error < 0)
                return b->keep_error;
        if (!b->kept)
                return -EOPNOTSUPP;
        ret_fds[0] = pins_get_fd(b->pins);
        ret_fds[1] = b->kept->fd;
        return 0;
}

int bpf_backend_find_kept(int keep_fd, int ret_fds[static BACKEND_N_KEPT]) {
        return pin_directory_find(keep_fd, &ret_fds[0], &ret_fds[1]);
}

bool bpf_backend_has_carried(Backend *backend) {
        return BPF(backend)->carried;
}

uint64_t *bpf_backend_kept_lost(Backend *backend) {
        const BpfBackend *b = BPF(backend);

        return b->kept ? &b->kept->common->lost : NULL;
}

uint64_t *bpf_backend_kept_unwritten(Backend *backend) {
        const BpfBackend *b = BPF(backend);

        return b->kept ? &b->kept->common->unwritten : NULL;
}

BindingLimit *bpf_backend_kept_limit(Backend *backend, uint32_t index) {
        const BpfBackend *b = BPF(backend);

        return b->kept ? &b->kept->bindings[index].limit : NULL;
}

void bpf_backend_keep_past(Backend *backend, uint32_t index, const Past *past) {
        const BpfBackend *b = BPF(backend);

        if (b->kept)
                kept_set_past(b->kept, index, past);
}

int bpf_backend_add_past(Backend *backend, uint32_t index, Past *past) {
        const BpfBackend *b = BPF(backend);

        return b->kept ? kept_add_past(b->kept, index, past) : 0;
}
