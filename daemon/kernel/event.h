/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_EVENT_H
#define KERNEL_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/words.h"

/* What the tlob monitor says in the trace buffer: decoded from raw pages, and paired. */

typedef enum KernelEventType {
        KERNEL_EVENT_ERROR_ENV, /* error_env_tlob: a budget ran out, or so it seems */
        KERNEL_EVENT_DETAIL,    /* detail_env_tlob: the breakdown of a window that was reset */
        KERNEL_EVENT_ERROR,     /* error_tlob: the monitor lost track of a window */
        KERNEL_EVENT_CHANGE, /* event_tlob: a window begins, ends, or its task changes its state */
        KERNEL_N_EVENTS,
        KERNEL_EVENT_MISSED = KERNEL_N_EVENTS, /* events were lost here */
} KernelEventType;

/* Their names in the directory "rv" of events. */
extern const char *const kernel_event_names[KERNEL_N_EVENTS];

typedef struct KernelEvent {
        KernelEventType type;
        uint64_t time_ns; /* by the buffer's clock */
        int id;           /* of the task, in the first pid namespace */

        /* ERROR_ENV: the state that it was in; CHANGE: that it is in now */
        enum tlob_state state;

        /* CHANGE: of a window. It has no state after its stop. ERROR_ENV: found by a stop */
        bool is_start;
        bool is_stop;

        uint64_t
                elapsed_ns; /* ERROR_ENV: what the monitor says of its clock; UINT64_MAX: nothing */

        /* DETAIL */
        uint64_t threshold; /* in the unit of the dialect */
        uint64_t spent_ns[TLOB_N_STATES];
} KernelEvent;

/* How the events of this kernel are laid out. */
typedef struct KernelFormats KernelFormats;

/*
 * Takes the "format" files of the events; NULL: this one is not wanted. Returns 0, -ENOMEM, or
 * -EBADMSG and a sentence that says what is missing.
 */
int kernel_formats_new(const char *const texts[static KERNEL_N_EVENTS], KernelFormats **ret,
                       char **ret_error);
KernelFormats *kernel_formats_free(KernelFormats *formats);
DEFINE_CLEANUP(KernelFormats, kernel_formats_free);

/* True if the breakdown's threshold is in microseconds: the field threshold_us. */
bool kernel_formats_in_us(const KernelFormats *formats);

typedef void (*KernelEventHandler)(const KernelEvent *event, void *userdata);

typedef struct KernelPage {
        size_t n_events;  /* handed over */
        size_t n_unknown; /* of other types, or not as their format says */
        bool missed;      /* events were lost before this page */
        bool damaged;     /* it ends otherwise than it says */
} KernelPage;

/*
 * Hands over the events of one page of a per-CPU buffer, in their order, and first of all
 * KERNEL_EVENT_MISSED if some were lost before them. size: what read() gave. Pages are not trusted.
 * Returns 0 or -ENOMEM.
 */
int kernel_page_decode(const KernelFormats *formats, const void *page, size_t size,
                       KernelEventHandler handler, void *userdata, KernelPage *ret);

/* The violations among the events of one CPU. */
typedef struct KernelPairing {
        KernelEvent error; /* that waits for its detail */
        bool pending;
        uint64_t n_unpaired; /* errors that no detail followed */
        uint64_t n_lone;     /* details that no error preceded: of windows that were reset */
        uint64_t n_aborted;  /* windows that the monitor lost track of */
        bool aborted;        /* the last event was one: its detail follows */
        bool believes_stops; /* an error that a stop found is a violation without a detail, too */
} KernelPairing;

/*
 * Takes the next event of that CPU. Returns true when it completes a violation: *ret is the detail,
 * with the time and the state of the error, or an error that a stop found.
 */
bool kernel_pairing_push(KernelPairing *pairing, const KernelEvent *event, KernelEvent *ret);

#endif
