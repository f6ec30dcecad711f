/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_REGISTERS_H
#define BPF_REGISTERS_H

#include <stdbool.h>

struct btf;

/*
 * May a program on a uprobe set the registers of the task here, and see in the types of the kernel,
 * which are given, when it should not? Linux 6.18 is the first that lets it.
 */
bool registers_can_be_set(const struct btf *btf);

#endif
