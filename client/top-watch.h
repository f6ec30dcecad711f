/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TOP_WATCH_H
#define TOP_WATCH_H

#include "connection.h"
#include "filter.h"
#include "sender.h"
#include "top/tally.h"
#include "top/windows.h"

/* What tlobctl top knows of the daemon: asked for without waiting, and told by signals. */

typedef struct TopWatch {
        Connection *connection; /* not owned; open */
        const Filter *filter;   /* not owned, neither is the pattern */
        const char *pattern;

        Tallies before, now; /* the last two answers; before is empty at first */
        OpenWindows windows;
        bool is_new;    /* there is an answer that nobody has looked at: the reader clears it */
        bool is_gone;   /* the daemon */
        bool is_silent; /* it is there, but did not answer */
        char *refusal;  /* then: what it has said instead; NULL: nothing */
        bool has_moved; /* it went or came: the reader clears it */
        int error;      /* 0, or why it cannot go on */

        Sender sender;
        sd_bus_slot *matches[3];
        sd_bus_slot *asking, *asking_windows; /* NULL: no answer is due */
        uint64_t asked_ns;
        bool was_late; /* the last answer, which was dropped for that */
} TopWatch;

/*
 * Asks for the first time, and waits for the answer. Returns 0, or a negative errno after it has
 * said what is wrong.
 */
int top_watch_open(TopWatch *watch);
void top_watch_close(TopWatch *watch);

/* Asks again, unless an answer is due. Returns 0 or a negative errno. */
int top_watch_ask(TopWatch *watch);

#endif
