/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the lists of bindings at sites and the processes at sites have in common: the probes. */

#include "bpf/site.h"

#include <time.h>

uint32_t site_index(const SiteTable *table, const Site *site) {
        return (uint32_t) (site - table->items);
}

uint64_t site_table_cookie(const SiteTable *table, uint32_t site) {
        return TLOB_COOKIE(site, table->memory[site].generation);
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
        int r;

        if (table->probes.event_fd < 0)
                return -EOPNOTSUPP;
        spec.is_event = true;
        spec.multi = false;
        spec.prog_fd = table->probes.event_fd;
        r = attach_when_free(&spec, ret);
        if (r != -EINVAL)
                return r;
        spec.prog_fd = table->probes.event_probe_fd;
        return attach_when_free(&spec, ret);
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

        if (site->key.is_event)
                return attach_event(table, spec, ret);
        if (!site->key.is_call)
                return uprobe_attach(&spec, ret);
        return table->probes.calls ? calls_attach(table->probes.calls, site->key.offsets[0], cookie)
                                   : 0;
}
