/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include <stddef.h>
#include <stdint.h>

/* Time spans as people write them in systemd's files, to the nanosecond. */

#define NSEC_PER_USEC   UINT64_C(1000)
#define NSEC_PER_MSEC   UINT64_C(1000000)
#define NSEC_PER_SEC    UINT64_C(1000000000)
#define NSEC_PER_MINUTE (60 * NSEC_PER_SEC)
#define NSEC_PER_HOUR   (60 * NSEC_PER_MINUTE)

#define DURATION_INFINITY UINT64_MAX

/* As the end of a sentence: "1ms1" is 1 ms and 1 s for systemd, and surely meant otherwise. */
#define DURATION_NO_UNIT "a number after a unit needs a unit of its own, as in 1min30s"

/* Room for any duration_format(), with the NUL. */
#define DURATION_MAX 64

/*
 * Parses a systemd time span: a sum of numbers with units ("1min 30s", "1.5ms", "250us"), from ns
 * to h; a number without a unit is in seconds; "infinity". Fractions finer than a nanosecond are
 * cut off. Returns 0, -EINVAL (not a time span), -ERANGE (more than fits), -EBADMSG
 * (DURATION_NO_UNIT says why).
 */
int duration_parse(const char *s, uint64_t *ret_ns);

/* Writes ns exactly, so that duration_parse() gives it back: "1.5ms", "1min 30s". Returns buf. */
char *duration_format(uint64_t ns, char buf[static DURATION_MAX]);

/*
 * Writes ns for people's eyes, rounded to about three digits: "5.0ms", "250us", "1min 30s". Returns
 * buf.
 */
char *duration_format_short(uint64_t ns, char buf[static DURATION_MAX]);

/*
 * Writes ns, a part of whole_ns, in the unit that whole_ns is written in: "0.2ms" of "5.0ms".
 * Returns buf.
 */
char *duration_format_like(uint64_t ns, uint64_t whole_ns, char buf[static DURATION_MAX]);

#endif
