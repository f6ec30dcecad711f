/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program with events of its own (user_events), which it writes while somebody asks for them:
 * NAME_begin, a piece of work that takes so long, NAME_end; and so on, N times. After each it
 * prints how long that was by its own clock, in ns, between the two calls and with both of them.
 *
 * usage: event-writer NAME sleep|spin USEC N [FIELDS]
 *
 * FIELDS are those of the events, if not "u32 number".
 */

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* linux/user_events.h, which not all machines have. */
struct user_reg {
        uint32_t size;
        uint8_t enable_bit;
        uint8_t enable_size;
        uint16_t flags;
        uint64_t enable_addr;
        uint64_t name_args;
        uint32_t write_index;
} __attribute__((packed));

#define DIAG_IOCSREG _IOWR('*', 0, struct user_reg *)

static uint32_t enabled; /* a bit for each event */

static uint64_t now_ns(void) {
        struct timespec now;

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t) now.tv_sec * 1000000000U + (uint64_t) now.tv_nsec;
}

static uint32_t enroll(int fd, const char *name, const char *side, unsigned bit,
                       const char *fields) {
        char text[128];
        struct user_reg reg = {
                .size = sizeof(reg),
                .enable_bit = (uint8_t) bit,
                .enable_size = sizeof(enabled),
                .enable_addr = (uintptr_t) &enabled,
                .name_args = (uintptr_t) text,
        };

        (void) snprintf(text, sizeof(text), "%s_%s %s", name, side, fields);
        if (ioctl(fd, DIAG_IOCSREG, &reg) < 0)
                err(EXIT_FAILURE, "cannot register '%s'", text);
        return reg.write_index;
}

static void tell(int fd, uint32_t index, unsigned bit, uint32_t number) {
        uint32_t words[] = { index, number };

        if (__atomic_load_n(&enabled, __ATOMIC_RELAXED) & 1U << bit &&
            write(fd, words, sizeof(words)) != sizeof(words) && errno != EBADF)
                err(EXIT_FAILURE, "cannot write an event");
}

static void work(const char *how, uint64_t usec) {
        const struct timespec time = { .tv_sec = (time_t) (usec / 1000000),
                                       .tv_nsec = (long) (usec % 1000000) * 1000 };
        uint64_t end = now_ns() + usec * 1000;

        if (strcmp(how, "sleep") == 0)
                (void) nanosleep(&time, NULL);
        else
                while (now_ns() < end)
                        ;
}

int main(int argc, char *argv[]) {
        const char *fields = argc > 5 ? argv[5] : "u32 number";
        uint32_t begin, end;
        int fd;

        if (argc < 5)
                errx(EXIT_FAILURE, "usage: event-writer NAME sleep|spin USEC N [FIELDS]");
        fd = open("/sys/kernel/tracing/user_events_data", O_RDWR | O_CLOEXEC);
        if (fd < 0)
                err(EXIT_FAILURE, "user_events_data");
        begin = enroll(fd, argv[1], "begin", 0, fields);
        end = enroll(fd, argv[1], "end", 1, fields);
        (void) printf("ready\n");
        (void) fflush(stdout);
        /* Each waits for a line, if there are any. */
        if (!isatty(STDIN_FILENO))
                (void) getchar();
        for (uint32_t i = 0; i < strtoul(argv[4], NULL, 10); i++) {
                uint64_t outer = now_ns(), inner;

                tell(fd, begin, 0, i);
                inner = now_ns();
                work(argv[2], strtoull(argv[3], NULL, 10));
                inner = now_ns() - inner;
                tell(fd, end, 1, i);
                (void) printf("%" PRIu64 " %" PRIu64 "\n", inner, now_ns() - outer);
        }
        (void) printf("done\n");
        (void) fflush(stdout);
        (void) pause();
        return 0;
}
