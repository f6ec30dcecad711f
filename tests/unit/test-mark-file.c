/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Files of marks, as libtlob-mark.so writes them: which names they can have, that tlobd finds the
 * marks as it finds those of programs, and that their functions come to the nops when somebody
 * listens, and not otherwise.
 */

#include "tlob-mark-file.h"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>

#include "elf/functions.h"
#include "elf/mark.h"
#include "elf/usdt.h"
#include "resolved-mark.h"
#include "temporary.h"
#include "test.h"

#define LONGEST 128
#define KEY     0x123456789abcdef0UL

static Temporary tmp;

static const char *write_file(const char *const names[], size_t n) {
        const char *path = temporary_path(&tmp, "marks.so");

        assert_ok(tlob_mark_file_write(path, names, n, NULL));
        return path;
}

static void assert_refused(const char *first, const char *second, size_t expected) {
        const char *const names[] = { first, second };
        const char *path = temporary_path(&tmp, "refused.so");
        size_t wrong = 42;

        assert_int_equal(tlob_mark_file_write(path, names, 2, &wrong), -EINVAL);
        assert_int_equal(wrong, expected);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(tlob_mark_file_write(path, names, 2, NULL), -EINVAL);
}

static void test_names(void **state) {
        static const char *const bad[] = {
                "",           "2nd",
                "a-b",        "a b",
                "a.b",        "\xc3\xa9t\xc3\xa9",
                ":key",       "a:",
                "a:keys",     "a:Key",
                "a:key:key",  "a\nb",
                "a/b",        "../../etc/passwd",
                "a\"",        "%n",
                " a",         "a ",
                "a__begin()", "\177ELF",
        };
        char longest[LONGEST + sizeof(":key") + 1];

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                assert_refused("good", bad[i], 1);
                assert_refused(bad[i], "good", 0);
        }
        assert_refused("twice", "twice", 1);
        assert_refused("twice", "twice:key", 1);
        memset(longest, 'x', sizeof(longest));
        strcpy(longest + LONGEST + 1, ":key");
        assert_refused(longest, "good", 0);
        longest[LONGEST + 1] = '\0';
        assert_refused(longest, "good", 0);
        assert_false(mark_name_is_valid(longest));
        strcpy(longest + LONGEST, ":key");
        write_file((const char *const[]) { longest }, 1);
}

static void test_paths(void **state) {
        static const char *const names[] = { "a" };
        char path[5000];

        assert_int_equal(tlob_mark_file_write("/nonexistent/marks.so", names, 1, NULL), -ENOENT);
        assert_int_equal(tlob_mark_file_write("/dev/null/marks.so", names, 1, NULL), -ENOTDIR);
        memset(path, 'x', sizeof(path) - 1);
        path[sizeof(path) - 1] = '\0';
        assert_int_equal(tlob_mark_file_write(path, names, 1, NULL), -ENAMETOOLONG);
}

/* Returns its semaphore. */
static uint64_t check_mark(const char *path, const char *mark, bool has_key) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        const BindingSites *sites;

        mark_resolve(path, mark, &binding);
        sites = &binding->resolved.sites;
        assert_int_equal(sites->how, TLOB_STOP_PLACE);
        assert_false(sites->has_frame);
        assert_int_equal(binding->resolved.start_kind, PROBE_KIND_OF_NOP);
        assert_int_equal(binding->resolved.stop_kind, PROBE_KIND_OF_NOP);
        assert_int_equal(sites->start.n_places, 1);
        assert_int_equal(sites->stop.n_places, 1);
        assert_int_equal(sites->start.places[0].semaphore, sites->stop.places[0].semaphore);
        assert_int_not_equal(sites->start.offset, sites->stop.offset);
        assert_ok(elf_file_open(path, &elf, NULL));
        assert_int_equal(elf_file_usdt_has_arguments(elf, binding->start), has_key);
        assert_int_equal(elf_file_usdt_has_arguments(elf, binding->stop), has_key);
        return sites->start.places[0].semaphore;
}

static void test_found(void **state) {
        static const char *const names[] = { "handler", "query:key", "_3" };
        const char *path = write_file(names, ELEMENTSOF(names));
        uint64_t handler, query;

        handler = check_mark(path, "handler", false);
        query = check_mark(path, "query", true);
        assert_true(handler > 0 && query > 0 && handler != query);
        assert_true(check_mark(path, "_3", false) > 0);
}

/* readelf complains about what is not as it should be. */
static void test_form(void **state) {
        static const char *const names[] = { "handler", "query:key" };
        _cleanup_free_ char *command = NULL;
        FILE *readelf;

        assert_true(asprintf(&command, "readelf -aW --lint '%s' 2>&1 >/dev/null",
                             write_file(names, ELEMENTSOF(names))) > 0);
        readelf = popen(command, "re");
        assert_non_null(readelf);
        assert_int_equal(fgetc(readelf), EOF);
        assert_ok(pclose(readelf));
}

static void test_empty(void **state) {
        const char *path = write_file(NULL, 0);
        void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);

        assert_non_null(file);
        assert_null(dlsym(file, "tlob_begin_a"));
        (void) dlclose(file);
}

