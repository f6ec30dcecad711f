/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The price of a hit differs by a factor of fifty with the instruction under the probe
 * (elf/probe-kind.h), and by as much from machine to machine. So a function of our own gets a probe
 * on an instruction that the kernel emulates, and one on an instruction that it has to step, and is
 * called. Of some rounds the quickest counts: the others were disturbed. A round is short, so that
 * one fits between two turns of others who want the CPU, also where each hit takes 30 us.
 */

#include "bpf/price.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"

#define ROUNDS 50
#define CALLS  10

#define TIMERS   15
#define TIMER_NS UINT64_C(30000)
#define PATIENCE 100 /* times twice that */

void price_nop5(void);
void price_nop10(void);
void price_emulated(void);
void price_return(void);
void price_stepped(void);

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".type price_nop5, @function\n"
        "price_nop5: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n ret\n"
        ".type price_nop10, @function\n"
        "price_nop10: .byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00\n ret\n"
        ".type price_emulated, @function\n"
        "price_emulated: nop\n ret\n"
        ".type price_return, @function\n"
        "price_return: ret\n"
        ".type price_stepped, @function\n"
        "price_stepped: xor %eax, %eax\n ret\n"
        ".popsection\n");
#elif defined(__aarch64__)
/* It replaces no nop there, and has emulated them only since Linux 6.18. */
__asm__(".pushsection .text\n"
        ".type price_nop5, %function\n"
        "price_nop5: nop\n ret\n"
        ".type price_nop10, %function\n"
        "price_nop10: nop\n ret\n"
        ".type price_emulated, %function\n"
        "price_emulated: b 1f\n 1: ret\n"
        ".type price_return, %function\n"
        "price_return: ret\n"
        ".type price_stepped, %function\n"
        "price_stepped: mov x0, xzr\n ret\n"
        ".popsection\n");
#else
__attribute__((noinline)) void price_nop5(void) {
        __asm__ volatile("nop");
}

__attribute__((noinline)) void price_nop10(void) {
        __asm__ volatile("nop");
}

__attribute__((noinline)) void price_emulated(void) {
        __asm__ volatile("nop");
}

