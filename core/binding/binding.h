/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_BINDING_H
#define BINDING_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/trace-event.h"
#include "base/words.h"
#include "binding/file.h"
#include "binding/rate-limit.h"
#include "elf/argument.h"
#include "elf/exits.h"
#include "elf/file.h"
#include "elf/inlined.h"
#include "elf/probe-kind.h"
#include "report/past.h"
#include "report/tolerance.h"
#include "report/violation.h"

/* A pair of probes with a budget: what an administrator wrote, and what became of it. */

#define BINDING_NAME_MAX  40
#define BINDING_VALUE_MAX 180 /* of a key, so that libinih can read back what is written */

#define BUDGET_MIN_NS UINT64_C(1000)
#define BUDGET_MAX_NS UINT64_C(3600000000000)
#define BUDGET_NONE   UINT64_MAX

#define BINDING_CPU_LIMIT       50 /* if not configured */
#define BINDING_ON_VIOLATION_NS (60 * UINT64_C(1000000000))
#define BINDING_TOLERANCE_NS    (3600 * UINT64_C(1000000000))

typedef enum BindingState {
        BINDING_ACTIVE,   /* it measures */
        BINDING_WAITING,  /* its unit does not run; its probes are set if they can be */
        BINDING_DISABLED, /* Enabled=no */
        BINDING_FAILED,   /* see the reason */
} BindingState;

typedef enum BackendChoice {
        BACKEND_CHOICE_AUTO,
        BACKEND_CHOICE_KERNEL,
        BACKEND_CHOICE_BPF,
} BackendChoice;

struct Backend;

/* A bad value that no later one has made good. */
typedef struct BindingError {
        const char *key; /* static */
        char *text;      /* "file:line: sentence" */
} BindingError;

/* Where its configuration comes from. */
typedef struct BindingSource {
        char *place;       /* the first "file:line" that defines it */
        const char *error; /* the text of the first of errors, NULL if there is none */
        BindingError *errors;
        size_t n_errors;
        uid_t added_by; /* the user who added it at run time; 0: its owner, or nobody did */
} BindingSource;

/* A process whose program was at its path before another file took its place. */
typedef struct OldProgram {
        uint32_t pid; /* 0: there is none */
        MappedIdentity mapped;
} OldProgram;

/* How its unit's processes see files, as far as it is known. */
typedef struct BindingView {
        /*
         * Of its unit's ExecStart=, a path, or a name as systemd looks for it; NULL if it is not
         * known.
         */
        char *program;
        char *unit; /* systemd's own name of it, if an alias is configured; NULL: as configured */
        char *root_directory; /* of its RootDirectory=; NULL: none */
        char *loaded;      /* what its processes have loaded of that name; NULL: it is not known */
        uint32_t main_pid; /* 0: it does not run */
        bool has_root_image;
        uint32_t container_pid; /* a process of the container in its cgroup; 0: there is none */
        OldProgram old;         /* it is meant, instead of what is at its path now */
} BindingView;

/* Of one that the tlobd of a user has measured here: see manager/lent.h. */
typedef struct BindingLent {
        uid_t user;          /* whose tasks alone are measured; 0: it is the machine's own */
        pid_t holder;        /* a process of that user, which has opened the file that is meant */
        int file_fd;         /* there: see binding/lent-file.h */
        char *file;          /* what to call it */
        struct Lease *lease; /* who has asked for it; not owned */
} BindingLent;

/* "arg1", "arg2:u32" */
typedef struct KeyArgument {
        unsigned number; /* 0: there is none */
        uint8_t size;    /* in bytes; 0: as it lies there */
        bool is_signed;  /* valid with size */
} KeyArgument;

/* Where the key of windows lies that another thread may end: see binding/window-key.h. */
typedef struct WindowKey {
        unsigned number; /* of the argument */
        ElfArgumentPlaces start;
        ElfArgumentPlaces stop;
} WindowKey;

