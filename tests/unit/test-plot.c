/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * plot/plot.h: scales and what falls into their parts; plot/text.h, plot/svg.h: that nothing is
 * wider than it may be, and that no name steers a terminal or ends an element.
 */

#include "plot/plot.h"

#include <locale.h>

#include "plot/svg.h"
#include "plot/text.h"
#include "top/cell.h"

#include "test.h"

#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

#define HOSTILE "a<b>&\"'\x1b[31m\x01\xff\u6f22"

static const HistogramBucket lengths[] = {
        { 1015807, 100 },
        { 1048575, 50 },
        { 8126463, 7 },
        { UINT64_MAX, 1 },
};

static const PlotEvent events[] = {
        { .time_usec = 1000, .length_ns = 6 * MS, .id = 1, .count = 1 },
        { .time_usec = 1999, .length_ns = 9 * S, .id = 2, .count = 1 },
        { .time_usec = 1500, .length_ns = UINT64_MAX, .count = 10 },
};

static Plot make_plot(void) {
        return (Plot) {
                .name = HOSTILE,
                .lengths = lengths,
                .n_lengths = ELEMENTSOF(lengths),
                .max_ns = 5000 * S,
                .budget_ns = 5 * MS,
                .marks = { { "p50", 1 * MS },
                           { "p99", 8 * MS },
                           { "budget", 5 * MS },
                           { "max", 5000 * S } },
                .n_marks = 4,
                .has_events = true,
                .since_usec = 1000,
                .until_usec = 2000,
                .events = events,
                .n_events = ELEMENTSOF(events),
        };
}

static void assert_near(double x, double y) {
        assert_true(x > y - 1e-6 && x < y + 1e-6);
}

static void test_scale(void **state) {
        static const struct {
                uint64_t low, high;
                double from, to;
        } cases[] = {
                { 1 * MS, 10 * MS, 6, 7 },
                { 1500000, 9 * MS, 6, 7 },
                { 2 * MS, 4 * MS, 6.30102999566, 6.69897000434 },
                { 3 * MS, 600 * MS, 6.30102999566, 9 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                const Plot plot = {
                        .marks = { { "a", cases[i].low }, { "b", cases[i].high } },
                        .n_marks = 2,
                        .budget_ns = UINT64_MAX,
                };
                Scale scale = scale_make(&plot);

                assert_near(scale.low, cases[i].from);
                assert_near(scale.high, cases[i].to);
        }
}

/* Whatever there is, a scale has a length, and everything has a place. */
static void test_places(void **state) {
        for (uint64_t ns = 0; ns < 4000 * S; ns = 3 * ns + 1) {
                const Plot plot = { .marks = { { "a", ns } },
                                    .n_marks = 1,
                                    .budget_ns = UINT64_MAX };
                Scale scale = scale_make(&plot);
                double place = scale_place(&scale, ns);

                assert_true(scale.high - scale.low > 0.29);
                assert_true(place > -1e-6 && place < 1 + 1e-6);
                assert_int_not_equal(scale_next_tick(&scale, 0), 0);
        }
}

static void test_ticks(void **state) {
        const Scale fine = { 6, 7 }, coarse = { 3, 9 };
        uint64_t ns = 0;

        for (uint64_t wanted = 1 * MS; wanted <= 10 * MS; wanted = wanted == 1 * MS ? 2 * MS
                                                                   : wanted == 2 * MS
                                                                           ? 5 * MS
                                                                           : 2 * wanted) {
                ns = scale_next_tick(&fine, ns + 1);
                assert_int_equal(ns, wanted);
        }
        assert_int_equal(scale_next_tick(&fine, ns + 1), 0);
        assert_int_equal(scale_next_tick(&coarse, 1001), 10000);
}

/* Lengths that no window has, but that an entry of the journal can give. */
static void test_the_last_ticks(void **state) {
        const Scale scale = { 18, 20 };
        uint64_t ns = 0, last = 0;

        for (unsigned n = 0; n < 100 && (ns = scale_next_tick(&scale, last + 1)) > 0; n++) {
                assert_true(ns > last);
                last = ns;
        }
        assert_int_equal(ns, 0);
        assert_int_equal(last, 5000000000000000000U);
}

static void test_bounds(void **state) {
        static const struct {
                HistogramBucket bucket;
                uint64_t max_ns, low, high;
        } cases[] = {
                { { 0, 1 }, 100, 0, 1 },
                { { 1048575, 1 }, UINT64_MAX, 1015808, 1048575 },
                { { 1048575, 1 }, 1020000, 1015808, 1020000 },
                { { UINT64_MAX, 1 }, 5000 * S, 4260607557632, 5000 * S },
                { { UINT64_MAX, 1 }, UINT64_MAX, 4260607557632, 8521215115264 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint64_t low, high;

                bucket_bounds(&cases[i].bucket, cases[i].max_ns, &low, &high);
                assert_int_equal(low, cases[i].low);
                assert_int_equal(high, cases[i].high);
        }
}

/* Each window is in one part, or divided among some: their sum stays. */
static void test_divide(void **state) {
        const Plot plot = make_plot();
        Scale scale = scale_make(&plot);

        for (size_t n = 1; n < 3000; n = 2 * n + 1) {
                _cleanup_free_ double *parts = calloc(n, sizeof(*parts));
                double sum = 0;

                assert_non_null(parts);
                plot_divide_lengths(&plot, &scale, n, parts);
                for (size_t i = 0; i < n; i++) {
                        assert_true(parts[i] >= 0);
                        sum += parts[i];
                }
                assert_near(sum, 158);
        }
        assert_int_equal(plot_count_windows(&plot), 158);
}

static void test_divide_time(void **state) {
        const Plot plot = make_plot();
        uint64_t parts[4];

        plot_divide_time(&plot, 4, parts);
        assert_int_equal(parts[0], 1);
        assert_int_equal(parts[1], 0);
        assert_int_equal(parts[2], 10);
        assert_int_equal(parts[3], 1);
        assert_int_equal(plot_count_events(&plot), 12);
}

static char *draw(const Plot *plot, const TextStyle *style) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        assert_ok(plot_write_text(plot, style, f));
        assert_int_equal(fclose(f), 0);
        return text;
}

static void test_every_width(void **state) {
        const Plot plot = make_plot();

        for (size_t width = 40; width < 250; width++) {
                const TextStyle style = { .width = width, .utf8 = width % 2 };
                _cleanup_free_ char *text = draw(&plot, &style);

                for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
                        assert_in_range(cell_width(line), 0, width);
                        for (const char *c = line; *c != '\0'; c++)
                                assert_true((unsigned char) *c >= 0x20 &&
                                            (style.utf8 || (unsigned char) *c < 0x7f));
                }
        }
}

