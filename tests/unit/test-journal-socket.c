/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A journald that does not read: nobody waits for it, what is kept is bounded, and the rest is
 * counted.
 */

#include <endian.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "journal-socket.h"
#include "temporary.h"
#include "test.h"

#define ENTRIES 20000

typedef struct Journald {
        Temporary tmp;
        char path[96];
        int fd;
} Journald;

static void journald_listen(Journald *journald) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        strncpy(address.sun_path, journald->path, sizeof(address.sun_path) - 1);
        journald->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(journald->fd >= 0);
        assert_int_equal(bind(journald->fd, &address, sizeof(address)), 0);
}

static int setup(void **state) {
        Journald *journald = calloc(1, sizeof(*journald));

        assert_non_null(journald);
        temporary_init(&journald->tmp);
        (void) snprintf(journald->path, sizeof(journald->path), "%s",
                        temporary_path(&journald->tmp, "socket"));
        journal_socket_set_path(journald->path);
        journald_listen(journald);
        *state = journald;
        return 0;
}

static int teardown(void **state) {
        Journald *journald = *state;

        journal_socket_set_path("/nonexistent");
        safe_close(journald->fd);
        temporary_done(&journald->tmp);
        free(journald);
        return 0;
}

static int send_number(unsigned i) {
        char text[600];
        struct iovec field = { .iov_base = text };

        field.iov_len = (size_t) snprintf(text, sizeof(text), "MESSAGE=%u %0500d", i, 0);
        return journal_socket_send(&field, 1);
}

/* Takes an entry of journald. Returns its number, or -1 if there is none. */
static int take_number(const Journald *journald) {
        char text[600] = {};
        unsigned i;

        if (recv(journald->fd, text, sizeof(text) - 1, 0) < 0)
                return -1;
        assert_int_equal(sscanf(text, "MESSAGE=%u ", &i), 1);
        assert_int_equal(text[strlen(text) - 1], '\n');
        return (int) i;
}

static void test_a_stalled_journald(void **state) {
        Journald *journald = *state;
        unsigned n_taken = 0, n_came = 0;
        int i, last = -1;

        /* Whoever waits here is ended by it. */
        (void) alarm(5);
        for (i = 0; i < ENTRIES; i++)
                n_taken += send_number((unsigned) i) == 0;
        (void) alarm(0);
        assert_in_range(journal_socket_pending(), 10000, 16000);
        assert_int_equal(n_taken + journal_socket_drops().stalled, ENTRIES);
        assert_int_equal(journal_socket_drops().refused, 0);

        /* It is back. */
        do {
                while ((i = take_number(journald)) >= 0) {
                        assert_int_equal(i, last + 1);
                        last = i;
                        n_came++;
                }
        } while (journal_socket_flush() > 0 || n_came < n_taken);
        assert_int_equal(n_came, n_taken);
        assert_int_equal(journal_socket_pending(), 0);
        assert_int_equal(send_number(ENTRIES), 0);
        assert_int_equal(take_number(journald), ENTRIES);
}

static void test_values_with_line_breaks(void **state) {
        static char message[] = "MESSAGE=one\ntwo", priority[] = "PRIORITY=3";
        const struct iovec fields[] = {
                { message, sizeof(message) - 1 },
                { priority, sizeof(priority) - 1 },
        };
        Journald *journald = *state;
        uint64_t length;
        char text[64];

        assert_int_equal(journal_socket_send(fields, ELEMENTSOF(fields)), 0);
        assert_int_equal(recv(journald->fd, text, sizeof(text), 0), 8 + 8 + 7 + 1 + 11);
        assert_memory_equal(text, "MESSAGE\n", 8);
        memcpy(&length, text + 8, sizeof(length));
        assert_int_equal(le64toh(length), 7);
        assert_memory_equal(text + 16, "one\ntwo\nPRIORITY=3\n", 19);
}

/* Nobody is there, in whichever way: who comes gets what was said meanwhile. */
static void test_no_journald(void **state) {
        Journald *journald = *state;

        safe_close(journald->fd);
        assert_int_equal(send_number(1), 0);
        assert_int_equal(unlink(journald->path), 0);
        assert_int_equal(send_number(2), 0);
        assert_int_equal(journal_socket_flush(), 2);
        journald_listen(journald);
        assert_int_equal(send_number(3), 0);
        assert_int_equal(journal_socket_pending(), 0);
        for (unsigned i = 1; i <= 3; i++)
                assert_int_equal(take_number(journald), i);
        assert_int_equal(journal_socket_drops().stalled, 0);
}

/* What may have been sent before says so, and only that. */
static void test_after_a_kill(void **state) {
        JournalQueue *queue = NULL, *next = NULL;
        Journald *journald = *state;
        char text[64];

        assert_ok(journal_queue_new(&queue));
        assert_ok(journal_queue_push(queue, "MESSAGE=1\n", 10));
        assert_ok(journal_queue_push(queue, "MESSAGE=2\n", 10));
        assert_false(journal_queue_begin(queue));
        assert_ok(journal_queue_inherit(dup(journal_queue_get_fd(queue)), &next));
        journal_socket_use(next);
        assert_int_equal(journal_socket_flush(), 0);
        assert_int_equal(recv(journald->fd, text, sizeof(text), 0), 26);
        assert_memory_equal(text, "MESSAGE=1\nTLOB_REPEATED=1\n", 26);
        assert_int_equal(recv(journald->fd, text, sizeof(text), 0), 10);
        journal_queue_free(queue);
}

/* What it will never take does not hold up the rest. */
static void test_an_entry_that_is_too_long(void **state) {
        _cleanup_free_ char *text = calloc(1, 4 << 20);
        const struct iovec field = { text, 4 << 20 };
        Journald *journald = *state;

        assert_non_null(text);
        memset(text, 'x', field.iov_len);
        assert_int_equal(journal_socket_send(&field, 1), -EMSGSIZE);
        assert_int_equal(journal_socket_drops().refused, 1);
        assert_int_equal(send_number(1), 0);
        assert_int_equal(take_number(journald), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_stalled_journald),
                TEST(test_values_with_line_breaks),
                TEST(test_no_journald),
                TEST(test_after_a_kill),
                TEST(test_an_entry_that_is_too_long),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
