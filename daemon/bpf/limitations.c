/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From counters that the BPF programs keep to sentences for "tlobctl status". A counter that is 0
 * says nothing: on a machine where all is well the list is short, or empty.
 */

#include "bpf/limitations.h"

#include <stdio.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

typedef struct Counter {
        const __u64 *n;
        const char *what; /* "timers could not be ..." */
} Counter;

/* The processor tells, if the hypervisor lets it. */
static bool machine_is_virtual(void) {
#if defined(__x86_64__)
        unsigned a, b, c, d;

        return __get_cpuid(1, &a, &b, &c, &d) && (c & 1U << 31);
#else
        return false;
#endif
}

static size_t describe_abilities(Limitations *l, const BpfPrograms *programs, bool has_pins) {
        size_t n = 0;

        if (programs->mode == DEADLINE_SWITCH_TICK)
                l->sentences[n++] = "The expired deadline of a task that never leaves its CPU is "
                                    "noticed up to one scheduler tick late";
        if (!programs->stack_from_task)
                l->sentences[n++] = "Each time a task sleeps inside a window, its stack is "
                                    "recorded, which costs it some microseconds";
        if (machine_is_virtual())
                l->sentences[n++] = "This machine is virtual: time that its host gives to other "
                                    "machines counts as running";
        if (!has_pins)
                l->sentences[n++] = "When tlobd is killed, the kernel removes its probes one by "
                                    "one, in about 50 ms each, before tlobd can start again";
        return n;
}

static size_t describe_counters(Limitations *l, const BpfPrograms *programs, size_t n) {
        const struct tlob_bpf__bss *bss = programs->bpf->bss;
        const Counter counters[] = {
                { &bss->n_tasks_refused,
                  "windows could not be measured, because too many threads had one open: raise "
                  "TasksMax= in tlobd.conf" },
                { &bss->n_keyed_refused,
                  "windows with keys could not be measured, because too many were open: name all "
                  "places where they end, or raise TasksMax= in tlobd.conf" },
                { &bss->n_timer_failures,
                  "timers could not be armed: those deadlines were noticed at the next tick or "
                  "context switch, or at the stop" },
                { &bss->n_put_off,
                  "times a timer could not tell how its window stood, and looked again a moment "
                  "later: those reports were so much later" },
                { &bss->n_bridge_failures,
                  "starts could not arm a timer, because another was preempted while arming its "
                  "own: those deadlines were noticed at the next tick or switch" },
                { &bss->n_instances_missed,
                  "instances of templates were not measured from their first call, because more "
                  "started at once than SpareInstances= allows" },
                { &bss->n_missed_switches,
                  "times the kernel did not report that a task got a CPU: the time that it had "
                  "waited was determined later" },
                { &bss->n_missed_wakeups,
                  "times the kernel did not report that a task woke up: the time that it had "
                  "slept was determined later" },
        };

        _Static_assert(ELEMENTSOF(counters) + 6 <= LIMITATIONS_MAX, "LIMITATIONS_MAX is too small");

        for (size_t i = 0; i < ELEMENTSOF(counters); i++) {
                __u64 count = __atomic_load_n(counters[i].n, __ATOMIC_RELAXED);

                if (count == 0)
                        continue;
                (void) snprintf(l->texts[i], LIMITATION_MAX, "%llu %s", count, counters[i].what);
                l->sentences[n++] = l->texts[i];
        }
        return n;
}

const char *const *limitations_update(Limitations *l, const BpfPrograms *programs,
                                      const Price *price, bool has_pins, bool has_user_events) {
        size_t n = describe_abilities(l, programs, has_pins);

        if (has_user_events)
                l->sentences[n++] = "Events of programs are not seen on CPUs that are switched on "
                                    "later, as most are after a suspend, until tlobd is restarted";
        if (price->hit.ns[PROBE_STEPPED] == 0)
                l->sentences[n++] = "What a probe costs here could not be measured: CPULimit= has "
                                    "no effect";
        l->sentences[describe_counters(l, programs, n)] = NULL;
        return l->sentences;
}
