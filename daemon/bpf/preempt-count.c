/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * On x86 both are variables of a CPU, and lie in its area for these where they lie in the area of
 * every other. The types say where. The address of a run queue can be had from any task, so nothing
 * needs the addresses of variables, which only kernels with CONFIG_KALLSYMS_ALL tell.
 */

#include "bpf/preempt-count.h"

#include <bpf/btf.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "bpf/kernel-types.h"

#if defined(__x86_64__)

static bool find_variable(const struct btf *btf, const char *name, int64_t *ret_offset) {
        int id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
        const struct btf_var_secinfo *variable;
        const struct btf_type *section;

        if (id < 0)
                return false;
        section = btf__type_by_id(btf, (uint32_t) id);
        variable = btf_var_secinfos(section);
        for (size_t i = 0; i < btf_vlen(section); i++, variable++) {
                const struct btf_type *type = btf__type_by_id(btf, variable->type);

                if (streq(btf__name_by_offset(btf, type->name_off), name)) {
                        *ret_offset = variable->offset;
                        return true;
                }
        }
        return false;
}

/* From Linux 6.2 to 6.14 it was together with others that are needed as often. */
static bool find_count(const struct btf *btf, int64_t *ret_offset) {
        uint32_t bits;

        if (find_variable(btf, "__preempt_count", ret_offset))
                return true;
        if (!kernel_types_find_member(btf, "pcpu_hot", "preempt_count", &bits) ||
            !find_variable(btf, "pcpu_hot", ret_offset))
                return false;
        *ret_offset += bits / 8;
        return true;
}

int64_t preempt_count_find(const struct btf *btf) {
        int64_t count, queue;
        uint32_t bits;

        /* The way from a task to the queue (CONFIG_FAIR_GROUP_SCHED). */
        if (!kernel_types_find_member(btf, "sched_entity", "cfs_rq", &bits) ||
            !kernel_types_find_member(btf, "cfs_rq", "rq", &bits))
                return 0;
        return find_count(btf, &count) && find_variable(btf, "runqueues", &queue) ? count - queue
                                                                                  : 0;
}

#elif defined(__aarch64__)

/* Of the task that runs there. */
int64_t preempt_count_find(const struct btf *btf) {
        uint32_t info, count;

        if (!kernel_types_find_member(btf, "task_struct", "thread_info", &info) ||
            !kernel_types_find_member(btf, "thread_info", "preempt_count", &count))
                return 0;
        return (info + count) / 8;
}

#else

int64_t preempt_count_find(const struct btf *btf) {
        return 0;
}

#endif
