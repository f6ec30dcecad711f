/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The ways out of a function: its RETs, and the jumps with which it becomes another function (tail
 * calls). They take the place of a return probe, which replaces the return address on the stack and
 * so ends programs that unwind: C++, Rust, pthread_exit(), coroutines, handlers on another stack.
 *
 * A RET that is found in vain does no harm: a stop counts only with the stack pointer of the
 * window's start. So does a jump with a frame still on the stack, which can be none of the ways
 * out. What must not happen is to miss one, or to take a jump for one that stays inside. Hence:
 *
 * - Which jumps are tail calls tells .eh_frame: at one, the return address is on top of the stack.
 *   All others stay inside the function, in parts of it that lie elsewhere ("f.cold", "f.part.0");
 *   these are read too.
 * - A conditional jump to elsewhere cannot be a stop, because a probe on it is hit also when it
 *   does not jump. The code there is read as a part of the function instead.
 * - A jump to a place that is known only when it runs is a switch, if it looks like what compilers
 *   make of one or if the frame is still there. Else it is a tail call by pointer, unless anything
 *   points into the function: then it may as well be a "goto *label", and the function is refused.
 *
 * Exceptions and longjmp() leave a function by no instruction of its own; nothing here sees them.
 */

#include "elf/function-exits.h"

#include <stdbool.h>
#include <string.h>

#include "base/mangled-name.h"
#include "elf/function-code.h"
#include "elf/go-function.h"
#include "elf/internal.h"
#include "elf/section.h"
#include "elf/unwind.h"

#define PARTS_MAX 32

typedef struct Search {
        const ElfFile *elf;
        FunctionCode parts[PARTS_MAX]; /* the function first */
        size_t n_parts;
        char *name; /* of the function, NULL if not known */
        FunctionExits exits;
        bool has_pointer_jump;
        RefusalKind kind;
        const char *reason;
} Search;

void function_refusal_done(FunctionRefusal *refusal) {
        free(refusal->successor);
        *refusal = (FunctionRefusal) {};
}

static int refuse(Search *search, const char *reason) {
        search->reason = reason;
        return -EOPNOTSUPP;
}

static int refuse_as(Search *search, RefusalKind kind, const char *reason) {
        search->kind = kind;
        return refuse(search, reason);
}

static void search_done(Search *search) {
        for (size_t i = 0; i < search->n_parts; i++)
                function_code_done(&search->parts[i]);
        free(search->name);
        function_exits_done(&search->exits);
}

static const FunctionCode *find_part(const Search *search, uint64_t address) {
        for (size_t i = 0; i < search->n_parts; i++)
                if (function_code_has(&search->parts[i], address))
                        return &search->parts[i];
        return NULL;
}

/* Reads what lies around that address. */
static int read_part(Search *search, uint64_t address, const FunctionCode **ret) {
        FunctionCode *part = &search->parts[search->n_parts];
        _cleanup_free_ uint8_t *bytes = NULL;
        uint64_t start, size;
        int r;

        if (search->n_parts == PARTS_MAX)
                return refuse(search, "is spread over too many places");
        if (!elf_file_extent_at(search->elf, address, &start, &size))
                return refuse(search, "jumps to code whose end is not known");
        r = elf_file_read_code(search->elf, start, size, &bytes);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return refuse(search, "does not lie in the file where its symbol says");
        r = function_code_read(bytes, size, start, part, &search->reason);
        if (r < 0)
                return r;
        search->n_parts++;
        if (part->runs_out)
                return refuse(search, "runs on into the code after it");
        *ret = part;
        return 0;
}

/* Reads what lies around that address, if that is not done yet. An instruction must begin there. */
static int search_add_part(Search *search, uint64_t address) {
        const FunctionCode *part = find_part(search, address);
        int r;

        if (!part) {
                r = read_part(search, address, &part);
                if (r < 0)
                        return r;
        }
        if (!part->begins[address - part->start])
                return refuse(search, "jumps into the middle of an instruction");
        return 0;
}

