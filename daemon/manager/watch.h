/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_WATCH_H
#define MANAGER_WATCH_H

#include "manager/delays.h"
#include "manager/internal.h"

/*
 * It has its probes in that file: from now on they go when somebody writes there, and come back
 * later; and follow when another file takes its place. Nothing is to be done if it has no file.
 */
void manager_watch_file(Manager *manager, Binding *binding, const BindingFile *file);

/* The binding goes, or is not to be measured. */
void manager_unwatch_file(Manager *manager, Binding *binding);

/*
 * A FileChange, or a negative errno. That its mode or the like has changed is no change if inotify
 * has told it.
 */
int manager_compare_file(const Manager *manager, Binding *binding, unsigned *ret_question);

/* Its probes are taken out of its file, because it was written. */
void manager_note_written(Manager *manager, const Binding *binding);

/* A resolved binding: have probes been taken out of its file just now, because it was written? */
bool manager_file_was_written(const Manager *manager, const Binding *binding);

/* A binding without probes is settled when that is over. */
void manager_wait_for_file(Manager *manager, Binding *binding);

/* Its file is looked at after that time, but no sooner after the last look than that. */
#define WATCH_INTERVAL_USEC UINT64_C(1000000)
void manager_check_file_later(Manager *manager, Binding *binding, uint64_t delay_usec);

/* Files are looked at after that time, or before. */
void manager_arm_watch(Manager *manager, uint64_t delay_usec);

#endif
