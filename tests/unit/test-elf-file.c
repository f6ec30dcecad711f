/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * elf/file.h, on an ELF file made by hand (elf-image.h) where every offset is known, and on the C
 * library that this program runs with. Files are opened through /proc/self/fd.
 */

#include "elf/internal.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "elf-image.h"
#include "elf/library.h"
#include "temporary.h"
#include "test.h"

#define FUNCTION ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define STATIC   ELF64_ST_INFO(STB_LOCAL, STT_FUNC)
#define INDIRECT ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC)
#define OBJECT   ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT)
#define TEXT     offsetof(ElfImage, text)

static int open_bytes(const void *data, size_t size, ElfFile **ret, char **ret_error) {
        _cleanup_close_ int fd = elf_image_to_fd(data, size);
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%i", fd);
        return elf_file_open(path, ret, ret_error);
}

static void image_with_functions(ElfImage *image) {
        elf_image_init(image);
        elf_image_add(image, "with_endbr", FUNCTION, SECTION_TEXT, 0, 0x20);
        elf_image_add(image, "plain", FUNCTION, SECTION_TEXT, 0x20, 0x10);
        elf_image_add(image, "plain_alias", FUNCTION, SECTION_TEXT, 0x20, 0x10);
        elf_image_add(image, "versioned@@V2", FUNCTION, SECTION_TEXT, 0x40, 0x10);
        elf_image_add(image, "versioned@V1", FUNCTION, SECTION_TEXT, 0x50, 0x10);
        elf_image_add(image, "twice", FUNCTION, SECTION_TEXT, 0x60, 8);
        elf_image_add(image, "twice", STATIC, SECTION_TEXT, 0x70, 8);
        elf_image_add(image, "chosen_at_start", INDIRECT, SECTION_TEXT, 0x80, 8);
        elf_image_add(image, "imported", FUNCTION, SHN_UNDEF, 0, 0);
        elf_image_add(image, "table", OBJECT, SECTION_TEXT, 0x100, 8);
        elf_image_add(image, "not_code", FUNCTION, SECTION_TEXT, 0x100, 8);
}

static ElfFile *open_image(const ElfImage *image) {
        ElfFile *elf = NULL;

        assert_ok(open_bytes(image, sizeof(*image), &elf, NULL));
        return elf;
}

static void assert_site(ElfFile *elf, const char *site, uint64_t offset, const char *function) {
        _cleanup_(elf_site_done) ElfSite found = {};

        assert_ok(elf_file_resolve(elf, site, &found, NULL));
        assert_int_equal(found.offset, offset);
        if (function)
                assert_string_equal(found.function, function);
        else
                assert_null(found.function);
}

static void assert_no_site(ElfFile *elf, const char *site, int error, const char *words) {
        _cleanup_free_ char *sentence = NULL;
        ElfSite found = { .offset = 4711 };

        assert_int_equal(elf_file_resolve(elf, site, &found, &sentence), error);
        assert_non_null(sentence);
        assert_non_null(strstr(sentence, words));
        assert_int_equal(found.offset, 4711);
        assert_null(found.function);
}

static void test_resolve(void **state) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        char site[32];
        ElfImage image;
#ifdef __x86_64__
        uint64_t endbr = 4;
#else
        uint64_t endbr = 0;
#endif

        image_with_functions(&image);
        elf = open_image(&image);
        assert_string_equal(elf_file_build_id(elf), "deadbeef00112233");

        assert_site(elf, "with_endbr", TEXT + endbr, "with_endbr");
        assert_site(elf, "with_endbr+0", TEXT, "with_endbr");
        assert_site(elf, "with_endbr+0x1f", TEXT + 0x1f, "with_endbr");
        assert_site(elf, "with_endbr+31", TEXT + 0x1f, "with_endbr");
        assert_site(elf, "plain", TEXT + 0x20, "plain");
        assert_site(elf, "plain_alias", TEXT + 0x20, "plain_alias");
        assert_site(elf, "versioned", TEXT + 0x40, "versioned");
        assert_site(elf, "versioned@V2", TEXT + 0x40, "versioned@V2");
        assert_site(elf, "versioned@@V2", TEXT + 0x40, "versioned@@V2");
        assert_site(elf, "versioned@V1", TEXT + 0x50, "versioned@V1");
        assert_site(elf, "versioned@V1+0x4", TEXT + 0x54, "versioned@V1");

        (void) snprintf(site, sizeof(site), "0x%zx", TEXT + 0x45);
        assert_site(elf, site, TEXT + 0x45, "versioned");
        (void) snprintf(site, sizeof(site), "0x%zx", TEXT);
        assert_site(elf, site, TEXT, "with_endbr");
        (void) snprintf(site, sizeof(site), "0x%zx", TEXT + 0xff);
        assert_site(elf, site, TEXT + 0xff, NULL);
}

