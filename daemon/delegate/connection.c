/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "delegate/connection.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sentence.h"

#define ANSWER_USEC UINT64_C(15000000)

struct Told {
        Told *next;
        size_t size;
        uint8_t data[];
};

void connection_init(Connection *c) {
        c->fd = -EBADF;
        c->first = NULL;
        c->last = &c->first;
        packet_init(&c->packet);
}

void connection_close(Connection *c) {
        c->fd = safe_close(c->fd);
        while (c->first) {
                Told *told = c->first;

                c->first = told->next;
                free(told);
        }
        c->last = &c->first;
}

bool connection_has_told(const Connection *c) {
        return c->first;
}

static int lose(Connection *c, char **ret_error) {
        connection_close(c);
        return sentence_error(-ENOTCONN, ret_error,
                              "The system's tlobd has gone, or does not answer");
}

static int keep(Connection *c, const Packet *packet) {
        Told *told = malloc(sizeof(*told) + packet->size);

        if (!told)
                return -ENOMEM;
        told->next = NULL;
        told->size = packet->size;
        memcpy(told->data, packet->data, packet->size);
        *c->last = told;
        c->last = &told->next;
        return 0;
}

/* Returns 1, 0: nothing is there, or a negative errno. */
static int receive(const Connection *c, Packet *packet) {
        int unwanted, r;

        if (c->fd < 0)
                return -ENOTCONN;
        r = packet_receive(c->fd, packet, &unwanted);
        safe_close(unwanted);
        if (r == -EAGAIN || r == -EINTR)
                return 0;
        return r > 0 && !packet->failed ? 1 : -ENOTCONN;
}

/* What comes before the answer is kept. */
static int await_answer(Connection *c) {
        uint64_t end = now_usec() + ANSWER_USEC, now;
        int r;

        for (;;) {
                struct pollfd poll_fd = { .fd = c->fd, .events = POLLIN };

                r = receive(c, &c->packet);
                if (r < 0)
                        return r;
                if (r > 0 && packet_take_number(&c->packet) == WIRE_ANSWER)
                        return 0;
                if (r > 0) {
                        r = keep(c, &c->packet);
                        if (r < 0)
                                return r;
                        continue;
                }
                now = now_usec();
                if (now >= end)
                        return -ETIMEDOUT;
                (void) poll(&poll_fd, 1, (int) ((end - now) / 1000 + 1));
        }
}

void connection_begin(Connection *c, WireType type, uint64_t id) {
        packet_init(&c->packet);
        packet_put_number(&c->packet, type);
        packet_put_number(&c->packet, id);
}

int connection_ask(Connection *c, int fd, char **ret_error) {
        const char *sentence;
        uint64_t error;

        if (c->packet.failed)
                return sentence_error(-EMSGSIZE, ret_error, "Its keys are too long");
        if (packet_send(c->fd, &c->packet, fd) < 0 || await_answer(c) < 0)
                return lose(c, ret_error);
        error = packet_take_number(&c->packet);
        sentence = packet_take_text(&c->packet);
        if (c->packet.failed || error > 4095)
                return lose(c, ret_error);
        return error > 0 ? sentence_error(-(int) error, ret_error, "%s",
                                          sentence ?: strerror((int) error))
                         : 0;
}

int connection_open(Connection *c, const char *path, char **ret_error) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int r;

        connection_close(c);
        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        memcpy(address.sun_path, path, strlen(path));
        c->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (c->fd < 0)
                return -errno;
        if (connect(c->fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return lose(c, ret_error);
        connection_begin(c, WIRE_HELLO, WIRE_VERSION);
        r = connection_ask(c, -EBADF, ret_error);
        if (r < 0)
                connection_close(c);
        /* It still has to do with the one before. */
        return r == -EBUSY ? -ENOTCONN : r;
}

int connection_next(Connection *c, Packet *packet) {
        Told *told = c->first;
        int r;

        if (!told) {
                r = receive(c, packet);
                if (r < 0)
                        connection_close(c);
                return r;
        }
        packet_init(packet);
        memcpy(packet->data, told->data, told->size);
        packet->size = told->size;
        c->first = told->next;
        if (!c->first)
                c->last = &c->first;
        free(told);
        return 1;
}
