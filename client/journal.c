/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What tlobd wrote to the journal, read back by its fields (tlobd(8), JOURNAL). Only entries of
 * root's processes count, or of one's own: everybody may write one that looks like a report.
 */

#include "journal.h"

#include <ctype.h>
#include <err.h>

#include "report/violation.h"
#include "tlob-messages.h"

static const char *const message_ids[N_REPORT_KINDS] = {
        [KIND_VIOLATION] = TLOB_MESSAGE_VIOLATION_STR,
        [KIND_COMPLETION] = TLOB_MESSAGE_COMPLETION_STR,
        [KIND_SUPPRESSION] = TLOB_MESSAGE_SUPPRESSION_STR,
        [KIND_LOSS] = TLOB_MESSAGE_LOSS_STR,
        [KIND_UNWRITTEN] = TLOB_MESSAGE_UNWRITTEN_STR,
};

/* Files that may not be read are skipped as if they were not there. */
static bool has_entries(sd_journal *journal) {
        return sd_journal_seek_head(journal) >= 0 && sd_journal_next(journal) > 0;
}

int journal_open_for(const Connection *connection, const char *directory, sd_journal **ret) {
        _cleanup_(sd_journal_closep) sd_journal *journal = NULL;
        int r;

        if (!directory && !connection_is_local(connection))
                return connection_complain_elsewhere(connection, "The journal");
        if (directory)
                r = sd_journal_open_directory(&journal, directory, 0);
        else
                /* Where journald keeps none for each user, a user's are in that of the system. */
                r = sd_journal_open(&journal, connection->options->user
                                                      ? SD_JOURNAL_LOCAL_ONLY
                                                      : SD_JOURNAL_LOCAL_ONLY | SD_JOURNAL_SYSTEM);
        if (r < 0) {
                errno = -r;
                warn("Failed to open the journal%s%s", directory ? " in " : "", directory ?: "");
                return r;
        }
        if (!has_entries(journal)) {
                warnx("There is no journal%s%s that you may read; run it as root, or as a member "
                      "of the group systemd-journal",
                      directory ? " in " : "", directory ?: "");
                return -ENODATA;
        }
        *ret = TAKE_PTR(journal);
        return 0;
}

int journal_reaches(sd_journal *journal, uint64_t usec) {
        uint64_t last_usec;
        int r;

        r = sd_journal_seek_tail(journal);
        if (r >= 0)
                r = sd_journal_previous(journal);
        if (r <= 0)
                return r;
        r = sd_journal_get_realtime_usec(journal, &last_usec);
        return r < 0 ? r : last_usec >= usec;
}

static int add_match(sd_journal *journal, const char *field, const char *value) {
        char match[JOURNAL_TEXT_MAX];
        int n = snprintf(match, sizeof(match), "%s=%s", field, value);

        return n >= (int) sizeof(match) ? -ENAMETOOLONG
                                        : sd_journal_add_match(journal, match, (size_t) n);
}

static int add_kinds(sd_journal *journal, unsigned kinds) {
        int r = 0;

        for (unsigned i = 0; r >= 0 && i < N_REPORT_KINDS; i++)
                if (kinds & REPORT_KIND(i))
                        r = add_match(journal, "MESSAGE_ID", message_ids[i]);
        return r;
}

uid_t journal_writer(const Options *options) {
        return options->user ? geteuid() : 0;
}

int journal_select(sd_journal *journal, uid_t writer, unsigned kinds, const char *const *bindings,
                   const char *unit, uint64_t since_usec) {
        char uid[sizeof("4294967295")];
        int r;

        sd_journal_flush_matches(journal);
        (void) snprintf(uid, sizeof(uid), "%u", writer);
        r = add_match(journal, "_UID", uid);
        if (r >= 0)
                r = add_kinds(journal, kinds);
        if (r >= 0 && bindings)
                r = sd_journal_add_conjunction(journal);
        for (; r >= 0 && bindings && *bindings; bindings++)
                r = add_match(journal, "TLOB_BINDING", *bindings);
        if (r >= 0 && unit)
                r = sd_journal_add_disjunction(journal);
        if (r >= 0 && unit)
                r = add_match(journal, "TLOB_UNIT", unit);
        return r < 0 ? r : sd_journal_seek_realtime_usec(journal, since_usec);
}

char *journal_text(sd_journal *journal, const char *field, char buf[static JOURNAL_TEXT_MAX]) {
        size_t length, skip = strlen(field) + 1;
        const void *data;

        buf[0] = '\0';
        if (sd_journal_get_data(journal, field, &data, &length) < 0 || length < skip ||
            length - skip >= JOURNAL_TEXT_MAX)
                return buf;
        memcpy(buf, (const char *) data + skip, length - skip);
        buf[length - skip] = '\0';
        return buf;
}

uint64_t journal_number(sd_journal *journal, const char *field) {
        char text[JOURNAL_TEXT_MAX], *end;
        uint64_t n;

        (void) journal_text(journal, field, text);
        errno = 0;
        n = strtoull(text, &end, 10);
        return errno != 0 || !isdigit((unsigned char) text[0]) || *end != '\0' ? UINT64_MAX : n;
}

/* A window's number is its own only until the next boot. */
static uint64_t read_id(sd_journal *journal) {
        uint64_t id = journal_number(journal, "TLOB_WINDOW_ID"), hash = 0;
        char boot[JOURNAL_TEXT_MAX];

        if (id == UINT64_MAX || id == 0)
                return 0;
        for (const char *c = journal_text(journal, "_BOOT_ID", boot); *c != '\0'; c++)
                hash = (hash ^ (uint8_t) *c) * UINT64_C(0x100000001b3);
        return (id ^ hash) ?: 1;
}

static uint64_t number_or_0(sd_journal *journal, const char *field) {
        uint64_t n = journal_number(journal, field);

        return n == UINT64_MAX ? 0 : n;
}

static int read_kind(sd_journal *journal, ReportKind *ret) {
        const size_t skip = strlen("MESSAGE_ID=");
        size_t length;
        const void *data;
        int r;

        r = sd_journal_get_data(journal, "MESSAGE_ID", &data, &length);
        if (r < 0)
                return r;
        for (unsigned i = 0; i < N_REPORT_KINDS; i++)
                if (length - skip == strlen(message_ids[i]) &&
                    memcmp((const char *) data + skip, message_ids[i], length - skip) == 0) {
                        *ret = i;
                        return 0;
                }
        return -EBADMSG;
}

int journal_next(sd_journal *journal, JournalReport *ret) {
        char end[JOURNAL_TEXT_MAX];
        JournalReport report;
        int r;

        r = sd_journal_next(journal);
        if (r <= 0)
                return r;
        r = read_kind(journal, &report.kind);
        if (r >= 0)
                r = sd_journal_get_realtime_usec(journal, &report.time_usec);
        if (r < 0)
                return r;
        report.id = read_id(journal);
        report.length_ns = journal_number(journal, "TLOB_ELAPSED_NS");
        (void) journal_text(journal, "TLOB_END", end);
        report.unseen = tlob_end_why_unseen(end);
        report.suppressed = number_or_0(journal, "TLOB_SUPPRESSED");
        report.is_repeated = number_or_0(journal, "TLOB_REPEATED") != 0;
        *ret = report;
        return 1;
}
