/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a tenant asks for. Nothing of what it says of itself is believed: the cgroup must have been
 * delegated to its user, which is where its units are; the file is what it could open itself; the
 * places in it are found anew; and the programs in the kernel look at each task. What could hang
 * who reads it, or make others pay, is refused.
 */

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/clock.h"
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

Lease *lease_of(const Binding *binding) {
        return binding->lent.lease;
}

void lease_free(Lease *lease) {
        Statistics unused;
        Histogram lengths;

        if (lease->is_measured)
                manager_take_back(lease->tenant->tenants->manager, lease->binding, &unused,
                                  &lengths);
        binding_free(lease->binding);
        safe_close(lease->file_fd);
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

/* What the probes cost includes hits of tasks that are no matter of the user. */
static void put_books(Packet *packet, const Statistics *statistics, const Histogram *lengths) {
        Statistics told = *statistics;

        told.cost_ns = STATISTIC_UNKNOWN;
        wire_put_statistics(packet, &told);
        wire_put_histogram(packet, lengths);
}

/* Where its task is, which the user may not look up by its id. */
void tenant_tell_report(Lease *lease, const Report *report) {
        Packet *packet = &lease->tenant->tenants->packet;
        _cleanup_free_ char *path = NULL;
        Report told = *report;

        if (cgroup_id_get_path(lease->tenant->tenants->cgroup_root, report->cgroup_id, &path) >= 0)
                told.cgroup_path = path;

        packet_init(packet);
        packet_put_number(packet, WIRE_REPORT);
        packet_put_number(packet, lease->id);
        wire_put_report(packet, &told);
        tenant_send(lease->tenant, packet, false);
}

void tenant_tell_gone(Lease *lease, const Statistics *final, const Histogram *lengths,
                      const char *why) {
        Packet *packet = &lease->tenant->tenants->packet;

        packet_init(packet);
        packet_put_number(packet, WIRE_GONE);
        packet_put_number(packet, lease->id);
        put_books(packet, final, lengths);
        packet_put_string(packet, why);
        tenant_send(lease->tenant, packet, true);
        if (why)
                tenant_account(lease->tenant)->evicted_usec = now_usec();
        lease->is_measured = false;
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

/* Is that file system mounted for all, and so by somebody who may mount for all? */
static bool device_is_of_machine(dev_t device) {
        _cleanup_fclose_ FILE *f = fopen("/proc/1/mountinfo", "re");
        _cleanup_free_ char *line = NULL;
        unsigned major_number, minor_number;
        size_t size = 0;

        while (f && getline(&line, &size, f) > 0)
                if (sscanf(line, "%*u %*u %u:%u", &major_number, &minor_number) == 2 &&
                    makedev(major_number, minor_number) == device)
                        return true;
        return false;
}

/*
 * To read in others may take for ever, even for the kernel. An overlay has layers of any kind, and
 * users may make some for themselves; stat() tells its layers, a mapping the overlay itself.
 */
static bool filesystem_answers(int fd) {
        static const long types[] = {
                EXT4_SUPER_MAGIC,     XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                F2FS_SUPER_MAGIC,     TMPFS_MAGIC,     SQUASHFS_MAGIC,
                EROFS_SUPER_MAGIC_V1, 0x2fc12fc1, /* ZFS, which has none in the kernel's headers */
                0xca451a4e,                       /* bcachefs, the same */
        };
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return false;
        if ((long) fs.f_type == OVERLAYFS_SUPER_MAGIC)
                return device_is_of_machine(file_identify_mapping(fd).device);
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if ((long) fs.f_type == types[i])
                        return true;
        return false;
}

/* What the user could read himself. */
static int check_file(const Binding *binding, int fd, char **ret_error) {
        int flags = fcntl(fd, F_GETFL);
        struct stat st;

        if (flags < 0 || (flags & O_PATH) || (flags & O_ACCMODE) == O_WRONLY ||
            fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return sentence_error(-EINVAL, ret_error, "%s is no file that can be read",
                                      binding->lent.file);
        if (!filesystem_answers(fd))
                return sentence_error(
                        -EOPNOTSUPP, ret_error,
                        "%s is on a file system that may not answer (FUSE, a network, "
                        "or an overlay that is not the machine's), where nothing is measured "
                        "for users: copy it to a local one",
                        binding->lent.file);
        return 0;
}

static int check_binding(const Binding *binding, char **ret_error) {
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
        for (size_t i = 0; i < TLOB_N_BUDGETS; i++)
                if (binding_check_budget(binding->budget_ns[i]) < 0)
                        return -ERANGE;
        return binding_check(binding, ret_error);
}

/* What was not said is as if nobody had. */
static int complete(Lease *lease, char **ret_error) {
        const Tenant *tenant = lease->tenant;
        Binding *binding = lease->binding;
        bool runs = binding->cgroup.id != 0;
        int r;

        binding->lent.user = tenant->user;
        binding->lent.holder = getpid();
        binding->lent.file_fd = lease->file_fd;
        binding->lent.lease = lease;
        binding->enabled = true;
        binding->cpu_limit = BINDING_CPU_LIMIT;
        binding->budgets_given = ~0U;
        memcpy(binding->configured_budget_ns, binding->budget_ns, sizeof(binding->budget_ns));
        r = check_binding(binding, ret_error);
        if (r >= 0)
                r = check_file(binding, lease->file_fd, ret_error);
        if (r >= 0)
                r = free_and_strdup(&binding->executable, binding->lent.file);
        return r < 0 ? r : find_cgroup(tenant, binding, runs, ret_error);
}

/* Returns whether there is an answer. */
static bool answer_lend(Lease *lease, Packet *packet) {
        _cleanup_free_ char *error = NULL;
        Tenant *tenant = lease->tenant;
        int r;

        tenant->waiting = NULL;
        lease->question = 0;
        r = manager_lend(tenant->tenants->manager, lease->binding, &lease->question, &error);
        if (r == -EINPROGRESS) {
                tenant->waiting = lease;
                return false;
        }
        tenant_begin_answer(packet, r, error);
        lease->is_measured = r >= 0;
        if (r < 0)
                lease_drop(lease);
        return true;
}

static int check_rest(Tenant *tenant, char **ret_error) {
        const TenantAccount *account = tenant_account(tenant);

        if (account->evicted_usec == 0 || now_usec() - account->evicted_usec > EVICTED_USEC)
                return 0;
        return sentence_error(
                -EBUSY, ret_error,
                "A binding of this user was just given up: try again in some seconds");
}

static bool answer_add(Tenant *tenant, uint64_t id, Packet *packet, int *fd) {
        _cleanup_free_ char *error = NULL;
        Lease *lease = calloc(1, sizeof(*lease));
        int r;

        if (!lease) {
                tenant_begin_answer(packet, -ENOMEM, NULL);
                return true;
        }
        *lease = (Lease){ .next = tenant->leases, .tenant = tenant, .id = id, .file_fd = -EBADF };
        r = *fd < 0 || find_lease(tenant, id) ? -EBADMSG
                                              : wire_take_binding(packet, &lease->binding);
        if (r >= 0 && !packet_is_good(packet))
                r = -EBADMSG;
        if (r < 0) {
                lease_free(lease);
                tenant_begin_answer(packet, r, NULL);
                return true;
        }
        tenant->leases = lease;
        lease->file_fd = TAKE_FD(*fd);
        r = check_rest(tenant, &error);
        if (r >= 0)
                r = complete(lease, &error);
        if (r >= 0)
                return answer_lend(lease, packet);
        lease_drop(lease);
        tenant_begin_answer(packet, r, error);
        return true;
}

static int read_books(const Binding *binding, Statistics *ret, Histogram *lengths) {
        Backend *backend = binding->measurement.backend;
        int r;

        *lengths = (Histogram){};
        r = backend->ops->statistics(backend, binding->measurement.index, ret);
        if (r >= 0 && backend->ops->histogram)
                r = backend->ops->histogram(backend, binding->measurement.index, lengths);
        return r;
}

static void answer_books(const Lease *lease, Packet *packet) {
        const Binding *binding = lease->binding;
        Backend *backend = binding->measurement.backend;
        _cleanup_free_ char *reach = NULL;
        Statistics statistics;
        Histogram lengths;
        int r;

        r = read_books(binding, &statistics, &lengths);
        tenant_begin_answer(packet, r, NULL);
        if (r < 0)
                return;
        if (backend->ops->reach)
                reach = backend->ops->reach(backend, binding->measurement.index);
        put_books(packet, &statistics, &lengths);
        packet_put_string(packet, reach);
}

static void answer_remove(Lease *lease, Packet *packet) {
        Statistics final;
        Histogram lengths;

        manager_take_back(lease->tenant->tenants->manager, lease->binding, &final, &lengths);
        lease->is_measured = false;
        lease_drop(lease);
        tenant_begin_answer(packet, 0, NULL);
        put_books(packet, &final, &lengths);
}

static int set_runs(const Lease *lease, bool runs, char **ret_error) {
        Binding *binding = lease->binding;
        Backend *backend = binding->measurement.backend;
        int r;

        r = find_cgroup(lease->tenant, binding, runs, ret_error);
        return r < 0 ? r
                     : backend->ops->set_cgroup(backend, binding->measurement.index,
                                                binding->cgroup.id, binding->cgroup.level);
}

static int set_budgets(const Lease *lease, const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        Binding *binding = lease->binding;
        Backend *backend = binding->measurement.backend;

        for (size_t i = 0; i < TLOB_N_BUDGETS; i++)
                if (binding_check_budget(budget_ns[i]) < 0)
                        return -ERANGE;
        memcpy(binding->budget_ns, budget_ns, sizeof(binding->budget_ns));
        return backend->ops->set_budget(backend, binding->measurement.index, binding->budget_ns);
}

/* Of a binding that is measured. */
static void answer_of(Lease *lease, WireType type, Packet *packet) {
        Backend *backend = lease->binding->measurement.backend;
        uint64_t words[TLOB_N_BUDGETS] = {};
        _cleanup_free_ char *error = NULL;
        int r = 0;

        for (size_t i = 0; i < (type == WIRE_BUDGETS ? TLOB_N_BUDGETS : type == WIRE_RUNS); i++)
                words[i] = packet_take_number(packet);
        if (!packet_is_good(packet))
                r = -EBADMSG;
        else if (type == WIRE_BOOKS) {
                answer_books(lease, packet);
                return;
        } else if (type == WIRE_REMOVE) {
                answer_remove(lease, packet);
                return;
        } else if (type == WIRE_RUNS)
                r = set_runs(lease, words[0], &error);
        else if (type == WIRE_BUDGETS)
                r = set_budgets(lease, words);
        else if (type == WIRE_RESET)
                r = backend->ops->reset_statistics(backend, lease->binding->measurement.index);
        else
                r = -EBADMSG;
        tenant_begin_answer(packet, r, error);
}

void tenant_answer(Tenant *tenant, Packet *packet, int fd) {
        WireType type = (WireType) packet_take_number(packet);
        uint64_t id = packet_take_number(packet);
        Lease *lease = find_lease(tenant, id);
        _cleanup_close_ int passed = fd;

        if (type == WIRE_ADD) {
                if (!answer_add(tenant, id, packet, &passed))
                        return;
        } else if (lease && lease->is_measured)
                answer_of(lease, type, packet);
        else
                tenant_begin_answer(packet, -ENXIO, NULL);
        tenant_send(tenant, packet, true);
}

void tenant_go_on(Tenant *tenant) {
        Packet *packet = &tenant->tenants->packet;

        if (answer_lend(tenant->waiting, packet))
                tenant_send(tenant, packet, true);
}
