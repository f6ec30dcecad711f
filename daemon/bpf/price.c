/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The price of a hit differs by a factor of fifty with the instruction under the probe
 * (elf/probe-kind.h), and by as much from machine to machine. So a function of our own gets a probe
 * on an instruction that the kernel emulates, and one on an instruction that it has to step, and is
 * called. Of some rounds the quickest counts: the others were disturbed.
 */

#include "bpf/price.h"

#include <fcntl.h>
#include <link.h>

#include "base/clock.h"

#define ROUNDS 5
#define CALLS  100

void price_emulated(void);
void price_stepped(void);

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".type price_emulated, @function\n"
        "price_emulated: nop\n ret\n"
        ".type price_stepped, @function\n"
        "price_stepped: xor %eax, %eax\n ret\n"
        ".popsection\n");
#else
__attribute__((noinline)) void price_emulated(void) {
        __asm__ volatile("nop");
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

/*
 * The program finds no site for that cookie, and comes back at once. A window takes a third of the
 * cheaper hit more: 0.15 us of 0.46 (Linux 6.18, docs/BENCHMARKS.md).
 */
void price_find(Price *price, int prog_fd, bool multi, Detacher *detacher) {
        UprobeSpec spec = { .prog_fd = prog_fd, .multi = multi, .cookie = UINT32_MAX };
        _cleanup_close_ int fd = -EBADF;
        uint64_t emulated, stepped;

        *price = (Price){};
        fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return;
        spec.file_fd = fd;
        emulated = time_hit(&spec, price_emulated, detacher);
        stepped = time_hit(&spec, price_stepped, detacher);
        for (ProbeKind kind = PROBE_UNKNOWN; kind < PROBE_N_KINDS; kind++)
                price->hit_ns[kind] = (kind == PROBE_STEPPED ? stepped : emulated) + emulated / 3;
}
