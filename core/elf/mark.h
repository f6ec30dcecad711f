/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_MARK_H
#define ELF_MARK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What the marks of tlob-mark.h are called in a file: each is two USDT probes, tlob:NAME__begin and
 * tlob:NAME__end.
 */

#define MARK_NAME_MAX 128
#define MARK_KEY      "Mark=" /* with which a mark is listed among functions */

typedef enum MarkSide {
        MARK_BEGIN,
        MARK_END,
        MARK_N_SIDES,
} MarkSide;

/* A name in C, of at most MARK_NAME_MAX letters. */
bool mark_name_is_valid(const char *name);

/* Of which mark a USDT probe is a side: the length of its name in that of the probe; 0: of none. */
size_t mark_parse_probe(const char *provider, const char *name, MarkSide *ret);

/* The same of what is written as "usdt:provider:name"; *ret_name is in it. */
size_t mark_parse_place(const char *place, const char **ret_name, MarkSide *ret);

/* A side as a place; the caller's. NULL for want of memory. */
char *mark_make_place(const char *name, MarkSide side);

/*
 * The mark that both places are of, if they are its begin and its end: the length of its name,
 * which is in start; 0: there is none. Either may be NULL.
 */
size_t mark_of_places(const char *start, const char *stop, const char **ret_name);

#endif
