/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Against a model: what goes in comes out, in its order, also by another process after a kill. */

#include "journal-queue.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "test.h"

#define LONGEST 5000

static char bytes[JOURNAL_QUEUE_SIZE];

/* What the datagram of that number is made of: lengths of all remainders, some none at all. */
static size_t make(unsigned number) {
        size_t size = (size_t) (number * 2654435761U) % LONGEST;

        memset(bytes, (int) (number % 251), size);
        if (size >= sizeof(number))
                memcpy(bytes, &number, sizeof(number));
        return size;
}

static void assert_first(const JournalQueue *queue, unsigned number) {
        const void *first;
        size_t size;

        assert_true(journal_queue_first(queue, &first, &size));
        assert_int_equal(size, make(number));
        assert_memory_equal(first, bytes, size);
}

static int push(JournalQueue *queue, unsigned number) {
        return journal_queue_push(queue, bytes, make(number));
}

static void test_as_a_model(void **state) {
        _cleanup_(journal_queue_freep) JournalQueue *queue = NULL;
        unsigned in = 0, out = 0;
        const void *first;
        size_t size;

        assert_ok(journal_queue_new(&queue));
        srand(1);
        for (unsigned i = 0; i < 200; i++) {
                unsigned most = (unsigned) rand() % 600;

                for (unsigned j = 0; j < most && push(queue, in) == 0; j++)
                        in++;
                most = (unsigned) rand() % 600;
                for (unsigned j = 0; j < most && out < in; j++, out++) {
                        assert_first(queue, out);
                        journal_queue_pop(queue);
                }
                assert_int_equal(journal_queue_count(queue), in - out);
        }
        while (out < in) {
                assert_first(queue, out++);
                journal_queue_pop(queue);
        }
        assert_false(journal_queue_first(queue, &first, &size));
}

static void test_full(void **state) {
        _cleanup_(journal_queue_freep) JournalQueue *queue = NULL;
        unsigned n = 0, more;

        assert_ok(journal_queue_new(&queue));
        assert_int_equal(journal_queue_push(queue, bytes, sizeof(bytes)), -ENOBUFS);
        assert_int_equal(journal_queue_push(queue, bytes, SIZE_MAX), -ENOBUFS);
        assert_int_equal(journal_queue_count(queue), 0);
        while (journal_queue_push(queue, bytes, 1000) == 0)
                n++;
        assert_in_range(n, 1000, JOURNAL_QUEUE_SIZE / 1000);
        journal_queue_pop(queue);
        journal_queue_pop(queue);
        for (more = 0; journal_queue_push(queue, bytes, 1000) == 0; more++)
                ;
        assert_in_range(more, 1, 2);
        assert_int_equal(journal_queue_count(queue), n - 2 + more);
}

static int copy_of(const JournalQueue *queue) {
        int fd = fcntl(journal_queue_get_fd(queue), F_DUPFD_CLOEXEC, 0);

        assert_true(fd >= 0);
        return fd;
}

/* Numbers in an unbroken row, in whichever state it is killed. */
static void __attribute__((noreturn)) work(JournalQueue *queue) {
        for (unsigned in = 0, out = 0;;) {
                while (in - out < 100 && push(queue, in) == 0)
                        in++;
                while (in - out > 3) {
                        journal_queue_pop(queue);
                        out++;
                }
        }
}

