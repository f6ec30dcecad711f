/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * DWARF has an entry for each inlined copy, which refers to the entry of its function. The function
 * has such an entry in each compilation unit that inlines it: they are known to be the same by
 * their linkage names, or by their plain names if these are external.
 *
 * All entries are looked at twice: once for the function's own entry, once for the copies. Of a
 * large program that takes longer than anybody wants to wait, so the count may be incomplete. Where
 * units are in files of their own (-gsplit-dwarf), it is, too. What several files have in common
 * (dwz -m) is in another file, in which nothing else is looked at than what the entries here refer
 * to. It is there once only: where that file is missing, the offset there still tells enough of a
 * function that is in there. Of other functions the count is incomplete then, if copies of any are
 * in there.
 *
 * A function of which there are only copies has no symbol. Its own entry says so, and has its
 * linkage name, if that is external; else its plain name is there, or in another entry, its
 * declaration, that is below the entries of its namespaces.
 */

#include "elf/inlined.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <time.h>

#include "base/clock.h"
#include "elf/declared-name.h"
#include "elf/dwarf-image.h"
#include "elf/function-exits.h"
#include "elf/internal.h"

#define DEPTH_MAX  128
#define STEPS      4096 /* without a look at the clock */
#define KNOWN_SIZE 4096
#define DECLARED_N 16 /* declarations that are remembered */

