/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * top/cell.h, top/view.h: that a screen is never wider or higher than it may be, whatever is in it;
 * top/keys.h: keys that come in pieces.
 */

#include "top/view.h"

#include <locale.h>

#include "top/cell.h"
#include "top/keys.h"

#include "test.h"

#define MS UINT64_C(1000000)

static void test_fit(void **state) {
        static const struct {
                const char *text;
                size_t width;
                bool utf8;
                const char *fitted;
        } cases[] = {
                { "request", 0, true, "request" },
                { "request", 7, true, "request" },
                { "request", 6, true, "r\u2026uest" },
                { "request", 6, false, "r~uest" },
                { "nginx.service/request", 12, true, "ngi\u2026/request" },
                { "a", 1, true, "a" },
                { "ab", 1, true, "\u2026" },
                { "", 1, true, "" },
                /* Two columns each: half of one is no place for it. */
                { "\u6f22\u5b57\u6f22\u5b57", 8, true, "\u6f22\u5b57\u6f22\u5b57" },
                { "\u6f22\u5b57\u6f22\u5b57", 7, true, "\u6f22\u2026\u6f22\u5b57" },
                { "\u6f22\u5b57\u6f22\u5b57", 6, true, "\u2026\u6f22\u5b57" },
                /* What is no character, or steers the terminal. */
                { "a\x1b[31mb", 0, true, "a\\x1b[31mb" },
                { "a\nb", 0, true, "a\\x0ab" },
                { "\xff", 0, true, "\\xff" },
                { "\u202eb", 0, true, "\\xe2\\x80\\xaeb" },
                { "gr\u00fcn", 0, false, "gr?n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *cell = cell_fit(cases[i].text, cases[i].width, cases[i].utf8);

                assert_string_equal(cell, cases[i].fitted);
        }
}

static void test_numbers(void **state) {
        static const struct {
                double number;
                const char *rate, *cpu;
        } cases[] = {
                { -1, "-", "-" },
                { 0, "0", "0%" },
                { 0.00002, "0.00", "<.01%" },
                { 0.0123, "0.01", "1.23%" },
                { 0.094, "0.09", "9.40%" },
                { 0.099951, "0.1", "10.0%" },
                { 1.5, "1.5", "150%" },
                { 9.96, "10", "996%" },
                { 999.4, "999", "99940%" },
                { 999.6, "1.0k", "99960%" },
                { 9951, "10k", "995100%" },
                { 999499, "999k", "99949900%" },
                { 999501, "1.0M", "99950100%" },
                { 12e6, "12M", "1200000000%" },
        };
        static const struct {
                uint64_t ns;
                const char *length, *budget;
        } times[] = {
                { UINT64_MAX, "-", "-" },           { 0, "0ns", "0" },
                { 999999, "1.0ms", "1.0ms" },       { 5 * MS, "5.0ms", "5ms" },
                { 1500 * MS, "1.5s", "1.5s" },      { 12345678, "12.3ms", "12.3ms" },
                { 90000 * MS, "1.5min", "1.5min" }, { 3600000 * MS, "60min", "1h" },
        };
        char buf[CELL_MAX];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                assert_string_equal(cell_rate(cases[i].number, buf), cases[i].rate);
                assert_string_equal(cell_cpu(cases[i].number, buf), cases[i].cpu);
        }
        for (size_t i = 0; i < ELEMENTSOF(times); i++) {
                assert_string_equal(cell_length(times[i].ns, buf), times[i].length);
                assert_string_equal(cell_budget(times[i].ns, buf), times[i].budget);
        }
}

/* Each state as a letter. */
static void draw_bar(const double share[static TLOB_N_STATES], char text[static 7]) {
        enum tlob_state places[6];

        cell_bar(share, 6, places);
        for (size_t i = 0; i < 6; i++)
                text[i] = *cell_state(places[i], false);
        text[6] = '\0';
}

static void test_bar(void **state) {
        static const struct {
                double share[TLOB_N_STATES];
                const char *bar;
        } cases[] = {
                { { -1, -1, -1 }, "      " },          { { 1, 0, 0 }, "RRRRRR" },
                { { 0, 0.5, 0.5 }, "www..." },         { { 0.5, -1, 0.5 }, "RRR..." },
                { { 0.98, 0.01, 0.01 }, "RRRRw." },    { { 0.999, 0.001, 0 }, "RRRRRR" },
                { { 0.334, 0.333, 0.333 }, "RRww.." }, { { 0.25, 0.25, 0.5 }, "RRww.." },
        };
        char text[7];

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                draw_bar(cases[i].share, text);
                assert_string_equal(text, cases[i].bar);
        }
}

