/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the system's tlobd is asked, and what it tells. Where it is not there it is looked for
 * again, and where it refuses, asked again: later and later.
 */

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "bus-packet.h"
#include "delegate/internal.h"
#include "own-program.h"

#define RETRY_USEC    1000000
#define AGAIN_SEC     5 /* what is not measured is asked for again, later and later */
#define AGAIN_SEC_MAX 60

/* 0: at once. */
static void set_timer(const DelegateBackend *b, uint64_t usec) {
        struct itimerspec timer = {
                .it_value.tv_sec = (time_t) (usec / 1000000),
                .it_value.tv_nsec = usec == 0 ? 1 : (long) (usec % 1000000) * 1000,
        };

        (void) timerfd_settime(b->timer_fd, 0, &timer, NULL);
}

/* To be told. */
static void entry_note(const DelegateBackend *b, Entry *entry, bool is_final, const char *text) {
        if (free_and_strdup(&entry->news, text) < 0)
                return;
        entry->is_final = is_final;
        set_timer(b, 0);
}

void delegate_note_all(DelegateBackend *b, bool is_back) {
        const char *text = is_back ? "The system's tlobd is back"
                                   : "The system's tlobd, which measures for users, has gone";

        (void) free_and_strdup(&b->news, text);
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].binding)
                        entry_note(b, &b->entries[i], false, text);
}

static void ask_again_in(DelegateBackend *b, time_t sec) {
        struct itimerspec timer = { .it_value.tv_sec = sec };

        b->again_sec = sec;
        (void) timerfd_settime(b->again_fd, 0, &timer, NULL);
}

/* Unless that is to be sooner already. */
static void ask_again_later(DelegateBackend *b) {
        time_t sec = b->again_sec == 0 ? AGAIN_SEC : b->again_sec * 2;
        struct itimerspec timer;

        if (sec > AGAIN_SEC_MAX)
                sec = AGAIN_SEC_MAX;
        if (timerfd_gettime(b->again_fd, &timer) < 0 ||
            ((timer.it_value.tv_sec > 0 || timer.it_value.tv_nsec > 0) &&
             timer.it_value.tv_sec < sec))
                return;
        ask_again_in(b, sec);
}

/* Whatever else is waited for: when it is asked for again, that is a failure. */
static void note_gone(DelegateBackend *b) {
        if (b->gone_usec > 0)
                return;
        b->gone_usec = now_usec();
        ask_again_in(b, AGAIN_SEC);
}

void delegate_on_lender_gone(DelegateBackend *b) {
        for (size_t i = 0; i < b->n_entries; i++)
                b->entries[i].is_measured = false;
        note_gone(b);
        delegate_note_all(b, false);
        set_timer(b, 0);
}

int delegate_take_books(Packet *packet, Entry *entry) {
        return wire_take_books(packet, &entry->now, &entry->lengths);
}

static Entry *find_entry(DelegateBackend *b, uint64_t id) {
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].id == id)
                        return &b->entries[i];
        return NULL;
}

static void on_report(uint64_t id, Packet *packet, uint64_t lost, void *userdata) {
        DelegateBackend *b = userdata;
        const Entry *entry = find_entry(b, id);
        Report report;
        Stack stack;

        b->n_lost += lost;
        if (!entry)
                return;
        if (wire_take_report(packet, &report, &stack) < 0) {
                b->n_lost++;
                return;
        }
        report.backend_index = (uint32_t) (entry - b->entries);
        b->handler(&report, b->handler_data);
        b->n_reports++;
}

static void on_gone(uint64_t id, Packet *books, bool for_good, const char *why, void *userdata) {
        DelegateBackend *b = userdata;
        Entry *entry = find_entry(b, id);

        if (!entry || !entry->is_measured || delegate_take_books(books, entry) < 0)
                return;
        entry->is_measured = false;
        if (why)
                entry_note(b, entry, for_good, why);
}

static void on_lender(bool is_there, void *userdata) {
        if (is_there)
                delegate_note_all(userdata, true);
        else
                delegate_on_lender_gone(userdata);
}

static const ConnectionHandlers connection_handlers = {
        .report = on_report,
        .gone = on_gone,
        .is_there = on_lender,
};

