/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * USDT probes in a program that was made with sys/sdt.h (engine/marked.c), against what readelf
 * says of its notes; and notes that lie.
 */

#include "elf/usdt.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "binding/cost.h"
#include "binding/keys.h"
#include "binding/sites.h"
#include "elf/functions.h"
#include "test.h"

#define BEGIN "usdt:tlobtest:begin"
#define END   "usdt:tlobtest:end"

/* A copy of the program that can be changed. */
typedef struct Image {
        int fd;
        char path[64];
        uint8_t *data;
        size_t size;
} Image;

static int set_up(void **state) {
        _cleanup_close_ int fd = open(MARKED, O_RDONLY | O_CLOEXEC);
        Image *image = calloc(1, sizeof(*image));
        struct stat st;

        assert_non_null(image);
        assert_true(fd >= 0 && fstat(fd, &st) == 0);
        image->size = (size_t) st.st_size;
        image->fd = memfd_create("marked", MFD_CLOEXEC);
        assert_true(image->fd >= 0);
        assert_ok(ftruncate(image->fd, st.st_size));
        image->data = mmap(NULL, image->size, PROT_READ | PROT_WRITE, MAP_SHARED, image->fd, 0);
        assert_ptr_not_equal(image->data, MAP_FAILED);
        assert_int_equal(read(fd, image->data, image->size), image->size);
        (void) snprintf(image->path, sizeof(image->path), "/proc/self/fd/%i", image->fd);
        *state = image;
        return 0;
}

static int tear_down(void **state) {
        Image *image = *state;

        (void) munmap(image->data, image->size);
        (void) close(image->fd);
        free(image);
        return 0;
}

/* What a note begins with; the names follow. */
typedef struct __attribute__((packed)) Note {
        uint64_t place;
        uint64_t base;
        uint64_t semaphore;
        char names[];
} Note;

/* The first note of that probe. */
static Note *find_note(const Image *image, const char *name) {
        static const char owner[] = "stapsdt", provider[] = "tlobtest";
        uint8_t *p = image->data, *end = image->data + image->size;

        while ((p = memmem(p, (size_t) (end - p), owner, sizeof(owner)))) {
                Note *note = (Note *) (void *) (p += sizeof(owner));

                if (memcmp(note->names, provider, sizeof(provider)) == 0 &&
                    strcmp(note->names + sizeof(provider), name) == 0)
                        return note;
        }
        fail_msg("There is no note on '%s' in %s.", name, MARKED);
        return NULL;
}

static int resolve(const Image *image, const char *site, ElfSite *ret, char **ret_error) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;

        assert_ok(elf_file_open(image->path, &elf, NULL));
        return elf_file_resolve(elf, site, ret, ret_error);
}

static void assert_refused(const Image *image, const char *site, int error, const char *words) {
        _cleanup_free_ char *sentence = NULL;
        ElfSite found = {};

        assert_int_equal(resolve(image, site, &found, &sentence), error);
        if (!strstr(sentence, words))
                fail_msg("'%s' is not in: %s", words, sentence);
        assert_null(found.places);
}

/* The lines of readelf that say where a probe of that name is, and its semaphore. */
static size_t ask_readelf(const char *name, uint64_t places[], uint64_t *ret_semaphore) {
        FILE *readelf = popen("readelf -nW " MARKED, "re");
        _cleanup_free_ char *line = NULL;
        bool is_it = false;
        size_t n = 0, size = 0;
        char found[64];

        assert_non_null(readelf);
        while (getline(&line, &size, readelf) > 0) {
                unsigned long location, base, semaphore;

                if (sscanf(line, " Name: %63s", found) == 1)
                        is_it = streq(found, name);
                if (is_it && sscanf(line, " Location: %lx, Base: %lx, Semaphore: %lx", &location,
                                    &base, &semaphore) == 3) {
                        places[n++] = location;
                        *ret_semaphore = semaphore;
                }
        }
        assert_ok(pclose(readelf));
        return n;
}

