/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_PACKET_H
#define BASE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Numbers and strings in a row, to be sent to another process of ours over a SOCK_SEQPACKET, with a
 * file descriptor perhaps. They are taken out in the order in which they were put in. What does not
 * fit, and what is not there, is remembered: packet_is_good() tells once, at the end.
 */

#define PACKET_SIZE_MAX 65536

typedef struct Packet {
        bool failed;
        size_t size;
        size_t position; /* of what is taken next */
        uint8_t data[PACKET_SIZE_MAX];
} Packet;

/* An empty one. */
void packet_init(Packet *packet);

void packet_put_number(Packet *packet, uint64_t number);
void packet_put_string(Packet *packet, const char *s); /* NULL too */

/* 0 if it is not there. */
uint64_t packet_take_number(Packet *packet);

/* Owned by the packet; NULL if it is not there, or was NULL. */
const char *packet_take_string(Packet *packet);

/* The same of what is shown: whoever sent it, it is fit for that, or not there. */
const char *packet_take_text(Packet *packet);

/* Everything has fitted, or was there and nothing is left. */
bool packet_is_good(const Packet *packet);

/* fd: goes with it; negative: none. Returns 0 or a negative errno. */
int packet_send(int socket_fd, const Packet *packet, int fd);

/*
 * *ret_fd: the caller's, or -EBADF. Returns 1, 0 at the end of the connection, -EAGAIN, another
 * negative errno.
 */
int packet_receive(int socket_fd, Packet *packet, int *ret_fd);

#endif