static Row rows_of_a_screen[] = {
        { .name = "nginx.service/request",
          .state = "active",
          .budget_ns = 5 * MS,
          .windows_per_sec = 1234,
          .violations_per_sec = 2,
          .share = { 0.5, 0.25, 0.25 },
          .cpu = 0.0123,
          .p50_ns = 1 * MS,
          .p99_ns = 8 * MS,
          .max_ns = 561 * MS },
        { .name = "evil\x1b[31m\u6f22\u5b57.service/with-a-name-that-goes-on-and-on-and-on",
          .state = "disabled",
          .budget_ns = UINT64_MAX,
          .windows_per_sec = -1,
          .violations_per_sec = -1,
          .share = { -1, -1, -1 },
          .cpu = -1,
          .p50_ns = UINT64_MAX,
          .p99_ns = UINT64_MAX,
          .max_ns = UINT64_MAX },
        { .name = "",
          .state = "failed",
          .share = { -1, -1, -1 },
          .p50_ns = UINT64_MAX,
          .p99_ns = UINT64_MAX,
          .max_ns = UINT64_MAX },
};

static OpenWindow windows_of_a_screen[] = {
        { .id = 1,
          .binding = (char *) "nginx.service/request",
          .unit = (char *) "nginx.service",
          .task = (char *) "nginx[4711]",
          .where = (char *) "blocked in folio_wait_bit",
          .budget_ns = 5 * MS,
          .begin_ns = 1000 * MS },
        { .id = 2,
          .binding = (char *) "evil\x1b]0;x\a",
          .unit = (char *) "",
          .task = (char *) "\xff\n",
          .where = (char *) "\u202e",
          .budget_ns = 5 * MS,
          .begin_ns = 2000 * MS },
};

static char *draw(View view, size_t n_rows, size_t n_windows) {
        Rows rows = { .rows = rows_of_a_screen,
                      .n = n_rows,
                      .n_bindings = n_rows,
                      .n_active = 1,
                      .n_failed = 1,
                      .interval_ns = 1000 * MS };
        OpenWindows windows = { .windows = windows_of_a_screen, .n = n_windows };
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        view.time = "12:34:56";
        view.filter = view.filter ?: "";
        view.now_ns = 4200 * MS;
        assert_non_null(f);
        assert_ok(view_write(&view, &rows, &windows, f));
        assert_int_equal(fclose(f), 0);
        return text;
}

/* No line is too wide, no byte steers the terminal, and there are so many lines. */
static size_t check_lines(char *text, size_t width) {
        size_t n = 0;

        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n++) {
                for (const char *c = line; *c != '\0'; c++)
                        assert_true((unsigned char) *c >= 0x20);
                if (width > 0)
                        assert_in_range(cell_width(line), 0, width);
        }
        return n;
}

static void test_every_size(void **state) {
        for (size_t width = 48; width < 200; width++)
                for (size_t height = 0; height < 30; height++) {
                        View view = { .width = width,
                                      .height = height,
                                      .utf8 = width % 2,
                                      .legend = true,
                                      .keys = height % 2,
                                      .filter = "\x1b[2J" };
                        _cleanup_free_ char *text = draw(view, 3, 2);
                        size_t newlines = 0;

                        for (const char *c = text; *c != '\0'; c++)
                                newlines += *c == '\n';
                        if (height >= 10)
                                assert_in_range(newlines, 0, height);
                        (void) check_lines(text, width);
                }
}

static void test_screen(void **state) {
        View view = { .width = 79, .height = 24, .utf8 = true, .legend = true, .keys = true };
        _cleanup_free_ char *text = draw(view, 3, 2);

        assert_non_null(strstr(text, "top 12:34:56  last 1.0s  3 bindings, 1 active, 1 failed\n"));
        assert_non_null(strstr(text, "nginx.service/request   active    1.2k    2.0  1.0ms  8.0ms "
                                     " 561ms \u2588\u2588\u2592\u2592\u2591\u2591 1.23%\n"));
        assert_non_null(strstr(text, "\n(no unit) "));
        assert_non_null(strstr(text, "Over budget now: 2\n"));
        assert_non_null(strstr(text, "nginx.service/request   3.2s of 5ms     nginx[4711]  "
                                     "blocked in folio_wait_bit\n"));
        assert_non_null(strstr(text, "\nq quit"));
        assert_null(strstr(text, "BUDGET"));
}

