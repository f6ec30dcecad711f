/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the service manager keeps from one daemon to the next (FileDescriptorStoreMax=, see
 * sd_notify(3)): the descriptors by which a back end goes on where it stood. They are known by the
 * name of the back end. systemd forgets them when the service is stopped.
 */

#include "manager/store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

#include "log.h"

/* FDNAME: "bpf-0", "bpf-1". */
typedef struct StoreName {
        char text[32];
} StoreName;

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

/* What is nobody's any more is closed. */
void manager_take_store(Manager *m) {
        const BackendOps *ops;
        char **names = NULL;
        int n;

        n = sd_listen_fds_with_names(true, &names);
        if (n <= 0)
                return;
        for (size_t i = 0; (ops = backends_get(m->backends, i)); i++)
                if (ops->keep)
                        take_for(m, ops, names, n);
        for (int i = 0; i < n; i++) {
                if (names[i][0])
                        (void) close(SD_LISTEN_FDS_START + i);
                free(names[i]);
        }
        free(names);
}

void manager_on_kept(const BackendOps *ops, const int *fds, void *userdata) {
        Manager *m = userdata;

        m->is_stored = fds;
        for (size_t i = 0; i < BACKEND_N_KEPT; i++) {
                StoreName name = name_of(ops, i);
                char text[64];
                int r;

                (void) snprintf(text, sizeof(text), "FDSTORE%s=1\nFDNAME=%s", fds ? "" : "REMOVE",
                                name.text);
                r = sd_pid_notify_with_fds(0, false, text, fds ? &fds[i] : NULL, fds ? 1 : 0);
                /* 0: systemd has not started us. */
                m->is_stored = m->is_stored && r > 0;
        }
}
