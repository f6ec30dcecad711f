/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_SITES_H
#define BPF_SITES_H

#include "bpf/site.h"

/*
 * The sites of one kind (start or stop): bindings come and go there, and probes with the first and
 * the last of them.
 */

/*
 * n: as many sites as the maps have room for. The file descriptors stay the caller's, and so do the
 * pins, and *generation, which goes up for ever. Sites that are in the maps stay there until
 * site_table_drop_inherited().
 */
int site_table_init(SiteTable *table, size_t n, const SiteProbes *probes, int sites_fd,
                    int scopes_fd, uint32_t *generation);

/* Hits of the predecessor's probes with that cookie are needed. */
void site_table_need_inherited(SiteTable *table, uint64_t cookie);

/* Nothing that hits the probes of the others, or of all its sites, counts any more. */
void site_table_drop_unneeded(SiteTable *table);
void site_table_drop_inherited(SiteTable *table);

/* What the hits of a site have cost, of all tasks, since it is there; 0: that cannot be read. */
uint64_t site_table_get_cost(const SiteTable *table, uint32_t site);

/* The same of all sites. */
uint64_t site_table_get_total_cost(const SiteTable *table);

/* Of an event where windows end: was it hit so often, and never by a task of a program? */
bool site_table_is_missed(const SiteTable *table, uint32_t site, uint64_t n_hits);

/* Detaches what is left. */
void site_table_done(SiteTable *table);

/*
 * Lets a binding use the site, and sets its probes if it is the first. Returns 0, or a negative
 * errno with a sentence in *ret_reason; then nothing is changed.
 */
int site_table_join(SiteTable *table, const SiteKey *key, int file_fd, const SiteUser *user,
                    uint32_t *ret_site, char **ret_reason);

/* Undoes it. The probes are detached when the site is not used any more. */
void site_table_leave(SiteTable *table, uint32_t site, const SiteUser *user);

#endif
