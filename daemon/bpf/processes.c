/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Reads what process.bpf.h writes. Its ring buffer is not that of the reports, which can be full
 * for as long as reports come faster than they are read. When it is full itself, the programs
 * count, and all processes are looked for: a round. What to do about a process is not decided here.
 *
 * From Linux 7.0 on, a program that is preempted is left out for others on its CPU, without a word:
 * where processes come and go, some are missed. So a round follows a second after the first of
 * them.
 */

#include "bpf/processes.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "bpf/iterator.h"

#define STOP (-ECANCELED) /* enough for now */
#define AT_ONCE_NS                                                                                 \
        5000000 /* each can take probes that are set, and the event loop has others to serve */

static void look_again_later(ProcessReader *reader) {
        static const struct itimerspec later = { .it_value.tv_sec = 1 };

        if (!reader->looks_again)
                reader->looks_again = timerfd_settime(reader->timer_fd, 0, &later, NULL) >= 0;
}

static int on_record(void *userdata, const void *data, size_t size) {
        const struct tlob_process_record *record = data;
        ProcessReader *reader = userdata;

        if (size >= sizeof(*record)) {
                /* A round tells of those that unwind, too: that is no reason for the next one. */
                if (record->event != TLOB_PROCESS_FOUND &&
                    !(reader->is_due && record->event == TLOB_PROCESS_UNWINDS))
                        look_again_later(reader);
                reader->handlers->on_process(record, reader->userdata);
        }
        return !reader->is_due && now_ns() >= reader->until_ns ? STOP : 0;
}

static int watch(const ProcessReader *reader, int fd) {
        struct epoll_event event = { .events = EPOLLIN };

        return epoll_ctl(reader->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int process_reader_init(ProcessReader *reader, int map_fd, size_t size,
                        const struct bpf_program *finder, const __u64 *n_lost,
                        const ProcessHandlers *handlers, void *userdata) {
        int r;

        *reader = (ProcessReader) {
                .finder = finder,
                .n_lost = n_lost,
                .handlers = handlers,
                .userdata = userdata,
        };
        reader->round_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        reader->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        reader->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (reader->round_fd < 0 || reader->epoll_fd < 0 || reader->timer_fd < 0)
                return -errno;
        r = ring_init(&reader->ring, map_fd, size, on_record, reader);
        if (r >= 0)
                r = watch(reader, reader->round_fd);
        if (r >= 0)
                r = watch(reader, reader->timer_fd);
        return r < 0 ? r : watch(reader, map_fd);
}

void process_reader_done(ProcessReader *reader) {
        ring_done(&reader->ring);
        if (reader->finder) {
                safe_close(reader->epoll_fd);
                safe_close(reader->round_fd);
                safe_close(reader->timer_fd);
        }
        *reader = (ProcessReader) {};
}

int process_reader_get_fd(const ProcessReader *reader) {
        return reader->epoll_fd;
}

void process_reader_request_round(ProcessReader *reader) {
        reader->is_due = true;
        (void) eventfd_write(reader->round_fd, 1);
}

static int consume(ProcessReader *reader) {
        int r;

        reader->until_ns = now_ns() + AT_ONCE_NS;
        r = ring_consume(&reader->ring);
        return r < 0 && r != STOP ? r : 0;
}

static bool has_lost(ProcessReader *reader) {
        uint64_t n_lost = __atomic_load_n(reader->n_lost, __ATOMIC_RELAXED);
        bool more = n_lost != reader->n_lost_before;

        reader->n_lost_before = n_lost;
        return more;
}

/* What the buffer holds is told first: it is older, and makes room. */
static int run_round(ProcessReader *reader) {
        eventfd_t nothing;
        int r;

        r = consume(reader);
        if (r < 0)
                return r;
        reader->handlers->on_begin_round(reader->userdata);
        r = iterator_run(reader->finder, NULL);
        if (r >= 0)
                r = consume(reader);
        if (r < 0)
                return r;
        reader->is_due = false;
        (void) eventfd_read(reader->round_fd, &nothing);
        /* Who was lost in the round is not gone. The next one can lose as many: not at once. */
        if (has_lost(reader))
                look_again_later(reader);
        else
                reader->handlers->on_end_round(reader->userdata);
        return 0;
}

int process_reader_run_due_round(ProcessReader *reader) {
        return reader->is_due ? run_round(reader) : 0;
}

static bool is_later(ProcessReader *reader) {
        uint64_t n;

        if (!reader->looks_again || read(reader->timer_fd, &n, sizeof(n)) != sizeof(n))
                return false;
        reader->looks_again = false;
        return true;
}

int process_reader_dispatch(ProcessReader *reader) {
        if (is_later(reader))
                process_reader_request_round(reader);
        if (has_lost(reader))
                process_reader_request_round(reader);
        return reader->is_due ? run_round(reader) : consume(reader);
}
