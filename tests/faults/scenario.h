/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SCENARIO_H
#define SCENARIO_H

/*
 * The life of a daemon with a fake back end, in this process: it starts with bindings, others are
 * added and removed, violations are reported, and it ends. Everything that it does itself may be
 * made to fail, as fault_set() says; then it must get over that.
 *
 * directory: an empty one, where its files may be. Returns in case of success; whatever is found
 * wrong is written to standard error, and ends the process with status 1.
 */
void scenario_run(const char *directory);

/* With this, and what became of the daemon, the process is to exit. */
#define SCENARIO_STATUS 40

typedef enum ScenarioEnd {
        SCENARIO_WENT_ON,
        SCENARIO_DID_NOT_START,
        SCENARIO_ENDED, /* with an error, as when its bus is gone: systemd starts it again */
} ScenarioEnd;

ScenarioEnd scenario_end(void);

/* What its bindings are on. */
void scenario_measured(void);

#endif
