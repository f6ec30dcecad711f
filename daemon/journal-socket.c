/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * sd_journal_send() waits for as long as journald does not read, and libsystemd has no way to tell
 * it not to: in the very stall of a disk that is to be reported, the daemon would stand still with
 * its journal. So the entries are written here, in journald's native protocol
 * (https://systemd.io/JOURNAL_NATIVE_PROTOCOL): one datagram an entry, one field a line, or where
 * the value has a line break in it, its length as 64 bits, little-endian, before it.
 *
 * What journald does not take, also when it is not there, is queued, up to QUEUE_MAX bytes, and
 * sent when somebody calls journal_socket_flush(): nobody waits here, and there is no event loop.
 * Entries too long for a datagram, which would have to be sent as a file descriptor, are refused:
 * none of ours comes near.
 */

#include "journal-socket.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"

#define QUEUE_MAX (1 << 20)

typedef struct Datagram {
        struct Datagram *next;
        size_t size;
        char bytes[];
} Datagram;

static struct {
        const char *path;
        int fd;
        Datagram *first;
        Datagram **end;
        size_t n;
        size_t bytes;
        JournalSocketDrops drops;
} journal = { .path = "/run/systemd/journal/socket", .fd = -EBADF, .end = &journal.first };

/* The most that a field takes: its bytes, a length, two line breaks. */
static size_t fields_size(const struct iovec *fields, size_t n) {
        size_t size = 0;

        for (size_t i = 0; i < n; i++)
                size += fields[i].iov_len + sizeof(uint64_t) + 2;
        return size;
}

static char *append(char *p, const void *bytes, size_t n) {
        return (char *) memcpy(p, bytes, n) + n;
}

static char *append_field(char *p, const struct iovec *field) {
        const char *text = field->iov_base, *value;
        uint64_t length;

        value = memchr(text, '=', field->iov_len);
        if (!value || !memchr(value, '\n', field->iov_len - (size_t) (value - text)))
                return append(append(p, text, field->iov_len), "\n", 1);

        p = append(append(p, text, (size_t) (value - text)), "\n", 1);
        value++;
        length = field->iov_len - (size_t) (value - text);
        length = htole64(length);
        p = append(p, &length, sizeof(length));
        return append(append(p, value, le64toh(length)), "\n", 1);
}

static Datagram *datagram_new(const struct iovec *fields, size_t n) {
        Datagram *datagram;
        char *p;

        datagram = malloc(sizeof(*datagram) + fields_size(fields, n));
        if (!datagram)
                return NULL;
        p = datagram->bytes;
        for (size_t i = 0; i < n; i++)
                p = append_field(p, &fields[i]);
        datagram->size = (size_t) (p - datagram->bytes);
        datagram->next = NULL;
        return datagram;
}

/* It does not read, or it is not there: it may have crashed, or not have begun yet. */
static bool may_take_it_later(int error) {
        return error == EAGAIN || error == ENOBUFS || error == ECONNREFUSED || error == ENOENT;
}

/* Returns 0, -EAGAIN if journald does not take it now, or another negative errno. */
static int datagram_send(const Datagram *datagram) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        if (journal.fd < 0)
                journal.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (journal.fd < 0)
                return -errno;
        strncpy(address.sun_path, journal.path, sizeof(address.sun_path) - 1);
        if (sendto(journal.fd, datagram->bytes, datagram->size, MSG_NOSIGNAL, &address,
                   sizeof(address)) >= 0)
                return 0;
        return may_take_it_later(errno) ? -EAGAIN : -errno;
}

static int enqueue(Datagram *datagram) {
        if (journal.bytes + datagram->size > QUEUE_MAX) {
                journal.drops.stalled++;
                free(datagram);
                return -ENOBUFS;
        }
        *journal.end = datagram;
        journal.end = &datagram->next;
        journal.n++;
        journal.bytes += datagram->size;
        return 0;
}

static void dequeue(void) {
        Datagram *datagram = journal.first;

        journal.first = datagram->next;
        if (!journal.first)
                journal.end = &journal.first;
        journal.n--;
        journal.bytes -= datagram->size;
        free(datagram);
}

int journal_socket_send(const struct iovec *fields, size_t n) {
        Datagram *datagram;
        int r;

        datagram = datagram_new(fields, n);
        if (!datagram)
                return -ENOMEM;

        /* In their order: what is queued goes first. */
        r = journal_socket_flush() > 0 ? -EAGAIN : datagram_send(datagram);
        if (r == -EAGAIN)
                return enqueue(datagram);
        if (r < 0)
                journal.drops.refused++;
        free(datagram);
        return r;
}

size_t journal_socket_flush(void) {
        while (journal.first) {
                int r = datagram_send(journal.first);

                if (r == -EAGAIN)
                        break;
                if (r < 0)
                        journal.drops.refused++;
                dequeue();
        }
        return journal.n;
}

size_t journal_socket_pending(void) {
        return journal.n;
}

JournalSocketDrops journal_socket_drops(void) {
        return journal.drops;
}

void journal_socket_set_path(const char *path) {
        while (journal.first)
                dequeue();
        journal.fd = safe_close(journal.fd);
        journal.path = path;
        journal.drops = (JournalSocketDrops){};
}
