/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FILE_RESOLVED_PACKET_H
#define FILE_RESOLVED_PACKET_H

#include "base/packet.h"
#include "binding/binding.h"

/*
 * Where the probes of a binding go, in a packet. Who has written it may have been taken over by a
 * file that it read: what is taken is within its bounds.
 */

void packet_put_resolved(Packet *packet, const BindingResolved *resolved, const BindingFile *file);

/* Returns 0, -EBADMSG or -ENOMEM; whether the packet was long enough is for packet_is_good(). */
int packet_take_resolved(Packet *packet, BindingResolved *resolved, BindingFile *file);

void packet_put_stamp(Packet *packet, const FileStamp *stamp);
FileStamp packet_take_stamp(Packet *packet);

#endif
