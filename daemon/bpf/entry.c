/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Where a binding measures: the unit that it is confined to, and the sites of its probes. A library
 * is used by all of the machine: there, a binding that is confined has its probes in the processes
 * of its unit only, where the kernel can do that. A program is mostly its unit's own: a probe in
 * the file is there before the first instruction.
 */

#include <bpf/libbpf.h>
#include <sys/stat.h>

#include "base/sentence.h"
#include "base/unit-name.h"
#include "bpf/backend.h"
#include "bpf/crowd.h"
#include "bpf/window-keys.h"
#include "cgroup.h"

static bool is_by_process(const BpfBackend *b, const Entry *entry) {
        return b->programs.by_process && entry->user.unit != TLOB_UNIT_NONE && !entry->in_program &&
               entry->stop != TLOB_STOP_CALL && !entry->is_event;
}

/*
 * What others run is no matter of a user: there, even the program of his unit has its probes in the
 * processes of the unit only.
 */
static int check_owner(const BpfBackend *b, Entry *entry, const Binding *binding,
                       const BindingFile *file, char **ret_reason) {
        struct stat st;

        if (!entry->owner)
                return 0;
        if (!b->programs.by_process)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "This kernel cannot limit probes to processes (Linux 6.10), "
                                      "and so none are set for users");
        if (fstat(file->fd, &st) < 0)
                return -errno;
        if (st.st_uid != entry->owner)
                entry->in_program = false;
        return 0;
}

/* What others have had there does not count. */
static void begin_reach(BpfBackend *b, Entry *entry) {
        SiteReach reach = site_table_get_reach(&b->start_sites, entry->start_site);

        books_set_reach(&entry->base, &reach);
        entry->cost_base_ns = bpf_entry_get_cost(b, entry);
        if (!entry->by_process)
                return;
        unit_table_follow(&b->units, entry->user.unit);
        process_reader_request_round(&b->processes);
}

static SiteKind kind_of(const Entry *entry, TraceEventKind event) {
        switch (event) {
        case TRACE_EVENT_NONE:
                return entry->stop == TLOB_STOP_CALL ? SITE_CALL : SITE_FILE;
        case TRACE_EVENT_CALL_BEGIN:
                return SITE_CALL_BEGIN;
        case TRACE_EVENT_CALL_END:
                return SITE_CALL_END;
        case TRACE_EVENT_USER:
                return SITE_USER_EVENT;
        default:
                return SITE_EVENT;
        }
}

/*
 * A call is told without a trap, at a price of its own (calls.c): what remains is the work of a
 * window, at both ends. Another event of the kernel has no price of its own, and takes as much
 * again at each end; what the instruction under one that is a probe is, is not known.
 */
static uint64_t price_of(const BpfBackend *b, SiteKind kind, TraceEventKind event,
                         ProbeKind probe) {
        switch (kind) {
        case SITE_CALL:
                return 2 * b->price.window_ns;
        case SITE_CALL_BEGIN:
        case SITE_CALL_END:
                return b->price.window_ns;
        case SITE_EVENT:
        case SITE_USER_EVENT:
                return event == TRACE_EVENT_PROBE ? b->price.hit.ns[PROBE_STEPPED]
                                                  : 2 * b->price.window_ns;
        default:
                return b->price.hit.ns[probe];
        }
}

/*
 * In a library, each process has a probe of its own at the place: as soon as there are two, none of
 * the programs returns in the place of a task (return.bpf.h), and the kernel steps.
 */
static ProbeKind kind_at_worst(const Entry *entry, ProbeKind kind) {
        return entry->by_process && kind == PROBE_RETURN ? PROBE_STEPPED : kind;
}

typedef struct SiteKeys {
        SiteKey start;
        SiteKey stop;
        uint64_t *places[2]; /* that they refer to, besides the binding's; NULL: none */
} SiteKeys;

static void site_keys_done(SiteKeys *keys) {
        free(keys->places[0]);
        free(keys->places[1]);
        *keys = (SiteKeys) {};
}

static int key_take_site(SiteKey *key, const ElfSite *site, uint64_t **places) {
        size_t n = site->n_places;

        if (n == 0) {
                key->offsets = &site->offset;
                key->n_offsets = 1;
                return 0;
        }
        *places = calloc(2 * n, sizeof(**places));
        if (!*places)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                (*places)[i] = site->places[i].offset;
                (*places)[n + i] = site->places[i].semaphore;
                if (site->places[i].semaphore)
                        key->semaphores = *places + n;
        }
        key->offsets = *places;
        key->n_offsets = n;
        return 0;
}

