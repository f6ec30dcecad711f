/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PAGE_PAGE_H
#define PAGE_PAGE_H

#include "page/overruns.h"

/* A page for people: what was over its budget, when, and why. Nothing in it is owned by it. */

typedef struct PageBinding {
        const char *title;
        const Overruns *overruns;
        const Plot *plot;    /* its distribution, if tlobd was asked, and its violations */
        uint64_t windows;    /* that tlobd has counted; UINT64_MAX: not known */
        uint64_t p99_ns;     /* the same */
        uint64_t budget_ns;  /* now, or else of the last one; UINT64_MAX: infinity */
        const char *problem; /* why it is not measured now; "": it is; NULL: not known */
} PageBinding;

typedef struct Page {
        const char *host;                /* or how many */
        uint64_t since_usec, until_usec; /* CLOCK_REALTIME */
        uint64_t known_usec;             /* what was before that, the journal does not have */
        const PageBinding *bindings;
        size_t n;
        uint64_t lost; /* reports and entries that were, in that time */
} Page;

/*
 * Writes it as HTML, in one file that needs nothing from elsewhere, and no script. Whatever names
 * there are: they are text. Returns 0 or -ENOMEM.
 */
int page_write(const Page *page, FILE *f);

#endif
