/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The socket, and who is connected: one tlobd of each user, and so many users. Anybody can connect,
 * so nobody is waited for, nothing is kept for who does not read, and a packet that is wrong in any
 * way ends its connection. A tenant may keep the daemon busy for a quarter of the time.
 */

#include "tenant/tenants.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "cgroup.h"
#include "log.h"
#include "tenant/internal.h"
#include "tlob-bus.h"

#define TENANTS_MAX 64
#define BACKLOG     64

#define REST_TIMES    3      /* as long as its last question has taken */
#define REST_MIN_USEC 1000   /* shorter ones are saved up */
#define REST_MAX_USEC 500000 /* where programs had to be loaded, say */

static void tenant_unlink(Tenant *tenant) {
        for (Tenant **p = &tenant->tenants->first; *p; p = &(*p)->next)
                if (*p == tenant) {
                        *p = tenant->next;
                        tenant->tenants->n--;
                        return;
                }
}

static void tenant_free(Tenant *tenant) {
        tenant->waiting = NULL;
        while (tenant->leases) {
                Lease *lease = tenant->leases;

                tenant->leases = lease->next;
                lease_free(lease);
        }
        tenant_unlink(tenant);
        sd_bus_slot_unref(tenant->asking);
        sd_event_source_disable_unref(tenant->rest);
        sd_event_source_disable_unref(tenant->source);
        safe_close(tenant->fd);
        free(tenant);
}

/* Reports that had no room, when the tenant is there to read. */
static void tell_lost(Tenant *tenant) {
        Packet *packet = &tenant->tenants->packet;

        packet_init(packet);
        packet_put_number(packet, WIRE_LOST);
        packet_put_number(packet, tenant->n_lost);
        if (packet_send(tenant->fd, packet, -EBADF) >= 0)
                tenant->n_lost = 0;
}

void tenant_send(Tenant *tenant, const Packet *packet, bool is_answer) {
        if (packet_send(tenant->fd, packet, -EBADF) >= 0)
                return;
        if (is_answer)
                (void) shutdown(tenant->fd, SHUT_RDWR);
        else
                tenant->n_lost++;
}

void tenant_begin_answer(Packet *packet, int error, const char *sentence) {
        packet_init(packet);
        packet_put_number(packet, WIRE_ANSWER);
        packet_put_number(packet, (uint64_t) -error);
        packet_put_string(packet, error < 0 ? sentence ?: strerror(-error) : NULL);
}

static void refuse(Tenant *tenant, int error, const char *sentence) {
        Packet *packet = &tenant->tenants->packet;

        tenant_begin_answer(packet, error, sentence);
        tenant_send(tenant, packet, true);
        (void) shutdown(tenant->fd, SHUT_RDWR);
}

void tenant_decided(Tenant *tenant, bool may) {
        Packet *packet = &tenant->tenants->packet;

        if (!may) {
                tenant->state = TENANT_IS_NEW;
                refuse(tenant, -EACCES,
                       "Access denied: this requires permission from polkit "
                       "for " TLOB_ACTION_MEASURE_OWN_UNITS);
                return;
        }
        tenant->state = TENANT_IS_KNOWN;
        log_debug("The tlobd of user %u has bindings measured here.", tenant->user);
        tenant_begin_answer(packet, 0, NULL);
        tenant_send(tenant, packet, true);
}

static bool has_hung_up(const Tenant *tenant) {
        struct pollfd poll_fd = { .fd = tenant->fd };

        return tenant->state != TENANT_IS_GONE && poll(&poll_fd, 1, 0) > 0;
}

/* One that has hung up need not have been heard of yet: it may be resting. */
static bool has_other(const Tenant *tenant) {
        for (Tenant *t = tenant->tenants->first, *next; t; t = next) {
                next = t->next;
                if (t == tenant || t->user != tenant->user || t->state == TENANT_IS_NEW)
                        continue;
                if (!has_hung_up(t) || t->waiting)
                        return true;
                tenant_free(t);
        }
        return false;
}