/*
 * Where its probes go in its file. Without one, the offset of the start is the number of a call, or
 * both are those of events (TraceEvent.id).
 */
typedef struct BindingSites {
        ElfSite start;
        ElfSite stop; /* TLOB_STOP_PLACE */
        enum tlob_stop how;
        TraceEventKind start_event; /* TRACE_EVENT_NONE: neither is one */
        TraceEventKind stop_event;
        /*
         * The start is the entry of a function, and the stop lies in that function or is its
         * return: a window lasts no longer than its frame.
         */
        bool has_frame;
        FunctionExits exits; /* TLOB_STOP_EXITS, TLOB_STOP_GO */
        WindowKey *key;      /* owned; NULL: its windows have none */
} BindingSites;

void binding_sites_done(BindingSites *sites);

/* Its file, and the places there. */
typedef struct BindingResolved {
        char *path;       /* of the executable or library */
        char *inner_path; /* the same as its unit's processes see it */
        char *build_id;
        dev_t device; /* with inode: the file as it was */
        ino_t inode;
        MappedIdentity mapped;
        FileStamp stamp; /* the same, since when it is compared */
        BindingSites sites;
        char *start_code; /* the instruction; NULL: it is not known */
        ProbeKind start_kind;
        ProbeKind stop_kind;  /* of several ways out, the dearest */
        InlinedCopies copies; /* of the function that the start is in */
} BindingResolved;

/* The cgroup that it is confined to. */
typedef struct BindingCgroup {
        uint64_t id; /* 0: confined to none, or its unit does not run */
        unsigned level;
        char *path; /* where the unit's cgroup is or will be; NULL: not known */
} BindingCgroup;

/* Whether its file is still as it was when its probes were set: see manager/watch.c. */
typedef struct BindingWatch {
        int descriptor;         /* inotify's; 0: none */
        bool is_heard;          /* inotify has told something since it was compared */
        bool is_written;        /* somebody writes in it: it has no probes until that is over */
        uint64_t due_usec;      /* when it is looked at; 0: never */
        uint64_t looked_usec;   /* when it was */
        uint64_t followed_usec; /* when another file in its place was followed at once */
        unsigned retries;       /* since it could not be used, or could not be probed */
} BindingWatch;

/* Whether processes of its unit have its file: see manager/looks.c. */
typedef struct BindingLook {
        uint64_t due_usec; /* when they are looked at next; 0: never */
        unsigned step;     /* how often they were, since the unit has started */
        unsigned question; /* that is not answered yet; see file/files.h. 0: none */
        uint32_t pid;      /* the main process of that start, and the cgroup */
        uint64_t cgroup_id;
        OldProgram old; /* that one of them runs, while its file is asked for; see file/files.h */
        char *remark;   /* why it sees nothing though it is active; NULL: nothing is wrong */
        char *kept;     /* why it goes on in a file that is not at its path; NULL: it does not */
        bool was_remarked; /* it has been logged */
} BindingLook;

/* Who runs the code of a file: processes that have mapped it. */
typedef struct FileUsers {
        unsigned n_processes;
        unsigned n_outside; /* of these, not in the unit that a binding is confined to */
        unsigned n_unseen;  /* processes that could not be looked at */
} FileUsers;

typedef struct BindingUsers {
        FileUsers last; /* as last counted */
        uint64_t usec;  /* when; 0: never */
} BindingUsers;

/* What became of it. */
typedef struct BindingMeasurement {
        BindingState state;
        unsigned question;    /* about its file, as that of BindingLook */
        char *reason;         /* of the state, a sentence; NULL if there is nothing to say */
        bool failure_is_told; /* it is in the journal that it failed, and not that it has passed */
        char *failures[4];    /* reasons that the journal has, since it was last active; or NULL */

        struct Backend *backend; /* not owned; NULL unless its probes are set */
        uint32_t index;          /* the back end's own handle, valid with backend */
        char *backend_reason;    /* why this back end; NULL unless its probes are set */

        uint64_t cost_ns; /* of its probes, as last looked at; see manager/guard.c */
        char *given_up; /* why they stay away until somebody asks, a sentence; NULL: they do not */
        unsigned n_crashes; /* of its unit, while it was measured, one soon after the other */
        uint64_t first_crash_usec; /* valid with n_crashes */

        Past past;
} BindingMeasurement;

