/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * daemon/bpf/kept.c: what one daemon writes, the next one reads; and what no sound daemon of this
 * version has written, it does not look at.
 */

#include "bpf/kept.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "bpf/programs.h"
#include "temporary.h"
#include "test.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define FULL                                                                                       \
        (sizeof(KeptCommon) + 2 * (sizeof(KeptBinding) + 4 * sizeof(Histogram)) +                  \
         3 * sizeof(KeptUnit))

static const KeptFormat format = {
        .mode = DEADLINE_FENTRY,
        .programs = UINT64_C(0x123456789abcdef0),
        .bindings_max = 2,
        .tasks_max = 16,
        .ring_buffer_size = 65536,
        .stack_from_task = 1,
};

static Kept *make(uint32_t bindings_max) {
        KeptFormat other = format;
        Kept *kept = NULL;

        other.bindings_max = bindings_max;
        assert_ok(kept_new(&other, &kept));
        return kept;
}

/* What the next daemon makes of it; what it does not take stays open. */
static int inherit(int fd, Kept **ret) {
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3), r;

        assert_true(copy >= 0);
        r = kept_inherit(copy, ret);
        if (r < 0)
                assert_ok(close(copy));
        return r;
}

static void assert_refused(const Kept *kept) {
        Kept *next = NULL;

        assert_int_equal(inherit(kept->fd, &next), -ESTALE);
        assert_null(next);
}

static void assert_taken(const Kept *kept) {
        _cleanup_(kept_freep) Kept *next = NULL;

        assert_ok(inherit(kept->fd, &next));
}

static void test_round_trip(void **state) {
        _cleanup_(kept_freep) Kept *kept = make(2), *next = NULL;
        KeptFormat expected = format;

        kept->common->generation = 7;
        kept->common->site_generation[1] = 9;
        kept->bindings[1] = (KeptBinding) { .generation = 7, .name = "b", .unit = "x.service" };
        kept->bindings[1].places.stops = 0x1234;
        kept->bindings[1].base.starts = 5;
        kept->units[2] = (KeptUnit) { .name = "/x.service", .path = { "/x.service" } };
        assert_ok(inherit(kept->fd, &next));

        expected.version = kept->common->format.version;
        assert_memory_equal(&next->common->format, &expected, sizeof(expected));
        assert_int_equal(next->size, FULL);
        assert_int_equal(next->common->generation, 7);
        assert_int_equal(next->common->site_generation[1], 9);
        assert_memory_equal(next->bindings, kept->bindings, 2 * sizeof(KeptBinding));
        assert_memory_equal(next->units, kept->units, 3 * sizeof(KeptUnit));
        assert_string_equal(next->bindings[1].name, "b");
        assert_string_equal(next->units[2].path.path, "/x.service");
}

/* Whoever comes third finds what the second has written, whatever became of that one. */
static void test_is_one_memory(void **state) {
        _cleanup_(kept_freep) Kept *kept = make(2), *next = NULL, *last = NULL;

        assert_ok(inherit(kept->fd, &next));
        strcpy(next->units[2].name, "/last.service");
        next->common->is_complete = true;
        assert_ok(inherit(kept->fd, &last));
        assert_string_equal(last->units[2].name, "/last.service");
        assert_true(last->common->is_complete);
}

static void test_is_empty(void **state) {
        _cleanup_(kept_freep) Kept *kept = make(2);
        const uint8_t *bytes = (const uint8_t *) kept->common;

        assert_int_equal(kept->size, FULL);
        for (size_t i = sizeof(KeptFormat); i < kept->size; i++)
                assert_int_equal(bytes[i], 0);
}

static void test_version(void **state) {
        _cleanup_(kept_freep) Kept *kept = make(2);

        assert_taken(kept);
        kept->common->format.version++;
        assert_refused(kept);
        kept->common->format.version = 0;
        assert_refused(kept);
}

/* A header and as many bytes behind it as there are. */
static int make_file(const KeptFormat *header, size_t size, int seals) {
        int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, header, sizeof(*header)), sizeof(*header));
        assert_ok(ftruncate(fd, (off_t) size));
        assert_ok(fcntl(fd, F_ADD_SEALS, seals));
        return fd;
}

