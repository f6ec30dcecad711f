/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TENANT_INTERNAL_H
#define TENANT_INTERNAL_H

#include "manager/lent.h"
#include "tenant/tenants.h"

/* What the files of this room share. */

/* A binding that a tenant has here. */
typedef struct Lease {
        struct Lease *next;
        Tenant *tenant;
        uint64_t id;      /* as the tenant calls it */
        Binding *binding; /* owned */
} Lease;

#define TENANTS_MAX 64

/* A user for whom something was too dear lately. */
typedef struct TenantEviction {
        uid_t user;
        uint64_t usec; /* when; 0: never */
} TenantEviction;

struct Tenant {
        Tenant *next;
        Tenants *tenants;
        uid_t user;
        pid_t pid;
        void *userdata;
        Lease *leases;
        uint64_t n_lost;
};

struct Tenants {
        Manager *manager;
        const TenantHandlers *handlers;
        int cgroup_root;
        Tenant *first;
        size_t n;
        bool is_ending; /* what is given up now was not too dear */
        TenantEviction evictions[TENANTS_MAX];
};

/* tenant/tenants.c: that of the user, until others have been there more lately. */
TenantEviction *tenant_eviction(Tenant *tenant);

/* tenant/lease.c */
void lease_free(Lease *lease);

/* Of one that is measured no longer. */
void lease_end(Lease *lease, const Statistics *final, const Histogram *lengths, const char *why);
void lease_report(Lease *lease, const Report *report);

#endif
