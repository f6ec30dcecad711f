/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_HISTOGRAMS_H
#define BPF_HISTOGRAMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"

/* The histograms that the BPF programs keep, one for each binding and CPU. */

typedef struct HistogramTable {
        int outer_fd; /* not owned */
        int *groups;  /* inner maps, -EBADF: not made yet */
        size_t n_groups;
        Histogram **bases; /* by binding: what was counted at the last reset; NULL: nothing */
        size_t n;
        size_t n_cpus;
} HistogramTable;

/* n: as many bindings as there may be. */
int histogram_table_init(HistogramTable *table, size_t n, size_t n_cpus, int outer_fd);
void histogram_table_done(HistogramTable *table);

/* The groups that are in the outer map are used. Returns 0 or a negative errno. */
int histogram_table_inherit(HistogramTable *table);

/* For a binding that is about to be measured: there is one, and it is empty. */
int histogram_table_clear(HistogramTable *table, uint32_t binding);

/* Adds what was counted since the last reset. */
int histogram_table_read(const HistogramTable *table, uint32_t binding, Histogram *histogram);

/* What was counted at the last reset; NULL: there was none. Setting copies: 0 or -ENOMEM. */
int histogram_table_set_base(HistogramTable *table, uint32_t binding, const Histogram *base);
const Histogram *histogram_table_get_base(const HistogramTable *table, uint32_t binding);

#endif
