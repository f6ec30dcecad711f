/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Functions of Go, by the table in stripped programs: in all its layouts, and when it lies. And
 * where they are to be probed (go-names.S).
 */

#include <fcntl.h>
#include <sys/stat.h>

#include "elf-image.h"
#include "elf/function-exits.h"
#include "elf/functions.h"
#include "elf/internal.h"
#include "elf/section.h"
#include "test.h"

#define N_FUNCTIONS 12

/* The last one is as the one before, with the table among what is relocated. */
static const char *const programs[] = { GO_2, GO_16, GO_18, GO_20, GO_RELOCATED };
#define N_WITH_A_SECTION 4

static ElfFile *open_program(const char *path) {
        ElfFile *elf = NULL;

        assert_int_equal(elf_file_open(path, &elf, NULL), 0);
        return elf;
}

static uint64_t resolve(ElfFile *elf, const char *text) {
        _cleanup_(elf_site_done) ElfSite site = {};
        _cleanup_free_ char *error = NULL;

        if (elf_file_resolve(elf, text, &site, &error) < 0)
                fail_msg("%s", error ?: "no memory");
        return site.offset;
}

static void assert_missing(ElfFile *elf, const char *text, const char *part) {
        _cleanup_(elf_site_done) ElfSite site = {};
        _cleanup_free_ char *error = NULL;

        assert_true(elf_file_resolve(elf, text, &site, &error) < 0);
        assert_non_null(strstr(error, part));
}

static void test_names(void **state) {
        for (size_t i = 0; i < ELEMENTSOF(programs); i++) {
                _cleanup_(elf_file_freep) ElfFile *elf = open_program(programs[i]);
                uint64_t work = resolve(elf, "main.work"), entry = 0;

                assert_int_equal(resolve(elf, "net/http.(*conn).serve"), work + 64);
                assert_int_equal(resolve(elf, "runtime.morestack"), work + 96);
                assert_int_equal(resolve(elf, "main.work+4"), work + 4);
                assert_int_equal(function_find_entry(elf, work + 30, &entry), 0);
                assert_int_equal(entry, work);
                assert_int_equal(function_find_entry(elf, work + 127, &entry), 0);
                assert_int_equal(entry, work + 96);
                /* C code before it, and what is behind the last one. */
                assert_int_equal(function_find_entry(elf, work - 32, &entry), -ESRCH);
                assert_int_equal(function_find_entry(elf, resolve(elf, "main.again") + 32, &entry),
                                 -ESRCH);
        }
}

static void test_boundaries(void **state) {
        _cleanup_(elf_file_freep) ElfFile *elf = open_program(GO_18);
        uint64_t work = resolve(elf, "main.work"), begin = 0;
        const char *reason = NULL;

        assert_int_equal(function_check_boundary(elf, work + 4, &begin, &reason), 1);
        assert_int_equal(function_check_boundary(elf, work + 5, &begin, &reason), 0);
        assert_int_equal(begin, work + 4);
}

static void test_list(void **state) {
        static const char *const names[] = {
                "main.(*T).wrapper",      "main.again",    "main.large",        "main.loop",
                "main.pointer",           "main.reloads",  "main.replaces",     "main.work",
                "net/http.(*conn).serve", "runtime.mcall", "runtime.morestack", "runtime.schedule",
        };

        for (size_t i = 0; i < ELEMENTSOF(programs); i++) {
                _cleanup_(elf_functions_done) ElfFunctions functions = {};
                _cleanup_(elf_file_freep) ElfFile *elf = open_program(programs[i]);

                assert_int_equal(elf_file_list_functions(elf, &functions), 0);
                assert_false(functions.is_stripped);
                assert_int_equal(functions.n, ELEMENTSOF(names));
                for (size_t k = 0; k < functions.n; k++)
                        assert_string_equal(functions.items[k].name, names[k]);
                assert_int_equal(functions.items[7].size, 64);
                assert_int_equal(functions.items[10].size, 32);
        }
}