static void welcome(Tenant *tenant, Packet *packet) {
        uint64_t type = packet_take_number(packet), version = packet_take_number(packet);
        int r;

        if (type != WIRE_HELLO || packet->failed)
                refuse(tenant, -EBADMSG, NULL);
        else if (version != WIRE_VERSION)
                refuse(tenant, -EPROTO,
                       "The system's tlobd is of another version: run 'systemctl --user restart "
                       "tlobd'");
        else if (has_other(tenant))
                refuse(tenant, -EBUSY, "Another tlobd of this user is connected");
        else {
                tenant->state = TENANT_IS_ASKED;
                r = tenant_ask(tenant);
                if (r < 0)
                        tenant_decided(tenant, false);
        }
}

/*
 * Its user has no other one as long as a file is being looked at for it: nobody is to keep all who
 * read files busy.
 */
static void tenant_leave(Tenant *tenant) {
        if (!tenant->waiting) {
                tenant_free(tenant);
                return;
        }
        tenant->state = TENANT_IS_GONE;
        tenant->rest = sd_event_source_disable_unref(tenant->rest);
        tenant->source = sd_event_source_disable_unref(tenant->source);
        tenant->fd = safe_close(tenant->fd);
}

static int on_rested(sd_event_source *source, uint64_t usec, void *userdata) {
        Tenant *tenant = userdata;

        tenant->rest = sd_event_source_disable_unref(tenant->rest);
        return sd_event_source_set_enabled(tenant->source, SD_EVENT_ON);
}

/* It has kept the daemon busy for so long: others have their turn now. */
static void rest(Tenant *tenant, uint64_t busy_usec) {
        uint64_t usec;

        tenant->busy_usec += busy_usec;
        usec = tenant->busy_usec * REST_TIMES;
        if (usec < REST_MIN_USEC)
                return;
        tenant->busy_usec = 0;
        if (sd_event_add_time_relative(manager_get_event(tenant->tenants->manager), &tenant->rest,
                                       CLOCK_MONOTONIC, usec < REST_MAX_USEC ? usec : REST_MAX_USEC,
                                       0, on_rested, tenant) >= 0)
                (void) sd_event_source_set_enabled(tenant->source, SD_EVENT_OFF);
}

static int on_packet(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Tenant *tenant = userdata;
        Packet *packet = &tenant->tenants->packet;
        _cleanup_close_ int passed = -EBADF;
        int r;

        if (tenant->n_lost > 0)
                tell_lost(tenant);
        r = packet_receive(fd, packet, &passed);
        if (r == -EAGAIN || r == -EINTR)
                return 0;
        if (r > 0 && !packet->failed && tenant->state == TENANT_IS_NEW && passed < 0) {
                welcome(tenant, packet);
                return 0;
        }
        /* Who asks before he is answered does not keep to the rules. */
        if (r > 0 && !packet->failed && tenant->state == TENANT_IS_KNOWN && !tenant->waiting) {
                uint64_t begin = now_usec();

                tenant_answer(tenant, packet, TAKE_FD(passed));
                rest(tenant, now_usec() - begin);
                return 0;
        }
        tenant_leave(tenant);
        return 0;
}

/* fd: taken over, also on failure. */
static int tenant_new(Tenants *tenants, int fd) {
        _cleanup_close_ int connection = fd;
        struct ucred peer;
        socklen_t size = sizeof(peer);
        Tenant *tenant;
        int r;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return -errno;
        /* What root has is measured without this; and 0 means nobody, here. */
        if (peer.uid == 0 || peer.pid <= 0 || tenants->n >= TENANTS_MAX)
                return -EACCES;
        tenant = calloc(1, sizeof(*tenant));
        if (!tenant)
                return -ENOMEM;
        *tenant = (Tenant){
                .next = tenants->first,
                .tenants = tenants,
                .user = peer.uid,
                .pid = peer.pid,
                .fd = TAKE_FD(connection),
        };
        tenants->first = tenant;
        tenants->n++;
        r = sd_event_add_io(manager_get_event(tenants->manager), &tenant->source, tenant->fd,
                            EPOLLIN, on_packet, tenant);
        if (r < 0)
                tenant_free(tenant);
        return r;
}

