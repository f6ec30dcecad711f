/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/packet.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "test.h"

static Packet packet, other;

static void test_in_order(void **state) {
        packet_init(&packet);
        packet_put_number(&packet, UINT64_MAX - 1);
        packet_put_string(&packet, "a string");
        packet_put_string(&packet, NULL);
        packet_put_string(&packet, "");
        assert_true(packet_is_good(&packet));

        assert_true(packet_take_number(&packet) == UINT64_MAX - 1);
        assert_false(packet_is_good(&packet));
        assert_string_equal(packet_take_string(&packet), "a string");
        assert_null(packet_take_string(&packet));
        assert_string_equal(packet_take_string(&packet), "");
        assert_true(packet_is_good(&packet));
        assert_int_equal(packet_take_number(&packet), 0);
        assert_false(packet_is_good(&packet));
}

/* However it is cut, nothing is read that is not there. */
static void test_cut_short(void **state) {
        packet_init(&other);
        packet_put_string(&other, "abc");
        packet_put_number(&other, 7);
        for (size_t size = 0; size < other.size; size++) {
                packet_init(&packet);
                memcpy(packet.data, other.data, size);
                packet.size = size;
                memset(packet.data + size, 0xff, 16);
                (void) packet_take_string(&packet);
                (void) packet_take_number(&packet);
                assert_false(packet_is_good(&packet));
        }
}

/* For what is shown, it is as if it were not there. */
static void test_no_text(void **state) {
        static const char *const strings[] = { "a\nb", "\xff", "\x1b[2J" };

        for (size_t i = 0; i < ELEMENTSOF(strings); i++) {
                packet_init(&packet);
                packet_put_string(&packet, strings[i]);
                assert_null(packet_take_text(&packet));
                assert_false(packet_is_good(&packet));
        }
        packet_init(&packet);
        packet_put_string(&packet, "text");
        packet_put_string(&packet, NULL);
        assert_string_equal(packet_take_text(&packet), "text");
        assert_null(packet_take_text(&packet));
        assert_true(packet_is_good(&packet));
}

static void test_strings_that_lie(void **state) {
        static const uint64_t lengths[] = { 0, 2, 4, 1000, UINT64_MAX - 1, INT64_MAX };

        for (size_t i = 0; i < ELEMENTSOF(lengths); i++) {
                packet_init(&packet);
                packet_put_string(&packet, "abc");
                memcpy(packet.data, &lengths[i], sizeof(lengths[i]));
                assert_null(packet_take_string(&packet));
                assert_false(packet_is_good(&packet));
        }
}

static void test_too_much(void **state) {
        packet_init(&packet);
        for (size_t i = 0; i < PACKET_SIZE_MAX / sizeof(uint64_t); i++)
                packet_put_number(&packet, i);
        assert_true(packet_is_good(&packet));
        packet_put_number(&packet, 0);
        assert_false(packet_is_good(&packet));
        assert_int_equal(packet.size, PACKET_SIZE_MAX);
        assert_int_equal(packet_send(-1, &packet, -1), -EMSGSIZE);
}

static void test_between_processes(void **state) {
        struct stat null, passed;
        int pair[2], fd, sent;

        assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
        sent = open("/dev/null", O_RDONLY | O_CLOEXEC);
        packet_init(&packet);
        packet_put_string(&packet, "with a file");
        assert_ok(packet_send(pair[0], &packet, sent));
        assert_ok(packet_send(pair[0], &packet, -1));

        assert_int_equal(packet_receive(pair[1], &other, &fd), 1);
        assert_string_equal(packet_take_string(&other), "with a file");
        assert_true(packet_is_good(&other));
        assert_ok(fstat(sent, &null));
        assert_ok(fstat(fd, &passed));
        assert_int_equal(null.st_rdev, passed.st_rdev);
        safe_close(fd);
        assert_int_equal(packet_receive(pair[1], &other, &fd), 1);
        assert_int_equal(fd, -EBADF);

        safe_close(pair[0]);
        assert_int_equal(packet_receive(pair[1], &other, &fd), 0);
        safe_close(pair[1]);
        safe_close(sent);
}

/* The next descriptor that would be made. */
static int next_descriptor(void) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0);
        safe_close(fd);
        return fd;
}

/* Who sends more than one leaves nothing here, and has not sent a packet. */
static void test_two_descriptors(void **state) {
        int pair[2], fd, before, sent[2];
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(sent))];
        } control = { .header = { .cmsg_level = SOL_SOCKET,
                                  .cmsg_type = SCM_RIGHTS,
                                  .cmsg_len = CMSG_LEN(sizeof(sent)) } };
        struct iovec data = { .iov_base = (void *) "x", .iov_len = 1 };
        const struct msghdr message = { .msg_iov = &data,
                                        .msg_iovlen = 1,
                                        .msg_control = &control,
                                        .msg_controllen = sizeof(control.space) };

        assert_ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair));
        sent[0] = sent[1] = pair[0];
        memcpy(CMSG_DATA(&control.header), sent, sizeof(sent));
        before = next_descriptor();
        assert_int_equal(sendmsg(pair[0], &message, 0), 1);
        assert_int_equal(packet_receive(pair[1], &other, &fd), 1);
        assert_false(packet_is_good(&other));
        safe_close(fd);
        assert_int_equal(next_descriptor(), before);
        safe_close(pair[0]);
        safe_close(pair[1]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_in_order),        cmocka_unit_test(test_cut_short),
                cmocka_unit_test(test_no_text),         cmocka_unit_test(test_strings_that_lie),
                cmocka_unit_test(test_too_much),        cmocka_unit_test(test_between_processes),
                cmocka_unit_test(test_two_descriptors),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
