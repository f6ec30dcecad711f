/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "marker.h"
#include "tlob-mark.h"

TLOB_MARK(request);

static unsigned long pass(unsigned long i) {
        TLOB_SCOPE(request);

        return i % 3 == 0 ? i : i + 1;
}

#ifdef LIBRARY
void marker_library(unsigned long n) {
#else
void marker_other(unsigned long n) {
#endif
        for (unsigned long i = 0; i < n; i++)
                (void) pass(i);
}
