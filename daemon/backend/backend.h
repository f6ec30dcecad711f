/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BACKEND_BACKEND_H
#define BACKEND_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/histogram.h"
#include "binding/binding.h"
#include "config/config.h"
#include "report/violation.h"

/*
 * The seam between the daemon and who measures. A back end takes resolved bindings, and gives
 * reports and statistics. It knows no event loop: it offers a file descriptor, and dispatches when
 * that is readable.
 */

typedef struct Backend Backend;

#define ENOTSUPP_KERNEL 524 /* the kernel's own: no such probe on this instruction */

/* What a back end can express. A binding asks for some of it: backend_needs(). */
typedef enum BackendCapability {
        BACKEND_CAN_RETURN = 1 << 0,       /* Stop=return */
        BACKEND_CAN_STATE_BUDGET = 1 << 1, /* budgets of one state */
        BACKEND_CAN_INFINITE = 1 << 2,     /* measure, never report */
        BACKEND_CAN_CONFINE = 1 << 3,      /* confinement to a cgroup */
        BACKEND_CAN_AWAIT = 1 << 4,        /* confinement to an instance that nobody knows yet */
        BACKEND_CAN_CALL = 1 << 5,         /* Syscall= */
        BACKEND_CAN_USDT = 1 << 6,         /* several places for one start or stop; semaphores */
        BACKEND_CAN_EVENT = 1 << 7,        /* Start=event:..., Stop=event:... */
        BACKEND_CAN_COUNT = 1 << 8,        /* windows that keep their budget, for Tolerance= */
        BACKEND_CAN_MINIMUM = 1 << 9,      /* budgets that windows must not end before */
        BACKEND_CAN_KEY = 1 << 10,         /* windows that another thread ends */
        BACKEND_CAN_LEND = 1 << 11,        /* the tasks of one user, at no others' cost */
} BackendCapability;

typedef struct BackendConfig {
        struct Files *files; /* who reads files, for as long as the back end lives */
        DeadlineMode deadline_mode;
        unsigned bindings_max;
        unsigned tasks_max;
        size_t ring_buffer_size;
        unsigned mark_pages_max;  /* processes that can share memory for their marks */
        const char *marks_socket; /* where they ask for it; NULL: they cannot */
        bool leave_out_self;      /* the calling process, and its children, are not measured */

        /*
         * What keep() gave to the daemon before this one; NULL: nothing. If the back end goes on
         * from there, it closes them, and they become -EBADF.
         */
        int *kept_fds; /* BACKEND_N_KEPT */

        /*
         * A directory in a BPF file system in which all that is measured is to outlive this process
         * whatever becomes of the descriptors that keep() gives, unless free() was called; NULL:
         * none.
         */
        const int *keep_fd;
} BackendConfig;

#define BACKEND_NO_INDEX UINT32_MAX

/* File descriptors by which one daemon leaves what it has to the next. */
#define BACKEND_N_KEPT 2

/* Something that a back end met between two calls, and what is to be done about it. */
typedef struct BackendNotice {
        int level;      /* syslog's */
        uint32_t index; /* of a binding that it can measure no longer, or BACKEND_NO_INDEX */
        bool is_advice; /* it can, but another back end would do better */
        bool is_final;  /* it will not be able to, until somebody asks anew */
        char *text;     /* a sentence, without a full stop; the caller's */
} BackendNotice;

/* Called for each report. The report is the callee's only during the call. */
typedef void (*BackendReportHandler)(const Report *report, void *userdata);

/* How many violations come out as reports in that time, and how many at once. 0: no limit. */
typedef struct ReportLimit {
        uint64_t interval_ns;
        uint64_t n;         /* of one binding */
        uint64_t n_overall; /* of all; the first of each binding in that time comes nevertheless */
} ReportLimit;