static int try_file(uint32_t bindings_max, size_t size, int seals) {
        _cleanup_(kept_freep) Kept *sound = make(2), *next = NULL;
        KeptFormat header = sound->common->format;
        _cleanup_close_ int fd = -EBADF;

        header.bindings_max = bindings_max;
        fd = make_file(&header, size, seals);
        return inherit(fd, &next);
}

static void test_size(void **state) {
        assert_ok(try_file(2, FULL, SEALS));
        assert_int_equal(try_file(2, FULL + 1, SEALS), -ESTALE);
        assert_int_equal(try_file(2, FULL - 1, SEALS), -ESTALE);
        assert_int_equal(try_file(2, sizeof(KeptCommon), SEALS), -ESTALE);
        assert_int_equal(try_file(2, sizeof(KeptCommon) - 1, SEALS), -ESTALE);
        assert_int_equal(try_file(2, sizeof(KeptFormat), SEALS), -ESTALE);
        assert_int_equal(try_file(2, 1, SEALS), -ESTALE);
        assert_int_equal(try_file(2, 0, SEALS), -ESTALE);
        assert_int_equal(try_file(1, FULL, SEALS), -ESTALE);
        assert_int_equal(try_file(3, FULL, SEALS), -ESTALE);
}

static void test_bindings_max(void **state) {
        _cleanup_(kept_freep) Kept *most = make(KEPT_BINDINGS_MAX);
        _cleanup_(kept_freep) Kept *too_many = make(KEPT_BINDINGS_MAX + 1);
        const size_t fixed = sizeof(KeptCommon) + sizeof(KeptUnit);

        assert_taken(most);
        assert_refused(too_many);
        assert_ok(try_file(0, fixed, SEALS));
        /* One more is none, and twice as many as there are of 32 bits. */
        assert_int_equal(try_file(UINT32_MAX, fixed, SEALS), -ESTALE);
        assert_int_equal(try_file(UINT32_MAX, FULL, SEALS), -ESTALE);
        assert_int_equal(try_file(UINT32_C(1) << 31, fixed, SEALS), -ESTALE);
}

/* Room for as many as there may be is no reason to fill it. */
static void test_holes_stay(void **state) {
        _cleanup_(kept_freep) Kept *kept = make(KEPT_BINDINGS_MAX), *next = NULL;
        struct stat before, after;

        strcpy(kept->units[KEPT_BINDINGS_MAX].name, "/last.service");
        assert_ok(fstat(kept->fd, &before));
        assert_ok(inherit(kept->fd, &next));
        assert_ok(fstat(kept->fd, &after));
        assert_int_equal(after.st_blocks, before.st_blocks);
}

/* Fills it up: refused. With a zero at the end, as all are, taken. */
static void check_string(const Kept *kept, char *string, size_t size) {
        memset(string, 'x', size);
        assert_refused(kept);
        string[size - 1] = '\0';
        assert_taken(kept);
}

static void test_unterminated(void **state) {
        _cleanup_(kept_freep) Kept *kept = make(20);

        for (size_t i = 0; i < 20; i++) {
                KeptBinding *binding = &kept->bindings[i];

                check_string(kept, binding->name, sizeof(binding->name));
                check_string(kept, binding->unit, sizeof(binding->unit));
                check_string(kept, binding->build_id, sizeof(binding->build_id));
                check_string(kept, binding->told_of, sizeof(binding->told_of));
                for (size_t j = 0; j < PAST_N_BUILDS; j++)
                        check_string(kept, binding->build_ids[j], sizeof(binding->build_ids[j]));
        }
        for (size_t i = 0; i < 21; i++) {
                KeptUnit *unit = &kept->units[i];

                check_string(kept, unit->name, sizeof(unit->name));
                check_string(kept, unit->path.path, sizeof(unit->path.path));
                check_string(kept, unit->spare_of.path, sizeof(unit->spare_of.path));
        }
}

