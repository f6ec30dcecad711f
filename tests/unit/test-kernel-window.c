/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Breakdowns summed up from changes of state: of the real page (tlob-v3.page), where the kernel
 * says its own beside them, and of sequences that are made up.
 */

#include "kernel/window.h"

#include "kernel-formats.h"
#include "test.h"

#define PAGE_SIZE 4096
#define SEEN_MAX  16

typedef struct Seen {
        KernelWindows *windows;
        KernelEvent summed[SEEN_MAX], said[SEEN_MAX];
        size_t n_summed, n_said;
} Seen;

static void on_event(const KernelEvent *event, void *userdata) {
        Seen *seen = userdata;
        KernelEvent violation;

        if (event->type == KERNEL_EVENT_DETAIL)
                seen->said[seen->n_said++] = *event;
        if (kernel_windows_push(seen->windows, event, &violation))
                seen->summed[seen->n_summed++] = violation;
        assert_true(seen->n_said < SEEN_MAX && seen->n_summed < SEEN_MAX);
}

static uint64_t distance(uint64_t a, uint64_t b) {
        return a > b ? a - b : b - a;
}

static uint64_t sum(const KernelEvent *event) {
        uint64_t ns = 0;

        for (size_t i = 0; i < TLOB_N_STATES; i++)
                ns += event->spent_ns[i];
        return ns;
}

/* The last detail of the page is of a window that was aborted. */
static void test_page(void **state) {
        const char *texts[KERNEL_N_EVENTS] = FORMATS_V3;
        _cleanup_(kernel_windows_freep) KernelWindows *windows = NULL;
        _cleanup_(kernel_formats_freep) KernelFormats *formats = NULL;
        _cleanup_fclose_ FILE *file = fopen(SOURCE_DIR "/tests/unit/tlob-v3.page", "re");
        KernelWindowCounters counters;
        uint8_t page[PAGE_SIZE];
        KernelPage result;
        Seen seen = {};

        assert_non_null(file);
        assert_int_equal(fread(page, 1, PAGE_SIZE, file), PAGE_SIZE);
        texts[KERNEL_EVENT_CHANGE] = FORMAT_CHANGE;
        assert_ok(kernel_formats_new(texts, &formats, NULL));
        assert_ok(kernel_windows_new(&windows));
        seen.windows = windows;
        assert_ok(kernel_page_decode(formats, page, sizeof(page), on_event, &seen, &result));

        assert_int_equal(result.n_unknown, 0);
        assert_int_equal(result.n_events, 17);
        assert_int_equal(seen.n_said, 4);
        assert_int_equal(seen.n_summed, 3);
        for (size_t i = 0; i < seen.n_summed; i++) {
                assert_int_equal(seen.summed[i].id, seen.said[i].id);
                /* Its own handlers take time, in an emulator up to 1.5 ms at a change of state. */
                for (size_t j = 0; j < TLOB_N_STATES; j++)
                        assert_true(distance(seen.summed[i].spent_ns[j], seen.said[i].spent_ns[j]) <
                                    2000000);
                assert_true(distance(sum(&seen.summed[i]), sum(&seen.said[i])) < 200000);
        }
        kernel_windows_get_counters(windows, &counters);
        assert_int_equal(counters.aborted, 1);
        assert_int_equal(counters.unknown, 0);
        assert_int_equal(counters.cut, 0);
}

/*
 * Each event is a letter, the digit of its task and the digit of its time: S start, r w s to that
 * state, p stop, e error, x lost track of, m events missed.
 */
static size_t push_all(KernelWindows *windows, const char *events, KernelEvent *ret) {
        size_t n = 0;

        for (const char *p = events; *p; p += 3) {
                KernelEvent event = {
                        .type = *p == 'e'   ? KERNEL_EVENT_ERROR_ENV
                                : *p == 'x' ? KERNEL_EVENT_ERROR
                                            : KERNEL_EVENT_CHANGE,
                        .id = p[1] - '0',
                        .time_ns = (uint64_t) (p[2] - '0'),
                        .is_start = *p == 'S',
                        .is_stop = *p == 'p',
                        .state = *p == 'w'   ? TLOB_WAITING
                                 : *p == 's' ? TLOB_SLEEPING
                                             : TLOB_RUNNING,
                };

                if (*p == 'm')
                        kernel_windows_cut(windows);
                else
                        n += kernel_windows_push(windows, &event, ret);
        }
        return n;
}

