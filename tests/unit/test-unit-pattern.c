/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* unit/pattern.h: which units a file is for, by its name. */

#include "unit/pattern.h"

#include "base/cleanup.h"
#include "test.h"

#define FILE_NAME false
#define DROP_IN   true

static void test_one_unit(void **state) {
        static const struct {
                const char *name;
                bool is_drop_in;
        } files[] = {
                { "nginx.service", FILE_NAME },
                { "nginx.service", DROP_IN },
                { "foo@bar.service", FILE_NAME },
                { "a-b.slice", FILE_NAME },
                { "session-1.scope", DROP_IN },
                { "-.slice", FILE_NAME },
                { "odd\\x2dx.service", FILE_NAME },
                /* Only drop-ins are for all whose names begin so. */
                { "foo-.service", FILE_NAME },
        };

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                _cleanup_(unit_pattern_done) UnitPattern pattern = {};

                assert_int_equal(unit_pattern_of(files[i].name, files[i].is_drop_in, &pattern), 1);
                assert_string_equal(pattern.name, files[i].name);
                assert_true(unit_pattern_matches(&pattern, files[i].name));
                assert_false(unit_pattern_matches(&pattern, "other.service"));
                assert_false(unit_pattern_is_for_many(&pattern, files[i].name));
        }
}

static void test_many_units(void **state) {
        static const struct {
                const char *name;
                bool is_drop_in;
                const char *prefix, *suffix;
        } files[] = {
                { "foo@.service", FILE_NAME, "foo@", ".service" },
                { "foo@.service", DROP_IN, "foo@", ".service" },
                { "foo-.service", DROP_IN, "foo-", ".service" },
                { "a-.slice", DROP_IN, "a-", ".slice" },
                { "service", DROP_IN, "", ".service" },
                { "slice", DROP_IN, "", ".slice" },
                { "scope", DROP_IN, "", ".scope" },
        };

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                _cleanup_(unit_pattern_done) UnitPattern pattern = {};

                assert_int_equal(unit_pattern_of(files[i].name, files[i].is_drop_in, &pattern), 1);
                assert_null(pattern.name);
                assert_string_equal(pattern.prefix, files[i].prefix);
                assert_string_equal(pattern.suffix, files[i].suffix);
        }
}

static void test_no_unit_of_ours(void **state) {
        static const struct {
                const char *name;
                bool is_drop_in;
        } files[] = {
                { "a.socket", FILE_NAME },
                { "a.mount", DROP_IN },
                { "socket", DROP_IN },
                { "service", FILE_NAME },
                { ".service", FILE_NAME },
                { "", FILE_NAME },
                { "", DROP_IN },
                { "nginx", DROP_IN },
                { "a b.service", FILE_NAME },
                { "nginx.service~", FILE_NAME },
                { "nginx.services", DROP_IN },
        };

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                UnitPattern pattern = { .suffix = "untouched" };

                assert_int_equal(unit_pattern_of(files[i].name, files[i].is_drop_in, &pattern), 0);
                assert_string_equal(pattern.suffix, "untouched");
        }
}

typedef struct Match {
        const char *unit;
        bool matches;
        bool is_for_many; /* the same for templates, too */
} Match;

static void check_matches(const char *drop_in, const Match *matches, size_t n) {
        _cleanup_(unit_pattern_done) UnitPattern pattern = {};

        assert_int_equal(unit_pattern_of(drop_in, DROP_IN, &pattern), 1);
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(unit_pattern_matches(&pattern, matches[i].unit),
                                 matches[i].matches);
                assert_int_equal(unit_pattern_is_for_many(&pattern, matches[i].unit),
                                 matches[i].is_for_many);
        }
}

static void test_instances(void **state) {
        static const Match matches[] = {
                { "foo@a.service", true, true },     { "foo@a.b.service", true, true },
                { "foo@-.service", true, true },     { "foo@.service", false, true },
                { "foo.service", false, false },     { "food@a.service", false, false },
                { "a-foo@a.service", false, false }, { "foo@a.scope", false, false },
                { "foo@a.service.x", false, false }, { "foo@", false, false },
        };

        check_matches("foo@.service", matches, ELEMENTSOF(matches));
}

static void test_prefix(void **state) {
        static const Match matches[] = {
                { "foo-a.service", true, true },    { "foo-a-b.service", true, true },
                { "foo-a@b.service", true, true },  { "foo-a@.service", false, true },
                { "foo.service", false, false },    { "foo-a.scope", false, false },
                { "foobar.service", false, false }, { "xfoo-a.service", false, false },
                { "foo-.service", true, true },     { "-.service", false, false },
        };
        static const Match of_root[] = {
                { "-.slice", true, true },
                { "-a.slice", true, true },
                { "a.slice", false, false },
                { ".slice", false, false },
        };

        check_matches("foo-.service", matches, ELEMENTSOF(matches));
        check_matches("-.slice", of_root, ELEMENTSOF(of_root));
}

static void test_whole_type(void **state) {
        static const Match matches[] = {
                { "a.service", true, false },   { "a@b.service", true, false },
                { "a@.service", false, false }, { "a.scope", false, false },
                { ".service", false, false },   { "service", false, false },
        };

        check_matches("service", matches, ELEMENTSOF(matches));
}

/* The pattern of a file is the same as that of its drop-ins. */
static void test_list(void **state) {
        static const struct {
                const char *name;
                bool is_drop_in;
                size_t n; /* with it */
        } files[] = {
                { "foo@.service", FILE_NAME, 1 }, { "foo@.service", DROP_IN, 1 },
                { "foo-.service", DROP_IN, 2 },   { "foo-.service", FILE_NAME, 3 },
                { "foo-.scope", DROP_IN, 4 },     { "foo-.scope", DROP_IN, 4 },
                { "a.service", FILE_NAME, 5 },    { "a.service", DROP_IN, 5 },
                { "b.service", FILE_NAME, 6 },    { "service", DROP_IN, 7 },
        };
        _cleanup_(unit_pattern_list_done) UnitPatternList list = {};

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                UnitPattern pattern = {};

                assert_int_equal(unit_pattern_of(files[i].name, files[i].is_drop_in, &pattern), 1);
                assert_ok(unit_pattern_list_add(&list, &pattern));
                /* What is on the list is a copy. */
                unit_pattern_done(&pattern);
                assert_int_equal(list.n, files[i].n);
        }
        assert_string_equal(list.items[0].prefix, "foo@");
        assert_string_equal(list.items[0].suffix, ".service");
        assert_string_equal(list.items[2].name, "foo-.service");
        assert_string_equal(list.items[3].suffix, ".scope");
        assert_string_equal(list.items[5].name, "b.service");
        assert_string_equal(list.items[6].prefix, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_unit),
                cmocka_unit_test(test_many_units),
                cmocka_unit_test(test_no_unit_of_ours),
                cmocka_unit_test(test_instances),
                cmocka_unit_test(test_prefix),
                cmocka_unit_test(test_whole_type),
                cmocka_unit_test(test_list),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
