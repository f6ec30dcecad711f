/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_NEAR_NAME_H
#define BASE_NEAR_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The few names, out of many, that come near to one that does not exist. */

#define NEAR_NAMES_N   4
#define NEAR_NAMES_LEN 1024 /* longer names are not looked at */

typedef struct NearNames {
        const char *wanted; /* not owned, neither are the others */
        size_t length;
        char folded[NEAR_NAMES_LEN]; /* the same in small letters */
        size_t path_length;          /* of what is before the last part of the name */
        uint64_t work;               /* spent so far */
        size_t n;
        struct {
                unsigned distance;
                const char *name;
                size_t length; /* without the version */
        } best[NEAR_NAMES_N];  /* nearest first */
} NearNames;

/* wanted must outlive names, and need not end after length bytes. */
void near_names_init(NearNames *names, const char *wanted, size_t length);

/* Offers a name, which must outlive names; the '@' of a version ends it, too. */
void near_names_offer(NearNames *names, const char *name);

/* Is that text accepted as the name of one function? */
typedef bool (*NameCheck)(const char *text, void *userdata);

/*
 * The names as a list for people: as they are to be written. Those of C++ and Rust are as in the
 * source if that is accepted, else as in the file, with what a programmer reads. Owned by the
 * caller; "" if there are none, NULL for want of memory.
 */
char *near_names_list(const NearNames *names, NameCheck is_accepted, void *userdata);

#endif
