/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * daemon/bpf/ring.c: every record once and whole, whatever its place in the buffer. The buffer is a
 * file in memory, with what is in it twice, as the kernel shows it.
 */

#include <linux/bpf.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "bpf/ring.h"
#include "test.h"

#define SIZE ((size_t) 16384) /* a power of two, and some pages */

typedef struct Buffer {
        int fd;
        char *memory;
        size_t page;
        size_t seen[8]; /* sizes of the records that came */
        size_t n;
        size_t n_max; /* enough for now */
        size_t n_repeated;
        bool produces_meanwhile; /* one record for each that comes */
        Ring ring;
} Buffer;

static unsigned long *produced(const Buffer *buffer) {
        return (unsigned long *) (buffer->memory + buffer->page);
}

static unsigned long *consumed(const Buffer *buffer) {
        return (unsigned long *) buffer->memory;
}

/* Both times that it lies there. */
static void write_at(const Buffer *buffer, size_t position, const void *from, size_t n) {
        char *data = buffer->memory + 2 * buffer->page;

        for (size_t i = 0; i < n; i++) {
                data[(position + i) % SIZE] = ((const char *) from)[i];
                data[(position + i) % SIZE + SIZE] = ((const char *) from)[i];
        }
}

/* All bytes of a record are its size. Returns where its header is. */
static size_t produce(const Buffer *buffer, size_t size, uint32_t bits) {
        size_t position = *produced(buffer);
        char data[SIZE];

        memset(data, (int) size, size);
        write_at(buffer, position, &(uint32_t) { (uint32_t) size | bits }, sizeof(uint32_t));
        write_at(buffer, position + BPF_RINGBUF_HDR_SZ, data, size);
        *produced(buffer) += (size + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
        return position;
}

static int on_record(void *userdata, const void *data, size_t size) {
        Buffer *buffer = userdata;

        assert_true(buffer->n < ELEMENTSOF(buffer->seen));
        for (size_t i = 0; i < size; i++)
                assert_int_equal(((const char *) data)[i], (char) size);
        buffer->seen[buffer->n++] = size;
        buffer->n_repeated += buffer->ring.is_repeated;
        if (buffer->produces_meanwhile)
                (void) produce(buffer, 1, 0);
        return buffer->n == buffer->n_max ? -ECANCELED : 0;
}

static int set_up(void **state) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE), size = 2 * page + 2 * SIZE;
        Buffer *buffer = calloc(1, sizeof(*buffer));

        assert_non_null(buffer);
        buffer->page = page;
        buffer->fd = memfd_create("ring", MFD_CLOEXEC);
        assert_true(buffer->fd >= 0);
        assert_ok(ftruncate(buffer->fd, (off_t) size));
        buffer->memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, buffer->fd, 0);
        assert_true(buffer->memory != MAP_FAILED);
        assert_ok(ring_init(&buffer->ring, buffer->fd, SIZE, on_record, buffer));
        *state = buffer;
        return 0;
}

static int tear_down(void **state) {
        Buffer *buffer = *state;

        ring_done(&buffer->ring);
        (void) munmap(buffer->memory, 2 * buffer->page + 2 * SIZE);
        safe_close(buffer->fd);
        free(buffer);
        return 0;
}

static void test_empty(void **state) {
        Buffer *buffer = *state;

        assert_ok(ring_consume(&buffer->ring));
        assert_int_equal(buffer->n, 0);
}

static void test_in_their_order(void **state) {
        Buffer *buffer = *state;

        (void) produce(buffer, 5, 0);
        (void) produce(buffer, 8, 0);
        (void) produce(buffer, 6, BPF_RINGBUF_DISCARD_BIT);
        (void) produce(buffer, 7, 0);
        assert_ok(ring_consume(&buffer->ring));
        assert_int_equal(buffer->n, 3);
        assert_int_equal(buffer->seen[0], 5);
        assert_int_equal(buffer->seen[1], 8);
        assert_int_equal(buffer->seen[2], 7);
        assert_int_equal(*consumed(buffer), *produced(buffer));
}

static void test_across_the_end(void **state) {
        Buffer *buffer = *state;

        *produced(buffer) = *consumed(buffer) = 3 * SIZE - 24;
        (void) produce(buffer, 100, 0);
        (void) produce(buffer, 5000, 0);
        assert_ok(ring_consume(&buffer->ring));
        assert_int_equal(buffer->n, 2);
        assert_int_equal(buffer->seen[1], 5000);
        assert_int_equal(*consumed(buffer), *produced(buffer));
}

static void test_full(void **state) {
        Buffer *buffer = *state;

        *produced(buffer) = *consumed(buffer) = SIZE - 8;
        (void) produce(buffer, SIZE - 8, 0);
        assert_ok(ring_consume(&buffer->ring));
        assert_int_equal(buffer->n, 1);
        assert_int_equal(buffer->seen[0], SIZE - 8);
}

/* A process that is killed in the handler has not taken the record off; the next one is told. */
static void test_who_is_killed(void **state) {
        Buffer *buffer = *state;
        unsigned long position;
        uint32_t taking = 0;

        ring_note_taking(&buffer->ring, &taking);
        (void) produce(buffer, 5, 0);
        position = *consumed(buffer);
        assert_ok(ring_consume(&buffer->ring));
        assert_int_equal(buffer->n_repeated, 0);

        /* Killed when it was off. */
        ring_note_taking(&buffer->ring, &taking);
        (void) produce(buffer, 6, 0);
        assert_ok(ring_consume(&buffer->ring));
        assert_int_equal(buffer->n_repeated, 0);

        /* Before that. */
        *consumed(buffer) = position;
        taking = (uint32_t) position | 1;
        ring_note_taking(&buffer->ring, &taking);
        assert_ok(ring_consume(&buffer->ring));
        assert_int_equal(buffer->n, 4);
        assert_int_equal(buffer->n_repeated, 1);
}

static void test_not_written_yet(void **state) {
        Buffer *buffer = *state;
        size_t position;

        (void) produce(buffer, 1, 0);
        position = produce(buffer, 2, BPF_RINGBUF_BUSY_BIT);
        (void) produce(buffer, 3, 0);
        assert_ok(ring_consume(&buffer->ring));
        assert_int_equal(buffer->n, 1);
        assert_int_equal(*consumed(buffer), position);

        write_at(buffer, position, &(uint32_t) { 2 }, sizeof(uint32_t));
        assert_ok(ring_consume(&buffer->ring));
        assert_int_equal(buffer->n, 3);
}

static void test_enough(void **state) {
        Buffer *buffer = *state;
        size_t third;

        buffer->n_max = 2;
        (void) produce(buffer, 1, 0);
        (void) produce(buffer, 2, 0);
        third = produce(buffer, 3, 0);
        assert_int_equal(ring_consume(&buffer->ring), -ECANCELED);
        assert_int_equal(buffer->n, 2);
        assert_int_equal(*consumed(buffer), third);

        assert_ok(ring_consume(&buffer->ring));
        assert_int_equal(buffer->n, 3);
        assert_int_equal(buffer->seen[2], 3);
}

static void test_never_empty(void **state) {
        Buffer *buffer = *state;

        buffer->produces_meanwhile = true;
        (void) produce(buffer, 1, 0);
        (void) produce(buffer, 1, 0);
        assert_ok(ring_consume(&buffer->ring));
        assert_int_equal(buffer->n, 2);
        assert_ok(ring_consume(&buffer->ring));
        assert_int_equal(buffer->n, 4);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_empty, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_in_their_order, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_across_the_end, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_full, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_who_is_killed, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_not_written_yet, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_enough, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_never_empty, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
