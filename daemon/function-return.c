/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Whether a function has one way out. A monitor that knows entry points only can watch "until the
 * return" if the instruction at which the function returns is known, and is the only one: exactly one
 * RET, no jump out of the function (a tail call, a cold part elsewhere), no jump whose target is only
 * known when it runs, and no call of itself, because the first RET would end the outermost window.
 *
 * The code comes from whoever runs the services: what does not decode from end to end is refused.
 * Exceptions and longjmp() leave a function by no instruction of its own; nothing here sees them.
 */

#include "function-return.h"

#include <capstone/capstone.h>
#include <stdbool.h>

#include "cleanup.h"

static int refuse(const char **ret_reason, const char *reason) {
        *ret_reason = reason;
        return -EOPNOTSUPP;
}

#if defined(__x86_64__)

/* True if it goes to a place that can be read off the instruction. */
static bool has_target(const cs_insn *instruction, uint64_t *ret) {
        const cs_x86 *x86 = &instruction->detail->x86;

        if (x86->op_count != 1 || x86->operands[0].type != X86_OP_IMM)
                return false;
        *ret = (uint64_t) x86->operands[0].imm;
        return true;
}

typedef struct Scan {
        size_t size;
        size_t n_returns;
        size_t return_offset;
} Scan;

static int scan_instruction(csh handle, const cs_insn *instruction, Scan *scan,
                            const char **ret_reason) {
        uint64_t target;

        if (cs_insn_group(handle, instruction, CS_GRP_RET) ||
            cs_insn_group(handle, instruction, CS_GRP_IRET)) {
                scan->n_returns++;
                scan->return_offset = (size_t) instruction->address;
        } else if (cs_insn_group(handle, instruction, CS_GRP_CALL)) {
                if (has_target(instruction, &target) && target == 0)
                        return refuse(ret_reason, "calls itself");
        } else if (cs_insn_group(handle, instruction, CS_GRP_JUMP)) {
                if (!has_target(instruction, &target))
                        return refuse(ret_reason,
                                      "jumps to places that are only known when it runs");
                if (target >= scan->size)
                        return refuse(ret_reason, "can be left by a jump");
        }
        return 0;
}

static int scan_code(csh handle, cs_insn *instruction, const uint8_t *code, Scan *scan,
                     const char **ret_reason) {
        size_t left = scan->size;
        uint64_t address = 0;

        while (left > 0) {
                int r;

                if (!cs_disasm_iter(handle, &code, &left, &address, instruction))
                        return refuse(ret_reason, "has bytes that are not instructions");
                r = scan_instruction(handle, instruction, scan, ret_reason);
                if (r < 0)
                        return r;
        }
        if (scan->n_returns != 1)
                return refuse(ret_reason,
                              scan->n_returns == 0 ? "never returns" : "returns at several places");
        return 0;
}

int function_find_return(const uint8_t *code, size_t size, size_t *ret_offset,
                         const char **ret_reason) {
        Scan scan = { .size = size };
        cs_insn *instruction;
        csh handle;
        int r;

        if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
                return -ENOMEM;
        (void) cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
        instruction = cs_malloc(handle);
        r = instruction ? scan_code(handle, instruction, code, &scan, ret_reason) : -ENOMEM;
        if (instruction)
                cs_free(instruction, 1);
        (void) cs_close(&handle);
        if (r >= 0)
                *ret_offset = scan.return_offset;
        return r;
}

#else

int function_find_return(const uint8_t *code, size_t size, size_t *ret_offset,
                         const char **ret_reason) {
        return refuse(ret_reason, "is for a machine whose instructions tlobd does not read");
}

#endif
