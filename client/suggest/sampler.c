/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * On each CPU there is a clock, which samples who runs. A sample has the user's registers and a
 * piece of the user's stack, for stacks.c: programs have no frame pointers.
 *
 * The clocks are not confined to a cgroup: then the kernel would stop and start them whenever
 * another one gets the CPU. Nor are switches sampled: either has cost PostgreSQL a fifth of its
 * throughput. Whose stacks are wanted is decided later; what sleeps is seen by sleepers.c.
 */

#include "suggest/sampler.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/duration.h"
#include "base/sentence.h"

#define FREQUENCY  197 /* a second on each CPU; a prime, to be in step with nobody */
#define STACK_SIZE 16384
#define RING_SIZE  (UINT64_C(2) << 20)

#if defined(__x86_64__)
#include <asm/perf_regs.h>

/* In the order in which the kernel writes them: that of their numbers. */
static const struct {
        unsigned number;
        unsigned dwarf;
} registers[SAMPLE_REGISTERS] = {
        { PERF_REG_X86_AX, 0 },   { PERF_REG_X86_BX, 3 },   { PERF_REG_X86_CX, 2 },
        { PERF_REG_X86_DX, 1 },   { PERF_REG_X86_SI, 4 },   { PERF_REG_X86_DI, 5 },
        { PERF_REG_X86_BP, 6 },   { PERF_REG_X86_SP, 7 },   { PERF_REG_X86_IP, SAMPLE_IP },
        { PERF_REG_X86_R8, 8 },   { PERF_REG_X86_R9, 9 },   { PERF_REG_X86_R10, 10 },
        { PERF_REG_X86_R11, 11 }, { PERF_REG_X86_R12, 12 }, { PERF_REG_X86_R13, 13 },
        { PERF_REG_X86_R14, 14 }, { PERF_REG_X86_R15, 15 },
};
#endif

/* Of one CPU. */
typedef struct Ring {
        int fd;
        struct perf_event_mmap_page *page;
} Ring;

/* A sample, taken out of its ring. */
typedef struct Record {
        uint64_t time_ns;
        size_t offset; /* in data */
} Record;

struct Sampler {
        long page_size;
        Ring *rings;
        size_t n_rings;
        uint64_t n_lost;
        /* What is being handed on. */
        uint8_t *data;
        size_t size, allocated;
        Record *records;
        size_t n_records, n_allocated;
};

Sampler *sampler_free(Sampler *sampler) {
        if (!sampler)
                return NULL;
        for (size_t i = 0; i < sampler->n_rings; i++) {
                Ring *ring = &sampler->rings[i];

                if (ring->page)
                        (void) munmap(ring->page, RING_SIZE + (size_t) sampler->page_size);
                safe_close(ring->fd);
        }
        free(sampler->rings);
        free(sampler->records);
        free(sampler->data);
        free(sampler);
        return NULL;
}

uint64_t sampler_get_period(const Sampler *sampler) {
        return NSEC_PER_SEC / FREQUENCY;
}

uint64_t sampler_count_lost(const Sampler *sampler) {
        return sampler->n_lost;
}

#if defined(__x86_64__)

static int open_clock(int cpu) {
        struct perf_event_attr attr = {
                .size = sizeof(attr),
                .type = PERF_TYPE_SOFTWARE,
                .config = PERF_COUNT_SW_CPU_CLOCK,
                .freq = 1,
                .sample_freq = FREQUENCY,
                .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER |
                               PERF_SAMPLE_STACK_USER,
                .sample_stack_user = STACK_SIZE,
                .exclude_idle = 1,
                .use_clockid = 1,
                .clockid = CLOCK_MONOTONIC,
        };
        long fd;

        for (size_t i = 0; i < SAMPLE_REGISTERS; i++)
                attr.sample_regs_user |= UINT64_C(1) << registers[i].number;
        fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        return fd < 0 ? -errno : (int) fd;
}

#else

static int open_clock(int cpu) {
        return -EOPNOTSUPP;
}

#endif

static int ring_open(const Sampler *sampler, int cpu, Ring *ring) {
        void *page;

        ring->fd = open_clock(cpu);
        if (ring->fd < 0)
                return ring->fd;
        page = mmap(NULL, RING_SIZE + (size_t) sampler->page_size, PROT_READ | PROT_WRITE,
                    MAP_SHARED, ring->fd, 0);
        if (page == MAP_FAILED)
                return -errno;
        ring->page = page;
        return 0;
}

static int open_error(int r, char **ret_error) {
        switch (r) {
        case -EACCES:
        case -EPERM:
                return sentence_error(r, ret_error, "Stacks can only be sampled by root: %s",
                                      strerror(-r));
        case -EOPNOTSUPP:
                return sentence_error(r, ret_error, "Stacks can be sampled on x86-64 only");
        default:
                return sentence_error(r, ret_error, "The kernel refused to sample stacks: %s",
                                      strerror(-r));
        }
}

int sampler_new(Sampler **ret, char **ret_error) {
        _cleanup_(sampler_freep) Sampler *sampler = calloc(1, sizeof(*sampler));
        long n_cpus = sysconf(_SC_NPROCESSORS_CONF);

        if (!sampler || n_cpus <= 0)
                return -ENOMEM;
        sampler->page_size = sysconf(_SC_PAGESIZE);
        sampler->rings = calloc((size_t) n_cpus, sizeof(*sampler->rings));
        if (!sampler->rings)
                return -ENOMEM;
        for (long cpu = 0; cpu < n_cpus; cpu++) {
                Ring *ring = &sampler->rings[sampler->n_rings++];
                int r;

                *ring = (Ring) { .fd = -EBADF };
                r = ring_open(sampler, (int) cpu, ring);
                /* It is not there now. */
                if (r == -ENODEV)
                        sampler->n_rings--;
                else if (r < 0)
                        return open_error(r, ret_error);
        }
        *ret = TAKE_PTR(sampler);
        return 0;
}

