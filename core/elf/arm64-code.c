/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Where control can leave a function of arm64. As function-code.c does it on x86-64: from the first
 * instruction to the last. Compilers put data elsewhere; what refers to some in between is refused.
 */

#include "elf/arm64-code.h"

#include "elf/arm64-instruction.h"

#define N_REGISTERS    32
#define TABLE_DISTANCE 6 /* instructions from the load of an entry to the jump, at most */

typedef struct Scan {
        FunctionCode code;
        uint64_t pages[N_REGISTERS]; /* what adrp has last put there; 0: nothing */
        unsigned entry;              /* the register of an entry of a table that was loaded, ... */
        unsigned target;             /* ... and that of the sum of it and something else */
        bool is_address;             /* the entry: of eight bytes */
        unsigned age;                /* of the entry, in instructions */
} Scan;

#define NO_REGISTER N_REGISTERS

static int refuse(const char **ret_reason, const char *reason) {
        *ret_reason = reason;
        return -EOPNOTSUPP;
}

/* Where it leads, or what it takes the address of. */
static uint64_t target_of(uint32_t instruction, uint64_t address) {
        if (is_jump(instruction) || is_call(instruction))
                return address + (uint64_t) number(instruction, 0, 26) * 4;
        if (is_bit_test(instruction))
                return address + (uint64_t) number(instruction, 5, 14) * 4;
        if (is_adr(instruction) || is_adrp(instruction)) {
                uint64_t distance =
                        (uint64_t) number(instruction, 5, 19) << 2 | (instruction >> 29 & 3);

                return is_adr(instruction) ? address + distance
                                           : (address & ~UINT64_C(0xfff)) + (distance << 12);
        }
        return address + (uint64_t) number(instruction, 5, 19) * 4;
}

/* A jump to elsewhere; one inside is none. */
static int add_jump(Scan *scan, uint32_t instruction, uint64_t address, LeaveKind kind) {
        FunctionCode *code = &scan->code;
        uint64_t target = target_of(instruction, address);

        if (target == code->start || !function_code_has(code, target))
                return function_code_add_leave(
                        code, &(Leave) { .kind = kind, .address = address, .target = target });
        if (target == code->start + ARM64_INSTRUCTION_SIZE)
                code->jumps_to_second = true;
        return 0;
}

/* As compilers make a switch: the sum of an address and an entry of a table of distances. */
static int add_pointer_jump(Scan *scan, uint32_t instruction, uint64_t address) {
        Leave leave = { .kind = LEAVE_POINTER, .address = address };
        unsigned to = first_source(instruction);

        if (to == scan->target)
                leave.kind = LEAVE_SWITCH;
        leave.is_indexed = to == scan->entry && scan->is_address;
        return function_code_add_leave(&scan->code, &leave);
}

static void note_table(Scan *scan, uint32_t instruction) {
        unsigned first = first_source(instruction), second = second_source(instruction);

        if (++scan->age > TABLE_DISTANCE)
                scan->entry = scan->target = NO_REGISTER;
        if (is_indexed_load(instruction)) {
                scan->entry = destination(instruction);
                scan->target = NO_REGISTER;
                scan->is_address = is(instruction, 0xc0c00000, 0xc0400000);
                scan->age = 0;
        } else if (is_sum(instruction) && scan->entry != NO_REGISTER &&
                   (first == scan->entry || second == scan->entry))
                scan->target = destination(instruction);
}

static void note_address(Scan *scan, uint64_t address) {
        if (address != scan->code.start && function_code_has(&scan->code, address))
                scan->code.takes_inner_address = true;
}

/*
 * Pages are not forgotten when something else is put into the register: an address too many is
 * harmless. What adr takes for a switch is one, too, unless it is for a jump with a frame.
 */
static void note_addresses(Scan *scan, uint32_t instruction, uint64_t address) {
        uint64_t page = scan->pages[first_source(instruction)];

        if (is_adr(instruction))
                note_address(scan, target_of(instruction, address));
        else if (is_adrp(instruction))
                scan->pages[destination(instruction)] = target_of(instruction, address);
        else if (is_sum_with_number(instruction) && page != 0)
                note_address(scan, page + (instruction >> 10 & 0xfff));
}

static int scan_instruction(Scan *scan, uint32_t instruction, uint64_t address,
                            const char **ret_reason) {
        FunctionCode *code = &scan->code;

        code->begins[address - code->start] = 1;
        note_table(scan, instruction);
        note_addresses(scan, instruction, address);
        if (is_undefined(instruction))
                return refuse(ret_reason, "has bytes that are not instructions");
        if (is_literal(instruction) && function_code_has(code, target_of(instruction, address)))
                return refuse(ret_reason, "has data between its instructions");
        if (instruction != ARM64_NOP)
                code->runs_out = !is_return(instruction) && !is_jump(instruction) &&
                                 !is_call(instruction) && !is_pointer_jump(instruction) &&
                                 !is_pointer_call(instruction) && !is_breakpoint(instruction);
        if (is_return(instruction))
                return function_code_add_leave(
                        code, &(Leave) { .kind = LEAVE_RETURN, .address = address });
        if (is_jump(instruction))
                return add_jump(scan, instruction, address, LEAVE_JUMP);
        if (is_condition(instruction) || is_compare(instruction) || is_bit_test(instruction))
                return add_jump(scan, instruction, address, LEAVE_BRANCH);
        if (is_pointer_jump(instruction))
                return add_pointer_jump(scan, instruction, address);
        if (is_call(instruction) && target_of(instruction, address) == code->start)
                code->calls_itself = true;
        return 0;
}

int arm64_code_read(const uint8_t *code, size_t size, uint64_t address, FunctionCode *ret,
                    const char **ret_reason) {
        Scan scan = {
                .code = { .start = address, .size = size },
                .entry = NO_REGISTER,
                .target = NO_REGISTER,
        };
        int r = 0;

        if (size % ARM64_INSTRUCTION_SIZE != 0 || address % ARM64_INSTRUCTION_SIZE != 0)
                return refuse(ret_reason, "has bytes that are not instructions");
        scan.code.begins = calloc(size + 1, 1);
        if (!scan.code.begins)
                return -ENOMEM;
        for (size_t i = 0; i < size && r >= 0; i += ARM64_INSTRUCTION_SIZE)
                r = scan_instruction(&scan, instruction_at(code + i), address + i, ret_reason);
        if (r < 0)
                function_code_done(&scan.code);
        else
                *ret = scan.code;
        return r;
}

#if defined(__aarch64__)

int function_code_read(const uint8_t *code, size_t size, uint64_t address, FunctionCode *ret,
                       const char **ret_reason) {
        return arm64_code_read(code, size, address, ret, ret_reason);
}

int function_code_is_boundary(const uint8_t *code, size_t size, size_t place, size_t *ret_begin,
                              const char **ret_reason) {
        size_t begin = place / ARM64_INSTRUCTION_SIZE * ARM64_INSTRUCTION_SIZE;

        if (begin == place)
                return 1;
        *ret_begin = begin;
        return 0;
}

#endif