static void test_sums(void **state) {
        static const struct {
                const char *events;
                size_t n;
                uint64_t spent_ns[TLOB_N_STATES]; /* of the last one */
                KernelWindowCounters counters;
        } cases[] = {
                { "S11e19", 1, { 8 }, {} },
                { "S11s13w16r18e19", 1, { 3, 2, 3 }, {} },
                { "S11S22s13e25e19", 2, { 2, 0, 6 }, {} },
                { "S11p13e15", 0, {}, { .unknown = 1 } },    /* it had ended */
                { "e11", 0, {}, { .unknown = 1 } },          /* it began before us */
                { "s12r13e14", 0, {}, { .unknown = 1 } },    /* the same */
                { "S11e12e13", 1, { 1 }, { .unknown = 1 } }, /* one violation a window */
                { "S11x12e13", 0, {}, { .aborted = 1, .unknown = 1 } },
                { "S11s12S15e17", 1, { 2 }, {} }, /* its task ended the first one */
                { "S11p12S13w14e18", 1, { 1, 4 }, {} },
                { "S11m00e19", 0, {}, { .cut = 1, .unknown = 1 } },
                { "S15s13e19", 0, {}, { .cut = 1, .unknown = 1 } }, /* out of order */
                { "S15e13", 0, {}, { .cut = 1 } },
                { "s11p12", 0, {}, {} },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(kernel_windows_freep) KernelWindows *windows = NULL;
                KernelWindowCounters counters;
                KernelEvent last = {};

                assert_ok(kernel_windows_new(&windows));
                assert_int_equal(push_all(windows, cases[i].events, &last), cases[i].n);
                assert_memory_equal(last.spent_ns, cases[i].spent_ns, sizeof(last.spent_ns));
                kernel_windows_get_counters(windows, &counters);
                assert_memory_equal(&counters, &cases[i].counters, sizeof(counters));
        }
}

/*
 * Two tasks of one place in the table: the later one stays, and the other is not mixed up with it.
 */
static void test_collision(void **state) {
        _cleanup_(kernel_windows_freep) KernelWindows *windows = NULL;
        const KernelEvent events[] = {
                { .type = KERNEL_EVENT_CHANGE, .id = 7, .time_ns = 1, .is_start = true },
                { .type = KERNEL_EVENT_CHANGE, .id = 7 + 1024, .time_ns = 2, .is_start = true },
                { .type = KERNEL_EVENT_CHANGE, .id = 7, .time_ns = 3, .state = TLOB_SLEEPING },
                { .type = KERNEL_EVENT_ERROR_ENV, .id = 7, .time_ns = 8 },
                { .type = KERNEL_EVENT_ERROR_ENV, .id = 7 + 1024, .time_ns = 9 },
                { .type = KERNEL_EVENT_CHANGE, .id = -1, .time_ns = 9, .is_start = true },
                { .type = KERNEL_EVENT_ERROR_ENV, .id = INT32_MIN, .time_ns = 9 },
        };
        KernelWindowCounters counters;
        KernelEvent violation;
        size_t n = 0;

        assert_ok(kernel_windows_new(&windows));
        for (size_t i = 0; i < ELEMENTSOF(events); i++)
                if (kernel_windows_push(windows, &events[i], &violation)) {
                        assert_int_equal(violation.id, 7 + 1024);
                        assert_int_equal(violation.spent_ns[TLOB_RUNNING], 7);
                        n++;
                }
        assert_int_equal(n, 1);
        kernel_windows_get_counters(windows, &counters);
        assert_int_equal(counters.cut, 1);
        assert_int_equal(counters.unknown, 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_page),
                cmocka_unit_test(test_sums),
                cmocka_unit_test(test_collision),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
