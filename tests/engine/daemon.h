/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TEST_DAEMON_H
#define TEST_DAEMON_H

#include "engine.h"

/*
 * Back ends in processes of their own, as daemons are: they can be killed, and others go on where
 * they stood. The test has their descriptors, as the service manager does.
 */

/* What a daemon answers when it is asked. */
typedef struct Answer {
        Statistics statistics; /* with its past */
        uint64_t n_lengths;    /* windows of which they are known */
        size_t n_violations;   /* reports of this daemon */
        size_t n_completions;
        uint64_t slept_ns; /* the most by any window that has completed */
} Answer;

typedef struct Daemon {
        pid_t pid;
        bool is_of_service; /* its binding is confined to SERVICE_GROUP, which is there */
        int ask;            /* a byte: an answer is wanted */
        int answers;
        int fds[BACKEND_N_KEPT]; /* -EBADF: there are none; they outlive the process */
} Daemon;

/* What a daemon is told: each is answered. */
#define ASK   '?'
#define RESET '0'
#define LOOK  '!' /* what comes is looked at for some milliseconds; answered with nothing */

/* For the next that are started: the same binding in another file, too, which was there before. */
extern const char *const *daemon_former_keys;

/* For cmocka: *state is a Daemon. With the last descriptor all is out of the kernel. */
int daemon_set_up(void **state);
int daemon_tear_down(void **state);

/* One with that binding, which it has in place when this returns. */
void daemon_start(Daemon *d, const char *const *keys);

/* The same, and it is on its way. */
void daemon_fork(Daemon *d, const char *const *keys);

void daemon_kill(Daemon *d);

Answer daemon_tell(const Daemon *d, char what);
Answer daemon_ask(const Daemon *d);

/* The next one finds that the programs were of another build. */
void daemon_be_other_build(const Daemon *d);

/* It finds that their maps were, too: its own cannot go on with them. */
void daemon_be_other_layout(const Daemon *d);

#endif