int delegate_ask(DelegateBackend *b, sd_bus_message *call, sd_bus_message **ret_reply,
                 char **ret_error) {
        uint64_t begin = now_usec();
        int r = connection_ask(&b->connection, call, ret_reply, ret_error);

        if (r == -ENOTCONN) {
                /* Who has kept us waiting, in vain, is left alone for as long. */
                b->pause_usec = now_usec() + (now_usec() - begin);
                delegate_on_lender_gone(b);
        } else if (connection_has_read(&b->connection))
                set_timer(b, 0);
        return r;
}

int delegate_begin(DelegateBackend *b, const char *member, const Entry *entry,
                   sd_bus_message **ret) {
        int r = connection_new_call(&b->connection, member, ret);

        return r < 0 ? r : sd_bus_message_append(*ret, "t", entry->id);
}

int delegate_connect(DelegateBackend *b, char **ret_error) {
        struct epoll_event event = { .events = EPOLLIN };
        int r;

        r = connection_open(&b->connection, &connection_handlers, b, ret_error);
        if (r >= 0 &&
            epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, sd_bus_get_fd(b->connection.bus), &event) < 0) {
                r = -errno;
                connection_close(&b->connection);
        }
        if (r < 0)
                set_timer(b, RETRY_USEC);
        else if (connection_has_read(&b->connection))
                set_timer(b, 0);
        return r;
}

void delegate_connect_again(DelegateBackend *b) {
        _cleanup_free_ char *unused = NULL;
        uint64_t now = now_usec();

        if (now < b->pause_usec)
                set_timer(b, b->pause_usec - now);
        else if (delegate_connect(b, &unused) >= 0 && b->connection.lender)
                delegate_note_all(b, true);
}

static int entry_ask_for(DelegateBackend *b, Entry *entry, char **ret_error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        static Packet packet;
        int r = 0;

        if (!b->connection.bus) {
                /* From here it could go on for ever, and nobody else would have a turn. */
                if (b->gone_usec > 0) {
                        set_timer(b, 0);
                        return -ENOTCONN;
                }
                r = delegate_connect(b, ret_error);
        }
        if (r >= 0)
                r = connection_new_call(&b->connection, "Lend", &call);
        if (r < 0)
                return r;
        entry->id = ++b->last_id;
        packet_init(&packet);
        wire_put_binding(&packet, entry->binding);
        r = sd_bus_message_append(call, "tt", WIRE_VERSION, entry->id);
        if (r >= 0)
                r = bus_packet_append(call, &packet);
        if (r == -EMSGSIZE)
                return sentence_error(r, ret_error, "Its keys are too long");
        if (r >= 0)
                r = sd_bus_message_append(call, "u", (uint32_t) entry->file_fd);
        if (r >= 0)
                r = delegate_ask(b, call, NULL, ret_error);
        entry->is_measured = r >= 0;
        return r;
}

/*
 * By polkit, by a limit, as it is busy, or has yet to be upgraded as we have been: it may think
 * better of it.
 */
static bool may_change(int error) {
        return error == -EACCES || error == -EDQUOT || error == -EBUSY || error == -ENOBUFS ||
               (error == -EPROTO && !own_program_is_replaced());
}

int delegate_try(DelegateBackend *b, Entry *entry, char **ret_error) {
        _cleanup_free_ char *error = NULL;
        int r;

        r = entry_ask_for(b, entry, &error);
        free(TAKE_PTR(entry->why));
        if (r == -ENOTCONN) {
                note_gone(b);
                ask_again_later(b);
                return 0;
        }
        b->gone_usec = 0;
        if (r >= 0)
                b->again_sec = 0;
        else if (may_change(r)) {
                entry->why = error ? TAKE_PTR(error) : strdup(strerror(-r));
                ask_again_later(b);
                return entry->why ? 0 : -ENOMEM;
        } else if (ret_error)
                *ret_error = TAKE_PTR(error);
        return r;
}

bool delegate_is_alone(const DelegateBackend *b) {
        return b->gone_usec > 0 && now_usec() - b->gone_usec >= AGAIN_SEC * UINT64_C(1000000);
}

void delegate_try_again(DelegateBackend *b) {
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].binding && !b->entries[i].is_measured)
                        entry_note(b, &b->entries[i], false, "It is asked for again");
}
