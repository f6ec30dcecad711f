/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a tenant asks for. Nothing of what it says of itself is believed: the cgroup must have been
 * delegated to its user, which is where its units are; the file is what it could open itself; the
 * places in it are found anew; and the programs in the kernel look at each task. What could make
 * others pay is refused.
 */

#include "base/clock.h"
#include "base/program.h"
#include "base/sentence.h"
#include "base/unit-name.h"
#include "cgroup.h"
#include "log.h"
#include "tenant/internal.h"

/* After one was too dear, for so long no other is taken. */
#define EVICTED_USEC UINT64_C(10000000)

static Lease *find_lease(const Tenant *tenant, uint64_t id) {
        for (Lease *lease = tenant->leases; lease; lease = lease->next)
                if (lease->id == id)
                        return lease;
        return NULL;
}

/* NULL: there is none of that number. */
static Binding *find_binding(const Tenant *tenant, uint64_t id) {
        const Lease *lease = find_lease(tenant, id);

        return lease ? lease->binding : NULL;
}

void lease_free(Lease *lease) {
        binding_free(lease->binding);
        free(lease);
}

static void lease_drop(Lease *lease) {
        for (Lease **p = &lease->tenant->leases; *p; p = &(*p)->next)
                if (*p == lease) {
                        *p = lease->next;
                        break;
                }
        lease_free(lease);
}

/* Who else runs on the machine is not for all users to know, nor whom an interrupt came upon. */
static void hide_other(Peer *peer, uid_t user) {
        if (!peer->is_known)
                return;
        if (peer->kind != TLOB_PEER_TASK)
                *peer = (Peer) { .is_known = true, .kind = peer->kind };
        else if (user_of_process(peer->pid) != user)
                *peer = (Peer) {};
}

/* Where its task is, which the user may not look up by its id. */
void lease_report(Lease *lease, const Report *report) {
        Tenant *tenant = lease->tenant;
        const Tenants *tenants = tenant->tenants;
        _cleanup_free_ char *path = NULL;
        Report told = *report;

        if (cgroup_id_get_path(tenants->cgroup_root, report->cgroup_id, &path) >= 0)
                told.cgroup_path = path;
        hide_other(&told.peers.woken_by, tenant->user);
        hide_other(&told.peers.preempted_by, tenant->user);
        if (tenants->handlers->report(lease->id, &told, tenant->n_lost, tenant->userdata))
                tenant->n_lost = 0;
        else
                tenant->n_lost++;
}

/* What the probes cost includes hits of tasks that are no matter of the user. */
static void hide(Statistics *statistics) {
        statistics->cost_ns = STATISTIC_UNKNOWN;
}

void lease_end(Lease *lease, const Statistics *final, const Histogram *lengths, const char *why) {
        Tenant *tenant = lease->tenant;
        bool is_too_dear = !tenant->tenants->is_ending;
        Statistics told = *final;

        hide(&told);
        tenant->tenants->handlers->gone(lease->id, &told, lengths, is_too_dear, why,
                                        tenant->userdata);
        if (is_too_dear) {
                log_notice("'%s' of user %u is not measured any more. %s.", lease->binding->name,
                           tenant->user, why);
                tenant_eviction(tenant)->usec = now_usec();
        }
        lease_drop(lease);
}

/* Where its unit is now: see cgroup_find_delegated(). */
static int find_cgroup(const Tenant *tenant, Binding *binding, bool runs, char **ret_error) {
        uint64_t id;
        unsigned level;
        int r;

        r = cgroup_find_delegated(tenant->tenants->cgroup_root, binding->cgroup.path, tenant->user,
                                  &id, &level);
        if (r == -EPERM || r == -EINVAL)
                return sentence_error(-EACCES, ret_error,
                                      "%s is no cgroup that was delegated to user %u",
                                      binding->cgroup.path, tenant->user);
        if (r < 0)
                return r;
        binding->cgroup.id = runs ? id : 0;
        binding->cgroup.level = level;
        return 0;
}

static int check_budgets(const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        for (size_t i = 0; i < TLOB_N_BUDGETS; i++)
                if (binding_check_budget(budget_ns[i]) < 0)
                        return -ERANGE;
        return 0;
}

static int check_binding(const Binding *binding, char **ret_error) {
        int r;

        if (!binding->unit || !binding->cgroup.path || !binding->lent.file ||
            unit_name_is_template(binding->unit))
                return sentence_error(-EINVAL, ret_error,
                                      "'%s' is for no unit of the user: write Unit= with one, or "
                                      "the section into the files of a unit",
                                      binding->name);
        if (!binding_has_file(binding))
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "System calls and events of the kernel are not measured for "
                                      "users: all others would pay for that");
        r = check_budgets(binding->budget_ns);
        return r < 0 ? r : binding_check(binding, ret_error);
}

