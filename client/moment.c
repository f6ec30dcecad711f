/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Moments, as people write them for systemd. libsystemd does not give away its parser; this has the
 * part of its grammar that means a moment in the past: dates and times of day in local time, spans
 * (which here may have days and weeks, too), and seconds since 1970.
 */

#include "moment.h"

#include <ctype.h>
#include <stdbool.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/duration.h"

#define USEC_PER_SEC UINT64_C(1000000)
#define AGO          " ago"

static bool parse_day_name(const char *s, struct tm *tm) {
        if (streq(s, "yesterday"))
                tm->tm_mday--;
        else if (!streq(s, "today"))
                return false;
        tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
        return true;
}

/* A date, a time, or both. What is not written is 0, or today. */
static bool parse_date(const char *s, struct tm *tm) {
        static const char *const formats[] = {
                "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M",
                "%Y-%m-%d",          "%H:%M:%S",          "%H:%M",
        };

        for (size_t i = 0; i < ELEMENTSOF(formats); i++) {
                struct tm read = *tm;
                const char *end;

                read.tm_hour = read.tm_min = read.tm_sec = 0;
                end = strptime(s, formats[i], &read);
                if (end && *end == '\0') {
                        *tm = read;
                        return true;
                }
        }
        return false;
}

/* A whole number of days or weeks, or what duration_parse() takes. */
static int parse_span(const char *s, uint64_t *ret_usec) {
        static const struct {
                const char *unit;
                uint64_t days;
        } units[] = {
                { "d", 1 }, { "day", 1 }, { "days", 1 }, { "w", 7 }, { "week", 7 }, { "weeks", 7 },
        };
        unsigned long long n;
        uint64_t ns;
        char *end;

        if (!isdigit((unsigned char) *s))
                return -EINVAL;
        errno = 0;
        n = strtoull(s, &end, 10);
        end += strspn(end, " ");
        for (size_t i = 0; errno == 0 && i < ELEMENTSOF(units); i++)
                if (streq(end, units[i].unit))
                        return __builtin_mul_overflow(n, units[i].days * 86400 * USEC_PER_SEC,
                                                      ret_usec)
                                       ? -ERANGE
                                       : 0;
        if (duration_parse(s, &ns) < 0 || ns == DURATION_INFINITY)
                return -EINVAL;
        *ret_usec = ns / 1000;
        return 0;
}

static int parse_ago(const char *s, uint64_t now_usec, uint64_t *ret_usec) {
        _cleanup_free_ char *span = strdup(s + (*s == '-'));
        size_t length;
        uint64_t usec;
        int r;

        if (!span)
                return -ENOMEM;
        length = strlen(span);
        if (*s != '-' && length > strlen(AGO) && streq(span + length - strlen(AGO), AGO))
                span[length - strlen(AGO)] = '\0';
        r = parse_span(span, &usec);
        if (r < 0)
                return r;
        if (usec > now_usec)
                return -ERANGE;
        *ret_usec = now_usec - usec;
        return 0;
}

static int parse_seconds(const char *s, uint64_t *ret_usec) {
        unsigned long long n;
        char *end;

        if (!isdigit((unsigned char) *s))
                return -EINVAL;
        errno = 0;
        n = strtoull(s, &end, 10);
        if (*end != '\0')
                return -EINVAL;
        return errno != 0 || __builtin_mul_overflow(n, USEC_PER_SEC, ret_usec) ? -ERANGE : 0;
}

int moment_parse(const char *s, uint64_t now_usec, uint64_t *ret_usec) {
        time_t seconds = (time_t) (now_usec / USEC_PER_SEC);
        uint64_t usec;
        struct tm tm;
        int r;

        if (!localtime_r(&seconds, &tm))
                return -ERANGE;
        if (*s == '@')
                r = parse_seconds(s + 1, &usec);
        else if (streq(s, "now")) {
                usec = now_usec;
                r = 0;
        } else if (parse_day_name(s, &tm) || parse_date(s, &tm)) {
                tm.tm_isdst = -1;
                seconds = mktime(&tm);
                if (seconds < 0)
                        return -ERANGE;
                usec = (uint64_t) seconds * USEC_PER_SEC;
                r = 0;
        } else
                r = parse_ago(s, now_usec, &usec);
        if (r < 0)
                return r;
        if (usec > now_usec)
                return -ERANGE;
        *ret_usec = usec;
        return 0;
}
