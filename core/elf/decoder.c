/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * capstone is loaded when there is code to be decoded: its tables, which the dynamic linker writes
 * to, would else take 3 MB of every process, and most never decode anything. Only the symbols of
 * the version that was compiled for are known here, so that one it has to be. It is opened once,
 * and stays: who has decoded once does it again.
 */

#include "elf/decoder.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/sentence.h"
#include "elf/probe-kind.h"
#include "elf/read.h"

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)
#define LIBRARY         "libcapstone.so." TEXT(CS_API_MAJOR)

static struct {
        csh handle;
        __typeof__(cs_open) *open;
        __typeof__(cs_option) *option;
        __typeof__(cs_disasm_iter) *next;
        __typeof__(cs_insn_group) *group;
} capstone;

/*
 * capstone uses some of its memory without asking whether it got it. It asks for all of it once,
 * when it is opened and when it first decodes (some 20 KB of version 4), so it is here. What nobody
 * has touched costs nothing.
 */
static alignas(max_align_t) uint8_t memory[UINT32_C(128) << 10];
static size_t memory_used;

static void *take(size_t n, size_t size) {
        size_t bytes;
        void *p;

        if (__builtin_mul_overflow(n, size, &bytes) || bytes > sizeof(memory) - memory_used)
                return calloc(n, size);
        p = memory + memory_used;
        bytes = (bytes + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
        memory_used = bytes > sizeof(memory) - memory_used ? sizeof(memory) : memory_used + bytes;
        return p;
}

static void *take_bytes(size_t size) {
        return take(1, size);
}

static void give_back(void *p) {
        if ((uint8_t *) p < memory || (uint8_t *) p >= memory + sizeof(memory))
                free(p);
}

/* It does this only where instructions are returned by the array. */
static void *take_more(void *p, size_t size) {
        return NULL;
}

static bool load(void) {
        const struct {
                const char *name;
                void **to;
        } functions[] = {
                { "cs_open", (void **) &capstone.open },
                { "cs_option", (void **) &capstone.option },
                { "cs_disasm_iter", (void **) &capstone.next },
                { "cs_insn_group", (void **) &capstone.group },
        };
        void *library;

        library = dlopen(LIBRARY, RTLD_NOW | RTLD_NODELETE);
        if (!library)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(functions); i++) {
                *functions[i].to = dlsym(library, functions[i].name);
                if (!*functions[i].to)
                        return false;
        }
        return true;
}

static int open_once(const char **ret_reason) {
        cs_opt_mem functions = {
                .malloc = take_bytes,
                .calloc = take,
                .realloc = take_more,
                .free = give_back,
                .vsnprintf = vsnprintf,
        };

        if (capstone.handle)
                return 0;
        if (!load()) {
                *ret_reason = "cannot be decoded, because " LIBRARY " cannot be loaded";
                return -EOPNOTSUPP;
        }
        (void) capstone.option(0, CS_OPT_MEM, (size_t) &functions);
        if (capstone.open(CS_ARCH_X86, CS_MODE_64, &capstone.handle) != CS_ERR_OK)
                return -ENOMEM;
        (void) capstone.option(capstone.handle, CS_OPT_DETAIL, CS_OPT_ON);
        return 0;
}

int decoder_init(Decoder *decoder, const char **ret_reason) {
        *decoder = (Decoder) {};
        decoder->instruction.detail = &decoder->detail;
        return open_once(ret_reason);
}

bool decoder_next(Decoder *decoder, const uint8_t **code, size_t *size, uint64_t *address) {
        return capstone.next(capstone.handle, code, size, address, &decoder->instruction);
}

#if defined(__x86_64__)

char *decoder_describe(int fd, uint64_t offset) {
        uint8_t bytes[PROBE_CODE_MAX];
        const uint8_t *code = bytes;
        const char *reason;
        Decoder decoder;
        ssize_t n;
        size_t size;

        n = elf_read(fd, bytes, sizeof(bytes), offset);
        if (n <= 0 || decoder_init(&decoder, &reason) < 0)
                return NULL;
        size = (size_t) n;
        if (!decoder_next(&decoder, &code, &size, &offset))
                return NULL;
        return sentence_make("%s%s%s", decoder.instruction.mnemonic,
                             decoder.instruction.op_str[0] != '\0' ? " " : "",
                             decoder.instruction.op_str);
}

#else

char *decoder_describe(int fd, uint64_t offset) {
        return NULL;
}

#endif

bool decoder_is_in_group(const Decoder *decoder, cs_group_type group) {
        return capstone.group(capstone.handle, &decoder->instruction, group);
}
