/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the service manager keeps from one daemon to the next (FileDescriptorStoreMax=, see
 * sd_notify(3)): the descriptors by which a back end goes on where it stood. They are known by the
 * name of the back end. systemd forgets them when the service is stopped. Beside them is what waits
 * for journald.
 *
 * Or there is a directory, in which back ends keep what they have by themselves. Then nothing is in
 * the hands of the service manager.
 *
 * A user's tlobd has nothing in the kernel, and nothing is kept.
 */

#include "manager/store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "journal-socket.h"
#include "keep.h"
#include "log.h"

/* FDNAME: "bpf-0", "bpf-1", "journal". */
typedef struct StoreName {
        char text[32];
} StoreName;

static const StoreName journal_name = { "journal" };

static StoreName name_of(const BackendOps *ops, size_t i) {
        StoreName name;

        (void) snprintf(name.text, sizeof(name.text), "%s-%zu", ops->name, i);
        return name;
}

/* Taken out of the list: the last of that name, as others may be stale. */
static int take(char **names, int n, const StoreName *name) {
        int fd = -EBADF;

        for (int i = 0; i < n; i++)
                if (names[i] && streq(names[i], name->text)) {
                        safe_close(fd);
                        fd = SD_LISTEN_FDS_START + i;
                        names[i][0] = '\0';
                }
        return fd;
}

static void take_for(Manager *m, const BackendOps *ops, char **names, int n) {
        int fds[BACKEND_N_KEPT];
        bool all = true;

        for (size_t i = 0; i < BACKEND_N_KEPT; i++) {
                StoreName name = name_of(ops, i);

                fds[i] = take(names, n, &name);
                all = all && fds[i] >= 0;
        }
        if (all) {
                backends_inherit(m->backends, ops, fds);
                m->is_stored = true;
                return;
        }
        for (size_t i = 0; i < BACKEND_N_KEPT; i++)
                safe_close(fds[i]);
}

/* Under that name, or if fd is NULL, none. 0: systemd has not started us. */
static int notify(const StoreName *name, const int *fd) {
        char text[64];

        (void) snprintf(text, sizeof(text), "FDSTORE%s=1\nFDNAME=%s", fd ? "" : "REMOVE",
                        name->text);
        return sd_pid_notify_with_fds(0, false, text, fd, fd ? 1 : 0);
}

/*
 * In place of what it has, of which nothing may be left beside these if we are killed here; fds:
 * NULL: of nothing. Returns whether it has all of them.
 */
static bool tell_service_manager(const BackendOps *ops, const int *fds) {
        bool all = fds;

        for (size_t i = 0; i < BACKEND_N_KEPT; i++) {
                StoreName name = name_of(ops, i);

                (void) notify(&name, NULL);
        }
        for (size_t i = 0; fds && i < BACKEND_N_KEPT; i++) {
                StoreName name = name_of(ops, i);

                all = notify(&name, &fds[i]) > 0 && all;
        }
        return all;
}

/* What waits for journald: of the daemon before, if fd is not negative, and from now on. */
static void keep_journal(Manager *m, int fd) {
        JournalQueue *queue = NULL;
        bool inherited;
        int r;

        inherited = fd >= 0 && journal_queue_inherit(fd, &queue) >= 0;
        if (!inherited) {
                safe_close(fd);
                (void) notify(&journal_name, NULL);
                r = journal_queue_new(&queue);
                if (r < 0) {
                        log_warning_errno(r, "Journal entries that wait end with tlobd: %m");
                        return;
                }
        }
        journal_socket_use(queue);
        fd = journal_queue_get_fd(queue);
        if (m->keep_in)
                (void) notify(&journal_name, NULL);
        else
                m->is_journal_kept = inherited || notify(&journal_name, &fd) > 0;
}

/* What is nobody's any more is closed. */
static void take_from_service_manager(Manager *m) {
        const BackendOps *ops;
        char **names = NULL;
        int n;

        n = sd_listen_fds_with_names(true, &names);
        keep_journal(m, take(names, n, &journal_name));
        if (n <= 0)
                return;
        for (size_t i = 0; (ops = backends_get(m->backends, i)); i++)
                if (ops->keep && m->keep_in)
                        (void) tell_service_manager(ops, NULL);
                else if (ops->keep)
                        take_for(m, ops, names, n);
        for (int i = 0; i < n; i++) {
                if (names[i][0])
                        (void) close(SD_LISTEN_FDS_START + i);
                free(names[i]);
        }
        free(names);
}

static int take_from_directory(Manager *m) {
        _cleanup_free_ char *reason = NULL;
        const BackendOps *ops;
        int r;

        r = keep_open(m->keep_in, &m->keep_fd, &reason);
        if (r < 0)
                return log_error_errno(r, "%s.", reason ?: "Out of memory");
        for (size_t i = 0; (ops = backends_get(m->backends, i)); i++) {
                int fds[BACKEND_N_KEPT];

                if (!ops->find_kept || ops->find_kept(m->keep_fd, fds) < 0)
                        continue;
                backends_inherit(m->backends, ops, fds);
                m->is_stored = true;
        }
        return 0;
}

int manager_take_store(Manager *m) {
        int r = 0;

        if (m->scope == RUNTIME_SCOPE_USER)
                return 0;
        if (m->keep_in)
                r = take_from_directory(m);
        if (r >= 0)
                take_from_service_manager(m);
        return r;
}

void manager_on_kept(const BackendOps *ops, const int *fds, void *userdata) {
        Manager *m = userdata;

        m->is_stored = m->keep_in ? fds != NULL : tell_service_manager(ops, fds);
}
