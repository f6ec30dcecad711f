/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Sites by process: a probe in a library would stop every process of the machine that calls there,
 * so it is set in the processes of the unit only, as the programs tell of them (process.bpf.h). A
 * child has the breakpoints of its parent, but is another process to the kernel, and is not
 * measured before it has a probe of its own.
 *
 * When there are too many processes, or too many new ones (crowd.h), those that come from then on
 * share one probe in all processes of the machine, until no process of the units is left. Those
 * that have one of their own keep it, and a map tells the programs who they are: so nothing is
 * missed or counted twice when it changes.
 */

#include "bpf/site-processes.h"

#include <bpf/bpf.h>

#include "base/clock.h"

static bool site_is_for(const Site *site, uint32_t unit) {
        for (unsigned i = 0; i < site->n_users; i++)
                if (site->users[i].unit == unit)
                        return true;
        return false;
}

static SiteProcess *site_find_process(const Site *site, uint32_t tgid) {
        for (size_t i = 0; i < site->n_processes; i++)
                if (site->processes[i].tgid == tgid)
                        return &site->processes[i];
        return NULL;
}

static struct tlob_process_site map_key(const SiteTable *table, const Site *site,
                                        const SiteProcess *process) {
        return (struct tlob_process_site) {
                .tgid = process->tgid,
                .site = site_index(table, site),
                .side = table->probes.side,
        };
}

/*
 * From now on hits of the probe in all processes count, but for those that have one of their own.
 */
static int site_widen(SiteTable *table, Site *site) {
        uint64_t cookie = site_table_cookie(table, site_index(table, site)) | TLOB_COOKIE_WIDE;
        uint8_t yes = 1;
        int r;

        for (size_t i = 0; i < site->n_processes; i++) {
                struct tlob_process_site key = map_key(table, site, &site->processes[i]);

                if (site->processes[i].uprobe &&
                    bpf_map_update_elem(table->probes.process_sites_fd, &key, &yes, BPF_ANY) < 0)
                        return -errno;
        }
        r = site_attach(table, site, site->file_fd, cookie, 0, &site->uprobe);
        if (r >= 0)
                site->reach.is_wide = true;
        return r;
}

static void site_narrow(SiteTable *table, Site *site) {
        detacher_push(table->probes.detacher, TAKE_PTR(site->uprobe));
        site->reach.is_wide = false;
        site->crowd = (Crowd) {};
}

static void count_admission(Site *site, const struct tlob_process_record *record) {
        uint64_t now = now_ns();

        site->reach.n_admitted++;
        if (record->event == TLOB_PROCESS_FOUND || now < record->time_ns)
                return;
        site->reach.late_ns += now - record->time_ns;
        if (now - record->time_ns > site->reach.late_max_ns)
                site->reach.late_max_ns = now - record->time_ns;
}

static void site_admit_process(SiteTable *table, Site *site, SiteProcess *process,
                               const struct tlob_process_record *record) {
        if (!site->key.owner && !site->reach.is_wide &&
            crowd_is_too_large(&site->crowd, site->n_processes, record) &&
            site_widen(table, site) >= 0)
                return;
        if (site->reach.is_wide)
                return;
        /* 0 would mean all. */
        if (record->pid > 0 && site_attach(table, site, site->file_fd,
                                           site_table_cookie(table, site_index(table, site)),
                                           record->pid, &process->uprobe) >= 0)
                count_admission(site, record);
        else
                site->reach.n_missed++;
}

/* is_alive: it may be hitting its probe. */
static void site_remove_process(SiteTable *table, Site *site, SiteProcess *process, bool is_alive) {
        struct tlob_process_site key = map_key(table, site, process);

        if (is_alive)
                detacher_push(table->probes.detacher, process->uprobe);
        else
                uprobe_drop(process->uprobe);
        if (site->reach.is_wide && process->uprobe)
                (void) bpf_map_delete_elem(table->probes.process_sites_fd, &key);
        *process = site->processes[--site->n_processes];
        if (site->n_processes == 0 && site->reach.is_wide)
                site_narrow(table, site);
}

