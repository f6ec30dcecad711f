/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CLIENT_JOURNAL_H
#define CLIENT_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-journal.h>

#include "connection.h"

/* The reports of tlobd in the journal. */

typedef enum ReportKind {
        KIND_VIOLATION,
        KIND_COMPLETION,
        KIND_SUPPRESSION, /* violations that were held back */
        KIND_LOSS,        /* reports that were lost, of whatever binding */
        KIND_UNWRITTEN,   /* entries that were, before the journal had them */
        N_REPORT_KINDS,
} ReportKind;

#define REPORT_KIND(kind) (1U << (kind))

typedef struct JournalReport {
        ReportKind kind;
        uint64_t time_usec;  /* CLOCK_REALTIME */
        uint64_t id;         /* of the window, also among those of other boots; 0: not known */
        uint64_t length_ns;  /* UINT64_MAX: not known */
        const char *unseen;  /* of KIND_COMPLETION: as tlob_end_why_unseen() has it; static */
        uint64_t suppressed; /* of KIND_SUPPRESSION: how many; each is in one of those */
        bool is_repeated;    /* perhaps: there can be an entry of the same */
} JournalReport;

/*
 * Opens the journal of this machine, or (directory not NULL) the files in there. Returns 0, or a
 * negative errno after it has said what is wrong: also if tlobd is on another machine, and if no
 * entry may be read, so that "no violation" is never for want of permission.
 */
int journal_open_for(const Connection *connection, const char *directory, sd_journal **ret);

/* Whether it has an entry of that time or later, whoever wrote it: 1 or 0, or a negative errno. */
int journal_reaches(sd_journal *journal, uint64_t usec);

/* Whose entries count: root's, or with --user your own. */
uid_t journal_writer(const Options *options);

/*
 * Selects that writer's reports of these kinds since then, of these bindings (NULL after the last;
 * NULL: it does not matter) and of tasks in that unit (NULL: of no unit). Returns 0 or a negative
 * errno.
 */
int journal_select(sd_journal *journal, uid_t writer, unsigned kinds, const char *const *bindings,
                   const char *unit, uint64_t since_usec);

/* The next of them: returns 1; 0 if there is none; or a negative errno. */
int journal_next(sd_journal *journal, JournalReport *ret);

/* More of the one that is the last: a number (UINT64_MAX: there is none), and a text ("": none). */
uint64_t journal_number(sd_journal *journal, const char *field);

#define JOURNAL_TEXT_MAX 512 /* names of bindings and units are shorter */

char *journal_text(sd_journal *journal, const char *field, char buf[static JOURNAL_TEXT_MAX]);

#endif