static void test_many(void **state) {
        static char texts[TLOB_MARK_FILE_NAMES_MAX + 1][LONGEST + 1];
        static const char *names[TLOB_MARK_FILE_NAMES_MAX + 1];
        const char *path = temporary_path(&tmp, "many.so"), *last;
        char symbol[LONGEST + 16];
        size_t wrong = 42;
        void *file;

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                (void) snprintf(texts[i], sizeof(texts[i]), "m%0*zu", LONGEST - 1, i);
                names[i] = texts[i];
        }
        assert_int_equal(tlob_mark_file_write(path, names, ELEMENTSOF(names), &wrong), -E2BIG);
        assert_int_equal(wrong, ELEMENTSOF(names));
        assert_ok(tlob_mark_file_write(path, names, TLOB_MARK_FILE_NAMES_MAX, &wrong));
        last = names[TLOB_MARK_FILE_NAMES_MAX - 1];
        (void) check_mark(path, last, false);
        file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(file);
        (void) snprintf(symbol, sizeof(symbol), "tlob_begin_%s", last);
        assert_non_null(dlsym(file, symbol));
        (void) dlclose(file);
}

static void test_replaced(void **state) {
        static const char *const names[] = { "handler", "query:key" };
        _cleanup_free_ char *path = strdup(write_file(names, 1));
        struct stat before, same, after;

        assert_non_null(path);
        assert_ok(stat(path, &before));
        assert_int_equal(before.st_mode & 07777, 0644);
        assert_ok(stat(write_file(names, 1), &same));
        assert_int_equal(before.st_ino, same.st_ino);
        assert_int_equal(before.st_mtim.tv_nsec, same.st_mtim.tv_nsec);

        /* What programs have loaded is not written to. */
        assert_ok(link(path, temporary_path(&tmp, "linked.so")));
        assert_ok(stat(write_file(names, 2), &after));
        assert_int_not_equal(before.st_ino, after.st_ino);
        assert_ok(stat(temporary_path(&tmp, "linked.so"), &same));
        assert_int_equal(same.st_size, before.st_size);
}

#ifdef __x86_64__

static volatile sig_atomic_t n_traps;
static volatile unsigned long key_seen;

static void on_trap(int number, siginfo_t *info, void *context) {
        const ucontext_t *user = context;

        n_traps++;
        key_seen = (unsigned long) user->uc_mcontext.gregs[REG_RDI];
}

/* In place of the nop, as a probe would be. */
static void put_trap(const struct link_map *map, uint64_t offset) {
        char *at = (char *) map->l_addr + offset;
        char *page = (char *) ((uintptr_t) at & ~0xfffUL);

        assert_ok(mprotect(page, 0x1000, PROT_READ | PROT_WRITE | PROT_EXEC));
        assert_int_equal(*at, (char) 0x90);
        *at = (char) 0xcc;
}

static void assert_passed(void (*function)(unsigned long key), unsigned short *listeners) {
        n_traps = 0;
        function(KEY);
        assert_int_equal(n_traps, 0);
        *listeners = 1;
        function(KEY);
        assert_int_equal(n_traps, 1);
        assert_int_equal(key_seen, KEY);
        *listeners = 0;
        function(KEY);
        assert_int_equal(n_traps, 1);
}

static void check_functions(const char *path, const char *mark, const char *const symbols[2]) {
        void (*function[2])(unsigned long key);
        _cleanup_(binding_freep) Binding *binding = NULL;
        char object[64];
        struct link_map *map;
        void *file;

        mark_resolve(path, mark, &binding);
        file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(file);
        assert_ok(dlinfo(file, RTLD_DI_LINKMAP, &map));
        (void) snprintf(object, sizeof(object), "tlob_mark_%s", mark);
        assert_ptr_equal(dlsym(file, object),
                         (char *) map->l_addr + binding->resolved.sites.start.places[0].semaphore);
        put_trap(map, binding->resolved.sites.start.offset);
        put_trap(map, binding->resolved.sites.stop.offset);
        for (size_t i = 0; i < 2; i++) {
                *(void **) &function[i] = dlsym(file, symbols[i]);
                assert_non_null(*(void **) &function[i]);
                assert_passed(function[i], dlsym(file, object));
        }
        (void) dlclose(file);
}

static void test_functions(void **state) {
        static const char *const names[] = { "first", "handler", "query:key" };
        const struct sigaction trap = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
        const char *path = write_file(names, ELEMENTSOF(names));
        struct sigaction before;

        assert_ok(sigaction(SIGTRAP, &trap, &before));
        check_functions(path, "handler",
                        (const char *const[]) { "tlob_begin_handler", "tlob_end_handler" });
        check_functions(path, "query",
                        (const char *const[]) { "tlob_begin_key_query", "tlob_end_key_query" });
        assert_ok(sigaction(SIGTRAP, &before, NULL));
}

#endif

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),     cmocka_unit_test(test_paths),
                cmocka_unit_test(test_found),     cmocka_unit_test(test_form),
                cmocka_unit_test(test_empty),     cmocka_unit_test(test_many),
                cmocka_unit_test(test_replaced),
#ifdef __x86_64__
                cmocka_unit_test(test_functions),
#endif
        };
        int r;

        temporary_init(&tmp);
        r = cmocka_run_group_tests(tests, NULL, NULL);
        temporary_done(&tmp);
        return r;
}
