/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Every key is in its man page, and every key of the daemon in the tlobd.conf that is installed,
 * where the commented values are the defaults. The build says where the files are: SOURCE_DIR.
 */

#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "binding/keys.h"
#include "config/config.h"
#include "config/file.h"
#include "test.h"

static char *load(const char *path) {
        char *text = NULL;
        size_t size;

        assert_ok(config_file_load(path, &text, &size));
        text = realloc(text, size + 1);
        assert_non_null(text);
        text[size] = '\0';
        return text;
}

/* Keys stand in the man pages as ".I Key=", and behind another one as "\fIKey=". */
static void assert_in_man_page(const char *path, const char *const *keys) {
        _cleanup_free_ char *text = load(path);

        for (; *keys; keys++) {
                char first[64], next[64];

                (void) snprintf(first, sizeof(first), "\n.I %s=", *keys);
                (void) snprintf(next, sizeof(next), "\\fI%s=", *keys);
                if (!strstr(text, first) && !strstr(text, next))
                        fail_msg("%s= is not in %s", *keys, path);
        }
}

static void test_man_pages(void **state) {
        assert_in_man_page(SOURCE_DIR "/conf/tlobd.conf.5", config_keys());
        assert_in_man_page(SOURCE_DIR "/conf/tlob.binding.5", binding_keys());
}

/* Each field that is sent from there stands in tlobd(8). */
static void assert_fields_in_page(const char *path) {
        _cleanup_free_ char *source = load(path);
        _cleanup_free_ char *page = load(SOURCE_DIR "/daemon/tlobd.8");
        size_t n = 0;

        for (char *p = source; (p = strstr(p, "\"TLOB_")); n++) {
                char *name = ++p;

                p += strcspn(p, "=");
                assert_int_equal(*p, '=');
                *p++ = '\0';
                if (!strstr(page, name))
                        fail_msg("%s= is not in tlobd.8", name);
        }
        assert_true(n > 10);
}

static void test_journal_fields(void **state) {
        assert_fields_in_page(SOURCE_DIR "/daemon/journal.c");
        assert_fields_in_page(SOURCE_DIR "/core/report/fields.c");
}

/* Takes the '#' from the lines that are settings. */
static void uncomment(char *text) {
        for (char *line = text; line; line = strchr(line, '\n')) {
                line += line[0] == '\n';
                if (line[0] == '#' && isupper((unsigned char) line[1]))
                        line[0] = ' ';
        }
}

static void assert_same_settings(const Config *a, const Config *b) {
        assert_int_equal(a->backend, b->backend);
        assert_int_equal(a->rate_limit_interval_ns, b->rate_limit_interval_ns);
        assert_int_equal(a->rate_limit_burst, b->rate_limit_burst);
        assert_int_equal(a->overall_rate_limit_burst, b->overall_rate_limit_burst);
        assert_int_equal(a->bindings_max, b->bindings_max);
        assert_int_equal(a->spare_instances, b->spare_instances);
        assert_int_equal(a->tasks_max, b->tasks_max);
        assert_int_equal(a->ring_buffer_size, b->ring_buffer_size);
        assert_int_equal(a->violations_max, b->violations_max);
}

static void test_installed_file(void **state) {
        _cleanup_free_ char *text = load(SOURCE_DIR "/conf/tlobd.conf");
        _cleanup_(config_freep) Config *config = NULL, *defaults = NULL;

        assert_ok(config_new(&defaults));
        assert_ok(config_new(&config));
        assert_ok(config_parse(config, CONFIG_FILE_DAEMON, "tlobd.conf", text, strlen(text)));
        assert_int_equal(config->n_messages, 0);

        uncomment(text);
        for (const char *const *key = config_keys(); *key; key++) {
                char word[64];

                (void) snprintf(word, sizeof(word), "\n %s=", *key);
                if (!strstr(text, word))
                        fail_msg("#%s= is not in tlobd.conf", *key);
        }
        assert_ok(config_parse(config, CONFIG_FILE_DAEMON, "tlobd.conf", text, strlen(text)));
        assert_int_equal(config->n_messages, 0);
        assert_same_settings(config, defaults);
}

/*
 * What README.md shows first works as it stands, and is what the system suite tries on a real
 * Redis.
 */
static void test_first_example(void **state) {
        static const char fence[] = "```ini\n";
        _cleanup_free_ char *readme = load(SOURCE_DIR "/README.md");
        _cleanup_free_ char *tried = load(SOURCE_DIR "/tests/system/scenarios/services.sh");
        _cleanup_(config_freep) Config *config = NULL;
        const char *unit = "redis-server.service", *begin, *end;
        char directory[64];

        begin = strstr(readme, fence);
        assert_non_null(begin);
        begin += strlen(fence);
        end = strstr(begin, "```");
        (void) snprintf(directory, sizeof(directory), "# /etc/systemd/system/%s.d/", unit);
        assert_memory_equal(begin, directory, strlen(directory));
        assert_ok(config_new(&config));
        assert_ok(config_parse_unit(config, unit, "README.md", begin, (size_t) (end - begin)));
        assert_int_equal(config->n_messages, 0);
        assert_int_equal(config->bindings.n, 2);
        for (size_t i = 0; i < config->bindings.n; i++) {
                const Binding *binding = config->bindings.items[i];
                char words[128];

                assert_null(binding->source.error);
                (void) snprintf(words, sizeof(words), "'Function=%s'", binding->start);
                assert_non_null(strstr(tried, words));
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_man_pages),
                cmocka_unit_test(test_journal_fields),
                cmocka_unit_test(test_installed_file),
                cmocka_unit_test(test_first_example),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
