/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TEST_H
#define TEST_H

/* cmocka with the headers that it wants before it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define assert_ok(r) assert_int_equal((r), 0)

/* What a probe on a nop is taken for: only the latest kernels for arm64 emulate it. */
#if defined(__aarch64__)
#define PROBE_KIND_OF_NOP PROBE_STEPPED
#else
#define PROBE_KIND_OF_NOP PROBE_EMULATED
#endif

#endif