typedef struct BackendOps {
        const char *name;
        unsigned capabilities; /* BackendCapability */

        /*
         * Can it work here? 0, or a negative errno with a sentence that says what is missing. 1: it
         * can, and a daemon that died has left something in the kernel, which is put right by
         * making it.
         */
        int (*probe)(char **ret_reason);

        /* Builds the back end; nothing is attached before the first binding. */
        int (*new)(const BackendConfig *config, Backend **ret, char **ret_reason);

        /* Leaves the kernel as it was found. */
        Backend *(*free)(Backend *backend);

        /*
         * All bindings of the configuration have been added: what a daemon before this one has left
         * of others goes; what it has left of these in other places is added to their past, as
         * add_past() gives it. Returns 1 if that one has left anything, else 0. NULL: nothing is to
         * be done.
         */
        int (*finish)(Backend *backend);

        /*
         * As long as somebody has these descriptors, which stay the back end's, all that is
         * measured goes on when this process ends without free(): for who gets them in
         * BackendConfig. Returns 0, -EOPNOTSUPP, or another negative errno. NULL: it cannot.
         */
        int (*keep)(Backend *backend, int ret_fds[static BACKEND_N_KEPT]);

        /*
         * The same descriptors, of what a daemon before this one has left in the directory that
         * keep_fd was of. They are the caller's. Returns 0, or a negative errno. Is there if keep()
         * is.
         */
        int (*find_kept)(int keep_fd, int ret_fds[static BACKEND_N_KEPT]);

        /*
         * Can it express this resolved binding, beyond what its capabilities say? 0, or -EOPNOTSUPP
         * with a sentence. NULL: it can.
         */
        int (*can)(const Binding *binding, const BindingFile *file, char **ret_reason);

        /*
         * Sets the probes of a resolved binding; file is what it was resolved in. One that has a
         * unit but no cgroup measures nothing until set_cgroup(), or if it is a spare, until an
         * instance of its template takes it: a REPORT_INSTANCE tells, before all that is reported
         * of that instance. On failure nothing of it stays behind, and *ret_reason is a sentence.
         * -EPROTO: the daemon that would measure it for this one is of another version.
         */
        int (*add)(Backend *backend, const Binding *binding, const BindingFile *file,
                   uint32_t *ret_index, char **ret_reason);

        /*
         * All bindings that belong together have been added: units that begin from now on are
         * measured by them from their first call. NULL: nothing is to be done.
         */
        int (*complete)(Backend *backend);

        /*
         * Takes the probes away, gives the final books, and adds to the histogram (ret_final and
         * histogram may be NULL). Open windows end as "removed", and the
         * reports that they owe come with the next flush; the index is free after that.
         */
        int (*remove)(Backend *backend, uint32_t index, Statistics *ret_final,
                      Histogram *histogram);

        /*
         * Are probes that were taken away still on their way out of the kernel? One that is set
         * meanwhile at the place of one that goes executes the instruction that was there then.
         * NULL: never.
         */
        bool (*is_removing)(Backend *backend);

        /*
         * Where the unit of the binding runs now, in the depth that we see; 0: it does not run.
         * Holds for all bindings of that unit; windows that are open stay open.
         */
        int (*set_cgroup)(Backend *backend, uint32_t index, uint64_t cgroup_id, unsigned level);

        /* Budgets change without touching the probes, and hold for open windows too. */
        int (*set_budget)(Backend *backend, uint32_t index,
                          const uint64_t budget_ns[static TLOB_N_BUDGETS]);

        /*
         * Readable when there is something to dispatch; stays the same for the back end's lifetime.
         */
        int (*get_fd)(Backend *backend);

        /*
         * Hands over reports that are there, for some milliseconds at most: what is left keeps the
         * descriptor readable. Returns how many, or a negative errno.
         */
        int (*dispatch)(Backend *backend, BackendReportHandler handler, void *userdata);

        /*
         * Hands over all reports that are there now, with those that remove() left, but none that
         * come meanwhile. NULL: dispatch() does.
         */
        int (*flush)(Backend *backend, BackendReportHandler handler, void *userdata);

        /*
         * The next of what it met, to be asked for after dispatch() until there is none. Returns 1,
         * or 0 when there is none. NULL: it never meets anything.
         */
        int (*next_notice)(Backend *backend, BackendNotice *ret);

        /*
         * What a binding that is in the back end is in the place of active, for the reason that
         * remark() gives. NULL: it is active.
         */
        BindingState (*state)(Backend *backend, uint32_t index);

        /*
         * Why a binding that is active cannot measure what it was meant to, as far as what has
         * happened until now tells: a sentence without a full stop, the caller's. NULL, as the
         * operation or its result: there is nothing to be said.
         */
        char *(*remark)(Backend *backend, uint32_t index);

        /* Holds from now on; what is held back is only counted (suppressed). NULL: it has none. */
        void (*set_report_limit)(Backend *backend, const ReportLimit *limit);

        /* Reports for which a buffer was full, since the back end was made. */
        uint64_t (*lost)(Backend *backend);

        /*
         * Where to note what has been told of reports that were lost, or that the limit of a
         * binding has held back: memory that is kept as by keep(), so that the next daemon tells
         * what is new, and nothing twice. Zeros at first. NULL, as the operation or its result:
         * nothing is kept.
         */
        uint64_t *(*kept_lost)(Backend *backend);

        /* The same, for the number of journal entries that end with the daemon. */
        uint64_t *(*kept_unwritten)(Backend *backend);
        BindingLimit *(*kept_limit)(Backend *backend, uint32_t index);

        /*
         * After a new() that has set its probes anew, and left kept_fds to the caller: whether what
         * the daemon before has counted goes on all the same. NULL: it does not.
         */
        bool (*has_carried)(Backend *backend);

        /*
         * What was counted before the probes of a binding were set here: noted for the next daemon,
         * in place of what was noted before, and kept as by keep(). NULL: it is not kept.
         */
        void (*keep_past)(Backend *backend, uint32_t index, const Past *past);

        /*
         * Adds what the daemon before this one has noted. Returns 0 or -ENOMEM. Has keep_past(),
         * too, or is NULL.
         */
        int (*add_past)(Backend *backend, uint32_t index, Past *past);

        int (*statistics)(Backend *backend, uint32_t index, Statistics *ret);

        /*
         * Adds the lengths of the windows that have ended. NULL, or -EOPNOTSUPP: not known to this
         * back end.
         */
        int (*histogram)(Backend *backend, uint32_t index, Histogram *histogram);

        /* All counters to zero. Windows that are open count as begun. */
        int (*reset_statistics)(Backend *backend, uint32_t index);

        /*
         * The CPU time that the probes at the places of a binding have taken since they are there,
         * from whoever ran into them, by their number and what one costs here; with
         * BACKEND_NO_INDEX, those at all places. NULL: not known.
         */
        uint64_t (*cost)(Backend *backend, uint32_t index);

        /* What its probes cost on this machine; owned by it. NULL: not known. */
        const ProbePrices *(*prices)(Backend *backend);

        /*
         * Have probes been hit so often that it is worth a look at their cost, since this was asked
         * last? dispatch() is due when they are. NULL: never.
         */
        bool (*take_alarm)(Backend *backend);

        /*
         * Which processes the probes of a binding are in, as words for a sentence; the caller's.
         * NULL: for want of memory, or as the operation: not known to this back end.
         */
        char *(*reach)(Backend *backend, uint32_t index);

        /*
         * Would it set the probes of this binding in the processes of its unit only? NULL: in every
         * process that maps the file, always.
         */
        bool (*can_spare_others)(const Binding *binding, const BindingFile *file);

        /* Are they there only, now? NULL: never. */
        bool (*spares_others)(Backend *backend, uint32_t index);

        /*
         * Would it set probes on what unwinds stacks, for a binding with has_frame, in every
         * process of the machine? NULL: never.
         */
        bool (*taxes_unwinding)(void);

        /*
         * What this back end cannot promise on this machine, as sentences; NULL after the last;
         * owned by it.
         */
        const char *const *(*limitations)(Backend *backend);

        /* How deadlines are found, as in the D-Bus property DeadlineMode; static. */
        const char *(*deadline_mode)(Backend *backend);
} BackendOps;

/* Every back end begins with this. */
struct Backend {
        const BackendOps *ops;
};

/*
 * The back ends that this build has, in the order in which "auto" tries them; NULL after the last.
 */
extern const BackendOps *const backends[];

/* The same of a user's own tlobd. */
extern const BackendOps *const user_backends[];

extern const BackendOps backend_delegate_ops;
extern const BackendOps backend_bpf_ops;
extern const BackendOps backend_kernel_ops;

/* What a binding asks of its back end: BackendCapability. */
unsigned backend_needs(const Binding *binding);

/*
 * The first of those needs that these capabilities lack, as words for a sentence; NULL if none;
 * static.
 */
const char *backend_lacks(const BackendOps *ops, unsigned needs);

#endif
