/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * daemon/bpf/units.c: what it makes of units that a daemon before it has had, in the memory that it
 * is left and in the maps.
 */

#include "bpf/units.h"

#include <bpf/bpf.h>
#include <sys/mman.h>

#include "fake-maps.h"
#include "test.h"

#define N_UNITS 4 /* TLOB_UNIT_NONE is the first */

typedef struct Fixture {
        UnitTable table;
        UnitMaps maps;
        struct tlob_levels levels;
        uint32_t n_followed;
        KeptUnit kept[N_UNITS];
        struct tlob_unit memory[N_UNITS]; /* what the map begins with */
} Fixture;

static void fixture_init(Fixture *f) {
        fake_maps_reset();
        *f = (Fixture){
                .maps = {
                        .units = memfd_create("units", MFD_CLOEXEC),
                        .by_cgroup = fake_map_make(sizeof(uint64_t), sizeof(uint32_t)),
                        .by_path = fake_map_make(sizeof(struct tlob_unit_path), sizeof(uint32_t)),
                        .instances = fake_map_make(sizeof(uint64_t), sizeof(uint32_t)),
                        .spares = fake_map_make(sizeof(struct tlob_unit_path),
                                                sizeof(struct tlob_spares)),
                },
        };
}

static void fixture_start(Fixture *f) {
        assert_int_equal(write(f->maps.units, f->memory, sizeof(f->memory)), sizeof(f->memory));
        assert_ok(unit_table_init(&f->table, N_UNITS, &f->maps, &f->levels, &f->n_followed, 0,
                                  f->kept));
}

static void fixture_done(Fixture *f) {
        unit_table_done(&f->table);
        (void) close(f->maps.units);
}

static void add_cgroup(const Fixture *f, uint64_t id, uint32_t unit) {
        assert_ok(bpf_map_update_elem(f->maps.by_cgroup, &id, &unit, BPF_ANY));
}

/* TLOB_UNIT_NONE: nobody's. */
static uint32_t find_cgroup(const Fixture *f, uint64_t id) {
        uint32_t unit = TLOB_UNIT_NONE;

        (void) bpf_map_lookup_elem(f->maps.by_cgroup, &id, &unit);
        return unit;
}

static uint32_t find_path(const Fixture *f, const char *text) {
        uint32_t unit = TLOB_UNIT_NONE;
        struct tlob_unit_path path = {};

        strcpy(path.path, text);
        (void) bpf_map_lookup_elem(f->maps.by_path, &path, &unit);
        return unit;
}

static void test_join_again(void **state) {
        Fixture f;

        fixture_init(&f);
        f.kept[2] = (KeptUnit) { .name = "/a.service", .path = { "/a.service" } };
        f.memory[2].cgroup_id = 7;
        fixture_start(&f);
        assert_ok(unit_table_join_again(&f.table, 2, "/a.service"));
        assert_ok(unit_table_complete(&f.table));
        unit_table_drop_inherited(&f.table);
        assert_int_equal(find_path(&f, "/a.service"), 2);
        assert_int_equal(f.table.memory[2].cgroup_id, 7);
        assert_string_equal(f.kept[2].name, "/a.service");
        fixture_done(&f);
}

/* As the index comes out of a map. */
static void test_no_such_unit(void **state) {
        static const uint32_t units[] = {
                TLOB_UNIT_NONE, 1, N_UNITS, 1U << 20, 1U << 31, UINT32_MAX
        };
        Fixture f;

        fixture_init(&f);
        f.kept[2] = (KeptUnit) { .name = "/a.service" };
        fixture_start(&f);
        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                assert_int_equal(unit_table_join_again(&f.table, units[i], NULL), -ENOENT);
        fixture_done(&f);
}

