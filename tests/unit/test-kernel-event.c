/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A page of the trace buffer of a kernel with tlob v3, as it was read there (tlob-v3.page), whole
 * and damaged; formats with fields missing, renamed, reordered and of other sizes; and pairs of
 * events.
 */

#include "kernel/event.h"

#include <unistd.h>

#include "kernel-formats.h"
#include "test.h"

static const char *const formats_v3[KERNEL_N_EVENTS] = FORMATS_V3;

static int formats_with_detail(const char *detail, KernelFormats **ret, char **ret_error) {
        const char *texts[KERNEL_N_EVENTS];

        memcpy(texts, formats_v3, sizeof(texts));
        texts[KERNEL_EVENT_DETAIL] = detail;
        return kernel_formats_new(texts, ret, ret_error);
}

static int setup(void **state) {
        _cleanup_free_ char *error = NULL;
        KernelFormats *formats;

        assert_ok(kernel_formats_new(formats_v3, &formats, &error));
        *state = formats;
        return 0;
}

static int teardown(void **state) {
        kernel_formats_free(*state);
        return 0;
}

#define PAGE_SIZE 4096
#define SEEN_MAX  512

typedef struct Seen {
        KernelEvent events[SEEN_MAX];
        size_t n;
} Seen;

static void on_event(const KernelEvent *event, void *userdata) {
        Seen *seen = userdata;

        assert_true(seen->n < SEEN_MAX);
        seen->events[seen->n++] = *event;
}

static void read_page(uint8_t page[static PAGE_SIZE]) {
        _cleanup_fclose_ FILE *file = fopen(SOURCE_DIR "/tests/unit/tlob-v3.page", "re");

        assert_non_null(file);
        assert_int_equal(fread(page, 1, PAGE_SIZE, file), PAGE_SIZE);
}

static void test_page(void **state) {
        static const struct {
                KernelEventType type;
                int id;
                uint64_t time_us;
                uint64_t spent_ns[TLOB_N_STATES];
        } expected[] = {
                { KERNEL_EVENT_ERROR_ENV, 1230, 81779020 },
                { KERNEL_EVENT_DETAIL, 1230, 81779107, { 592800, 0, 19581989 } },
                { KERNEL_EVENT_ERROR_ENV, 1231, 81897429 },
                { KERNEL_EVENT_DETAIL, 1231, 81897540, { 20262189, 0, 0 } },
                { KERNEL_EVENT_ERROR_ENV, 1232, 82453970 },
                { KERNEL_EVENT_DETAIL, 1232, 82454037, { 3749900, 16643599, 0 } },
                { KERNEL_EVENT_ERROR, 1239, 82904949 },
                { KERNEL_EVENT_DETAIL, 1239, 82905007, { 70570, 0, 5446689 } },
        };
        uint8_t page[PAGE_SIZE];
        KernelPage result;
        Seen seen = {};

        read_page(page);
        assert_ok(kernel_page_decode(*state, page, sizeof(page), on_event, &seen, &result));
        assert_false(result.damaged);
        assert_false(result.missed);
        assert_int_equal(result.n_events, ELEMENTSOF(expected));
        assert_int_equal(result.n_unknown, 9); /* event_tlob */
        assert_int_equal(seen.n, ELEMENTSOF(expected));
        for (size_t i = 0; i < seen.n; i++) {
                assert_int_equal(seen.events[i].type, expected[i].type);
                assert_int_equal(seen.events[i].id, expected[i].id);
                assert_int_equal((seen.events[i].time_ns + 500) / 1000, expected[i].time_us);
                if (expected[i].type == KERNEL_EVENT_DETAIL)
                        assert_int_equal(seen.events[i].threshold, 20000000);
                assert_memory_equal(seen.events[i].spent_ns, expected[i].spent_ns,
                                    sizeof(expected[i].spent_ns));
        }
        assert_int_equal(seen.events[0].state, TLOB_SLEEPING);
        assert_int_equal(seen.events[2].state, TLOB_RUNNING);
        assert_int_equal(seen.events[2].elapsed_ns, 150349);
        assert_false(seen.events[2].is_stop);
}

