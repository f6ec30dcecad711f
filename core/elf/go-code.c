/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Go on x86-64, from 1.17 on: r14 is the goroutine, r12 and r13 are free where a function begins
 * (ABIInternal, src/cmd/compile/abi-internal.md there). A function that needs stack compares what
 * is left (16(r14)) with what it needs. If that is too little, it calls the runtime, which may move
 * the stack, and begins again from its first instruction.
 */

#include "elf/go-code.h"

#if defined(__x86_64__)

#include "elf/decoder.h"

typedef struct Reader {
        Decoder decoder;
        const uint8_t *code;
        size_t size;
        uint64_t address;
} Reader;

static int reader_init(Reader *reader, const uint8_t *code, size_t size, uint64_t address,
                       const char **ret_reason) {
        *reader = (Reader) { .code = code, .size = size, .address = address };
        return decoder_init(&reader->decoder, ret_reason);
}

static const cs_insn *reader_next(Reader *reader) {
        return decoder_next(&reader->decoder, &reader->code, &reader->size, &reader->address)
                       ? &reader->decoder.instruction
                       : NULL;
}

static bool writes_to(const cs_insn *instruction, x86_reg reg) {
        const cs_x86 *x86 = &instruction->detail->x86;

        return x86->op_count == 2 && x86->operands[0].type == X86_OP_REG &&
               x86->operands[0].reg == reg;
}

static bool is_room_compared(const cs_insn *instruction) {
        const cs_x86 *x86 = &instruction->detail->x86;

        for (int i = 0; instruction->id == X86_INS_CMP && i < x86->op_count; i++)
                if (x86->operands[i].type == X86_OP_MEM && x86->operands[i].mem.base == X86_REG_R14)
                        return true;
        return false;
}

/* How much stack it needs, if that is much. */
static bool is_room_computed(const cs_insn *instruction) {
        return (instruction->id == X86_INS_LEA || instruction->id == X86_INS_MOV ||
                instruction->id == X86_INS_SUB) &&
               (writes_to(instruction, X86_REG_R12) || writes_to(instruction, X86_REG_R13));
}

int go_code_read_prologue(const uint8_t *code, size_t size, uint64_t address, GoPrologue *ret,
                          const char **ret_reason) {
        GoPrologue prologue = {};
        const cs_insn *instruction;
        bool compared = false;
        Reader reader;
        int r;

        r = reader_init(&reader, code, size, address, ret_reason);
        while (r >= 0 && (instruction = reader_next(&reader))) {
                if (is_room_compared(instruction))
                        compared = true;
                else if (instruction->id == X86_INS_JBE || instruction->id == X86_INS_JB)
                        prologue = (GoPrologue) { instruction->address, reader.address };
                else if (!is_room_computed(instruction))
                        break;
        }
        if (r < 0)
                return r;
        if (!compared || !prologue.body)
                return 0;
        *ret = prologue;
        return 1;
}

int go_code_find_switch(const uint8_t *code, size_t size, uint64_t address, uint64_t *ret,
                        const char **ret_reason) {
        const cs_insn *instruction;
        bool switched = false;
        uint64_t place = 0;
        Reader reader;
        int r;

        /* The cheapest instruction for a probe between the change and what is called then. */
        r = reader_init(&reader, code, size, address, ret_reason);
        while (r >= 0 && (instruction = reader_next(&reader))) {
                if (decoder_is_in_group(&reader.decoder, CS_GRP_CALL))
                        break;
                if (instruction->id == X86_INS_MOV && writes_to(instruction, X86_REG_R14))
                        switched = true;
                else if (switched && instruction->id == X86_INS_PUSH)
                        place = instruction->address;
        }
        if (r < 0)
                return r;
        *ret = place;
        return place != 0;
}

static bool changes_goroutine(const cs_insn *instruction) {
        const cs_x86 *x86 = &instruction->detail->x86;

        for (int i = 0; i < x86->op_count; i++) {
                const cs_x86_op *operand = &x86->operands[i];

                if (operand->type == X86_OP_REG && (operand->access & CS_AC_WRITE) &&
                    (operand->reg == X86_REG_R14 || operand->reg == X86_REG_R14D ||
                     operand->reg == X86_REG_R14W || operand->reg == X86_REG_R14B))
                        return true;
        }
        return false;
}

/* Code of the compiler does that after calls of code in assembler. */
static bool is_loaded_of_thread(const cs_insn *instruction) {
        const cs_x86_op *source = &instruction->detail->x86.operands[1];

        return instruction->id == X86_INS_MOV && writes_to(instruction, X86_REG_R14) &&
               source->type == X86_OP_MEM && source->mem.segment == X86_REG_FS;
}

int go_code_keeps_goroutine(const uint8_t *code, size_t size, uint64_t address,
                            const char **ret_reason) {
        const cs_insn *instruction;
        bool has_changed = false;
        Reader reader;
        int r;

        r = reader_init(&reader, code, size, address, ret_reason);
        while (r >= 0 && (instruction = reader_next(&reader))) {
                if (changes_goroutine(instruction))
                        has_changed = !is_loaded_of_thread(instruction);
                if (has_changed && (decoder_is_in_group(&reader.decoder, CS_GRP_JUMP) ||
                                    decoder_is_in_group(&reader.decoder, CS_GRP_CALL) ||
                                    decoder_is_in_group(&reader.decoder, CS_GRP_RET)))
                        return 0;
        }
        return r < 0 ? r : 1;
}

#else

int go_code_read_prologue(const uint8_t *code, size_t size, uint64_t address, GoPrologue *ret,
                          const char **ret_reason) {
        return 0;
}

int go_code_find_switch(const uint8_t *code, size_t size, uint64_t address, uint64_t *ret,
                        const char **ret_reason) {
        return 0;
}

int go_code_keeps_goroutine(const uint8_t *code, size_t size, uint64_t address,
                            const char **ret_reason) {
        return 0;
}

#endif
