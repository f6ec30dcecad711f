/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From the bytes of a function to its instructions, on x86-64 with capstone (on arm64 it is
 * arm64-code.c): from the first to the last, without following control. Compilers put nothing but
 * instructions between the two. Data in between, as people write it in assembly, shows itself: it
 * does not decode, it decodes to what only a kernel may do, or a jump then leads into the middle of
 * an instruction. Such code is refused, because a probe that is written into data changes it.
 *
 * Which way out is a way out of the function is decided elsewhere (function-exits.c): that needs to
 * be known what lies around the code.
 */

#include "elf/function-code.h"

#include <string.h>

#if defined(__x86_64__)
#include "elf/decoder.h"
#include "elf/stack-guard.h"
#endif

void function_code_done(FunctionCode *code) {
        free(code->begins);
        free(code->leaves);
        *code = (FunctionCode) {};
}

bool function_code_has(const FunctionCode *code, uint64_t address) {
        return address >= code->start && address - code->start < code->size;
}

int function_code_add_leave(FunctionCode *code, const Leave *leave) {
        Leave *leaves;

        leaves = reallocarray(code->leaves, code->n_leaves + 1, sizeof(*leaves));
        if (!leaves)
                return -ENOMEM;
        code->leaves = leaves;
        code->leaves[code->n_leaves++] = *leave;
        return 0;
}

/* The first way out at or behind an address, or as many as there are. */
static size_t find_leave(const FunctionCode *code, uint64_t address) {
        size_t begin = 0, end = code->n_leaves;

        while (begin < end) {
                size_t middle = begin + (end - begin) / 2;

                if (code->leaves[middle].address < address)
                        begin = middle + 1;
                else
                        end = middle;
        }
        return begin;
}

void function_code_reach(FunctionCode *code, uint64_t target) {
        size_t i = find_leave(code, target);

        if (i < code->n_leaves && code->leaves[i].guard < target)
                code->leaves[i].guard = 0;
}

#if defined(__x86_64__)

#define NOTRACK                                                                                    \
        0x3e /* a prefix: the jump may go where no endbr64 is. Compilers set it for a switch */

#define TABLE_DISTANCE 6 /* instructions from the load of an entry to the jump, at most */

static int refuse(const char **ret_reason, const char *reason) {
        *ret_reason = reason;
        return -EOPNOTSUPP;
}

/* An entry of a table that was loaded, for a jump soon after. */
typedef struct TableLoad {
        x86_reg base;     /* what the distances are from; invalid for addresses */
        x86_reg entry;    /* invalid: none is loaded */
        x86_reg target;   /* the sum of the two, invalid until they are added */
        uint64_t address; /* of a table of addresses */
        unsigned age;
} TableLoad;

typedef struct Scan {
        FunctionCode code;
        uint64_t *inner; /* where jumps inside lead to */
        size_t n_inner;
        TableLoad table;
        StackGuard guard;
} Scan;

static int add_inner(Scan *scan, uint64_t target) {
        uint64_t *inner;

        inner = reallocarray(scan->inner, scan->n_inner + 1, sizeof(*inner));
        if (!inner)
                return -ENOMEM;
        scan->inner = inner;
        scan->inner[scan->n_inner++] = target;
        return 0;
}

/* True if it goes to a place that can be read off the instruction. */
static bool has_target(const cs_x86 *x86, uint64_t *ret) {
        if (x86->op_count != 1 || x86->operands[0].type != X86_OP_IMM)
                return false;
        *ret = (uint64_t) x86->operands[0].imm;
        return true;
}

/* Eight bytes each, at a fixed place in memory. */
static bool is_address_table(const cs_x86_op *op) {
        return op->type == X86_OP_MEM && op->mem.base == X86_REG_INVALID &&
               op->mem.index != X86_REG_INVALID && op->mem.scale == 8 && op->mem.disp > 0;
}

