/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the lists of bindings at sites and the processes at sites have in common: the probes. */

#include "bpf/site.h"

#include <time.h>

uint32_t site_index(const SiteTable *table, const Site *site) {
        return (uint32_t) (site - table->items);
}

uint64_t site_table_cookie(const SiteTable *table, uint32_t site) {
        return TLOB_COOKIE(site, site_shared(table, site)->generation);
}

/*
 * The kernel takes a program on an event only once, and takes its time to let go of it: that of a
 * binding that has just gone may still be there.
 */
static int attach_when_free(const UprobeSpec *spec, Uprobe **ret) {
        static const struct timespec moment = { .tv_nsec = 10000000 };
        int r = -EEXIST;

        for (unsigned i = 0; i < 200 && r == -EEXIST; i++) {
                if (i > 0)
                        (void) nanosleep(&moment, NULL);
                r = uprobe_attach(spec, ret);
        }
        return r;
}

/* Which kind of program it takes is found by trying. */
static int attach_event(const SiteTable *table, UprobeSpec spec, Uprobe **ret) {
        EventProgramFds fds;
        int r;

        r = late_programs_get_events(table->probes.late, table->probes.side, &fds);
        if (r < 0)
                return r;
        spec.is_event = true;
        spec.multi = false;
        spec.prog_fd = fds.event;
        r = attach_when_free(&spec, ret);
        if (r != -EINVAL)
                return r;
        spec.prog_fd = fds.probe;
        return attach_when_free(&spec, ret);
}

/* The end of a window that is a call needs no site, and has no role. */
static bool role_of(const SiteTable *table, const SiteKey *key, enum tlob_call_role *ret) {
        static const enum tlob_call_role roles[][2] = {
                [SITE_CALL] = { TLOB_CALL_WINDOW, TLOB_CALL_ROLES },
                [SITE_CALL_BEGIN] = { TLOB_CALL_BEGIN_STARTS, TLOB_CALL_BEGIN_STOPS },
                [SITE_CALL_END] = { TLOB_CALL_END_STARTS, TLOB_CALL_END_STOPS },
        };

        *ret = roles[key->kind][table->probes.side];
        return *ret != TLOB_CALL_ROLES;
}

static int attach_call(const SiteTable *table, const SiteKey *key, uint64_t cookie) {
        enum tlob_call_role role;

        return role_of(table, key, &role)
                       ? calls_attach(table->probes.calls, role, key->offsets[0], cookie)
                       : 0;
}

int site_attach(SiteTable *table, Site *site, int file_fd, uint64_t cookie, uint32_t pid,
                Uprobe **ret) {
        UprobeSpec spec = {
                .prog_fd = table->probes.prog_fd,
                .multi = table->probes.multi,
                .pins = table->probes.pins,
                .file_fd = file_fd,
                .offsets = site->key.offsets,
                .n_offsets = site->key.n_offsets,
                .semaphores = site->key.semaphores,
                .is_return = site->key.is_return,
                .cookie = cookie,
                .pid = pid,
                .file = uprobe_file_group(site->key.dev, site->key.inode),
        };

        if (site->key.kind == SITE_EVENT)
                return attach_event(table, spec, ret);
        if (site->key.kind == SITE_USER_EVENT)
                return user_events_attach(table->probes.user_events, site->key.offsets[0],
                                          table->probes.side, cookie, ret);
        return site_is_of_call(&site->key) ? attach_call(table, &site->key, cookie)
                                           : uprobe_attach(&spec, ret);
}

void site_detach_call(const SiteTable *table, const SiteKey *key) {
        enum tlob_call_role role;

        if (site_is_of_call(key) && role_of(table, key, &role))
                calls_detach(table->probes.calls, role, key->offsets[0]);
}
