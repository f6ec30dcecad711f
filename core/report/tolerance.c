/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report/tolerance.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/sentence.h"

#define KEPT_AGAIN 0.9

/* Digits only: no sign, no space. */
static int parse_number(const char **s, uint64_t *ret) {
        uint64_t n = 0;

        if (!isdigit((unsigned char) **s))
                return -EINVAL;
        for (; isdigit((unsigned char) **s); (*s)++) {
                n = n * 10 + (uint64_t) (**s - '0');
                if (n > TOLERANCE_OF_MAX)
                        return -EINVAL;
        }
        *ret = n;
        return 0;
}

/* What follows the number in "0.05%". */
static int parse_percent(const char *s, Tolerance *tolerance) {
        tolerance->of = 100;
        if (*s == '.' && isdigit((unsigned char) s[1]))
                for (s++; isdigit((unsigned char) *s); s++) {
                        tolerance->allowed = tolerance->allowed * 10 + (uint64_t) (*s - '0');
                        tolerance->of *= 10;
                        if (tolerance->of > TOLERANCE_OF_MAX)
                                return -EINVAL;
                }
        return strcmp(s, "%") == 0 ? 0 : -EINVAL;
}

int tolerance_parse(const char *s, Tolerance *ret) {
        Tolerance tolerance;
        int r;

        r = parse_number(&s, &tolerance.allowed);
        if (r < 0)
                return r;
        if (*s == '/') {
                s++;
                r = parse_number(&s, &tolerance.of);
                if (r >= 0 && *s != '\0')
                        r = -EINVAL;
        } else
                r = parse_percent(s, &tolerance);
        if (r < 0 || tolerance.allowed == 0 || tolerance.allowed >= tolerance.of)
                return -EINVAL;
        *ret = tolerance;
        return 0;
}

uint64_t tolerance_step(uint64_t window_ns) {
        return window_ns / (TOLERANCE_SAMPLES - 2);
}

static ToleranceSample *sample(ToleranceTrack *track, size_t i) {
        return &track->samples[(track->first + i) % TOLERANCE_SAMPLES];
}

static void drop_first(ToleranceTrack *track) {
        track->first = (track->first + 1) % TOLERANCE_SAMPLES;
        track->n--;
}

/* What is left begins with the last sample that is not of the time. */
static void drop_old(ToleranceTrack *track, uint64_t window_ns, uint64_t now_ns) {
        while (track->n > 1 && now_ns - sample(track, 1)->ns >= window_ns)
                drop_first(track);
}

static bool goes_back(ToleranceTrack *track, const ToleranceSample *now) {
        const ToleranceSample *last = sample(track, track->n - 1);

        return now->windows < last->windows || now->violations < last->violations;
}

static void add(ToleranceTrack *track, uint64_t window_ns, const ToleranceSample *now) {
        if (track->n > 0 && now->ns - sample(track, track->n - 1)->ns < tolerance_step(window_ns))
                return;
        if (track->n == TOLERANCE_SAMPLES)
                drop_first(track);
        *sample(track, track->n++) = *now;
}

double tolerance_burn_rate(const ToleranceTrack *track, const Tolerance *tolerance) {
        uint64_t n = track->windows > tolerance->of ? track->windows : tolerance->of;

        if (tolerance->allowed == 0)
                return 0;
        return (double) track->violations * (double) tolerance->of /
               ((double) tolerance->allowed * (double) n);
}

char *tolerance_describe(uint64_t violations, uint64_t windows, uint64_t window_ns,
                         const char *tolerance, double burn_rate) {
        char time[DURATION_MAX];

        return sentence_make("%" PRIu64 " of %" PRIu64
                             " windows over budget in %s; %s are tolerated (burn rate %.2f)",
                             violations, windows, duration_format(window_ns, time), tolerance,
                             burn_rate);
}

/* Where the time has just begun anew, no windows at all would be none that are late. */
static bool is_enough(ToleranceTrack *track, const Tolerance *tolerance, uint64_t window_ns,
                      uint64_t now_ns) {
        return track->windows >= tolerance->of || now_ns - sample(track, 0)->ns >= window_ns;
}

bool tolerance_update(ToleranceTrack *track, const Tolerance *tolerance, uint64_t window_ns,
                      const ToleranceSample *now) {
        bool was_broken = track->is_broken;
        double rate;

        if (track->n > 0 && goes_back(track, now))
                track->n = 0;
        add(track, window_ns, now);
        drop_old(track, window_ns, now->ns);
        track->windows = now->windows - sample(track, 0)->windows;
        track->violations = now->violations - sample(track, 0)->violations;
        rate = tolerance_burn_rate(track, tolerance);
        if (!was_broken)
                track->is_broken = rate > 1;
        else if (is_enough(track, tolerance, window_ns, now->ns))
                track->is_broken = rate > KEPT_AGAIN;
        return track->is_broken != was_broken;
}
