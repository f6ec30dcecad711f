/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "file/resolved-packet.h"

#include <stdlib.h>

void packet_put_stamp(Packet *packet, const FileStamp *stamp) {
        packet_put_number(packet, stamp->size);
        packet_put_number(packet, stamp->mtime_ns);
        packet_put_number(packet, stamp->ctime_ns);
        packet_put_number(packet, stamp->born_ns);
}

FileStamp packet_take_stamp(Packet *packet) {
        FileStamp stamp;

        stamp.size = packet_take_number(packet);
        stamp.mtime_ns = packet_take_number(packet);
        stamp.ctime_ns = packet_take_number(packet);
        stamp.born_ns = packet_take_number(packet);
        return stamp;
}

static void put_site(Packet *packet, const ElfSite *site) {
        packet_put_number(packet, site->offset);
        packet_put_string(packet, site->function);
        packet_put_number(packet, site->distance);
        packet_put_number(packet, site->is_miscounted);
        packet_put_number(packet, site->n_places);
        for (size_t i = 0; i < site->n_places; i++) {
                packet_put_number(packet, site->places[i].offset);
                packet_put_number(packet, site->places[i].semaphore);
        }
}

static int take_places(Packet *packet, ElfSite *site) {
        uint64_t n = packet_take_number(packet);
        ElfPlace *places;

        if (n > ELF_PLACES_MAX)
                return -EBADMSG;
        places = calloc(n + 1, sizeof(*places));
        if (!places)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                places[i].offset = packet_take_number(packet);
                places[i].semaphore = packet_take_number(packet);
        }
        free(site->places);
        site->places = places;
        site->n_places = n;
        return 0;
}

static int take_site(Packet *packet, ElfSite *site) {
        int r;

        site->offset = packet_take_number(packet);
        r = free_and_strdup(&site->function, packet_take_text(packet));
        site->distance = packet_take_number(packet);
        site->is_miscounted = packet_take_number(packet);
        return r < 0 ? r : take_places(packet, site);
}

static void put_exits(Packet *packet, const FunctionExits *exits) {
        packet_put_number(packet, exits->n);
        for (size_t i = 0; i < exits->n; i++)
                packet_put_number(packet, exits->offsets[i]);
        packet_put_number(packet, exits->n_returns);
        packet_put_number(packet, exits->n_switches);
        packet_put_number(packet, exits->depth);
        packet_put_number(packet, exits->depth_of_frame_pointer);
        packet_put_string(packet, exits->successor);
        packet_put_string(packet, exits->several);
}

static int take_exits(Packet *packet, FunctionExits *exits) {
        uint64_t n = packet_take_number(packet), depth;

        function_exits_done(exits);
        if (n > FUNCTION_EXITS_MAX)
                return -EBADMSG;
        exits->offsets = calloc(n + 1, sizeof(*exits->offsets));
        if (!exits->offsets)
                return -ENOMEM;
        for (; exits->n < n; exits->n++)
                exits->offsets[exits->n] = packet_take_number(packet);
        exits->n_returns = packet_take_number(packet);
        exits->n_switches = packet_take_number(packet);
        depth = packet_take_number(packet);
        if (exits->n_returns > n || exits->n_switches > n - exits->n_returns ||
            depth > FUNCTION_DEPTH_MAX)
                return -EBADMSG;
        exits->depth = (uint32_t) depth;
        exits->depth_of_frame_pointer = packet_take_number(packet);
        return free_and_strdup(&exits->successor, packet_take_text(packet))
                       ?: free_and_strdup(&exits->several, packet_take_text(packet));
}

static void put_argument_places(Packet *packet, const ElfArgumentPlaces *places) {
        packet_put_number(packet, places->n);
        for (size_t i = 0; i < places->n; i++) {
                const ElfArgument *argument = &places->places[i].argument;

                packet_put_number(packet, places->places[i].offset);
                packet_put_number(packet, argument->kind);
                packet_put_number(packet, argument->size);
                packet_put_number(packet, argument->is_signed);
                packet_put_number(packet, argument->scale);
                packet_put_number(packet, argument->base);
                packet_put_number(packet, argument->index);
                packet_put_number(packet, (uint64_t) argument->value);
        }
}

/* Nonsense reads no more than registers and memory of the measured program. */
static ElfArgument take_argument(Packet *packet) {
        ElfArgument argument;

        argument.kind = (ElfArgumentKind) (packet_take_number(packet) % ELF_ARGUMENT_N_KINDS);
        argument.size = (uint8_t) packet_take_number(packet);
        argument.is_signed = packet_take_number(packet);
        argument.scale = (uint8_t) packet_take_number(packet);
        argument.base = (uint16_t) (packet_take_number(packet) % ELF_REGISTERS_SIZE);
        argument.index = (uint16_t) (packet_take_number(packet) % ELF_REGISTERS_SIZE);
        argument.value = (int64_t) packet_take_number(packet);
        return argument;
}