static uint64_t to_offset(const Image *image, uint64_t address) {
        const Elf64_Ehdr *header = (const void *) image->data;
        const Elf64_Phdr *segments = (const void *) (image->data + header->e_phoff);

        for (size_t i = 0; i < header->e_phnum; i++)
                if (segments[i].p_type == PT_LOAD && address >= segments[i].p_vaddr &&
                    address - segments[i].p_vaddr < segments[i].p_filesz)
                        return address - segments[i].p_vaddr + segments[i].p_offset;
        fail_msg("0x%lx is nowhere.", (unsigned long) address);
        return 0;
}

static void assert_as_readelf(const Image *image, const char *name, size_t n_least) {
        _cleanup_(elf_site_done) ElfSite site = {};
        uint64_t places[16], semaphore = 0;
        size_t n = ask_readelf(name, places, &semaphore);
        char text[64];

        (void) snprintf(text, sizeof(text), "usdt:tlobtest:%s", name);
        assert_ok(resolve(image, text, &site, NULL));
        assert_true(n >= n_least);
        assert_int_equal(site.n_places, n);
        assert_int_equal(site.offset, site.places[0].offset);
        for (size_t i = 0; i < n; i++) {
                assert_true(elf_site_has(&site, to_offset(image, places[i])));
                assert_true(i == 0 || site.places[i - 1].offset < site.places[i].offset);
                assert_int_equal(site.places[i].semaphore,
                                 semaphore ? to_offset(image, semaphore) : 0);
        }
}

static void test_as_readelf(void **state) {
        assert_as_readelf(*state, "begin", 3);
        assert_as_readelf(*state, "end", 3);
        assert_as_readelf(*state, "bare_begin", 1);
        assert_as_readelf(*state, "bare_end", 1);
}

static void test_names(void **state) {
        assert_refused(*state, "usdt:tlobtest:begn", -ESRCH,
                       "No USDT probe 'tlobtest:begn' in /proc/self/fd/");
        assert_refused(*state, "usdt:tlobtest:begn", -ESRCH, "near names: tlobtest:begin");
        assert_refused(*state, "usdt:tlobtest:", -EINVAL, "write it as usdt:provider:name");
        assert_refused(*state, "usdt:begin", -EINVAL, "write it as usdt:provider:name");
        assert_refused(*state, "usdt::begin", -EINVAL, "write it as usdt:provider:name");
        assert_refused(*state, "usdt:xyzzy:plugh_42", -ESRCH,
                       "; those that are there: tlobctl functions ");
}

static void test_none(void **state) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_free_ char *sentence = NULL;
        ElfSite found = {};

        assert_ok(elf_file_open("/proc/self/exe", &elf, NULL));
        assert_int_equal(elf_file_resolve(elf, BEGIN, &found, &sentence), -ESRCH);
        assert_non_null(strstr(sentence, "There are no USDT probes in /proc/self/exe"));
}

static void test_list(void **state) {
        _cleanup_(elf_functions_done) ElfFunctions functions = {};
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        const Image *image = *state;
        size_t n = 0;

        assert_ok(elf_file_open(image->path, &elf, NULL));
        assert_ok(elf_file_list_functions(elf, &functions));
        for (size_t i = 0; i < functions.n; i++) {
                n += functions.items[i].is_usdt;
                assert_int_equal(functions.items[i].is_usdt,
                                 strncmp(functions.items[i].name, "usdt:", 5) == 0);
                assert_false(functions.items[i].is_usdt && functions.items[i].ambiguous);
        }
        assert_int_equal(n, 4);
}

/* A prelinker has moved the program: notes stay as they are, .stapsdt.base tells. */
static void test_moved(void **state) {
        _cleanup_(elf_site_done) ElfSite before = {}, after = {};
        Note *note = find_note(*state, "bare_begin");

        assert_ok(resolve(*state, "usdt:tlobtest:bare_begin", &before, NULL));
        note->place -= 0x100000;
        note->base -= 0x100000;
        assert_ok(resolve(*state, "usdt:tlobtest:bare_begin", &after, NULL));
        assert_int_equal(after.offset, before.offset);
}