/* The page up to any length: no more events than there are, and never behind its end. */
static void test_cut_pages(void **state) {
        uint8_t page[PAGE_SIZE];

        read_page(page);
        for (size_t size = 0; size < PAGE_SIZE; size++) {
                uint8_t *cut = malloc(size > 0 ? size : 1); /* for the sanitizer */
                KernelPage result;
                Seen seen = {};

                assert_non_null(cut);
                memcpy(cut, page, size);
                assert_ok(kernel_page_decode(*state, cut, size, on_event, &seen, &result));
                assert_true(result.n_events <= 8);
                assert_true(result.n_events == 8 || size == 0 || result.damaged);
                free(cut);
        }
}

/* Any byte of it changed to some others. */
static void test_damaged_pages(void **state) {
        static const uint8_t values[] = { 0x00, 0x01, 0x1d, 0x1e, 0x1f, 0x7f, 0x80, 0xff };
        uint8_t page[PAGE_SIZE];

        read_page(page);
        for (size_t i = 0; i < 1024; i++)
                for (size_t j = 0; j < ELEMENTSOF(values); j++) {
                        uint8_t before = page[i];
                        KernelPage result;
                        Seen seen = {};

                        page[i] = values[j];
                        assert_ok(kernel_page_decode(*state, page, PAGE_SIZE, on_event, &seen,
                                                     &result));
                        page[i] = before;
                }
}

/*
 * Records whose lengths lead back, as the kernel writes none: each page ends, with what is before
 * them.
 */
static void test_endless_pages(void **state) {
        enum {
                EVENT = 3,
                PADDING = 29,
                LATER = 1 << 5
        };
        static const struct {
                uint32_t records[8];
                size_t n_unknown;
        } cases[] = {
                { { PADDING | LATER, (uint32_t) -4 }, 0 },
                { { PADDING, (uint32_t) -4 }, 0 },
                { { EVENT, 1, 2, 3, PADDING | LATER, (uint32_t) -20 }, 1 },
                { { PADDING, 4, PADDING | LATER, (uint32_t) -12 }, 0 },
                { { 0, 0, PADDING, (uint32_t) -12 }, 0 },
                { { 0, 0x80000000, PADDING, (uint32_t) -12 }, 0 },
                { { EVENT, 1, 2, 3, EVENT, 1, 2, 3 }, 2 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                uint8_t page[16 + sizeof(cases[i].records)] = { [8] = sizeof(cases[i].records) };
                KernelPage result;
                Seen seen = {};

                memcpy(page + 16, cases[i].records, sizeof(cases[i].records));
                (void) alarm(10);
                assert_ok(kernel_page_decode(*state, page, sizeof(page), on_event, &seen, &result));
                (void) alarm(0);
                assert_int_equal(seen.n, 0);
                assert_int_equal(result.n_unknown, cases[i].n_unknown);
                assert_int_equal(result.damaged, cases[i].n_unknown < 2);
        }
}

static void test_missed(void **state) {
        uint8_t page[PAGE_SIZE];
        KernelPage result;
        Seen seen = {};

        read_page(page);
        page[8 + 3] |= 0x80; /* the flag in the word behind the time stamp */
        assert_ok(kernel_page_decode(*state, page, PAGE_SIZE, on_event, &seen, &result));
        assert_true(result.missed);
        assert_int_equal(seen.events[0].type, KERNEL_EVENT_MISSED);
        assert_int_equal(seen.n, 9);
}

static void test_formats(void **state) {
        static const char *const good[] = {
                /* v2 */
                "name: detail_env_tlob\nID: 465\n" FORMAT_COMMON FORMAT_INT(pid, 8)
                        FORMAT_U64(threshold_us, 16) FORMAT_U64(running_ns, 24)
                                FORMAT_U64(waiting_ns, 32) FORMAT_U64(sleeping_ns, 40) FORMAT_PRINT,
                /* in another order, with something new in between, and packed */
                "name: detail_env_tlob\nID: 465\n" FORMAT_COMMON FORMAT_U64(sleeping_ns, 8)
                        FORMAT_U64(stopped_ns, 16) FORMAT_U64(running_ns, 24) FORMAT_INT(id, 32)
                                FORMAT_U64(threshold_ns, 36) FORMAT_U64(waiting_ns, 44)
                                        FORMAT_PRINT,
                /* of a uprobe event, as the tests of the back end use them */
                "name: detail_env_tlob\nID: 465\n" FORMAT_COMMON FORMAT_U64(
                        __probe_ip,
                        8) "\tfield:s32 id;\toffset:16;\tsize:4;\tsigned:1;\n" FORMAT_U64(threshold_ns,
                                                                                          20)
                        FORMAT_U64(running_ns, 28) FORMAT_U64(waiting_ns, 36)
                                FORMAT_U64(sleeping_ns, 44) FORMAT_PRINT,
        };

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                _cleanup_(kernel_formats_freep) KernelFormats *formats = NULL;
                _cleanup_free_ char *error = NULL;

                assert_ok(formats_with_detail(good[i], &formats, &error));
                assert_int_equal(kernel_formats_in_us(formats), i == 0);
        }
}

