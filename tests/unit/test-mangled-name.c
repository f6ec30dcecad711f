/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* mangled-name.h: the languages, what is not mangled, and names that are made to explode. */

#include "base/mangled-name.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "test.h"

static void assert_decoded(const char *mangled, bool arguments, const char *expected) {
        char text[200];

        assert_int_equal(mangled_name_decode(mangled, arguments, text, sizeof(text)),
                         expected != NULL);
        assert_string_equal(text, expected ?: "");
}

static void test_languages(void **state) {
        static const char callback[] = "_ZN4node12MakeCallbackEPN2v87IsolateE";

        assert_decoded(callback, false, "node::MakeCallback");
        assert_decoded(callback, true, "node::MakeCallback(v8::Isolate*)");
        assert_decoded("_ZN1a1fIiEEvT_", true, "a::f<int>(int)");
        assert_decoded("_ZN4core3fmt5write17h0123456789abcdefE", true, "core::fmt::write");
        assert_decoded("_RNvNtC5crate3mod3foo", true, "crate::mod::foo");
}

static void test_not_mangled(void **state) {
        static const char *const names[] = {
                "",
                "main",
                "_Z",
                "_R",
                "_Zq",
                "_ZN4node",
                "i",
                /* Letters outside ASCII, which libiberty would leak memory for. */
                "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
                NULL,
        };

        for (const char *const *name = names; *name; name++)
                assert_decoded(*name, true, NULL);
}

/* Each argument names the one before twice: 30 of them stand for 2^30 names. */
static void test_explosion(void **state) {
        char name[1000] = "_Z1f1aIiE", text[100];
        size_t n;

        for (char c = 'b'; c <= 'z'; c++) {
                static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
                char before = digits[2 * (c - 'b') > 35 ? 35 : 2 * (c - 'b')];

                n = strlen(name);
                (void) snprintf(name + n, sizeof(name) - n, "1%cIS%c_S%c_E", c, before, before);
        }
        assert_true(mangled_name_decode(name, true, text, sizeof(text)));
        assert_int_equal(strlen(text), sizeof(text) - 1);
        assert_true(mangled_name_decode(name, false, text, sizeof(text)));
        assert_string_equal(text, "f");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_languages),
                cmocka_unit_test(test_not_mangled),
                cmocka_unit_test(test_explosion),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