static void test_resolve_refuses(void **state) {
        static const struct {
                const char *site;
                int error;
                const char *words;
        } cases[] = {
                { "", -EINVAL, "neither a symbol" },
                { "two words", -EINVAL, "two words" },
                { "plain@V1", -ESRCH, "'plain' in " },
                { "plain@V1", -ESRCH, "has no version 'V1', and none at all" },
                { "versioned@V3", -ESRCH, "no version 'V3', but: versioned@@V2, versioned@V1" },
                { "versioned@@V1", -ESRCH, "no default version 'V1', but: versioned@@V2" },
                { "verzioned@V1", -ESRCH, "near names: versioned" },
                { "versioned@V1+0x10", -ERANGE, "past the end" },
                { "versioned@", -EINVAL, "neither a symbol" },
                { "versioned@@", -EINVAL, "neither a symbol" },
                { "versioned@@@V1", -EINVAL, "neither a symbol" },
                { "versioned@V1@V1", -EINVAL, "neither a symbol" },
                { "@V1", -EINVAL, "neither a symbol" },
                { "plain+", -EINVAL, "symbol+0x1c" },
                { "plain+x", -EINVAL, "symbol+0x1c" },
                { "plain+-1", -EINVAL, "symbol+0x1c" },
                { "plain+0x1ffffffffffffffff", -EINVAL, "symbol+0x1c" },
                { "+4", -EINVAL, "neither a symbol" },
                { "1234", -EINVAL, "0x12a0" },
                { "0x", -EINVAL, "0x12a0" },
                { "0x12g", -EINVAL, "0x12a0" },
                { "0x1ffffffffffffffff", -EINVAL, "0x12a0" },
                { "0xffffffffffffffff", -ERANGE, "outside" },
                { "0x10", -ERANGE, "executable segments" },
                { "plan", -ESRCH, "near names: plain" },
                { "qqqqqqqqqqqqqq", -ESRCH, "nor one with a similar name among its 8 functions" },
                { "odd\n", -ESRCH, "odd\\x0a" },
                { "imported", -ESRCH, "only calls it" },
                { "table", -ESRCH, "data" },
                { "not_code", -ERANGE, "executable segments" },
                { "plain+0x10", -ERANGE, "past the end" },
                { "plain+0xffffffffffffffff", -ERANGE, "past the end" },
                { "twice", -ENOTUNIQ, "0x" },
                { "chosen_at_start", -EOPNOTSUPP, "IFUNC" },
                { "usdt:libc:setjmp", -ESRCH, "There are no USDT probes" },
        };
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        ElfImage image;

        image_with_functions(&image);
        elf = open_image(&image);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                assert_no_site(elf, cases[i].site, cases[i].error, cases[i].words);
}

static void test_extents(void **state) {
        static const struct {
                uint64_t place, begin, size; /* in the text */
        } functions[] = { { 4, 0, 0x20 }, { 0x24, 0x20, 0x10 }, { 0x40, 0x40, 0x10 } };
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        ElfImage image;

        image_with_functions(&image);
        elf = open_image(&image);
        for (size_t i = 0; i < ELEMENTSOF(functions); i++) {
                _cleanup_free_ uint8_t *code = NULL;
                uint64_t start, size;

                assert_true(
                        elf_file_extent_at(elf, IMAGE_ADDRESS + functions[i].place, &start, &size));
                assert_int_equal(start, IMAGE_ADDRESS + functions[i].begin);
                assert_int_equal(size, functions[i].size);
                assert_ok(elf_file_read_code(elf, start, size, &code));
                assert_memory_equal(code, image.text + functions[i].begin, size);
        }
}

