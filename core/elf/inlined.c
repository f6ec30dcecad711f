/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * DWARF has an entry for each inlined copy, which refers to the entry of its function. The function
 * has such an entry in each compilation unit that inlines it: they are known to be the same by
 * their linkage names, or by their plain names if these are external.
 *
 * All entries are looked at twice: once for the function's own entry, once for the copies. Of a
 * large program that takes longer than anybody wants to wait, so the count may be incomplete. Where
 * units are in files of their own (-gsplit-dwarf), it is, too. What is in the file that several
 * share (dwz -m) is there once only, so its offset there tells enough of a function that is in
 * there, and that file is not opened: where it is says a file that nobody need believe. Of other
 * functions the count is incomplete then, if copies of any are in there.
 */

#include "elf/inlined.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <time.h>

#include "base/clock.h"
#include "elf/dwarf-image.h"
#include "elf/function-exits.h"
#include "elf/internal.h"

#define DEPTH_MAX  128
#define STEPS      4096 /* without a look at the clock */
#define KNOWN_SIZE 4096

typedef struct Search {
        uint64_t address; /* of the function */
        uint64_t deadline_ns;
        uint64_t n_steps;
        bool found;
        Dwarf_Off origin; /* the function's abstract entry, or its own */
        bool is_shared;   /* that is in another file */
        const char *name; /* that copies in other units have, too; NULL: none have */
        bool is_linkage;  /* it is a linkage name */
        InlinedCopies copies;
        struct {
                Dwarf_Off origin;
                bool is_known, is_ours;
        } known[KNOWN_SIZE]; /* what was found out, by a part of the offset */
} Search;

/* Returns 1 to go on, 0 to stop, and 2 to leave out what is below it. */
typedef int (*Visitor)(Search *search, Dwarf_Die *die);

static bool is_late(Search *search) {
        return search->n_steps++ % STEPS == 0 && now_ns() > search->deadline_ns;
}

/* Goes through all below an entry. Returns 1, or 0 when the visitor or the clock says so. */
static int walk(Search *search, Dwarf_Die *top, Visitor visitor) {
        Dwarf_Die path[DEPTH_MAX];
        size_t depth = 0;
        int r;

        if (dwarf_child(top, &path[0]) != 0)
                return 1;
        for (;;) {
                if (is_late(search))
                        return 0;
                r = visitor(search, &path[depth]);
                if (r == 0)
                        return 0;
                if (r == 1 && depth + 1 < DEPTH_MAX &&
                    dwarf_child(&path[depth], &path[depth + 1]) == 0) {
                        depth++;
                        continue;
                }
                for (;; depth--) {
                        if (dwarf_siblingof(&path[depth], &path[depth]) == 0)
                                break;
                        if (depth == 0)
                                return 1;
                }
        }
}

static int walk_units(Search *search, Dwarf *dwarf, Visitor visitor) {
        Dwarf_CU *cu = NULL;
        Dwarf_Die top;
        uint8_t type;

        while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &top, NULL) == 0) {
                if (type == DW_UT_skeleton)
                        search->copies.is_complete = false;
                if (is_late(search) || walk(search, &top, visitor) == 0)
                        return 0;
        }
        return 1;
}

static const char *string_of(Dwarf_Die *die, unsigned attribute) {
        Dwarf_Attribute value;

        return dwarf_formstring(dwarf_attr_integrate(die, attribute, &value));
}

static bool is_external(Dwarf_Die *die) {
        Dwarf_Attribute value;
        bool flag = false;

        return dwarf_formflag(dwarf_attr_integrate(die, DW_AT_external, &value), &flag) == 0 &&
               flag;
}

static void take_name(Search *search, Dwarf_Die *die) {
        search->name =
                string_of(die, DW_AT_linkage_name) ?: string_of(die, DW_AT_MIPS_linkage_name);
        search->is_linkage = search->name;
        if (!search->name && is_external(die))
                search->name = string_of(die, DW_AT_name);
}

/*
 * The offset that an attribute refers to in a file that is shared with others: as dwz writes it, or
 * as DWARF 5 has it.
 */
static bool shared_offset(const Dwarf_Attribute *value, Dwarf_Die *die, Dwarf_Off *ret) {
        uint8_t address_size, offset_size = 0;
        uint32_t narrow;
        Dwarf_Die unit;

        if (value->form == DW_FORM_ref_sup4)
                offset_size = sizeof(narrow);
        else if (value->form == DW_FORM_ref_sup8)
                offset_size = sizeof(*ret);
        else if (value->form != DW_FORM_GNU_ref_alt ||
                 !dwarf_diecu(die, &unit, &address_size, &offset_size))
                return false;
        /* Behind the section there are zeros: see dwarf-image.c. */
        memcpy(&narrow, value->valp, sizeof(narrow));
        *ret = narrow;
        if (offset_size == sizeof(*ret))
                memcpy(ret, value->valp, sizeof(*ret));
        return true;
}

