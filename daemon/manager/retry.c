/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sees to it that what journald did not take reaches it when it takes entries again, and says then
 * what did not. Whoever logs does so from an event of the loop: after each of them the queue is
 * looked at. journald's socket tells nobody who is not connected to it when there is room again,
 * and a connection would not outlive it, so it is tried again: soon when it took some the last
 * time, for where nobody has raised net.unix.max_dgram_qlen, its socket holds ten entries; else
 * some times a second at first, and once a second in the end.
 */

#include "manager/retry.h"

#include <time.h>

#include "journal-socket.h"
#include "journal.h"

#define RETRY_SOON_USEC 1000
#define RETRY_USEC      50000
#define RETRY_LATE_USEC 1000000
#define DRAIN_USEC      500000

/* Entries that were dropped since this was said, also by the daemon before this one. */
static uint64_t untold_drops(const Manager *m) {
        return m->n_inherited_unwritten + journal_socket_drops().stalled - m->n_unwritten;
}

/* The queue is empty, whoever has sent what was in it. */
static void announce_drops(Manager *m) {
        uint64_t n = untold_drops(m);

        if (n == 0)
                return;
        m->n_inherited_unwritten = 0;
        m->n_unwritten = journal_socket_drops().stalled;
        (void) journal_unwritten(n);
}

void manager_on_unwritten(uint64_t n, void *userdata) {
        Manager *m = userdata;

        m->n_inherited_unwritten += n;
        m->n_pending = SIZE_MAX; /* to be noted again, whatever becomes of it */
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;
        size_t before = journal_socket_pending();

        m->journal_retry = sd_event_source_disable_unref(m->journal_retry);
        if (journal_socket_flush() < before)
                m->journal_wait_usec = RETRY_SOON_USEC;
        else if (m->journal_wait_usec < RETRY_USEC)
                m->journal_wait_usec = RETRY_USEC;
        else if (m->journal_wait_usec < RETRY_LATE_USEC)
                m->journal_wait_usec *= 2;
        return 0;
}

/*
 * For the next daemon: what waits here when this one ends is lost, however that happens, unless it
 * is kept; and so is what was dropped and has not been said.
 */
static void note_pending(Manager *m) {
        size_t n = (m->is_journal_kept ? 0 : journal_socket_pending()) + (size_t) untold_drops(m);

        if (m->n_pending == n)
                return;
        m->n_pending = n;
        backends_note_unwritten(m->backends, n);
}

void manager_drain_journal(Manager *m) {
        const struct timespec step = { .tv_nsec = RETRY_SOON_USEC * 1000L };

        for (unsigned i = 0; journal_socket_flush() > 0 && i < DRAIN_USEC / RETRY_SOON_USEC; i++)
                (void) nanosleep(&step, NULL);
        if (m->backends)
                note_pending(m);
}

void manager_retry_journal(Manager *m) {
        if (journal_socket_pending() == 0) {
                m->journal_wait_usec = RETRY_USEC;
                announce_drops(m);
        }
        note_pending(m);
        if (m->journal_retry || journal_socket_pending() == 0)
                return;
        (void) sd_event_add_time_relative(m->event, &m->journal_retry, CLOCK_MONOTONIC,
                                          m->journal_wait_usec, RETRY_SOON_USEC, on_retry, m);
}
