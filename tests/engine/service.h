/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SERVICE_H
#define SERVICE_H

#include "engine.h"

/* For tests of what is confined to a unit: cgroups like those of services, and programs in them. */

#define SERVICE_GROUP "tlob-test.slice/test.service"
#define OTHER_GROUP   "tlob-test.slice/others.service"

void service_make_groups(void);
void service_remove_groups(void);

/*
 * Removes a cgroup, of whatever test, once the last task has left it. Returns 0 or a negative
 * errno.
 */
int service_remove_group(int dir_fd, const char *path);

/* As engine_setup() and engine_teardown(), with these cgroups. */
int service_setup(void **state);
int service_teardown(void **state);

void service_move(pid_t pid, const char *group);

/* As engine_add(), confined to SERVICE_GROUP. */
uint32_t service_add(Engine *engine, const char *const *keys);

/* Waits until a thread of the process is in the system call of that number. */
void service_await_call(pid_t pid, long number);

/* As program_start(), but the program is moved into that cgroup before the first of the words. */
void service_start(Victim *victim, const char *path, const char *group, const char *words);

#endif
