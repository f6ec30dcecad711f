/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_DIALECT_H
#define KERNEL_DIALECT_H

#include <stdbool.h>

#include "base/cleanup.h"

/* Which version of the kernel's tlob monitor this is, by what can be seen of it. */

typedef enum KernelDialect {
        DIALECT_UNKNOWN,
        DIALECT_V1,    /* first RFC: THR_US:START:STOP:/path */
        DIALECT_V2,    /* second RFC: threshold= in microseconds */
        DIALECT_V3,    /* v3, v4: threshold= in nanoseconds */
        DIALECT_V5,    /* v5, v6: the same, and a task keeps its slot until it exits */
        DIALECT_NAMED, /* later: p:NAME, and no detail_env_tlob */
} KernelDialect;

/*
 * Lines that no dialect takes, because their file cannot exist: what comes back tells which it is.
 */
typedef enum DialectProbe {
        PROBE_SHORT,        /* p P:0x10 0x20 threshold=999 */
        PROBE_PLAIN,        /* p P:0x10 0x20 threshold=5000 */
        PROBE_NAMED,        /* p:tlobd P:0x10 0x20 threshold=5000 */
        PROBE_FIRST,        /* 5000:0x10:0x20:P */
        PROBE_NAMED_SHORT,  /* p:tlobd P:0x10 0x20 threshold=999 */
        PROBE_NAMED_REMOVE, /* -:tlobd_none */
        DIALECT_N_PROBES,
} DialectProbe;

extern const char *const dialect_probes[DIALECT_N_PROBES];

typedef struct DialectEvidence {
        bool has_rv;                        /* rv/available_monitors */
        bool has_monitor;                   /* tlob is one of them */
        bool has_budget_event;              /* events/rv/tlob_budget_exceeded */
        bool has_error_event;               /* events/rv/error_env_tlob */
        bool has_detail_event;              /* events/rv/detail_env_tlob */
        bool has_change_event;              /* events/rv/event_tlob */
        bool detail_in_us;                  /* with a field threshold_us */
        bool detail_in_ns;                  /* with a field threshold_ns */
        bool has_parking;                   /* the kernel has functions that came with v5 */
        int probe_errors[DIALECT_N_PROBES]; /* what write() gave: errno, 0 if it was taken */
} DialectEvidence;

/*
 * Returns 0 if this daemon can use that monitor, else -EOPNOTSUPP and a sentence; -ENOENT when
 * there is no such monitor. Either way *ret is what it was taken for.
 */
int dialect_judge(const DialectEvidence *evidence, KernelDialect *ret, char **ret_reason);

/* "v3 or v4", for people; static. */
const char *dialect_to_string(KernelDialect dialect);

/* What this version of the monitor cannot promise, as sentences; NULL after the last; static. */
const char *const *dialect_limitations(KernelDialect dialect);

#endif