/* What was not said is as if nobody had. */
static int complete(const Tenant *tenant, Binding *binding, int fd, char **ret_error) {
        bool runs = binding->cgroup.id != 0;
        int r;

        binding->lent.user = tenant->user;
        binding->lent.holder = tenant->pid;
        binding->lent.file_fd = fd;
        binding->enabled = true;
        binding->cpu_limit = BINDING_CPU_LIMIT;
        binding->budgets_given = ~0U;
        memcpy(binding->configured_budget_ns, binding->budget_ns, sizeof(binding->budget_ns));
        r = check_binding(binding, ret_error);
        if (r >= 0)
                r = free_and_strdup(&binding->executable, binding->lent.file);
        return r < 0 ? r : find_cgroup(tenant, binding, runs, ret_error);
}

static int check_rest(Tenant *tenant, char **ret_error) {
        const TenantEviction *eviction = tenant_eviction(tenant);

        if (eviction->usec == 0 || now_usec() - eviction->usec > EVICTED_USEC)
                return 0;
        return sentence_error(
                -EBUSY, ret_error,
                "A binding of this user was just given up: try again in some seconds");
}

int tenant_lend(Tenant *tenant, uint64_t id, Binding *binding, int fd, unsigned *ret_question,
                char **ret_error) {
        _cleanup_(binding_freep) Binding *wanted = binding;
        Lease *lease;
        int r;

        if (find_lease(tenant, id))
                return -EEXIST;
        r = check_rest(tenant, ret_error);
        if (r >= 0)
                r = complete(tenant, wanted, fd, ret_error);
        if (r < 0)
                return r;
        lease = malloc(sizeof(*lease));
        if (!lease)
                return -ENOMEM;
        *lease = (Lease) { .next = tenant->leases, .tenant = tenant, .id = id };
        lease->binding = TAKE_PTR(wanted);
        lease->binding->lent.lease = lease;
        r = manager_lend(tenant->tenants->manager, lease->binding, ret_question, ret_error);
        if (r < 0) {
                lease_free(lease);
                return r;
        }
        tenant->leases = lease;
        return 0;
}

int tenant_take_back(Tenant *tenant, uint64_t id, Statistics *ret_final, Histogram *ret_lengths) {
        Lease *lease = find_lease(tenant, id);

        if (!lease)
                return -ENXIO;
        manager_take_back(tenant->tenants->manager, lease->binding, ret_final, ret_lengths);
        hide(ret_final);
        lease_drop(lease);
        return 0;
}

int tenant_set_running(Tenant *tenant, uint64_t id, bool runs, char **ret_error) {
        Binding *binding = find_binding(tenant, id);
        Backend *backend;
        int r;

        if (!binding)
                return -ENXIO;
        r = find_cgroup(tenant, binding, runs, ret_error);
        if (r < 0)
                return r;
        backend = binding->measurement.backend;
        return backend->ops->set_cgroup(backend, binding->measurement.index, binding->cgroup.id,
                                        binding->cgroup.level);
}

int tenant_set_budgets(Tenant *tenant, uint64_t id,
                       const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        Binding *binding = find_binding(tenant, id);
        Backend *backend;
        int r;

        if (!binding)
                return -ENXIO;
        r = check_budgets(budget_ns);
        if (r < 0)
                return r;
        memcpy(binding->budget_ns, budget_ns, sizeof(binding->budget_ns));
        backend = binding->measurement.backend;
        return backend->ops->set_budget(backend, binding->measurement.index, binding->budget_ns);
}

int tenant_get_books(Tenant *tenant, uint64_t id, Statistics *ret, Histogram *ret_lengths,
                     char **ret_reach) {
        const Binding *binding = find_binding(tenant, id);
        Backend *backend;
        uint32_t index;
        int r;

        if (!binding)
                return -ENXIO;
        backend = binding->measurement.backend;
        index = binding->measurement.index;
        *ret_lengths = (Histogram) {};
        r = backend->ops->statistics(backend, index, ret);
        if (r >= 0 && backend->ops->histogram)
                r = backend->ops->histogram(backend, index, ret_lengths);
        if (r < 0)
                return r;
        hide(ret);
        *ret_reach = backend->ops->reach ? backend->ops->reach(backend, index) : NULL;
        return 0;
}

int tenant_reset(Tenant *tenant, uint64_t id) {
        const Binding *binding = find_binding(tenant, id);
        Backend *backend;

        if (!binding)
                return -ENXIO;
        backend = binding->measurement.backend;
        return backend->ops->reset_statistics(backend, binding->measurement.index);
}