static void test_missing(void **state) {
        _cleanup_(elf_file_freep) ElfFile *elf = open_program(GO_18);

        assert_missing(elf, "main.wrok", "which names 12 functions; near names: main.work");
        assert_missing(elf, "main.work+0x100", "is past the end of the function");
        assert_missing(elf, "main.work@V1", "No function 'main.work'");
}

/* The program, to be changed in memory. */
typedef struct Copy {
        uint8_t *data;
        size_t size;
        size_t table; /* where it is in there */
        size_t table_size;
} Copy;

static void copy_done(Copy *copy) {
        free(copy->data);
}

static Copy read_copy(const char *path) {
        _cleanup_(elf_file_freep) ElfFile *elf = open_program(path);
        GElf_Shdr header;
        Copy copy;

        assert_non_null(section_find_named(elf->elf, ".gopclntab", &header));
        copy = (Copy) {
                .data = malloc(elf_file_size(elf)),
                .size = elf_file_size(elf),
                .table = header.sh_offset,
                .table_size = header.sh_size,
        };
        assert_non_null(copy.data);
        assert_int_equal(pread(elf->fd, copy.data, copy.size, 0), copy.size);
        return copy;
}

/* Whatever is in the table: what is told of the functions is in the file. */
static size_t count_functions(const Copy *copy) {
        _cleanup_(elf_functions_done) ElfFunctions functions = {};
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_close_ int fd = elf_image_to_fd(copy->data, copy->size);
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%i", fd);
        elf = open_program(path);
        assert_int_equal(elf_file_list_functions(elf, &functions), 0);
        for (size_t i = 0; i < functions.n; i++) {
                _cleanup_(elf_site_done) ElfSite site = {};
                uint64_t entry = 0;

                assert_true(functions.items[i].offset < copy->size);
                (void) elf_file_resolve(elf, functions.items[i].name, &site, NULL);
                (void) function_find_entry(elf, functions.items[i].offset, &entry);
                assert_true(entry < copy->size);
        }
        return functions.n;
}

static void test_each_byte_may_lie(void **state) {
        static const uint8_t values[] = { 0x00, 0x01, 0x7f, 0xff };

        for (size_t i = 0; i < N_WITH_A_SECTION; i++) {
                _cleanup_(copy_done) Copy copy = read_copy(programs[i]);

                assert_int_equal(count_functions(&copy), N_FUNCTIONS);
                for (size_t at = 0; at < copy.table_size; at++) {
                        uint8_t old = copy.data[copy.table + at];

                        for (size_t k = 0; k < ELEMENTSOF(values); k++) {
                                copy.data[copy.table + at] = values[k];
                                assert_true(count_functions(&copy) <= N_FUNCTIONS + 1);
                        }
                        copy.data[copy.table + at] = old;
                }
        }
}

static void put(Copy *copy, size_t at, uint64_t value) {
        memcpy(copy->data + copy->table + at, &value, sizeof(value));
}

static void test_lies(void **state) {
        _cleanup_(copy_done) Copy copy = read_copy(GO_18);

        /* More functions than the table has room for, and as many that the product is small. */
        put(&copy, 8, copy.table_size);
        assert_int_equal(count_functions(&copy), 0);
        put(&copy, 8, UINT64_C(1) << 61);
        assert_int_equal(count_functions(&copy), 0);
        /* One less: it ends where the last one begins. */
        put(&copy, 8, N_FUNCTIONS - 1);
        assert_int_equal(count_functions(&copy), N_FUNCTIONS - 1);
        put(&copy, 8, N_FUNCTIONS);
        /* The text elsewhere, and so that addresses run over. */
        put(&copy, 24, UINT64_MAX - 1024);
        assert_int_equal(count_functions(&copy), 0);
        put(&copy, 24, 0);
        assert_int_equal(count_functions(&copy), 0);
}

