/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef DELEGATE_INTERNAL_H
#define DELEGATE_INTERNAL_H

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/sentence.h"
#include "delegate/connection.h"

/* What the files of this room share. */

/* A binding; free without one. Its place in the array is its index. */
typedef struct Entry {
        Binding *binding; /* what is asked for: a copy */
        int file_fd;
        uint64_t id;
        bool is_measured;
        char *why;  /* it is not: it was refused; NULL: nobody is there */
        char *news; /* that it is measured no longer, or could be again; NULL: told */
        bool is_final;
        Statistics now; /* as last told */
        Histogram lengths;
} Entry;

typedef struct DelegateBackend {
        Backend backend; /* first */
        Connection connection;
        int epoll_fd;
        int timer_fd;       /* time to connect, or something is there that epoll_fd does not show */
        int again_fd;       /* time to ask for what was refused */
        uint64_t gone_usec; /* since when nobody is there; 0: somebody is */
        uint64_t pause_usec; /* until then nobody is asked whether they are there */
        time_t again_sec; /* how long it was waited for that last; 0: not since it was measured */
        Entry *entries;
        size_t n_entries;
        uint64_t last_id;
        uint64_t n_lost;
        char *news;                   /* of all; NULL: told */
        BackendReportHandler handler; /* during dispatch */
        void *handler_data;
        int n_reports;
} DelegateBackend;

/* -ENOTCONN: nobody is there; it is tried again. */
int delegate_connect(DelegateBackend *b, char **ret_error);

/* The same, during dispatch, once it has gone: then, or later. If it is there, all are told. */
void delegate_connect_again(DelegateBackend *b);

/* Asks for what is to be measured. Whatever may change later is no failure. */
int delegate_try(DelegateBackend *b, Entry *entry, char **ret_error);

/* What is not measured is set up anew. */
void delegate_try_again(DelegateBackend *b);

/* A call about an entry, and nothing else but for what is behind it. */
int delegate_begin(DelegateBackend *b, const char *member, const Entry *entry,
                   sd_bus_message **ret);

/* ret_reply: may be NULL, as in connection_ask(). */
int delegate_ask(DelegateBackend *b, sd_bus_message *call, sd_bus_message **ret_reply,
                 char **ret_error);

int delegate_take_books(Packet *packet, Entry *entry);

/* Is it so for longer than a restart takes? */
bool delegate_is_alone(const DelegateBackend *b);

/* Whoever hears of it sets all bindings up anew: until it is back, they wait. */
void delegate_note_all(DelegateBackend *b, bool is_back);
void delegate_on_lender_gone(DelegateBackend *b);

#endif
