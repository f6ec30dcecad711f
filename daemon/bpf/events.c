/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From Linux 7.0 on, the programs on the events of single system calls can be preempted, and for
 * that long all other tasks on the CPU are left out without a word (under load half of all calls;
 * seen on 7.3). Those on raw_syscalls cannot.
 */

#include "bpf/events.h"

#include <bpf/btf.h>

#include "base/sentence.h"
#include "base/trace-event.h"
#include "bpf/preempt-count.h"

static bool is_of_calls(const char *place) {
        return strncmp(place,
                       TRACE_EVENT_PLACE "syscalls:", strlen(TRACE_EVENT_PLACE "syscalls:")) == 0;
}

/* What its types say of this kernel. */
typedef struct Abilities {
        bool tells_interrupts;
        bool leaves_out_calls;
} Abilities;

static int find_abilities(Abilities *ret) {
        struct btf *btf = btf__load_vmlinux_btf();

        if (!btf)
                return -errno;
        *ret = (Abilities){
                .tells_interrupts = preempt_count_find(btf) != 0,
                .leaves_out_calls =
                        btf__find_by_name_kind(btf, "trace_call_bpf_faultable", BTF_KIND_FUNC) > 0,
        };
        btf__free(btf);
        return 0;
}

int bpf_events_check(const Binding *binding, char **ret_reason) {
        /* The kernel stays the same, and to read all of its types takes 20 ms. */
        static Abilities abilities;
        static bool are_known;
        int r;

        if (!binding_has_events(binding))
                return 0;
        if (!are_known) {
                r = find_abilities(&abilities);
                if (r < 0)
                        return r;
                are_known = true;
        }
        if (!abilities.tells_interrupts)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "Events of the kernel can be measured on x86-64 only, and "
                                      "where its types tell how it counts interrupts");
        if (abilities.leaves_out_calls &&
            (is_of_calls(binding->start) || is_of_calls(binding->stop)))
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "This kernel leaves out events of system calls when tasks "
                                      "are preempted: write Syscall=");
        return 0;
}
