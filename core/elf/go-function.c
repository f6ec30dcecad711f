/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What has to be probed to measure a function of Go.
 *
 * - Its ways out are RETs, and jumps to the first instruction of other functions. Go has no code of
 *   a function elsewhere, a jump through an index is always a switch, and a jump to the function's
 *   first instruction comes when its stack has grown: it is the same call.
 * - So its start is behind what looks for room on the stack.
 * - A goroutine leaves its thread in two ways only: by runtime.mcall(), in which it waits, ends, is
 *   stopped for others, or goes back to where a panic is recovered; and where the compiler's look
 *   for room has stopped it for others, in runtime.schedule(). Both then run on the goroutine of
 *   the scheduler, which r14 shows.
 *
 * Refused: the runtime itself, whose functions change stacks and need not return; and Go before
 * 1.18, which may not have the goroutine in r14.
 */

#include "elf/go-function.h"

#include <string.h>

#include "elf/go-code.h"
#include "elf/internal.h"

typedef struct Search {
        const ElfFile *elf;
        FunctionCode code;
        FunctionExits exits;
        const char *reason;
} Search;

static int refuse(Search *search, const char *reason) {
        search->reason = reason;
        return -EOPNOTSUPP;
}

bool go_function_is_at(const ElfFile *elf, uint64_t address) {
        SymbolFunction function;

        return go_table_function_at(&elf->go, address, &function) && function.address == address;
}

static bool is_of_runtime(const char *name) {
        static const char *const packages[] = { "runtime.", "runtime/internal/",
                                                "internal/runtime/" };

        for (size_t i = 0; i < ELEMENTSOF(packages); i++)
                if (strncmp(name, packages[i], strlen(packages[i])) == 0)
                        return true;
        return false;
}

static int add_exit(Search *search, uint64_t address) {
        FunctionExits *exits = &search->exits;
        uint64_t *offsets;
        GElf_Phdr phdr;

        if (exits->n == FUNCTION_EXITS_MAX)
                return refuse(search, "has too many ways out");
        if (!elf_file_find_code(search->elf, address, false, &phdr))
                return refuse(search, "does not lie in the file where Go's table says");
        offsets = reallocarray(exits->offsets, exits->n + 1, sizeof(*offsets));
        if (!offsets)
                return -ENOMEM;
        exits->offsets = offsets;
        exits->offsets[exits->n++] = segment_offset(&phdr, address);
        return 0;
}

static int judge_jump(Search *search, const Leave *leave) {
        int r = 0;

        if (leave->target == search->code.start)
                return 0;
        if (!go_function_is_at(search->elf, leave->target))
                return refuse(search, "jumps out of itself, but to no function");
        if (!search->exits.successor)
                r = elf_file_name_function(search->elf, leave->target, &search->exits.successor);
        return r < 0 ? r : add_exit(search, leave->address);
}

static int judge_leave(Search *search, const Leave *leave) {
        uint64_t first;

        switch (leave->kind) {
        case LEAVE_RETURN:
                search->exits.n_returns++;
                return add_exit(search, leave->address);
        case LEAVE_JUMP:
                return judge_jump(search, leave);
        case LEAVE_BRANCH:
                return refuse(search, "jumps out of itself, or to its first instruction, "
                                      "conditionally");
        case LEAVE_TABLE:
                if (elf_file_read_word(search->elf, leave->target, &first) < 0 ||
                    !function_code_has(&search->code, first))
                        return refuse(search, "jumps through a table that is not its own");
                return 0;
        case LEAVE_POINTER:
                if (!leave->is_indexed)
                        return refuse(search, "jumps to places that are known only at run time");
                return 0;
        case LEAVE_SWITCH:
                return 0;
        }
        return 0;
}

/* The code of a function, which is the caller's. */
static int read_code(Search *search, const SymbolFunction *function, uint8_t **ret) {
        int r = elf_file_read_code(search->elf, function->address, function->size, ret);

        return r < 0 && r != -ENOMEM
                       ? refuse(search, "does not lie in the file where Go's table says")
                       : r;
}

static bool comes_back(const FunctionCode *code) {
        for (size_t i = 0; i < code->n_leaves; i++)
                if (code->leaves[i].kind == LEAVE_JUMP && code->leaves[i].target == code->start)
                        return true;
        return false;
}