static void test_no_extent(void **state) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_free_ uint8_t *code = NULL;
        uint64_t start, size;
        ElfImage image;

        image_with_functions(&image);
        elf = open_image(&image);
        assert_false(elf_file_extent_at(elf, IMAGE_ADDRESS + 0xf0, &start, &size));
        /* In data; outside the file; partly so; more than there is room for. */
        assert_int_equal(elf_file_read_code(elf, IMAGE_ADDRESS + 0x100, 1, &code), -ENOEXEC);
        assert_int_equal(elf_file_read_code(elf, UINT64_MAX, 1, &code), -ENOEXEC);
        assert_int_equal(elf_file_read_code(elf, IMAGE_ADDRESS + 0xf0, 0x11, &code), -ENOEXEC);
        assert_int_equal(elf_file_read_code(elf, IMAGE_ADDRESS, UINT64_MAX, &code), -EFBIG);
        assert_null(code);
}

/* One byte in the name of a section, and Go would be seen. */
static void test_go(void **state) {
        _cleanup_(elf_file_freep) ElfFile *go = NULL, *other = NULL;
        ElfImage image;

        elf_image_init(&image);
        elf_image_add(&image, ".gopclntaB", 0, SHN_UNDEF, 0, 0);
        image.header.e_shstrndx = SECTION_STRTAB;
        image.sections[SECTION_TEXT].sh_name =
                image.symbols[image.sections[SECTION_SYMTAB].sh_size / sizeof(Elf64_Sym) - 1]
                        .st_name;
        other = open_image(&image);
        assert_false(elf_file_is_go(other));
        image.strings[image.sections[SECTION_TEXT].sh_name + strlen(".gopclnta")] = 'b';
        go = open_image(&image);
        assert_true(elf_file_is_go(go));
}

static void test_no_symbols(void **state) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        char site[32];
        ElfImage image;

        elf_image_init(&image);
        image.header.e_shnum = 0;
        image.header.e_shoff = 0;
        elf = open_image(&image);
        assert_no_site(elf, "main", -ESRCH, "no symbols at all");
        (void) snprintf(site, sizeof(site), "0x%zx", TEXT + 1);
        assert_site(elf, site, TEXT + 1, NULL);
}

/* Takes the symbols away, as strip does. */
static ElfFile *open_stripped(Temporary *tmp) {
        ElfFile *elf;
        ElfImage image;

        elf_image_init(&image);
        image.sections[SECTION_SYMTAB].sh_type = SHT_NULL;
        elf = open_image(&image);
        elf_file_set_debug_directory(elf, tmp->path);
        return elf;
}

static void write_debug_file(Temporary *tmp, const ElfImage *image) {
        static const char name[] = ".build-id/de/adbeef00112233.debug";
        _cleanup_close_ int fd = -EBADF;

        temporary_write(tmp, name, "");
        fd = open(temporary_path(tmp, name), O_WRONLY | O_TRUNC | O_CLOEXEC);
        assert_int_equal(write(fd, image, sizeof(*image)), sizeof(*image));
}

static void test_debug_file(void **state) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL, *other = NULL;
        _cleanup_(temporary_done) Temporary tmp = {};
        _cleanup_free_ uint8_t *code = NULL;
        uint64_t start, size;
        ElfImage debug;
        char site[32];

        temporary_init(&tmp);
        image_with_functions(&debug);
        memset(debug.text, 0, sizeof(debug.text));
        write_debug_file(&tmp, &debug);

        elf = open_stripped(&tmp);
        assert_site(elf, "plain", TEXT + 0x20, "plain");
        (void) snprintf(site, sizeof(site), "0x%zx", TEXT + 0x45);
        assert_site(elf, site, TEXT + 0x45, "versioned");
        assert_no_site(elf, "plan", -ESRCH, "names 8 functions; near names: plain");
        /* The names are from there, the code is not. */
        assert_true(elf_file_extent_at(elf, IMAGE_ADDRESS, &start, &size));
        assert_int_equal(size, 0x20);
        assert_ok(elf_file_read_code(elf, start, size, &code));
        assert_int_equal(code[4], 0x90);

        /* That of another build has the wrong addresses. */
        debug.note.id[7] ^= 1;
        write_debug_file(&tmp, &debug);
        other = open_stripped(&tmp);
        assert_no_site(other, "plain", -ESRCH, "stripped and has no symbols at all");
}

