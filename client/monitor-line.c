/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The syntax of the kernel's own tlob monitor, for those who have such lines in scripts:
 *
 *     p /usr/bin/myapp:0x12a0 0x12f0 threshold=5000000
 *     p:NAME /usr/bin/myapp:0x12a0 0x12f0 threshold=5000000
 *     -/usr/bin/myapp:0x12a0
 *     -:NAME
 *
 * This module owns the text and nothing else: it opens no file, and knows neither the bus nor the
 * daemon. Numbers mean what they mean to the kernel (0x is hexadecimal, a leading 0 octal), and the
 * threshold may stand before the stop offset. Where the kernel is lax, this is strict: it takes
 * "0x10zz" for 0x10 and the last of several thresholds, which here are errors.
 *
 * The threshold is in nanoseconds. The first versions of the monitor took microseconds; nothing in
 * a line tells the two apart.
 */

#include "monitor-line.h"

#include <ctype.h>
#include <inttypes.h>

#include "base/sentence.h"
#include "binding/binding.h"

#define BLANKS    " \t"
#define THRESHOLD "threshold="

bool monitor_line_is_add(const char *s) {
        return s[0] == 'p' && (strchr(BLANKS ":", s[1]) && s[1] != '\0');
}

bool monitor_line_is_remove(const char *s) {
        return s[0] == '-' && (s[1] == '/' || s[1] == ':');
}

void monitor_line_done(MonitorLine *line) {
        free(line->name);
        free(line->path);
        *line = (MonitorLine) {};
}

/* A whole string that is a number as the kernel reads it, without a sign. */
static int parse_number(const char *s, uint64_t *ret) {
        unsigned long long n;
        char *end;

        if (!isdigit((unsigned char) s[0]))
                return -EINVAL;
        errno = 0;
        n = strtoull(s, &end, 0);
        if (errno != 0 || *end != '\0')
                return -EINVAL;
        *ret = n;
        return 0;
}

/* An offset must fit the kernel's loff_t. */
static int parse_offset(const char *s, const char *what, uint64_t *ret, char **ret_error) {
        if (parse_number(s, ret) < 0 || *ret > INT64_MAX)
                return sentence_error(
                        -EINVAL, ret_error,
                        "'%s' is not %s; write it like 0x12a0, as an offset in the file", s, what);
        return 0;
}

static int parse_threshold(const char *s, uint64_t *ret, char **ret_error) {
        if (parse_number(s, ret) < 0)
                return sentence_error(
                        -EINVAL, ret_error,
                        "'%s' is not a threshold; write a number of nanoseconds, like "
                        "threshold=5000000 for 5ms",
                        s);
        if (*ret < BUDGET_MIN_NS || *ret > BUDGET_MAX_NS)
                return sentence_error(-ERANGE, ret_error,
                                      "A threshold of %" PRIu64
                                      "ns is out of range; it is in nanoseconds, "
                                      "from 1000 (1us) to 3600000000000 (1h)",
                                      *ret);
        return 0;
}

/* PATH:OFFSET. The last ':' counts, so that a path may have one. */
static int parse_place(const char *s, MonitorLine *line, char **ret_error) {
        const char *colon = strrchr(s, ':');

        if (!colon)
                return sentence_error(-EINVAL, ret_error,
                                      "'%s' has no offset; write it like /usr/bin/myapp:0x12a0", s);
        if (s[0] != '/' || colon - s < 2)
                return sentence_error(-EINVAL, ret_error,
                                      "'%.*s' is not the absolute path of a file; write it like "
                                      "/usr/bin/myapp:0x12a0",
                                      (int) (colon - s), s);

        line->path = strndup(s, (size_t) (colon - s));
        if (!line->path)
                return -ENOMEM;
        return parse_offset(colon + 1, "a start offset", &line->start, ret_error);
}

static int parse_name(const char *s, MonitorLine *line, char **ret_error) {
        if (*s == '\0')
                return sentence_error(
                        -EINVAL, ret_error,
                        "There is no name after the ':'; leave out the ':' to have one made");
        line->name = strdup(s);
        return line->name ? 0 : -ENOMEM;
}

