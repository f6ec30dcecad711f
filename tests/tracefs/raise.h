/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef RAISE_H
#define RAISE_H

#include <stdint.h>

/* Makes the events of that dialect in a tracing file system; and takes them away again. */
void raise_add_events(const char *tracing, const char *dialect);
void raise_remove_events(const char *tracing);

/* What the monitor would say. spent: running, waiting, sleeping, as shares of a sum. */
void raise_error_env(int id, const char *state, const char *event);
void raise_error_env_after(int id, const char *state, const char *event, uint64_t elapsed);
void raise_detail(int id, uint64_t threshold, uint64_t running, uint64_t waiting,
                  uint64_t sleeping);
void raise_error(int id, const char *state, const char *event);
void raise_change(int id, const char *state, const char *event, const char *next_state);

/* From now on all is raised on that CPU; -1: on any. */
void raise_on_cpu(int cpu);

/* An error and its detail. */
void raise_violation(int id, const char *state, uint64_t threshold, uint64_t running,
                     uint64_t waiting, uint64_t sleeping);

#endif
