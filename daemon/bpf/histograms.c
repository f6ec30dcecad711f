/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Histograms are large, and few of the bindings that there may be are there: so they are made in
 * groups, and a group stays once it is made. Putting one in its place waits for a grace period.
 */

#include "bpf/histograms.h"

#include <bpf/bpf.h>

#include "bpf/layout.h"
#include "bpf/memory.h"

int histogram_table_init(HistogramTable *table, size_t n, size_t n_cpus, int outer_fd) {
        *table = (HistogramTable){ .outer_fd = outer_fd, .n_cpus = n_cpus };
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
        *table = (HistogramTable){};
}

static int make_group(HistogramTable *table, uint32_t group) {
        _cleanup_close_ int fd = -EBADF;

        fd = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "histogram", sizeof(uint32_t),
                            sizeof(struct tlob_histogram), TLOB_HISTOGRAMS_GROUP, NULL);
        if (fd < 0)
                return -errno;
        if (bpf_map_update_elem(table->outer_fd, &group, &fd, BPF_ANY) < 0)
                return -errno;
        table->groups[group] = TAKE_FD(fd);
        return 0;
}

int histogram_table_clear(HistogramTable *table, uint32_t binding) {
        uint32_t group = binding / TLOB_HISTOGRAMS_GROUP, place = binding % TLOB_HISTOGRAMS_GROUP;
        _cleanup_free_ struct tlob_histogram *per_cpu = NULL;

        table->bases[binding] = histogram_free(table->bases[binding]);
        if (table->groups[group] < 0)
                return make_group(table, group);

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

int histogram_table_reset(HistogramTable *table, uint32_t binding) {
        _cleanup_(histogram_freep) Histogram *base = NULL;
        int r;

        base = calloc(1, sizeof(*base));
        if (!base)
                return -ENOMEM;
        r = read_all(table, binding, base);
        if (r < 0)
                return r;
        histogram_free(table->bases[binding]);
        table->bases[binding] = TAKE_PTR(base);
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
