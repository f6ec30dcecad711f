/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bpf/window-keys.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "bpf/layout.h"

_Static_assert(ELF_ARGUMENT_PLACES_MAX == TLOB_KEY_PLACES_MAX, "not all places have room");

#define SIDE_START 0
#define SIDE_STOP  1

static const uint8_t kinds[ELF_ARGUMENT_N_KINDS] = {
        [ELF_ARGUMENT_CONSTANT] = TLOB_ARGUMENT_CONSTANT,
        [ELF_ARGUMENT_REGISTER] = TLOB_ARGUMENT_REGISTER,
        [ELF_ARGUMENT_MEMORY] = TLOB_ARGUMENT_MEMORY,
};

static int write_side(int map_fd, uint32_t index, const ElfArgumentPlaces *from) {
        struct tlob_key_places places = { .n = (uint32_t) from->n };

        for (size_t i = 0; i < from->n; i++) {
                const ElfArgument *argument = &from->places[i].argument;

                places.places[i] = (struct tlob_argument) {
                        .page_offset = (uint16_t) TLOB_PAGE_OFFSET(from->places[i].offset),
                        .kind = kinds[argument->kind],
                        .size = argument->size,
                        .is_signed = argument->is_signed,
                        .scale = argument->scale,
                        .base = argument->base,
                        .index = argument->index,
                        .value = argument->value,
                };
        }
        return bpf_map_update_elem(map_fd, &index, &places, BPF_ANY) < 0 ? -errno : 0;
}

int window_keys_write(int map_fd, uint32_t binding, const ElfArgumentPlaces *start,
                      const ElfArgumentPlaces *stop) {
        int r;

        r = write_side(map_fd, TLOB_KEY_SIDE(binding, SIDE_START), start);
        return r < 0 ? r : write_side(map_fd, TLOB_KEY_SIDE(binding, SIDE_STOP), stop);
}
