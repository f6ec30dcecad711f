/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which tables of .debug_line are given to libdw. */

#include "elf/line-program.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "test.h"

#define HEADER_SIZE 35

/* A header of version 4 without directories, with the file "a", and the program behind it. */
static size_t make_table(uint8_t table[static 128], const uint8_t *program, size_t n) {
        static const uint8_t header[HEADER_SIZE] = {
                0,   0, 0, 0,                              /* length */
                4,   0,                                    /* version */
                25,  0, 0, 0,                              /* length of the rest of the header */
                1,   1, 1, 0xfb, 14, 13,                   /* its numbers */
                0,   1, 1, 1,    1,  0,  0, 0, 1, 0, 0, 1, /* arguments */
                0,                                         /* directories */
                'a', 0, 0, 0,    0,  0,                    /* files */
        };

        _Static_assert(HEADER_SIZE == 10 + 25, "the length of the header is another one");
        memcpy(table, header, sizeof(header));
        memcpy(table + sizeof(header), program, n);
        table[0] = (uint8_t) (sizeof(header) - 4 + n);
        return sizeof(header) + n;
}

typedef struct Program {
        const char *what;
        uint8_t bytes[24];
        size_t n;
        bool is_plain;
} Program;

static const Program programs[] = {
        { "nothing", {}, 0, true },
        { "a sequence",
          { 0, 9, 2, 1, 2, 3, 4, 5, 6, 7, 8, 3, 0x80, 1, 2, 5, 0x21, 1, 9, 0, 0, 0, 1, 1 },
          24,
          true },
        { "a discriminator", { 0, 3, 4, 0x80, 1 }, 5, true },
        { "a file", { 0, 6, 3, 'b', 0, 0, 0, 0 }, 8, false },
        { "a file after others", { 1, 1, 0x50, 0, 6, 3, 'b', 0, 0, 0, 0 }, 11, false },
        { "a file in what is too long an address",
          { 0, 17, 2, 1, 2, 3, 4, 5, 6, 7, 8, 0, 6, 3, 'b', 0, 0, 0, 0 },
          19,
          false },
        { "too short an address", { 0, 5, 2, 1, 2, 3, 4 }, 7, false },
        { "an end with more", { 0, 2, 1, 1 }, 4, false },
        { "too long a discriminator", { 0, 3, 4, 1, 0 }, 5, false },
        { "a vendor's", { 0, 2, 0x90, 0 }, 4, false },
        { "no opcode", { 0, 0 }, 2, false },
        { "a long length", { 0, 0x89, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8 }, 12, false },
        { "cut off", { 0, 9, 2, 1 }, 4, false },
        { "cut off in a number", { 3, 0x80 }, 2, false },
        { "cut off in an advance", { 9, 0 }, 2, false },
};

static void test_programs(void **state) {
        for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
                uint8_t table[128];
                size_t size = make_table(table, programs[i].bytes, programs[i].n);

                if (line_program_is_plain(table, size) != programs[i].is_plain)
                        fail_msg("%s", programs[i].what);
                /* Others may come behind it. */
                table[size] = 0;
                if (line_program_is_plain(table, size + 1) != programs[i].is_plain)
                        fail_msg("%s, and more", programs[i].what);
        }
}

/* Of whatever length, nothing behind it is read. */
static void test_cut_off(void **state) {
        uint8_t table[128];
        size_t size = make_table(table, programs[1].bytes, programs[1].n);

        for (size_t n = 0; n < size; n++) {
                _cleanup_free_ uint8_t *copy = malloc(n + 1);

                assert_non_null(copy);
                memcpy(copy, table, n);
                assert_false(line_program_is_plain(copy, n));
        }
}

static void test_headers(void **state) {
        static const struct {
                size_t at;
                uint8_t value;
        } wrong[] = {
                { 0, 200 },             /* longer than what is there */
                { 3, 1 },   { 4, 1 },   /* a version that there is not */
                { 4, 6 },   { 6, 200 }, /* a header that is longer than the table */
                { 6, 3 },               /* or than its numbers */
                { 15, 0 },              /* no opcodes */
                { 17, 0 },              /* another number of arguments */
        };

        for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
                uint8_t table[128];
                size_t size = make_table(table, programs[1].bytes, programs[1].n);

                table[wrong[i].at] = wrong[i].value;
                if (line_program_is_plain(table, size))
                        fail_msg("byte %zu", wrong[i].at);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_programs),
                cmocka_unit_test(test_cut_off),
                cmocka_unit_test(test_headers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
