/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "bus-packet.h"

#include <errno.h>
#include <string.h>

int bus_packet_append(sd_bus_message *m, const Packet *packet) {
        return packet->failed ? -EMSGSIZE
                              : sd_bus_message_append_array(m, 'y', packet->data, packet->size);
}

int bus_packet_read(sd_bus_message *m, Packet *packet) {
        const void *bytes;
        size_t size;
        int r;

        r = sd_bus_message_read_array(m, 'y', &bytes, &size);
        if (r < 0)
                return r;
        if (size > PACKET_SIZE_MAX)
                return -EBADMSG;
        packet_init(packet);
        if (size > 0)
                memcpy(packet->data, bytes, size);
        packet->size = size;
        return 0;
}
