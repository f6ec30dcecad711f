/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "metrics/exposition.h"

#include <inttypes.h>

#include "base/duration.h"

#define FIRST_SHIFT 10
#define LAST_SHIFT  36
#define SECONDS_MAX 40

void metric_declare(FILE *f, const char *name, MetricType type, const char *help) {
        static const char *const types[] = {
                [METRIC_COUNTER] = "counter",
                [METRIC_GAUGE] = "gauge",
                [METRIC_HISTOGRAM] = "histogram",
        };

        (void) fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, types[type]);
}

static void write_value(FILE *f, const char *value) {
        for (; *value != '\0'; value++)
                if (*value == '\n')
                        (void) fputs("\\n", f);
                else {
                        if (*value == '"' || *value == '\\')
                                (void) fputc('\\', f);
                        (void) fputc(*value, f);
                }
}

/* le: of a bucket; NULL: it is none. */
static void write_name(FILE *f, const char *name, const char *suffix, MetricLabels labels,
                       const char *le) {
        char before = '{';

        (void) fprintf(f, "%s%s", name, suffix);
        for (; *labels; labels += 2) {
                (void) fprintf(f, "%c%s=\"", before, labels[0]);
                write_value(f, labels[1]);
                (void) fputc('"', f);
                before = ',';
        }
        if (le) {
                (void) fprintf(f, "%cle=\"%s\"", before, le);
                before = ',';
        }
        (void) fputs(before == ',' ? "} " : " ", f);
}

void metric_count(FILE *f, const char *name, MetricLabels labels, uint64_t value) {
        write_name(f, name, "", labels, NULL);
        (void) fprintf(f, "%" PRIu64 "\n", value);
}

void metric_ratio(FILE *f, const char *name, MetricLabels labels, double value) {
        write_name(f, name, "", labels, NULL);
        (void) fprintf(f, "%.6g\n", value);
}

/* All digits, but no zeros at the end. */
static const char *format_seconds(uint64_t ns, char buf[static SECONDS_MAX]) {
        int n;

        if (ns == UINT64_MAX)
                return "+Inf";
        n = snprintf(buf, SECONDS_MAX, "%" PRIu64 ".%09" PRIu64, ns / NSEC_PER_SEC,
                     ns % NSEC_PER_SEC);
        while (buf[n - 1] == '0')
                n--;
        if (buf[n - 1] == '.')
                n--;
        buf[n] = '\0';
        return buf;
}

void metric_duration(FILE *f, const char *name, MetricLabels labels, uint64_t ns) {
        char buf[SECONDS_MAX];

        write_name(f, name, "", labels, NULL);
        (void) fprintf(f, "%s\n", format_seconds(ns, buf));
}

void metric_histogram(FILE *f, const char *name, MetricLabels labels,
                      const HistogramBucket *buckets, size_t n, uint64_t sum_ns) {
        uint64_t count = 0;
        char buf[SECONDS_MAX];
        size_t i = 0;

        for (unsigned shift = FIRST_SHIFT; shift <= LAST_SHIFT; shift++) {
                uint64_t bound = (UINT64_C(1) << shift) - 1;

                for (; i < n && buckets[i].upper_ns <= bound; i++)
                        count += buckets[i].count;
                write_name(f, name, "_bucket", labels, format_seconds(bound, buf));
                (void) fprintf(f, "%" PRIu64 "\n", count);
        }
        for (; i < n; i++)
                count += buckets[i].count;
        write_name(f, name, "_bucket", labels, "+Inf");
        (void) fprintf(f, "%" PRIu64 "\n", count);
        write_name(f, name, "_sum", labels, NULL);
        (void) fprintf(f, "%s\n", sum_ns == UINT64_MAX ? "NaN" : format_seconds(sum_ns, buf));
        write_name(f, name, "_count", labels, NULL);
        (void) fprintf(f, "%" PRIu64 "\n", count);
}
