/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "elf/changed-code.h"

#include <string.h>

#include "elf/decoder.h"
#include "elf/probe-kind.h"

#if defined(__x86_64__)

#define BREAKPOINT 0xcc /* int3 */

static size_t size_of_instruction(const uint8_t *code, size_t size) {
        const size_t all = size;
        const char *reason;
        uint64_t address = 0;
        Decoder decoder;

        if (decoder_init(&decoder, &reason) < 0 || !decoder_next(&decoder, &code, &size, &address))
                return 1;
        return all - size;
}

bool code_is_changed(const uint8_t *file, const uint8_t *memory, size_t size) {
        if (memcmp(file, memory, size) == 0 || probe_code_may_become_call(file, size))
                return false;
        if (file[0] != memory[0] && memory[0] != BREAKPOINT)
                return true;
        return memcmp(file + 1, memory + 1, size_of_instruction(file, size) - 1) != 0;
}

#elif defined(__aarch64__)

/* brk, with any number in the rest; the last bytes come first. */
static bool is_breakpoint(const uint8_t *code) {
        return code[3] == 0xd4 && (code[2] & 0xe0) == 0x20;
}

bool code_is_changed(const uint8_t *file, const uint8_t *memory, size_t size) {
        return size >= 4 && memcmp(file, memory, 4) != 0 && !is_breakpoint(memory);
}

#else

bool code_is_changed(const uint8_t *file, const uint8_t *memory, size_t size) {
        return false;
}

#endif