/* Units that were started on its violations. */
typedef struct BindingAction {
        uint64_t last_ns; /* when the last one was; 0: none was */
        uint64_t n_started;
        uint64_t n_skipped; /* too soon, or for want of something */
} BindingAction;

/* Whether its tolerance is kept: see manager/tolerance.c. */
typedef struct BindingTolerance {
        ToleranceTrack *track; /* owned; NULL: it has none */
        uint64_t window_ns;    /* the time that it is kept for */
        uint64_t judged_ns;    /* when it was */
        uint64_t due_ns;       /* when it will be */
        bool is_known;         /* its back end counts what is needed for that */
} BindingTolerance;

/* Reports that the rate limit holds back. */
typedef struct BindingLimit {
        RateLimit rate;
        uint64_t n_suppressed; /* ever */
        uint64_t suppressed;   /* since the last one that was made */
        uint64_t unannounced;  /* of these: since the last entry about it */
        uint64_t seen;         /* of those in the back end's books: counted above */
} BindingLimit;

typedef struct Binding {
        /* As configured. Strings are owned, and NULL when not set. */
        char *name; /* full name */
        char *unit;
        char *executable;
        char *start;
        char *stop;      /* see stop_is_return(), or as start */
        KeyArgument key; /* what tells its windows apart, if it is not the mark that says so */
        char *build_id;  /* of the one build that it is for, in small letters; NULL: any */
        uint64_t configured_budget_ns[TLOB_N_BUDGETS];
        unsigned budgets_given; /* bit mask over enum tlob_budget: also those given as "infinity" */
        BackendChoice choice;
        int priority; /* syslog's */
        bool required;
        bool enabled;
        unsigned cpu_limit; /* what its probes may cost, in percent of a CPU; see base/percent.h */
        char *on_violation; /* a service to be started; NULL: none */
        uint64_t on_violation_interval_ns; /* at most once in this time */
        char *tolerance_text;              /* as written; NULL: none */
        Tolerance tolerance;
        uint64_t tolerance_window_ns; /* the time that it is for */
        bool unsafe;       /* Start= and Stop= are right, though nothing in the file tells */
        bool wants_copies; /* not configured: somebody waits to hear of inlined copies, too */
        BindingSource source;

        /* What holds: the configured budgets, or those of SetBudget(). BUDGET_NONE: not limited. */
        uint64_t budget_ns[TLOB_N_BUDGETS];

        BindingLent lent;

        /*
         * Not 0: its unit only stands for an instance of a template, the first that comes and is
         * not known. All bindings of one number go to the same one.
         */
        unsigned spare;

        /* It is the former of that one; NULL: of none. Not owned. */
        struct Binding *latter;

        /* From here to the end: what binding_adopt() hands over. */

        /*
         * Itself, in the file that was at its path before, as long as processes run that: see
         * manager/former.h. Owned; NULL: there is none. It must have no probes when this one goes.
         */
        struct Binding *former;
        BindingView view;
        BindingResolved resolved; /* while it is active or waiting */
        BindingCgroup cgroup;
        BindingWatch watch; /* on its file, also after its probes have gone */
        BindingLook look;
        BindingUsers users;
        BindingMeasurement measurement;
        BindingLimit limit;
        uint64_t n_told; /* reports, since it was looked for those that the back end held back */
        BindingAction action;
        BindingTolerance tolerance_state;
} Binding;

/* Takes a full name. Returns 0, -EINVAL (not a full name), -ENOMEM. */
int binding_new(const char *name, Binding **ret);
Binding *binding_free(Binding *binding);
DEFINE_CLEANUP(Binding, binding_free);

