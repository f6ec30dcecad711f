/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_BACKENDS_H
#define MANAGER_BACKENDS_H

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "backend/backend.h"
#include "base/cleanup.h"

/*
 * The back ends of this build: which work here, why others do not, which are in use, and which
 * binding is measured where. They are named by their ops, as those are there before the back end is
 * made.
 *
 * Bindings are lent: who gives one here takes it back before it goes.
 */
typedef struct Backends Backends;

/* What back ends tell, from backends_flush() or from the event loop. */
typedef struct BackendsHandlers {
        /*
         * It reports that of one of its bindings. The report is the callee's only during the call.
         */
        void (*report)(const Report *report, const Backend *backend, Binding *binding,
                       void *userdata);

        /* n reports of it were lost on their way from the kernel. */
        void (*lost)(uint64_t n, void *userdata);

        /* n journal entries of the daemon before this one were lost when it ended. */
        void (*unwritten)(uint64_t n, void *userdata);

        /* What it says of one of its bindings. */
        void (*notice)(const BackendNotice *notice, const BackendOps *ops, Binding *binding,
                       void *userdata);

        /*
         * What that one has in the kernel is behind these descriptors, which stay its own: for the
         * next daemon, in place of what there was. NULL: there is nothing any more.
         */
        void (*kept)(const BackendOps *ops, const int *fds, void *userdata);

        /* An event has been handled that can come again at once. */
        void (*event_done)(void *userdata);
} BackendsHandlers;

/* A back end that does not work here, and why. */
typedef struct BackendAbsence {
        const BackendOps *ops;
        int error;
        char *reason;
} BackendAbsence;

/*
 * In memory only. ops: in order of preference, NULL after the last; and handlers: must outlive it.
 */
int backends_new(const BackendOps *const *ops, const BackendsHandlers *handlers, void *userdata,
                 Backends **ret);
Backends *backends_free(Backends *backends);
DEFINE_CLEANUP(Backends, backends_free);

/* Finds out which work here: until then, none does. */
int backends_probe(Backends *backends);

/*
 * Those that are made from now on are heard in that loop. Without one, nothing is heard but by
 * flush.
 */
void backends_attach_event(Backends *backends, sd_event *event);

/*
 * A daemon before this one has kept that of that back end, which goes on from there. The
 * descriptors are not the caller's any more.
 */
void backends_inherit(Backends *backends, const BackendOps *ops,
                      const int fds[static BACKEND_N_KEPT]);

/* That one, which has no bindings, goes with what it has in the kernel. */
void backends_clear(Backends *backends, const BackendOps *ops);

/* All go, with what they have in the kernel, and none works here any more. */
void backends_stop(Backends *backends);

/* What those get that are made from now on. */
void backends_configure(Backends *backends, const BackendConfig *config);

/* Holds for any of them from now on. */
void backends_limit_reports(Backends *backends, const ReportLimit *limit);

/* The i-th that works here, in order of preference; NULL: there are no more. */
const BackendOps *backends_get(const Backends *backends, size_t i);

/* What was made of that one, which stays the callee's; NULL: it is not in use. */
Backend *backends_get_used(const Backends *backends, size_t i);

/* The i-th that does not; NULL: there are no more. */
const BackendAbsence *backends_get_absence(const Backends *backends, size_t i);

/* Reports that were lost on their way from the kernel. */
uint64_t backends_get_lost(const Backends *backends);

/* So many journal entries are lost if the daemon ends now: noted where the next one finds it. */
void backends_note_unwritten(Backends *backends, uint64_t n);

/*
 * That one, made if it is not in use. That takes seconds where it does not work: one that has
 * failed is not tried again for a while. On failure, *ret_error is a sentence, or NULL.
 */
int backends_make(Backends *backends, const BackendOps *ops, Backend **ret, char **ret_error);

/* The binding is at its index of its back end now, perhaps in the place of another one. */
void backends_put(Backends *backends, Binding *binding);

/* It is not any longer. */
void backends_take(Backends *backends, const Binding *binding);

/* Does that apply to any binding that is at a back end? */
bool backends_have(const Backends *backends,
                   bool (*applies)(const Binding *binding, const void *userdata),
                   const void *userdata);

/* Has none of them room for another binding? */
bool backends_are_full(const Backends *backends);

/* The bindings that were added are all that belong together. */
void backends_complete(Backends *backends);

/*
 * All bindings of the configuration are in place: what a daemon that died has left is put right.
 * Returns whether there was more room taken until now than from now on.
 */
bool backends_finish(Backends *backends);

/* Is there anything that a daemon before this one has left, and that is not put right yet? */
bool backends_have_left(const Backends *backends);

/* Those that have no binding go, a little later. */
void backends_release(Backends *backends);

/*
 * Reads all reports that are there now: those of one back end, or of all (NULL). But for those that
 * a daemon that died has left, until backends_finish().
 */
void backends_flush(Backends *backends, const Backend *backend);

/* Reads what they have to say besides reports. */
void backends_take_notices(Backends *backends);

#endif
