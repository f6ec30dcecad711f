/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SCENARIO_H
#define SCENARIO_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The life of a daemon in this process: it starts with bindings, others are added and removed,
 * windows are measured or violations reported, and it ends. Everything that it does itself may be
 * made to fail, as fault_set() says; then it must get over that. There are two scenarios, each in a
 * program of its own: with a fake back end, and with probes.
 *
 * part: index of one of scenario_parts, which has faults of its own; directory: an empty one, where
 * its files may be. Returns in case of success; whatever is found wrong is written to standard
 * error, and ends the process with status 1.
 */
void scenario_run(const char *directory, size_t part);

/* Their names, NULL at the end. */
extern const char *const scenario_parts[];

/*
 * Part of the runner: sets the next fault for the same daemon, which has got over the last one.
 * Returns false if there is none, or no time.
 */
bool scenario_next_fault(void);

/* Also part of the runner: whether there is one, if the daemon gets over that which is set. */
bool scenario_has_more_faults(void);

/*
 * Before the first of them, in the process that has those in which they are run; directory: for
 * what all of them need. Says what is missing if it cannot run here.
 */
bool scenario_can_run(const char *directory);

/* After each of them: what it has left behind, as a sentence, is wrong. NULL: nothing. */
const char *scenario_leftovers(void);

/* With this, and what became of the daemon, the process is to exit. */
#define SCENARIO_STATUS 40

typedef enum ScenarioEnd {
        SCENARIO_WENT_ON,
        SCENARIO_DID_NOT_START,
        SCENARIO_ENDED, /* with an error, as when its bus is gone: systemd starts it again */
        SCENARIO_MUST_BE_RESTARTED, /* and says so */
} ScenarioEnd;

/* What its bindings are on. */
void scenario_measured(void);

#endif
