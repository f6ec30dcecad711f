/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Any bytes as the code of a function. */

#include "elf/function-code.h"
#include "fuzz.h"

static void check_leaves(const FunctionCode *code) {
        for (size_t i = 0; i < code->n_leaves; i++) {
                const Leave *leave = &code->leaves[i];

                fuzz_assert(function_code_has(code, leave->address));
                fuzz_assert(code->begins[leave->address - code->start]);
                fuzz_assert(i == 0 || code->leaves[i - 1].address < leave->address);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        FunctionCode code = {};
        const char *reason = NULL;
        int r;

        r = function_code_read(data, size, 0x1000, &code, &reason);
        fuzz_assert(r == 0 || (r == -EOPNOTSUPP && reason));
        if (r < 0)
                return 0;
        check_leaves(&code);
        for (size_t place = 0; place < size; place++) {
                size_t begin = 0;

                r = function_code_is_boundary(data, size, place, &begin, &reason);
                fuzz_assert(r == code.begins[place]);
                fuzz_assert(r || (begin < place && code.begins[begin]));
        }
        function_code_done(&code);
        return 0;
}
