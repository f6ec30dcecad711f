/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* near-name.h: what counts as near, in which order, and what is left out. */

#include "base/near-name.h"

#include "base/cleanup.h"
#include "test.h"

static void offer_all(NearNames *names, const char *wanted, const char *const *offered) {
        near_names_init(names, wanted, strlen(wanted));
        for (; *offered; offered++)
                near_names_offer(names, *offered);
}

static void assert_name(const NearNames *names, size_t i, const char *name) {
        assert_true(i < names->n);
        assert_int_equal(names->best[i].length, strlen(name));
        assert_memory_equal(names->best[i].name, name, strlen(name));
}

static void test_order(void **state) {
        static const char *const offered[] = { "zebra", "fsync_range", "_ZN3log5fsyncEv",
                                               "fsync", "fdatasync",   "fsync@@GLIBC_2.2.5",
                                               "sync",  NULL };
        NearNames names;

        offer_all(&names, "fsyncc", offered);
        assert_int_equal(names.n, 3);
        assert_name(&names, 0, "fsync");
        assert_name(&names, 1, "_ZN3log5fsyncEv");
        assert_name(&names, 2, "sync");

        /* What holds the wanted name comes before what differs in a letter. */
        offer_all(&names, "fsyn", offered);
        assert_name(&names, 0, "fsync");
        assert_name(&names, 1, "_ZN3log5fsyncEv");
        assert_name(&names, 2, "fsync_range");
        assert_name(&names, 3, "sync");
        assert_int_equal(names.n, 4);
}

/* The names that node and a Rust program have for these: longer than any edit distance allows. */
static void test_mangled(void **state) {
        static const char callback[] =
                "_ZN4node12MakeCallbackEPN2v87IsolateENS0_5LocalINS0_6ObjectEEEPKciPNS3_INS0_5Value"
                "EEENS_13async_contextE";
        static const char write[] = "_ZN4core3fmt5write17h0123456789abcdefE";
        static const char *const offered[] = { "MakeCallbacks", callback, write,
                                               "_ZN4node12MakeCallbackEv.part.0",
                                               "_RNvNtC5crate3log5flush",
                                               /* No function of its own. */
                                               "_ZN4node12MakeCallbackEi.cold", NULL };
        _cleanup_free_ char *list = NULL;
        NearNames names;

        offer_all(&names, "MakeCallback", offered);
        assert_name(&names, 0, callback);
        assert_name(&names, 1, "_ZN4node12MakeCallbackEv.part.0");
        assert_name(&names, 2, "MakeCallbacks");
        assert_int_equal(names.n, 3);
        list = near_names_list(&names, NULL, NULL);
        assert_non_null(strstr(list, " (node::MakeCallback(v8::Isolate*, "));
        assert_non_null(strstr(list, "...), _ZN4node12MakeCallbackEv.part.0"));

        offer_all(&names, "node::MakeCallback", offered);
        assert_name(&names, 0, callback);
        offer_all(&names, "MakeCalback", offered);
        assert_name(&names, 0, callback);
        offer_all(&names, "fmt::write", offered);
        assert_name(&names, 0, write);
        offer_all(&names, "flush", offered);
        assert_name(&names, 0, "_RNvNtC5crate3log5flush");
}

static bool is_short(const char *text, void *userdata) {
        return strlen(text) < *(const size_t *) userdata;
}

/*
 * Rust's methods have the path of their type and trait, in "<>" in one scheme but not in the other.
 */
static void test_methods(void **state) {
        static const char trait[] = "_RNvXCs1_4shopNtB2_4FastNtB2_7Handler6handle",
                          slow[] = "_RNvXCs1_4shopINtB2_4SlowmENtB2_7Handler6handle",
                          v0[] = "_RNvMCs1_4shopNtB2_4Fast5serve",
                          legacy[] = "_ZN4shop4Fast5serve17h0123456789abcdefE",
                          generic[] = "_RINvCs1_4shop4showmE";
        static const char *const offered[] = { trait, slow, v0, generic, NULL };
        static const char *const old[] = { legacy, NULL };
        static const struct {
                const char *wanted;
                size_t n;
                const char *nearest;
        } cases[] = {
                { "Fast::handle", 1, trait },
                { "fast::handle", 1, trait },
                { "shop::Fast::handle", 1, trait },
                { "<Slow as Handler>::handle", 2, slow },
                { "Slow<u32>::handle", 1, slow },
                { "Handler::handle", 2, trait },
                { "shop::Fast::serve", 1, v0 },
                { "shop::show", 1, generic },
                { "shop::show::h0123456789abcdef", 1, generic },
                { "Other::handle", 0, NULL },
                { "<>::handle", 2, trait },
                { "::<", 1, generic },
        };
        _cleanup_free_ char *list = NULL, *longer = NULL;
        size_t length = 100, shortest = 1;
        NearNames names;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                offer_all(&names, cases[i].wanted, offered);
                if (names.n != cases[i].n)
                        fail_msg("%s: %zu names", cases[i].wanted, names.n);
                if (names.n > 0)
                        assert_name(&names, 0, cases[i].nearest);
        }

        offer_all(&names, "<shop::Fast>::serve", old);
        assert_name(&names, 0, legacy);
        /* As it is accepted. */
        list = near_names_list(&names, is_short, &length);
        assert_string_equal(list, "'shop::Fast::serve'");
        longer = near_names_list(&names, is_short, &shortest);
        assert_non_null(strstr(longer, "17h0123456789abcdefE (shop::Fast::serve)"));
}