/* Programs look for paths that are filled up with zeros. */
static void test_garbage_behind_path(void **state) {
        Fixture f;

        fixture_init(&f);
        f.kept[1] = (KeptUnit) { .name = "/a.service" };
        memset(f.kept[1].path.path, 'x', sizeof(f.kept[1].path.path) - 1);
        strcpy(f.kept[1].path.path, "/a.service");
        fixture_start(&f);
        assert_ok(unit_table_complete(&f.table));
        assert_int_equal(find_path(&f, "/a.service"), 1);
        assert_int_equal(fake_map_count(f.maps.by_path), 1);
        unit_table_drop_inherited(&f.table);
        assert_int_equal(fake_map_count(f.maps.by_path), 0);
        fixture_done(&f);
}

/* A spare has none, until an instance takes it. */
static void test_path_and_spare(void **state) {
        struct tlob_instance_record record = { .unit = 2, .path = { "/b@1.service" } };
        Fixture f;

        fixture_init(&f);
        f.kept[1] = (KeptUnit) { .name = "a", .path = { "/a" }, .spare_of = { "a@.service" } };
        f.kept[2] = (KeptUnit) { .name = "b", .spare_of = { "b@.service" } };
        fixture_start(&f);
        assert_int_equal(
                unit_table_take_spare(
                        &f.table, &(struct tlob_instance_record) { .unit = 1, .path = { "/a@1" } }),
                0);
        assert_ok(unit_table_join_again(&f.table, 2, "/b"));
        assert_int_equal(unit_table_take_spare(&f.table, &record), 1);
        assert_string_equal(f.kept[1].path.path, "/a");
        assert_string_equal(f.kept[2].path.path, "/b@1.service");
        fixture_done(&f);
}

/* One that fills up its place may be cut off. */
static void test_path_too_long(void **state) {
        Fixture f;

        fixture_init(&f);
        f.kept[1] = (KeptUnit) { .name = "/a.service" };
        memset(f.kept[1].path.path, 'x', sizeof(f.kept[1].path.path) - 1);
        memset(f.kept[1].spare_of.path, 'x', sizeof(f.kept[1].spare_of.path) - 1);
        fixture_start(&f);
        assert_ok(unit_table_complete(&f.table));
        assert_int_equal(fake_map_count(f.maps.by_path), 0);
        assert_int_equal(fake_map_count(f.maps.spares), 0);
        assert_ok(unit_table_join_again(&f.table, 1, "/a.service"));
        assert_ok(unit_table_complete(&f.table));
        assert_int_equal(find_path(&f, "/a.service"), 1);
        fixture_done(&f);
}

/* Of a name that was too long to be kept: its cgroup is not the next one's at that index. */
static void test_no_name(void **state) {
        uint32_t unit;
        Fixture f;

        fixture_init(&f);
        f.memory[1].cgroup_id = 100;
        f.memory[2].cgroup_id = 101;
        add_cgroup(&f, 100, 1);
        add_cgroup(&f, 101, 2);
        fixture_start(&f);
        assert_int_equal(unit_table_join_again(&f.table, 1, NULL), -ENOENT);
        assert_ok(unit_table_join(&f.table, "/b.service", "/b.service", &unit));
        assert_int_equal(unit, 3);
        /* It is in one of these cgroups, by another name. */
        assert_ok(unit_table_set_cgroup(&f.table, unit, 101, 1));
        unit_table_drop_inherited(&f.table);
        assert_int_equal(f.table.memory[1].cgroup_id, 0);
        assert_int_equal(f.table.memory[2].cgroup_id, 0);
        assert_int_equal(find_cgroup(&f, 100), TLOB_UNIT_NONE);
        assert_int_equal(find_cgroup(&f, 101), unit);
        assert_ok(unit_table_join(&f.table, "/c.service", NULL, &unit));
        assert_int_equal(unit, 1);
        fixture_done(&f);
}

