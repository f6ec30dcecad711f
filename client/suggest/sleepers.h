/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SUGGEST_SLEEPERS_H
#define SUGGEST_SLEEPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "suggest/members.h"
#include "suggest/sampler.h"

/*
 * Stacks of what sleeps, by looking into /proc from time to time: what is in a system call then is
 * in it for as long as it takes until the next look. Nobody is stopped for that.
 */

#define SLEEPER_STACK_SIZE 16384

typedef struct Sleepers {
        Members *members;   /* not owned */
        uint64_t looked_ns; /* when the processes were looked for */
        pid_t *processes;   /* of the members */
        size_t n_processes;
        uint8_t stack[SLEEPER_STACK_SIZE];
} Sleepers;

void sleepers_done(Sleepers *sleepers);

/*
 * Looks at each thread of the members that is in a system call. In the samples, only the stack
 * pointer and the instruction pointer are known. Returns 0, -ENOMEM, or the first negative errno of
 * on_sleeper.
 */
int sleepers_look(Sleepers *sleepers, uint64_t now_ns,
                  int (*on_sleeper)(const StackSample *sample, uint32_t call, void *userdata),
                  void *userdata);

/*
 * Reads a line of /proc/PID/task/TID/syscall. False: the thread is in no system call.
 */
bool sleeper_parse(const char *line, uint32_t *ret_call, uint64_t *ret_sp, uint64_t *ret_ip);

/* Does one wait for work in that system call: for input, a connection, a signal, time? */
bool call_is_of_waiting(const char *name);

#endif