static int search_add_exit(Search *search, uint64_t address) {
        const FunctionCode *part = find_part(search, address);
        FunctionExits *exits = &search->exits;
        uint64_t *offsets, start, size;
        GElf_Phdr phdr;

        if (exits->n == FUNCTION_EXITS_MAX)
                return refuse(search, "has too many ways out");
        /* Then nothing tells in which of them this is an instruction. */
        if (!part || !elf_file_extent_at(search->elf, address, &start, &size) ||
            start != part->start)
                return refuse(search, "overlaps another function, according to its symbols");
        if (!elf_file_find_code(search->elf, address, false, &phdr))
                return refuse(search, "does not lie in the file where its symbol says");
        offsets = reallocarray(exits->offsets, exits->n + 1, sizeof(*offsets));
        if (!offsets)
                return -ENOMEM;
        exits->offsets = offsets;
        exits->offsets[exits->n++] = segment_offset(&phdr, address);
        return 0;
}

/*
 * "f.cold", "f.cold.0": where compilers put what is hardly ever run. "f.part.0": the rest of a f.
 */
static bool name_is_continuation(const char *name, const char *own) {
        size_t n = own ? strlen(own) : 0;

        if (name_is_cold(name))
                return true;
        return n > 0 && strncmp(name, own, n) == 0 && strncmp(name + n, ".part.", 6) == 0;
}

/*
 * Is it one of the linker's stubs, which jump to a function of another file? What .eh_frame has of
 * them all is one function, whose stack nobody can describe.
 */
static bool is_stub(const Search *search, uint64_t address) {
        static const char *const names[] = { ".plt", ".plt.sec", ".plt.got" };
        GElf_Shdr header;

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (section_find_named(search->elf->elf, names[i], &header) &&
                    section_contains(&header, address))
                        return true;
        return false;
}

/* Is the target of a jump without a frame a part of the function, 1, or another function, 0? */
static int target_is_part(const Search *search, uint64_t target, FrameState frame) {
        _cleanup_free_ char *name = NULL;
        uint64_t start = 0, size;
        int r;

        r = elf_file_name_function(search->elf, target, &name);
        if (r < 0)
                return r;
        if (name && name_is_continuation(name, search->name))
                return 1;
        if (elf_file_extent_at(search->elf, target, &start, &size) && start == target)
                return 0;
        /*
         * Stubs of the linker have no name, and are in the middle of what .eh_frame takes for a
         * function.
         */
        return name || frame == FRAME_UNKNOWN;
}

static int add_tail_call(Search *search, const Leave *leave) {
        int r = 0;

        if (!search->exits.successor)
                r = elf_file_name_function(search->elf, leave->target, &search->exits.successor);
        return r < 0 ? r : search_add_exit(search, leave->address);
}

static int judge_jump(Search *search, const Leave *leave, FrameState frame) {
        uint64_t start = search->parts[0].start;
        int r;

        if (leave->target == start && frame == FRAME_NONE)
                return add_tail_call(search, leave);
        if (leave->target == start)
                return refuse(search, "jumps back to its first instruction");
        if (find_part(search, leave->target) || frame == FRAME_OPEN)
                return search_add_part(search, leave->target);
        r = is_stub(search, leave->target) ? 0 : target_is_part(search, leave->target, frame);
        if (r != 0)
                return r < 0 ? r : search_add_part(search, leave->target);
        return add_tail_call(search, leave);
}

static int judge_branch(Search *search, const Leave *leave) {
        if (leave->target == search->parts[0].start)
                return refuse(search,
                              "jumps back to its first instruction conditionally, so that a "
                              "probe there would count each pass of the loop as a call");
        if (!find_part(search, leave->target) && is_stub(search, leave->target))
                return refuse(search, "can be left by a conditional jump to another function");
        return search_add_part(search, leave->target);
}

/* A table of addresses: that of a switch leads into the function. */
static int judge_table(Search *search, const Leave *leave, FrameState frame) {
        uint64_t first;

        if (frame == FRAME_OPEN)
                return 0;
        if (elf_file_read_word(search->elf, leave->target, &first) < 0)
                return refuse(search, "jumps through a table that is not in the file");
        if (find_part(search, first))
                return 0;
        return search_add_exit(search, leave->address);
}

