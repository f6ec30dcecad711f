/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PLOT_PLOT_H
#define PLOT_PLOT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/histogram.h"

/* What a picture of a binding is made from. Nothing in it is owned by it. */

#define PLOT_MARKS_MAX 8

#define TEN_MAX UINT64_C(1000000000000000000) /* the last power of ten that can be had ten times */

/* A place on the scale of lengths that has a name. */
typedef struct PlotMark {
        const char *name; /* "p99" */
        uint64_t ns;
} PlotMark;

/* Violations in the journal. */
typedef struct PlotEvent {
        uint64_t time_usec; /* CLOCK_REALTIME */
        uint64_t length_ns; /* UINT64_MAX: not known */
        uint64_t id;        /* of the window; 0: several, or not known */
        uint64_t count;
} PlotEvent;

typedef struct Plot {
        const char *name;
        bool without_lengths;           /* there is no picture of them */
        bool has_unknown_lengths;       /* there may be windows, whose lengths nobody knows */
        const HistogramBucket *lengths; /* ascending */
        size_t n_lengths;
        uint64_t max_ns;    /* UINT64_MAX: not known */
        uint64_t budget_ns; /* UINT64_MAX: infinity */
        PlotMark marks[PLOT_MARKS_MAX];
        size_t n_marks;

        bool has_events; /* those in the time between */
        uint64_t since_usec, until_usec;
        const PlotEvent *events;
        size_t n_events;
} Plot;

/* How many windows, and violations, there are. */
uint64_t plot_count_windows(const Plot *plot);
uint64_t plot_count_events(const Plot *plot);

/* Why there is no picture of lengths, where it has no windows. */
const char *plot_without_windows(const Plot *plot);

/* A scale of lengths: logarithmic, from one round length to another. */
typedef struct Scale {
        double low, high; /* decimal logarithms of ns */
} Scale;

/* One on which all its lengths, its marks and its budget have a place. */
Scale scale_make(const Plot *plot);

/* 0 to 1, or beyond for what has no place. */
double scale_place(const Scale *scale, uint64_t ns);

/* The next round length from ns on to write at the scale; 0: there is none. */
uint64_t scale_next_tick(const Scale *scale, uint64_t ns);

#define TICK_MAX 64

/* A round length, in one unit: "100s" rather than "1min 40s". Returns buf. */
char *tick_format(uint64_t ns, char buf[static TICK_MAX]);

/* The lengths in a bucket. */
void bucket_bounds(const HistogramBucket *bucket, uint64_t max_ns, uint64_t *ret_low,
                   uint64_t *ret_high);

/* The windows whose length falls into each of n parts of the scale, as far as that is known. */
void plot_divide_lengths(const Plot *plot, const Scale *scale, size_t n, double *ret);

/* The violations in each of n parts of the time. */
void plot_divide_time(const Plot *plot, size_t n, uint64_t *ret);

#endif
