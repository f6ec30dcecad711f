/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PAGE_OVERRUNS_H
#define PAGE_OVERRUNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/words.h"
#include "plot/plot.h"

/* The windows of a binding that were over their budget, as they were reported, and why. */

/* One window. UINT64_MAX: not known. */
typedef struct Overrun {
        uint64_t time_usec;      /* CLOCK_REALTIME: when it was found */
        uint64_t id;             /* 0: not known */
        enum tlob_budget budget; /* which it has exceeded */
        uint64_t budget_ns;
        uint64_t length_ns; /* until it ended, or else until it was found */
        uint64_t spent_ns[TLOB_N_STATES];
        const char *end; /* static: why its end is not known; NULL: it is */
        char *task;      /* owned: "nginx[4711]"; "" */
        char *cause; /* owned: what it did when its budget was used up: "sleeping in futex_wait" */
} Overrun;

/* A machine may change its name, and several may have the same. */
typedef struct Machine {
        const char *id;   /* tells it from others; "": it is not known, and the name has to do */
        const char *host; /* its name */
} Machine;

typedef struct Overruns {
        char *machine, *host; /* owned: its id; its name, as it is called last */
        char *binding;        /* owned */
        char *unit;           /* owned: that of all its tasks; "": there are several, or none */
        Overrun *items;       /* in the order of time */
        size_t n, n_allocated;
        PlotEvent *held_back; /* whose reports were */
        size_t n_held_back;
        uint64_t suppressed; /* how many those are */
} Overruns;

/* That of all bindings, in the order in which they first were over budget. */
typedef struct OverrunList {
        Overruns *items;
        size_t n;
} OverrunList;

void overrun_list_done(OverrunList *list);

/* Those of a binding of a machine; NULL: there are none. */
Overruns *overrun_list_find(const OverrunList *list, const Machine *machine, const char *binding);

/*
 * The same, made if there are none. They stay where they are until the next is made. Returns 0 or
 * -ENOMEM.
 */
int overrun_list_get(OverrunList *list, const Machine *machine, const char *binding,
                     const char *unit, Overruns **ret);

/* How many machines these are of. */
size_t overrun_list_count_machines(const OverrunList *list);

/* Has another one that name? */
bool overrun_list_is_namesake(const OverrunList *list, const Overruns *overruns);

/* Adds a copy. Returns 0 or -ENOMEM, as do the next two. */
int overruns_add(Overruns *overruns, const Overrun *overrun);
int overruns_hold_back(Overruns *overruns, uint64_t time_usec, uint64_t n);

/* Whether there is one of that window. */
bool overruns_has(const Overruns *overruns, uint64_t id);

/*
 * Its end gives a window, found shortly before, its true length, unless nobody has seen it end.
 * Unknown ones are ignored.
 */
void overruns_complete(Overruns *overruns, const Overrun *end);

/* By how much it was over that budget, as far as that is known. */
uint64_t overrun_over_ns(const Overrun *overrun);

/* All that they have in common that were over budget for the same reason. */
typedef struct Reason {
        const char *text; /* of one of them */
        uint64_t n;
        uint64_t over_ns; /* by how much, all together */
} Reason;

/*
 * Their reasons; that which made windows longest over their budget comes first. Returns how many;
 * the caller frees *ret, which is NULL for want of memory.
 */
size_t overruns_rank_reasons(const Overruns *overruns, Reason **ret);

/*
 * The n longest, the longest first, or as many as there are. Returns how many. The caller frees
 * *ret, which is NULL for want of memory.
 */
size_t overruns_find_worst(const Overruns *overruns, size_t n, const Overrun ***ret);

/* How long all of them together were in each state, as far as known. */
void overruns_sum(const Overruns *overruns, uint64_t ret_ns[static TLOB_N_STATES]);

/* As events of a plot. The caller frees *ret, NULL for want of memory. */
size_t overruns_to_events(const Overruns *overruns, PlotEvent **ret);

#endif
