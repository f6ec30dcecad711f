/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_BACKEND_H
#define KERNEL_BACKEND_H

#include "backend.h"
#include "kernel-file.h"
#include "kernel-monitor.h"
#include "kernel-remover.h"
#include "kernel-state.h"
#include "kernel-stream.h"
#include "kernel-task.h"

/* The insides of the kernel back end, which its files share. */

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

typedef struct KernelBackend {
        Backend backend; /* first */
        KernelTracing tracing;
        KernelMonitor monitor;
        KernelStream *stream;
        KernelTasks *tasks;
        KernelRemover *remover;
        bool sees_tasks; /* thread ids in /proc are those of the events */
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
        KernelState state;   /* what is on disk */
        KernelLines foreign; /* bindings of others, as last seen */
        KernelLines left;    /* ours, of a daemon that died, that nobody has asked for yet */
        KernelLines leaving; /* ours, that are being removed */

        /* Thresholds of bindings that are gone: what comes of them belongs to nobody. */
        uint64_t retired[KERNEL_RETIRED_MAX];
        size_t n_retired; /* ever */

        BackendNotice *notices;
        size_t n_notices;
        uint64_t repair_begin_ns;
        unsigned n_repairs_now; /* since then */
        bool off;               /* rv/monitoring_on, as last seen */

        uint64_t n_repairs;
        uint64_t n_outside;   /* violations of tasks that are not in the binding's unit */
        uint64_t n_unowned;   /* of thresholds that are nobody's */
        uint64_t n_ambiguous; /* that nobody can tell whose they are */
        uint64_t n_false;     /* whose breakdown is below the threshold */
        char *limitations[KERNEL_LIMITS_MAX + 1];

        /* During dispatch() */
        BackendReportHandler handler;
        void *userdata;
} KernelBackend;

/* Tells the manager something. For want of memory, it is not told. */
void kernel_backend_notice(KernelBackend *b, int level, uint32_t index, const char *format, ...)
        _printf_(4, 5);

/* The same of a binding that it still measures, but not as it should. */
void kernel_backend_advise(KernelBackend *b, uint32_t index, const char *why);

/* Is there a binding of ours that is not about to go? */
bool kernel_backend_has_entries(const KernelBackend *b);

/* Writes what has to be put back to disk. */
int kernel_backend_save(KernelBackend *b);

/* Can the monitor express that binding? As BackendOps.can(). */
int kernel_can(const Binding *binding, const ElfFile *elf, char **ret_reason);
int kernel_check_budget(uint64_t budget_ns, char **ret_reason);

/* Where the window of a binding ends: its stop, or the one place where the function returns. */
int kernel_find_stop(const Binding *binding, const ElfFile *elf, uint64_t *ret, char **ret_reason);

/* As BackendOps.limitations(). */
const char *const *kernel_limitations(KernelBackend *b);

/* Switches the monitor on or off. */
int kernel_backend_enable(KernelBackend *b, bool enabled);

/* The lowest threshold from the budget on that nobody has had: 0 if there is none. */
uint64_t kernel_choose_threshold(const KernelBackend *b, uint64_t budget_ns);
void kernel_retire_threshold(KernelBackend *b, uint64_t threshold);

/* Sets the binding in the monitor; on failure *ret_reason is a sentence, or NULL. */
int kernel_entry_attach(KernelBackend *b, KernelEntry *entry, const Binding *binding,
                        const ElfFile *elf, char **ret_reason);

/* Another threshold. When it cannot be set any more, the entry is given up. */
int kernel_entry_change(KernelBackend *b, KernelEntry *entry, uint64_t threshold);

/* The entry is free again. It touches the monitor no more. */
void kernel_entry_done(KernelBackend *b, KernelEntry *entry);

/*
 * Where events name no binding: can this one be told from all that are in the monitor, by the program of
 * the task? 0, or -EOPNOTSUPP and a sentence.
 */
int kernel_check_owner(const KernelBackend *b, const KernelEntry *entry, char **ret_reason);

/*
 * Has the line taken out of the monitor; fd: of its file, or -EBADF, taken over. reap() sees what became of
 * it, and wait_for() waits for those on the same file, where a new one may be in their way.
 */
void kernel_leaving_add(KernelBackend *b, const KernelLine *line, int fd);
void kernel_leaving_reap(KernelBackend *b);
void kernel_leaving_wait_for(KernelBackend *b, const char *path);

/* As a KernelEventHandler, during dispatch(): userdata is the KernelBackend. */
void kernel_on_violation(const KernelEvent *event, void *userdata);

/*
 * All bindings share the monitor's slots. check: is there room with this one, too? 0, or -EOPNOTSUPP and a
 * sentence. watch: starts to look again and again while there is any binding; run: looks now, if it is time.
 */
int kernel_crowd_check(const KernelBackend *b, char **ret_reason);
int kernel_crowd_watch(KernelBackend *b);
void kernel_crowd_run(KernelBackend *b);

/* Remembers which of the monitor's lines are somebody else's. */
int kernel_repair_note_foreign(KernelBackend *b, const KernelLines *lines);

/* Watches the monitor's files, so that what others do is seen at once. */
int kernel_repair_start(KernelBackend *b);
int kernel_repair_watch_file(KernelBackend *b, KernelEntry *entry);
void kernel_repair_unwatch_file(KernelBackend *b, KernelEntry *entry);

/*
 * Looks whether others did something, and whether all our bindings are where they belong; puts back
 * what is missing. Returns 0 or a negative errno.
 */
int kernel_repair_run(KernelBackend *b);

/* Others have taken bindings away too often of late. */
bool kernel_repair_is_hopeless(const KernelBackend *b);

#endif
