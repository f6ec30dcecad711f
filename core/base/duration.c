/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Time spans, from text to nanoseconds and back.
 *
 * The grammar is systemd's, narrowed to ns..h: a budget of days is a mistake, not a wish; and so is
 * a number without a unit that follows a unit without a space, which could be its decimals. All
 * arithmetic is in integers; a sum that does not fit, or that would come out as the value that
 * stands for infinity, is refused and never wraps.
 *
 * duration_format() is exact, for files and properties. duration_format_short() is for sentences;
 * duration_format_like() there writes the parts of a whole in the unit of the whole.
 */

#include "base/duration.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define SPACES " \t\n\r"

static const struct {
        const char *name;
        uint64_t ns;
} units[] = {
        { "ns", 1 },
        { "nsec", 1 },
        { "us", NSEC_PER_USEC },
        { "usec", NSEC_PER_USEC },
        { "\xc2\xb5s", NSEC_PER_USEC }, /* U+00B5, the micro sign */
        { "\xce\xbcs", NSEC_PER_USEC }, /* U+03BC, the Greek letter */
        { "ms", NSEC_PER_MSEC },
        { "msec", NSEC_PER_MSEC },
        { "s", NSEC_PER_SEC },
        { "sec", NSEC_PER_SEC },
        { "second", NSEC_PER_SEC },
        { "seconds", NSEC_PER_SEC },
        { "m", NSEC_PER_MINUTE },
        { "min", NSEC_PER_MINUTE },
        { "minute", NSEC_PER_MINUTE },
        { "minutes", NSEC_PER_MINUTE },
        { "h", NSEC_PER_HOUR },
        { "hr", NSEC_PER_HOUR },
        { "hour", NSEC_PER_HOUR },
        { "hours", NSEC_PER_HOUR },
};

/* The units that short forms are written in, and the next larger one. */
static const struct {
        const char *name;
        uint64_t ns;
} steps[] = {
        { "ns", 1 },
        { "us", NSEC_PER_USEC },
        { "ms", NSEC_PER_MSEC },
        { "s", NSEC_PER_SEC },
};

static int parse_whole(const char **p, uint64_t *ret) {
        uint64_t v = 0;

        for (; isdigit((unsigned char) **p); (*p)++)
                if (__builtin_mul_overflow(v, 10, &v) ||
                    __builtin_add_overflow(v, (uint64_t) (**p - '0'), &v))
                        return -ERANGE;
        *ret = v;
        return 0;
}

/*
 * The digits behind the point, as a numerator and its power of ten; those past the 18th are below
 * any unit.
 */
static void parse_fraction(const char **p, uint64_t *ret_numerator, uint64_t *ret_denominator) {
        uint64_t numerator = 0, denominator = 1;

        for (unsigned i = 0; isdigit((unsigned char) **p); i++, (*p)++)
                if (i < 18) {
                        numerator = numerator * 10 + (uint64_t) (**p - '0');
                        denominator *= 10;
                }
        *ret_numerator = numerator;
        *ret_denominator = denominator;
}

static int parse_unit(const char **p, bool needed, uint64_t *ret_ns) {
        size_t n;

        *p += strspn(*p, SPACES);
        n = strcspn(*p, SPACES "0123456789.");
        if (n == 0) {
                if (**p == '.')
                        return -EINVAL;
                if (needed)
                        return -EBADMSG;
                *ret_ns = NSEC_PER_SEC;
                return 0;
        }

        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                if (strlen(units[i].name) == n && memcmp(units[i].name, *p, n) == 0) {
                        *p += n;
                        *ret_ns = units[i].ns;
                        return 0;
                }
        return -EINVAL;
}

/* needs_unit: it follows a unit without a space. */
static int parse_term(const char **p, bool needs_unit, uint64_t *ret_ns) {
        uint64_t whole, numerator = 0, denominator = 1, unit, ns;
        bool digits = isdigit((unsigned char) **p);
        int r;

        r = parse_whole(p, &whole);
        if (r < 0)
                return r;
        if (**p == '.') {
                (*p)++;
                if (!isdigit((unsigned char) **p))
                        return -EINVAL;
                parse_fraction(p, &numerator, &denominator);
        } else if (!digits)
                return -EINVAL;

        r = parse_unit(p, needs_unit, &unit);
        if (r < 0)
                return r;

        if (__builtin_mul_overflow(whole, unit, &ns) ||
            __builtin_add_overflow(
                    ns, (uint64_t) ((unsigned __int128) numerator * unit / denominator), &ns))
                return -ERANGE;
        *ret_ns = ns;
        return 0;
}

