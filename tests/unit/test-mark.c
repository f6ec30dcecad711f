/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Marks: their names, and that they are found in programs however these are built (make-marks),
 * against what readelf says of them.
 */

#include "elf/mark.h"

#include <elf.h>
#include <inttypes.h>

#include "elf/functions.h"
#include "resolved-mark.h"
#include "test.h"

static void test_names(void **state) {
        char longest[MARK_NAME_MAX + 2];

        memset(longest, 'x', sizeof(longest) - 1);
        longest[MARK_NAME_MAX + 1] = '\0';
        assert_false(mark_name_is_valid(longest));
        longest[MARK_NAME_MAX] = '\0';
        assert_true(mark_name_is_valid(longest));
        assert_true(mark_name_is_valid("_request_2"));
        assert_false(mark_name_is_valid(""));
        assert_false(mark_name_is_valid("2nd"));
        assert_false(mark_name_is_valid("a-b"));
        assert_false(mark_name_is_valid("\xc3\xa9t\xc3\xa9"));
}

static void assert_probe(const char *provider, const char *name, size_t length, MarkSide side) {
        MarkSide found = MARK_N_SIDES;

        assert_int_equal(mark_parse_probe(provider, name, &found), length);
        assert_int_equal(found, length > 0 ? side : MARK_N_SIDES);
}

static void test_probes(void **state) {
        assert_probe("tlob", "a__begin", 1, MARK_BEGIN);
        assert_probe("tlob", "a__begin__end", 8, MARK_END);
        assert_probe("tlob", "a_b__end", 3, MARK_END);
        assert_probe("tlob", "__begin", 0, 0);
        assert_probe("tlob", "a_begin", 0, 0);
        assert_probe("tlob", "2__begin", 0, 0);
        assert_probe("tlobtest", "a__begin", 0, 0);
}

static void assert_mark(const char *start, const char *stop, const char *expected) {
        const char *name = NULL;
        size_t n = mark_of_places(start, stop, &name);

        assert_int_equal(n, expected ? strlen(expected) : 0);
        if (expected)
                assert_memory_equal(name, expected, n);
}

static void test_places(void **state) {
        _cleanup_free_ char *begin = mark_make_place("ab", MARK_BEGIN);
        _cleanup_free_ char *end = mark_make_place("ab", MARK_END);

        assert_string_equal(begin, "usdt:tlob:ab__begin");
        assert_string_equal(end, "usdt:tlob:ab__end");
        assert_mark(begin, end, "ab");
        assert_mark(end, begin, NULL);
        assert_mark(begin, begin, NULL);
        assert_mark(begin, "usdt:tlob:ac__end", NULL);
        assert_mark(begin, "usdt:tlob:abc__end", NULL);
        assert_mark("usdt:a:ab__begin", "usdt:a:ab__end", NULL);
        assert_mark("ab__begin", "ab__end", NULL);
        assert_mark(begin, "return", NULL);
        assert_mark(begin, NULL, NULL);
        assert_mark(NULL, end, NULL);
}

/* How many notes on that probe are there? */
static size_t ask_readelf(const char *path, const char *name) {
        _cleanup_free_ char *command = NULL, *line = NULL;
        size_t n = 0, size = 0;
        char found[64];
        FILE *readelf;

        assert_true(asprintf(&command, "readelf -nW '%s'", path) > 0);
        readelf = popen(command, "re");
        assert_non_null(readelf);
        while (getline(&line, &size, readelf) > 0)
                n += sscanf(line, " Name: %63s", found) == 1 && streq(found, name);
        assert_ok(pclose(readelf));
        return n;
}

/* Each note is a place, and all have the one counter. */
static void assert_places(const char *path, const char *probe, const ElfSite *site,
                          uint64_t semaphore) {
        size_t n = ask_readelf(path, probe);

        if (n == 0 || site->n_places != n)
                fail_msg("%s: %zu places of %s, but %zu notes.", path, site->n_places, probe, n);
        assert_true(semaphore > 0);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(site->places[i].semaphore, semaphore);
}

#define PAGE 4096

/*
 * Where the kernel is to count must be mapped once, for writing: it takes the first mapping that
 * has that page of the file, also one that becomes read-only later.
 */
static void assert_mapped_once(const char *path, uint64_t offset) {
        FILE *file = fopen(path, "re");
        Elf64_Ehdr header;
        Elf64_Phdr segment;
        size_t n = 0;

        assert_non_null(file);
        assert_int_equal(fread(&header, sizeof(header), 1, file), 1);
        for (unsigned i = 0; i < header.e_phnum; i++) {
                assert_ok(fseek(file, (long) (header.e_phoff + i * sizeof(segment)), SEEK_SET));
                assert_int_equal(fread(&segment, sizeof(segment), 1, file), 1);
                n += segment.p_type == PT_LOAD && (segment.p_flags & PF_W) &&
                     offset / PAGE >= segment.p_offset / PAGE &&
                     offset / PAGE <= (segment.p_offset + segment.p_filesz - 1) / PAGE;
        }
        (void) fclose(file);
        if (n != 1)
                fail_msg("%s: 0x%" PRIx64 " is mapped %zu times.", path, offset, n);
}

