/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Nothing but the seed is random, and whatever is taken as the one for its place is as likely as
 * the others of that place.
 */

#include "order.h"

#include <stdlib.h>

#include "faults.h"

/* SplitMix64 */
static uint64_t next(uint64_t *state) {
        uint64_t z = *state += 0x9e3779b97f4a7c15;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
}

static void *allocate(size_t n) {
        void *p = calloc(n + 1, sizeof(uint64_t));

        if (!p)
                abort();
        return p;
}

static int compare(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return x < y ? -1 : x > y;
}

/* Returns how many are left. */
static size_t sort_and_unite(uint64_t *items, size_t n) {
        size_t left = 0;

        qsort(items, n, sizeof(*items), compare);
        for (size_t i = 0; i < n; i++)
                if (i == 0 || items[i] != items[i - 1])
                        items[left++] = items[i];
        return left;
}

static const uint64_t *find_place(const Order *order, uint64_t place) {
        return bsearch(&place, order->places, order->n_places, sizeof(place), compare);
}

/* The first of each place goes to the front. */
static void put_places_first(Order *order) {
        uint64_t *others = allocate(order->n), *seen = allocate(order->n_places);
        size_t n = 0, n_others = 0;

        for (size_t i = 0; i < order->n; i++) {
                size_t place =
                        (size_t) (find_place(order, fault_place(order->items[i])) - order->places);

                if (seen[place]++)
                        others[n_others++] = order->items[i];
                else
                        order->items[n++] = order->items[i];
        }
        for (size_t i = 0; i < n_others; i++)
                order->items[n + i] = others[i];
        free(seen);
        free(others);
}

void order_make(uint64_t n, uint64_t seed, Order *ret) {
        *ret = (Order) { .items = allocate(n), .n = n, .places = allocate(n) };
        for (uint64_t i = 0; i < n; i++) {
                uint64_t j = next(&seed) % (i + 1);

                ret->places[i] = fault_place(i + 1);
                ret->items[i] = ret->items[j];
                ret->items[j] = i + 1;
        }
        ret->n_places = sort_and_unite(ret->places, n);
        put_places_first(ret);
}

void order_done(Order *order) {
        free(order->items);
        free(order->places);
        *order = (Order) {};
}

size_t order_count_places(const Order *order, uint64_t *places, size_t n) {
        size_t left = sort_and_unite(places, n), known = 0;

        for (size_t i = 0; i < left; i++)
                known += find_place(order, places[i]) != NULL;
        return known;
}
