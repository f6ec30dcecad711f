/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TENANT_TENANTS_H
#define TENANT_TENANTS_H

#include <sys/types.h>

#include "base/cleanup.h"
#include "manager/manager.h"

/*
 * The tlobd of users, as far as the system's one measures for them. Who may is decided before (on
 * the bus, by polkit), what by the kernel: a cgroup that was delegated to the user, a file that he
 * has opened, and processes that he could look into himself. How they talk to this one is no matter
 * here.
 */

typedef struct Tenants Tenants;
typedef struct Tenant Tenant;

/* What a tenant is told; its userdata is what tenant_new() was given. */
typedef struct TenantHandlers {
        /* lost: so many before it were. Returns whether it gets there: if not, it is lost. */
        bool (*report)(uint64_t id, const Report *report, uint64_t lost, void *userdata);

        /*
         * That binding is measured no longer; what was counted, and why: a sentence, or NULL if the
         * daemon ends. for_good: it is not to be asked for again by itself.
         */
        void (*gone)(uint64_t id, const Statistics *final, const Histogram *lengths, bool for_good,
                     const char *why, void *userdata);
} TenantHandlers;

/* The manager must outlive the tenants. Returns 0 or -ENOMEM. */
int tenants_new(Manager *manager, const TenantHandlers *handlers, Tenants **ret);

/* Tells each what was counted for it, and that this is the end. */
Tenants *tenants_free(Tenants *tenants);
DEFINE_CLEANUP(Tenants, tenants_free);

/*
 * pid: of a process of that user, whose files are meant. Returns 0, or a negative errno with a
 * sentence: -EBUSY if the user has another one.
 */
int tenant_new(Tenants *tenants, uid_t user, pid_t pid, void *userdata, Tenant **ret,
               char **ret_error);

/* All that it has ends without a word. */
Tenant *tenant_free(Tenant *tenant);
DEFINE_CLEANUP(Tenant, tenant_free);

/*
 * Its bindings, which it has given numbers. All return 0 or a negative errno, some with a sentence;
 * -ENXIO: there is none of that number.
 */

/*
 * Measures one. binding: as the tenant says it is, so nothing of it is believed; taken over, also
 * on failure. fd: the number of its file in the tenant's process. -EINPROGRESS: its file is being
 * looked at; to be called again when the manager's observer hears of *ret_question.
 */
int tenant_lend(Tenant *tenant, uint64_t id, Binding *binding, int fd, unsigned *ret_question,
                char **ret_error);
int tenant_take_back(Tenant *tenant, uint64_t id, Statistics *ret_final, Histogram *ret_lengths);

/* Its unit has a cgroup now, or has not. */
int tenant_set_running(Tenant *tenant, uint64_t id, bool runs, char **ret_error);
int tenant_set_budgets(Tenant *tenant, uint64_t id,
                       const uint64_t budget_ns[static TLOB_N_BUDGETS]);

/* *ret_reach: as BackendOps.reach(), or NULL; the caller's. */
int tenant_get_books(Tenant *tenant, uint64_t id, Statistics *ret, Histogram *ret_lengths,
                     char **ret_reach);
int tenant_reset(Tenant *tenant, uint64_t id);

#endif
