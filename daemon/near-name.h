/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef NEAR_NAME_H
#define NEAR_NAME_H

#include <stddef.h>
#include <stdint.h>

/* The few names, out of many, that come near to one that does not exist. */

#define NEAR_NAMES_N   4
#define NEAR_NAMES_LEN 64 /* longer names are not looked at */

typedef struct NearNames {
        const char *wanted; /* not owned */
        size_t length;
        uint64_t work; /* spent so far */
        size_t n;
        struct {
                unsigned distance;
                char name[NEAR_NAMES_LEN];
        } best[NEAR_NAMES_N]; /* nearest first */
} NearNames;

/* wanted must outlive names, and need not end after length bytes. */
void near_names_init(NearNames *names, const char *wanted, size_t length);

/* Offers a name, up to its NUL or the '@' of its version. */
void near_names_offer(NearNames *names, const char *name);

#endif
