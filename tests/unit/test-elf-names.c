/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The names of functions, wherever they are kept: the library of names.c, stripped in several ways
 * by make-names. nm says where they are.
 */

#include <limits.h>

#include "elf/file.h"
#include "elf/functions.h"
#include "elf/inlined.h"
#include "elf/libraries.h"
#include "test.h"

#define DEADLINE UINT64_MAX

/* By make-names, with the same compiler. */
#ifdef __clang__
#define SHARED      "shared4"
#define INLINED_CXX "inlined-cxx"
#else
#define SHARED      "shared4", "shared5", "shared-sup"
#define INLINED_CXX "inlined-cxx", "shared-cxx"
#endif

/* What nm prints for a name: its address, which is its offset in these files. */
static uint64_t ask_nm(const char *name, const char *options) {
        _cleanup_free_ char *command = NULL, *line = NULL;
        unsigned long address = 0;
        size_t size = 0;
        FILE *nm;

        assert_true(asprintf(&command, "nm %s --defined-only %s/full", options, NAMES) > 0);
        nm = popen(command, "re");
        assert_non_null(nm);
        while (getline(&line, &size, nm) > 0) {
                char *end = strpbrk(line, "\n");

                if (end)
                        *end = '\0';
                if (streq(strrchr(line, ' ') + 1, name))
                        assert_int_equal(sscanf(line, "%lx", &address), 1);
        }
        assert_ok(pclose(nm));
        assert_int_not_equal(address, 0);
        return address;
}

static ElfFile *open_variant(const char *variant) {
        bool has_file = streq(variant, "with-debug-file");
        _cleanup_free_ char *path = NULL;
        ElfFile *elf = NULL;

        assert_true(asprintf(&path, "%s/%s", NAMES, has_file ? "stripped" : variant) > 0);
        assert_ok(elf_file_open(path, &elf, NULL));
        elf_file_set_debug_directory(elf, has_file ? NAMES "/debug" : "/nonexistent");
        return elf;
}

static void assert_site(ElfFile *elf, const char *site, uint64_t offset) {
        _cleanup_(elf_site_done) ElfSite found = {};

        assert_ok(elf_file_resolve(elf, site, &found, NULL));
        assert_int_equal(found.offset, offset);
        assert_string_equal(found.function, site);
}

static void assert_no_site(ElfFile *elf, const char *site, int error, const char *words) {
        _cleanup_free_ char *sentence = NULL;
        ElfSite found = {};

        assert_int_equal(elf_file_resolve(elf, site, &found, &sentence), error);
        if (!strstr(sentence, words))
                fail_msg("'%s' has no '%s'.", sentence, words);
        assert_null(found.function);
}

/* What is exported, which no stripping takes away. */
static void assert_exported(ElfFile *elf) {
        assert_site(elf, "exported", ask_nm("exported", ""));
        assert_site(elf, "same_as_exported", ask_nm("exported", ""));
        assert_site(elf, "same_as_*", ask_nm("exported", ""));
        assert_site(elf, "versioned", ask_nm("versioned@@V2", ""));
        assert_site(elf, "versioned@V2", ask_nm("versioned@@V2", "-D"));
        assert_site(elf, "versioned@@V2", ask_nm("versioned@@V2", "-D"));
        assert_site(elf, "versioned@V1", ask_nm("versioned@V1", "-D"));
        assert_site(elf, "exported@V2", ask_nm("exported", ""));
        assert_no_site(elf, "versioned@V3", -ESRCH, "no version 'V3', but: versioned@");
        assert_no_site(elf, "versioned@@V1", -ESRCH, "no default version 'V1', but: versioned@");
        assert_no_site(elf, "exportet@V2", -ESRCH, "near names: exported");
}

