/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_CONTEXT_H
#define KERNEL_CONTEXT_H

#include "backend/backend.h"
#include "kernel/file.h"
#include "kernel/monitor.h"
#include "kernel/remover.h"
#include "kernel/state.h"
#include "kernel/stream.h"
#include "kernel/task.h"

/*
 * What the files of the kernel back end share: its bindings, the state of the monitor as last seen,
 * and what is still to be told to the manager. It calls none of those files.
 */

#define KERNEL_SLOTS         64 /* of the monitor, for all bindings together */
#define KERNEL_RETIRED_MAX   1024
#define KERNEL_LIMITS_MAX    32
#define KERNEL_THRESHOLD_ADD UINT64_C(10000) /* at most added to a budget, to tell bindings apart */

/* A binding here. */
typedef struct KernelEntry {
        bool used;
        bool retired;    /* removed, and its last reports not dispatched yet */
        bool given_up;   /* the manager is told to find another place for it */
        bool crowded;    /* the manager is told that another place would be better for it */
        bool has_rival;  /* the same, because of a binding that its threads may belong to */
        int fd;          /* of the file, so that it can be removed whatever becomes of the path */
        int file_watch;  /* of inotify; -1: none */
        KernelLine line; /* as the monitor shows it; text is owned, path too */
        KernelFile file;
        uint64_t since_ns; /* when it was written: no window of it is older */
        uint64_t budget_ns;
        char *unit;         /* that it is confined to, NULL: none */
        uint64_t cgroup_id; /* of the unit; 0: it does not run */
        unsigned cgroup_level;
        uint64_t violations;
} KernelEntry;

typedef struct KernelContext {
        Files *files; /* not owned */
        KernelTracing tracing;
        KernelMonitor monitor;
        KernelStream *stream;
        KernelTasks *tasks;
        KernelRemover *remover;
        uint32_t own_pid; /* violations of this process are dropped; 0: of none */
        bool sees_tasks;  /* thread ids in /proc are those of the events */
        int epoll_fd;
        int watch_fd;           /* inotify */
        int kick_fd;            /* readable when there is something to do without anyone's doing */
        int crowd_fd;           /* a timer: how many threads are there? */
        unsigned n_threads_max; /* seen at once, if that was more than there are slots; else 0 */
        int enable_watch;
        unsigned own_enables; /* writes to "enable" of our own, that the watch has yet to tell */
        uint64_t sequence;    /* makes ids of windows unique */

        KernelEntry *entries;
        size_t n_entries;
        KernelState state;         /* what is on disk */
        KernelLines foreign;       /* bindings of others, as last seen */
        KernelFile *foreign_files; /* of each, as it was when it was first seen */
        KernelLines left;          /* ours, of a daemon that died, that nobody has asked for yet */
        KernelLines leaving;       /* ours, that are being removed */

        /* Where bindings were taken away since threads were last forgotten; see kernel/reset.c. */
        KernelFile *gone;
        size_t n_gone;

        /* Thresholds of bindings that are gone: what comes of them belongs to nobody. */
        uint64_t retired[KERNEL_RETIRED_MAX];
        size_t n_retired; /* ever */

        BackendNotice *notices;
        size_t n_notices;
        uint64_t repair_begin_ns;
        unsigned n_repairs_now; /* since then */
        bool off;               /* rv/monitoring_on, as last seen */
        bool left_alone;        /* our bindings are not in it, because others wanted it so */
        bool is_changed;        /* somebody has written to it, and it was not compared since */

        uint64_t n_repairs;
        uint64_t n_resets;
        uint64_t n_outside;   /* violations of tasks that are not in the binding's unit */
        uint64_t n_ended;     /* of tasks that had ended, so that nobody knows their unit */
        uint64_t n_unowned;   /* of thresholds that are nobody's */
        uint64_t n_ambiguous; /* that nobody can tell whose they are */
        uint64_t n_false;     /* whose breakdown is below the threshold */
        uint64_t n_at_stops;  /* reported without a breakdown */
        char *limitations[KERNEL_LIMITS_MAX + 1];

        /* During dispatch() */
        BackendReportHandler handler;
        void *userdata;
} KernelContext;

/*
 * Files that can be waited for, tasks, and room for the bindings. done() also after init() has
 * failed.
 */
int kernel_context_init(KernelContext *c, const BackendConfig *config);
void kernel_context_done(KernelContext *c);

/* Tells the manager something. For want of memory, it is not told. */
void kernel_context_notice(KernelContext *c, int level, uint32_t index, const char *format, ...)
        _printf_(4, 5);

/* The same of a binding that it still measures, but not as it should. */
void kernel_context_advise(KernelContext *c, uint32_t index, const char *why);

/*
 * The oldest that was not told yet; its text is the caller's. Returns 1, or 0 when there is none.
 */
int kernel_context_next_notice(KernelContext *c, BackendNotice *ret);

/* What is still to be told of that binding: it has gone, and its index may become another one's. */
void kernel_context_forget_notices(KernelContext *c, uint32_t index);

/* The manager is to find another place for it. */
void kernel_context_give_up(KernelContext *c, KernelEntry *entry, const char *why);

/* Is it in the monitor, and to stay there? */
bool kernel_entry_is_live(const KernelEntry *entry);

/* Is there a binding of ours that is not about to go? */
bool kernel_context_has_entries(const KernelContext *c);

/*
 * Writes the entry's line to the monitor; on failure a sentence says why. It is not written where
 * the path leads to another file, because the entry's was replaced or lies in another mount
 * namespace: from v4 to v6, the monitor looks up the path that it has found for the descriptor, and
 * sets its probes there, in whatever code there is.
 */
int kernel_context_add_line(const KernelContext *c, const KernelEntry *entry, char **ret_reason);

/* It is not used again soon. */
void kernel_context_retire_threshold(KernelContext *c, uint64_t threshold);

/* Writes what has to be put back to disk. */
int kernel_context_save(const KernelContext *c);

/* Switches the monitor on or off. */
int kernel_context_enable(KernelContext *c, bool enabled);

#endif
