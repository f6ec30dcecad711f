/* SPDX-License-Identifier: MIT */

/*
 * A service that handles requests, every tenth of which takes too long. In a drop-in of it:
 *
 *     [X-Tlob request]
 *     Mark=request
 *     BudgetSec=20ms
 *
 * cc $(pkg-config --cflags tlob-mark) -O2 -o mark mark.c
 * Add -DTLOB_MARK_JOIN for windows without traps, -DTLOB_MARK_USER_EVENTS for perf and ftrace.
 * usage: mark [REQUESTS]
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tlob-mark.h>

TLOB_MARK(load);
TLOB_MARK(request);

static void wait_ms(long ms) {
        const struct timespec time = { .tv_nsec = ms * 1000000 };

        (void) nanosleep(&time, NULL);
}

/* From one place to another: each path from the first has to come to the second. */
static void load_configuration(void) {
        tlob_begin(load);
        wait_ms(5);
        tlob_end(load);
}

/* From here to the end of the block, by whichever return. */
static int handle_request(unsigned number) {
        TLOB_SCOPE(request);

        if (number % 10 == 0) {
                wait_ms(50);
                return -1;
        }
        wait_ms(1);
        return 0;
}

int main(int argc, char *argv[]) {
        unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 100;

        load_configuration();
        for (unsigned i = 1; i <= n; i++)
                if (handle_request(i) < 0)
                        (void) printf("Request %u was a long one.\n", i);
        return 0;
}
