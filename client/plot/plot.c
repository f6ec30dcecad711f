/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The arithmetic of pictures: a logarithmic scale of lengths with round ends, and how windows and
 * violations fall into the parts of a scale. A window is somewhere in its bucket: where parts are
 * narrower than buckets, each gets its share.
 */

#include "plot/plot.h"

#include <inttypes.h>
#include <math.h>

#include "base/duration.h"

uint64_t plot_count_windows(const Plot *plot) {
        uint64_t sum = 0;

        for (size_t i = 0; i < plot->n_lengths; i++)
                sum += plot->lengths[i].count;
        return sum;
}

uint64_t plot_count_events(const Plot *plot) {
        uint64_t sum = 0;

        for (size_t i = 0; i < plot->n_events; i++)
                sum += plot->events[i].count;
        return sum;
}

const char *plot_without_windows(const Plot *plot) {
        return plot->has_unknown_lengths ? "the lengths of its windows are not known"
                                         : "no window has ended yet";
}

void bucket_bounds(const HistogramBucket *bucket, uint64_t max_ns, uint64_t *ret_low,
                   uint64_t *ret_high) {
        size_t i = histogram_bucket(bucket->upper_ns);
        uint64_t low = i > 0 ? histogram_upper_bound(i - 1) + 1 : 0, high = bucket->upper_ns;

        if (max_ns < high)
                high = max_ns;
        if (high == UINT64_MAX)
                high = 2 * low;
        *ret_low = low;
        *ret_high = high > low ? high : low + 1;
}

static double log_of(uint64_t ns) {
        return log10(ns > 0 ? (double) ns : 1);
}

static void widen(uint64_t ns, double *low, double *high) {
        double x = log_of(ns);

        if (ns == UINT64_MAX)
                return;
        if (x < *low)
                *low = x;
        if (x > *high)
                *high = x;
}

/* Down or up to 1, 2 or 5 times a power of ten. */
static double make_round(double x, bool up) {
        static const double steps[] = { 0, 0.30102999566, 0.69897000434, 1 };
        double whole = floor(x), rest = x - whole;
        size_t i = 0;

        while (i < 3 && steps[i + 1] <= rest + 1e-9)
                i++;
        if (up && steps[i] < rest - 1e-9)
                i++;
        return whole + steps[i];
}

Scale scale_make(const Plot *plot) {
        double low = INFINITY, high = 0;

        for (size_t i = 0; i < plot->n_lengths; i++) {
                uint64_t least, most;

                bucket_bounds(plot->lengths + i, plot->max_ns, &least, &most);
                widen(least, &low, &high);
                widen(most, &low, &high);
        }
        for (size_t i = 0; i < plot->n_marks; i++)
                widen(plot->marks[i].ns, &low, &high);
        for (size_t i = 0; i < plot->n_events; i++)
                widen(plot->events[i].length_ns, &low, &high);
        widen(plot->budget_ns, &low, &high);
        if (!isfinite(low))
                low = high = 6;
        low = make_round(low, false);
        high = make_round(high, true);
        /* A scale has a length. */
        if (high - low < 0.3) {
                low = make_round(low - 0.3, false);
                high = make_round(high + 0.3, true);
        }
        return (Scale) { low, high };
}

double scale_place(const Scale *scale, uint64_t ns) {
        return (log_of(ns) - scale->low) / (scale->high - scale->low);
}

uint64_t scale_next_tick(const Scale *scale, uint64_t ns) {
        bool has_steps = scale->high - scale->low < 2.5;
        double end = pow(10, scale->high) * 1.000001;

        for (uint64_t ten = 1; ten <= TEN_MAX && (double) ten <= end; ten *= 10)
                for (unsigned i = 0; i < (has_steps ? 3 : 1); i++) {
                        uint64_t tick = ten * (i == 0 ? 1 : i == 1 ? 2 : 5);

                        if (tick >= ns && log_of(tick) >= scale->low - 1e-6 && (double) tick <= end)
                                return tick;
                }
        return 0;
}

char *tick_format(uint64_t ns, char buf[static TICK_MAX]) {
        if (ns < NSEC_PER_MINUTE)
                return duration_format(ns, buf);
        (void) snprintf(buf, TICK_MAX, "%" PRIu64 "s", ns / NSEC_PER_SEC);
        return buf;
}

static double clamp(double x, double most) {
        return x < 0 ? 0 : x > most ? most : x;
}

void plot_divide_lengths(const Plot *plot, const Scale *scale, size_t n, double *ret) {
        for (size_t i = 0; i < n; i++)
                ret[i] = 0;
        for (size_t i = 0; i < plot->n_lengths; i++) {
                uint64_t low, high;
                double begin, end;

                bucket_bounds(plot->lengths + i, plot->max_ns, &low, &high);
                begin = clamp(scale_place(scale, low) * (double) n, (double) n);
                end = clamp(scale_place(scale, high) * (double) n, (double) n);
                if (end - begin < 1e-9) {
                        ret[begin < (double) n ? (size_t) begin : n - 1] +=
                                (double) plot->lengths[i].count;
                        continue;
                }
                for (size_t k = (size_t) begin; k < n && (double) k < end; k++) {
                        double from = (double) k > begin ? (double) k : begin;
                        double to = (double) (k + 1) < end ? (double) (k + 1) : end;

                        ret[k] += (double) plot->lengths[i].count * (to - from) / (end - begin);
                }
        }
}

void plot_divide_time(const Plot *plot, size_t n, uint64_t *ret) {
        uint64_t span =
                plot->until_usec > plot->since_usec ? plot->until_usec - plot->since_usec : 1;

        for (size_t i = 0; i < n; i++)
                ret[i] = 0;
        for (size_t i = 0; i < plot->n_events; i++) {
                uint64_t time_usec = plot->events[i].time_usec, since;
                size_t part;

                since = time_usec > plot->since_usec ? time_usec - plot->since_usec : 0;
                part = (size_t) ((double) since / (double) span * (double) n);
                ret[part < n ? part : n - 1] += plot->events[i].count;
        }
}
