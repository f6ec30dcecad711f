/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* library.h: an ld.so.cache made by hand, whole and damaged; and the machine's own. */

#include "elf/library.h"

#include <fcntl.h>
#include <sys/sendfile.h>

#include "base/cleanup.h"
#include "elf/machine.h"
#include "temporary.h"
#include "test.h"

typedef struct Cache {
        char magic[20];
        uint32_t n, strings_size, reserved[5];
        struct {
                uint32_t flags, name, path, os_version;
                uint64_t hwcap;
        } entries[4];
        char strings[128];
} Cache;

static uint32_t add_string(Cache *cache, const char *s) {
        uint32_t at = cache->strings_size;

        cache->strings_size += (uint32_t) strlen(strcpy(cache->strings + at, s)) + 1;
        return (uint32_t) offsetof(Cache, strings) + at;
}

static void add_entry(Cache *cache, uint32_t flags, uint64_t hwcap, const char *name,
                      const char *path) {
        uint32_t i = cache->n++;

        cache->entries[i].flags = flags;
        cache->entries[i].hwcap = hwcap;
        cache->entries[i].name = add_string(cache, name);
        cache->entries[i].path = add_string(cache, path);
}

static void make_cache(Cache *cache) {
        *cache = (Cache) {};
        memcpy(cache->magic, "glibc-ld.so.cache1.1", sizeof(cache->magic));
        add_entry(cache, 0x0003, 0, "libx.so.1", "/lib/other/libx.so.1");
        add_entry(cache, MACHINE_CACHE_FLAGS, UINT64_C(1) << 62, "libx.so.1", "/lib/v3/libx.so.1");
        add_entry(cache, MACHINE_CACHE_FLAGS, 0, "libx.so.1", "/lib/libx.so.1");
        add_entry(cache, MACHINE_CACHE_FLAGS, 0, "liby.so", "liby.so");
}

static void test_lookup(void **state) {
        Cache cache;

        make_cache(&cache);
        assert_string_equal(library_cache_lookup(&cache, sizeof(cache), "libx.so.1"),
                            "/lib/libx.so.1");
        assert_null(library_cache_lookup(&cache, sizeof(cache), "libx.so"));
        assert_null(library_cache_lookup(&cache, sizeof(cache), "libx.so.10"));
        assert_null(library_cache_lookup(&cache, sizeof(cache), "liby.so"));
        assert_null(library_cache_lookup(&cache, sizeof(cache), ""));
}

static void test_damaged(void **state) {
        Cache cache;

        make_cache(&cache);
        for (size_t size = 0; size < sizeof(cache); size++) {
                _cleanup_free_ void *cut = malloc(size + 1);

                (void) library_cache_lookup(memcpy(cut, &cache, size), size, "libx.so.1");
        }

        cache.n = UINT32_MAX;
        assert_null(library_cache_lookup(&cache, sizeof(cache), "libx.so.1"));
        make_cache(&cache);
        cache.entries[2].path = UINT32_MAX;
        assert_null(library_cache_lookup(&cache, sizeof(cache), "libx.so.1"));
        cache.entries[2].name = sizeof(cache) - 2;
        assert_null(library_cache_lookup(&cache, sizeof(cache), "libx.so.1"));
        make_cache(&cache);
        cache.magic[18] = '2';
        assert_null(library_cache_lookup(&cache, sizeof(cache), "libx.so.1"));
}

static int copy_file(const char *from, const char *to) {
        _cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC), out = -EBADF;

        out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
        if (in < 0 || out < 0)
                return -errno;
        while (sendfile(out, in, NULL, 1 << 20) > 0)
                ;
        return 0;
}

static void test_near_names(void **state) {
        static const char *const wanted[] = { "libc", "libc.so", "libc.so.5", "LibC.so.6" };
        char *names;

        for (size_t i = 0; i < ELEMENTSOF(wanted); i++) {
                assert_ok(library_near_names(&ROOT_OWN, wanted[i], &names));
                assert_non_null(strstr(names, "libc.so.6"));
                free(names);
        }
        assert_ok(library_near_names(&ROOT_OWN, "no-such-thing-4711", &names));
        assert_string_equal(names, "");
        free(names);
}

static void test_find(void **state) {
        static const char *const missing[] = {
                "",        ".", "..", "/lib/libc.so.6", "../libc.so.6", "libno-such-thing.so.4711",
                "lib\n.so"
        };
        _cleanup_free_ char *path = NULL;
        char longest[1000];

        assert_ok(library_find("libc.so.6", NULL, &path));
        assert_int_equal(path[0], '/');
        assert_int_equal(access(path, R_OK), 0);

        for (size_t i = 0; i < ELEMENTSOF(missing); i++)
                assert_int_equal(library_find(missing[i], NULL, &path), -ENOENT);
        memset(longest, 'x', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        assert_int_equal(library_find(longest, NULL, &path), -ENOENT);
        assert_int_equal(path[0], '/');
}

/* As the loader for a program whose RUNPATH is "/nonexistent:$ORIGIN/private". */
static void test_run_path(void **state) {
        _cleanup_free_ char *libc = NULL, *path = NULL, *program = NULL;
        _cleanup_(temporary_done) Temporary tmp = {};

        temporary_init(&tmp);
        program = strdup(temporary_path(&tmp, "program"));
        assert_non_null(program);
        assert_ok(library_find("libc.so.6", NULL, &libc));
        temporary_write(&tmp, "private/none", "");
        assert_ok(copy_file(RUN_PATH_PROGRAM, program));
        assert_ok(symlink(libc, temporary_path(&tmp, "private/libprivate-of-test.so.1")));

        assert_int_equal(library_find("libprivate-of-test.so.1", NULL, &path), -ENOENT);
        assert_ok(library_find("libprivate-of-test.so.1", program, &path));
        assert_string_equal(path, libc);
        assert_int_equal(library_find("none", program, &path), -ENOENT);

        /* What is not there is found where all others find it. */
        free(TAKE_PTR(path));
        assert_ok(library_find("libc.so.6", program, &path));
        assert_string_equal(path, libc);
        assert_int_equal(library_find("libprivate-of-test.so.1", "/nonexistent", &path), -ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_near_names), cmocka_unit_test(test_lookup),
                cmocka_unit_test(test_damaged),    cmocka_unit_test(test_find),
                cmocka_unit_test(test_run_path),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
