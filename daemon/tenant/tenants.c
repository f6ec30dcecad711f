/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Who has something measured here: one tlobd of each user, and so many users. */

#include "tenant/tenants.h"

#include "base/sentence.h"
#include "cgroup.h"
#include "tenant/internal.h"

static void tenant_unlink(Tenant *tenant) {
        for (Tenant **p = &tenant->tenants->first; *p; p = &(*p)->next)
                if (*p == tenant) {
                        *p = tenant->next;
                        tenant->tenants->n--;
                        return;
                }
}

Tenant *tenant_free(Tenant *tenant) {
        if (!tenant)
                return NULL;

        while (tenant->leases) {
                Lease *lease = tenant->leases;
                Statistics unused;
                Histogram lengths;

                tenant->leases = lease->next;
                manager_take_back(tenant->tenants->manager, lease->binding, &unused, &lengths);
                lease_free(lease);
        }
        tenant_unlink(tenant);
        free(tenant);
        return NULL;
}

int tenant_new(Tenants *tenants, uid_t user, pid_t pid, void *userdata, Tenant **ret,
               char **ret_error) {
        Tenant *tenant;

        /* And 0 means nobody, here. */
        if (user == 0)
                return sentence_error(-EPERM, ret_error,
                                      "What root has is measured by the system's tlobd itself");
        for (const Tenant *t = tenants->first; t; t = t->next)
                if (t->user == user)
                        return sentence_error(-EBUSY, ret_error,
                                              "Another tlobd of user %u has bindings here", user);
        if (tenants->n >= TENANTS_MAX)
                return sentence_error(-EDQUOT, ret_error,
                                      "The tlobd of %i users have bindings here already",
                                      TENANTS_MAX);
        tenant = malloc(sizeof(*tenant));
        if (!tenant)
                return -ENOMEM;
        *tenant = (Tenant) {
                .next = tenants->first,
                .tenants = tenants,
                .user = user,
                .pid = pid,
                .userdata = userdata,
        };
        tenants->first = tenant;
        tenants->n++;
        *ret = tenant;
        return 0;
}

/* Else the one that was longest ago is his now. */
TenantEviction *tenant_eviction(Tenant *tenant) {
        TenantEviction *evictions = tenant->tenants->evictions, *oldest = &evictions[0];

        for (size_t i = 0; i < TENANTS_MAX; i++) {
                if (evictions[i].user == tenant->user)
                        return &evictions[i];
                if (evictions[i].usec < oldest->usec)
                        oldest = &evictions[i];
        }
        *oldest = (TenantEviction) { .user = tenant->user };
        return oldest;
}

static void on_report(Binding *binding, const Report *report, void *userdata) {
        if (report->type != REPORT_INSTANCE)
                lease_report(binding->lent.lease, report);
}

static void on_gone(Binding *binding, const Statistics *final, const Histogram *lengths,
                    const char *why, void *userdata) {
        lease_end(binding->lent.lease, final, lengths, why);
}

/* It is told as what was given up. */
static void evict_all(Tenants *tenants, const char *why) {
        tenants->is_ending = true;
        for (const Tenant *t = tenants->first; t; t = t->next)
                while (t->leases)
                        manager_evict_lent(tenants->manager, t->leases->binding, why);
        tenants->is_ending = false;
}

static void on_configured(bool any, void *userdata) {
        if (!any)
                evict_all(userdata, "The system's tlobd does not measure for users any more "
                                    "(UserInstanceBindingsMax= in tlobd.conf)");
}

static const LentHandlers handlers_of_manager = {
        .report = on_report,
        .gone = on_gone,
        .configured = on_configured,
};

int tenants_new(Manager *manager, const TenantHandlers *handlers, Tenants **ret) {
        Tenants *tenants = calloc(1, sizeof(*tenants));

        if (!tenants)
                return -ENOMEM;
        tenants->manager = manager;
        tenants->handlers = handlers;
        tenants->cgroup_root = cgroup_open_root();
        manager_handle_lent(manager, &handlers_of_manager, tenants);
        *ret = tenants;
        return 0;
}

Tenants *tenants_free(Tenants *tenants) {
        if (!tenants)
                return NULL;

        evict_all(tenants, NULL);
        while (tenants->first)
                tenant_free(tenants->first);
        manager_handle_lent(tenants->manager, NULL, NULL);
        safe_close(tenants->cgroup_root);
        free(tenants);
        return NULL;
}