/* "movslq (base,index,4), entry" and "mov table(,index,8), entry" */
static void note_load(const cs_insn *instruction, TableLoad *table) {
        const cs_x86_op *to = &instruction->detail->x86.operands[0], *from = to + 1;

        if (instruction->id == X86_INS_MOVSXD && from->type == X86_OP_MEM &&
            from->mem.index != X86_REG_INVALID && from->mem.scale == 4)
                *table = (TableLoad) { .base = from->mem.base, .entry = to->reg };
        else if (instruction->id == X86_INS_MOV && to->type == X86_OP_REG && is_address_table(from))
                *table = (TableLoad) {
                        .entry = to->reg,
                        .target = to->reg,
                        .address = (uint64_t) from->mem.disp,
                };
}

/* "add base, entry", or the other way round */
static void note_sum(const cs_x86 *x86, TableLoad *table) {
        const cs_x86_op *to = &x86->operands[0], *from = to + 1;

        if (table->entry == X86_REG_INVALID || to->type != X86_OP_REG || from->type != X86_OP_REG)
                return;
        if ((to->reg == table->entry && from->reg == table->base) ||
            (to->reg == table->base && from->reg == table->entry))
                table->target = to->reg;
}

static void note_table(const cs_insn *instruction, TableLoad *table) {
        const cs_x86 *x86 = &instruction->detail->x86;

        if (++table->age > TABLE_DISTANCE)
                *table = (TableLoad) {};
        if (x86->op_count != 2)
                return;
        note_load(instruction, table);
        if (instruction->id == X86_INS_ADD)
                note_sum(x86, table);
}

/* A jump whose target is known when it runs. */
static int scan_pointer(const cs_insn *instruction, Scan *scan) {
        const cs_x86 *x86 = &instruction->detail->x86;
        const cs_x86_op *op = &x86->operands[0];
        Leave leave = { .kind = LEAVE_POINTER, .address = instruction->address };
        const TableLoad *table = &scan->table;

        if (is_address_table(op)) {
                leave.kind = LEAVE_TABLE;
                leave.target = (uint64_t) op->mem.disp;
        } else if (op->type == X86_OP_REG && table->target == op->reg && table->address) {
                leave.kind = LEAVE_TABLE;
                leave.target = table->address;
        } else if (x86->prefix[1] == NOTRACK ||
                   (op->type == X86_OP_REG && table->target == op->reg))
                leave.kind = LEAVE_SWITCH;
        leave.is_indexed = op->type == X86_OP_MEM && op->mem.index != X86_REG_INVALID;
        return function_code_add_leave(&scan->code, &leave);
}

static int scan_jump(const cs_insn *instruction, Scan *scan) {
        bool always = instruction->id == X86_INS_JMP || instruction->id == X86_INS_LJMP;
        Leave leave = {
                .kind = always ? LEAVE_JUMP : LEAVE_BRANCH,
                .address = instruction->address,
        };
        FunctionCode *code = &scan->code;

        if (!has_target(&instruction->detail->x86, &leave.target))
                return scan_pointer(instruction, scan);
        if (leave.target != code->start && function_code_has(code, leave.target))
                return add_inner(scan, leave.target);
        return function_code_add_leave(code, &leave);
}

/* "lea inside(%rip), ..." */
static bool takes_inner_address(const cs_insn *instruction, const FunctionCode *code) {
        const cs_x86_op *from = &instruction->detail->x86.operands[1];
        uint64_t target;

        if (instruction->id != X86_INS_LEA || from->mem.base != X86_REG_RIP)
                return false;
        target = instruction->address + instruction->size + (uint64_t) from->mem.disp;
        return target != code->start && function_code_has(code, target);
}