static void assert_not_opened(const ElfImage *image, size_t size, const char *words) {
        _cleanup_free_ char *sentence = NULL;
        ElfFile *elf = NULL;

        assert_int_equal(open_bytes(image, size, &elf, &sentence), -ENOEXEC);
        assert_null(elf);
        assert_non_null(strstr(sentence, words));
}

static void test_not_elf(void **state) {
        ElfImage image;

        elf_image_init(&image);
        assert_not_opened(&image, 0, "not an ELF file");
        assert_not_opened(&image, 3, "not an ELF file");
        assert_not_opened(&image, 40, "damaged");

        image.header.e_machine = MACHINE_ELF == EM_S390 ? EM_X86_64 : EM_S390;
        assert_not_opened(&image, sizeof(image), "another kind of machine");
        image.header.e_machine = MACHINE_ELF;
        image.header.e_ident[EI_CLASS] = ELFCLASS32;
        assert_not_opened(&image, sizeof(image), "another kind of machine");
        image.header.e_ident[EI_CLASS] = ELFCLASS64;
        image.header.e_type = ET_REL;
        assert_not_opened(&image, sizeof(image), "neither a program nor a library");
        image.header.e_type = ET_DYN;
        image.header.e_phnum = PN_XNUM;
        assert_not_opened(&image, sizeof(image), "damaged");
        image.header.e_phnum = 3;
        image.header.e_shnum = 0;
        image.sections[0].sh_size = UINT32_MAX;
        assert_not_opened(&image, sizeof(image), "damaged");

        memcpy(&image, "#!/bin/sh", 9);
        assert_not_opened(&image, sizeof(image), "script");
}

static void assert_path_refused(const char *path, int error) {
        _cleanup_free_ char *sentence = NULL;
        ElfFile *elf = NULL;

        assert_int_equal(elf_file_open(path, &elf, &sentence), error);
        assert_null(elf);
        assert_non_null(strstr(sentence, path));
}

static void test_not_a_file(void **state) {
        char directory[] = "/tmp/test-elf-XXXXXX", path[64];

        assert_path_refused("/nonexistent/program", -ENOENT);
        assert_path_refused("/dev/null", -EINVAL);
        assert_path_refused("/", -EISDIR);

        assert_non_null(mkdtemp(directory));
        (void) snprintf(path, sizeof(path), "%s/fifo", directory);
        assert_ok(mkfifo(path, 0600));
        assert_path_refused(path, -EINVAL);
        assert_ok(unlink(path));
        assert_ok(symlink("loop", strcat(path, "-loop")));
        assert_path_refused(path, -ENOENT);
        assert_ok(unlink(path));
        assert_ok(rmdir(directory));
}

/* Whatever one byte of the headers is, nothing crashes: the sanitizers watch. */
static void test_each_byte_broken(void **state) {
        static const unsigned char values[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
        ElfImage image;

        image_with_functions(&image);
        for (size_t i = 0; i < offsetof(ElfImage, text); i++)
                for (size_t k = 0; k < ELEMENTSOF(values); k++) {
                        unsigned char *byte = (unsigned char *) &image + i, saved = *byte;
                        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
                        ElfSite site = {};

                        *byte = values[k];
                        if (open_bytes(&image, sizeof(image), &elf, NULL) >= 0 &&
                            elf_file_resolve(elf, "plain", &site, NULL) >= 0)
                                elf_site_done(&site);
                        if (elf && elf_file_resolve(elf, "0x300", &site, NULL) >= 0)
                                elf_site_done(&site);
                        if (elf)
                                (void) elf_file_is_program(elf);
                        *byte = saved;
                }
}

/* A sparse file can promise a symbol table of terabytes. */
static void test_sparse(void **state) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_close_ int fd = -EBADF;
        ElfImage image;
        char path[64];

        image_with_functions(&image);
        image.sections[SECTION_SYMTAB].sh_size = UINT64_C(1) << 40;
        fd = elf_image_to_fd(&image, sizeof(image));
        assert_ok(ftruncate(fd, INT64_C(1) << 41));
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%i", fd);
        assert_ok(elf_file_open(path, &elf, NULL));
        assert_no_site(elf, "plain", -ESRCH, "too large for tlobd's memory");
}

