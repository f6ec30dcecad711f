/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef STANDIN_MONITOR_H
#define STANDIN_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "standin-thread.h"

/* The tlob monitor as user space meets it: its bindings, and what it answers to lines. */

typedef enum StandinDialect {
        STANDIN_V1,
        STANDIN_V2,
        STANDIN_V3,
        STANDIN_V4,
        STANDIN_V5,
        STANDIN_NAMED,
} StandinDialect;

typedef struct StandinBinding StandinBinding;

typedef struct StandinMonitor {
        StandinDialect dialect;
        StandinBinding *bindings;
        size_t n_bindings;
        unsigned n_added; /* ever: their numbers */
        StandinThreads threads;
        bool enabled;
        bool on;     /* rv/monitoring_on */
        int reactor; /* index in standin_reactors */
} StandinMonitor;

extern const char *const standin_reactors[];

/* 0, -EINVAL: no such dialect. */
int standin_monitor_init(StandinMonitor *monitor, const char *dialect);

/*
 * One write() to "monitor", by the task of that id. Returns 0 or the negative errno that it gives.
 */
int standin_monitor_write(StandinMonitor *monitor, const char *data, size_t size, pid_t writer);

/*
 * What a thread does: "start TID PATH:OFFSET", "stop TID PATH:OFFSET", "exit TID". 0, or what the
 * monitor's probes return; -ENOENT: there is no probe at that place, -ENODEV: the monitor is off.
 */
int standin_monitor_act(StandinMonitor *monitor, const char *action);

/* What "monitor" reads; the caller's. */
char *standin_monitor_read(const StandinMonitor *monitor);

/* Disabling an enabled monitor takes its bindings away. */
void standin_monitor_enable(StandinMonitor *monitor, bool enabled);

/* Another reactor while it is enabled is the same as off and on. */
int standin_monitor_react(StandinMonitor *monitor, const char *reactor);

#endif