static void test_all_names(void **state) {
        static const char *const variants[] = { "full", "by-link/stripped", "next-to/stripped",
                                                "mini", "with-debug-file" };

        for (size_t i = 0; i < ELEMENTSOF(variants); i++) {
                _cleanup_(elf_file_freep) ElfFile *elf = open_variant(variants[i]);

                assert_exported(elf);
                assert_site(elf, "hidden", ask_nm("hidden", ""));
                assert_no_site(elf, "hiden", -ESRCH, "names 12 functions; near names: hidden");
                assert_no_site(elf, "chosen", -EOPNOTSUPP, "'__chosen_*'' lists 2");
                assert_site(elf, "__chosen_fast", ask_nm("__chosen_fast", ""));
        }
}

/* Names of another build, and some that cannot be unpacked, are not used. */
static void test_only_exported_names(void **state) {
        static const struct {
                const char *name;
                const char *words;
        } variants[] = {
                { "stripped", "install its debug symbols, or give" },
                { "other-id/stripped", "/other-id/names.debug are of another build)" },
                { "other-sum/stripped", "/other-sum/names.debug are of another build)" },
                { "bomb", "install its debug symbols, or give" },
                { "cut", "install its debug symbols, or give" },
        };

        for (size_t i = 0; i < ELEMENTSOF(variants); i++) {
                _cleanup_(elf_file_freep) ElfFile *elf = open_variant(variants[i].name);

                assert_exported(elf);
                assert_no_site(elf, "hidden", -ESRCH, "is stripped and names only 6 functions");
                assert_no_site(elf, "hidden", -ESRCH, variants[i].words);
                assert_no_site(elf, "chosen", -EOPNOTSUPP, "install the debug symbols");
        }
}

/* The lowest address that objdump shows for a line of names.c, as a statement. */
static uint64_t ask_objdump(unsigned line) {
        FILE *pipe = popen("objdump --dwarf=decodedline " NAMES "/full", "re");
        _cleanup_free_ char *text = NULL;
        unsigned long lowest = ULONG_MAX;
        size_t size = 0;

        assert_non_null(pipe);
        while (getline(&text, &size, pipe) > 0) {
                unsigned long address;
                unsigned number;

                if (sscanf(text, "%*s %u 0x%lx", &number, &address) == 2 && number == line &&
                    strstr(text, " x\n") && address < lowest)
                        lowest = address;
        }
        assert_ok(pclose(pipe));
        assert_int_not_equal(lowest, ULONG_MAX);
        return lowest;
}

/* The line of names.c that has this text. */
static unsigned line_with(const char *words) {
        _cleanup_free_ char *text = NULL;
        FILE *source = fopen(NAMES_SOURCE, "re");
        size_t size = 0;
        unsigned line;

        assert_non_null(source);
        for (line = 1; getline(&text, &size, source) > 0; line++)
                if (strstr(text, words))
                        break;
        (void) fclose(source);
        assert_non_null(strstr(text, words));
        return line;
}

static char *line_site(const char *file, unsigned line) {
        static char site[256];

        (void) snprintf(site, sizeof(site), "%s:%u", file, line);
        return site;
}

static void assert_line(ElfFile *elf, const char *site, const char *function, unsigned line) {
        _cleanup_(elf_site_done) ElfSite found = {};

        assert_ok(elf_file_resolve(elf, site, &found, NULL));
        assert_int_equal(found.offset, ask_objdump(line));
        assert_string_equal(found.function, function);
        assert_int_equal(found.offset - found.distance, ask_nm(function, ""));
}

