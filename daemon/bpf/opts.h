/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_OPTS_H
#define BPF_OPTS_H

#include <string.h>

/*
 * To begin with the options of a function of libbpf. It refuses bytes that are not zero where it
 * knows of no field, padding among them, and of that LIBBPF_OPTS() leaves what was on the stack
 * where the compiler does not optimize it away (libbpf 1.1 with gcc -O0).
 */
#define opts_init(opts)                                                                            \
        do {                                                                                       \
                memset(opts, 0, sizeof(*(opts)));                                                  \
                (opts)->sz = sizeof(*(opts));                                                      \
        } while (0)

#endif