/* The headers of folly and others note no base, whatever the file has. */
static void test_no_base(void **state) {
        _cleanup_(elf_site_done) ElfSite before = {}, after = {};
        Note *note = find_note(*state, "begin");

        assert_ok(resolve(*state, BEGIN, &before, NULL));
        note->base = 0;
        assert_ok(resolve(*state, BEGIN, &after, NULL));
        assert_int_equal(after.offset, before.offset);
        assert_int_equal(after.places[0].semaphore, before.places[0].semaphore);
}

static void test_semaphores_that_lie(void **state) {
        Note *note = find_note(*state, "begin");
        /* Odd, in the code, nowhere. */
        const uint64_t bad[] = { note->semaphore + 1, note->place, UINT64_MAX };

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                note->semaphore = bad[i];
                assert_refused(*state, BEGIN, -EOPNOTSUPP,
                               "has a semaphore that is not in the data of the file");
        }
}

static bool is_miscounted(const char *path, const char *site) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_(elf_site_done) ElfSite found = {};

        assert_ok(elf_file_open(path, &elf, NULL));
        assert_ok(elf_file_resolve(elf, site, &found, NULL));
        return found.is_miscounted;
}

static void test_semaphores_in_a_shared_page(void **state) {
        const Image *image = *state;
        const Elf64_Ehdr *header = (const void *) image->data;
        Elf64_Phdr *segments = (void *) (image->data + header->e_phoff), *data = NULL;

        assert_true(is_miscounted(MARKED_LLD, BEGIN));
        assert_true(is_miscounted(MARKED_LLD, END));
        assert_false(is_miscounted(MARKED_LLD, "usdt:tlobtest:bare_begin"));
        assert_false(is_miscounted(image->path, BEGIN));

        /* The segment before maps all that is up to the page of the semaphores, and then of it. */
        for (size_t i = 0; i < header->e_phnum; i++)
                if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_W))
                        data = &segments[i];
        assert_true(data && data > segments && data[-1].p_type == PT_LOAD);
        data[-1].p_filesz =
                (to_offset(image, find_note(image, "begin")->semaphore) & ~UINT64_C(4095)) -
                data[-1].p_offset;
        data[-1].p_flags |= PF_W;
        assert_false(is_miscounted(image->path, BEGIN));
        data[-1].p_filesz++;
        assert_true(is_miscounted(image->path, BEGIN));
        data[-1].p_flags &= ~(Elf64_Word) PF_W;
        assert_false(is_miscounted(image->path, BEGIN));
}

/* In the segment that has the code, but in no section: where the first one that is code ends. */
static uint64_t find_gap(const Image *image) {
        const Elf64_Ehdr *header = (const void *) image->data;
        const Elf64_Shdr *sections = (const void *) (image->data + header->e_shoff);

        for (size_t i = 0; i + 1 < header->e_shnum; i++)
                if ((sections[i].sh_flags & SHF_EXECINSTR) &&
                    sections[i].sh_addr + sections[i].sh_size < sections[i + 1].sh_addr)
                        return sections[i].sh_addr + sections[i].sh_size;
        fail_msg("All sections of %s touch each other.", MARKED);
        return 0;
}

/* What cannot be a probe is none. */
static void test_places_that_lie(void **state) {
        const uint64_t nowhere[] = { 0, UINT64_MAX, UINT64_C(1) << 40, find_gap(*state) };
        Note *note = find_note(*state, "bare_begin");

        for (size_t i = 0; i < ELEMENTSOF(nowhere); i++) {
                note->place = nowhere[i];
                assert_refused(*state, "usdt:tlobtest:bare_begin", -ESRCH, "near names:");
        }
}