/* What follows the place: the stop offset and the threshold, in either order, each once. */
static int parse_rest(char **save, MonitorLine *line, char **ret_error) {
        bool have_stop = false, have_threshold = false;
        char *token;
        int r;

        while ((token = strtok_r(NULL, BLANKS, save))) {
                bool is_threshold = strncmp(token, THRESHOLD, strlen(THRESHOLD)) == 0;
                bool *have = is_threshold ? &have_threshold : &have_stop;

                if (*have)
                        return sentence_error(
                                -EINVAL, ret_error,
                                "'%s' is one too many; a line has one stop offset and one "
                                "threshold=",
                                token);
                *have = true;
                r = is_threshold ? parse_threshold(token + strlen(THRESHOLD), &line->budget_ns,
                                                   ret_error)
                                 : parse_offset(token, "a stop offset", &line->stop, ret_error);
                if (r < 0)
                        return r;
        }

        if (!have_stop || !have_threshold)
                return sentence_error(
                        -EINVAL, ret_error,
                        "There is no %s; write 'p PATH:START STOP threshold=NANOSECONDS'",
                        have_stop ? THRESHOLD : "stop offset");
        if (line->start == line->stop)
                return sentence_error(-EINVAL, ret_error,
                                      "Start and stop are both 0x%" PRIx64 "; they must differ",
                                      line->start);
        return 0;
}

static int parse_add(char *text, MonitorLine *line, char **ret_error) {
        char *token, *save = NULL;
        int r;

        /* "p" or "p:NAME" */
        token = strtok_r(text, BLANKS, &save);
        if (token && token[1] == ':') {
                r = parse_name(token + 2, line, ret_error);
                if (r < 0)
                        return r;
        }

        token = strtok_r(NULL, BLANKS, &save);
        if (!token)
                return sentence_error(
                        -EINVAL, ret_error,
                        "There is no file; write 'p PATH:START STOP threshold=NANOSECONDS'");
        r = parse_place(token, line, ret_error);
        if (r < 0)
                return r;
        return parse_rest(&save, line, ret_error);
}

static int parse_remove(const char *text, MonitorLine *line, char **ret_error) {
        line->remove = true;
        if (strpbrk(text, BLANKS))
                return sentence_error(
                        -EINVAL, ret_error,
                        "There is a blank in '%s'; write '-PATH:START' and nothing else", text);
        if (text[1] == ':')
                return parse_name(text + 2, line, ret_error);
        return parse_place(text + 1, line, ret_error);
}

int monitor_line_parse(const char *s, MonitorLine *ret, char **ret_error) {
        _cleanup_(monitor_line_done) MonitorLine line = {};
        _cleanup_free_ char *text = NULL;
        size_t length = strlen(s);
        int r;

        *ret_error = NULL;
        /* The newline that "echo" would have written. */
        text = strndup(s, length > 0 && s[length - 1] == '\n' ? length - 1 : length);
        if (!text)
                return -ENOMEM;

        if (strpbrk(text, "\r\n\v\f"))
                r = sentence_error(-EINVAL, ret_error,
                                   "There is more than one line; give one at a time");
        else if (monitor_line_is_add(text))
                r = parse_add(text, &line, ret_error);
        else if (monitor_line_is_remove(text))
                r = parse_remove(text, &line, ret_error);
        else
                r = sentence_error(-EINVAL, ret_error,
                                   "'%s' begins neither with 'p ' nor with '-/'; see tlobctl(1)",
                                   text);
        if (r < 0)
                return r;

        *ret = line;
        line = (MonitorLine) {};
        return 0;
}

char *monitor_line_derive_name(const MonitorLine *line) {
        const char *base = strrchr(line->path, '/') + 1;
        char suffix[32];
        char *name;
        int room;

        (void) snprintf(suffix, sizeof(suffix), "-0x%" PRIx64, line->start);
        room = BINDING_NAME_MAX - (int) strlen(suffix);
        if (asprintf(&name, "%.*s%s", room, base, suffix) < 0)
                return NULL;

        for (char *p = name; *p != '\0'; p++)
                if (!isascii(*p) || !(isalnum((unsigned char) *p) || strchr("-_.", *p)))
                        *p = '_';
        if (name[0] == '.')
                name[0] = '_';
        return name;
}