static void test_bad_formats(void **state) {
        static const struct {
                const char *text;
                const char *said;
        } bad[] = {
                { "", "makes no sense" },
                { "rubbish", "makes no sense" },
                { "name: another\nID: 465\n" FORMAT_COMMON FORMAT_INT(id, 8) FORMAT_PRINT,
                  "makes no sense" },
                { "name: detail_env_tlob\nID: 465\n" FORMAT_COMMON FORMAT_U64(threshold_ns, 16)
                          FORMAT_U64(running_ns, 24) FORMAT_U64(waiting_ns, 32)
                                  FORMAT_U64(sleeping_ns, 40) FORMAT_PRINT,
                  "'id'" },
                { "name: detail_env_tlob\nID: 465\n" FORMAT_COMMON FORMAT_INT(id, 8)
                          FORMAT_U64(running_ns, 24) FORMAT_U64(waiting_ns, 32)
                                  FORMAT_U64(sleeping_ns, 40) FORMAT_PRINT,
                  "'threshold_ns'" },
                { "name: detail_env_tlob\nID: 465\n" FORMAT_COMMON FORMAT_INT(id, 8) FORMAT_U64(
                          threshold_ns, 16) FORMAT_U64(threshold_us, 48) FORMAT_U64(running_ns, 24)
                          FORMAT_U64(waiting_ns, 32) FORMAT_U64(sleeping_ns, 40) FORMAT_PRINT,
                  "'threshold_ns'" },
                { "name: detail_env_tlob\nID: 465\n" FORMAT_COMMON FORMAT_INT(id, 8) FORMAT_U64(
                          threshold_ns, 16) FORMAT_U64(running_us, 24) FORMAT_U64(waiting_ns, 32)
                          FORMAT_U64(sleeping_ns, 40) FORMAT_PRINT,
                  "'running_ns'" },
                { "name: detail_env_tlob\nID: 465\n" FORMAT_COMMON FORMAT_INT(id, 8) FORMAT_U64(
                          threshold_ns, 16)
                          FORMAT_U64(running_ns, 24) "\tfield:u32 waiting_ns;\toffset:32;\tsize:4;\tsigned:0;\n" FORMAT_U64(
                                  sleeping_ns, 40) FORMAT_PRINT,
                  "'waiting_ns'" },
                { "name: detail_env_tlob\nID: 465\n" FORMAT_COMMON FORMAT_INT(id, 8) FORMAT_U64(
                          threshold_ns, 16) FORMAT_U64(running_ns, 24) FORMAT_U64(waiting_ns, 32)
                          FORMAT_TEXT(sleeping_ns, 40) FORMAT_PRINT,
                  "'sleeping_ns'" },
        };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_(kernel_formats_freep) KernelFormats *formats = NULL;
                _cleanup_free_ char *error = NULL;

                assert_int_equal(formats_with_detail(bad[i].text, &formats, &error), -EBADMSG);
                assert_non_null(strstr(error, bad[i].said));
        }
}