static int choose_start(Search *search, const uint8_t *bytes, const SymbolFunction *function) {
        GoPrologue prologue = { .body = function->address };
        FunctionExits *exits = &search->exits;
        GElf_Phdr phdr;
        int r;

        r = go_code_read_prologue(bytes, function->size, function->address, &prologue,
                                  &search->reason);
        if (r < 0)
                return r;
        if (r == 0 && comes_back(&search->code))
                return refuse(search, "comes back to its first instruction, and not for more stack "
                                      "as Go's functions do");
        if (!elf_file_find_code(search->elf, prologue.body, false, &phdr))
                return refuse(search, "does not lie in the file where Go's table says");
        exits->start = segment_offset(&phdr, prologue.body);
        for (size_t i = 0; i < exits->n; i++)
                if (exits->offsets[i] == exits->start)
                        return refuse(search, "consists only of its way out, so that a window "
                                              "would end where it begins");
        return 0;
}

static int search_function(Search *search, const SymbolFunction *function) {
        _cleanup_free_ uint8_t *bytes = NULL;
        int r;

        r = read_code(search, function, &bytes);
        if (r >= 0)
                r = function_code_read(bytes, function->size, function->address, &search->code,
                                       &search->reason);
        if (r < 0)
                return r;
        if (search->code.runs_out)
                return refuse(search, "runs on into the code after it");
        r = go_code_keeps_goroutine(bytes, function->size, function->address, &search->reason);
        if (r < 0)
                return r;
        if (r == 0)
                return refuse(search, "puts something else into the register in which Go has the "
                                      "goroutine");
        for (size_t i = 0; i < search->code.n_leaves && r >= 0; i++)
                r = judge_leave(search, &search->code.leaves[i]);
        if (r >= 0 && search->exits.n == 0)
                r = refuse(search, "never returns");
        return r < 0 ? r : choose_start(search, bytes, function);
}

/* The one function of that name, and its code, which is the caller's. */
static int find_runtime(Search *search, const char *name, SymbolFunction *ret, uint8_t **ret_code) {
        const SymbolName wanted = { .name = name, .length = strlen(name) };
        SymbolMatch match = {};

        go_table_find(&search->elf->go, &wanted, &match);
        if (match.n_places != 1 || !go_table_function_at(&search->elf->go, match.places[0], ret))
                return refuse(search, "is of a version of Go that tlobd does not know");
        return read_code(search, ret, ret_code);
}

static int add_switch(Search *search, uint64_t address) {
        int r = add_exit(search, address);

        if (r >= 0)
                search->exits.n_switches++;
        return r;
}

static int add_mcall(Search *search) {
        _cleanup_free_ uint8_t *code = NULL;
        SymbolFunction function;
        uint64_t place;
        int r;

        r = find_runtime(search, "runtime.mcall", &function, &code);
        if (r >= 0)
                r = go_code_find_switch(code, function.size, function.address, &place,
                                        &search->reason);
        if (r < 0)
                return r;
        return r > 0 ? add_switch(search, place)
                     : refuse(search, "is of a version of Go that tlobd does not know");
}

/* On its jump, which is the cheaper place. */
static int add_schedule(Search *search) {
        _cleanup_free_ uint8_t *code = NULL;
        SymbolFunction function;
        GoPrologue prologue;
        int r;

        r = find_runtime(search, "runtime.schedule", &function, &code);
        if (r >= 0)
                r = go_code_read_prologue(code, function.size, function.address, &prologue,
                                          &search->reason);
        if (r < 0)
                return r;
        return add_switch(search, r > 0 ? prologue.branch : function.address);
}

static int compare_offsets(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return x < y ? -1 : x > y;
}

static int search_all(Search *search, uint64_t address) {
        FunctionExits *exits = &search->exits;
        SymbolFunction function;
        int r;

        if (!go_table_function_at(&search->elf->go, address, &function))
                return refuse(search, "is not in Go's table");
        if (is_of_runtime(function.name))
                return refuse(search, "is a part of Go's runtime, which changes stacks");
        if (!search->elf->go.is_relative)
                return refuse(search, "was compiled by Go before 1.18");
        r = search_function(search, &function);
        if (r >= 0)
                r = add_mcall(search);
        if (r >= 0)
                r = add_schedule(search);
        if (r < 0)
                return r;
        qsort(exits->offsets, exits->n, sizeof(*exits->offsets), compare_offsets);
        return free_and_strdup(&exits->several,
                               "is in Go, whose goroutines move from thread to thread");
}

int go_function_find_exits(const ElfFile *elf, uint64_t address, FunctionExits *ret,
                           const char **ret_reason) {
        Search search = { .elf = elf };
        int r;

        r = search_all(&search, address);
        if (r == -EOPNOTSUPP)
                *ret_reason = search.reason;
        if (r >= 0) {
                *ret = search.exits;
                search.exits = (FunctionExits) {};
        }
        function_code_done(&search.code);
        function_exits_done(&search.exits);
        return r;
}
