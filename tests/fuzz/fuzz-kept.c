/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Any bytes as the memory that a daemon has left to the next one: as they are, and laid over memory
 * that is sound, of which a zero leaves what is there. Whatever is taken is read to its end, and
 * its units are set up, with maps that have the same bytes in them, used and dropped.
 */

#include <bpf/bpf.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "bpf/kept-past.h"
#include "bpf/units.h"
#include "fake-maps.h"
#include "fuzz.h"

#define BINDINGS_MAX 2 /* of the memory that is sound; the seeds are made for it */

#define fuzz_assert_string(array) fuzz_assert(memchr(array, '\0', sizeof(array)))

/* It is the successor's own past then, and goes on. */
static void use_past(const Kept *kept, uint32_t index) {
        _cleanup_(past_done) Past past = {};
        Histogram lengths = { .counts[1] = 1 };

        fuzz_assert(kept_add_past(kept, index, &past) == 0);
        fuzz_assert(past_add_lengths(&past, kept_get_build_id(&kept->bindings[index]), &lengths) ==
                    0);
        fuzz_assert(kept_add_past(kept, index, &past) == 0);
}

static void read_all(const Kept *kept) {
        size_t n = kept->common->format.bindings_max;

        fuzz_assert((char *) (kept->build_lengths + PAST_N_BUILDS * n) ==
                    (char *) kept->common + kept->size);
        (void) kept_hash(kept->common, kept->size);
        for (size_t i = 0; i < n; i++) {
                fuzz_assert_string(kept->bindings[i].name);
                fuzz_assert_string(kept->bindings[i].unit);
                fuzz_assert_string(kept->bindings[i].build_id);
                fuzz_assert_string(kept->bindings[i].told_of);
                for (size_t j = 0; j < PAST_N_BUILDS; j++)
                        fuzz_assert_string(kept->bindings[i].build_ids[j]);
                use_past(kept, (uint32_t) i);
        }
        for (size_t i = 0; i < n + 1; i++) {
                fuzz_assert_string(kept->units[i].name);
                fuzz_assert_string(kept->units[i].path.path);
                fuzz_assert_string(kept->units[i].spare_of.path);
        }
}

/* What is in the maps is as little to be relied on. */
static UnitMaps make_maps(const Kept *kept, size_t n) {
        UnitMaps maps = {
                .units = memfd_create("fuzz-units", MFD_CLOEXEC),
                .by_cgroup = fake_map_make(sizeof(uint64_t), sizeof(uint32_t)),
                .by_path = fake_map_make(sizeof(struct tlob_unit_path), sizeof(uint32_t)),
                .instances = fake_map_make(sizeof(uint64_t), sizeof(uint32_t)),
                .spares = fake_map_make(sizeof(struct tlob_unit_path), sizeof(struct tlob_spares)),
        };
        const void *any = kept->bindings;

        fuzz_assert(pwrite(maps.units, any, n * sizeof(struct tlob_unit), 0) > 0);
        for (size_t i = 0; i < n; i++) {
                const KeptUnit *unit = &kept->units[i];

                (void) bpf_map_update_elem(maps.spares, &unit->spare_of, any, BPF_ANY);
                (void) bpf_map_update_elem(maps.by_path, &unit->path, any, BPF_ANY);
        }
        return maps;
}

static void use_units(UnitTable *table, const Kept *kept) {
        struct tlob_instance_record record = { .path = { "/a.slice/a@1.service" } };
        uint32_t unit;

        for (size_t i = 0; i < kept->common->format.bindings_max; i++) {
                const KeptBinding *binding = &kept->bindings[i];

                if (unit_table_join_again(table, binding->places.stop, binding->unit) >= 0)
                        (void) unit_table_set_cgroup(table, binding->places.stop,
                                                     binding->places.inode, 1);
                if (unit_table_join(table, binding->name, binding->unit, &unit) >= 0)
                        (void) unit_table_set_spare(table, unit, binding->unit);
        }
        (void) unit_table_complete(table);
        for (record.unit = 0; record.unit <= table->n; record.unit++)
                (void) unit_table_take_spare(table, &record);
        unit_table_drop_inherited(table);
        for (uint32_t i = TLOB_UNIT_NONE + 1; i < table->n; i++)
                (void) unit_table_join_again(table, i, NULL);
}

static void be_next(const Kept *kept) {
        size_t n = kept->common->format.bindings_max + 1;
        struct tlob_levels levels = {};
        uint32_t n_followed = 0;
        UnitTable table;
        UnitMaps maps;

        fake_maps_reset();
        maps = make_maps(kept, n);
        if (unit_table_init(&table, n, &maps, &levels, &n_followed, 0, kept->units) >= 0)
                use_units(&table, kept);
        unit_table_done(&table);
        (void) close(maps.units);
        /* It has written, too: for one more. */
        read_all(kept);
}

static void inherit(int fd) {
        _cleanup_(kept_freep) Kept *kept = NULL;

        if (kept_inherit(fd, &kept) < 0) {
                (void) close(fd);
                return;
        }
        read_all(kept);
        be_next(kept);
}

static void try_as_it_is(const uint8_t *data, size_t size) {
        int fd = memfd_create("fuzz-kept", MFD_CLOEXEC | MFD_ALLOW_SEALING);

        fuzz_assert(fd >= 0 && write(fd, data, size) == (ssize_t) size);
        fuzz_assert(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
        inherit(fd);
}

static void try_over_sound(const uint8_t *data, size_t size) {
        _cleanup_(kept_freep) Kept *kept = NULL;
        uint8_t *bytes;

        fuzz_assert(kept_new(&(KeptFormat) { .bindings_max = BINDINGS_MAX }, &kept) == 0);
        bytes = (uint8_t *) kept->common;
        for (size_t i = 0; i < size && i < kept->size; i++)
                bytes[i] ^= data[i];
        inherit(fcntl(kept->fd, F_DUPFD_CLOEXEC, 3));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        try_as_it_is(data, size);
        try_over_sound(data, size);
        return 0;
}
