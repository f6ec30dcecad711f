/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_OBSERVER_H
#define MANAGER_OBSERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "binding/binding.h"
#include "report/violation.h"

/*
 * Who is told what happens in the manager, and lets others know: the bus. The manager knows nothing
 * else of it, and works without. Nothing that is handed over may be kept.
 */
typedef struct ManagerObserver {
        /* For those who listen. */
        void (*report)(const Violation *violation, void *userdata);
        void (*records_lost)(uint64_t n, void *userdata);
        void (*tolerance_changed)(const Binding *binding, void *userdata);
        void (*binding_added)(const Binding *binding, void *userdata);
        void (*binding_removed)(const Binding *binding, void *userdata);
        void (*binding_changed)(const Binding *binding, void *userdata);
        void (*reloading)(bool active, void *userdata);

        /*
         * For those who wait: something is known of a unit; a question about a file is answered; a
         * reload is done.
         */
        void (*unit_known)(const char *unit, void *userdata);
        void (*file_known)(unsigned question, void *userdata);
        void (*reloaded)(void *userdata);

        /* The configuration is in force for the first time. A negative errno ends the daemon. */
        int (*ready)(void *userdata);

        /* After each event of the loop. */
        void (*event_done)(void *userdata);

        /*
         * After one that can come again at once, for as long as it likes: others have their turn
         * now.
         */
        void (*take_turn)(void *userdata);
} ManagerObserver;

struct Manager;

/* observer must outlive the manager, or be taken back with NULL. There is one at most. */
void manager_observe(struct Manager *manager, const ManagerObserver *observer, void *userdata);

#endif
