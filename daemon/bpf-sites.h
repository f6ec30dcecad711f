/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_SITES_H
#define BPF_SITES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf-uprobe.h"
#include "tlob-record.h"

/*
 * The places where probes of one kind (start or stop) sit, and which bindings each of them is for. One
 * probe a site, shared by all bindings there.
 */

typedef struct SiteKey {
        dev_t dev;
        ino_t inode;
        uint64_t offset;
        bool is_return;
} SiteKey;

typedef struct Site Site;

typedef struct SiteTable {
        Site *items;              /* an index here is an index in the map */
        struct tlob_site *memory; /* shared with the programs */
        size_t n;
        int prog_fd;
        int scopes_fd;
        bool multi;
        uint32_t generation; /* of the site that was made last */
} SiteTable;

/* A binding at a site: who it is for. */
typedef struct SiteUser {
        uint32_t binding;
        uint32_t unit; /* as in UnitTable */
        bool many;     /* the unit stands for several, which others may stand for too */
} SiteUser;

/* n: as many sites as the maps have room for. The file descriptors stay the caller's. */
int site_table_init(SiteTable *table, size_t n, int prog_fd, int sites_fd, int scopes_fd,
                    bool multi);

/* Detaches what is left. */
void site_table_done(SiteTable *table);

/*
 * Lets a binding use the site, and sets the probe if it is the first. Returns 0, or a negative errno
 * with a sentence in *ret_reason; then nothing is changed.
 */
int site_table_join(SiteTable *table, const SiteKey *key, int file_fd, const SiteUser *user,
                    uint32_t *ret_site, char **ret_reason);

/* What the probe of that site tells the programs. */
uint64_t site_table_cookie(const SiteTable *table, uint32_t site);

/* Undoes it. Gives the probe, to be detached, when the site is not used any more; else NULL. */
Uprobe *site_table_leave(SiteTable *table, uint32_t site, const SiteUser *user);

#endif