typedef struct Search {
        uint64_t address; /* of the function */
        uint64_t deadline_ns;
        uint64_t n_steps;
        bool found;
        const void *origin; /* the function's abstract entry, or its own: where it is in memory */
        Dwarf_Off shared;   /* where it is in the common file, if that is missing */
        bool is_shared;     /* it is there */
        bool has_common;    /* that file is open */
        const char *name;   /* that copies in other units have, too; NULL: none have */
        bool is_linkage;    /* it is a linkage name */
        InlinedCopies copies;
        struct {
                const void *origin;
                bool is_known, is_ours;
        } known[KNOWN_SIZE]; /* what was found out, by a part of the address */
        const char *wanted;  /* the name, if it is a name that is looked for */
        size_t wanted_length;
        size_t path_length;       /* of it, what comes before the arguments */
        const Dwarf_Die *parents; /* of the entry that is visited, the outermost first */
        size_t n_parents;
        const void *declared[DECLARED_N]; /* the last entries with the wanted path */
        size_t n_declared;                /* all there were */
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
                search->parents = path;
                search->n_parents = depth;
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

static const char *linkage_name(Dwarf_Die *die) {
        return string_of(die, DW_AT_linkage_name) ?: string_of(die, DW_AT_MIPS_linkage_name);
}

static void take_name(Search *search, Dwarf_Die *die) {
        search->name = linkage_name(die);
        search->is_linkage = search->name;
        if (search->name || !is_external(die))
                return;
        search->name = string_of(die, DW_AT_name);
        /* It has one, in the common file: other units may have copies by that. */
        if (!search->name)
                search->copies.is_complete = false;
}

/*
 * The offset that an attribute refers to in the common file, if that is not open: as dwz writes it,
 * or as DWARF 5 has it.
 */
static bool shared_offset(const Search *search, const Dwarf_Attribute *value, Dwarf_Die *die,
                          Dwarf_Off *ret) {
        uint8_t address_size, offset_size = 0;
        uint32_t narrow;
        Dwarf_Die unit;

        if (value->form == DW_FORM_ref_sup4)
                offset_size = sizeof(narrow);
        else if (value->form == DW_FORM_ref_sup8)
                offset_size = sizeof(*ret);
        else if (value->form != DW_FORM_GNU_ref_alt || search->has_common ||
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
        search->origin = die->addr;
        if (!dwarf_attr(die, DW_AT_abstract_origin, &value)) {
                take_name(search, die);
                return 0;
        }
        search->is_shared = shared_offset(search, &value, die, &search->shared);
        if (search->is_shared)
                return 0;
        if (dwarf_formref_die(&value, &origin))
                search->origin = origin.addr;
        take_name(search, die);
        return 0;
}

static bool is_ours(Search *search, Dwarf_Die *origin) {
        const char *name;

        if (origin->addr == search->origin)
                return true;
        if (!search->name)
                return false;
        if (!search->is_linkage)
                name = is_external(origin) ? string_of(origin, DW_AT_name) : NULL;
        else
                name = linkage_name(origin);
        return name && streq(name, search->name);
}

/* Asks once only, as long as there is room. */
static bool is_as_known(Search *search, Dwarf_Die *origin, bool (*ask)(Search *, Dwarf_Die *)) {
        uintptr_t address = (uintptr_t) origin->addr;
        size_t i = (address ^ address / KNOWN_SIZE) % KNOWN_SIZE;

        if (!search->known[i].is_known || search->known[i].origin != origin->addr) {
                search->known[i].is_known = true;
                search->known[i].origin = origin->addr;
                search->known[i].is_ours = ask(search, origin);
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
        if (shared_offset(search, &value, die, &shared)) {
                if (search->is_shared)
                        search->copies.n += shared == search->shared;
                else
                        search->copies.is_complete = false;
        } else if (!dwarf_formref_die(&value, &origin))
                search->copies.is_complete = false;
        else
                search->copies.n += is_as_known(search, &origin, is_ours);
        return 1;
}

static bool is_inlined(Dwarf_Die *die) {
        Dwarf_Attribute value;
        Dwarf_Word how;

        return dwarf_formudata(dwarf_attr(die, DW_AT_inline, &value), &how) == 0 &&
               (how == DW_INL_inlined || how == DW_INL_declared_inlined);
}

/* Takes the name of an entry off the end of a path. False: it is not there. */
static bool take_end(const char *path, size_t *n, const char *name) {
        size_t length = strnlen(name, *n + 1);

        if (length > *n || memcmp(path + *n - length, name, length) != 0)
                return false;
        *n -= length;
        return true;
}

static bool is_scope(Dwarf_Die *die) {
        int tag = dwarf_tag(die);

        return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
               tag == DW_TAG_structure_type || tag == DW_TAG_union_type;
}

/* Has the entry that is visited the wanted path, by its own name and those of its parents? */
static bool has_path(const Search *search, Dwarf_Die *die) {
        size_t n = search->path_length;
        Dwarf_Attribute value;
        const char *name;

        name = dwarf_formstring(dwarf_attr(die, DW_AT_name, &value));
        if (!name || !take_end(search->wanted, &n, name))
                return false;
        for (size_t i = search->n_parents; i > 0; i--) {
                Dwarf_Die parent = search->parents[i - 1];

                if (!is_scope(&parent))
                        continue;
                name = dwarf_formstring(dwarf_attr(&parent, DW_AT_name, &value));
                if (!take_end(search->wanted, &n, "::") ||
                    !take_end(search->wanted, &n, name ?: "(anonymous namespace)"))
                        return false;
        }
        return n == 0;
}

/* What is declared is remembered. */
static void note_declared(Search *search, Dwarf_Die *die) {
        if (has_path(search, die))
                search->declared[search->n_declared++ % DECLARED_N] = die->addr;
}

/* Where it is declared, if that is not the entry itself. */
static Dwarf_Die declaration_of(Dwarf_Die *die) {
        Dwarf_Attribute value;
        Dwarf_Die declaration;

        return dwarf_formref_die(dwarf_attr(die, DW_AT_specification, &value), &declaration)
                       ? declaration
                       : *die;
}

static bool is_declared(const Search *search, Dwarf_Die *die) {
        const void *entry = declaration_of(die).addr;

        for (size_t i = 0; i < search->n_declared && i < DECLARED_N; i++)
                if (search->declared[i] == entry)
                        return true;
        return false;
}

static int look_for_declared(Search *search, Dwarf_Die *die) {
        if (dwarf_tag(die) != DW_TAG_subprogram)
                return 1;
        note_declared(search, die);
        return 2;
}

/* Is that what the function of a copy is called? Its parents are not known yet. */
static bool is_wanted(Search *search, Dwarf_Die *origin) {
        Dwarf_Die declaration = declaration_of(origin), unit;
        const char *name = linkage_name(origin);
        size_t n = search->path_length;

        /* That can take longer than a step: a look at the clock is next. */
        search->n_steps = 0;
        if (name)
                return declared_name_is_of(search->wanted, search->wanted_length, name);
        name = string_of(origin, DW_AT_name);
        if (!name || !take_end(search->wanted, &n, name) ||
            !dwarf_diecu(&declaration, &unit, NULL, NULL))
                return false;
        (void) walk(search, &unit, look_for_declared);
        return is_declared(search, origin);
}

/* The common file has functions that are in other programs: those of which a copy is here count. */
static int find_copy(Search *search, Dwarf_Die *die) {
        Dwarf_Attribute value;
        Dwarf_Die origin;

        if (dwarf_formref_die(dwarf_attr(die, DW_AT_abstract_origin, &value), &origin))
                search->found = is_as_known(search, &origin, is_wanted);
        return search->found ? 0 : 1;
}

static int find_name(Search *search, Dwarf_Die *die) {
        const char *linkage;

        if (dwarf_tag(die) == DW_TAG_inlined_subroutine && search->has_common)
                return find_copy(search, die);
        if (dwarf_tag(die) != DW_TAG_subprogram)
                return 1;
        note_declared(search, die);
        if (!is_inlined(die))
                return search->has_common ? 1 : 2;
        linkage = linkage_name(die);
        if (linkage)
                search->found = declared_name_is_of(search->wanted, search->wanted_length, linkage);
        else
                search->found = is_declared(search, die);
        /* That can take longer than a step: a look at the clock is next. */
        search->n_steps = 0;
        return search->found ? 0 : 2;
}

static void find_in_units(Search *search, Dwarf *dwarf) {
        (void) walk_units(search, dwarf, find_name);
}

static void count_in_units(Search *search, Dwarf *dwarf) {
        search->copies.is_complete = true;
        if (walk_units(search, dwarf, find_function) == 0 && !search->found)
                search->copies = (InlinedCopies) { .is_known = true };
        if (search->found) {
                search->copies.is_known = true;
                if (walk_units(search, dwarf, count_copy) == 0)
                        search->copies.is_complete = false;
        }
}

static int open_dwarf(Elf *elf, size_t size_max, DwarfImage *ret_image, Dwarf **ret) {
        static const char *const names[] = { ".debug_info", ".debug_abbrev", ".debug_str",
                                             ".debug_addr", ".debug_str_offsets" };
        int r;

        r = dwarf_image_make(elf, names, ELEMENTSOF(names), size_max, ret_image);
        if (r < 0)
                return r;
        *ret = dwarf_begin_elf(ret_image->elf, DWARF_C_READ, NULL);
        return *ret ? 0 : -EBADMSG;
}

static int read_dwarf(Search *search, ElfFile *elf, void (*use)(Search *search, Dwarf *dwarf)) {
        _cleanup_(dwarf_image_done) DwarfImage image = {}, common_image = {};
        Dwarf *dwarf = NULL, *common = NULL;
        const ElfFile *file;
        int r;

        r = open_dwarf(elf->elf, DWARF_IMAGE_SIZE_MAX, &image, &dwarf);
        if (r < 0)
                return r;
        file = elf_file_open_common(elf);
        if (file &&
            open_dwarf(file->elf, DWARF_IMAGE_SIZE_MAX - image.size, &common_image, &common) >= 0)
                dwarf_setalt(dwarf, common);
        search->has_common = common;
        use(search, dwarf);
        (void) dwarf_end(dwarf);
        (void) dwarf_end(common);
        return 0;
}

/* That of the file, else that of its debug file. */
static int read_any(Search *search, ElfFile *elf, void (*use)(Search *search, Dwarf *dwarf)) {
        ElfFile *debug;
        int r;

        r = read_dwarf(search, elf, use);
        debug = r == -ENODATA ? elf_file_open_debug(elf) : NULL;
        return debug ? read_dwarf(search, debug, use) : r;
}

bool inlined_name_find(ElfFile *elf, const char *name, size_t length, uint64_t deadline_ns) {
        _cleanup_free_ Search *search = calloc(1, sizeof(*search));
        const char *arguments = memchr(name, '(', length);

        if (!search)
                return false;
        search->wanted = name;
        search->wanted_length = search->path_length = length;
        if (arguments && arguments > name && arguments[-1] != ':')
                search->path_length = (size_t) (arguments - name);
        search->deadline_ns = deadline_ns;
        return read_any(search, elf, find_in_units) >= 0 && search->found;
}

int inlined_copies_count(ElfFile *elf, uint64_t offset, uint64_t deadline_ns, InlinedCopies *ret) {
        _cleanup_free_ Search *search = calloc(1, sizeof(*search));
        uint64_t entry;
        GElf_Phdr phdr;
        int r;

        if (!search)
                return -ENOMEM;
        *ret = (InlinedCopies) {};
        if (function_find_entry(elf, offset, &entry) < 0 ||
            !elf_file_find_code(elf, entry, true, &phdr))
                return 0;
        search->address = segment_address(&phdr, entry);
        search->deadline_ns = deadline_ns;
        r = read_any(search, elf, count_in_units);
        if (r == -ENOMEM)
                return r;
        /* Nobody knows, but there could be some. */
        if (r == -EFBIG)
                search->copies = (InlinedCopies) { .is_known = true };
        *ret = search->copies;
        return 0;
}
