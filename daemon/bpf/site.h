/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_SITE_H
#define BPF_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/calls.h"
#include "bpf/crowd.h"
#include "bpf/detacher.h"
#include "bpf/layout.h"
#include "bpf/memory.h"
#include "bpf/site-list.h"
#include "bpf/uprobe.h"
#include "bpf/user-events.h"

/*
 * The places where probes of one kind (start or stop) sit, and which bindings each of them is for.
 * A site is one place in a file, or several that mean the same: every way out of a function, or
 * all places of a USDT probe. Its probes are shared by all bindings there. A system call is a site
 * too, without file and probes, and so is an event of the kernel, whose probe is a perf event.
 */

typedef enum SiteKind {
        SITE_FILE,
        SITE_CALL,       /* a window is a system call: at its start */
        SITE_CALL_BEGIN, /* an event of the kernel: it begins a system call */
        SITE_CALL_END,   /* the same: it ends one */
        SITE_EVENT,      /* another one */
        SITE_USER_EVENT, /* one that programs write */
} SiteKind;

typedef struct SiteKey {
        SiteKind kind;
        dev_t dev;
        ino_t inode;
        const uint64_t *offsets; /* not owned; ascending; or the number of the call or event */
        size_t n_offsets;
        const uint64_t *semaphores; /* of each, as in ElfPlace; NULL: there are none; not owned */
        bool is_return;
        bool by_process; /* only in the processes of the units that its bindings are for */
        /*
         * By process, of a start: the stop of all its bindings, an index + 1. Who has the probe at
         * the one place is to have it at the other. 0: of stops and all else.
         */
        uint32_t partner;
        uint32_t owner; /* of its bindings; not 0: by process it is in no others, come what may */
        uint64_t price_ns; /* of a hit there; follows from the place */
} SiteKey;

/* Is it a system call or at its ends, of which the pair of programs on all calls tells? */
static inline bool site_is_of_call(const SiteKey *key) {
        return key->kind == SITE_CALL || key->kind == SITE_CALL_BEGIN || key->kind == SITE_CALL_END;
}

static inline bool site_is_event(const SiteKey *key) {
        return key->kind == SITE_EVENT || key->kind == SITE_USER_EVENT;
}

/* How far a site reaches. */
typedef struct SiteReach {
        bool by_process;
        bool is_wide;        /* nevertheless: there were too many processes, or too many new ones */
        size_t n_processes;  /* of its units, of those that are known */
        uint64_t n_outside;  /* hits of tasks that no binding is for, since the site is there */
        uint64_t n_admitted; /* processes that got probes of their own */
        uint64_t n_missed;   /* that got none */
        uint64_t late_ns;    /* from when a process was seen to when it had them, in all */
        uint64_t late_max_ns; /* the longest */
} SiteReach;

/* A process of one of the units of a site. */
typedef struct SiteProcess {
        uint32_t tgid;  /* as the kernel counts */
        uint32_t unit;  /* of which it was told first */
        uint32_t round; /* when it was told last */
        Uprobe *uprobe; /* NULL: the one for all processes is its, or it has none */
} SiteProcess;

typedef struct Site {
        bool is_inherited; /* of a daemon before this one, which had bindings there */
        bool is_needed;    /* and its probes count until the binding has others */
        SiteKey key;
        SiteUser *users;
        unsigned n_users;
        Uprobe *uprobe; /* in all processes; by process: only when there were too many of them */

        /* By process */
        int file_fd;
        SiteProcess *processes;
        size_t n_processes;
        Crowd crowd;
        SiteReach reach;
} Site;

/* What all probes of a table have in common: as in UprobeSpec. */
typedef struct SiteProbes {
        int prog_fd;
        bool multi;
        Pins *pins;
        Detacher *detacher;
        uint32_t side;        /* as in tlob_process_site */
        int process_sites_fd; /* the map */
        int hits_fd;          /* the same, of this side */
        size_t n_cpus;        /* that it has values for */
        Calls *calls;         /* not owned */
        UserEvents *user_events;
        LatePrograms *late;  /* the same */
        Crowd *owned_crowds; /* the same: of all sites of users, of both tables; OWNED_CROWDS */
} SiteProbes;

typedef struct SiteTable {
        Site *items;      /* an index here is an index in the map */
        BpfMemory memory; /* shared with the programs, as far as sites were ever in use */
        size_t end;       /* no site from there on was ever in use */
        SiteProbes probes;
        int scopes_fd;
        uint32_t *generation; /* of the site that was made last; not owned */
        uint32_t round;       /* see site_table_begin_round() */
} SiteTable;

/* What the programs see of a site that is or was in use. */
static inline struct tlob_site *site_shared(const SiteTable *table, size_t site) {
        return (struct tlob_site *) table->memory.values + site;
}

/*
 * The probes of a site, or of a call what tells of it: cookie says what they tell, pid where they
 * are. Returns 0 or a negative errno.
 */
int site_attach(SiteTable *table, Site *site, int file_fd, uint64_t cookie, uint32_t pid,
                Uprobe **ret);

/* Of a site that is of a call: nothing tells of it any more. Of others it does nothing. */
void site_detach_call(const SiteTable *table, const SiteKey *key);

uint32_t site_index(const SiteTable *table, const Site *site);

/* What the probes of that site tell the programs. */
uint64_t site_table_cookie(const SiteTable *table, uint32_t site);

#endif