/* There must be numbers left, and a bit of a cookie says something else. */
static void test_generations(void **state) {
        _cleanup_(kept_freep) Kept *kept = make(2);

        kept->common->generation = UINT64_MAX;
        assert_refused(kept);
        kept->common->generation = UINT32_MAX;
        assert_taken(kept);
        for (size_t i = 0; i < 2; i++) {
                kept->common->site_generation[i] = UINT32_C(1) << 31;
                assert_refused(kept);
                kept->common->site_generation[i] = 1 << 20;
                assert_taken(kept);
        }
}

/* Memory that could shrink would kill who reads it. */
static void test_size_stays(void **state) {
        _cleanup_(kept_freep) Kept *kept = make(2);

        assert_int_equal(ftruncate(kept->fd, 0), -1);
        assert_int_equal(errno, EPERM);
        assert_int_equal(ftruncate(kept->fd, 1 << 20), -1);
        assert_int_equal(errno, EPERM);
        assert_int_equal(try_file(2, FULL, 0), -ESTALE);
        assert_int_equal(try_file(2, FULL, F_SEAL_GROW), -ESTALE);
        assert_int_equal(try_file(2, FULL, F_SEAL_SHRINK | F_SEAL_GROW), -ESTALE);
}

static void test_other_file(void **state) {
        Temporary tmp;
        Kept *next = NULL;
        int fd, ends[2];

        temporary_init(&tmp);
        temporary_write(&tmp, "file", "text");
        fd = open(temporary_path(&tmp, "file"), O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(inherit(fd, &next), -ESTALE);
        (void) close(fd);
        fd = open(tmp.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(inherit(fd, &next), -ESTALE);
        (void) close(fd);
        temporary_done(&tmp);

        assert_ok(pipe(ends));
        assert_int_equal(inherit(ends[0], &next), -ESTALE);
        (void) close(ends[0]);
        (void) close(ends[1]);
        assert_int_equal(kept_inherit(-EBADF, &next), -ESTALE);
        assert_null(next);
}

static void test_fit(void **state) {
        const BackendConfig config = { .bindings_max = 2, .tasks_max = 16, .ring_buffer_size = 1 };
        const BpfPrograms programs = { .mode = DEADLINE_SWITCH_TICK };
        KeptFormat own, other;

        bpf_programs_get_format(&programs, &config, &own);
        assert_true(bpf_programs_fit(&own, &config));
        other = own;
        other.programs ^= 1;
        assert_true(bpf_programs_fit(&other, &config));
        other.layout ^= 1;
        assert_false(bpf_programs_fit(&other, &config));
        other.layout = 0;
        assert_false(bpf_programs_fit(&other, &config));
        other = own;
        other.bindings_max++;
        assert_false(bpf_programs_fit(&other, &config));
        other = own;
        other.tasks_max--;
        assert_false(bpf_programs_fit(&other, &config));
        other = own;
        other.ring_buffer_size += UINT64_C(1) << 32;
        assert_false(bpf_programs_fit(&other, &config));
        /* It is an index, too: of what the mode is called. */
        other = own;
        other.mode = DEADLINE_SWITCH_TICK + 1;
        assert_false(bpf_programs_fit(&other, &config));
        other.mode = UINT32_MAX;
        assert_false(bpf_programs_fit(&other, &config));
}

/* The figures are those of the authors of FNV-1a. */
static void test_hash(void **state) {
        assert_int_equal(kept_hash("", 0), UINT64_C(0xcbf29ce484222325));
        assert_int_equal(kept_hash("a", 1), UINT64_C(0xaf63dc4c8601ec8c));
        assert_int_equal(kept_hash("foobar", 6), UINT64_C(0x85944171f73967e8));
        assert_int_not_equal(kept_hash("\0", 1), kept_hash("\0\0", 2));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_is_one_memory),
                cmocka_unit_test(test_is_empty),    cmocka_unit_test(test_version),
                cmocka_unit_test(test_size),        cmocka_unit_test(test_bindings_max),
                cmocka_unit_test(test_holes_stay),  cmocka_unit_test(test_unterminated),
                cmocka_unit_test(test_generations), cmocka_unit_test(test_size_stays),
                cmocka_unit_test(test_other_file),  cmocka_unit_test(test_fit),
                cmocka_unit_test(test_hash),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