static int make_keys(const BpfBackend *b, const Entry *entry, const Binding *binding,
                     SiteKeys *keys) {
        const BindingResolved *resolved = &binding->resolved;
        int r;

        *keys = (SiteKeys) {
                .start.by_process = entry->by_process,
                .start.owner = entry->owner,
                .start.dev = resolved->device,
                .start.inode = resolved->inode,
                .start.kind = kind_of(entry, resolved->sites.start_event),
        };
        keys->stop = keys->start;
        keys->stop.kind = kind_of(entry, resolved->sites.stop_event);
        keys->stop.is_return = entry->stop == TLOB_STOP_RETURN_PROBE;
        keys->start.price_ns =
                price_of(b, keys->start.kind, resolved->sites.start_event, resolved->start_kind);
        keys->stop.price_ns = price_of(b, keys->stop.kind, resolved->sites.stop_event,
                                       kind_at_worst(entry, resolved->stop_kind));

        r = key_take_site(&keys->start, &resolved->sites.start, &keys->places[0]);
        if (r < 0)
                return r;
        switch (entry->stop) {
        case TLOB_STOP_PLACE:
                return key_take_site(&keys->stop, &resolved->sites.stop, &keys->places[1]);
        case TLOB_STOP_EXITS:
        case TLOB_STOP_GO:
                keys->stop.offsets = resolved->sites.exits.offsets;
                keys->stop.n_offsets = resolved->sites.exits.n;
                return 0;
        default:
                keys->stop.offsets = keys->start.offsets;
                keys->stop.n_offsets = keys->start.n_offsets;
                return 0;
        }
}

static int attach_sites(BpfBackend *b, Entry *entry, const Binding *binding,
                        const BindingFile *file, char **ret_reason) {
        _cleanup_(site_keys_done) SiteKeys keys = {};
        int r;

        entry->in_program = file->is_program;
        r = check_owner(b, entry, binding, file, ret_reason);
        if (r < 0)
                return r;
        entry->by_process = is_by_process(b, entry);
        r = make_keys(b, entry, binding, &keys);
        /* The stop first: no window may open that cannot end. */
        if (r >= 0)
                r = site_table_join(&b->stop_sites, &keys.stop, file->fd, &entry->user,
                                    &entry->stop_site, ret_reason);
        if (r < 0) {
                entry->by_process = false;
                return r;
        }
        keys.start.partner = entry->by_process ? entry->stop_site + 1 : 0;
        r = site_table_join(&b->start_sites, &keys.start, file->fd, &entry->user,
                            &entry->start_site, ret_reason);
        if (r < 0) {
                site_table_leave(&b->stop_sites, entry->stop_site, &entry->user);
                entry->by_process = false;
                return r;
        }
        begin_reach(b, entry);
        return 0;
}

/* With the probes that tell when its windows lose their frames. */
int bpf_entry_attach(BpfBackend *b, Entry *entry, const Binding *binding, const BindingFile *file,
                     char **ret_reason) {
        int r;

        if (entry->is_keyed) {
                const WindowKey *key = binding->resolved.sites.key;

                r = window_keys_write(bpf_map__fd(b->programs.bpf->maps.key_places),
                                      entry->user.binding, &key->start, &key->stop);
                if (r < 0)
                        return r;
        }
        if (entry->has_frame) {
                r = unwind_table_join(&b->unwind);
                if (r < 0)
                        return r;
        }
        r = attach_sites(b, entry, binding, file, ret_reason);
        if (r < 0 && entry->has_frame)
                unwind_table_leave(&b->unwind);
        return r;
}

int bpf_entry_set_cgroup(BpfBackend *b, const Entry *entry, uint64_t cgroup_id, unsigned level) {
        int r;

        bpf_backend_begin_change(b);
        r = unit_table_set_cgroup(&b->units, entry->user.unit, cgroup_id,
                                  b->programs.root_level + level);
        bpf_backend_end_change(b);
        /* Those that are there already. */
        if (r >= 0 && unit_table_is_followed(&b->units, entry->user.unit))
                process_reader_request_round(&b->processes);
        return r;
}

/* A template, which stands for all its instances. */
static int confine_many(BpfBackend *b, Entry *entry, const Binding *binding) {
        _cleanup_free_ char *name = NULL;
        int r;

        r = cgroup_path_get_template(binding->cgroup.path, &name);
        if (r < 0)
                return r;
        r = unit_table_join(&b->units, binding->cgroup.path, name, &entry->user.unit);
        if (r < 0)
                return r;
        entry->user.many = true;
        return unit_table_set_template(&b->units, entry->user.unit, name,
                                       b->programs.root_level +
                                               cgroup_path_get_level(binding->cgroup.path));
}

