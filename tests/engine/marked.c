/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program with USDT probes, which does what its arguments say:
 *
 *   pair:N     the probes begin and end, N times
 *   other:N    the same at other places, N times
 *   begin end  one of them
 *   nap:NS     begin, sleep so long, end; and then writes "nap START END TID"
 *   bare:N     the probes bare_begin and bare_end, which have no semaphores, N times
 *   look       write "semaphores-B-E", what they are, and wait for a line on standard input
 *   say:WORD   write the word to standard output, and wait for a line there
 *
 * begin and end are passed only while their semaphores are not zero, as programs do whose arguments
 * are dear. START and END, of CLOCK_MONOTONIC, are read outside the window.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "marked-bare.h"

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#define SEMAPHORE __attribute__((visibility("hidden"), section(".probes"))) volatile unsigned short

SEMAPHORE tlobtest_begin_semaphore;
SEMAPHORE tlobtest_end_semaphore;

/* Each that is inlined is another place. */
__attribute__((always_inline)) static inline void begin(unsigned long i) {
        if (tlobtest_begin_semaphore)
                STAP_PROBE1(tlobtest, begin, i);
}

__attribute__((always_inline)) static inline void end(unsigned long i) {
        if (tlobtest_end_semaphore)
                STAP_PROBE2(tlobtest, end, i, "text");
}

static void pair(unsigned long n) {
        for (unsigned long i = 0; i < n; i++) {
                begin(i);
                end(i);
        }
}

static void other(unsigned long n) {
        for (unsigned long i = n; i > 0; i--) {
                begin(i);
                end(i);
        }
}

static uint64_t now_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

static void nap(unsigned long ns) {
        struct timespec time = { (time_t) (ns / 1000000000), (long) (ns % 1000000000) };
        uint64_t start_ns = now_ns(), end_ns;

        begin(ns);
        (void) nanosleep(&time, NULL);
        end(ns);
        end_ns = now_ns();
        (void) printf("nap %llu %llu %i\n", (unsigned long long) start_ns,
                      (unsigned long long) end_ns, gettid());
}

static void wait_for_line(void) {
        char line[16];

        (void) fflush(stdout);
        if (!fgets(line, sizeof(line), stdin))
                exit(EXIT_FAILURE);
}

static void do_word(const char *word) {
        const char *colon = strchr(word, ':'), *value = colon ? colon + 1 : "";
        size_t length = colon ? (size_t) (colon - word) : strlen(word);
        unsigned long n = strtoul(value, NULL, 10);

#define IS(name) (length == strlen(name) && strncmp(word, name, length) == 0)
        if (IS("pair"))
                pair(n);
        else if (IS("other"))
                other(n);
        else if (IS("begin"))
                begin(0);
        else if (IS("end"))
                end(0);
        else if (IS("nap"))
                nap(n);
        else if (IS("bare"))
                marked_bare(n);
        else if (IS("look")) {
                (void) printf("semaphores-%u-%u\n", tlobtest_begin_semaphore,
                              tlobtest_end_semaphore);
                wait_for_line();
        } else if (IS("say")) {
                (void) printf("%s\n", value);
                wait_for_line();
        } else {
                (void) fprintf(stderr, "marked: '%s' is no word\n", word);
                exit(EXIT_FAILURE);
        }
}

int main(int argc, char *argv[]) {
        for (int i = 1; i < argc; i++)
                do_word(argv[i]);
        return 0;
}
