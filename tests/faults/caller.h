/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CALLER_H
#define CALLER_H

#include <stdint.h>

/* A program with windows, caller.c: what the test sends to it, and gets back when that is done. */

typedef enum CallerWindow {
        CALLER_FUNCTION, /* a call of caller_function() */
        CALLER_MARKERS,  /* from caller_begin() to caller_end() */
} CallerWindow;

typedef struct CallerRequest {
        uint64_t number;
        CallerWindow window;
        uint32_t n;    /* windows */
        uint32_t usec; /* that each of them takes, and a little more */
} CallerRequest;

#endif