static uint64_t check_mark(const char *path, const char *mark) {
        _cleanup_free_ char *begin = NULL, *end = NULL;
        _cleanup_(binding_freep) Binding *binding = NULL;
        const BindingSites *sites;
        uint64_t semaphore;

        assert_true(asprintf(&begin, "%s__begin", mark) > 0);
        assert_true(asprintf(&end, "%s__end", mark) > 0);
        mark_resolve(path, mark, &binding);
        sites = &binding->resolved.sites;
        assert_int_equal(sites->how, TLOB_STOP_PLACE);
        assert_false(sites->has_frame);
        assert_int_equal(binding->resolved.start_kind, PROBE_KIND_OF_NOP);
        assert_int_equal(binding->resolved.stop_kind, PROBE_KIND_OF_NOP);
        assert_true(sites->start.n_places > 0);
        semaphore = sites->start.places[0].semaphore;
        assert_mapped_once(path, semaphore);
        assert_places(path, begin, &sites->start, semaphore);
        assert_places(path, end, &sites->stop, semaphore);
        return semaphore;
}

/* As marks, and not as probes, too. */
static void check_list(const char *path) {
        static const char *const marks[] = { "Mark=request", "Mark=step" };
        _cleanup_(elf_functions_done) ElfFunctions functions = {};
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        size_t n = 0;

        assert_ok(elf_file_open(path, &elf, NULL));
        assert_ok(elf_file_list_functions(elf, &functions));
        for (size_t i = 0; i < functions.n; i++) {
                const ElfFunction *item = &functions.items[i];

                assert_true(strncmp(item->name, "usdt:tlob:", 10) != 0);
                if (!item->is_mark)
                        continue;
                assert_true(n < ELEMENTSOF(marks));
                assert_string_equal(item->name, marks[n++]);
                assert_true(item->offset > 0);
                assert_false(item->ambiguous);
        }
        assert_int_equal(n, ELEMENTSOF(marks));
}

static void test_programs(void **state) {
        FILE *list = fopen(MARKS "/list", "re");
        char name[64], path[512];
        size_t n = 0;

        assert_non_null(list);
        for (; fscanf(list, "%63s", name) == 1; n++) {
                (void) snprintf(path, sizeof(path), MARKS "/%s", name);
                assert_int_not_equal(check_mark(path, "request"), check_mark(path, "step"));
                check_list(path);
        }
        (void) fclose(list);
        assert_true(n >= 21);
}

static void assert_refused(const char *path, const char *place, const char *words) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_free_ char *sentence = NULL;
        ElfSite site = {};

        assert_ok(elf_file_open(path, &elf, NULL));
        assert_int_equal(elf_file_resolve(elf, place, &site, &sentence), -ESRCH);
        if (!strstr(sentence, words))
                fail_msg("'%s' is not in: %s", words, sentence);
}

static void test_missing(void **state) {
        assert_refused(MARKS "/gcc-plain", "usdt:tlob:reqest__begin", "No mark 'reqest' in ");
        assert_refused(MARKS "/gcc-plain", "usdt:tlob:reqest__begin", "; near names: request");
        assert_refused(MARKS "/gcc-plain", "usdt:tlob:xyzzy_42__end",
                       "; those that are there: tlobctl functions " MARKS "/gcc-plain 'Mark=*'");
        assert_refused(MARKS "/gcc-plain", "usdt:tlob:request__middle",
                       "No USDT probe 'tlob:request__middle' in ");
        assert_refused("/proc/self/exe", "usdt:tlob:request__begin",
                       "There are no marks in /proc/self/exe: ");
}

/* A program that is made to have one side only: the names of notes can be changed. */
static void test_one_side(void **state) {
        static const char end[] = "step__end", other[] = "stap__end";
        char path[] = "/tmp/test-mark.XXXXXX", *text, *p;
        FILE *file = fopen(MARKS "/gcc-debug", "re");
        _cleanup_close_ int fd = mkstemp(path);
        size_t size;

        assert_true(file && fd >= 0);
        assert_ok(fseek(file, 0, SEEK_END));
        size = (size_t) ftell(file);
        rewind(file);
        text = malloc(size);
        assert_int_equal(fread(text, 1, size, file), size);
        while ((p = memmem(text, size, end, sizeof(end))))
                memcpy(p, other, sizeof(other));
        assert_int_equal(write(fd, text, size), size);
        assert_refused(path, "usdt:tlob:step__end", "The mark 'step' never ends in ");
        assert_refused(path, "usdt:tlob:stap__begin", "The mark 'stap' never begins in ");
        (void) unlink(path);
        (void) fclose(file);
        free(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),   cmocka_unit_test(test_probes),
                cmocka_unit_test(test_places),  cmocka_unit_test(test_programs),
                cmocka_unit_test(test_missing), cmocka_unit_test(test_one_side),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
