/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BACKEND_WIRE_H
#define BACKEND_WIRE_H

#include "backend/backend.h"
#include "base/packet.h"

/*
 * What the tlobd of a user (daemon/delegate) and that of the system (bus/lender.c) say to each
 * other that others need not understand: the arrays of bytes of org.tlob1.Lender, see
 * dbus/org.tlob1.xml.
 *
 * The system's one believes nothing: see tenant/lease.c. Takers return 0, -EBADMSG, or -ENOMEM;
 * whether that was all is for packet_is_good().
 */

/* Who means something else by these bytes is told so: whoever changes a packet counts up. */
#define WIRE_VERSION ((uint64_t) 3 << 32 | sizeof(Statistics) << 16 | TLOB_BUCKETS)

/* Of a binding: its name, unit and cgroup, its places, its budgets, and what its file is called. */
void wire_put_binding(Packet *packet, const Binding *binding);
int wire_take_binding(Packet *packet, Binding **ret);

/* Statistics, and the buckets of the histogram that are not empty. */
void wire_put_books(Packet *packet, const Statistics *statistics, const Histogram *lengths);
int wire_take_books(Packet *packet, Statistics *ret, Histogram *ret_lengths);

/* Of a stack, only where the task is: all of it is not for everybody. */
void wire_put_report(Packet *packet, const Report *report);

/* stack: has room for what report->stack is then. The path is the packet's. */
int wire_take_report(Packet *packet, Report *ret, Stack *stack);

#endif
