/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * config/file.h: how one file is taken apart, written down as one line for each call of a handler;
 * and which files of several directories are read in which order.
 */

#include "config/file.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "temporary.h"
#include "test.h"

/* What the handlers were told. */
typedef struct Recorder {
        char text[16384];
        int fail; /* returned for the key "Fail" */
} Recorder;

static void record(Recorder *recorder, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static void record(Recorder *recorder, const char *format, ...) {
        size_t n = strlen(recorder->text);
        va_list ap;

        va_start(ap, format);
        assert_in_range(vsnprintf(recorder->text + n, sizeof(recorder->text) - n, format, ap), 0,
                        sizeof(recorder->text) - n - 1);
        va_end(ap);
}

static int on_section(const ConfigPlace *place, const char *section, void *userdata) {
        record(userdata, "%u[%s]\n", place->line, section);
        return strncmp(section, "Not", 3) != 0;
}

static int on_key(const ConfigPlace *place, const char *key, const char *value, void *userdata) {
        Recorder *recorder = userdata;

        record(recorder, "%u %s=%s\n", place->line, key, value);
        return streq(key, "Fail") ? recorder->fail : 0;
}

static int on_problem(const ConfigPlace *place, const char *key, const char *sentence,
                      void *userdata) {
        record(userdata, "%u!%s:%s\n", place->line, key ?: "", sentence);
        return 0;
}

static const ConfigHandlers handlers = { on_section, on_key, on_problem };

static void assert_parsed(const char *text, size_t size, const char *expected) {
        Recorder recorder = {};

        assert_ok(config_file_parse("f", text, size, &handlers, &recorder));
        assert_string_equal(recorder.text, expected);
}

#define assert_text(text, expected) assert_parsed(text, sizeof(text) - 1, expected)

static void test_plain(void **state) {
        assert_text("", "");
        assert_text("\n\n# c\n ; c\n", "");
        assert_text("[A b]\nx=1\n\n y = 2 3 \nz=\n", "1[A b]\n2 x=1\n4 y=2 3\n5 z=\n");
        assert_text("[A]\nx=1", "1[A]\n2 x=1\n");
        assert_text("[A]\nx=a=b:c\n", "1[A]\n2 x=a=b:c\n");
        assert_text("[A]\nx=;1\ny=a;b\nz=#1\n", "1[A]\n2 x=;1\n3 y=a;b\n4 z=#1\n");
        assert_text("  [A]  \n\tx\t=\t1\n", "1[A]\n2 x=1\n");
}

static void test_bom_and_crlf(void **state) {
        assert_text("\xef\xbb\xbf[A]\r\nx=1\r\n\r\ny=2", "1[A]\n2 x=1\n4 y=2\n");
        assert_text("\xef\xbb\xbf", "");
}

/* An indented line is a line of its own, as in systemd, and no continuation. */
static void test_indentation(void **state) {
        assert_text("[A]\nx=1\n    y=2\n    z\n",
                    "1[A]\n2 x=1\n3 y=2\n4!:This line is not Key=value\n");
}

static void test_problems(void **state) {
        assert_text("x=1\n[A]\n", "1!:This line is not in any section\n2[A]\n");
        assert_text("[A]\nword\nx:1\nx:y=1\n=1\n",
                    "1[A]\n2!:This line is not Key=value\n3!:This line is not Key=value\n"
                    "4!:This line is not Key=value\n5 =1\n");
        assert_text("[A]\nx = 1 ; one\n",
                    "1[A]\n2!x:This line has a comment after its value: comments need a line of "
                    "their own\n");
        assert_text("[A]\nx=1\0\ny\0=1\nz=1\n",
                    "1[A]\n2!x:This line has a NUL byte\n3!:This line has a NUL byte\n4 z=1\n");
        assert_text("[A\nx=1\n[B] x\ny=1\n[C]\nz=1\n",
                    "1!:This section begins with '[' but does not end with ']'\n"
                    "3!:This section begins with '[' but does not end with ']'\n5[C]\n6 z=1\n");
        assert_text("[\n[]\nx=1\n", "1!:This section begins with '[' but does not end with ']'\n"
                                    "2[]\n3 x=1\n");
        assert_text("[a\0b]\nx=1\n", "1!:The name of this section has a NUL byte\n");
}

static void test_unwanted(void **state) {
        char text[8192] = "[Not mine]\n";

        memset(text + strlen(text), 'x', 5000);
        strcat(text, "\nno key\nx=1 ; c\n[Mine]\ny=1\n");
        assert_parsed(text, strlen(text), "1[Not mine]\n5[Mine]\n6 y=1\n");
}

/*
 * libinih would cut these lines and read their tails as lines. After one that fills its buffer,
 * release 59 takes all that follows for its tail.
 */
static void test_long_lines(void **state) {
        char text[1024] = "[A]\nx=", expected[1024] = "1[A]\n2 x=";

        memset(text + strlen(text), 'v', 196);
        memset(expected + strlen(expected), 'v', 196);
        assert_parsed(text, strlen(text), strcat(expected, "\n"));

        strcat(text, "v\ny=1\n");
        assert_parsed(text, strlen(text),
                      "1[A]\n2!x:This line is too long: shorten a long path with a symbolic "
                      "link, replace a long symbol by its offset\n3 y=1\n");
}

static void test_long_sections(void **state) {
        char text[1024] = "[", expected[1024] = "1[";

        memset(text + 1, 's', CONFIG_SECTION_MAX);
        memset(expected + 2, 's', CONFIG_SECTION_MAX);
        strcat(text, "]\nx=1\n");
        assert_parsed(text, strlen(text), strcat(expected, "]\n2 x=1\n"));

        memset(text + 1, 's', CONFIG_SECTION_MAX + 1);
        strcpy(text + CONFIG_SECTION_MAX + 2, "]\nx=1\n");
        assert_parsed(text, strlen(text), "1!:The name of this section is too long\n");
}

static void test_handler_fails(void **state) {
        static const char text[] = "[A]\nx=1\nFail=1\ny=1\n";
        Recorder recorder = { .fail = -ENOMEM };

        assert_int_equal(config_file_parse("f", text, sizeof(text) - 1, &handlers, &recorder),
                         -ENOMEM);
        assert_string_equal(recorder.text, "1[A]\n2 x=1\n3 Fail=1\n");
}

static void test_load(void **state) {
        _cleanup_(temporary_done) Temporary tmp = {};
        _cleanup_free_ char *text = NULL;
        Recorder recorder = {};
        size_t size = 0;

        temporary_init(&tmp);
        assert_int_equal(config_file_load(temporary_path(&tmp, "none"), &text, &size), -ENOENT);
        assert_int_equal(config_file_load(tmp.path, &text, &size), -EISDIR);
        assert_ok(mkfifo(temporary_path(&tmp, "fifo"), 0600));
        assert_int_equal(config_file_load(temporary_path(&tmp, "fifo"), &text, &size), -EINVAL);
        temporary_write(&tmp, "large", "");
        assert_ok(truncate(temporary_path(&tmp, "large"), (1 << 20) + 1));
        assert_int_equal(config_file_load(temporary_path(&tmp, "large"), &text, &size), -EFBIG);
        assert_null(text);

        temporary_write(&tmp, "good", "[A]\nx=1\n");
        assert_ok(config_file_load(temporary_path(&tmp, "good"), &text, &size));
        assert_int_equal(size, 8);

        assert_ok(config_file_read(temporary_path(&tmp, "none"), &handlers, &recorder));
        assert_ok(config_file_read(temporary_path(&tmp, "fifo"), &handlers, &recorder));
        assert_ok(config_file_read(tmp.path, &handlers, &recorder));
        assert_ok(config_file_read(temporary_path(&tmp, "good"), &handlers, &recorder));
        assert_string_equal(recorder.text, "0!:Cannot read it (it is not a regular file)\n"
                                           "0!:Cannot read it (Is a directory)\n1[A]\n2 x=1\n");
}

static void test_list(void **state) {
        _cleanup_(config_file_list_done) ConfigFileList list = {};
        _cleanup_(temporary_done) Temporary tmp = {};
        static const char *const expected[] = { "usr/b/10.conf", "etc/b/20.conf", "run/b/30.conf",
                                                "etc/b/40.conf" };
        const char *directories[3];
        Recorder recorder = {};
        char etc[256], run[256], usr[256];

        temporary_init(&tmp);
        directories[0] = strcpy(etc, temporary_path(&tmp, "etc"));
        directories[1] = strcpy(run, temporary_path(&tmp, "run"));
        directories[2] = strcpy(usr, temporary_path(&tmp, "usr"));
        temporary_write(&tmp, "usr/b/10.conf", "");
        temporary_write(&tmp, "usr/b/20.conf", "");
        temporary_write(&tmp, "usr/b/50.conf", "");
        temporary_write(&tmp, "usr/b/60.conf", "");
        temporary_write(&tmp, "run/b/30.conf", "");
        temporary_write(&tmp, "run/b/20.conf", "");
        temporary_write(&tmp, "etc/b/20.conf", "");
        temporary_write(&tmp, "etc/b/40.conf", "");
        temporary_write(&tmp, "etc/b/.hidden.conf", "");
        temporary_write(&tmp, "etc/b/.conf", "");
        temporary_write(&tmp, "etc/b/README", "");
        temporary_write(&tmp, "etc/b/40.conf~", "");
        assert_ok(symlink("/dev/null", temporary_path(&tmp, "etc/b/50.conf")));
        assert_ok(
                symlink("../../../../../../../../dev/null", temporary_path(&tmp, "run/b/60.conf")));

        assert_ok(config_file_list(directories, 3, "b", &handlers, &recorder, &list));
        assert_int_equal(list.n, ELEMENTSOF(expected));
        for (size_t i = 0; i < list.n; i++)
                assert_string_equal(list.paths[i], temporary_path(&tmp, expected[i]));
        assert_string_equal(recorder.text, "");

        config_file_list_done(&list);
        assert_ok(config_file_list(directories, 3, "none", &handlers, &recorder, &list));
        assert_int_equal(list.n, 0);
        assert_ok(config_file_list(directories, 1, "b/20.conf", &handlers, &recorder, &list));
        assert_int_equal(list.n, 0);
        assert_string_equal(recorder.text, "0!:Cannot read it (Not a directory)\n");
}

static void test_find(void **state) {
        _cleanup_(temporary_done) Temporary tmp = {};
        _cleanup_free_ char *path = NULL, *second = NULL;
        const char *directories[2];
        char etc[256], usr[256];

        temporary_init(&tmp);
        directories[0] = strcpy(etc, temporary_path(&tmp, "etc"));
        directories[1] = strcpy(usr, temporary_path(&tmp, "usr"));
        assert_int_equal(config_file_find(directories, 2, "x.conf", &path), -ENOENT);
        temporary_write(&tmp, "usr/x.conf", "");
        assert_ok(config_file_find(directories, 2, "x.conf", &path));
        assert_string_equal(path, temporary_path(&tmp, "usr/x.conf"));
        temporary_write(&tmp, "etc/y.conf", "");
        assert_ok(symlink("/dev/null", temporary_path(&tmp, "etc/x.conf")));
        assert_int_equal(config_file_find(directories, 2, "x.conf", &second), -ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_plain),         cmocka_unit_test(test_bom_and_crlf),
                cmocka_unit_test(test_indentation),   cmocka_unit_test(test_problems),
                cmocka_unit_test(test_unwanted),      cmocka_unit_test(test_long_lines),
                cmocka_unit_test(test_long_sections), cmocka_unit_test(test_handler_fails),
                cmocka_unit_test(test_load),          cmocka_unit_test(test_list),
                cmocka_unit_test(test_find),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
