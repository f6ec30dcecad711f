/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_SITE_PROCESSES_H
#define BPF_SITE_PROCESSES_H

#include "bpf/site.h"

/* The processes of the units that sites by process are for, and the probes that are theirs. */

/* May that process have a probe at the site? */
typedef bool (*SiteAdmits)(const Site *site, uint32_t tgid, void *userdata);

/*
 * A process that is in a unit, as the programs told: it gets probes of its own at the sites by
 * process of that unit, where it has none, and admits lets it. What is told twice changes nothing.
 */
void site_table_add_process(SiteTable *table, const struct tlob_process_record *record,
                            SiteAdmits admits, void *userdata);

/* Is that process measured at the site? */
bool site_table_has_process(const SiteTable *table, uint32_t site, uint32_t tgid);

/* It has exited. */
void site_table_remove_process(SiteTable *table, uint32_t tgid);

/*
 * From the one to the other all processes that exist are added: those that were not do not any
 * more.
 */
void site_table_begin_round(SiteTable *table);
void site_table_end_round(SiteTable *table);

SiteReach site_table_get_reach(const SiteTable *table, uint32_t site);

/* Was any of its processes told of as one of another unit than that? */
bool site_table_is_shared(const SiteTable *table, uint32_t site, uint32_t unit);

/* Of a site that nobody uses any more. */
void site_forget_processes(SiteTable *table, Site *site);

#endif
