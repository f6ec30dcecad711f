/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A library that several programs use: each call of reach_call() passes both places of a binding.
 */

#include "reach-library.h"

__attribute__((noinline)) void reach_end(void) {
        __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void reach_call(void) {
        __asm__ volatile("" ::: "memory");
        reach_end();
        __asm__ volatile("" ::: "memory");
}