static int judge_pointer(Search *search, const Leave *leave, FrameState frame) {
        if (frame == FRAME_OPEN)
                return 0;
        if (frame == FRAME_UNKNOWN)
                return refuse(search, "jumps to places that are known only at run time, and has no "
                                      "unwind information that tells which of them are ways out");
        search->has_pointer_jump = true;
        return search_add_exit(search, leave->address);
}

static int judge_leave(Search *search, const Leave *leave, FrameState frame) {
        switch (leave->kind) {
        case LEAVE_RETURN:
                search->exits.n_returns++;
                return search_add_exit(search, leave->address);
        case LEAVE_JUMP:
                return judge_jump(search, leave, frame);
        case LEAVE_BRANCH:
                return judge_branch(search, leave);
        case LEAVE_TABLE:
                return judge_table(search, leave, frame);
        case LEAVE_POINTER:
                return judge_pointer(search, leave, frame);
        case LEAVE_SWITCH:
                return 0;
        }
        return 0;
}

static int judge_part(Search *search, const FunctionCode *part) {
        _cleanup_free_ uint64_t *addresses = NULL;
        _cleanup_free_ Frame *frames = NULL;
        int r = 0;

        addresses = calloc(part->n_leaves + 1, sizeof(*addresses));
        frames = calloc(part->n_leaves + 1, sizeof(*frames));
        if (!addresses || !frames)
                return -ENOMEM;
        for (size_t i = 0; i < part->n_leaves; i++)
                addresses[i] = part->leaves[i].address;
        unwind_frames_at(search->elf->elf, addresses, part->n_leaves, frames);
        for (size_t i = 0; i < part->n_leaves && r >= 0; i++)
                r = judge_leave(search, &part->leaves[i], frames[i].state);
        return r;
}

/* Could a jump by pointer without a frame stay in the function? */
static bool search_is_pointed_into(const Search *search) {
        for (size_t i = 0; i < search->n_parts; i++) {
                const FunctionCode *part = &search->parts[i];

                if (part->takes_inner_address || elf_file_points_into(search->elf, part))
                        return true;
        }
        return false;
}

static int compare_offsets(const void *a, const void *b) {
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return x < y ? -1 : x > y;
}

static const char *why_several(const Search *search) {
        if (search->exits.n > search->exits.n_returns)
                return "can be left by a jump";
        if (search->exits.n_returns != 1)
                return "returns at several places";
        if (search->parts[0].calls_itself)
                return "calls itself";
        if (search->n_parts > 1)
                return "lies in several places";
        return NULL;
}

/* What jumps from one part of the function into another. */
static void reach_parts(Search *search) {
        for (size_t i = 0; i < search->n_parts; i++)
                for (size_t j = 0; j < search->parts[i].n_leaves; j++) {
                        uint64_t target = search->parts[i].leaves[j].target;

                        for (size_t k = 0; k < search->n_parts; k++)
                                if (function_code_has(&search->parts[k], target))
                                        function_code_reach(&search->parts[k], target);
                }
}

/* One for each way out; fewer than there are if a way out has none. */
static size_t collect_guards(const Search *search, uint64_t *addresses) {
        size_t n = 0;

        for (size_t i = 0; i < search->n_parts; i++) {
                const FunctionCode *part = &search->parts[i];

                for (size_t j = 0; j < part->n_leaves; j++)
                        if (part->leaves[j].guard && n < search->exits.n)
                                addresses[n++] = part->leaves[j].guard;
        }
        return n;
}

/* Is the stack as deep at all of them? */
static bool find_depth(const Search *search, const uint64_t *addresses, Frame *frames) {
        size_t n = search->exits.n;

        unwind_frames_at(search->elf->elf, addresses, n, frames);
        for (size_t i = 0; i < n; i++)
                if (frames[i].depth == 0 || frames[i].depth > FUNCTION_DEPTH_MAX ||
                    frames[i].depth != frames[0].depth ||
                    frames[i].is_of_frame_pointer != frames[0].is_of_frame_pointer)
                        return false;
        return true;
}

/*
 * A probe on a branch costs a fraction of one on a return, on most kernels (elf/probe-kind.h).
 * Where a look at the guard of the stack is before each return, and nothing else gets to any, the
 * ways out are those: for all of them or for none, as the depth of the stack there is needed.
 */
