/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the lists of bindings at sites and the processes at sites have in common: the probes. */

#include "bpf/site.h"

uint32_t site_index(const SiteTable *table, const Site *site) {
        return (uint32_t) (site - table->items);
}

uint64_t site_table_cookie(const SiteTable *table, uint32_t site) {
        return TLOB_COOKIE(site, table->memory[site].generation);
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

        if (!site->key.is_call)
                return uprobe_attach(&spec, ret);
        return table->probes.calls ? calls_attach(table->probes.calls, site->key.offsets[0], cookie)
                                   : 0;
}
