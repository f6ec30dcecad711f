/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stddef.h>
#include <stdint.h>

/*
 * Random programs in the language of the victim, the same ones for the same seed on every machine.
 */

typedef struct Random {
        uint64_t state;
} Random;

uint64_t random_next(Random *random);

/* Between 0 and n - 1. */
size_t random_below(Random *random, size_t n);

#define PROGRAM_WORDS_MAX 256

typedef struct Program {
        char words[PROGRAM_WORDS_MAX][16];
        const char *list[PROGRAM_WORDS_MAX + 1]; /* the same, NULL after the last */
        size_t n_words;
} Program;

/* Into *ret, which must stay where it is. Takes some milliseconds to run. */
void program_make(Random *random, Program *ret);

/* All words with blanks between them; owned by the caller. */
char *program_to_string(const Program *program);

#endif
