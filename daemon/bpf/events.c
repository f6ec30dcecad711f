/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Those of system calls are told by the pair of programs on all calls (calls.c), and others by
 * programs that have to tell whether an interrupt has hit them.
 */

#include "bpf/events.h"

#include <bpf/btf.h>

#include "base/sentence.h"
#include "bpf/preempt-count.h"
#include "bpf/programs.h"

/* What its types say of this kernel. */
typedef struct Abilities {
        bool tells_interrupts;
        bool tells_calls;
} Abilities;

/* The kernel stays the same, and to read all of its types takes 20 ms. */
static int find_abilities(Abilities *ret) {
        static Abilities known;
        static bool are_known;
        struct btf *btf;

        if (!are_known) {
                btf = btf__load_vmlinux_btf();
                if (!btf)
                        return -errno;
                known = (Abilities){ preempt_count_find(btf) != 0, bpf_programs_find_calls(btf) };
                are_known = true;
                btf__free(btf);
        }
        *ret = known;
        return 0;
}

int bpf_events_check(const Binding *binding, char **ret_reason) {
        const BindingSites *sites = &binding->resolved.sites;
        bool starts_with_call = trace_event_is_of_call(sites->start_event);
        bool stops_with_call = trace_event_is_of_call(sites->stop_event);
        Abilities abilities = {};
        int r;

        if (!binding_has_events(binding))
                return 0;
        r = find_abilities(&abilities);
        if (r < 0)
                return r;
        if ((starts_with_call || stops_with_call) && !abilities.tells_calls)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "System calls can be measured on x86-64 only, and this "
                                      "kernel must have CONFIG_FTRACE_SYSCALLS");
        if ((!starts_with_call || !stops_with_call) && !abilities.tells_interrupts)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "Events of the kernel can be measured on x86-64 only, and "
                                      "where its types tell how it counts interrupts");
        return 0;
}
