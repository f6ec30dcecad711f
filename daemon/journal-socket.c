/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * sd_journal_send() waits for as long as journald does not read, and libsystemd has no way to tell
 * it not to: in the very stall of a disk that is to be reported, the daemon would stand still with
 * its journal. So the entries are written here, in journald's native protocol
 * (https://systemd.io/JOURNAL_NATIVE_PROTOCOL): one datagram an entry, one field a line, or where
 * the value has a line break in it, its length as 64 bits, little-endian, before it.
 *
 * What journald does not take, also when it is not there, is queued, as far as there is room, and
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

/* A field of tlobd(8), for what may have been sent before. */
#define REPEATED "TLOB_REPEATED=1\n"

typedef struct Datagram {
        size_t size;
        char bytes[];
} Datagram;

static struct {
        const char *path;
        int fd;
        JournalQueue *queue; /* NULL: nothing was ever queued */
        JournalSocketDrops drops;
} journal = { .path = "/run/systemd/journal/socket", .fd = -EBADF };

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
        return datagram;
}

/* It does not read, or it is not there: it may have crashed, or not have begun yet. */
static bool may_take_it_later(int error) {
        return error == EAGAIN || error == ENOBUFS || error == ECONNREFUSED || error == ENOENT;
}

/* Returns 0, -EAGAIN if journald does not take it now, or another negative errno. */
static int send_bytes(const void *bytes, size_t size, bool repeated) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct iovec parts[] = {
                { (void *) bytes, size },
                { (void *) REPEATED, strlen(REPEATED) },
        };
        const struct msghdr message = {
                .msg_name = &address,
                .msg_namelen = sizeof(address),
                .msg_iov = parts,
                .msg_iovlen = repeated ? 2 : 1,
        };

        if (journal.fd < 0)
                journal.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (journal.fd < 0)
                return -errno;
        strncpy(address.sun_path, journal.path, sizeof(address.sun_path) - 1);
        if (sendmsg(journal.fd, &message, MSG_NOSIGNAL) >= 0)
                return 0;
        return may_take_it_later(errno) ? -EAGAIN : -errno;
}

static int enqueue(const void *bytes, size_t size) {
        int r = 0;

        if (!journal.queue)
                r = journal_queue_new(&journal.queue);
        if (r >= 0)
                r = journal_queue_push(journal.queue, bytes, size);
        if (r < 0)
                journal.drops.stalled++;
        return r;
}

int journal_socket_send(const struct iovec *fields, size_t n) {
        _cleanup_free_ Datagram *datagram = NULL;
        int r;

        datagram = datagram_new(fields, n);
        if (!datagram)
                return -ENOMEM;

        /* In their order: what is queued goes first. */
        r = -EAGAIN;
        if (journal_socket_flush() == 0)
                r = send_bytes(datagram->bytes, datagram->size, false);
        if (r == -EAGAIN)
                return enqueue(datagram->bytes, datagram->size);
        if (r < 0)
                journal.drops.refused++;
        return r;
}

size_t journal_socket_flush(void) {
        const void *bytes;
        size_t size;

        while (journal.queue && journal_queue_first(journal.queue, &bytes, &size)) {
                bool repeated = journal_queue_begin(journal.queue);
                int r = send_bytes(bytes, size, repeated);

                if (r != -EAGAIN)
                        journal_queue_pop(journal.queue);
                journal_queue_end(journal.queue);
                if (r == -EAGAIN)
                        break;
                if (r < 0)
                        journal.drops.refused++;
        }
        return journal_socket_pending();
}

size_t journal_socket_pending(void) {
        return journal.queue ? journal_queue_count(journal.queue) : 0;
}

JournalSocketDrops journal_socket_drops(void) {
        return journal.drops;
}

void journal_socket_use(JournalQueue *queue) {
        _cleanup_(journal_queue_freep) JournalQueue *before = journal.queue;
        const void *bytes;
        size_t size;

        journal.queue = queue;
        while (before && journal_queue_first(before, &bytes, &size)) {
                (void) enqueue(bytes, size);
                journal_queue_pop(before);
        }
}

void journal_socket_set_path(const char *path) {
        journal.queue = journal_queue_free(journal.queue);
        journal.fd = safe_close(journal.fd);
        journal.path = path;
        journal.drops = (JournalSocketDrops) {};
}
