/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BUS_PACKET_H
#define BUS_PACKET_H

#include <systemd/sd-bus.h>

#include "base/packet.h"

/*
 * A packet in a message: an array of bytes, the next argument. Both return 0 or a negative errno;
 * reading: -EBADMSG if it is too long for a packet.
 */
int bus_packet_append(sd_bus_message *m, const Packet *packet);
int bus_packet_read(sd_bus_message *m, Packet *packet);

#endif