static int use_guards(Search *search) {
        FunctionExits *exits = &search->exits;
        _cleanup_free_ uint64_t *addresses = NULL;
        _cleanup_free_ Frame *frames = NULL;
        GElf_Phdr phdr;

        if (exits->n_returns < exits->n)
                return 0;
        addresses = calloc(exits->n, sizeof(*addresses));
        frames = calloc(exits->n, sizeof(*frames));
        if (!addresses || !frames)
                return -ENOMEM;
        reach_parts(search);
        if (collect_guards(search, addresses) < exits->n || !find_depth(search, addresses, frames))
                return 0;
        for (size_t i = 0; i < exits->n; i++) {
                if (!elf_file_find_code(search->elf, addresses[i], false, &phdr))
                        return 0;
                addresses[i] = segment_offset(&phdr, addresses[i]);
        }
        memcpy(exits->offsets, addresses, exits->n * sizeof(*addresses));
        exits->depth = (uint32_t) frames[0].depth;
        exits->depth_of_frame_pointer = frames[0].is_of_frame_pointer;
        return 0;
}

static bool is_exit(const FunctionExits *exits, uint64_t offset) {
        for (size_t i = 0; i < exits->n; i++)
                if (exits->offsets[i] == offset)
                        return true;
        return false;
}

/* Its first instruction is a way out, behind which there can be no other. */
static int refuse_only_exit(Search *search) {
        const char *successor = search->exits.successor;

        if (search->exits.n_returns > 0)
                return refuse_as(search, REFUSED_RETURN,
                                 "consists only of its return, so that a window would end where it "
                                 "begins");
        if (successor && search->name && streq(successor, search->name))
                return refuse_as(search, REFUSED_NO_EXIT, "never returns");
        return refuse_as(search, REFUSED_JUMP,
                         "consists only of a jump to another function, so that a window would end "
                         "where it begins");
}

/* Past its first instruction, unless the function comes there again, or leaves there. */
static int choose_start(Search *search, uint64_t entry) {
        FunctionExits *exits = &search->exits;

        exits->start = elf_file_place_entry(search->elf, entry);
        if (exits->start != entry &&
            (search->parts[0].jumps_to_second || is_exit(exits, exits->start)))
                exits->start = entry;
        return is_exit(exits, exits->start) ? refuse_only_exit(search) : 0;
}

static int search_all(Search *search, uint64_t address, uint64_t entry) {
        FunctionExits *exits = &search->exits;
        int r;

        r = elf_file_name_function(search->elf, address, &search->name);
        if (r < 0)
                return r;
        r = search_add_part(search, address);
        if (r < 0)
                return r;
        if (search->parts[0].start != address)
                return refuse(search, "begins in the middle of another function");
        for (size_t i = 0; i < search->n_parts; i++) {
                /* The list of parts grows meanwhile, and stays where it is. */
                r = judge_part(search, &search->parts[i]);
                if (r < 0)
                        return r;
        }
        if (exits->n == 0)
                return refuse_as(search, REFUSED_NO_EXIT, "never returns");
        if (search->has_pointer_jump && search_is_pointed_into(search))
                return refuse(search,
                              "jumps to places that are known only at run time and may be inside "
                              "or outside of it");
        r = use_guards(search);
        if (r < 0)
                return r;
        qsort(exits->offsets, exits->n, sizeof(*exits->offsets), compare_offsets);
        r = free_and_strdup(&exits->several, why_several(search));
        if (r < 0)
                return r;
        return choose_start(search, entry);
}

static int find_exits(const ElfFile *elf, uint64_t entry, FunctionExits *ret,
                      FunctionRefusal *ret_refusal) {
        Search search = { .elf = elf };
        uint64_t start, size, address;
        GElf_Phdr phdr;
        int r;

        if (!elf_file_find_code(elf, entry, true, &phdr))
                r = refuse(&search, "does not lie in the file");
        else {
                address = segment_address(&phdr, entry);
                if (!elf_file_extent_at(elf, address, &start, &size))
                        r = refuse(&search,
                                   "has neither a symbol nor unwind information that tells "
                                   "where it ends");
                else
                        r = search_all(&search, address, entry);
        }
        if (r == -EOPNOTSUPP) {
                *ret_refusal = (FunctionRefusal) { .kind = search.kind, .reason = search.reason };
                if (search.kind == REFUSED_JUMP)
                        ret_refusal->successor = TAKE_PTR(search.exits.successor);
        }
        if (r >= 0) {
                *ret = search.exits;
                search.exits = (FunctionExits) {};
        }
        search_done(&search);
        return r;
}