/* Is it the function? */
static int find_function(Search *search, Dwarf_Die *die) {
        Dwarf_Attribute value;
        Dwarf_Addr address;
        Dwarf_Die origin;

        if (dwarf_tag(die) != DW_TAG_subprogram)
                return 1;
        if (dwarf_formaddr(dwarf_attr(die, DW_AT_low_pc, &value), &address) != 0 ||
            address != search->address)
                return 2;
        search->found = true;
        search->origin = dwarf_dieoffset(die);
        if (!dwarf_attr(die, DW_AT_abstract_origin, &value)) {
                take_name(search, die);
                return 0;
        }
        search->is_shared = shared_offset(&value, die, &search->origin);
        if (search->is_shared)
                return 0;
        if (dwarf_formref_die(&value, &origin))
                search->origin = dwarf_dieoffset(&origin);
        take_name(search, die);
        return 0;
}

static bool is_ours(const Search *search, Dwarf_Die *origin) {
        const char *name;

        if (dwarf_dieoffset(origin) == search->origin && !search->is_shared)
                return true;
        if (!search->name)
                return false;
        if (!search->is_linkage)
                name = is_external(origin) ? string_of(origin, DW_AT_name) : NULL;
        else
                name = string_of(origin, DW_AT_linkage_name)
                               ?: string_of(origin, DW_AT_MIPS_linkage_name);
        return name && streq(name, search->name);
}

static bool is_ours_as_known(Search *search, Dwarf_Die *origin) {
        Dwarf_Off offset = dwarf_dieoffset(origin);
        size_t i = (offset ^ offset / KNOWN_SIZE) % KNOWN_SIZE;

        if (!search->known[i].is_known || search->known[i].origin != offset) {
                search->known[i].is_known = true;
                search->known[i].origin = offset;
                search->known[i].is_ours = is_ours(search, origin);
        }
        return search->known[i].is_ours;
}

static int count_copy(Search *search, Dwarf_Die *die) {
        Dwarf_Attribute value;
        Dwarf_Die origin;
        Dwarf_Off shared;

        if (dwarf_tag(die) != DW_TAG_inlined_subroutine ||
            !dwarf_attr(die, DW_AT_abstract_origin, &value))
                return 1;
        /* Of those there, the names are not known. */
        if (shared_offset(&value, die, &shared)) {
                if (search->is_shared)
                        search->copies.n += shared == search->origin;
                else
                        search->copies.is_complete = false;
        } else if (!dwarf_formref_die(&value, &origin))
                search->copies.is_complete = false;
        else
                search->copies.n += is_ours_as_known(search, &origin);
        return 1;
}

static int count(Search *search, Elf *elf) {
        static const char *const names[] = { ".debug_info", ".debug_abbrev", ".debug_str",
                                             ".debug_addr", ".debug_str_offsets" };
        _cleanup_(dwarf_image_done) DwarfImage image = {};
        Dwarf *dwarf;
        int r;

        r = dwarf_image_make(elf, names, ELEMENTSOF(names), &image);
        if (r < 0)
                return r;
        dwarf = dwarf_begin_elf(image.elf, DWARF_C_READ, NULL);
        if (!dwarf)
                return -EBADMSG;
        search->copies.is_complete = true;
        if (walk_units(search, dwarf, find_function) == 0 && !search->found)
                search->copies = (InlinedCopies){ .is_known = true };
        if (search->found) {
                search->copies.is_known = true;
                if (walk_units(search, dwarf, count_copy) == 0)
                        search->copies.is_complete = false;
        }
        (void) dwarf_end(dwarf);
        return 0;
}

int inlined_copies_count(ElfFile *elf, uint64_t offset, uint64_t deadline_ns, InlinedCopies *ret) {
        _cleanup_free_ Search *search = calloc(1, sizeof(*search));
        const ElfFile *debug;
        uint64_t entry;
        GElf_Phdr phdr;
        int r;

        if (!search)
                return -ENOMEM;
        *ret = (InlinedCopies){};
        if (function_find_entry(elf, offset, &entry) < 0 ||
            !elf_file_find_code(elf, entry, true, &phdr))
                return 0;
        search->address = segment_address(&phdr, entry);
        search->deadline_ns = deadline_ns;
        r = count(search, elf->elf);
        debug = r == -ENODATA ? elf_file_open_debug(elf) : NULL;
        if (debug)
                r = count(search, debug->elf);
        if (r == -ENOMEM)
                return r;
        /* Nobody knows, but there could be some. */
        if (r == -EFBIG)
                search->copies = (InlinedCopies){ .is_known = true };
        *ret = search->copies;
        return 0;
}
