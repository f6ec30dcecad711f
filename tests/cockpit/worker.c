/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program that is measured: each line on standard input has it call a function ("nap MS" sleeps,
 * "spin MS" computes) or take another name ("name TEXT"). It answers each with a line.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

void nap(long ms);
void spin(long ms);

__attribute__((noinline)) void nap(long ms) {
        struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

        (void) nanosleep(&time, NULL);
}

static long long now_ms(void) {
        struct timespec time;

        (void) clock_gettime(CLOCK_MONOTONIC, &time);
        return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

__attribute__((noinline)) void spin(long ms) {
        long long end = now_ms() + ms;

        while (now_ms() < end)
                ;
}

int main(void) {
        char line[256];

        while (fgets(line, sizeof(line), stdin)) {
                line[strcspn(line, "\n")] = '\0';
                if (strncmp(line, "nap ", 4) == 0)
                        nap(strtol(line + 4, NULL, 10));
                else if (strncmp(line, "spin ", 5) == 0)
                        spin(strtol(line + 5, NULL, 10));
                else if (strncmp(line, "name ", 5) == 0)
                        (void) prctl(PR_SET_NAME, line + 5);
                (void) puts("done");
                (void) fflush(stdout);
        }
        return 0;
}
