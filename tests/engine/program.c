/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Makes programs up. What they do must not depend on chance: a process ends by itself only while no
 * other thread of it runs. And they must not take long: what is repeated repeats little.
 */

#include "program.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Where a part of the program stands. */
typedef struct Place {
        size_t depth;
        size_t times;    /* it is run so often */
        bool concurrent; /* other threads of the process run */
        bool catches;    /* a jump does not end the program here */
} Place;

typedef struct Maker {
        Random *random;
        Program *program;
        size_t n_left; /* words yet to be made, but for brackets */
} Maker;

/* SplitMix64 */
uint64_t random_next(Random *random) {
        uint64_t z = random->state += 0x9e3779b97f4a7c15;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
}

size_t random_below(Random *random, size_t n) {
        return random_next(random) % n;
}

_printf_(2, 3) static void put(Maker *m, const char *format, ...) {
        Program *p = m->program;
        va_list ap;

        assert(p->n_words < PROGRAM_WORDS_MAX);
        va_start(ap, format);
        (void) vsnprintf(p->words[p->n_words], sizeof(p->words[0]), format, ap);
        va_end(ap);
        p->list[p->n_words] = p->words[p->n_words];
        p->n_words++;
        if (m->n_left > 0)
                m->n_left--;
}

static void make_block(Maker *m, Place place);

static void make_time(Maker *m) {
        static const char *const how[] = { "sleep", "spin", "burn" };
        size_t i = random_below(m->random, ELEMENTSOF(how));

        put(m, "%s:%zu", how[i], 5000 + 1000 * random_below(m->random, 60));
}

static void make_end(Maker *m, Place place) {
        static const char *const how[] = { "exit", "kill", "exec" };

        if (place.concurrent)
                put(m, "jump");
        else
                put(m, "%s", how[random_below(m->random, ELEMENTSOF(how))]);
}

static void make_repeat(Maker *m, Place place) {
        size_t n = 2 + random_below(m->random, 3);

        put(m, "repeat:%zu", n);
        put(m, "(");
        place.times *= n;
        make_block(m, place);
}

static void make_task(Maker *m, Place place) {
        place.catches = true;
        switch (random_below(m->random, 4)) {
        case 0:
                place.times *= 3;
                place.concurrent = true;
                put(m, "threads:3");
                put(m, "(");
                break;
        case 1:
                put(m, "thread(");
                break;
        default:
                place.concurrent = false;
                put(m, "fork(");
                break;
        }
        make_block(m, place);
}

/* A bracket and what is in it. */
static void make_nested(Maker *m, Place place) {
        size_t what = random_below(m->random, 100);

        place.depth++;
        if (what < 15 && place.times <= 4)
                make_task(m, place);
        else if (what < 28 && place.times <= 8)
                make_repeat(m, place);
        else {
                if (what < 43) {
                        put(m, "jump(");
                        place.catches = true;
                } else
                        put(m, "%c(", (char) ('a' + random_below(m->random, 3)));
                make_block(m, place);
        }
}

/* For what ends all. */
static bool is_rare(Maker *m) {
        return random_below(m->random, 6) == 0;
}

static void make_word(Maker *m, Place place) {
        size_t what = random_below(m->random, 100);

        if (what < 36)
                put(m, "%c%c", "<>"[random_below(m->random, 2)],
                    (char) ('x' + random_below(m->random, 3)));
        else if (what < 70 && place.depth < 9)
                make_nested(m, place);
        else if (what < 87)
                make_time(m);
        else if (what < 91)
                put(m, "yield:%zu", 1 + random_below(m->random, 3));
        else if (what < 97 && (place.catches || is_rare(m)))
                put(m, "jump");
        else if (is_rare(m))
                make_end(m, place);
}

static void make_block(Maker *m, Place place) {
        for (size_t n = random_below(m->random, 7); n > 0 && m->n_left > 0; n--)
                make_word(m, place);
        put(m, ")");
}

void program_make(Random *random, Program *ret) {
        Maker maker = { .random = random, .program = ret, .n_left = 10 + random_below(random, 90) };

        ret->n_words = 0;
        while (maker.n_left > 0)
                make_word(&maker, (Place) { .times = 1 });
        ret->list[ret->n_words] = NULL;
}

char *program_to_string(const Program *program) {
        char *string = calloc(program->n_words + 1, sizeof(program->words[0]));

        assert(string);
        for (size_t i = 0; i < program->n_words; i++) {
                if (i > 0)
                        strcat(string, " ");
                strcat(string, program->words[i]);
        }
        return string;
}
