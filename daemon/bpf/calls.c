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

#define ROUNDS 5
#define CALLS  200

void calls_init(Calls *calls, LatePrograms *late, Pins *pins, size_t n_cpus) {
        *calls = (Calls) {
                .programs = late->programs,
                .late = late,
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
        calls->begin = calls->end = (PinnedLink) {};
}

void calls_done(Calls *calls) {
        if (calls->programs && calls->n > 0)
                detach_pair(calls);
        detacher_free(calls->leaving);
        *calls = (Calls) {};
}

/* None of ours is on its way out. */
static int await_pair(Calls *calls) {
        if (calls->leaving && !detacher_is_busy(calls->leaving))
                return 0;
        calls->leaving = detacher_free(calls->leaving);
        return detacher_new(&calls->leaving);
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

/* Of all pairs that there ever were. */
static uint64_t count_hits(const Calls *calls) {
        return hits_read(bpf_map__fd(calls->programs->bpf->maps.call_hits), 0, calls->n_cpus,
                         calls->n_hits_before);
}

/* What the calls have cost that were made at this price. */
static uint64_t get_cost(const Calls *calls) {
        return (count_hits(calls) - calls->n_hits_before) *
               calls->programs->bpf->bss->call_price_ns;
}

/* What it costs more since that was measured, in a role in which no call was. */
static void add_price(Calls *calls, enum tlob_call_role role, uint64_t without_ns) {
        struct tlob_bpf__bss *bss = calls->programs->bpf->bss;
        uint64_t with_ns = time_call();

        calls->cost_before_ns += get_cost(calls);
        calls->n_hits_before = count_hits(calls);
        bss->call_price_ns += with_ns > without_ns ? with_ns - without_ns : 0;
        bss->call_price_roles |= 1U << role;
        bss->calls_pace_ns = hits_get_pace(bss->call_price_ns);
}

/* The end first: no window may open that cannot end. */
static int attach_pair(Calls *calls) {
        const struct tlob_bpf *bpf = calls->programs->bpf;
        struct bpf_program *begin, *end;
        int r;

        r = late_programs_get_calls(calls->late, &begin, &end);
        if (r >= 0)
                r = await_pair(calls);
        if (r < 0)
                return r;
        r = pins_attach(calls->pins, end, &calls->end);
        if (r >= 0)
                r = pins_attach(calls->pins, begin, &calls->begin);
        if (r < 0) {
                detach_pair(calls);
                return r;
        }
        calls->n_hits_before = count_hits(calls);
        calls->cost_before_ns = 0;
        __atomic_store_n(&bpf->bss->calls_acting, bpf->rodata->hooks_number, __ATOMIC_RELEASE);
        return 0;
}

static struct tlob_call *calls_in(const Calls *calls, enum tlob_call_role role) {
        return calls->programs->bpf->bss->calls[role];
}

static void set_cookie(uint64_t *cookie, uint64_t to) {
        __atomic_store_n(cookie, to, __ATOMIC_RELEASE);
}

static bool any_is_in(const Calls *calls, enum tlob_call_role role) {
        const struct tlob_call *all = calls_in(calls, role);

        for (size_t i = 0; i < TLOB_CALLS_MAX; i++)
                if (all[i].cookie || all[i].cookie_before)
                        return true;
        return false;
}

static void note_roles(const Calls *calls) {
        uint32_t roles = 0;

        for (enum tlob_call_role role = 0; role < TLOB_CALL_ROLES; role++)
                roles |= (uint32_t) any_is_in(calls, role) << role;
        __atomic_store_n(&calls->programs->bpf->bss->calls_roles, roles, __ATOMIC_RELEASE);
}

static int publish(Calls *calls, enum tlob_call_role role, uint64_t number, uint64_t cookie) {
        int r = calls->n == 0 ? attach_pair(calls) : 0;

        if (r < 0)
                return r;
        calls->n++;
        set_cookie((uint64_t *) &calls_in(calls, role)[number].cookie, cookie);
        note_roles(calls);
        return 0;
}

int calls_attach(Calls *calls, enum tlob_call_role role, uint64_t number, uint64_t cookie) {
        uint64_t without_ns = 0;
        bool is_priced;
        int r;

        if (number >= TLOB_CALLS_MAX || !calls->programs->has_calls)
                return -EOPNOTSUPP;
        if (calls->n > 0 && calls_in(calls, role)[number].cookie == cookie)
                return 0;
        /* Perhaps by a predecessor, whose pair is there now. */
        is_priced = calls->programs->bpf->bss->call_price_roles & 1U << role;
        if (!is_priced) {
                r = await_pair(calls);
                if (r < 0)
                        return r;
                without_ns = time_call();
        }
        r = publish(calls, role, number, cookie);
        if (r >= 0 && !is_priced)
                add_price(calls, role, without_ns);
        return r;
}

void calls_detach(Calls *calls, enum tlob_call_role role, uint64_t number) {
        struct tlob_call *call;

        if (number >= TLOB_CALLS_MAX)
                return;
        call = &calls_in(calls, role)[number];
        if (!call->cookie)
                return;
        set_cookie((uint64_t *) &call->cookie, 0);
        note_roles(calls);
        if (--calls->n == 0)
                detach_pair(calls);
}

uint64_t calls_get_cost(const Calls *calls) {
        return calls->n > 0 ? calls->cost_before_ns + get_cost(calls) : 0;
}

static void inherit_in(const Calls *calls, enum tlob_call_role role, bool was_complete) {
        struct tlob_call *all = calls_in(calls, role);

        for (size_t i = 0; i < TLOB_CALLS_MAX; i++) {
                /* Both are the same for a moment, and tell once then. */
                if (was_complete || !all[i].cookie_before)
                        set_cookie((uint64_t *) &all[i].cookie_before, all[i].cookie);
                set_cookie((uint64_t *) &all[i].cookie, 0);
        }
}

void calls_inherit(Calls *calls, bool was_complete) {
        for (enum tlob_call_role role = 0; calls->programs && role < TLOB_CALL_ROLES; role++)
                inherit_in(calls, role, was_complete);
}

void calls_drop_inherited(Calls *calls) {
        if (!calls->programs)
                return;
        for (enum tlob_call_role role = 0; role < TLOB_CALL_ROLES; role++)
                for (size_t i = 0; i < TLOB_CALLS_MAX; i++)
                        set_cookie((uint64_t *) &calls_in(calls, role)[i].cookie_before, 0);
        note_roles(calls);
}
