/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef UNIT_PATTERN_H
#define UNIT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Units that a file can be for: those whose name begins and ends so. When it is just one unit, name
 * has all of it.
 */
typedef struct UnitPattern {
        const char *name; /* NULL: prefix and suffix */
        const char *prefix;
        const char *suffix; /* not owned */
} UnitPattern;

void unit_pattern_done(UnitPattern *pattern);

/*
 * The units that a file of that name, or a directory of drop-ins (without its ".d") is for. Returns
 * 1, 0 (none of ours), -ENOMEM.
 */
int unit_pattern_of(const char *name, bool is_drop_in, UnitPattern *ret);

/* Is it for that unit? Templates are no units. */
bool unit_pattern_matches(const UnitPattern *pattern, const char *unit);

/*
 * Could it be for that unit, or for instances of that template? False if it is for one unit, or for
 * all of a type.
 */
bool unit_pattern_is_for_many(const UnitPattern *pattern, const char *name);

/* Without duplicates, in the order in which they came. */
typedef struct UnitPatternList {
        UnitPattern *items;
        size_t n;
} UnitPatternList;

void unit_pattern_list_done(UnitPatternList *list);

/* Adds a copy, if it is not there yet. Returns 0 or -ENOMEM. */
int unit_pattern_list_add(UnitPatternList *list, const UnitPattern *pattern);

#endif