static void test_lines(void **state) {
        static const char *const variants[] = {
                "full",  "dwarf4",          "dwarf5",           "zlib", "zlib-gnu",
                "split", "with-debug-file", "by-link/stripped", SHARED,
        };
        unsigned hidden = line_with("return n * 3"), again = line_with("inlined(n + 1)"),
                 inlined = line_with("return n ^ sink"), empty = line_with("extern __typeof__");

        for (size_t i = 0; i < ELEMENTSOF(variants); i++) {
                _cleanup_(elf_file_freep) ElfFile *elf = open_variant(variants[i]);

                assert_line(elf, line_site("names.c", hidden), "hidden", hidden);
                assert_line(elf, line_site("unit/names.c", again), "again", again);
                assert_line(elf, line_site(NAMES_SOURCE, again), "again", again);
                assert_no_site(elf, line_site("names.c", inlined), -ENOTUNIQ, "in 2 functions of ");
                assert_no_site(elf, line_site("names.c", inlined), -ENOTUNIQ, "again+0x");
                assert_no_site(elf, line_site("names.c", empty), -ESRCH, "lines with code are");
                assert_no_site(elf, line_site("names.c", 1), -ESRCH, "nearest line with code is");
                assert_no_site(elf, line_site("ames.c", again), -ESRCH, "No source file 'ames.c'");
                assert_no_site(elf, line_site("t/names.c", again), -ESRCH, "No source file");
                assert_no_site(elf, line_site("other.c", again), -ESRCH, "No source file");
                assert_no_site(elf, line_site("nmaes.c", again), -ESRCH, "; near names: names.c");
        }
}

/* Two in again(), one in exported(). */
static void test_inlined(void **state) {
        static const char *const variants[] = { "full", "dwarf4", "dwarf5", "zlib",
                                                "by-link/stripped" };
        _cleanup_(elf_file_freep) ElfFile *stripped = open_variant("stripped"),
                                          *split = open_variant("split");
        InlinedCopies copies;

        for (size_t i = 0; i < ELEMENTSOF(variants); i++) {
                _cleanup_(elf_file_freep) ElfFile *elf = open_variant(variants[i]);

                assert_ok(inlined_copies_count(elf, ask_nm("kept", ""), DEADLINE, &copies));
                assert_true(copies.is_known && copies.is_complete);
                assert_int_equal(copies.n, 3);
                assert_ok(inlined_copies_count(elf, ask_nm("kept", "") + 1, DEADLINE, &copies));
                assert_int_equal(copies.n, 3);
                assert_ok(inlined_copies_count(elf, ask_nm("again", ""), DEADLINE, &copies));
                assert_true(copies.is_known && copies.is_complete);
                assert_int_equal(copies.n, 0);
                /* Time is up before the function is found: there may be some. */
                assert_ok(inlined_copies_count(elf, ask_nm("kept", ""), 1, &copies));
                assert_true(copies.is_known && !copies.is_complete);
        }
        assert_ok(inlined_copies_count(stripped, ask_nm("again", ""), DEADLINE, &copies));
        assert_false(copies.is_known);
        assert_ok(inlined_copies_count(split, ask_nm("again", ""), DEADLINE, &copies));
        assert_false(copies.is_known);
}

#define INLINED "was inlined wherever it is called, so that no function is left to measure"

/* A function of which nothing is left but copies is not one that is misspelt. */
static void test_inlined_names(void **state) {
        static const char *const variants[] = { "full", "dwarf4",           "dwarf5",
                                                "zlib", "by-link/stripped", "with-debug-file" };
        static const char *const cxx_variants[] = { INLINED_CXX };
        static const char *const names[] = {
                "shop::tiny",       "shop::tiny(int)",  "shop::small",
                "shop::small(int)", "shop::Order::get", "shop::(anonymous namespace)::hidden"
        };
        /* Not of that name, not with these arguments, not inlined. */
        static const char *const others[] = { "tiny",
                                              "shop::Order::tiny",
                                              "shop::small(long)",
                                              "shop::Order::tinier",
                                              "shop",
                                              "shop::",
                                              "(" };
        _cleanup_(elf_file_freep) ElfFile *stripped = open_variant("inlined-cxx-stripped"),
                                          *elf = open_variant("inlined-cxx");

        elf_file_set_patient(stripped, true);
        for (size_t i = 0; i < ELEMENTSOF(variants); i++) {
                _cleanup_(elf_file_freep) ElfFile *c = open_variant(variants[i]);

                assert_no_site(c, "inlined", -ESRCH, "No function");
                elf_file_set_patient(c, true);
                assert_no_site(c, "inlined", -ESRCH, INLINED);
                assert_no_site(c, "inline", -ESRCH, "No function");
        }
        for (size_t i = 0; i < ELEMENTSOF(cxx_variants); i++) {
                _cleanup_(elf_file_freep) ElfFile *cxx = open_variant(cxx_variants[i]);

                elf_file_set_patient(cxx, true);
                for (size_t k = 0; k < ELEMENTSOF(names); k++)
                        assert_no_site(cxx, names[k], -ESRCH, INLINED);
                for (size_t k = 0; k < ELEMENTSOF(others); k++)
                        assert_no_site(cxx, others[k], -ESRCH, "No function");
        }
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                assert_no_site(stripped, names[i], -ESRCH, "No function");
        assert_int_equal(inlined_name_find(elf, "shop::tiny", 10, DEADLINE), 1);
        /* Time is up. */
        assert_int_equal(inlined_name_find(elf, "shop::tiny", 10, 1), 0);
}