static void test_names_that_lie(void **state) {
        char *name = find_note(*state, "bare_begin")->names;

        name[2] = '\x1b';
        assert_refused(*state, "usdt:tlobtest:bare_begin", -ESRCH, "near names:");
        /* To the end of the note, and beyond. */
        memset(name, 'x', strlen("tlobtest") + 1 + strlen("bare_begin") + 2);
        assert_refused(*state, "usdt:tlobtest:bare_begin", -ESRCH, "near names:");
}

static int resolve_pair(const Image *image, const char *start, const char *stop, Binding **ret,
                        char **ret_error) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        int r;

        assert_ok(binding_new("x", &binding));
        assert_ok(binding_set_key(binding, "Start", start, NULL));
        assert_ok(binding_set_key(binding, "Stop", stop, NULL));
        assert_ok(elf_file_open(image->path, &elf, NULL));
        r = binding_resolve_sites(binding, elf, &binding->resolved.sites, ret_error);
        if (r < 0)
                return r;
        binding_read_probes(binding, elf_file_fd(elf));
        *ret = TAKE_PTR(binding);
        return 0;
}

static void assert_no_pair(const Image *image, const char *start, const char *stop,
                           const char *words) {
        _cleanup_free_ char *error = NULL;
        Binding *binding;

        assert_true(resolve_pair(image, start, stop, &binding, &error) < 0);
        if (!strstr(error, words))
                fail_msg("'%s' is not in: %s", words, error);
}

static void test_bindings(void **state) {
        _cleanup_(binding_freep) Binding *binding = NULL;

        assert_ok(resolve_pair(*state, BEGIN, END, &binding, NULL));
        assert_true(binding_has_usdt(binding));
        assert_true(binding->resolved.sites.start.n_places > 1);
        assert_int_equal(binding->resolved.sites.how, TLOB_STOP_PLACE);
        assert_false(binding->resolved.sites.has_frame);
        assert_int_equal(binding->resolved.start_kind, PROBE_KIND_OF_NOP);
        assert_int_equal(binding->resolved.stop_kind, PROBE_KIND_OF_NOP);

        assert_no_pair(*state, BEGIN, BEGIN, "are the same place");
        assert_no_pair(*state, BEGIN, "return", "name the probe or the place");
        assert_int_equal(binding_set_key(binding, "Function", BEGIN, NULL), -EINVAL);
}

#ifdef __x86_64__

/* A note that leads into an instruction; or to a long nop, which is none of the probe's. */
static void test_instructions(void **state) {
        static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
        static const uint8_t nop_of_segment[] = { 0x2e, 0x90 };
        Note *note = find_note(*state, "bare_begin");
        const Image *image = *state;
        uint64_t offset = to_offset(image, note->place);

        assert_no_pair(*state, "usdt:tlobtest:bare_begin", "usdt:tlobtest:begi",
                       "near names: tlobtest:begin");
        memcpy(image->data + offset, nop5, sizeof(nop5));
        assert_no_pair(*state, "usdt:tlobtest:bare_begin", "usdt:tlobtest:end",
                       "is a 5-byte nop: Linux 6.18");
        memcpy(image->data + offset, nop_of_segment, sizeof(nop_of_segment));
        assert_no_pair(*state, "usdt:tlobtest:bare_begin", "usdt:tlobtest:end",
                       "that this kernel puts no probe on");
        memcpy(image->data + offset, nop5, sizeof(nop5));
        note->place++;
        assert_no_pair(*state, "usdt:tlobtest:bare_begin", "usdt:tlobtest:end",
                       "is wrong: it names a place inside the instruction");
}

#endif

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_as_readelf, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_none, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_list, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_moved, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_no_base, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_semaphores_that_lie, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_semaphores_in_a_shared_page, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_places_that_lie, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_names_that_lie, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_bindings, set_up, tear_down),
#ifdef __x86_64__
                cmocka_unit_test_setup_teardown(test_instructions, set_up, tear_down),
#endif
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