static void test_whoever_goes_on_after_a_kill(void **state) {
        for (unsigned i = 0; i < 100; i++) {
                _cleanup_(journal_queue_freep) JournalQueue *queue = NULL, *next = NULL;
                unsigned number, before = 0;
                const void *first;
                size_t size, n;
                int fd;
                pid_t pid;

                assert_ok(journal_queue_new(&queue));
                fd = copy_of(queue);
                pid = fork();
                assert_true(pid >= 0);
                if (pid == 0)
                        work(queue);
                (void) usleep(i * 50);
                (void) kill(pid, SIGKILL);
                assert_int_equal(waitpid(pid, NULL, 0), pid);

                assert_ok(journal_queue_inherit(fd, &next));
                n = journal_queue_count(next);
                assert_true(n <= 100);
                for (; journal_queue_first(next, &first, &size); journal_queue_pop(next), n--) {
                        if (size < sizeof(number))
                                continue;
                        memcpy(&number, first, sizeof(number));
                        assert_true(before == 0 || number > before);
                        assert_true(before == 0 || number - before < 10);
                        before = number;
                        assert_first(next, number);
                }
                assert_int_equal(n, 0);
                assert_ok(push(next, 7));
                assert_first(next, 7);
        }
}

/* Whoever is killed while it sends one leaves word; not so when it was taken, or was not. */
static void test_what_was_being_sent(void **state) {
        static const struct {
                bool begins, pops, ends, expected;
        } cases[] = {
                { true, false, false, true },
                { true, false, true, false },
                { true, true, false, false },
                { false, false, false, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases) * 2; i++) {
                _cleanup_(journal_queue_freep) JournalQueue *queue = NULL, *next = NULL;
                size_t n = i / ELEMENTSOF(cases) + 1;

                assert_ok(journal_queue_new(&queue));
                for (size_t j = 0; j < n; j++)
                        assert_ok(push(queue, 7));
                if (cases[i % 4].begins)
                        assert_false(journal_queue_begin(queue));
                if (cases[i % 4].pops)
                        journal_queue_pop(queue);
                if (cases[i % 4].ends)
                        journal_queue_end(queue);
                assert_ok(journal_queue_inherit(copy_of(queue), &next));
                assert_ok(push(next, 8));
                assert_int_equal(journal_queue_begin(next), cases[i % 4].expected);
                journal_queue_pop(next);
                journal_queue_end(next);
                assert_ok(push(next, 9));
                assert_false(journal_queue_begin(next));
        }
}

static void assert_not_taken(int fd) {
        JournalQueue *queue = NULL;

        assert_int_equal(journal_queue_inherit(fd, &queue), -ESTALE);
        assert_null(queue);
}

static int changed(const JournalQueue *queue, off_t offset, uint64_t word) {
        int fd = copy_of(queue);

        assert_int_equal(pwrite(fd, &word, sizeof(word), offset), sizeof(word));
        return fd;
}

static void test_what_is_none(void **state) {
        _cleanup_(journal_queue_freep) JournalQueue *queue = NULL;
        static const uint64_t positions[] = {
                UINT64_C(1) << 32,               /* no multiple of 8 */
                UINT64_C(8) << 32 | 16,          /* ends before it begins */
                UINT64_C(0x10000000) << 32,      /* larger than the ring */
                UINT64_C(24) << 32,              /* ends within a datagram */
                UINT64_C(0x100008) << 32 | 8,    /* begins within one */
                UINT64_C(0xfffffff8) << 32 | 16, /* everywhere */
        };
        int fd;

        assert_ok(journal_queue_new(&queue));
        assert_ok(journal_queue_push(queue, "0123456789abcdef012345", 22));
        for (size_t i = 0; i < ELEMENTSOF(positions); i++) {
                _cleanup_close_ int wrong = changed(queue, 8, positions[i]);

                assert_not_taken(wrong);
        }
        fd = changed(queue, 0, 1);
        assert_not_taken(fd);
        safe_close(fd);
        fd = memfd_create("not-sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        assert_not_taken(fd);
        assert_ok(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
        assert_not_taken(fd);
        safe_close(fd);
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_not_taken(fd);
        safe_close(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_as_a_model),
                cmocka_unit_test(test_full),
                cmocka_unit_test(test_whoever_goes_on_after_a_kill),
                cmocka_unit_test(test_what_was_being_sent),
                cmocka_unit_test(test_what_is_none),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