/*
 * What files have in common is known by its place in the common one, which is not there: of other
 * functions that could be any of those.
 */
static void test_shared(void **state) {
        static const char *const variants[] = { SHARED };
        InlinedCopies copies;

        for (size_t i = 0; i < ELEMENTSOF(variants); i++) {
                _cleanup_(elf_file_freep) ElfFile *elf = open_variant(variants[i]);

                assert_ok(inlined_copies_count(elf, ask_nm("kept", ""), DEADLINE, &copies));
                assert_true(copies.is_known && copies.is_complete);
                assert_int_equal(copies.n, 3);
                assert_ok(inlined_copies_count(elf, ask_nm("again", ""), DEADLINE, &copies));
                assert_true(copies.is_known && !copies.is_complete);
                assert_int_equal(copies.n, 0);
        }
}

/* In a file whose part of the DWARF is in the common one. */
static void assert_common(ElfFile *elf, bool is_there, const char *words) {
        InlinedCopies copies;

        elf_file_set_patient(elf, true);
        assert_no_site(elf, "inlined", -ESRCH, is_there ? INLINED : words);
        assert_no_site(elf, "inline", -ESRCH, "No function");
        assert_ok(inlined_copies_count(elf, ask_nm("kept", ""), DEADLINE, &copies));
        assert_true(copies.is_known && copies.is_complete);
        assert_int_equal(copies.n, 3);
        assert_ok(inlined_copies_count(elf, ask_nm("again", ""), DEADLINE, &copies));
        assert_true(copies.is_known && copies.is_complete == is_there);
        assert_int_equal(copies.n, 0);
}

/* It is looked for below the debug directory, and next to the file or its debug file. */
static void test_common(void **state) {
        static const struct {
                const char *name, *directory;
                const char *words; /* NULL: it is found */
        } variants[] = {
                { "common-absolute", NAMES "/debug", NULL },
                { "common-relative", NAMES "/debug", NULL },
                { "common-next-to", "/nonexistent", NULL },
                { "common/stripped", "/nonexistent", NULL },
                { "shared4", NAMES "/debug-of-common", NULL },
                { "shared4", NAMES "/debug", "No function" },
                { "common-absolute", "/nonexistent", "No function" },
                { "common-relative", "/nonexistent", "No function" },
                { "common-elsewhere", NAMES "/debug", "No function" },
                { "common-back", NAMES "/debug", "No function" },
                { "common-above", NAMES "/debug", "No function" },
                { "common-other", NAMES "/debug", "shared4-common is of another build)" },
        };
        _cleanup_(root_done) Root root = ROOT_OWN;
        _cleanup_(elf_file_freep) ElfFile *in_tree = NULL;

        for (size_t i = 0; i < ELEMENTSOF(variants); i++) {
                _cleanup_(elf_file_freep) ElfFile *elf = open_variant(variants[i].name);

                elf_file_set_debug_directory(elf, variants[i].directory);
                assert_common(elf, !variants[i].words, variants[i].words);
        }
        assert_int_equal(root_of_directory(&ROOT_OWN, NAMES, &root), 0);
        assert_ok(elf_file_open_in(&root, "/common-in-tree", &in_tree, NULL));
        elf_file_set_debug_directory(in_tree, "/debug");
        assert_common(in_tree, true, NULL);
}