/* Bindings of one spare go to the same instance. */
static int confine_spare(BpfBackend *b, Entry *entry, const Binding *binding) {
        _cleanup_free_ char *name = NULL, *spare = NULL;
        int r;

        r = cgroup_path_get_template(binding->cgroup.path, &name);
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

int bpf_entry_confine(BpfBackend *b, Entry *entry, const Binding *binding) {
        int r;

        if (!binding->unit && !binding->cgroup.id)
                return 0;
        if (binding->spare)
                return confine_spare(b, entry, binding);
        if (binding->unit && unit_name_is_template(binding->unit))
                return confine_many(b, entry, binding);
        /* Names can be aliases, the place of the cgroup is one. */
        r = unit_table_join(&b->units, binding->cgroup.path ?: binding->unit, binding->cgroup.path,
                            &entry->user.unit);
        if (r < 0)
                return r;
        return bpf_entry_set_cgroup(b, entry, binding->cgroup.id, binding->cgroup.level);
}

/*
 * Where the unit is, the programs know; what systemd has to say comes later, and perhaps under
 * another name.
 */
int bpf_entry_confine_again(BpfBackend *b, Entry *entry, const Binding *binding, uint32_t unit) {
        int r;

        if (!binding->unit || binding->spare || unit_name_is_template(binding->unit)) {
                r = bpf_entry_confine(b, entry, binding);
                return r < 0 || entry->user.unit == unit ? r : -ENOENT;
        }
        r = unit_table_join_again(&b->units, unit, binding->cgroup.path);
        if (r < 0)
                return r;
        entry->user.unit = unit;
        return binding->cgroup.id
                       ? bpf_entry_set_cgroup(b, entry, binding->cgroup.id, binding->cgroup.level)
                       : 0;
}

void bpf_entry_detach(BpfBackend *b, Entry *entry) {
        entry->reach = site_table_get_reach(&b->start_sites, entry->start_site);
        entry->cost_ns = bpf_entry_get_cost(b, entry) - entry->cost_base_ns;
        bpf_backend_begin_change(b);
        site_table_leave(&b->start_sites, entry->start_site, &entry->user);
        site_table_leave(&b->stop_sites, entry->stop_site, &entry->user);
        bpf_backend_end_change(b);
        if (entry->has_frame)
                unwind_table_leave(&b->unwind);
        if (entry->by_process)
                process_reader_request_round(&b->processes);
}

void bpf_entry_release(BpfBackend *b, const Entry *entry) {
        if (entry->by_process)
                unit_table_unfollow(&b->units, entry->user.unit);
        unit_table_leave(&b->units, entry->user.unit);
}

bool bpf_entry_spares_others(const BpfBackend *b, const Entry *entry) {
        return entry->by_process &&
               !site_table_get_reach(&b->start_sites, entry->start_site).is_wide &&
               !site_table_get_reach(&b->stop_sites, entry->stop_site).is_wide;
}

/* Hits after which what all of them were like is worth a remark. */
#define MANY_HITS 20

/* Ends come, but none of them has the key of a begin. */
static char *remark_key(const BpfBackend *b, const Entry *entry) {
        const Counters *c;
        Statistics now = {};

        if (bpf_entry_read_books(b, entry, &now) < 0)
                return NULL;
        books_subtract(&now.counters, &entry->base);
        c = &now.counters;
        if (c->starts < MANY_HITS || c->unmatched < MANY_HITS || c->in_budget + c->violated > 0)
                return NULL;
        return sentence_make("No end has the key of a begin: Key= is not the same thing at Start= "
                             "and Stop=. If it is a short integer, write its type, such as "
                             "Key=arg1:u32");
}

char *bpf_entry_remark(const BpfBackend *b, const Entry *entry) {
        if (entry->is_keyed && !entry->inherited)
                return remark_key(b, entry);
        if (!entry->is_event || entry->inherited ||
            !site_table_is_missed(&b->stop_sites, entry->stop_site, MANY_HITS))
                return NULL;
        return sentence_make("The event at which its windows would end was only hit in interrupts "
                             "and by threads of the kernel until now: write another Stop=");
}

char *bpf_entry_describe_reach(const BpfBackend *b, const Entry *entry) {
        SiteReach reach = site_table_get_reach(&b->start_sites, entry->start_site);
        char *text;
        int r;

        if (entry->is_event)
                r = asprintf(&text, "no program: the kernel reports its events");
        else if (entry->stop == TLOB_STOP_CALL)
                r = asprintf(&text, "no program: the kernel reports its system calls");
        else if (reach.is_wide)
                r = asprintf(&text,
                             "every process that maps the file, until its unit has no process: it "
                             "has or had more than %i at once, or that many new ones in a second",
                             CROWD_PROCESSES_MAX);
        else if (reach.by_process)
                r = asprintf(
                        &text, "the processes of its unit%s (%zu)",
                        site_table_is_shared(&b->start_sites, entry->start_site, entry->user.unit)
                                ? ", and of others that are measured there"
                                : "",
                        reach.n_processes);
        else if (entry->user.unit != TLOB_UNIT_NONE && !entry->in_program)
                r = asprintf(&text,
                             "every process that maps the file: this kernel cannot limit probes to "
                             "processes");
        else
                r = asprintf(&text, "every process that %s the file",
                             entry->in_program ? "executes" : "maps");
        return r < 0 ? NULL : text;
}
