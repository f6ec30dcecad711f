/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TRACEFS_H
#define TRACEFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "backend/backend.h"
#include "file/files.h"
#include "raise.h"

/*
 * For tests of the kernel back end against the stand-in: a tracing file system in a mount namespace
 * of this process, with a monitor of some dialect, whose events this process raises.
 */

typedef struct Tracefs {
        pid_t standin;
        char *before; /* what must be the same in the end */
        Backend *backend;
        Files *files;
        Report *reports;
        size_t n_reports, n_allocated;
        BackendNotice *notices;
        size_t n_notices;
} Tracefs;

/* Once for the process. */
int tracefs_setup_namespace(void **state);
int tracefs_teardown_namespace(void **state);

/* The real one, aside. */
void tracefs_mount_real(void);
void tracefs_unmount_real(void);

/* Mounts a stand-in, and poisons what the daemon must leave alone. */
void tracefs_start(Tracefs *tracefs, const char *dialect);

/* From now on: as it is now. */
void tracefs_take_stock(Tracefs *tracefs);

/* Another stand-in in the place of the one that is there; the events stay. */
void tracefs_change_dialect(Tracefs *tracefs, const char *dialect);

/* Frees the back end, and checks that everything is as it was. */
void tracefs_finish(Tracefs *tracefs);

/* The back end, made. */
void tracefs_make_backend(Tracefs *tracefs);

/*
 * Adds a binding; keys: alternating keys and values, NULL at the end. Returns its index, or a
 * negative errno.
 */
int tracefs_add(Tracefs *tracefs, const char *const *keys, uint64_t cgroup_id, unsigned level,
                char **ret_error);

/* Files below the tracing file system. */
char *tracefs_read(const char *file);
int tracefs_write(const char *file, const char *text);

/* The threshold of the i-th line of the monitor. */
uint64_t tracefs_threshold(size_t i);

/*
 * What a thread does at a place of the i-th line of the monitor: "start" or "stop". 0, or a
 * negative errno that tells why the monitor does not take it.
 */
int tracefs_act(const char *verb, pid_t id, size_t i);

/*
 * A window of the i-th line that runs over its budget; it is heard of if the monitor takes its
 * start.
 */
void tracefs_overrun(pid_t id, size_t i);

/* Reads what is there: reports and notices. */
void tracefs_collect(Tracefs *tracefs);

/* The same, but waits until there is something. */
void tracefs_wait(Tracefs *tracefs);

void tracefs_forget(Tracefs *tracefs);

/* Back ends that are made from now on leave out this process. */
extern bool tracefs_leave_out_self;

/* What a test has in common with others: a back end, and a binding of two places in the target. */
void tracefs_begin(Tracefs *tracefs, const char *dialect);
int tracefs_add_marks(Tracefs *tracefs, const char *budget);

/* The same on that file, of the target's code: the binding's index, or a negative errno. */
int tracefs_add_marks_on(Tracefs *tracefs, const char *path, const char *budget, char **ret_error);

/* The path of a program that nobody runs. */
const char *tracefs_target(void);

/* A process of the target, or of a copy of it, that waits until it is stopped. */
pid_t tracefs_start_program(const char *path);
void tracefs_stop_program(pid_t child);

/* A copy of the target, or of a library, that nobody runs; path is a template as of mkstemp(). */
void tracefs_copy_target(char *path);
void tracefs_copy_library(char *path);

size_t tracefs_count_lines(void);

/* Waits until the monitor has so many. */
void tracefs_expect_lines(Tracefs *tracefs, size_t n);
bool tracefs_is_enabled(void);

/* True if a sentence of the limitations has that in it. */
bool tracefs_is_told(Tracefs *tracefs, const char *part);
void tracefs_assert_told(Tracefs *tracefs, const char *part);

/* Waits until the notices say that, of the binding with that index. */
void tracefs_expect_notice(Tracefs *tracefs, const char *part, uint32_t index);

#endif