/* The file under the path changes; what was opened does not. */
static void test_replaced(void **state) {
        char directory[] = "/tmp/test-elf-XXXXXX", path[64];
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_close_ int fd = -EBADF;
        struct stat before, after;
        ElfImage image;

        image_with_functions(&image);
        assert_non_null(mkdtemp(directory));
        (void) snprintf(path, sizeof(path), "%s/program", directory);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(write(fd, &image, sizeof(image)), sizeof(image));
        assert_ok(fstat(fd, &before));

        assert_ok(elf_file_open(path, &elf, NULL));
        assert_ok(unlink(path));
        assert_ok(mkdir(path, 0700));
        assert_ok(fstat(elf_file_fd(elf), &after));
        assert_int_equal(before.st_ino, after.st_ino);
        assert_string_equal(elf_file_path(elf), path);
        assert_site(elf, "plain", TEXT + 0x20, "plain");
        assert_ok(rmdir(path));
        assert_ok(rmdir(directory));
}

static void test_libc(void **state) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_free_ char *path = NULL;
        ElfSite site = {};

        assert_ok(library_find("libc.so.6", NULL, &path));
        assert_ok(elf_file_open(path, &elf, NULL));
        assert_ok(elf_file_resolve(elf, "fsync", &site, NULL));
        assert_string_equal(site.function, "fsync");
        elf_site_done(&site);
        assert_no_site(elf, "fsynk", -ESRCH, "fsync");
        /* Several versions, at different places: the one that is linked to today counts. */
        assert_ok(elf_file_resolve(elf, "pthread_cond_wait", &site, NULL));
        elf_site_done(&site);
#ifdef __x86_64__
        assert_no_site(elf, "memcpy", -EOPNOTSUPP, "IFUNC");
        assert_no_site(elf, "gettimeofday", -EOPNOTSUPP, "code of the kernel (the vDSO)");
#endif
}

/* What can be loaded into a program is none, though the C library can be run. */
static void test_program(void **state) {
        _cleanup_(elf_file_freep) ElfFile *self = NULL, *libc = NULL, *fixed = NULL, *loose = NULL;
        _cleanup_free_ char *path = NULL;
        ElfImage image;

        assert_ok(elf_file_open("/proc/self/exe", &self, NULL));
        assert_true(elf_file_is_program(self));
        assert_ok(library_find("libc.so.6", NULL, &path));
        assert_ok(elf_file_open(path, &libc, NULL));
        assert_false(elf_file_is_program(libc));

        elf_image_init(&image);
        loose = open_image(&image);
        assert_false(elf_file_is_program(loose));
        image.header.e_type = ET_EXEC;
        fixed = open_image(&image);
        assert_true(elf_file_is_program(fixed));
}

#define WIDE "_ZNSt7__cxx1112basic_stringIwSt11char_traitsIwESaIwEE"

/* Names as in the source, of a library that has a thousand of them. */
static void test_declared_names(void **state) {
        static const struct {
                const char *name;
                const char *symbol;
        } names[] = {
                { "std::ostream::flush", "_ZNSo5flushEv" },
                { "std::ostream::flush()", "_ZNSo5flushEv" },
                { "std::ostream::operator<<(int)", "_ZNSolsEi" },
                { "std::ostream::operator<<(unsigned int)", "_ZNSolsEj" },
                { "std::ostream::operator<< ( unsigned   int )", "_ZNSolsEj" },
                { "std::ostream::write(char const*, long)", "_ZNSo5writeEPKcl" },
                { "std::ostream::write(char const *,long)", "_ZNSo5writeEPKcl" },
                { "operator new(unsigned long)", "_Znwm" },
                /* Stars that are none, and others. */
                { "std::ostream::write(char const*, *)", "_ZNSo5writeEPKcl" },
                { "std::ostream::wr*", "_ZNSo5writeEPKcl" },
                { "std::ostream::write(char const *, long)", "_ZNSo5writeEPKcl" },
                { "std::__cxx11::basic_string<wchar_t*>::swap", WIDE "4swapERS4_" },
                { "std::*::basic_string<wchar_t, *>::swap (*)", WIDE "4swapERS4_" },
                { "_ZNSo5wr*", "_ZNSo5writeEPKcl" },
        };
        _cleanup_free_ char *path = NULL;
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        ElfSite site = {}, expected = {};

        assert_ok(library_find("libstdc++.so.6", NULL, &path));
        assert_ok(elf_file_open(path, &elf, NULL));
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                assert_ok(elf_file_resolve(elf, names[i].name, &site, NULL));
                assert_ok(elf_file_resolve(elf, names[i].symbol, &expected, NULL));
                assert_int_equal(site.offset, expected.offset);
                elf_site_done(&expected);
                elf_site_done(&site);
        }
        assert_ok(elf_file_resolve(elf, "std::ostream::flush()+0x1", &site, NULL));
        elf_site_done(&site);
}

