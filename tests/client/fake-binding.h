/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FAKE_BINDING_H
#define FAKE_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

/* The bindings of the stand-in, as objects on the bus. */

#define BINDINGS_MAX 1100
#define TEXT_MAX     512

typedef struct FakeBinding {
        char name[256];
        char unit[256];
        char source[TEXT_MAX];
        char executable[TEXT_MAX];
        char start[128];
        char stop[128];
        char start_note[64];
        char build_id[64];
        char price[128];
        char stop_note[128];
        char state[16];
        char reason[TEXT_MAX];
        char backend[16];
        char backend_reason[64];
        char reach[64];
        char cost[192];
        uint64_t budget_ns;
        uint64_t configured_ns;
        uint64_t start_offset;
        uint64_t windows;
        uint64_t violations;
        uint64_t open;      /* windows; 0: that is not known */
        uint64_t worked_ns; /* by "work" */
        bool added;
        bool is_mark;
        uint64_t untrapped;
} FakeBinding;

typedef struct Fake {
        sd_bus *bus;
        FakeBinding bindings[BINDINGS_MAX];
        size_t n;
        const char *unit_state; /* of tlobd.service */
        unsigned looks;         /* at that, until it is back; 0: that never happens */
        bool has_ended;         /* each window of GetViolations(), and not only one */
        bool refuses;           /* to tell all of them at once */
        const char *types;      /* of all properties; NULL: their own */
} Fake;

/*
 * Returns whether it is a command that changes them: "ended" (all windows of GetViolations()),
 * "uncounted" (nobody knows how many are open), "refuse" (to tell of all), "empty", "many" (a
 * thousand more, of ten units), "marks" ("marked0" and so on), "hostile" (names and units that are
 * markup, control characters, or long).
 */
bool fake_bindings_change(Fake *fake, const char *command);

/* With the canned bindings, on its bus. Returns 0 or a negative errno. */
int fake_bindings_start(Fake *fake);

/* NULL: there is none. */
FakeBinding *fake_find_binding(Fake *fake, const char *name);

/* Of its object; the caller's. */
int fake_binding_path(const FakeBinding *binding, char **ret);

#endif
