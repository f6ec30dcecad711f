/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The socket, and who is connected: one tlobd of each user, and so many users. Anybody can connect,
 * so nobody is waited for, nothing is kept for who does not read, and a packet that is wrong in any
 * way ends its connection. A tenant may keep the daemon busy for a quarter of the time.
 */

#include "tenant/tenants.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/io.h"
#include "cgroup.h"
#include "log.h"
#include "tenant/internal.h"
#include "tlob-bus.h"

#define BACKLOG          64
#define REPORTS_SIZE_MAX 65536 /* bytes that wait to be read, as the kernel counts */

#define CONNECTION_USEC 2000    /* what one takes, with polkit and the bus */
#define REST_TIMES      3       /* as long as a user has kept us busy */
#define REST_FREE_USEC  500000  /* so far he is let go on */
#define REST_MAX_USEC   5000000 /* where programs had to be loaded, say */

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

/* To close a file that somebody else has sent may take for ever. */
static void accept_files(int fd, bool yes) {
        (void) setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){ yes }, sizeof(int));
}

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

/* Reports leave room for an answer, so that who is slow to read them is still answered. */
static bool has_room_for_report(int fd) {
        int n;

        return ioctl(fd, SIOCOUTQ, &n) < 0 || n < REPORTS_SIZE_MAX;
}

void tenant_send(Tenant *tenant, const Packet *packet, bool is_answer) {
        if ((is_answer || has_room_for_report(tenant->fd)) &&
            packet_send(tenant->fd, packet, -EBADF) >= 0)
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
        accept_files(tenant->fd, true);
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

/* Nothing of it is read before that. */
static void rest_until(Tenant *tenant, uint64_t usec) {
        if (!tenant->rest &&
            sd_event_add_time(manager_get_event(tenant->tenants->manager), &tenant->rest,
                              CLOCK_MONOTONIC, usec, 0, on_rested, tenant) >= 0)
                (void) sd_event_source_set_enabled(tenant->source, SD_EVENT_OFF);
}

/* Its user has kept the daemon busy for so long: others have their turn now. */
static void charge(TenantAccount *account, uint64_t busy_usec) {
        uint64_t now = now_usec(), from = account->rests_until_usec;

        if (from < now)
                from = now;
        account->rests_until_usec = from + busy_usec * REST_TIMES;
        if (account->rests_until_usec > now + REST_MAX_USEC)
                account->rests_until_usec = now + REST_MAX_USEC;
}

/* That of the user; else the one that was in use last before all others is his now. */
static TenantAccount *find_account(Tenants *tenants, uid_t user) {
        TenantAccount *oldest = &tenants->accounts[0];

        for (size_t i = 0; i < TENANTS_MAX; i++) {
                TenantAccount *account = &tenants->accounts[i];

                if (account->user == user)
                        return account;
                if (account->rests_until_usec < oldest->rests_until_usec)
                        oldest = account;
        }
        *oldest = (TenantAccount){ .user = user };
        return oldest;
}

TenantAccount *tenant_account(Tenant *tenant) {
        return find_account(tenant->tenants, tenant->user);
}

/* Returns whether it is still there. */
static bool take_packet(Tenant *tenant) {
        Packet *packet = &tenant->tenants->packet;
        _cleanup_close_ int passed = -EBADF;
        int r;

        if (tenant->n_lost > 0)
                tell_lost(tenant);
        r = packet_receive(tenant->fd, packet, &passed);
        if (r == -EAGAIN || r == -EINTR)
                return true;
        if (r > 0 && !packet->failed && tenant->state == TENANT_IS_NEW && passed < 0) {
                welcome(tenant, packet);
                return true;
        }
        /* Who asks before he is answered does not keep to the rules. */
        if (r > 0 && !packet->failed && tenant->state == TENANT_IS_KNOWN && !tenant->waiting) {
                tenant_answer(tenant, packet, TAKE_FD(passed));
                return true;
        }
        tenant_leave(tenant);
        return false;
}

/* What it takes is its user's, whatever connection that comes by. */
static int on_packet(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        Tenant *tenant = userdata;
        TenantAccount *account = tenant_account(tenant);
        uint64_t begin = now_usec();
        bool is_there;

        is_there = take_packet(tenant);
        charge(account, now_usec() - begin);
        if (is_there && account->rests_until_usec > now_usec() + REST_FREE_USEC)
                rest_until(tenant, account->rests_until_usec - REST_FREE_USEC);
        return 0;
}

/* fd: taken over, also on failure. */
static int tenant_new(Tenants *tenants, int fd) {
        _cleanup_close_ int connection = fd;
        struct ucred peer;
        socklen_t size = sizeof(peer);
        TenantAccount *account;
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
        if (r < 0) {
                tenant_free(tenant);
                return r;
        }
        account = find_account(tenants, tenant->user);
        charge(account, CONNECTION_USEC);
        if (account->rests_until_usec > now_usec() + REST_FREE_USEC)
                rest_until(tenant, account->rests_until_usec - REST_FREE_USEC);
        return 0;
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

/* Everybody may connect, whatever the umask. Its directory is there, but where systemd is not. */
static int listen_at(const char *path, int *ret) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        memcpy(address.sun_path, path, strlen(path));
        fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        accept_files(fd, false);
        r = make_parents(path, 0755);
        if (r < 0)
                return r;
        (void) unlink(path);
        if (bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ||
            chmod(path, 0666) < 0 || listen(fd, BACKLOG) < 0)
                return -errno;
        *ret = TAKE_FD(fd);
        return 0;
}

static int open_socket(Tenants *tenants) {
        int r;

        r = listen_at(tenants->path, &tenants->fd);
        return r < 0 ? r
                     : sd_event_add_io(manager_get_event(tenants->manager), &tenants->source,
                                       tenants->fd, EPOLLIN, on_connection, tenants);
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

static void close_socket(Tenants *tenants) {
        if (tenants->fd < 0)
                return;
        (void) unlink(tenants->path);
        tenants->source = sd_event_source_disable_unref(tenants->source);
        tenants->fd = safe_close(tenants->fd);
        evict_all(tenants);
        while (tenants->first)
                tenant_free(tenants->first);
}

static void on_configured(bool any, void *userdata) {
        Tenants *tenants = userdata;
        int r;

        if (!any || tenants->fd >= 0) {
                if (!any)
                        close_socket(tenants);
                return;
        }
        r = open_socket(tenants);
        if (r >= 0)
                return;
        log_warning_errno(r, "Nothing is measured for users: cannot listen at %s: %m",
                          tenants->path);
        close_socket(tenants);
}

static const LentHandlers handlers = {
        .report = on_report,
        .gone = on_gone,
        .configured = on_configured,
        .file_known = on_file,
};

int tenants_new(Manager *manager, sd_bus *asking, const char *path, Tenants **ret) {
        _cleanup_(tenants_freep) Tenants *tenants = NULL;

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
        manager_handle_lent(manager, &handlers, tenants);
        *ret = TAKE_PTR(tenants);
        return 0;
}

Tenants *tenants_free(Tenants *tenants) {
        if (!tenants)
                return NULL;

        close_socket(tenants);
        manager_handle_lent(tenants->manager, NULL, NULL);
        safe_close(tenants->cgroup_root);
        sd_bus_unref(tenants->asking);
        free(tenants->path);
        free(tenants);
        return NULL;
}
