/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_LENT_H
#define MANAGER_LENT_H

#include <stdbool.h>

#include "binding/binding.h"
#include "report/statistics.h"
#include "report/violation.h"

/*
 * Bindings of others: the tlobd of a user has them measured here, and sees to all else itself. They
 * are in no table, on no bus and in no file of this daemon, and end with it.
 */

struct Manager;

/* Who has them. Nothing that is handed over may be kept, but bindings. */
typedef struct LentHandlers {
        void (*report)(Binding *binding, const Report *report, void *userdata);

        /*
         * It is measured no longer, and the callee's again. why: a sentence; NULL: this daemon
         * ends. final and lengths: what was counted.
         */
        void (*gone)(Binding *binding, const Statistics *final, const Histogram *lengths,
                     const char *why, void *userdata);

        /* The configuration is in force: is there to be any? */
        void (*configured)(bool any, void *userdata);
} LentHandlers;

/* handlers must outlive the manager, or be taken back with NULL. */
void manager_handle_lent(struct Manager *manager, const LentHandlers *handlers, void *userdata);

/*
 * Measures a binding that has lent.user and its file, and a cgroup. It stays the caller's, and must
 * be there until it is taken back or has gone. Returns 0, -EINPROGRESS (its file is being looked
 * at; to be called again when the observer hears of *ret_question), or a negative errno with a
 * sentence.
 */
int manager_lend(struct Manager *manager, Binding *binding, unsigned *ret_question,
                 char **ret_error);

/* Measures it no longer; the last reports come before this returns. */
void manager_take_back(struct Manager *manager, Binding *binding, Statistics *ret_final,
                       Histogram *ret_lengths);

/* How many are measured. */
size_t manager_count_lent(const struct Manager *manager);

/* The configuration may have changed. */
void manager_configure_lent(struct Manager *manager);

/* What its back end says of it, or has counted. */
void manager_on_lent_report(struct Manager *manager, Binding *binding, const Report *report);

/* It must not be measured any longer; why: as above. */
void manager_evict_lent(struct Manager *manager, Binding *binding, const char *why);

#endif