static void test_wide(void **state) {
        _cleanup_free_ char *text = draw((View) { .legend = true }, 3, 0);

        assert_non_null(strstr(text, "BUDGET"));
        assert_non_null(strstr(text, "evil\\x1b[31m?"));
        assert_non_null(strstr(text, "with-a-name-that-goes-on-and-on-and-on"));
        assert_null(strstr(text, "Over budget"));
        assert_null(strstr(text, "\n\n"));
}

static void test_message(void **state) {
        View view = { .width = 79,
                      .height = 24,
                      .legend = true,
                      .keys = true,
                      .message = "tlobd has stopped" };
        _cleanup_free_ char *text = draw(view, 3, 2);

        assert_non_null(strstr(text, "\ntlobd has stopped\n"));
        assert_null(strstr(text, "q quit"));
}

/* The rows that have no room can be scrolled to. */
static void test_scroll(void **state) {
        View view = { .width = 79, .height = 4, .legend = true, .first = 1 };
        _cleanup_free_ char *text = draw(view, 3, 0);

        assert_int_equal(view_count_rows(&view, &(OpenWindows) {}), 1);
        assert_non_null(strstr(text, "2-2 of 3"));
        assert_null(strstr(text, "nginx"));
        assert_non_null(strstr(text, "evil"));
}

static void test_help(void **state) {
        View view = { .width = 79, .height = 24, .legend = true, .keys = true, .help = true };
        _cleanup_free_ char *text = draw(view, 3, 2);

        assert_non_null(strstr(text, "sort by violations, windows, p50, p99, max, cost, state"));
        assert_null(strstr(text, "nginx"));
        assert_null(strstr(text, "~"));
}

static void test_colors(void **state) {
        _cleanup_free_ char *plain = draw((View) { .legend = true }, 3, 2);
        _cleanup_free_ char *colored = draw((View) { .legend = true, .colors = true }, 3, 2);

        assert_null(strchr(plain, '\x1b'));
        assert_non_null(strstr(colored, "\x1b[1;31mfailed"));
        assert_non_null(strstr(colored, "\x1b[32mactive"));
}

static void test_keys(void **state) {
        static const struct {
                const char *bytes;
                int keys[3];
        } cases[] = {
                { "q", { 'q' } },
                { "\x1b[A", { KEY_UP } },
                { "\x1bOB", { KEY_DOWN } },
                { "\x1b[5~", { KEY_PAGE_UP } },
                { "\x1b[6~q", { KEY_PAGE_DOWN, 'q' } },
                { "\x1b[H\x1b[F", { KEY_HOME, KEY_END } },
                { "\x1b[1~\x1b[4~", { KEY_HOME, KEY_END } },
                /* What is not known holds no letter that is a key. */
                { "\x1b[1;5Ar", { 'r' } },
                { "\x1b[15~r", { 'r' } },
                { "\x1bqr", { 'r' } },
                { "\x1b\x1b[Ar", { KEY_UP, 'r' } },
                { "\xc3\xbcr", { 'r' } },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                KeyReader reader = {};
                size_t n = 0;

                for (const char *byte = cases[i].bytes; *byte != '\0'; byte++) {
                        int key = key_reader_feed(&reader, *byte);

                        if (key != KEY_NONE)
                                assert_int_equal(key, cases[i].keys[n++]);
                }
                assert_int_equal(cases[i].keys[n], 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fit),     cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_bar),     cmocka_unit_test(test_every_size),
                cmocka_unit_test(test_screen),  cmocka_unit_test(test_wide),
                cmocka_unit_test(test_message), cmocka_unit_test(test_scroll),
                cmocka_unit_test(test_help),    cmocka_unit_test(test_colors),
                cmocka_unit_test(test_keys),
        };

        if (!setlocale(LC_CTYPE, "C.UTF-8"))
                return EXIT_FAILURE;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
