/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "metrics/exposition.h"

#include <inttypes.h>
#include <string.h>

#include "base/duration.h"

#define FIRST_SHIFT 10
#define LAST_SHIFT  36
#define SECONDS_MAX 40

static void announce(void *userdata, const MetricFamily *family) {
        static const char *const types[] = {
                [METRIC_COUNTER] = "counter",   [METRIC_GAUGE] = "gauge",
                [METRIC_LENGTHS] = "histogram", [METRIC_STATE] = "gauge",
                [METRIC_INFO] = "gauge",
        };

        (void) fprintf(userdata, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help,
                       family->name, types[family->type]);
}

static void write_value(FILE *f, const char *value) {
        for (;;) {
                size_t n = strcspn(value, "\n\"\\");

                (void) fwrite(value, 1, n, f);
                if (value[n] == '\0')
                        return;
                (void) fputc('\\', f);
                (void) fputc(value[n] == '\n' ? 'n' : value[n], f);
                value += n + 1;
        }
}

static void write_label(FILE *f, char before, const char *name, const char *value) {
        (void) fputc(before, f);
        (void) fputs(name, f);
        (void) fputs("=\"", f);
        write_value(f, value);
        (void) fputc('"', f);
}

/* extra: one more label, with its value; NULL: there is none. */
static void write_name(FILE *f, const char *name, const char *suffix, MetricLabels labels,
                       const char *extra, const char *value) {
        char before = '{';

        (void) fputs(name, f);
        (void) fputs(suffix, f);
        for (; *labels; labels += 2) {
                write_label(f, before, labels[0], labels[1]);
                before = ',';
        }
        if (extra) {
                write_label(f, before, extra, value);
                before = ',';
        }
        (void) fputs(before == ',' ? "} " : " ", f);
}

static void write_count(void *userdata, const MetricFamily *family, MetricLabels labels,
                        uint64_t value) {
        write_name(userdata, family->name, "", labels, NULL, NULL);
        (void) fprintf(userdata, "%" PRIu64 "\n", value);
}

static void write_ratio(void *userdata, const MetricFamily *family, MetricLabels labels,
                        double value) {
        write_name(userdata, family->name, "", labels, NULL, NULL);
        (void) fprintf(userdata, "%.6g\n", value);
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

static void write_duration(void *userdata, const MetricFamily *family, MetricLabels labels,
                           uint64_t ns) {
        char buf[SECONDS_MAX];

        write_name(userdata, family->name, "", labels, NULL, NULL);
        (void) fprintf(userdata, "%s\n", format_seconds(ns, buf));
}

static void write_bucket(FILE *f, const MetricFamily *family, MetricLabels labels, uint64_t bound,
                         uint64_t count) {
        char buf[SECONDS_MAX];

        write_name(f, family->name, "_bucket", labels, "le", format_seconds(bound, buf));
        (void) fprintf(f, "%" PRIu64 "\n", count);
}

static void write_lengths(void *userdata, const MetricFamily *family, MetricLabels labels,
                          const MetricLengths *lengths) {
        FILE *f = userdata;
        uint64_t count = 0;
        char buf[SECONDS_MAX];
        size_t i = 0;

        for (unsigned shift = FIRST_SHIFT; shift <= LAST_SHIFT; shift++) {
                uint64_t bound = (UINT64_C(1) << shift) - 1;

                for (; i < lengths->n && lengths->buckets[i].upper_ns <= bound; i++)
                        count += lengths->buckets[i].count;
                write_bucket(f, family, labels, bound, count);
        }
        for (; i < lengths->n; i++)
                count += lengths->buckets[i].count;
        write_bucket(f, family, labels, UINT64_MAX, count);
        write_name(f, family->name, "_sum", labels, NULL, NULL);
        (void) fprintf(f, "%s\n",
                       lengths->sum_ns == UINT64_MAX ? "NaN"
                                                     : format_seconds(lengths->sum_ns, buf));
        write_name(f, family->name, "_count", labels, NULL, NULL);
        (void) fprintf(f, "%" PRIu64 "\n", count);
}

/* One for each state that there is, as OpenMetrics has it. */
static void write_state(void *userdata, const MetricFamily *family, MetricLabels labels,
                        const char *const *words, const char *state) {
        for (; *words; words++) {
                write_name(userdata, family->name, "", labels, "state", *words);
                (void) fprintf(userdata, "%d\n", streq(*words, state));
        }
}

static void write_info(void *userdata, const MetricFamily *family, const char *label,
                       const char *value) {
        write_name(userdata, family->name, "", (const char *const[]) { NULL }, label, value);
        (void) fputs("1\n", userdata);
}

MetricSink exposition_sink(FILE *f) {
        return (MetricSink) {
                .announce = announce,
                .count = write_count,
                .ratio = write_ratio,
                .duration = write_duration,
                .lengths = write_lengths,
                .state = write_state,
                .info = write_info,
                .userdata = f,
        };
}
