/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_BACKEND_H
#define BPF_BACKEND_H

#include "backend/backend.h"
#include "bpf/books.h"
#include "bpf/calls.h"
#include "bpf/carried.h"
#include "bpf/detacher.h"
#include "bpf/histograms.h"
#include "bpf/join.h"
#include "bpf/kept.h"
#include "bpf/lanes.h"
#include "bpf/late-programs.h"
#include "bpf/layout.h"
#include "bpf/limitations.h"
#include "bpf/price.h"
#include "bpf/processes.h"
#include "bpf/programs.h"
#include "bpf/records.h"
#include "bpf/site-processes.h"
#include "bpf/sites.h"
#include "bpf/tasks.h"
#include "bpf/units.h"
#include "bpf/unwind.h"
#include "bpf/user-events.h"

/* What the files of this back end share: its state. */

/* A binding here; free when generation is 0. Its place in the array is its index in the maps. */
typedef struct Entry {
        uint64_t generation;
        uint32_t start_site;
        uint32_t stop_site;
        SiteUser user;
        uint64_t budget_ns[TLOB_N_BUDGETS];
        enum tlob_stop stop;
        bool has_frame;
        uint32_t stop_depth;   /* as in tlob_binding */
        bool is_keyed;         /* its windows have keys */
        bool by_process;       /* see SiteKey */
        bool in_program;       /* its file is no library */
        bool is_event;         /* it is between events of the kernel */
        bool has_call_events;  /* one of which a system call is */
        uint32_t owner;        /* the user whose tasks alone it measures; 0: everybody's */
        SiteReach reach;       /* of the start, when it was retired */
        bool retired;          /* removed, and its last reports not dispatched yet */
        bool has_windows;      /* it was, and some of its windows could not be ended yet */
        bool inherited;        /* of the daemon before this one; without sites of its own */
        bool taken_over;       /* it was */
        Counters base;         /* what was counted at the last reset */
        uint64_t cost_base_ns; /* what its probes had cost then, perhaps others' */
        uint64_t cost_ns;      /* and since, when it was retired */
} Entry;

typedef struct BpfBackend {
        Backend backend; /* first */
        BpfPrograms programs;
        LatePrograms late;
        RecordReader records;
        TaskTable tasks;
        LaneTable lanes;
        JoinServer *joins; /* NULL: nobody can join */
        size_t n_cpus;
        SiteTable start_sites;
        SiteTable stop_sites;
        Calls calls;
        UserEvents user_events;
        Crowd owned_crowds[OWNED_CROWDS]; /* see SiteProbes */
        ProcessReader processes;
        int epoll_fd;                /* of records, processes and those who join */
        Pins *pins;                  /* NULL: this kernel or sandbox has none */
        Kept *kept;                  /* for the next daemon; NULL: there is nothing to keep */
        int keep_error;              /* why that one cannot have it */
        uint32_t site_generation[2]; /* without kept */
        bool is_taking_over;         /* bindings of the daemon before this one may still come */
        bool was_complete;           /* that one had probes of its own for all of its bindings */
        Detacher *predecessor;       /* takes those out of the kernel; NULL: they have gone */
        Carried *carried;            /* of a daemon before this one, until finish(); or NULL */
        UnwindTable unwind;
        UnitTable units;
        HistogramTable histograms;
        BpfMemory bindings; /* shared with the programs, as far as there ever were any */
        Detacher *detacher;
        Entry *entries;
        size_t n_entries;
        uint64_t generation;

        Price price;
        Limitations limitations;
        bool refusal_told;         /* that there are too many threads */
        bool keyed_refusal_told;   /* or too many windows with keys */
        uint64_t keyed_refused_ns; /* for which of these refusals room was made last */

        /* During dispatch() and flush() */
        BackendReportHandler handler;
        void *userdata;
} BpfBackend;

static inline BpfBackend *BPF(Backend *backend) {
        return (BpfBackend *) backend;
}

/* What the programs see of a binding that is or was there. */
static inline struct tlob_binding *bpf_backend_shared(const BpfBackend *b, size_t index) {
        return (struct tlob_binding *) b->bindings.values + index;
}

/*
 * Between these, what is measured changes: until then nothing is remembered by tasks
 * (tlob_remembered), and what was remembered before is not believed any more.
 */
void bpf_backend_begin_change(const BpfBackend *b);
void bpf_backend_end_change(const BpfBackend *b);

/* As in BackendOps. */
int bpf_backend_probe(char **ret_reason);
int bpf_backend_new(const BackendConfig *config, Backend **ret, char **ret_reason);
Backend *bpf_backend_free(Backend *backend);