/* 1 to 40 letters, digits, '-', '_', '.', not beginning with '.'. */
bool binding_name_is_valid(const char *name);

/* A name, or UNIT/NAME. */
bool binding_full_name_is_valid(const char *name);

/* "return", or one of the ways in which it can be found: "ret-sites", "return-probe". */
bool stop_is_return(const char *stop);
bool binding_stop_is_return(const Binding *binding);

/* From the begin of a mark to its end. */
bool binding_is_of_mark(const Binding *binding);

/* The budget that counts as "the" budget: the total one, else the smallest of a state's. */
uint64_t binding_budget_ns(const Binding *binding);

/* The same of what is configured, which SetBudget() may have overridden. */
uint64_t binding_configured_budget_ns(const Binding *binding);

/* 0, or -ERANGE: infinity and 1 us to 1 h are allowed. */
int binding_check_budget(uint64_t ns);

/* Is that total budget longer than the minimum, if it has one? */
bool binding_total_fits(const Binding *binding, uint64_t total_ns);

/* "kept", "broken"; "unknown": its back end does not count what it takes; "": it has none. */
const char *binding_tolerance_state(const Binding *binding);

/* The name without the unit. */
const char *binding_own_name(const Binding *binding);

/* The name of its unit as systemd has it, as far as it is known; "": it has none. */
const char *binding_unit_name(const Binding *binding);

/*
 * Notes that the value of key is bad, or that it is good now. text is copied. Returns 0 or -ENOMEM.
 */
int binding_add_error(Binding *binding, const char *key, const char *text);
void binding_clear_error(Binding *binding, const char *key);

/*
 * Checks what can only be seen when all keys are there (Start= missing, stop = start ...). Returns
 * 0, -EINVAL, or -EACCES (it starts a service, and was not added by root), with a sentence in
 * *ret_error.
 */
int binding_check(const Binding *binding, char **ret_error);

/*
 * Does it measure places in a file? Else its windows are system calls, or between events of the
 * kernel, and it is resolved without a path: see binding/call.h and binding/event.h.
 */
bool binding_has_file(const Binding *binding);

/* Are its start and its stop events of the kernel? */
bool binding_has_events(const Binding *binding);

/* Of one that is resolved: is its start or its stop a probe in a program? */
bool binding_has_probe_events(const Binding *binding);

/* The same: is it where the kernel begins or ends a system call? */
bool binding_has_call_events(const Binding *binding);

/* Is the time in one of the states limited? */
bool binding_has_state_budget(const Binding *binding);

/* Is its start or its stop a USDT probe? */
bool binding_has_usdt(const Binding *binding);

/*
 * True if it says nothing of an executable, and so takes the program of its unit; binding->program
 * must be set then to resolve it.
 */
bool binding_takes_program(const Binding *binding);

/* Is its executable given as the bare name of a library? */
bool binding_takes_library(const Binding *binding);

/* What the journal has of why it failed is told again. */
void binding_forget_failures(Binding *binding);

/* Takes on a new state; reason is copied, NULL for none. */
int binding_set_state(Binding *binding, BindingState state, const char *reason);

/*
 * True if two bindings of the same name measure the same: only budgets, priority and the like
 * differ, or what is known of their unit. One that is disabled and one that is not do not.
 */
bool binding_same_probes(const Binding *a, const Binding *b);

/*
 * Hands over what became of a binding to the one that takes its place: state, probes, rate limit.
 * That one had nothing of it, and what it had, from has now.
 */
void binding_adopt(Binding *binding, Binding *from);

/* Its file has another name, as a copy of it has found: each has the other's. */
void binding_exchange_paths(Binding *binding, Binding *next);

/*
 * next is a copy of the binding with probes in the file that has taken the place of the binding's:
 * from now on the binding has these, and next is its former.
 */
void binding_begin_file(Binding *binding, Binding *next);

const char *binding_state_to_string(BindingState state);

#endif
