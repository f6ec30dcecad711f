/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Part of the program, or of a library, which then has USDT probes. */

#include "request.h"

#include <stdint.h>
#include <sys/file.h>
#include <time.h>

#ifdef WITH_PROBES
#include <sys/sdt.h>

#define BEGIN() STAP_PROBE(tlobrequest, handle__start)
#define END()   STAP_PROBE(tlobrequest, handle__done)
#else
#define BEGIN()
#define END()
#endif

static uint64_t cpu_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

/* That clock is a system call, which makes those dear that all calls are looked at for. */
__attribute__((noinline)) static void compute(void) {
        uint64_t begin = cpu_ns();
        volatile unsigned n = 0;

        while (cpu_ns() - begin < WORK_NS)
                for (unsigned i = 0; i < 100000; i++)
                        n = i;
        (void) n;
}

/* A child holds the lock for 3 ms. */
__attribute__((noinline)) static void wait_for_lock(int fd) {
        (void) flock(fd, LOCK_EX);
        (void) flock(fd, LOCK_UN);
        __asm__ volatile("");
}

__attribute__((noinline)) void handle_request(int fd) {
        BEGIN();
        compute();
        wait_for_lock(fd);
        END();
        __asm__ volatile("");
}
