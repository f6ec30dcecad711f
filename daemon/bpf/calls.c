/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The pair of programs on system calls is the one thing of this back end that every task of the
 * machine pays for, whatever it does: so it is there only while somebody measures a call, and what
 * it costs is found out when it comes, by calls of our own, and counted from then on.
 *
 * One daemon takes over from another in this order: its pair is attached and pinned, and has
 * nothing to say; then it acts, and the other does not (calls_acting). The kernel runs the older
 * pair first, so that a call underway is told by one of them or by both. The links of the other go
 * with the rest of its pins.
 */

#include "bpf/calls.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "bpf/hits.h"
#include "bpf/variants.h"

#define ROUNDS 5
#define CALLS  200

void calls_init(Calls *calls, const BpfPrograms *programs, Pins *pins, size_t n_cpus) {
        *calls = (Calls){
                .programs = programs,
                .pins = pins,
                .n_cpus = n_cpus,
        };
}

/*
 * To take programs off perf events takes a grace period (0.2 s in an emulator), off tracepoints
 * 0.2 ms. It is done in the background; nothing acts meanwhile, and the next pair waits for it, as
 * both would tell of the same calls.
 */
static void detach_pair(Calls *calls) {
        struct bpf_link *links[] = { calls->begin.link, calls->end.link };
        const uint64_t pins[] = { calls->begin.pin, calls->end.pin };
        const struct tlob_bpf *bpf = calls->programs->bpf;
        Uprobe *pair;

        if (bpf->bss->calls_acting == bpf->rodata->hooks_number)
                __atomic_store_n(&bpf->bss->calls_acting, 0, __ATOMIC_RELEASE);
        for (size_t i = 0; i < ELEMENTSOF(pins); i++)
                if (pins[i])
                        pins_remove(calls->pins, pins[i]);
        pair = uprobe_of_links(links, ELEMENTSOF(links));
        for (size_t i = 0; !pair && i < ELEMENTSOF(links); i++)
                (void) bpf_link__destroy(links[i]);
        detacher_push(calls->leaving, pair);
        calls->begin = calls->end = (CallLink){};
}

void calls_done(Calls *calls) {
        if (calls->programs && calls->n > 0)
                detach_pair(calls);
        detacher_free(calls->leaving);
        *calls = (Calls){};
}

/* None of ours is on its way out. */
static int await_pair(Calls *calls) {
        if (calls->leaving && !detacher_is_busy(calls->leaving))
                return 0;
        calls->leaving = detacher_free(calls->leaving);
        return detacher_new(&calls->leaving);
}

static int link_begin(const Calls *calls, const struct bpf_program *program, CallLink *link) {
        link->link = bpf_program__attach(program);
        if (!link->link)
                return -errno;
        /* Then it goes on without us. */
        if (calls->pins)
                (void) pins_add(calls->pins, bpf_link__fd(link->link), 0, &link->pin);
        return 0;
}

/* The shortest time of some rounds, for one call that nobody measures. */
static uint64_t time_call(void) {
        uint64_t shortest = UINT64_MAX;

        for (unsigned i = 0; i < ROUNDS; i++) {
                uint64_t begin = now_ns(), took;

                for (unsigned j = 0; j < CALLS; j++)
                        (void) syscall(SYS_getppid);
                took = (now_ns() - begin) / CALLS;
                shortest = took < shortest ? took : shortest;
        }
        return shortest;
}

static void set_price(const Calls *calls, uint64_t without_ns) {
        struct tlob_bpf__bss *bss = calls->programs->bpf->bss;
        uint64_t with_ns = time_call();

        bss->call_price_ns = with_ns > without_ns ? with_ns - without_ns : 0;
        bss->calls_pace_ns = hits_get_pace(bss->call_price_ns);
}

/* Of all pairs that there ever were. */
static uint64_t count_hits(const Calls *calls) {
        return hits_read(bpf_map__fd(calls->programs->bpf->maps.call_hits), 0, calls->n_cpus,
                         calls->n_hits_before);
}

/* The end first: no window may open that cannot end. */
static int attach_pair(Calls *calls) {
        const struct tlob_bpf *bpf = calls->programs->bpf;
        DeadlineMode mode = calls->programs->mode;
        uint64_t without_ns = 0;
        int r;

        if (!calls->programs->has_calls)
                return -EOPNOTSUPP;
        r = await_pair(calls);
        if (r < 0)
                return r;
        /* With the pair of a predecessor there, it is known from that one. */
        if (bpf->bss->call_price_ns == 0)
                without_ns = time_call();
        r = link_begin(calls, variant_call_end(bpf, mode), &calls->end);
        if (r >= 0)
                r = link_begin(calls, variant_call(bpf, mode), &calls->begin);
        if (r < 0) {
                detach_pair(calls);
                return r;
        }
        calls->n_hits_before = count_hits(calls);
        __atomic_store_n(&bpf->bss->calls_acting, bpf->rodata->hooks_number, __ATOMIC_RELEASE);
        if (without_ns > 0)
                set_price(calls, without_ns);
        return 0;
}

static struct tlob_call *call_at(const Calls *calls, uint64_t number) {
        return &calls->programs->bpf->bss->calls[number];
}

static void set_cookie(uint64_t *cookie, uint64_t to) {
        __atomic_store_n(cookie, to, __ATOMIC_RELEASE);
}

int calls_attach(Calls *calls, uint64_t number, uint64_t cookie) {
        struct tlob_call *call;
        int r;

        if (number >= TLOB_CALLS_MAX)
                return -EOPNOTSUPP;
        call = call_at(calls, number);
        if (calls->n > 0 && call->cookie == cookie)
                return 0;
        if (calls->n == 0) {
                r = attach_pair(calls);
                if (r < 0)
                        return r;
        }
        calls->n++;
        set_cookie((uint64_t *) &call->cookie, cookie);
        return 0;
}

void calls_detach(Calls *calls, uint64_t number) {
        if (number >= TLOB_CALLS_MAX || !call_at(calls, number)->cookie)
                return;
        set_cookie((uint64_t *) &call_at(calls, number)->cookie, 0);
        if (--calls->n == 0)
                detach_pair(calls);
}

uint64_t calls_get_cost(const Calls *calls) {
        return calls->n > 0 ? (count_hits(calls) - calls->n_hits_before) *
                                      calls->programs->bpf->bss->call_price_ns
                            : 0;
}

void calls_inherit(Calls *calls, bool was_complete) {
        for (uint64_t i = 0; calls->programs && i < TLOB_CALLS_MAX; i++) {
                struct tlob_call *call = call_at(calls, i);

                /* Both are the same for a moment, and tell once then. */
                if (was_complete || !call->cookie_before)
                        set_cookie((uint64_t *) &call->cookie_before, call->cookie);
                set_cookie((uint64_t *) &call->cookie, 0);
        }
}

void calls_drop_inherited(Calls *calls) {
        for (uint64_t i = 0; calls->programs && i < TLOB_CALLS_MAX; i++)
                set_cookie((uint64_t *) &call_at(calls, i)->cookie_before, 0);
}
