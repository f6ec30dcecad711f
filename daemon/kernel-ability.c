/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which bindings the kernel's monitor can express. It knows places in a file and a budget; so a return has
 * to be a place, a budget has to leave room for what tells bindings apart, and what it does not know at all,
 * units and how many threads there are, is looked at from here.
 */

#include "function-return.h"
#include "kernel-backend.h"
#include "kernel-threads.h"
#include "sentence.h"

#define PATH_LENGTH_MAX 255

int kernel_find_stop(const Binding *binding, const ElfFile *elf, uint64_t *ret, char **ret_reason) {
        const char *function = binding->start_site.function ?: binding->start, *why;
        _cleanup_free_ uint8_t *code = NULL;
        uint64_t begin;
        size_t size, offset;
        int r;

        if (!binding_stop_is_return(binding)) {
                *ret = binding->stop_site.offset;
                return 0;
        }
        r = elf_file_read_function(elf, binding->start_site.offset, &code, &size, &begin);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor knows no returns, and no symbol tells "
                                      "where '%s' ends",
                                      function);
        r = function_find_return(code, size, &offset, &why);
        if (r == -EOPNOTSUPP)
                return sentence_error(r, ret_reason,
                                      "The kernel's monitor knows no returns, and '%s' %s",
                                      function, why);
        if (r < 0)
                return r;
        if (begin + offset == binding->start_site.offset)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor knows no returns, and '%s' begins with "
                                      "its own",
                                      function);
        *ret = begin + offset;
        return 0;
}

int kernel_check_budget(uint64_t budget_ns, char **ret_reason) {
        if (budget_ns > KERNEL_THRESHOLD_MAX_NS - 1000 * KERNEL_THRESHOLD_ADD)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor takes budgets up to an hour, less what "
                                      "tells bindings apart");
        return 0;
}

/* Whatever the unit: a thread outside of it takes a slot all the same. */
static int check_threads(const ElfFile *elf, char **ret_reason) {
        KernelFile file;
        unsigned n;
        int r;

        r = kernel_file_from_elf((ElfFile *) elf, &file);
        if (r < 0)
                return r;
        if (kernel_threads_count(&file, 1, KERNEL_SLOTS, NULL, &n) >= 0 && n > KERNEL_SLOTS)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor has room for %i threads, and more than "
                                      "that may run this code now",
                                      KERNEL_SLOTS);
        return 0;
}

int kernel_can(const Binding *binding, const ElfFile *elf, char **ret_reason) {
        uint64_t stop;
        int r;

        r = kernel_check_budget(binding->budget_ns[TLOB_BUDGET_TOTAL], ret_reason);
        if (r < 0)
                return r;
        if (strlen(binding->path) > PATH_LENGTH_MAX || strpbrk(binding->path, " \t\n"))
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor takes paths of up to %i bytes without "
                                      "blanks",
                                      PATH_LENGTH_MAX);
        if (binding->unit && !kernel_tasks_are_visible())
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor knows no units, and tlobd does not see "
                                      "the machine's process ids");
        r = kernel_find_stop(binding, elf, &stop, ret_reason);
        if (r < 0)
                return r;
        return check_threads(elf, ret_reason);
}