__attribute__((noinline)) void price_return(void) {
        __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void price_stepped(void) {
        __asm__ volatile("" ::: "memory");
}
#endif

typedef struct Place {
        uintptr_t address;
        uint64_t offset; /* in our own file */
} Place;

static int find_offset(struct dl_phdr_info *info, size_t size, void *userdata) {
        Place *place = userdata;

        for (size_t i = 0; i < info->dlpi_phnum; i++) {
                const ElfW(Phdr) *p = &info->dlpi_phdr[i];
                uintptr_t begin = info->dlpi_addr + p->p_vaddr;

                if (p->p_type == PT_LOAD && place->address >= begin &&
                    place->address - begin < p->p_filesz) {
                        place->offset = place->address - begin + p->p_offset;
                        return 1;
                }
        }
        return 0;
}

/* The shortest time of some rounds. */
static uint64_t time_calls(void (*function)(void)) {
        uint64_t shortest = UINT64_MAX;

        for (unsigned i = 0; i < ROUNDS; i++) {
                uint64_t begin = now_ns(), took;

                for (unsigned j = 0; j < CALLS; j++)
                        function();
                took = now_ns() - begin;
                shortest = took < shortest ? took : shortest;
        }
        return shortest;
}

static void read_clock(void) {
        (void) now_ns();
}

/*
 * What is done for a window when one of its ends is hit: a third of what the cheaper hit takes,
 * 0.15 us of 0.46 (Linux 6.18, docs/BENCHMARKS.md), or what looking at the clock six times takes.
 * They are the same there; but some virtual machines make traps ten times as expensive, and some
 * the clock.
 */
static uint64_t time_window(uint64_t hit_ns) {
        uint64_t clock_ns = 6 * time_calls(read_clock) / CALLS;

        return clock_ns < hit_ns / 3 ? clock_ns : hit_ns / 3;
}

/* 0: it cannot be told. */
static uint64_t time_hit(const UprobeSpec *spec, void (*function)(void), Detacher *detacher) {
        Place place = { .address = (uintptr_t) function };
        UprobeSpec here = *spec;
        uint64_t with, without;
        Uprobe *uprobe;

        if (!dl_iterate_phdr(find_offset, &place))
                return 0;
        here.offsets = &place.offset;
        here.n_offsets = 1;
        without = time_calls(function);
        if (uprobe_attach(&here, &uprobe) < 0)
                return 0;
        with = time_calls(function);
        detacher_push(detacher, uprobe);
        return with > without ? (with - without) / CALLS : 0;
}

static int compare_ns(const void *a, const void *b) {
        const uint64_t *first = a, *second = b;

        return (*first > *second) - (*first < *second);
}

/* The longest time in which this thread did not come to look at the clock. */
static uint64_t watch_gap(uint64_t until_ns) {
        uint64_t last = now_ns(), longest = 0;

        while (last < until_ns) {
                uint64_t now = now_ns();

                longest = now - last > longest ? now - last : longest;
                last = now;
        }
        return longest;
}

/* What it took to set the timer, and what the CPU was away for when it came; 0: unknown. */
static uint64_t time_one_timer(int fd) {
        const struct itimerspec in = { .it_value.tv_nsec = TIMER_NS };
        uint64_t begin = now_ns(), set, expirations;

        if (timerfd_settime(fd, 0, &in, NULL) < 0)
                return 0;
        set = now_ns();
        /* On a virtual machine it may come late. */
        for (unsigned i = 0; i < PATIENCE; i++) {
                uint64_t gap = watch_gap(now_ns() + 2 * TIMER_NS);

                if (read(fd, &expirations, sizeof(expirations)) == sizeof(expirations))
                        return set - begin + gap;
        }
        return 0;
}

/*
 * A timer of our own takes what one of the programs' takes, but for what that does when it comes:
 * a tenth of it. Not the shortest one counts, which may be that of a timer that has come on another
 * CPU, but one of the short ones: the host of a virtual machine can make the others longer.
 */
static uint64_t time_timer(void) {
        uint64_t took[TIMERS], chosen;
        _cleanup_close_ int fd = -EBADF;
        size_t n = 0;

        fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (fd < 0)
                return 0;
        for (size_t i = 0; i < TIMERS; i++) {
                took[n] = time_one_timer(fd);
                n += took[n] > 0;
        }
        if (n == 0)
                return 0;
        qsort(took, n, sizeof(*took), compare_ns);
        chosen = took[n / 4];
        return chosen + chosen / 10;
}

typedef void (*Function)(void);

static Function function_for(ProbeKind kind) {
        static const Function functions[PROBE_N_KINDS] = {
                [PROBE_OPTIMISED] = price_nop5,
                [PROBE_EMULATED] = price_emulated,
                [PROBE_RETURN] = price_return,
                [PROBE_STEPPED] = price_stepped,
        };

        return kind == PROBE_OPTIMISED && probe_nops_of_kernel() == PROBE_NOPS_CALL_10
                       ? price_nop10
                       : functions[kind];
}

/* The programs find no site for that cookie, and come back at once. A window takes more. */
void price_find(Price *price, const BpfPrograms *programs, Detacher *detacher) {
        UprobeSpec spec = { .multi = programs->multi, .cookie = UINT32_MAX };
        _cleanup_close_ int fd = -EBADF;

        *price = (Price) {
                .timer_ns = time_timer(),
                .hit.returns_at_once = programs->sets_registers,
        };
        fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return;
        spec.file_fd = fd;
        for (ProbeKind kind = PROBE_UNKNOWN; kind < PROBE_N_KINDS; kind++) {
                if (kind == PROBE_UNKNOWN)
                        continue;
                spec.prog_fd = kind == PROBE_RETURN ? bpf_programs_stop_fd(programs)
                                                    : bpf_programs_start_fd(programs);
                price->hit.ns[kind] = time_hit(&spec, function_for(kind), detacher);
        }
        price->hit.ns[PROBE_UNKNOWN] = price->hit.ns[PROBE_EMULATED];
        price->window_ns = time_window(price->hit.ns[PROBE_EMULATED]);
        for (ProbeKind kind = PROBE_UNKNOWN; kind < PROBE_N_KINDS; kind++)
                if (price->hit.ns[kind] > 0)
                        price->hit.ns[kind] += price->window_ns;
}
