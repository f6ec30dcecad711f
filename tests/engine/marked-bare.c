/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "marked-bare.h"

#include <sys/sdt.h>

void marked_bare(unsigned long n) {
        for (unsigned long i = 0; i < n; i++) {
                STAP_PROBE(tlobtest, bare_begin);
                STAP_PROBE(tlobtest, bare_end);
        }
}
