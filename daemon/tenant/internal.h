/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TENANT_INTERNAL_H
#define TENANT_INTERNAL_H

#include <sys/types.h>

#include "backend/wire.h"
#include "manager/lent.h"
#include "tenant/tenants.h"

/* What the files of this room share. */

/* A binding that a tenant has here. */
typedef struct Lease {
        struct Lease *next;
        struct Tenant *tenant;
        uint64_t id;       /* as the tenant calls it */
        Binding *binding;  /* owned */
        int file_fd;       /* owned: what the binding refers to */
        unsigned question; /* about its file, that is not answered yet */
        bool is_measured;
} Lease;

#define TENANTS_MAX 64

/* What a user has used up, by all connections. */
typedef struct TenantAccount {
        uid_t user; /* 0: nobody's */
        uint64_t rests_until_usec;
        uint64_t evicted_usec; /* when one of the bindings was; 0: none was */
} TenantAccount;

typedef enum TenantState {
        TENANT_IS_NEW,   /* it has said nothing yet */
        TENANT_IS_ASKED, /* polkit is asked about it */
        TENANT_IS_KNOWN, /* it may have bindings here */
        TENANT_IS_GONE,  /* without a connection, while a file is being looked at for it */
} TenantState;

typedef struct Tenant {
        struct Tenant *next;
        Tenants *tenants;
        TenantState state;
        uid_t user;
        pid_t pid; /* of the process that has connected */
        int fd;
        sd_event_source *source;
        sd_event_source *rest; /* pending while it is not listened to */
        sd_bus_slot *asking;   /* polkit */
        Lease *leases;
        Lease *waiting; /* whose file is being looked at; nothing else is answered meanwhile */
        uint64_t n_lost;
} Tenant;

struct Tenants {
        Manager *manager;
        sd_bus *asking;
        int fd;
        char *path;
        sd_event_source *source;
        int cgroup_root;
        Tenant *first;
        size_t n;
        TenantAccount accounts[TENANTS_MAX];
        bool has_complained; /* that polkit does not answer */
        Packet packet;
};

/* tenant/authority.c: asks polkit, and tenant_decided() is called later; or a negative errno. */
int tenant_ask(Tenant *tenant);

/* tenant/request.c: does what a packet asks, and answers. fd: that came with it, the callee's. */
void tenant_answer(Tenant *tenant, Packet *packet, int fd);

/* It was being looked at. */
void tenant_go_on(Tenant *tenant);

Lease *lease_of(const Binding *binding);
void lease_free(Lease *lease);

/* Of a lease that is measured no longer. */
void tenant_tell_gone(Lease *lease, const Statistics *final, const Histogram *lengths,
                      const char *why);
void tenant_tell_report(Lease *lease, const Report *report);

/* tenant/tenants.c: that of a user, until others have been there more lately. */
TenantAccount *tenant_account(Tenant *tenant);

/* polkit has answered. */
void tenant_decided(Tenant *tenant, bool may);

/* Answers, with a sentence if error is not 0; what is behind it is for the caller to put. */
void tenant_begin_answer(Packet *packet, int error, const char *sentence);

/* It does not matter whether that fails: who does not read has gone, or loses it. */
void tenant_send(Tenant *tenant, const Packet *packet, bool is_answer);

#endif
