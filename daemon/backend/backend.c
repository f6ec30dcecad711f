/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which back ends this build has, and whether one can express a binding. The only place that knows
 * what was compiled in: everyone else works with the ops that they are given.
 */

#include "backend/backend.h"

#include "backend-options.h"

const BackendOps *const backends[] = {
#if HAVE_KERNEL_MONITOR
        &backend_kernel_ops,
#endif
#if HAVE_BPF
        &backend_bpf_ops,
#endif
        NULL,
};

const BackendOps *const user_backends[] = {
        &backend_delegate_ops,
        NULL,
};

unsigned backend_needs(const Binding *binding) {
        unsigned needs = 0;

        if (binding_has_events(binding))
                needs |= BACKEND_CAN_EVENT;
        else if (!binding_has_file(binding))
                needs |= BACKEND_CAN_CALL;
        else if (binding_stop_is_return(binding))
                needs |= BACKEND_CAN_RETURN;
        if (binding_has_usdt(binding))
                needs |= BACKEND_CAN_USDT;
        if (binding->budget_ns[TLOB_BUDGET_TOTAL] == BUDGET_NONE)
                needs |= BACKEND_CAN_INFINITE;
        if (binding_has_state_budget(binding))
                needs |= BACKEND_CAN_STATE_BUDGET;
        if (binding->budget_ns[TLOB_BUDGET_MINIMUM] != BUDGET_NONE)
                needs |= BACKEND_CAN_MINIMUM;
        if (binding->key.number > 0 || binding->resolved.sites.key)
                needs |= BACKEND_CAN_KEY;
        if (binding->unit)
                needs |= BACKEND_CAN_CONFINE;
        if (binding->spare)
                needs |= BACKEND_CAN_AWAIT;
        if (binding->tolerance.allowed > 0)
                needs |= BACKEND_CAN_COUNT;
        if (binding->lent.user)
                needs |= BACKEND_CAN_LEND;
        return needs;
}

const char *backend_lacks(const BackendOps *ops, unsigned needs) {
        unsigned lacks = needs & ~ops->capabilities;

        if (lacks & BACKEND_CAN_CALL)
                return "measure system calls";
        if (lacks & BACKEND_CAN_EVENT)
                return "measure between events of the kernel";
        if (lacks & BACKEND_CAN_USDT)
                return "measure between USDT probes";
        if (lacks & BACKEND_CAN_KEY)
                return "tell windows apart by a key";
        if (lacks & BACKEND_CAN_RETURN)
                return "stop at a return";
        if (lacks & BACKEND_CAN_STATE_BUDGET)
                return "limit the time in one state";
        if (lacks & BACKEND_CAN_MINIMUM)
                return "find windows that are too short";
        if (lacks & BACKEND_CAN_INFINITE)
                return "measure without a budget";
        if (lacks & BACKEND_CAN_COUNT)
                return "count windows, as Tolerance= needs it";
        if (lacks & BACKEND_CAN_LEND)
                return "measure for users";
        if (lacks & BACKEND_CAN_CONFINE)
                return "confine a binding to a unit";
        if (lacks & BACKEND_CAN_AWAIT)
                return "wait for an instance that is not known yet";
        return NULL;
}
