/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* daemon/bpf/sites.c: what a daemon has left in the maps of sites goes, and nothing else. */

#include "bpf/sites.h"

#include <bpf/bpf.h>
#include <sys/mman.h>

#include "fake-maps.h"
#include "test.h"

#define N_SITES 4

typedef struct Fixture {
        SiteTable table;
        int sites_fd, scopes_fd, processes_fd, hits_fd;
        uint32_t generation;
} Fixture;

/* Sites 0 and 1 are the predecessor's. */
static void fixture_init(Fixture *f) {
        struct tlob_site sites[N_SITES] = { { .generation = 1 }, { .generation = 2 } };

        fake_maps_reset();
        *f = (Fixture) {
                .sites_fd = memfd_create("sites", MFD_CLOEXEC),
                .scopes_fd =
                        fake_map_make(sizeof(struct tlob_scope_key), sizeof(struct tlob_scope)),
                .processes_fd = fake_map_make(sizeof(struct tlob_process_site), 1),
                .hits_fd = fake_map_make(sizeof(uint32_t), sizeof(struct tlob_hits)),
                .generation = 2,
        };
        assert_int_equal(write(f->sites_fd, sites, sizeof(sites)), sizeof(sites));
        assert_ok(site_table_init(&f->table, N_SITES,
                                  &(SiteProbes) {
                                          .side = 1,
                                          .process_sites_fd = f->processes_fd,
                                          .hits_fd = f->hits_fd,
                                          .n_cpus = 1,
                                  },
                                  f->sites_fd, f->scopes_fd, &f->generation));
}

static void fixture_done(Fixture *f) {
        site_table_done(&f->table);
        (void) close(f->sites_fd);
}

static void add_scope(const Fixture *f, uint32_t site) {
        struct tlob_scope_key key = { .site = site, .unit = 3 };

        assert_ok(bpf_map_update_elem(f->scopes_fd, &key, &(struct tlob_scope) {}, BPF_ANY));
}

static bool has_scope(const Fixture *f, uint32_t site) {
        struct tlob_scope_key key = { .site = site, .unit = 3 };
        struct tlob_scope scope;

        return bpf_map_lookup_elem(f->scopes_fd, &key, &scope) == 0;
}

static void add_process(const Fixture *f, uint32_t site, uint32_t side) {
        struct tlob_process_site key = { .tgid = 9, .site = site, .side = side };

        assert_ok(bpf_map_update_elem(f->processes_fd, &key, &(uint8_t) { 1 }, BPF_ANY));
}

static bool has_process(const Fixture *f, uint32_t site, uint32_t side) {
        struct tlob_process_site key = { .tgid = 9, .site = site, .side = side };
        uint8_t yes;

        return bpf_map_lookup_elem(f->processes_fd, &key, &yes) == 0;
}

static void test_drop(void **state) {
        Fixture f;

        fixture_init(&f);
        for (uint32_t i = 0; i < N_SITES; i++) {
                add_scope(&f, i);
                add_process(&f, i, 0);
                add_process(&f, i, 1);
        }
        site_table_drop_inherited(&f.table);
        for (uint32_t i = 0; i < N_SITES; i++) {
                assert_int_equal(has_scope(&f, i), i >= 2);
                assert_true(has_process(&f, i, 0));
                assert_int_equal(has_process(&f, i, 1), i >= 2);
                assert_int_equal(site_shared(&f.table, i)->generation, 0);
        }
        fixture_done(&f);
}

/* Where no site was ever made, the memory of them is not the daemon's yet. */
static void test_nothing_to_inherit(void **state) {
        SiteTable table;
        uint32_t generation = 0;
        Fixture f;

        fixture_init(&f);
        assert_ok(site_table_init(&table, N_SITES, &(SiteProbes) {}, f.sites_fd, f.scopes_fd,
                                  &generation));
        assert_int_equal(table.memory.n_mapped, 0);
        assert_int_equal(f.table.memory.n_mapped, N_SITES);
        site_table_done(&table);
        fixture_done(&f);
}

/* A site of which there is none here is looked up nowhere. */
static void test_no_such_site(void **state) {
        static const uint32_t sites[] = { N_SITES, 1U << 20, 1U << 31, UINT32_MAX };
        Fixture f;

        fixture_init(&f);
        for (size_t i = 0; i < ELEMENTSOF(sites); i++) {
                add_scope(&f, sites[i]);
                add_process(&f, sites[i], 1);
        }
        add_scope(&f, N_SITES - 1);
        add_process(&f, N_SITES - 1, 1);
        site_table_drop_inherited(&f.table);
        assert_int_equal(fake_map_count(f.scopes_fd), 1);
        assert_int_equal(fake_map_count(f.processes_fd), 1);
        assert_true(has_scope(&f, N_SITES - 1));
        assert_true(has_process(&f, N_SITES - 1, 1));
        fixture_done(&f);
}

static bool is_of_marks(const Fixture *f, uint32_t site) {
        return site_shared(&f->table, site)->whole_marks;
}

/* At an offset, of a user; each process has its own probe, and so none is set here. */
static uint32_t join(Fixture *f, uint64_t offset, uint32_t owner, const SiteUser *user) {
        const SiteKey key = {
                .offsets = &offset,
                .n_offsets = 1,
                .inode = 7,
                .by_process = true,
                .owner = owner,
        };
        _cleanup_free_ char *reason = NULL;
        uint32_t site = UINT32_MAX;

        assert_ok(site_table_join(&f->table, &key, f->sites_fd, user, &site, &reason));
        return site;
}

/* Windows without traps are for one: whoever else is at the place has a site of his own, or not. */
static void test_marks_with_others(void **state) {
        const SiteUser mark = { .binding = 1, .unit = 3, .is_mark = true },
                       second = { .binding = 2, .unit = 3, .is_mark = true },
                       elsewhere = { .binding = 3, .unit = 3, .is_mark = true };
        uint32_t at_mark, at_second, at_other;
        Fixture f;

        fixture_init(&f);
        site_table_drop_inherited(&f.table);
        at_mark = join(&f, 0x10, 0, &mark);
        at_other = join(&f, 0x20, 0, &elsewhere);
        assert_true(is_of_marks(&f, at_mark));
        assert_true(is_of_marks(&f, at_other));

        at_second = join(&f, 0x10, 1000, &second);
        assert_int_not_equal(at_second, at_mark);
        assert_false(is_of_marks(&f, at_mark));
        assert_false(is_of_marks(&f, at_second));
        assert_true(is_of_marks(&f, at_other));

        site_table_leave(&f.table, at_mark, &mark);
        assert_true(is_of_marks(&f, at_second));
        at_mark = join(&f, 0x10, 0, &mark);
        assert_false(is_of_marks(&f, at_second));
        site_table_leave(&f.table, at_second, &second);
        assert_true(is_of_marks(&f, at_mark));
        site_table_leave(&f.table, at_mark, &mark);
        site_table_leave(&f.table, at_other, &elsewhere);
        fixture_done(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_drop),
                cmocka_unit_test(test_nothing_to_inherit),
                cmocka_unit_test(test_no_such_site),
                cmocka_unit_test(test_marks_with_others),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
