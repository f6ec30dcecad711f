/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* base/unit-name.h: which names are those of units, and of which. */

#include "base/unit-name.h"

#include "base/cleanup.h"
#include "test.h"

static void test_types(void **state) {
        static const struct {
                const char *name, *type;
                bool has_bindings, has_processes;
        } names[] = {
                { "nginx.service", ".service", true, true },
                { "a.b.service", ".service", true, true },
                { ".service", ".service", true, true },
                { "a.slice", ".slice", true, false },
                { "a.scope", ".scope", true, true },
                { "a.socket", ".socket", false, true },
                { "a.mount", ".mount", false, true },
                { "a.swap", ".swap", false, true },
                { "a.target", ".target", false, false },
                { "a.timer", ".timer", false, false },
                { "a.path", ".path", false, false },
                { "a.device", ".device", false, false },
                { "a.automount", ".automount", false, false },
        };
        static const char *const others[] = {
                "",           "service",   "nginx", "a.service.d",
                "a.services", "a.Service", "a.",    "a.xservice",
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const char *name = names[i].name;

                assert_string_equal(unit_name_type(name, UNIT_ANY), names[i].type);
                assert_int_equal(unit_name_type(name, UNIT_HAS_BINDINGS) != NULL,
                                 names[i].has_bindings);
                assert_int_equal(unit_name_type(name, UNIT_HAS_PROCESSES) != NULL,
                                 names[i].has_processes);
        }
        assert_null(unit_name_type("a.slice", UNIT_HAS_BINDINGS | UNIT_HAS_PROCESSES));
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                assert_null(unit_name_type(others[i], UNIT_ANY));
}

static void test_valid(void **state) {
        static const char *const good[] = {
                "nginx.service", "foo@.service",    "foo@a.b.service", "dev-\\x2d.service",
                "-.slice",       "session-1.scope", "a:b_C.service",   ".hidden.service",
        };
        static const char *const bad[] = {
                "",
                "nginx",
                "a.socket",
                ".service",
                "@.service",
                "@a.service",
                "a b.service",
                "../a.service",
                "a*.service",
                "caf\xc3\xa9.service",
                "a.service\n",
                "a.service/",
        };
        char name[UNIT_NAME_MAX + 2] = {};

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                assert_true(unit_name_is_valid(good[i]));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                assert_false(unit_name_is_valid(bad[i]));

        memset(name, 'a', UNIT_NAME_MAX + 1);
        memcpy(name + UNIT_NAME_MAX + 1 - strlen(".service"), ".service", strlen(".service"));
        assert_false(unit_name_is_valid(name));
        assert_true(unit_name_is_valid(name + 1));
}

static void test_templates(void **state) {
        _cleanup_free_ char *instance = NULL;

        assert_true(unit_name_is_template("foo@.service"));
        assert_false(unit_name_is_template("foo@bar.service"));
        assert_false(unit_name_is_template("foo.service"));
        assert_false(unit_name_is_template("foo@.bar.service"));
        assert_false(unit_name_is_template("foo@"));

        instance = unit_name_make_instance("foo@.service", "x");
        assert_string_equal(instance, "foo@x.service");
        assert_false(unit_name_is_template(instance));

        assert_true(unit_name_is_instance(instance, "foo@.service"));
        assert_true(unit_name_is_instance("foo@a@b.c.service", "foo@.service"));
        assert_false(unit_name_is_instance("foo@.service", "foo@.service"));
        assert_false(unit_name_is_instance("foo@x.socket", "foo@.service"));
        assert_false(unit_name_is_instance("food@x.service", "foo@.service"));
        assert_false(unit_name_is_instance("foo@x.service", "foo@y.service"));
        assert_false(unit_name_is_instance("foo.service", "foo.service"));
        assert_false(unit_name_is_instance("", "foo@.service"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_types),
                cmocka_unit_test(test_valid),
                cmocka_unit_test(test_templates),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
