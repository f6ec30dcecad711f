/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Syscall=: a window is a system call of the unit's tasks, from where the kernel begins it to where
 * the kernel is done with it. No program is looked into, and none is touched, so that everything
 * that is known of files is left empty: there is no path, and the offset of the start is the number
 * of the call.
 */

#include "binding/call.h"

#include "base/sentence.h"
#include "base/system-call.h"

int place_check_call(const char *key, const char *value, const char *call, char **ret_error) {
        _cleanup_free_ char *why = NULL;
        uint32_t number;
        int r;

        r = system_call_find(call, &number, &why);
        if (r < 0 && why)
                return sentence_error(-EINVAL, ret_error, "%s=%s is not possible: '%s' %s", key,
                                      value, call, why);
        return r;
}

int binding_resolve_call(Binding *binding, BindingFile **ret_file, char **ret_error) {
        _cleanup_(binding_file_freep) BindingFile *file = binding_file_new();
        const char *call = system_call_of_place(binding->start);
        _cleanup_free_ char *why = NULL;
        uint32_t number;
        int r;

        if (!file)
                return -ENOMEM;
        r = system_call_find(call, &number, &why);
        if (r < 0)
                return why ? sentence_error(r, ret_error, "'%s' %s", call, why) : r;
        binding->resolved.sites.start.offset = number;
        binding->resolved.sites.how = TLOB_STOP_CALL;
        *ret_file = TAKE_PTR(file);
        return 0;
}

char *binding_describe_call_cost(const Binding *binding) {
        return sentence_make("While this binding is set, every system call on this machine takes "
                             "0.2 to 0.4 us longer, and each %s() 0.1 to 0.3 us more than that",
                             system_call_of_place(binding->start));
}
