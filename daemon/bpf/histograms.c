/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Histograms are large, and few of the bindings that there may be are there: so they are made in
 * groups, and a group stays once it is made. Putting them in their places waits for a grace period
 * (6.8 and later: one for all of a batch, before: one each), so the more there are, the more are
 * made ahead.
 */

#include "bpf/histograms.h"

#include <bpf/bpf.h>

#include "bpf/layout.h"
#include "bpf/memory.h"

#define GROUPS_AT_ONCE_MAX 16

int histogram_table_init(HistogramTable *table, size_t n, size_t n_cpus, int outer_fd) {
        *table = (HistogramTable) { .outer_fd = outer_fd, .n_cpus = n_cpus };
        table->bases = calloc(n, sizeof(*table->bases));
        if (!table->bases)
                return -ENOMEM;
        table->n = n;

        n = (n + TLOB_HISTOGRAMS_GROUP - 1) / TLOB_HISTOGRAMS_GROUP;
        table->groups = calloc(n, sizeof(*table->groups));
        if (!table->groups)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                table->groups[i] = -EBADF;
        table->n_groups = n;
        return 0;
}

int histogram_table_inherit(HistogramTable *table) {
        for (uint32_t group = 0; group < table->n_groups; group++) {
                uint32_t id;

                if (bpf_map_lookup_elem(table->outer_fd, &group, &id) < 0)
                        continue;
                table->groups[group] = bpf_map_get_fd_by_id(id);
                if (table->groups[group] < 0)
                        return -errno;
                if (!bpf_memory_fits(table->groups[group], BPF_MAP_TYPE_PERCPU_ARRAY,
                                     sizeof(struct tlob_histogram)))
                        return -ESTALE;
        }
        return 0;
}

void histogram_table_done(HistogramTable *table) {
        for (size_t i = 0; i < table->n_groups; i++)
                safe_close(table->groups[i]);
        for (size_t i = 0; i < table->n; i++)
                histogram_free(table->bases[i]);
        free(table->groups);
        free(table->bases);
        *table = (HistogramTable) {};
}

static int install_groups(const HistogramTable *table, uint32_t first, int *fds, uint32_t n) {
        uint32_t groups[GROUPS_AT_ONCE_MAX], count = n;

        for (uint32_t i = 0; i < n; i++)
                groups[i] = first + i;
        return bpf_map_update_batch(table->outer_fd, groups, fds, &count, NULL) < 0 ? -errno : 0;
}

/* That group is missing. */
static int make_groups(HistogramTable *table, uint32_t first) {
        int fds[GROUPS_AT_ONCE_MAX], r = 0;
        uint32_t n = 0, wanted = 1 + first / 4;

        while (n < wanted && n < GROUPS_AT_ONCE_MAX && first + n < table->n_groups &&
               table->groups[first + n] < 0 && r >= 0) {
                fds[n] = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "histogram", sizeof(uint32_t),
                                        sizeof(struct tlob_histogram), TLOB_HISTOGRAMS_GROUP, NULL);
                if (fds[n] < 0)
                        r = -errno;
                else
                        n++;
        }
        /* Those ahead are not needed yet. */
        if (n > 0)
                r = install_groups(table, first, fds, n);
        for (uint32_t i = 0; i < n; i++)
                if (r < 0)
                        safe_close(fds[i]);
                else
                        table->groups[first + i] = fds[i];
        return r;
}

int histogram_table_clear(HistogramTable *table, uint32_t binding) {
        uint32_t group = binding / TLOB_HISTOGRAMS_GROUP, place = binding % TLOB_HISTOGRAMS_GROUP;
        _cleanup_free_ struct tlob_histogram *per_cpu = NULL;

        table->bases[binding] = histogram_free(table->bases[binding]);
        if (table->groups[group] < 0)
                return make_groups(table, group);

        per_cpu = calloc(table->n_cpus, sizeof(*per_cpu));
        if (!per_cpu)
                return -ENOMEM;
        return bpf_map_update_elem(table->groups[group], &place, per_cpu, BPF_ANY);
}

static int read_all(const HistogramTable *table, uint32_t binding, Histogram *histogram) {
        uint32_t group = binding / TLOB_HISTOGRAMS_GROUP, place = binding % TLOB_HISTOGRAMS_GROUP;
        _cleanup_free_ struct tlob_histogram *per_cpu = NULL;

        per_cpu = calloc(table->n_cpus, sizeof(*per_cpu));
        if (!per_cpu)
                return -ENOMEM;
        if (bpf_map_lookup_elem(table->groups[group], &place, per_cpu) < 0)
                return -errno;
        for (size_t cpu = 0; cpu < table->n_cpus; cpu++)
                for (size_t i = 0; i < TLOB_BUCKETS; i++)
                        histogram->counts[i] += per_cpu[cpu].counts[i];
        return 0;
}

int histogram_table_read(const HistogramTable *table, uint32_t binding, Histogram *histogram) {
        const Histogram *base = table->bases[binding];
        int r;

        r = read_all(table, binding, histogram);
        if (r < 0 || !base)
                return r;
        for (size_t i = 0; i < TLOB_BUCKETS; i++)
                histogram->counts[i] -= base->counts[i];
        return 0;
}

int histogram_table_set_base(HistogramTable *table, uint32_t binding, const Histogram *base) {
        Histogram *copy;

        copy = malloc(sizeof(*copy));
        if (!copy)
                return -ENOMEM;
        *copy = *base;
        histogram_free(table->bases[binding]);
        table->bases[binding] = copy;
        return 0;
}

const Histogram *histogram_table_get_base(const HistogramTable *table, uint32_t binding) {
        return table->bases[binding];
}