/* Copies in other units are known by a name that may be in the common file. */
static void test_common_name(void **state) {
        _cleanup_(elf_file_freep) ElfFile *elf = open_variant("own"),
                                          *alone = open_variant("own-alone/own");
        _cleanup_(elf_site_done) ElfSite site = {};
        InlinedCopies copies;

        assert_ok(elf_file_resolve(elf, "own_name", &site, NULL));
        assert_ok(inlined_copies_count(elf, site.offset, DEADLINE, &copies));
        assert_true(copies.is_known && copies.is_complete);
        assert_int_equal(copies.n, 2);
        assert_ok(inlined_copies_count(alone, site.offset, DEADLINE, &copies));
        assert_true(copies.is_known && !copies.is_complete);
        assert_int_equal(copies.n, 1);
}

/* Lines of other files, of damaged ones, and what is no line at all. */
static void test_no_lines(void **state) {
        static const char *const others[] = { "names.c:", "names.c:x",   "names.c:0",
                                              ":12",      "names.c::12", "names.c:99999999" };
        _cleanup_(elf_file_freep) ElfFile *stripped = open_variant("stripped"),
                                          *other = open_variant("other-id/stripped"),
                                          *cut = open_variant("cut-lines-file");

        assert_no_site(stripped, "names.c:12", -ESRCH, "has no line numbers (DWARF): install");
        assert_no_site(other, "names.c:12", -ESRCH, "names.debug are of another build)");
        assert_no_site(cut, "names.c:12", -ESRCH, "No source file 'names.c'");
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                assert_no_site(cut, others[i], -ESRCH, "No function '");
}

static const ElfFunction *find(const ElfFunctions *functions, const char *name) {
        for (size_t i = 0; i < functions->n; i++)
                if (streq(functions->items[i].name, name))
                        return &functions->items[i];
        return NULL;
}

/* What is listed is what can be resolved: old versions with their version. */
static void test_list(void **state) {
        static const struct {
                const char *variant;
                bool is_stripped;
        } variants[] = { { "full", false }, { "mini", false }, { "stripped", true } };

        for (size_t i = 0; i < ELEMENTSOF(variants); i++) {
                _cleanup_(elf_file_freep) ElfFile *elf = open_variant(variants[i].variant);
                _cleanup_(elf_functions_done) ElfFunctions functions = {};

                assert_ok(elf_file_list_functions(elf, &functions));
                assert_int_equal(functions.is_stripped, variants[i].is_stripped);
                assert_true(!find(&functions, "hidden") == variants[i].is_stripped);
                assert_non_null(find(&functions, "again"));
                assert_non_null(find(&functions, "versioned"));
                assert_non_null(find(&functions, "versioned@V1"));
                assert_null(find(&functions, "versioned@@V2"));
                for (size_t k = 0; k < functions.n; k++) {
                        assert_false(functions.items[k].ambiguous);
                        assert_site(elf, functions.items[k].name, functions.items[k].offset);
                }
        }
}

