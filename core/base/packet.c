/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Messages between processes of ours that run the same program: no names, no types, the byte order
 * of the machine. The other process may have been taken over by what it has read, so everything is
 * checked as it is taken out.
 */

#include "base/packet.h"

#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/sentence.h"

#define NO_STRING UINT64_MAX

void packet_init(Packet *packet) {
        packet->failed = false;
        packet->size = packet->position = 0;
}

static void put(Packet *packet, const void *data, size_t size) {
        if (size > sizeof(packet->data) - packet->size) {
                packet->failed = true;
                return;
        }
        if (size > 0)
                memcpy(packet->data + packet->size, data, size);
        packet->size += size;
}

void packet_put_number(Packet *packet, uint64_t number) {
        put(packet, &number, sizeof(number));
}

void packet_put_string(Packet *packet, const char *s) {
        packet_put_number(packet, s ? strlen(s) : NO_STRING);
        if (s)
                put(packet, s, strlen(s) + 1);
}

uint64_t packet_take_number(Packet *packet) {
        uint64_t number;

        if (packet->size - packet->position < sizeof(number)) {
                packet->failed = true;
                return 0;
        }
        memcpy(&number, packet->data + packet->position, sizeof(number));
        packet->position += sizeof(number);
        return number;
}

const char *packet_take_string(Packet *packet) {
        const char *s = (const char *) packet->data + packet->position + sizeof(uint64_t);
        uint64_t length = packet_take_number(packet);

        if (packet->failed || length == NO_STRING)
                return NULL;
        if (length >= packet->size - packet->position || s[length] != '\0' || strlen(s) != length) {
                packet->failed = true;
                return NULL;
        }
        packet->position += length + 1;
        return s;
}

const char *packet_take_text(Packet *packet) {
        const char *s = packet_take_string(packet);

        if (!s || text_is_printable(s))
                return s;
        packet->failed = true;
        return NULL;
}

bool packet_is_good(const Packet *packet) {
        return !packet->failed && (packet->position == 0 || packet->position == packet->size);
}

typedef union Control {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
} Control;

int packet_send(int socket_fd, const Packet *packet, int fd) {
        struct iovec data = { .iov_base = (void *) packet->data, .iov_len = packet->size };
        struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
        Control control = {};

        if (packet->failed)
                return -EMSGSIZE;
        if (fd >= 0) {
                control.header = (struct cmsghdr) {
                        .cmsg_level = SOL_SOCKET,
                        .cmsg_type = SCM_RIGHTS,
                        .cmsg_len = CMSG_LEN(sizeof(fd)),
                };
                memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
                message.msg_control = &control;
                message.msg_controllen = sizeof(control.space);
        }
        return TEMP_FAILURE_RETRY(sendmsg(socket_fd, &message, MSG_NOSIGNAL)) < 0 ? -errno : 0;
}

int packet_receive(int socket_fd, Packet *packet, int *ret_fd) {
        struct iovec data = { .iov_base = packet->data, .iov_len = sizeof(packet->data) };
        Control control = {};
        struct msghdr message = {
                .msg_iov = &data,
                .msg_iovlen = 1,
                .msg_control = &control,
                /* There is room for another one behind it, which nobody would close. */
                .msg_controllen = CMSG_LEN(sizeof(int)),
        };
        struct cmsghdr *header;
        ssize_t n;

        *ret_fd = -EBADF;
        packet_init(packet);
        n = TEMP_FAILURE_RETRY(recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC));
        if (n <= 0)
                return n < 0 ? -errno : 0;
        header = CMSG_FIRSTHDR(&message);
        if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
            header->cmsg_len == CMSG_LEN(sizeof(int)))
                memcpy(ret_fd, CMSG_DATA(header), sizeof(int));
        packet->size = (size_t) n;
        if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
                packet->failed = true;
        return 1;
}
