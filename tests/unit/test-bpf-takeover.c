/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * daemon/bpf/takeover.c: which binding of the daemon before is whose, by what that one has left.
 * With programs in the kernel: tests/engine/test-takeover.c.
 */

#include <sys/epoll.h>

#include "bpf/backend.h"
#include "test.h"

#define N_BINDINGS 3

typedef struct Fixture {
        BpfBackend backend;
        struct tlob_binding bindings[N_BINDINGS];
        Entry entries[N_BINDINGS];
        Binding binding;
} Fixture;

/* The predecessor had one binding, at index 1. */
static void fixture_init(Fixture *f) {
        KeptFormat format = { .bindings_max = N_BINDINGS };
        BpfBackend *b = &f->backend;

        *f = (Fixture){
                .binding = {
                        .name = (char *) "a",
                        .unit = (char *) "a.service",
                        .resolved = { .device = 1, .inode = 2, .sites.start.offset = 3 },
                },
        };
        b->entries = f->entries;
        b->bindings.values = f->bindings;
        b->n_entries = N_BINDINGS;
        b->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        assert_ok(kept_new(&format, &b->kept));
        b->kept->common->generation = 5;
        f->bindings[1] = (struct tlob_binding) { .generation = 5, .unit = UINT32_MAX };
        bpf_entry_keep(b, &(Entry) { .generation = 5, .user.binding = 1 }, &f->binding);
}

static void fixture_done(Fixture *f) {
        detacher_free(f->backend.predecessor);
        kept_free(f->backend.kept);
        (void) close(f->backend.epoll_fd);
}

static void test_same(void **state) {
        Fixture f;

        fixture_init(&f);
        f.backend.kept->bindings[1].base.starts = 9;
        assert_ok(bpf_backend_inherit(&f.backend));
        assert_ptr_equal(bpf_entry_find_inherited(&f.backend, &f.binding), &f.entries[1]);
        assert_int_equal(f.entries[1].generation, 5);
        assert_int_equal(f.entries[1].base.starts, 9);
        assert_false(f.entries[0].inherited);
        assert_int_equal(f.backend.kept->common->generation, 5);
        fixture_done(&f);
}

static void test_another(void **state) {
        Fixture f;

        fixture_init(&f);
        assert_ok(bpf_backend_inherit(&f.backend));
        f.binding.name = (char *) "b";
        assert_null(bpf_entry_find_inherited(&f.backend, &f.binding));
        f.binding.name = (char *) "a";
        f.binding.unit = NULL;
        assert_null(bpf_entry_find_inherited(&f.backend, &f.binding));
        f.binding.unit = (char *) "a.service";
        f.binding.resolved.sites.start.offset++;
        assert_null(bpf_entry_find_inherited(&f.backend, &f.binding));
        f.binding.resolved.sites.start.offset--;
        f.backend.kept->bindings[1].generation++;
        assert_null(bpf_entry_find_inherited(&f.backend, &f.binding));
        f.backend.kept->bindings[1].generation--;
        assert_non_null(bpf_entry_find_inherited(&f.backend, &f.binding));
        fixture_done(&f);
}

/* A number that the maps have already would make one binding's windows another's. */
static void test_generations_go_on(void **state) {
        Fixture f;

        fixture_init(&f);
        f.bindings[2].generation = 8;
        assert_ok(bpf_backend_inherit(&f.backend));
        assert_int_equal(f.backend.kept->common->generation, 8);
        assert_ptr_equal(bpf_entry_find_inherited(&f.backend, &f.binding), &f.entries[1]);
        fixture_done(&f);
}

/* It is set up anew by the next daemon, and not taken for one whose name begins alike. */
static void test_name_too_long(void **state) {
        char name[KEPT_NAME_MAX + 1] = {};
        Fixture f;

        fixture_init(&f);
        memset(name, 'x', KEPT_NAME_MAX);
        f.binding.name = name;
        bpf_backend_kept_limit(&f.backend.backend, 2)->seen = 7; /* of one that it had before */
        bpf_entry_keep(&f.backend, &(Entry) { .generation = 6, .user.binding = 2 }, &f.binding);
        assert_int_equal(f.backend.kept->bindings[2].generation, 0);
        assert_int_equal(bpf_backend_kept_limit(&f.backend.backend, 2)->seen, 0);
        name[KEPT_NAME_MAX - 1] = '\0';
        bpf_entry_keep(&f.backend, &(Entry) { .generation = 6, .user.binding = 2 }, &f.binding);
        assert_int_equal(f.backend.kept->bindings[2].generation, 6);
        assert_string_equal(f.backend.kept->bindings[2].name, name);
        fixture_done(&f);
}

/* Its name and its unit are what that user says. */
static void test_of_a_user(void **state) {
        Entry entry = { .generation = 6, .user.binding = 2, .owner = 1000 };
        KeptBinding *kept;
        Fixture f;

        fixture_init(&f);
        kept = f.backend.kept->bindings;
        strcpy(kept[2].name, "a"); /* of one that it had before */
        bpf_entry_keep(&f.backend, &entry, &f.binding);
        assert_string_equal(kept[2].name, "");
        f.bindings[2].generation = 6;
        assert_ok(bpf_backend_inherit(&f.backend));
        assert_true(f.entries[2].inherited);
        assert_ptr_equal(bpf_entry_find_inherited(&f.backend, &f.binding), &f.entries[1]);
        f.entries[1].inherited = false;
        assert_null(bpf_entry_find_inherited(&f.backend, &f.binding));
        assert_false(kept_is_same(&kept[2], &kept[1]));
        assert_false(kept_is_same(&kept[2], &kept[2]));
        fixture_done(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_same),
                cmocka_unit_test(test_another),
                cmocka_unit_test(test_generations_go_on),
                cmocka_unit_test(test_name_too_long),
                cmocka_unit_test(test_of_a_user),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