/* Letters that differ, in a method, in its type, or in both; but not in all of a word. */
static void test_misspelt_methods(void **state) {
        static const char handle[] = "_ZN4shop5Order6handleEi", boom[] = "_ZN4shop5Order4boomEi",
                          other[] = "_ZN4shop6Basket6handleEi",
                          trait[] = "_RNvXCs1_4shopNtB2_4FastNtB2_7Handler5serve";
        static const char *const offered[] = { boom, other, trait, handle, "main", NULL };
        static const struct {
                const char *wanted;
                size_t n;
                const char *nearest;
        } cases[] = {
                { "shop::Order::handel", 1, handle },
                { "shop::Oder::handle", 1, handle },
                { "shop::Oder::handel", 1, handle },
                { "Oder::Handel", 1, handle },
                { "Ordre::handel", 1, handle },
                { "store::Order::handel", 1, handle },
                { "shop::Order::handel(int)", 1, handle },
                { "shop::Oder::handle(const char *)", 1, handle },
                { "shop::Order::bom", 1, boom },
                { "shop::Baskets::handle", 1, other },
                { "shop::Fasd::serve", 1, trait },
                { "Fast::serfe", 1, trait },
                { "shop::Slow::handle", 0, NULL },
                { "shop::Order::payment", 0, NULL },
                { "shop::Order::", 2, boom },
        };
        NearNames names;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                offer_all(&names, cases[i].wanted, offered);
                if (names.n != cases[i].n)
                        fail_msg("%s: %zu names", cases[i].wanted, names.n);
                if (names.n > 0)
                        assert_name(&names, 0, cases[i].nearest);
        }
}

/* All words of a path are compared with all of another, which ends when the work is used up. */
static void test_much_work(void **state) {
        char wanted[180], offered[NEAR_NAMES_LEN - 8];
        NearNames names;

        for (size_t i = 0; i < sizeof(wanted); i++)
                wanted[i] = "abc::"[i % 5];
        for (size_t i = 0; i < sizeof(offered) - 1; i++)
                offered[i] = "dde::"[i % 5];
        (void) strcpy(wanted + sizeof(wanted) - 8, "::read");
        (void) strcpy(offered + sizeof(offered) - 8, "::reed");
        near_names_init(&names, wanted, strlen(wanted));
        for (size_t i = 0; i < 10000000; i++)
                near_names_offer(&names, offered);
        assert_int_equal(names.n, 0);
}

/* Whoever wrote it with other capitals meant it; but what is written as it is, is nearer. */
static void test_case(void **state) {
        static const char *const offered[] = { "RunMainLoop", "mainLoops",         "MAINLOOP",
                                               "MainLoop",    "_ZN2ev8MainLoopEv", NULL };
        static const char *const both[] = { "FSYNC", "do_FSYNC", "do_fsync", "fsync", NULL };
        NearNames names;

        offer_all(&names, "mainloop", offered);
        assert_int_equal(names.n, 4);
        assert_name(&names, 0, "MAINLOOP");
        assert_name(&names, 1, "MainLoop");
        assert_name(&names, 2, "_ZN2ev8MainLoopEv");
        assert_name(&names, 3, "mainLoops");
        offer_all(&names, "MainLop", offered);
        assert_name(&names, 0, "MAINLOOP");
        offer_all(&names, "fsync", both);
        assert_name(&names, 0, "fsync");
        assert_name(&names, 1, "FSYNC");
        assert_name(&names, 2, "do_fsync");
        assert_name(&names, 3, "do_FSYNC");
}

static void test_full(void **state) {
        static const char *const offered[] = { "read5", "read4", "read3", "read2", "reed", NULL };
        NearNames names;

        offer_all(&names, "read", offered);
        assert_int_equal(names.n, NEAR_NAMES_N);
        assert_name(&names, 0, "read5");
        assert_name(&names, 3, "read2");
}

static void test_odd_names(void **state) {
        static const char *const offered[] = { "", "@@V", "rea\nd", "rea\xff", NULL };
        char longest[NEAR_NAMES_LEN + 1];
        NearNames names;

        offer_all(&names, "read", offered);
        assert_int_equal(names.n, 0);

        memset(longest, 'r', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        near_names_offer(&names, longest);
        near_names_init(&names, longest, sizeof(longest) - 1);
        near_names_offer(&names, "rrrr");
        near_names_offer(&names, longest);
        assert_int_equal(names.n, 1);
        assert_name(&names, 0, "rrrr");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_mangled),
                cmocka_unit_test(test_case),
                cmocka_unit_test(test_methods),
                cmocka_unit_test(test_misspelt_methods),
                cmocka_unit_test(test_much_work),
                cmocka_unit_test(test_full),
                cmocka_unit_test(test_odd_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
