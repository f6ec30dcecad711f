/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BACKEND_WIRE_H
#define BACKEND_WIRE_H

#include "backend/backend.h"
#include "base/packet.h"

/*
 * What the tlobd of a user (daemon/delegate) and that of the system (daemon/tenant) say to each
 * other, as packets over a SOCK_SEQPACKET socket. The user's one asks, one question at a time, and
 * waits for the answer; between answers, the system's one tells what happens.
 *
 * A question is its WireType and the id of a binding, which the user's one has chosen, and what is
 * in the comment. An answer is WIRE_ANSWER, a positive errno or 0, and a sentence if it is an
 * error; then what is in the comment.
 *
 * The system's one believes nothing: see tenant/request.c. Takers return 0, -EBADMSG, or -ENOMEM;
 * whether that was all is for packet_is_good().
 */

/* Who connects to a tlobd that means something else by these packets is told so. */
#define WIRE_VERSION ((uint64_t) 1 << 32 | sizeof(Statistics) << 16 | TLOB_BUCKETS)

/* Where the system's tlobd listens. */
#define WIRE_SOCKET "/run/tlob/users"

typedef enum WireType {
        WIRE_HELLO,   /* instead of an id: WIRE_VERSION. It may be answered late: polkit is asked */
        WIRE_ADD,     /* a binding, and its file as a descriptor */
        WIRE_REMOVE,  /* answer: statistics, histogram */
        WIRE_RUNS,    /* its unit has a cgroup now: 1; or has not: 0 */
        WIRE_BUDGETS, /* TLOB_N_BUDGETS numbers */
        WIRE_BOOKS,   /* answer: statistics, histogram, how far it reaches (a string, or NULL) */
        WIRE_RESET,

        WIRE_ANSWER,
        /* Instead of an answer, at any time, with the id of a binding: */
        WIRE_REPORT, /* a report */
        WIRE_GONE,   /* it is measured no longer; statistics, histogram, why (NULL: all ends) */
        WIRE_LOST,   /* without an id: reports for which there was no room, since the last time */
} WireType;

/* Of a binding: its name, unit and cgroup, its places, its budgets, and what its file is called. */
void wire_put_binding(Packet *packet, const Binding *binding);
int wire_take_binding(Packet *packet, Binding **ret);

void wire_put_statistics(Packet *packet, const Statistics *statistics);
void wire_take_statistics(Packet *packet, Statistics *ret);

/* The buckets that are not empty. */
void wire_put_histogram(Packet *packet, const Histogram *histogram);
int wire_take_histogram(Packet *packet, Histogram *ret);

/* Of a stack, only where the task is: all of it is not for everybody. */
void wire_put_report(Packet *packet, const Report *report);

/* stack: has room for what report->stack is then. The path is the packet's. */
int wire_take_report(Packet *packet, Report *ret, Stack *stack);

#endif