static int scan_instruction(const Decoder *decoder, Scan *scan, const char **ret_reason) {
        const cs_insn *instruction = &decoder->instruction;
        FunctionCode *code = &scan->code;
        uint64_t target, guard;

        code->begins[instruction->address - code->start] = 1;
        if (instruction->id != X86_INS_NOP)
                code->runs_out = true;
        note_table(instruction, &scan->table);
        guard = scan->guard.branch;
        stack_guard_watch(&scan->guard, instruction);

        if (decoder_is_in_group(decoder, CS_GRP_RET)) {
                code->runs_out = false;
                return function_code_add_leave(code, &(Leave) {
                                                             .kind = LEAVE_RETURN,
                                                             .address = instruction->address,
                                                             .guard = guard,
                                                     });
        }
        if (decoder_is_in_group(decoder, CS_GRP_JUMP)) {
                if (instruction->id == X86_INS_JMP)
                        code->runs_out = false;
                return scan_jump(instruction, scan);
        }
        if (decoder_is_in_group(decoder, CS_GRP_CALL)) {
                /* At the end, it is of a function that does not return. */
                code->runs_out = false;
                if (has_target(&instruction->detail->x86, &target) && target == code->start)
                        code->calls_itself = true;
                return 0;
        }
        if (instruction->id == X86_INS_UD2 || instruction->id == X86_INS_HLT ||
            instruction->id == X86_INS_INT3)
                code->runs_out = false;
        else if (decoder_is_in_group(decoder, CS_GRP_PRIVILEGE) ||
                 decoder_is_in_group(decoder, CS_GRP_IRET))
                return refuse(ret_reason, "has instructions that no program may use, so that part "
                                          "of it seems to be data");
        if (takes_inner_address(instruction, code))
                code->takes_inner_address = true;
        return 0;
}

static int scan_code(Decoder *decoder, const uint8_t *code, size_t size, Scan *scan,
                     const char **ret_reason) {
        uint64_t address = scan->code.start;
        int r;

        while (size > 0) {
                if (!decoder_next(decoder, &code, &size, &address))
                        return refuse(ret_reason, "has bytes that are not instructions");
                r = scan_instruction(decoder, scan, ret_reason);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Jumps inside lead to instructions, if the code is what it looks like. */
static int check_inner(Scan *scan, const char **ret_reason) {
        FunctionCode *code = &scan->code;
        size_t second = 1;

        while (second < code->size && !code->begins[second])
                second++;
        for (size_t i = 0; i < scan->n_inner; i++) {
                size_t target = (size_t) (scan->inner[i] - code->start);

                if (!code->begins[target])
                        return refuse(ret_reason, "jumps into the middle of an instruction, so "
                                                  "that part of it seems to be data");
                if (target == second)
                        code->jumps_to_second = true;
                function_code_reach(code, scan->inner[i]);
        }
        return 0;
}

int function_code_read(const uint8_t *code, size_t size, uint64_t address, FunctionCode *ret,
                       const char **ret_reason) {
        Scan scan = { .code = { .start = address, .size = size } };
        Decoder decoder;
        int r;

        scan.code.begins = calloc(size + 1, 1);
        r = decoder_init(&decoder, ret_reason);
        if (r >= 0)
                r = scan.code.begins ? scan_code(&decoder, code, size, &scan, ret_reason) : -ENOMEM;
        if (r >= 0)
                r = check_inner(&scan, ret_reason);
        free(scan.inner);
        if (r < 0)
                function_code_done(&scan.code);
        else
                *ret = scan.code;
        return r;
}

int function_code_is_boundary(const uint8_t *code, size_t size, size_t place, size_t *ret_begin,
                              const char **ret_reason) {
        uint64_t address = 0;
        Decoder decoder;
        size_t begin = 0;
        int r;

        r = decoder_init(&decoder, ret_reason);
        while (r >= 0 && address < place) {
                begin = (size_t) address;
                if (!decoder_next(&decoder, &code, &size, &address))
                        r = refuse(ret_reason, "has bytes that are not instructions before it");
        }
        if (r < 0)
                return r;
        if (address == place)
                return 1;
        *ret_begin = begin;
        return 0;
}

#elif !defined(__aarch64__)

static int refuse_machine(const char **ret_reason) {
        *ret_reason = "is for a machine whose instructions tlobd cannot decode";
        return -EOPNOTSUPP;
}

int function_code_read(const uint8_t *code, size_t size, uint64_t address, FunctionCode *ret,
                       const char **ret_reason) {
        return refuse_machine(ret_reason);
}

int function_code_is_boundary(const uint8_t *code, size_t size, size_t place, size_t *ret_begin,
                              const char **ret_reason) {
        return refuse_machine(ret_reason);
}

#endif
