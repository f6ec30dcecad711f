/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FAKE_SYSTEMD_H
#define FAKE_SYSTEMD_H

#include <stdbool.h>
#include <stddef.h>

#include "fixture.h"

/*
 * A stand-in for systemd, on the client's end of a fixture's bus: it answers what is written down
 * here.
 */

#define SYSTEMD      "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define UNITS_MAX    8

typedef struct FakeUnit {
        const char *name; /* an alias, unless it is the id */
        const char *id;
        const char *state;
        char fragment[128];
        char drop_in[128];
        const char *cgroup; /* "/": it runs */
        const char *programs[2];
        int end_code; /* of its main process, as in waitid(2) */
        int end_status;
        uint64_t end_usec;
} FakeUnit;

/* What it would say. */
typedef struct FakeSystemd {
        Fixture *fixture;
        char directory[64]; /* of unit files */
        const char *cgroup; /* of its own */
        FakeUnit units[UNITS_MAX];
        size_t n;
        bool is_broken;
        unsigned n_questions;
        unsigned n_started; /* by StartUnit(); their jobs are "/job/1" and so on */
        char started[64];   /* the last one: its job goes on if it is asked for again */
        bool starts_nothing;
        bool starts_late; /* when nobody waits for its answer any more */
} FakeSystemd;

extern FakeSystemd systemd;

/* A fixture whose manager follows its units. */
int fake_systemd_setup(void **state);

/* The same, where all its units are below that cgroup, as those of a user's manager are. */
int fake_systemd_setup_below(void **state, const char *cgroup);

/* A unit with that text as its file; names stay the caller's. */
FakeUnit *add_unit(const char *name, const char *text);

/* Into its directory. */
void write_file(const char *name, const char *text);

/* Its signals: any, and that a unit's properties have changed. */
void send_signal(const char *path, const char *interface, const char *member, const char *types,
                 ...);
void unit_changes(const char *name);

/* The same by somebody else, who addresses it to the daemon. */
void forge_signal(const char *path, const char *interface, const char *member, const char *types,
                  ...);

/* A section with that budget, and what has become of it after the daemon has read all again. */
#define SECTION(budget) "[X-Tlob a]\nExecutable=libc.so.6\nFunction=fsync\nBudgetSec=" budget "\n"

void reload(void);
const Binding *binding(const char *name);
void assert_state(const char *name, BindingState state);

/* It was executed anew, and is on the bus again. */
void systemd_comes_back(void);

#endif
