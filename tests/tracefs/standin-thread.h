/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef STANDIN_THREAD_H
#define STANDIN_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Threads as the monitor sees them: in a window or not, and from v5 on of which binding. */

#define STANDIN_SLOTS 64

typedef struct StandinThread {
        pid_t id;
        unsigned
                /* number of a binding; 0: it has gone, and the thread is nobody's from now on */
                owner;
        bool is_open;
} StandinThread;

typedef struct StandinThreads {
        bool are_owned; /* v5 and later */
        StandinThread items[STANDIN_SLOTS];
        size_t n;
} StandinThreads;

/*
 * What the monitor's probes do. 0, or what they return, which a kernel drops: -EALREADY, -ENOSPC,
 * -ESRCH.
 */
int standin_thread_start(StandinThreads *threads, pid_t id, unsigned binding);
int standin_thread_stop(StandinThreads *threads, pid_t id, unsigned binding);
void standin_thread_exit(StandinThreads *threads, pid_t id);

/* A binding is taken away. */
void standin_threads_orphan(StandinThreads *threads, unsigned binding);

#endif