/* Those who have said nothing make room for others. */
static void drop_silent(Tenants *tenants) {
        Tenant *last = NULL;

        for (Tenant *t = tenants->first; t; t = t->next)
                if (t->state == TENANT_IS_NEW)
                        last = t;
        if (last && tenants->n >= TENANTS_MAX)
                tenant_free(last);
}

static int on_connection(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        struct sockaddr_un unnamed;
        socklen_t size = sizeof(unnamed);
        Tenants *tenants = userdata;
        int connection;

        connection = accept4(fd, (struct sockaddr *) &unnamed, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (connection < 0)
                return 0;
        drop_silent(tenants);
        (void) tenant_new(tenants, connection);
        return 0;
}

static void on_report(Binding *binding, const Report *report, void *userdata) {
        if (report->type != REPORT_INSTANCE)
                tenant_tell_report(lease_of(binding), report);
}

static void on_gone(Binding *binding, const Statistics *final, const Histogram *lengths,
                    const char *why, void *userdata) {
        tenant_tell_gone(lease_of(binding), final, lengths, why);
}

static void on_file(unsigned question, void *userdata) {
        Tenants *tenants = userdata;

        for (Tenant *t = tenants->first, *next; t; t = next) {
                next = t->next;
                if (!t->waiting || t->waiting->question != question)
                        continue;
                if (t->state == TENANT_IS_GONE)
                        tenant_free(t);
                else
                        tenant_go_on(t);
        }
}

static const LentHandlers handlers = {
        .report = on_report,
        .gone = on_gone,
        .file_known = on_file,
};

/* Where systemd has not made it. */
static void make_directory(const char *path) {
        _cleanup_free_ char *directory = strndup(path, (size_t) (strrchr(path, '/') - path));

        if (directory)
                (void) mkdir(directory, 0755);
}

/* Everybody may connect, whatever the umask. */
static int listen_at(const char *path, int *ret) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = -EBADF;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        memcpy(address.sun_path, path, strlen(path));
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        make_directory(path);
        (void) unlink(path);
        if (bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
            chmod(path, 0666) < 0 || listen(fd, BACKLOG) < 0)
                return -errno;
        *ret = TAKE_FD(fd);
        return 0;
}

int tenants_new(Manager *manager, sd_bus *asking, const char *path, Tenants **ret) {
        _cleanup_(tenants_freep) Tenants *tenants = NULL;
        int r;

        tenants = calloc(1, sizeof(*tenants));
        if (!tenants)
                return -ENOMEM;
        tenants->manager = manager;
        tenants->asking = sd_bus_ref(asking);
        tenants->fd = -EBADF;
        tenants->cgroup_root = cgroup_open_root();
        tenants->path = strdup(path);
        if (!tenants->path)
                return -ENOMEM;
        r = listen_at(path, &tenants->fd);
        if (r >= 0)
                r = sd_event_add_io(manager_get_event(manager), &tenants->source, tenants->fd,
                                    EPOLLIN, on_connection, tenants);
        if (r < 0)
                return r;
        manager_handle_lent(manager, &handlers, tenants);
        *ret = TAKE_PTR(tenants);
        return 0;
}

/* What ends now is told as what was evicted. */
static void evict_all(Tenants *tenants) {
        for (const Tenant *t = tenants->first; t; t = t->next)
                for (Lease *lease = t->leases, *next; lease; lease = next) {
                        next = lease->next;
                        if (lease->is_measured)
                                manager_evict_lent(tenants->manager, lease->binding, NULL);
                }
}

Tenants *tenants_free(Tenants *tenants) {
        if (!tenants)
                return NULL;

        if (tenants->fd >= 0)
                (void) unlink(tenants->path);
        evict_all(tenants);
        while (tenants->first)
                tenant_free(tenants->first);
        manager_handle_lent(tenants->manager, NULL, NULL);
        sd_event_source_disable_unref(tenants->source);
        safe_close(tenants->fd);
        safe_close(tenants->cgroup_root);
        sd_bus_unref(tenants->asking);
        free(tenants->path);
        free(tenants);
        return NULL;
}
