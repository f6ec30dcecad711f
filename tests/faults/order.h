/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ORDER_H
#define ORDER_H

#include <stddef.h>
#include <stdint.h>

/*
 * The order in which faults are tried: at first one for each place, that is, each stack of calls,
 * then all others. Both are shuffled, so that whoever has no time for all of them tries some of any
 * part, and other ones the next time.
 */

typedef struct Order {
        uint64_t *items; /* numbers of faults, from 1 on */
        size_t n;
        uint64_t *places; /* that there are, sorted */
        size_t n_places;  /* which is also the number of those that come first */
} Order;

/* Of n faults, whose places have been noted. */
void order_make(uint64_t n, uint64_t seed, Order *ret);
void order_done(Order *order);

/* How many of the places are among those. */
size_t order_count_places(const Order *order, uint64_t *places, size_t n);

#endif