int duration_parse(const char *s, uint64_t *ret_ns) {
        const char *p = s + strspn(s, SPACES);
        bool is_attached = false;
        uint64_t sum = 0;

        if (strncmp(p, "infinity", 8) == 0 && p[8 + strspn(p + 8, SPACES)] == '\0') {
                *ret_ns = DURATION_INFINITY;
                return 0;
        }
        if (*p == '\0')
                return -EINVAL;

        while (*p != '\0') {
                uint64_t ns;
                int r;

                r = parse_term(&p, is_attached, &ns);
                if (r < 0)
                        return r;
                if (__builtin_add_overflow(sum, ns, &sum))
                        return -ERANGE;
                p += strspn(p, SPACES);
                is_attached = !strchr(SPACES, p[-1]);
        }
        if (sum == DURATION_INFINITY)
                return -ERANGE;

        *ret_ns = sum;
        return 0;
}

/*
 * Writes ns, less than a minute, in the largest unit that it fills, with as many decimals as it
 * takes.
 */
static void format_exact(uint64_t ns, char *buf, size_t size) {
        size_t i = ELEMENTSOF(steps) - 1;
        uint64_t fraction;
        int digits = 0;

        while (i > 0 && ns < steps[i].ns)
                i--;
        fraction = ns % steps[i].ns;
        if (fraction == 0) {
                (void) snprintf(buf, size, "%" PRIu64 "%s", ns / steps[i].ns, steps[i].name);
                return;
        }

        for (uint64_t u = steps[i].ns; u > 1; u /= 10)
                digits++;
        for (; fraction % 10 == 0; fraction /= 10)
                digits--;
        (void) snprintf(buf, size, "%" PRIu64 ".%0*" PRIu64 "%s", ns / steps[i].ns, digits,
                        fraction, steps[i].name);
}

char *duration_format(uint64_t ns, char buf[static DURATION_MAX]) {
        uint64_t hours = ns / NSEC_PER_HOUR, minutes = ns % NSEC_PER_HOUR / NSEC_PER_MINUTE;
        size_t n = 0;

        if (ns == DURATION_INFINITY)
                return strcpy(buf, "infinity");
        if (ns == 0)
                return strcpy(buf, "0");

        ns %= NSEC_PER_MINUTE;
        if (hours > 0)
                n += (size_t) snprintf(buf, DURATION_MAX, "%" PRIu64 "h%s", hours,
                                       minutes > 0 || ns > 0 ? " " : "");
        if (minutes > 0)
                n += (size_t) snprintf(buf + n, DURATION_MAX - n, "%" PRIu64 "min%s", minutes,
                                       ns > 0 ? " " : "");
        if (ns > 0)
                format_exact(ns, buf + n, DURATION_MAX - n);
        return buf;
}

/* With a decimal while there are at most two digits before it; nanoseconds have none. */
static void format_in_unit(uint64_t ns, size_t step, char *buf) {
        uint64_t unit = steps[step].ns;
        unsigned __int128 tenths = ((unsigned __int128) ns * 10 + unit / 2) / unit;

        if (unit > 1 && tenths < 1000)
                (void) snprintf(buf, DURATION_MAX, "%u.%u%s", (unsigned) tenths / 10,
                                (unsigned) tenths % 10, steps[step].name);
        else
                (void) snprintf(buf, DURATION_MAX, "%" PRIu64 "%s",
                                (uint64_t) (((unsigned __int128) ns + unit / 2) / unit),
                                steps[step].name);
}

/* The unit in which ns, rounded, has one to three digits. */
static size_t choose_step(uint64_t ns) {
        size_t i = 0;

        while (i + 1 < ELEMENTSOF(steps) && ns >= steps[i + 1].ns - steps[i].ns / 2)
                i++;
        return i;
}

char *duration_format_short(uint64_t ns, char buf[static DURATION_MAX]) {
        uint64_t seconds;

        if (ns == DURATION_INFINITY)
                return strcpy(buf, "infinity");
        if (ns < 60 * NSEC_PER_SEC - NSEC_PER_SEC / 20) {
                format_in_unit(ns, choose_step(ns), buf);
                return buf;
        }

        seconds = ns / NSEC_PER_SEC + (ns % NSEC_PER_SEC >= NSEC_PER_SEC / 2);
        if (seconds < 3600)
                return duration_format(seconds * NSEC_PER_SEC, buf);
        (void) snprintf(buf, DURATION_MAX, "%" PRIu64 "h %" PRIu64 "min", seconds / 3600,
                        seconds % 3600 / 60);
        return buf;
}

char *duration_format_like(uint64_t ns, uint64_t whole_ns, char buf[static DURATION_MAX]) {
        if (ns == DURATION_INFINITY)
                return strcpy(buf, "infinity");
        format_in_unit(ns, choose_step(whole_ns), buf);
        return buf;
}
