/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which bindings the kernel's monitor can express. It knows places in a file and a budget; so a
 * return has to be a place, a budget has to leave room for what tells bindings apart, and what it
 * does not know at all, units and how many threads there are, is looked at from here.
 */

#include "kernel/ability.h"

#include "base/sentence.h"
#include "base/unit-name.h"
#include "kernel/census.h"
#include "kernel/context.h"
#include "kernel/task.h"

#define PATH_LENGTH_MAX 255

int kernel_find_stop(const Binding *binding, uint64_t *ret, char **ret_reason) {
        const char *function = binding->resolved.sites.start.function ?: binding->start;

        switch (binding->resolved.sites.how) {
        case TLOB_STOP_PLACE:
                *ret = binding->resolved.sites.stop.offset;
                return 0;
        case TLOB_STOP_EXITS:
        case TLOB_STOP_GO:
                if (binding->resolved.sites.exits.several)
                        return sentence_error(-EOPNOTSUPP, ret_reason,
                                              "The kernel's monitor cannot stop at returns, and "
                                              "'%s' %s",
                                              function, binding->resolved.sites.exits.several);
                *ret = binding->resolved.sites.exits.offsets[0];
                return 0;
        case TLOB_STOP_RETURN_PROBE:
        default:
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor sets no return probes");
        }
}

int kernel_check_budget(uint64_t budget_ns, char **ret_reason) {
        if (budget_ns > KERNEL_THRESHOLD_MAX_NS - 1000 * KERNEL_THRESHOLD_ADD)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor accepts budgets up to an hour, less "
                                      "a little that tells bindings apart");
        return 0;
}

/* Whatever the unit: a thread outside of it takes a slot all the same. */
static int check_threads(const Binding *binding, const BindingFile *binding_file,
                         char **ret_reason) {
        KernelFile file = kernel_file_of_binding(binding, binding_file);
        unsigned n;
        int r;

        r = kernel_census(&file, 1, KERNEL_SLOTS, NULL, &n, ret_reason);
        if (r < 0)
                return r;
        if (n > KERNEL_SLOTS)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor has room for %i threads, and more than "
                                      "that may run this code now",
                                      KERNEL_SLOTS);
        return 0;
}

int kernel_can(const Binding *binding, const BindingFile *file, char **ret_reason) {
        uint64_t stop;
        int r;

        r = kernel_check_budget(binding->budget_ns[TLOB_BUDGET_TOTAL], ret_reason);
        if (r < 0)
                return r;
        if (binding->unit && unit_name_is_template(binding->unit))
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor cannot tell units apart, and tlobd "
                                      "knows none of the instances of %s",
                                      binding->unit);
        if (binding->view.old.pid > 0)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor opens a file by its path, and another "
                                      "one is there now");
        if (strlen(binding->resolved.path) > PATH_LENGTH_MAX ||
            strpbrk(binding->resolved.path, " \t\n"))
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor accepts only paths of at most %i "
                                      "bytes, without blanks",
                                      PATH_LENGTH_MAX);
        if (binding->unit && !kernel_tasks_are_visible())
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor cannot tell units apart, and tlobd "
                                      "does not see the machine's process IDs");
        r = kernel_find_stop(binding, &stop, ret_reason);
        if (r < 0)
                return r;
        return check_threads(binding, file, ret_reason);
}
