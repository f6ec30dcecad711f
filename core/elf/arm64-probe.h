/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_ARM64_PROBE_H
#define ELF_ARM64_PROBE_H

#include "elf/probe-kind.h"

#define ARM64_EXCLUSIVE_MAX 32 /* instructions from an exclusive load to its store */

/*
 * What the kernel does with a probe on the last instruction of these, which are those up to it: as
 * many as are known, up to ARM64_EXCLUSIVE_MAX more. PROBE_UNKNOWN: there must be none.
 */
ProbeKind arm64_probe_kind(const uint8_t *code, size_t size);

#endif
