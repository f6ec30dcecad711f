/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Those of system calls are told by the pair of programs on all calls (calls.c), those of programs
 * where the kernel gives them to who wants them (user-events.bpf.h), and others by programs that
 * have to tell whether an interrupt has hit them.
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
        bool tells_user_events;
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
                known = (Abilities) {
                        .tells_interrupts = preempt_count_find(btf) != 0,
                        .tells_calls = bpf_programs_find_calls(btf),
                        .tells_user_events =
                                btf__find_by_name_kind(btf, "user_event", BTF_KIND_STRUCT) > 0,
                };
                are_known = true;
                btf__free(btf);
        }
        *ret = known;
        return 0;
}

static int check(const Abilities *abilities, TraceEventKind event, char **ret_reason) {
        if (trace_event_is_of_call(event))
                return abilities->tells_calls
                               ? 0
                               : sentence_error(-EOPNOTSUPP, ret_reason,
                                                "System calls can be measured on x86-64 only, and "
                                                "this kernel must have CONFIG_FTRACE_SYSCALLS");
        if (event == TRACE_EVENT_USER)
                return abilities->tells_user_events
                               ? 0
                               : sentence_error(-EOPNOTSUPP, ret_reason,
                                                "Events of programs can be measured only where the "
                                                "types of the kernel describe them");
        return abilities->tells_interrupts
                       ? 0
                       : sentence_error(
                                 -EOPNOTSUPP, ret_reason,
                                 "Events of the kernel can be measured on x86-64 and arm64 only, "
                                 "where its types tell how it counts interrupts");
}

int bpf_events_check(const Binding *binding, char **ret_reason) {
        const BindingSites *sites = &binding->resolved.sites;
        Abilities abilities = {};
        int r;

        if (!binding_has_events(binding))
                return 0;
        r = find_abilities(&abilities);
        if (r >= 0)
                r = check(&abilities, sites->start_event, ret_reason);
        return r < 0 ? r : check(&abilities, sites->stop_event, ret_reason);
}