int function_judge_exits(const ElfFile *elf, uint64_t entry, FunctionExits *ret,
                         FunctionRefusal *ret_refusal) {
        const char *reason = NULL;
        GElf_Phdr phdr;
        int r;

        if (!elf_file_find_code(elf, entry, true, &phdr) ||
            !go_function_is_at(elf, segment_address(&phdr, entry)))
                return find_exits(elf, entry, ret, ret_refusal);
        r = go_function_find_exits(elf, segment_address(&phdr, entry), ret, &reason);
        if (r == -EOPNOTSUPP)
                *ret_refusal = (FunctionRefusal) { .reason = reason };
        return r;
}

int function_find_exits(const ElfFile *elf, uint64_t entry, FunctionExits *ret,
                        const char **ret_reason) {
        _cleanup_(function_refusal_done) FunctionRefusal refusal = {};
        int r;

        r = function_judge_exits(elf, entry, ret, &refusal);
        if (r == -EOPNOTSUPP)
                *ret_reason = refusal.reason;
        return r;
}

int function_find_entry(const ElfFile *elf, uint64_t offset, uint64_t *ret_entry) {
        uint64_t start, size;
        GElf_Phdr phdr;

        if (!elf_file_find_code(elf, offset, true, &phdr) ||
            !elf_file_extent_at(elf, segment_address(&phdr, offset), &start, &size) ||
            start < phdr.p_vaddr)
                return -ESRCH;
        *ret_entry = segment_offset(&phdr, start);
        return 0;
}

/* Of the function there, at that address. As function_check_boundary(). */
static int check_boundary_in(const ElfFile *elf, uint64_t start, uint64_t size, uint64_t address,
                             uint64_t *ret_begin, const char **ret_reason) {
        _cleanup_free_ uint8_t *code = NULL;
        size_t begin = 0;
        GElf_Phdr phdr;
        int r;

        r = elf_file_read_code(elf, start, size, &code);
        if (r < 0)
                return r == -ENOMEM ? r : -ESRCH;
        r = function_code_is_boundary(code, size, (size_t) (address - start), &begin, ret_reason);
        if (r == 0 && elf_file_find_code(elf, start + begin, false, &phdr))
                *ret_begin = segment_offset(&phdr, start + begin);
        return r;
}

/*
 * Where a symbol is, an instruction begins, unless unwind information has a function around it in
 * which none does: then the symbol lies. Returns 1, 0 or -ENOMEM.
 */
static int check_symbol(const ElfFile *elf, uint64_t address, uint64_t *ret_begin) {
        const char *reason = NULL;
        uint64_t start, size;
        int r;

        if (!unwind_extent_at(elf->elf, address, &start, &size) || start >= address ||
            address - start >= size)
                return 1;
        r = check_boundary_in(elf, start, size, address, ret_begin, &reason);
        return r == 0 || r == -ENOMEM ? r : 1;
}

int function_check_boundary(const ElfFile *elf, uint64_t offset, uint64_t *ret_begin,
                            const char **ret_reason) {
        uint64_t start, size, address;
        GElf_Phdr phdr;

        if (!elf_file_find_code(elf, offset, true, &phdr))
                return -ESRCH;
        address = segment_address(&phdr, offset);
        if (!elf_file_extent_at(elf, address, &start, &size))
                return -ESRCH;
        return address == start
                       ? check_symbol(elf, address, ret_begin)
                       : check_boundary_in(elf, start, size, address, ret_begin, ret_reason);
}

bool function_is_entry(const ElfFile *elf, uint64_t offset, uint64_t *ret_entry) {
        return function_find_entry(elf, offset, ret_entry) >= 0 &&
               (offset == *ret_entry || offset == elf_file_place_entry(elf, *ret_entry));
}
