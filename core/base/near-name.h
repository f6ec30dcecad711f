/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_NEAR_NAME_H
#define BASE_NEAR_NAME_H

#include <stddef.h>
#include <stdint.h>

/* The few names, out of many, that come near to one that does not exist. */

#define NEAR_NAMES_N   4
#define NEAR_NAMES_LEN 1024 /* longer names are not looked at */

typedef struct NearNames {
        const char *wanted; /* not owned, neither are the others */
        size_t length;
        char folded[NEAR_NAMES_LEN]; /* the same in small letters */
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

/*
 * The names as a list for people: as they are to be written, and those of C++ and Rust also as a
 * programmer reads them. Owned by the caller; "" if there are none, NULL for want of memory.
 */
char *near_names_list(const NearNames *names);

#endif