/*
 * Where it measures: its unit, its sites. Of those, confine comes first, and when one fails, what
 * it has done is undone. Errors may have a sentence in *ret_reason.
 */
int bpf_entry_confine(BpfBackend *b, Entry *entry, const Binding *binding);
/* The same for one that is taken over, in that unit; -ENOENT: that is not its unit any more. */
int bpf_entry_confine_again(BpfBackend *b, Entry *entry, const Binding *binding, uint32_t unit);
int bpf_entry_attach(BpfBackend *b, Entry *entry, const Binding *binding, const BindingFile *file,
                     char **ret_reason);
int bpf_entry_set_cgroup(BpfBackend *b, const Entry *entry, uint64_t cgroup_id, unsigned level);

/* Undo them. */
void bpf_entry_detach(BpfBackend *b, Entry *entry);
void bpf_entry_release(BpfBackend *b, const Entry *entry);

/* Its books. Another binding may have had its index: they are cleared before it is used. */
int bpf_entry_clear_books(BpfBackend *b, uint32_t index);
int bpf_entry_clear_maximum(BpfBackend *b, uint32_t index);
/* As books_read(). */
int bpf_entry_read_books(const BpfBackend *b, const Entry *entry, Statistics *statistics);
/* n_removed: of its windows were ended by bpf_entry_end_windows(), which the books do not know. */
int bpf_entry_read_statistics(BpfBackend *b, const Entry *entry, uint64_t n_removed,
                              Statistics *ret);
/* Adds how long its windows were since the last reset, or begins anew with that. */
int bpf_entry_read_histogram(const BpfBackend *b, const Entry *entry, Histogram *histogram);
int bpf_entry_reset_histogram(BpfBackend *b, const Entry *entry);

/*
 * What the probes at its places have cost since they are there, and the timers of its budgets; as
 * far as that can be read.
 */
uint64_t bpf_entry_get_cost(const BpfBackend *b, const Entry *entry);

/* Of all together; those at the same place count once. */
uint64_t bpf_backend_get_cost(const BpfBackend *b);

/*
 * Of an entry that was withdrawn. Adds to the books; histogram may be NULL. Returns 0, or a
 * negative errno if some may still be open.
 */
int bpf_entry_end_windows(BpfBackend *b, const Entry *entry, Statistics *final,
                          Histogram *histogram);

/*
 * What is kept for the next daemon (takeover.c). A binding is kept under its name when it is set
 * up, and forgotten when it is removed; a new base is written as it changes.
 */
void bpf_entry_keep(BpfBackend *b, const Entry *entry, const Binding *binding);
void bpf_entry_keep_base(BpfBackend *b, const Entry *entry);
void bpf_entry_forget(BpfBackend *b, const Entry *entry);

/*
 * Before the probes of a binding are set: takes those of the daemon before this one out of its
 * file, if that was written to since. Returns 0 or a negative errno.
 */
int bpf_backend_leave_rewritten(BpfBackend *b, const Binding *binding);

/* The entry that the daemon before this one had for that binding, at the same places; or NULL. */
Entry *bpf_entry_find_inherited(BpfBackend *b, const Binding *binding);

/* Before any binding comes: those of the daemon before this one. Returns 0 or a negative errno. */
int bpf_backend_inherit(BpfBackend *b);

/* Once nothing of that one is there any more; else it does nothing. */
void bpf_backend_leave_predecessor(BpfBackend *b);

/* As in BackendOps. */
int bpf_backend_finish(Backend *backend);
int bpf_backend_keep(Backend *backend, int ret_fds[static BACKEND_N_KEPT]);
int bpf_backend_find_kept(int keep_fd, int ret_fds[static BACKEND_N_KEPT]);
bool bpf_backend_has_carried(Backend *backend);
uint64_t *bpf_backend_kept_lost(Backend *backend);
uint64_t *bpf_backend_kept_unwritten(Backend *backend);
BindingLimit *bpf_backend_kept_limit(Backend *backend, uint32_t index);
void bpf_backend_keep_past(Backend *backend, uint32_t index, const Past *past);
int bpf_backend_add_past(Backend *backend, uint32_t index, Past *past);

/* As in BackendOps. */
char *bpf_entry_remark(const BpfBackend *b, const Entry *entry);
char *bpf_entry_describe_reach(const BpfBackend *b, const Entry *entry);

/* Are its probes in the processes of its unit only? */
bool bpf_entry_spares_others(const BpfBackend *b, const Entry *entry);

#endif