/* What a compiler made of functions in C++ besides themselves; of them, "cold" is none. */
static void test_clones(void **state) {
        static const struct {
                const char *name, *symbol;
        } names[] = {
                { "shop::Order::boom", "_ZN4shop5Order4boomEi" },
                { "shop::Order::boom(int)", "_ZN4shop5Order4boomEi" },
                { "shop::Order::bo*", "_ZN4shop5Order4boomEi" },
                { "_ZN4shop5Order4boom*", "_ZN4shop5Order4boomEi" },
                { "_ZN4shop5Order4boomEi.cold", "_ZN4shop5Order4boomEi.cold" },
                { "shop::Order::boom(int) [clone .cold]", "_ZN4shop5Order4boomEi.cold" },
                { "shop::split", "_ZN4shop5splitEi" },
                /* Nothing else is left of them. */
                { "shop::changed", "_ZN4shop7changedEi.isra.0" },
                { "shop::changed(int)", "_ZN4shop7changedEi.isra.0" },
                { "in_c", "in_c.constprop.0.isra.0" },
                { "shop::several(int)", "_ZN4shop7severalEi" },
                { "shop::copies(int) [clone .constprop.0]", "_ZN4shop6copiesEi.constprop.0" },
        };
        _cleanup_(elf_file_freep) ElfFile *elf = open_variant("clones");
        _cleanup_(elf_site_done) ElfSite made = {};

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_(elf_site_done) ElfSite site = {}, expected = {};

                assert_ok(elf_file_resolve(elf, names[i].name, &site, NULL));
                assert_ok(elf_file_resolve(elf, names[i].symbol, &expected, NULL));
                assert_int_equal(site.offset, expected.offset);
        }
        assert_ok(elf_file_resolve(elf, "shop::changed", &made, NULL));
        assert_string_equal(made.function, "_ZN4shop7changedEi.isra.0");
        assert_no_site(elf, "shop::Order::only", -ESRCH, "No function");
        /* Of which the rest is anywhere. */
        assert_no_site(elf, "shop::piece(int)", -ESRCH, "No function");
        assert_no_site(elf, "shop::several", -ENOTUNIQ, "[clone .part.0]");
        assert_no_site(elf, "shop::copies(int)", -ENOTUNIQ,
                       "'shop::copies(int) [clone .constprop.0]'");
        assert_no_site(elf, "copies", -ENOTUNIQ, "copies.lto_priv.0");
        assert_no_site(elf, "main", -ESRCH, "near names: main.part.f");
        /* What is offered is taken. */
        assert_no_site(elf, "Order::boom", -ESRCH, "near names: 'shop::Order::boom'");
        assert_no_site(elf, "shop::Oder::bom", -ESRCH, "near names: 'shop::Order::boom'");
}

/* An RPATH holds for the libraries of libraries, a RUNPATH does not. */
static void test_libraries(void **state) {
        _cleanup_(libraries_done) Libraries by_rpath = {}, by_runpath = {}, none = {};

        assert_ok(libraries_find(&ROOT_OWN, NAMES "/uses--disable-new-dtags", &by_rpath));
        assert_int_equal(by_rpath.n, 3);
        assert_string_equal(by_rpath.items[1].path, NAMES "/inner/libtlob-a.so");
        assert_string_equal(by_rpath.items[2].path, NAMES "/inner/libb.so");

        assert_ok(libraries_find(&ROOT_OWN, NAMES "/uses--enable-new-dtags", &by_runpath));
        assert_int_equal(by_runpath.n, 3);
        assert_string_equal(by_runpath.items[1].path, NAMES "/inner/libtlob-a.so");
        assert_string_equal(by_runpath.items[2].name, "libtlob-b.so");
        assert_null(by_runpath.items[2].path);
        assert_int_equal(by_runpath.items[2].loader, 1);

        assert_ok(libraries_find(&ROOT_OWN, NAMES "/full", &none));
        assert_int_equal(none.n, 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_names),     cmocka_unit_test(test_only_exported_names),
                cmocka_unit_test(test_lines),         cmocka_unit_test(test_no_lines),
                cmocka_unit_test(test_inlined_names), cmocka_unit_test(test_inlined),
                cmocka_unit_test(test_shared),        cmocka_unit_test(test_common),
                cmocka_unit_test(test_common_name),   cmocka_unit_test(test_list),
                cmocka_unit_test(test_libraries),     cmocka_unit_test(test_clones),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
