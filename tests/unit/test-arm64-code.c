/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Code of arm64, as it is in memory: the same on all machines. */

#include "elf/arm64-code.h"

#include "elf/arm64-probe.h"
#include "test.h"

#define RET        0xd65f03c0
#define NOP        0xd503201f
#define MOV        0xaa1f03e0 /* mov x0, xzr */
#define BL_BACK    0x97ffffff /* bl .-4 */
#define B_FAR      0x14001000 /* b .+0x4000 */
#define B_TWO      0x14000002 /* b .+8 */
#define CBNZ_BACK  0x35ffffe0 /* cbnz w0, .-4 */
#define BR         0xd61f0000 /* br x0 */
#define ADR_NEXT   0x10000021 /* adr x1, .+4 */
#define LDRB_INDEX 0x38624862 /* ldrb w2, [x3, w2, uxtw] */
#define ADD_TABLE  0x8b22a820 /* add x0, x1, w2, sxth #2 */
#define LDXR       0x885f7c01 /* ldxr w1, [x0] */
#define STXR       0x88027c01 /* stxr w2, w1, [x0] */
#define BTI        0xd503245f /* bti c */
#define PACIASP    0xd503233f
#define AUTIASP    0xd50323bf
#define RETAA      0xd65f0bff
#define SVC        0xd4000001
#define LDR_BESIDE 0x5c000040 /* ldr d0, .+8 */
#define START      0x10000

#define WORDS(...)                                                                                 \
        (const uint32_t[]){ __VA_ARGS__ },                                                         \
                sizeof((const uint32_t[]) { __VA_ARGS__ }) / sizeof(uint32_t)

static size_t to_bytes(const uint32_t *words, size_t n, uint8_t *ret) {
        for (size_t i = 0; i < n * sizeof(uint32_t); i++)
                ret[i] = (uint8_t) (words[i / 4] >> i % 4 * 8);
        return n * sizeof(uint32_t);
}

static int read_code(const uint32_t *words, size_t n, FunctionCode *ret, const char **ret_reason) {
        uint8_t bytes[256];

        return arm64_code_read(bytes, to_bytes(words, n, bytes), START, ret, ret_reason);
}

static ProbeKind kind_of(const uint32_t *words, size_t n) {
        uint8_t bytes[256];

        return arm64_probe_kind(bytes, to_bytes(words, n, bytes));
}

static void assert_leaves(const uint32_t *words, size_t n, const Leave *expected,
                          size_t n_expected) {
        FunctionCode code = {};
        const char *reason = "";

        assert_ok(read_code(words, n, &code, &reason));
        assert_int_equal(code.n_leaves, n_expected);
        for (size_t i = 0; i < n_expected; i++) {
                assert_int_equal(code.leaves[i].kind, expected[i].kind);
                assert_int_equal(code.leaves[i].address, expected[i].address);
                assert_int_equal(code.leaves[i].target, expected[i].target);
        }
        function_code_done(&code);
}

static void test_leaves(void **state) {
        assert_leaves(WORDS(MOV, RET, NOP), &(Leave) { LEAVE_RETURN, START + 4, 0, false }, 1);
        assert_leaves(WORDS(MOV, RETAA), &(Leave) { LEAVE_RETURN, START + 4, 0, false }, 1);
        assert_leaves(WORDS(MOV, B_FAR), &(Leave) { LEAVE_JUMP, START + 4, START + 0x4004, false },
                      1);
        assert_leaves(WORDS(MOV, CBNZ_BACK, RET),
                      (const Leave[]) { { LEAVE_BRANCH, START + 4, START, false },
                                        { LEAVE_RETURN, START + 8, 0, false } },
                      2);
        assert_leaves(WORDS(B_TWO, MOV, BR), &(Leave) { LEAVE_POINTER, START + 8, 0, false }, 1);
        assert_leaves(WORDS(LDRB_INDEX, ADR_NEXT, ADD_TABLE, BR),
                      &(Leave) { LEAVE_SWITCH, START + 12, 0, false }, 1);
}

static void test_facts(void **state) {
        FunctionCode code = {};
        const char *reason = NULL;

        assert_ok(read_code(WORDS(MOV, BL_BACK, CBNZ_BACK), &code, &reason));
        assert_true(code.calls_itself);
        assert_true(code.jumps_to_second);
        assert_true(code.runs_out);
        assert_false(code.takes_inner_address);
        function_code_done(&code);
        assert_ok(read_code(WORDS(ADR_NEXT, RET), &code, &reason));
        assert_true(code.takes_inner_address);
        assert_false(code.runs_out);
        function_code_done(&code);
}

static void test_data(void **state) {
        FunctionCode code = {};
        const char *reason = NULL;

        assert_int_equal(read_code(WORDS(MOV, 0x1234, RET), &code, &reason), -EOPNOTSUPP);
        assert_string_equal(reason, "has bytes that are not instructions");
        assert_int_equal(read_code(WORDS(LDR_BESIDE, RET, MOV), &code, &reason), -EOPNOTSUPP);
        assert_string_equal(reason, "has data between its instructions");
}

/* As arch/arm64/kernel/probes/decode-insn.c has it. */
static void test_probes(void **state) {
        assert_int_equal(kind_of(WORDS(RET)), PROBE_EMULATED);
        assert_int_equal(kind_of(WORDS(B_FAR)), PROBE_EMULATED);
        assert_int_equal(kind_of(WORDS(ADR_NEXT)), PROBE_EMULATED);
        assert_int_equal(kind_of(WORDS(MOV)), PROBE_STEPPED);
        assert_int_equal(kind_of(WORDS(BTI)), PROBE_STEPPED);
        assert_int_equal(kind_of(WORDS(PACIASP)), PROBE_STEPPED);
        assert_int_equal(kind_of(WORDS(AUTIASP)), PROBE_UNKNOWN);
        assert_int_equal(kind_of(WORDS(RETAA)), PROBE_UNKNOWN);
        assert_int_equal(kind_of(WORDS(SVC)), PROBE_UNKNOWN);
        assert_int_equal(kind_of(WORDS(LDR_BESIDE)), PROBE_UNKNOWN);
}

/* A probe there would make the program go round for ever. */
static void test_exclusives(void **state) {
        assert_int_equal(kind_of(WORDS(LDXR)), PROBE_UNKNOWN);
        assert_int_equal(kind_of(WORDS(LDXR, MOV)), PROBE_UNKNOWN);
        assert_int_equal(kind_of(WORDS(LDXR, MOV, STXR)), PROBE_UNKNOWN);
        assert_int_equal(kind_of(WORDS(LDXR, MOV, STXR, MOV)), PROBE_STEPPED);
        assert_int_equal(kind_of(WORDS(LDXR, RET, MOV)), PROBE_STEPPED);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_leaves),     cmocka_unit_test(test_facts),
                cmocka_unit_test(test_data),       cmocka_unit_test(test_probes),
                cmocka_unit_test(test_exclusives),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