/* What a user has too many of is not measured: it is no matter of others. */
static bool site_is_crowded(const SiteTable *table, const Site *site,
                            const struct tlob_process_record *record) {
        Crowd *crowds = table->probes.owned_crowds;
        struct tlob_process_record moment = *record;

        if (!site->key.owner)
                return false;
        /* To find those that are there takes as long as if they were new. */
        moment.event = TLOB_PROCESS_FORKED;
        moment.time_ns = now_ns();
        return crowd_is_too_large(&crowds[site->key.owner % OWNED_CROWDS], site->n_processes + 1,
                                  &moment);
}

static void site_add_process(SiteTable *table, Site *site, const struct tlob_process_record *record,
                             SiteAdmits admits, void *userdata) {
        SiteProcess *process = site_find_process(site, record->tgid);

        /* It has become a program that has more rights than its user. */
        if (process && site->key.owner && !admits(site, record->tgid, userdata)) {
                site_remove_process(table, site, process, true);
                return;
        }
        if (!process) {
                if (!admits(site, record->tgid, userdata) || site_is_crowded(table, site, record)) {
                        site->reach.n_missed++;
                        return;
                }
                process = reallocarray(site->processes, site->n_processes + 1, sizeof(*process));
                if (!process) {
                        site->reach.n_missed++;
                        return;
                }
                site->processes = process;
                process += site->n_processes++;
                *process = (SiteProcess) { .tgid = record->tgid, .unit = record->unit };
                site_admit_process(table, site, process, record);
        }
        process->round = table->round;
}

void site_table_add_process(SiteTable *table, const struct tlob_process_record *record,
                            SiteAdmits admits, void *userdata) {
        for (size_t i = 0; i < table->end; i++) {
                Site *site = &table->items[i];

                if (site->n_users > 0 && site->key.by_process && site_is_for(site, record->unit))
                        site_add_process(table, site, record, admits, userdata);
        }
}

bool site_table_has_process(const SiteTable *table, uint32_t index, uint32_t tgid) {
        const Site *site = &table->items[index];
        const SiteProcess *process = site_find_process(site, tgid);

        return site->reach.is_wide || (process && process->uprobe);
}

void site_table_remove_process(SiteTable *table, uint32_t tgid) {
        for (size_t i = 0; i < table->end; i++) {
                Site *site = &table->items[i];
                SiteProcess *process = site_find_process(site, tgid);

                if (process)
                        site_remove_process(table, site, process, false);
        }
}

void site_table_begin_round(SiteTable *table) {
        table->round++;
}

void site_table_end_round(SiteTable *table) {
        for (size_t i = 0; i < table->end; i++) {
                Site *site = &table->items[i];

                for (size_t j = site->n_processes; j-- > 0;)
                        if (site->processes[j].round != table->round)
                                site_remove_process(table, site, &site->processes[j], true);
        }
}

void site_forget_processes(SiteTable *table, Site *site) {
        while (site->n_processes > 0)
                site_remove_process(table, site, &site->processes[site->n_processes - 1], true);
        free(site->processes);
        site->processes = NULL;
        site->file_fd = safe_close(site->file_fd);
}

bool site_table_is_shared(const SiteTable *table, uint32_t index, uint32_t unit) {
        const Site *site = &table->items[index];

        for (size_t i = 0; i < site->n_processes; i++)
                if (site->processes[i].unit != unit)
                        return true;
        return false;
}

SiteReach site_table_get_reach(const SiteTable *table, uint32_t index) {
        const Site *site = &table->items[index];
        SiteReach reach = site->reach;

        reach.n_processes = site->n_processes;
        reach.n_outside = __atomic_load_n(&site_shared(table, index)->n_outside, __ATOMIC_RELAXED);
        return reach;
}