static void test_text(void **state) {
        const Plot plot = make_plot();
        _cleanup_free_ char *text = draw(&plot, &(TextStyle) { .width = 80, .utf8 = true });
        _cleanup_free_ char *ascii = draw(&plot, &(TextStyle) { .width = 80 });
        _cleanup_free_ char *colored = draw(&plot, &(TextStyle) { .width = 80, .colors = true });

        assert_non_null(strstr(text, ": 158 windows\n"));
        assert_non_null(strstr(text, "\u2191 budget 5ms"));
        assert_non_null(strstr(text, "\u2191 p50 1.0ms"));
        assert_non_null(strstr(text, "1h 23min \u2191"));
        assert_non_null(strstr(text, "\u2588"));
        assert_non_null(strstr(text, "\u2581"));
        assert_non_null(strstr(text, ": 12 violations in the journal\n"));
        assert_non_null(strstr(ascii, "^ budget 5ms"));
        assert_non_null(strstr(ascii, "#"));
        assert_null(strchr(ascii, '\x1b'));
        /* What is beyond the budget. */
        assert_non_null(strstr(colored, "\x1b[31m"));
}

static void test_nothing(void **state) {
        Plot plot = { .name = "x", .budget_ns = UINT64_MAX, .max_ns = 0 };
        _cleanup_free_ char *text = draw(&plot, &(TextStyle) { .width = 80 }), *with = NULL;
        _cleanup_free_ char *unknown = NULL;

        assert_string_equal(text, "x: no window has ended yet\n");
        plot.has_unknown_lengths = true;
        unknown = draw(&plot, &(TextStyle) { .width = 80 });
        assert_string_equal(unknown, "x: the lengths of its windows are not known\n");
        plot.has_events = true;
        with = draw(&plot, &(TextStyle) { .width = 80 });
        assert_non_null(strstr(with, "x: 0 violations in the journal\n"));
}

static void test_escape(void **state) {
        _cleanup_free_ char *text = xml_escape(HOSTILE), *empty = xml_escape("");

        assert_string_equal(text, "a&lt;b&gt;&amp;&quot;&#39;\\x1b[31m\\x01\\xff\u6f22");
        assert_string_equal(empty, "");
}

/* Whether it is well-formed as a whole, the client's tests ask an XML parser. */
static void test_svg(void **state) {
        const Plot plots[] = { make_plot(), { .name = "x", .budget_ns = UINT64_MAX } };
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        assert_ok(plot_write_svg(plots, ELEMENTSOF(plots), f));
        assert_int_equal(fclose(f), 0);
        assert_null(strstr(text, "a<b>"));
        assert_null(strchr(text, '\x1b'));
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf"));
        assert_non_null(strstr(text, "a&lt;b&gt;"));
        assert_non_null(strstr(text, "12 violations, by time and length"));
        assert_non_null(strstr(text, "no window has ended yet"));
        free(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_scale),       cmocka_unit_test(test_places),
                cmocka_unit_test(test_ticks),       cmocka_unit_test(test_the_last_ticks),
                cmocka_unit_test(test_bounds),      cmocka_unit_test(test_divide),
                cmocka_unit_test(test_divide_time), cmocka_unit_test(test_every_width),
                cmocka_unit_test(test_text),        cmocka_unit_test(test_nothing),
                cmocka_unit_test(test_escape),      cmocka_unit_test(test_svg),
        };

        if (!setlocale(LC_CTYPE, "C.UTF-8"))
                return EXIT_FAILURE;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
