/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef REPORT_ENTRIES_H
#define REPORT_ENTRIES_H

#include "journal.h"
#include "page/overruns.h"

/* From the entries of the journal to the windows that were over their budget. */

/* Names of bindings and units, of which those of units are complete, too; NULL after the last. */
typedef struct Wanted {
        char *const *names;
        char **units; /* owned, as is the next */
        bool *met;    /* there was something of it */
} Wanted;

/*
 * Adds what is wanted of that writer's entries in the journal since then, and what was lost of
 * anything. Returns 0 or a negative errno.
 */
int report_read_entries(sd_journal *journal, uid_t writer, uint64_t since_usec, Wanted *wanted,
                        OverrunList *list, uint64_t *lost);

#endif