static bool take_argument_places(Packet *packet, ElfArgumentPlaces *places) {
        uint64_t n = packet_take_number(packet);

        if (n == 0 || n > ELF_ARGUMENT_PLACES_MAX)
                return false;
        for (; places->n < n; places->n++) {
                places->places[places->n].offset = packet_take_number(packet);
                places->places[places->n].argument = take_argument(packet);
        }
        return true;
}

static void put_key(Packet *packet, const WindowKey *key) {
        packet_put_number(packet, key ? key->number : 0);
        if (!key)
                return;
        put_argument_places(packet, &key->start);
        put_argument_places(packet, &key->stop);
}

static int take_key(Packet *packet, BindingSites *sites) {
        uint64_t number = packet_take_number(packet);
        _cleanup_free_ WindowKey *key = NULL;

        if (number == 0)
                return 0;
        if (number > ELF_ARGUMENTS_MAX || sites->how != TLOB_STOP_PLACE || sites->has_frame)
                return -EBADMSG;
        key = calloc(1, sizeof(*key));
        if (!key)
                return -ENOMEM;
        key->number = (unsigned) number;
        if (!take_argument_places(packet, &key->start) || !take_argument_places(packet, &key->stop))
                return -EBADMSG;
        free(sites->key);
        sites->key = TAKE_PTR(key);
        return 0;
}

/* How windows end. */
static void put_stop(Packet *packet, const BindingSites *sites) {
        packet_put_number(packet, sites->how);
        packet_put_number(packet, sites->has_frame);
        put_exits(packet, &sites->exits);
        put_key(packet, sites->key);
}

static int take_stop(Packet *packet, BindingSites *sites) {
        uint64_t how = packet_take_number(packet);
        int r;

        sites->has_frame = packet_take_number(packet);
        r = take_exits(packet, &sites->exits);
        if (r < 0)
                return r;
        if (how > TLOB_STOP_GO || how == TLOB_STOP_CALL ||
            (how == TLOB_STOP_EXITS || how == TLOB_STOP_GO) != (sites->exits.n > 0) ||
            (how != TLOB_STOP_EXITS && sites->exits.depth > 0))
                return -EBADMSG;
        sites->how = (enum tlob_stop) how;
        return take_key(packet, sites);
}

static int take_kinds(Packet *packet, BindingResolved *resolved) {
        uint64_t start = packet_take_number(packet), stop = packet_take_number(packet);

        if (start >= PROBE_N_KINDS || stop >= PROBE_N_KINDS)
                return -EBADMSG;
        resolved->start_kind = (ProbeKind) start;
        resolved->stop_kind = (ProbeKind) stop;
        return 0;
}

static void put_copies(Packet *packet, const InlinedCopies *copies) {
        packet_put_number(packet, copies->is_known);
        packet_put_number(packet, copies->is_complete);
        packet_put_number(packet, copies->n);
}

static InlinedCopies take_copies(Packet *packet) {
        InlinedCopies copies;

        copies.is_known = packet_take_number(packet);
        copies.is_complete = packet_take_number(packet);
        copies.n = packet_take_number(packet);
        return copies;
}

void packet_put_resolved(Packet *packet, const BindingResolved *resolved, const BindingFile *file) {
        packet_put_string(packet, resolved->path);
        packet_put_string(packet, resolved->inner_path);
        packet_put_string(packet, resolved->build_id);
        packet_put_number(packet, resolved->device);
        packet_put_number(packet, resolved->inode);
        packet_put_number(packet, resolved->mapped.device);
        packet_put_number(packet, resolved->mapped.inode);
        packet_put_stamp(packet, &resolved->stamp);
        put_site(packet, &resolved->sites.start);
        put_site(packet, &resolved->sites.stop);
        put_stop(packet, &resolved->sites);
        packet_put_string(packet, resolved->start_code);
        packet_put_number(packet, resolved->start_kind);
        packet_put_number(packet, resolved->stop_kind);
        put_copies(packet, &resolved->copies);
        packet_put_number(packet, file->is_program);
}

int packet_take_resolved(Packet *packet, BindingResolved *resolved, BindingFile *file) {
        int r;

        r = free_and_strdup(&resolved->path, packet_take_text(packet));
        if (r >= 0)
                r = free_and_strdup(&resolved->inner_path, packet_take_text(packet));
        if (r >= 0)
                r = free_and_strdup(&resolved->build_id, packet_take_text(packet));
        resolved->device = packet_take_number(packet);
        resolved->inode = packet_take_number(packet);
        resolved->mapped.device = packet_take_number(packet);
        resolved->mapped.inode = packet_take_number(packet);
        resolved->stamp = packet_take_stamp(packet);
        if (r >= 0)
                r = take_site(packet, &resolved->sites.start);
        if (r >= 0)
                r = take_site(packet, &resolved->sites.stop);
        if (r >= 0)
                r = take_stop(packet, &resolved->sites);
        if (r >= 0)
                r = free_and_strdup(&resolved->start_code, packet_take_text(packet));
        if (r >= 0)
                r = take_kinds(packet, resolved);
        resolved->copies = take_copies(packet);
        file->is_program = packet_take_number(packet);
        return r;
}
