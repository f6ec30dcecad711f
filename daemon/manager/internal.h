/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_INTERNAL_H
#define MANAGER_INTERNAL_H

#include "config/config.h"
#include "file/files.h"
#include "manager/backends.h"
#include "manager/lent.h"
#include "manager/manager.h"
#include "manager/templates.h"
#include "unit/unit.h"

/* The state that the files of this room share. Nobody else knows what is in it. */

/* Calls that member of the observer, if there is one, with arguments. */
#define manager_tell(manager, member, ...)                                                         \
        do {                                                                                       \
                if ((manager)->observer)                                                           \
                        (manager)->observer->member(__VA_ARGS__, (manager)->observer_data);        \
        } while (false)

/* The same for a member without any. */
#define manager_announce(manager, member)                                                          \
        do {                                                                                       \
                if ((manager)->observer)                                                           \
                        (manager)->observer->member((manager)->observer_data);                     \
        } while (false)

/* A binding that goes from one back end to another at that time: see manager/move.c. */
typedef struct Move {
        const Binding *binding; /* NULL: none does */
        const Backend *from;
        uint64_t at_ns;
} Move;

/* A look at what probes cost: see manager/guard.c. */
typedef struct Guard {
        sd_event_source *timer; /* NULL: nobody looks */
        uint64_t began_ns;
        uint64_t cost_ns; /* of all probes, at that time */
} Guard;

/* A unit that is being started: see manager/action.c. */
typedef struct Action {
        char *unit; /* NULL: none is */
        char *binding;
        uint64_t id; /* of the window */
} Action;

#define ACTIONS_MAX 8

/* A file whose probes were taken away because somebody wrote in it. */
typedef struct WrittenFile {
        dev_t device;
        ino_t inode;
        uint64_t usec;
} WrittenFile;

/* Why instances of a template are not measured. */
typedef struct TemplateFailure {
        char *reason; /* without the name of the instance */
        uint64_t told_ns;
} TemplateFailure;

/* How many processes have mapped a file, as was counted for some binding. */
typedef struct CountedFile {
        dev_t device;
        ino_t inode;
        char *cgroup; /* of the binding's unit; NULL: it has none */
        BindingUsers users;
} CountedFile;

struct inotify_event;

/*
 * To settle a binding is to watch its file and to look at its unit later; and what is found then
 * settles it anew. So those who watch and wait know those who act by this only.
 */
typedef struct FollowHandlers {
        /* inotify has told that of a file, or that it has left something out. */
        void (*heard)(Manager *manager, const struct inotify_event *event);

        /* What is due at that time. They return when the next is, or UINT64_MAX. */
        uint64_t (*check_files)(Manager *manager, uint64_t usec);
        uint64_t (*look_at_units)(Manager *manager, uint64_t usec);
} FollowHandlers;

struct Manager {
        RuntimeScope scope;
        const char *version; /* NULL: nobody has said. Not owned */
        sd_event *event;
        const ManagerObserver *observer; /* NULL: nobody */
        void *observer_data;
        Units *units;
        bool reloading;
        bool reload_again; /* asked for while it was going on */
        bool forgives;     /* see manager_forgive() */
        bool is_ready;     /* the configuration has been read once */
        bool is_settling;  /* it has been read, and their units and files are still looked at */
        size_t n_known;    /* bindings, the first ones, whose units systemd has told of since */
        bool has_looked_for_old; /* see manager_look_for_old() */
        bool files_are_late;     /* some do not answer, and it has been said */
        bool watch_has_failed;   /* the last attempt to watch a file, and it has been said */
        bool status_has_changed; /* the line of "systemctl status", which is sent after the event */
        bool is_stored;          /* what back ends have is kept for the next daemon */
        const char *keep_in;     /* a directory for that; NULL: systemd does. Not owned */
        int keep_fd;             /* of the directory, which is locked as long as it is open */
        int reload_error;        /* of the last reload, which has changed nothing then */
        Files *files;
        sd_event_source *files_source;

        const char *const *directories; /* of the configuration, highest precedence first */
        Config *config;

        Backends *backends;
        Templates *templates;
        unsigned n_applying; /* while bindings are applied that belong together */

        Move move;
        Guard guard;
        Action actions[ACTIONS_MAX];
        sd_event_source *builds_timer; /* see manager/builds.c; NULL: nothing is to be compared */
        sd_event_source *tolerance_timer; /* see manager/tolerance.c; NULL: nothing is due */
        uint64_t tolerance_due_ns;        /* valid with it */

        const FollowHandlers *follow;

        sd_event_source *looks; /* at processes of units; pending while one is due */

        sd_event_source *watch_source; /* inotify, on files that have probes; see manager/watch.c */
        sd_event_source *watch_timer;  /* pending while one is due to be looked at */
        CountedFile counted;           /* the last one */
        WrittenFile written[16];       /* the last ones, in a ring */
        TemplateFailure failures[16];  /* those that were told, the same; see manager/state.c */
        unsigned n_written;            /* so far */
        unsigned n_failures;

        RateLimit overall_rate; /* of what is told; each binding has its own too */
        ViolationLog violations;
        struct Told *told;            /* violations that were told, for their completions */
        sd_event_source *suppression; /* pending while reports are held back */
        sd_event_source *after_event;
        sd_event_source *journal_retry; /* pending while entries wait for the journal */
        uint64_t journal_wait_usec;     /* until the next attempt */
        uint64_t n_unwritten;           /* entries that it never got, as far as it was told */
        uint64_t n_inherited_unwritten; /* the same of the daemon before, not told yet */
        size_t n_pending;               /* entries that end with the daemon, as last noted */
        bool is_journal_kept;           /* those that wait do not */
        uint64_t n_suppressed;
        int cgroup_root;

        Statistics past; /* of bindings that are gone */

        Binding **lent; /* see manager/lent.h; not owned */
        size_t n_lent;
        const LentHandlers *lent_handlers; /* NULL: nobody has any */
        void *lent_data;
};

#endif