/* The event of changes, which not every version is asked for. */
static void test_change_format(void **state) {
        static const struct {
                const char *text;
                const char *said; /* NULL: good */
        } cases[] = {
                { FORMAT_CHANGE, NULL },
                { "name: event_tlob\nID: 468\n" FORMAT_COMMON FORMAT_TEXT(next_state, 8)
                          FORMAT_TEXT(event, 16) FORMAT_INT(id, 12) FORMAT_PRINT,
                  NULL },
                { "name: event_tlob\nID: 468\n" FORMAT_COMMON FORMAT_INT(id, 8)
                          FORMAT_TEXT(event, 16) FORMAT_PRINT,
                  "'next_state'" },
                { "name: event_tlob\nID: 468\n" FORMAT_COMMON FORMAT_INT(id, 8)
                          FORMAT_U64(event, 16) FORMAT_TEXT(next_state, 24) FORMAT_PRINT,
                  "'event'" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(kernel_formats_freep) KernelFormats *formats = NULL;
                _cleanup_free_ char *error = NULL;
                const char *texts[KERNEL_N_EVENTS];

                memcpy(texts, formats_v3, sizeof(texts));
                texts[KERNEL_EVENT_CHANGE] = cases[i].text;
                texts[KERNEL_EVENT_DETAIL] = NULL;
                assert_int_equal(kernel_formats_new(texts, &formats, &error),
                                 cases[i].said ? -EBADMSG : 0);
                if (cases[i].said)
                        assert_non_null(strstr(error, cases[i].said));
        }
}

static KernelEvent make_event(KernelEventType type, int id) {
        return (KernelEvent) { .type = type, .id = id, .time_ns = 1, .state = TLOB_WAITING };
}

/* A sequence of events of a CPU, each a letter and the digit of its task. */
static size_t push_all(KernelPairing *pairing, const char *events) {
        size_t n = 0;

        for (const char *p = events; *p; p += 2) {
                KernelEvent event = make_event(p[0] == 'e'   ? KERNEL_EVENT_ERROR_ENV
                                               : p[0] == 'd' ? KERNEL_EVENT_DETAIL
                                               : p[0] == 's' ? KERNEL_EVENT_ERROR_ENV
                                               : p[0] == 'x' ? KERNEL_EVENT_ERROR
                                                             : KERNEL_EVENT_MISSED,
                                               p[1] - '0');
                KernelEvent violation;

                event.is_stop = p[0] == 's';

                if (kernel_pairing_push(pairing, &event, &violation)) {
                        assert_int_equal(violation.id, event.id);
                        assert_int_equal(violation.state, TLOB_WAITING);
                        n++;
                }
        }
        return n;
}

static void test_pairing(void **state) {
        static const struct {
                const char *events;
                size_t n_violations, n_unpaired, n_lone, n_aborted;
        } cases[] = {
                { "e1d1", 1, 0, 0, 0 },   { "e1d1e2d2e1d1", 3, 0, 0, 0 },
                { "e1", 0, 0, 0, 0 }, /* its detail may still come */
                { "e1e2d2", 1, 1, 0, 0 }, { "e1d2", 0, 1, 1, 0 },
                { "e1d2d1", 0, 1, 2, 0 }, { "d1", 0, 0, 1, 0 },
                { "x1d1", 0, 0, 0, 1 },   { "x1d1d1", 0, 0, 1, 1 },
                { "e1x1d1", 0, 1, 0, 1 }, { "x1e1d1", 1, 0, 0, 1 },
                { "e1m0d1", 0, 1, 1, 0 }, { "e1d1d1", 1, 0, 1, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                KernelPairing pairing = {};

                assert_int_equal(push_all(&pairing, cases[i].events), cases[i].n_violations);
                assert_int_equal(pairing.n_unpaired, cases[i].n_unpaired);
                assert_int_equal(pairing.n_lone, cases[i].n_lone);
                assert_int_equal(pairing.n_aborted, cases[i].n_aborted);
        }
}

/*
 * Errors that a stop found: of v5 on, each is a violation, whatever comes next; before that none
 * is.
 */
static void test_stops(void **state) {
        static const struct {
                const char *events;
                size_t n_violations, n_unpaired, n_lone;
        } cases[] = {
                { "s1", 1, 0, 0 },     { "s1s1s2", 3, 0, 0 },   { "s1d1", 1, 0, 0 },
                { "s1d1d1", 1, 0, 1 }, { "e1s2d1", 1, 1, 0 },   { "s1e1d1", 2, 0, 0 },
                { "e1d1s1", 2, 0, 0 }, { "e1s1e1e1", 1, 2, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                KernelPairing pairing = { .believes_stops = true }, before = {};

                assert_int_equal(push_all(&pairing, cases[i].events), cases[i].n_violations);
                assert_int_equal(pairing.n_unpaired, cases[i].n_unpaired);
                assert_int_equal(pairing.n_lone, cases[i].n_lone);
                assert_int_equal(push_all(&before, "s1s2m0"), 0);
                assert_int_equal(before.n_unpaired, 2);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_page),          cmocka_unit_test(test_cut_pages),
                cmocka_unit_test(test_damaged_pages), cmocka_unit_test(test_endless_pages),
                cmocka_unit_test(test_missed),        cmocka_unit_test(test_formats),
                cmocka_unit_test(test_bad_formats),   cmocka_unit_test(test_pairing),
                cmocka_unit_test(test_stops),         cmocka_unit_test(test_change_format),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