/* Its path goes, whether or not this daemon came to put it there. */
static void test_drop_takes_path(void **state) {
        struct tlob_unit_path path = { "/a.service" }, other = { "/b.service" };
        Fixture f;

        fixture_init(&f);
        f.kept[1] = (KeptUnit) { .name = "/a.service", .path = path };
        f.kept[2] = (KeptUnit) { .name = "/b.service", .path = other };
        assert_ok(bpf_map_update_elem(f.maps.by_path, &path, &(uint32_t) { 1 }, BPF_ANY));
        assert_ok(bpf_map_update_elem(f.maps.by_path, &other, &(uint32_t) { 3 }, BPF_ANY));
        fixture_start(&f);
        unit_table_drop_inherited(&f.table);
        assert_int_equal(find_path(&f, "/a.service"), TLOB_UNIT_NONE);
        assert_int_equal(find_path(&f, "/b.service"), 3);
        fixture_done(&f);
}

static void check_spares(uint32_t n, uint32_t left) {
        struct tlob_spares spares = { .n = n };
        struct tlob_unit_path name = { "a@.service" };
        Fixture f;

        for (uint32_t i = 0; i < TLOB_SPARES_MAX; i++)
                spares.unit[i] = i + 1;
        fixture_init(&f);
        f.kept[1] = (KeptUnit) { .name = "a@.service#1", .spare_of = name };
        f.memory[1].cgroup_id = TLOB_CGROUP_SPARE;
        assert_ok(bpf_map_update_elem(f.maps.spares, &name, &spares, BPF_ANY));
        fixture_start(&f);
        unit_table_drop_inherited(&f.table);
        spares.n = 0;
        (void) bpf_map_lookup_elem(f.maps.spares, &name, &spares);
        assert_int_equal(spares.n, left);
        for (uint32_t i = 0; i < left; i++)
                assert_int_equal(spares.unit[i], i + 2);
        fixture_done(&f);
}

/* A list that says that it is longer than there is room ends where the room does. */
static void test_spares(void **state) {
        check_spares(1, 0);
        check_spares(3, 2);
        check_spares(TLOB_SPARES_MAX, TLOB_SPARES_MAX - 1);
        check_spares(TLOB_SPARES_MAX + 1, TLOB_SPARES_MAX - 1);
        check_spares(UINT32_MAX, TLOB_SPARES_MAX - 1);
}

/* Whoever made it one has been killed before it came into the list, or after. */
static void test_half_made_spare(void **state) {
        struct tlob_spares spares = {};
        struct tlob_unit_path name = { "a@.service" };
        Fixture f;

        fixture_init(&f);
        f.kept[1] = (KeptUnit) { .name = "a@.service#1", .spare_of = name };
        f.memory[1].cgroup_id = TLOB_CGROUP_SPARE;
        fixture_start(&f);
        assert_ok(unit_table_complete(&f.table));
        assert_ok(bpf_map_lookup_elem(f.maps.spares, &name, &spares));
        assert_int_equal(spares.n, 1);
        assert_int_equal(spares.unit[0], 1);
        unit_table_done(&f.table);

        /* The one after that finds it in the list. */
        assert_ok(unit_table_init(&f.table, N_UNITS, &f.maps, &f.levels, &f.n_followed, 0, f.kept));
        assert_ok(unit_table_complete(&f.table));
        assert_ok(bpf_map_lookup_elem(f.maps.spares, &name, &spares));
        assert_int_equal(spares.n, 1);
        assert_int_equal(f.table.memory[1].cgroup_id, TLOB_CGROUP_SPARE);
        fixture_done(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_join_again),          cmocka_unit_test(test_no_such_unit),
                cmocka_unit_test(test_garbage_behind_path), cmocka_unit_test(test_path_and_spare),
                cmocka_unit_test(test_path_too_long),       cmocka_unit_test(test_no_name),
                cmocka_unit_test(test_drop_takes_path),     cmocka_unit_test(test_spares),
                cmocka_unit_test(test_half_made_spare),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