static void test_no_declared_names(void **state) {
        _cleanup_free_ char *path = NULL, *sentence = NULL;
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        ElfSite site = {};

        assert_ok(library_find("libstdc++.so.6", NULL, &path));
        assert_ok(elf_file_open(path, &elf, NULL));
        assert_int_equal(elf_file_resolve(elf, "std::ostream::operator<<", &site, &sentence),
                         -ENOTUNIQ);
        assert_non_null(strstr(sentence, "'std::ostream::operator<<("));
        free(sentence);
        sentence = NULL;
        assert_int_equal(elf_file_resolve(elf, "std::ostream::operator*", &site, &sentence),
                         -ENOTUNIQ);
        assert_non_null(strstr(sentence, "are named 'std::ostream::operator*': give one of them, "
                                         "such as 'std::ostream::operator<<("));
        assert_int_equal(elf_file_resolve(elf, "std::ostream::no*such", &site, NULL), -ESRCH);
        /* One that would take other ways to match a very long time. */
        assert_int_equal(elf_file_resolve(elf,
                                          "*s*t*d*s*t*r*i*n*g*s*t*r*i*n*g*s*t*r*i*n*g*s*t*r*i*x",
                                          &site, NULL),
                         -ESRCH);
        free(sentence);
        sentence = NULL;
        /* Near names are as they are taken: without arguments, with them, or as in the file. */
        assert_int_equal(elf_file_resolve(elf, "ostream::Flush", &site, &sentence), -ESRCH);
        assert_non_null(strstr(sentence, "near names: 'std::ostream::flush'"));
        free(sentence);
        sentence = NULL;
        assert_int_equal(elf_file_resolve(elf, "Istream::get", &site, &sentence), -ESRCH);
        assert_non_null(strstr(sentence, "'std::istream::get("));
        free(sentence);
        sentence = NULL;
        /* Several that are declared alike: what is offered is taken. */
        assert_int_equal(elf_file_resolve(elf, "std::exception::~exception()", &site, &sentence),
                         -ENOTUNIQ);
        assert_non_null(strstr(sentence, "such as '_ZNSt9exceptionD"));
        assert_null(strstr(sentence, "such as 'std::"));
        assert_int_equal(elf_file_resolve(elf, "std::ostream::no_such()", &site, NULL), -ESRCH);
        assert_int_equal(elf_file_resolve(elf, "std::ostream::flush\t()", &site, NULL), -EINVAL);
        assert_int_equal(elf_file_resolve(elf, "::", &site, NULL), -ESRCH);
        assert_int_equal(elf_file_resolve(elf, "(", &site, NULL), -ESRCH);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_resolve),          cmocka_unit_test(test_resolve_refuses),
                cmocka_unit_test(test_no_symbols),       cmocka_unit_test(test_debug_file),
                cmocka_unit_test(test_not_elf),          cmocka_unit_test(test_not_a_file),
                cmocka_unit_test(test_each_byte_broken), cmocka_unit_test(test_sparse),
                cmocka_unit_test(test_replaced),         cmocka_unit_test(test_libc),
                cmocka_unit_test(test_program),          cmocka_unit_test(test_extents),
                cmocka_unit_test(test_no_extent),        cmocka_unit_test(test_go),
                cmocka_unit_test(test_declared_names),   cmocka_unit_test(test_no_declared_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