/* What is probed of a function: counted from where it begins, and how often it is left. */
static void assert_exits_of(const char *program, const char *name, uint64_t start, size_t n_returns,
                            size_t n_jumps) {
        _cleanup_(elf_file_freep) ElfFile *elf = open_program(program);
        uint64_t entry = resolve(elf, name), mcall = resolve(elf, "runtime.mcall");
        FunctionExits exits = {};
        const char *reason = "";
        size_t n_switches = 0;

        if (function_find_exits(elf, entry, &exits, &reason) < 0)
                fail_msg("%s %s.", name, reason);
        assert_int_equal(exits.start, entry + start);
        assert_int_equal(exits.n_returns, n_returns);
        assert_int_equal(exits.n_switches, 2);
        assert_int_equal(exits.n, n_returns + n_jumps + 2);
        assert_non_null(exits.several);
        /* In mcall() where r14 is the scheduler's, in schedule() on its jump. */
        for (size_t i = 0; i < exits.n; i++)
                n_switches += exits.offsets[i] == mcall + 10 || exits.offsets[i] == mcall + 32 + 4;
        assert_int_equal(n_switches, 2);
        function_exits_done(&exits);
}

static void assert_exits(const char *name, uint64_t start, size_t n_returns, size_t n_jumps) {
        assert_exits_of(GO_20, name, start, n_returns, n_jumps);
        assert_exits_of(GO_RELOCATED, name, start, n_returns, n_jumps);
}

static void assert_refused(const char *program, const char *name, const char *part) {
        _cleanup_(elf_file_freep) ElfFile *elf = open_program(program);
        const char *reason = NULL;
        FunctionExits exits = {};

        assert_int_equal(function_find_exits(elf, resolve(elf, name), &exits, &reason),
                         -EOPNOTSUPP);
        if (!strstr(reason, part))
                fail_msg("'%s' has no '%s'.", reason, part);
}

static void test_exits(void **state) {
        assert_exits("main.work", 6, 2, 0);
        assert_exits("net/http.(*conn).serve", 0, 1, 0);
        assert_exits("main.large", 14, 1, 0);
        assert_exits("main.(*T).wrapper", 0, 0, 1);
        assert_exits("main.reloads", 0, 1, 0);
}

static void test_refused(void **state) {
        assert_refused(GO_20, "runtime.morestack", "a part of Go's runtime");
        assert_refused(GO_20, "main.loop", "to its first instruction, conditionally");
        assert_refused(GO_20, "main.pointer", "known only at run time");
        assert_refused(GO_20, "main.again", "not for more stack");
        assert_refused(GO_20, "main.replaces", "into the register in which Go has the goroutine");
        assert_refused(GO_16, "main.work", "before 1.18");
        assert_refused(GO_2, "main.work", "before 1.18");
}

/* The runtime is not what it is taken for. */
static void test_unknown_runtime(void **state) {
        static const char *const names[] = { "runtime.mcall", "runtime.schedule" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_(copy_done) Copy copy = read_copy(GO_20);
                _cleanup_(elf_file_freep) ElfFile *elf = NULL;
                _cleanup_close_ int fd = -EBADF;
                FunctionExits exits = {};
                const char *reason = "";
                char path[64], *name;

                name = memmem(copy.data, copy.size, names[i], strlen(names[i]));
                assert_non_null(name);
                name[strlen("runtime.")] = 'x';
                fd = elf_image_to_fd(copy.data, copy.size);
                (void) snprintf(path, sizeof(path), "/proc/self/fd/%i", fd);
                elf = open_program(path);
                assert_int_equal(
                        function_find_exits(elf, resolve(elf, "main.work"), &exits, &reason),
                        -EOPNOTSUPP);
                assert_non_null(strstr(reason, "a version of Go that tlobd does not know"));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_boundaries),
                cmocka_unit_test(test_list),
                cmocka_unit_test(test_missing),
                cmocka_unit_test(test_each_byte_may_lie),
                cmocka_unit_test(test_lies),
                cmocka_unit_test(test_exits),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_unknown_runtime),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
