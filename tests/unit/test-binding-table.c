/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* binding/table.h: order, uniqueness, and who owns what. */

#include "binding/table.h"

#include "test.h"

static void test_many(void **state) {
        _cleanup_(binding_table_done) BindingTable table = {};

        for (unsigned i = 0; i < 100; i++) {
                Binding *binding = NULL;
                char name[16];

                (void) snprintf(name, sizeof(name), "b%02u", i * 37 % 100);
                assert_ok(binding_new(name, &binding));
                assert_ok(binding_table_put(&table, binding));
        }
        assert_int_equal(table.n, 100);
        for (size_t i = 1; i < table.n; i++)
                assert_true(strcmp(table.items[i - 1]->name, table.items[i]->name) < 0);
        assert_string_equal(binding_table_get(&table, "b42")->name, "b42");
        assert_null(binding_table_get(&table, "b100"));

        assert_ok(binding_set_state(binding_table_get(&table, "b42"), BINDING_ACTIVE, NULL));
        assert_int_equal(binding_table_count(&table, BINDING_ACTIVE), 1);
        assert_int_equal(binding_table_count(&table, BINDING_FAILED), 0);
}

static void test_twice(void **state) {
        _cleanup_(binding_table_done) BindingTable table = {};
        _cleanup_(binding_freep) Binding *second = NULL, *taken = NULL;
        Binding *first = NULL;

        assert_ok(binding_new("x", &first));
        assert_ok(binding_new("x", &second));
        assert_ok(binding_table_put(&table, first));
        assert_int_equal(binding_table_put(&table, second), -EEXIST);

        taken = binding_table_take(&table, "x");
        assert_ptr_equal(taken, first);
        assert_null(binding_table_take(&table, "x"));
        assert_int_equal(table.n, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_many),
                cmocka_unit_test(test_twice),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
