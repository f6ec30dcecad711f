/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program with marks, of two files that share one, as make-marks builds it: with OTHER, the other
 * file. What it does does not matter, but that compilers can copy, move and drop code of it.
 */

#include "tlob-mark.h"

TLOB_MARK(request);

int marks_other(int x);

#ifdef OTHER

int marks_dropped(int x);

int marks_other(int x) {
        tlob_begin(request);
        x *= 3;
        tlob_end(request);
        return x;
}

/* Nobody calls it. */
int marks_dropped(int x) {
        TLOB_SCOPE(request);
        return x + 1;
}

#else

TLOB_MARK(step);

static int step(int x) {
        TLOB_SCOPE(step);

        if (x > 100)
                return x;
        return tlob_enabled(request) ? 3 * x : 5 * x;
}

int main(int argc, char *argv[]) {
        int n = argc;

        (void) argv;
        for (int i = 0; i < 4; i++) {
                TLOB_SCOPE(request);
                n += step(n) + marks_other(i);
        }
        return n == 0;
}

#endif
