/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_KERNEL_TYPES_H
#define BPF_KERNEL_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/* What the types of the running kernel tell of its structures. */

struct btf;

/* Where in a structure, or in one without a name inside it, its member is; in bits. */
bool kernel_types_find_member(const struct btf *btf, const char *structure, const char *member,
                              uint32_t *ret_offset);
bool kernel_types_have_member(const struct btf *btf, const char *structure, const char *member);

#endif
