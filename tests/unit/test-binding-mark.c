/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Mark=: what it is short for, and what is no name of a mark. */

#include "binding/keys.h"
#include "test.h"

static Binding *make(void) {
        Binding *binding;

        assert_ok(binding_new("x", &binding));
        return binding;
}

static void set(Binding *binding, const char *key, const char *value) {
        assert_ok(binding_set_key(binding, key, value, NULL));
}

static void assert_value(const Binding *binding, const char *key, const char *expected) {
        _cleanup_free_ char *value = NULL;

        assert_int_equal(binding_get_key(binding, key, &value), expected ? 1 : 0);
        if (expected)
                assert_string_equal(value, expected);
}

static void test_key(void **state) {
        _cleanup_(binding_freep) Binding *binding = make();
        _cleanup_free_ char *value = NULL;

        set(binding, "Function", "f");
        set(binding, "Mark", "request");
        assert_value(binding, "Start", "usdt:tlob:request__begin");
        assert_value(binding, "Stop", "usdt:tlob:request__end");
        assert_int_equal(binding_get_key(binding, "Mark", &value), -ENOENT);
        assert_true(binding_has_usdt(binding));
        assert_true(binding_has_file(binding));

        /* One side can be replaced. */
        set(binding, "Stop", "f");
        assert_value(binding, "Start", "usdt:tlob:request__begin");
        set(binding, "Mark", "");
        assert_value(binding, "Start", NULL);
        assert_value(binding, "Stop", NULL);
}

static void test_bad_values(void **state) {
        static const char *const bad[] = { "2nd", "a-b", "tlob:request", "request__begin()", " " };
        _cleanup_(binding_freep) Binding *binding = make();

        set(binding, "Mark", "request");
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_free_ char *error = NULL;

                assert_int_equal(binding_set_key(binding, "Mark", bad[i], &error), -EINVAL);
                assert_non_null(strstr(error, "is not the name of a mark"));
                assert_non_null(strstr(error, "TLOB_MARK(NAME)"));
        }
        assert_value(binding, "Start", "usdt:tlob:request__begin");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_key),
                cmocka_unit_test(test_bad_values),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