/* From a place in a ring, around its end. */
static void ring_read(const Sampler *sampler, const Ring *ring, uint64_t at, void *ret,
                      size_t size) {
        const uint8_t *base = (const uint8_t *) ring->page + sampler->page_size;
        size_t begin = at % RING_SIZE, n = RING_SIZE - begin < size ? RING_SIZE - begin : size;

        memcpy(ret, base + begin, n);
        memcpy((uint8_t *) ret + n, base, size - n);
}

static int make_room(Sampler *sampler, size_t size) {
        if (sampler->size + size > sampler->allocated) {
                size_t n = 2 * (sampler->size + size);
                uint8_t *data = realloc(sampler->data, n);

                if (!data)
                        return -ENOMEM;
                sampler->data = data;
                sampler->allocated = n;
        }
        if (sampler->n_records == sampler->n_allocated) {
                size_t n = 2 * sampler->n_allocated + 64;
                Record *records = reallocarray(sampler->records, n, sizeof(*records));

                if (!records)
                        return -ENOMEM;
                sampler->records = records;
                sampler->n_allocated = n;
        }
        return 0;
}

/* What samples begin with. */
typedef struct SampleHead {
        struct perf_event_header header;
        uint32_t pid;
        uint32_t tid;
        uint64_t time_ns;
        uint64_t abi; /* of the registers that follow; 0: there are none */
} SampleHead;

/* Notes a record that was copied to that offset, if it is one of use. */
static void note_record(Sampler *sampler, size_t offset, size_t size) {
        struct perf_event_header header;
        SampleHead head;
        uint64_t lost[2];

        memcpy(&header, sampler->data + offset, sizeof(header));
        if (header.type == PERF_RECORD_SAMPLE && size >= sizeof(head)) {
                memcpy(&head, sampler->data + offset, sizeof(head));
                sampler->records[sampler->n_records++] = (Record) { head.time_ns, offset };
        } else if (header.type == PERF_RECORD_LOST && size >= sizeof(header) + sizeof(lost)) {
                memcpy(lost, sampler->data + offset + sizeof(header), sizeof(lost));
                sampler->n_lost += lost[1];
        }
}

static int ring_drain(Sampler *sampler, Ring *ring) {
        uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
        uint64_t tail = ring->page->data_tail;
        int r = 0;

        while (tail < head && r >= 0) {
                struct perf_event_header header;

                ring_read(sampler, ring, tail, &header, sizeof(header));
                if (header.size < sizeof(header))
                        break;
                r = make_room(sampler, header.size);
                if (r < 0)
                        break;
                ring_read(sampler, ring, tail, sampler->data + sampler->size, header.size);
                note_record(sampler, sampler->size, header.size);
                sampler->size += (header.size + 7U) & ~7U;
                tail += header.size;
        }
        __atomic_store_n(&ring->page->data_tail, head, __ATOMIC_RELEASE);
        return r;
}

static int compare_records(const void *a, const void *b) {
        const Record *x = a, *y = b;

        return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

#if defined(__x86_64__)

/* The registers, the size of the stack's piece, the piece, and how much of it there is. */
static bool read_sample(const uint8_t *record, StackSample *ret) {
        uint64_t values[SAMPLE_REGISTERS], stack_size, dynamic;
        size_t size, at = sizeof(SampleHead);
        SampleHead head;

        memcpy(&head, record, sizeof(head));
        size = head.header.size;
        if (head.abi == PERF_SAMPLE_REGS_ABI_NONE || head.abi == PERF_SAMPLE_REGS_ABI_32 ||
            size < at + sizeof(values) + sizeof(stack_size))
                return false;
        memcpy(values, record + at, sizeof(values));
        at += sizeof(values);
        memcpy(&stack_size, record + at, sizeof(stack_size));
        at += sizeof(stack_size);
        if (stack_size == 0 || size - at < stack_size + sizeof(dynamic))
                return false;
        memcpy(&dynamic, record + at + stack_size, sizeof(dynamic));
        *ret = (StackSample) {
                .time_ns = head.time_ns,
                .pid = (pid_t) head.pid,
                .tid = (pid_t) head.tid,
                .stack = record + at,
                .stack_size = dynamic < stack_size ? dynamic : stack_size,
        };
        for (size_t i = 0; i < SAMPLE_REGISTERS; i++)
                ret->registers[registers[i].dwarf] = values[i];
        return true;
}

#else

static bool read_sample(const uint8_t *record, StackSample *ret) {
        return false;
}

#endif

int sampler_dispatch(Sampler *sampler, int (*on_stack)(const StackSample *sample, void *userdata),
                     void *userdata) {
        int r = 0;

        sampler->size = sampler->n_records = 0;
        for (size_t i = 0; i < sampler->n_rings && r >= 0; i++)
                r = ring_drain(sampler, &sampler->rings[i]);
        if (sampler->n_records > 0)
                qsort(sampler->records, sampler->n_records, sizeof(*sampler->records),
                      compare_records);
        for (size_t i = 0; i < sampler->n_records && r >= 0; i++) {
                StackSample sample;

                if (read_sample(sampler->data + sampler->records[i].offset, &sample))
                        r = on_stack(&sample, userdata);
        }
        return r;
}
