/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Of another build's maps only those are looked at whose types are ours, and of the others what no
 * build changes: a binding begins with its generation, a record with its type.
 */

#include "bpf/carried.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/books.h"
#include "bpf/histograms.h"
#include "bpf/kept-past.h"
#include "bpf/layout-hash.h"
#include "bpf/memory.h"

typedef struct CarriedBinding {
        KeptBinding kept;
        Past past;
} CarriedBinding;

struct Carried {
        CarriedBinding *bindings;
        size_t n;
        uint64_t lost; /* reports; told */
        uint64_t n_waiting;
        uint64_t unwritten;
};

/* The predecessor's maps. */
typedef struct Maps {
        int bindings;
        int outer_histograms;
        int records;
        BooksMaps books;
        HistogramTable histograms;
} Maps;

#define MAPS_NONE                                                                                  \
        {                                                                                          \
                .bindings = -EBADF,                                                                \
                .outer_histograms = -EBADF,                                                        \
                .records = -EBADF,                                                                 \
                .books = { .statistics_fd = -EBADF, .maxima_fd = -EBADF },                         \
        }

static void maps_done(Maps *maps) {
        histogram_table_done(&maps->histograms);
        safe_close(maps->bindings);
        safe_close(maps->books.statistics_fd);
        safe_close(maps->books.maxima_fd);
        safe_close(maps->outer_histograms);
        safe_close(maps->records);
}

/* Those that are read. Of bindings, no more than the generations is looked at. */
static bool have_form(const Maps *maps) {
        return bpf_memory_fits(maps->books.statistics_fd, BPF_MAP_TYPE_PERCPU_ARRAY,
                               sizeof(struct tlob_books)) &&
               bpf_memory_fits(maps->books.maxima_fd, BPF_MAP_TYPE_PERCPU_ARRAY,
                               sizeof(uint64_t)) &&
               bpf_memory_fits(maps->outer_histograms, BPF_MAP_TYPE_ARRAY_OF_MAPS,
                               sizeof(uint32_t));
}

static int maps_open(Maps *maps, const Pins *pins, size_t n_bindings) {
        const struct {
                int *fd;
                const char *name;
        } all[] = {
                { &maps->bindings, "map_bindings" },
                { &maps->books.statistics_fd, "map_statistics" },
                { &maps->books.maxima_fd, "map_maxima" },
                { &maps->outer_histograms, "map_histograms" },
                { &maps->records, "map_records" },
        };
        int n_cpus = libbpf_num_possible_cpus(), r;

        if (n_cpus < 0)
                return n_cpus;
        maps->books.n_cpus = (size_t) n_cpus;
        for (size_t i = 0; i < ELEMENTSOF(all); i++) {
                *all[i].fd = bpf_obj_get(pins_path(pins, all[i].name).text);
                if (*all[i].fd < 0)
                        return -errno;
        }
        if (!have_form(maps))
                return -ESTALE;
        r = histogram_table_init(&maps->histograms, n_bindings, maps->books.n_cpus,
                                 maps->outer_histograms);
        return r < 0 ? r : histogram_table_inherit(&maps->histograms);
}

/* Hits of probes find no generation any more. */
static int withdraw_all(int fd) {
        struct bpf_map_info info = {};
        uint32_t length = sizeof(info);
        void *memory;
        int r;

        r = bpf_obj_get_info_by_fd(fd, &info, &length);
        if (r < 0)
                return r;
        if (info.value_size == 0 || info.value_size % sizeof(uint64_t) != 0)
                return -ESTALE;
        r = bpf_memory_map(fd, info.max_entries, info.value_size, &memory);
        if (r < 0)
                return r;
        for (size_t i = 0; i < info.max_entries; i++)
                __atomic_store_n((uint64_t *) ((char *) memory + i * info.value_size), 0,
                                 __ATOMIC_SEQ_CST);
        bpf_memory_unmap(memory, info.max_entries, info.value_size);
        return 0;
}

/* Windows that were open had begun, and count as ended. */
static void end_windows(Counters *counters) {
        uint64_t ended = counters->in_budget + counters->violated + counters->over_limit;

        for (size_t i = 0; i < TLOB_N_ENDS; i++)
                ended += counters->ended[i];
        if (counters->starts > ended)
                counters->ended[TLOB_END_REMOVED] += counters->starts - ended;
}

/* What was held back, and that nobody has been asked for: the successor counts from zero. */
static void see_all(BindingLimit *limit, uint64_t suppressed) {
        uint64_t n = suppressed > limit->seen ? suppressed - limit->seen : 0;

        limit->n_suppressed += n;
        limit->suppressed += n;
        limit->unannounced += n;
        limit->seen = 0;
}

/* Since the reset. */
static int read_lengths(Maps *maps, const Kept *kept, uint32_t index, Histogram *ret) {
        int r = 0;

        if (kept->bindings[index].has_base_lengths)
                r = histogram_table_set_base(&maps->histograms, index, &kept->base_lengths[index]);
        return r < 0 ? r : histogram_table_read(&maps->histograms, index, ret);
}

/*
 * What threads had measured without traps, and lay in their lanes, has not been read here, but was
 * counted in a reset: then nothing is left.
 */
static void drop_negative(uint64_t *counts, size_t n) {
        for (size_t i = 0; i < n; i++)
                if ((int64_t) counts[i] < 0)
                        counts[i] = 0;
}

static int read_binding(Maps *maps, const Kept *kept, uint32_t index, CarriedBinding *ret) {
        const KeptBinding *before = &kept->bindings[index];
        Statistics statistics = {};
        Histogram lengths = {};
        int r;

        r = books_read(&maps->books, index, &statistics);
        if (r >= 0)
                r = read_lengths(maps, kept, index, &lengths);
        drop_negative(lengths.counts, ELEMENTSOF(lengths.counts));
        if (r >= 0)
                r = kept_add_past(kept, index, &ret->past);
        if (r >= 0)
                r = past_add_lengths(&ret->past, kept_get_build_id(before), &lengths);
        if (r < 0)
                return r;
        books_subtract_gone(&statistics.counters, &before->base);
        drop_negative((uint64_t *) &statistics.counters, sizeof(Counters) / sizeof(uint64_t));
        end_windows(&statistics.counters);
        statistics_add(&ret->past.statistics, &statistics);
        ret->kept = *before;
        see_all(&ret->kept.limit, statistics.counters.suppressed);
        return 0;
}

static int count_report(void *userdata, void *data, size_t size) {
        const uint32_t *type = data;
        uint64_t *n = userdata;

        if (size >= sizeof(*type) &&
            (*type == TLOB_RECORD_VIOLATION || *type == TLOB_RECORD_COMPLETION))
                (*n)++;
        return 0;
}

static int count_waiting(int fd, uint64_t *ret) {
        struct ring_buffer *ring;
        int r;

        *ret = 0;
        ring = ring_buffer__new(fd, count_report, ret, NULL);
        if (!ring)
                return -errno;
        r = ring_buffer__consume(ring);
        ring_buffer__free(ring);
        return r < 0 ? r : 0;
}

static int read_all(Carried *carried, Maps *maps, const Kept *kept) {
        size_t n = kept->common->format.bindings_max;
        int r;

        r = withdraw_all(maps->bindings);
        if (r < 0)
                return r;
        carried->lost = kept->common->lost;
        carried->unwritten = kept->common->unwritten;
        carried->bindings = calloc(n, sizeof(*carried->bindings));
        if (!carried->bindings)
                return -ENOMEM;
        for (uint32_t i = 0; i < n; i++) {
                if (!kept->bindings[i].generation)
                        continue;
                r = read_binding(maps, kept, i, &carried->bindings[carried->n++]);
                if (r < 0)
                        return r;
        }
        return count_waiting(maps->records, &carried->n_waiting);
}

int carried_take(const Kept *kept, const Pins *pins, Carried **ret) {
        _cleanup_(maps_done) Maps maps = MAPS_NONE;
        _cleanup_(carried_freep) Carried *carried = NULL;
        uint64_t books = bpf_layout_hash().books;
        int r;

        if (!books || kept->common->format.books != books)
                return -ESTALE;
        r = maps_open(&maps, pins, kept->common->format.bindings_max);
        if (r < 0)
                return r;
        carried = calloc(1, sizeof(*carried));
        if (!carried)
                return -ENOMEM;
        r = read_all(carried, &maps, kept);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(carried);
        return 0;
}

Carried *carried_free(Carried *carried) {
        if (!carried)
                return NULL;
        for (size_t i = 0; i < carried->n; i++)
                past_done(&carried->bindings[i].past);
        free(carried->bindings);
        free(carried);
        return NULL;
}

int carried_add(Carried **carried, const KeptBinding *kept, Past *past) {
        CarriedBinding *bindings;

        if (!*carried)
                *carried = calloc(1, sizeof(**carried));
        if (!*carried)
                return -ENOMEM;
        bindings = reallocarray((*carried)->bindings, (*carried)->n + 1, sizeof(*bindings));
        if (!bindings)
                return -ENOMEM;
        (*carried)->bindings = bindings;
        bindings[(*carried)->n++] = (CarriedBinding) { .kept = *kept, .past = *past };
        *past = (Past) {};
        return 0;
}

static bool has_its_places(const CarriedBinding *from, const KeptBinding *binding) {
        return memcmp(&from->kept.places, &binding->places, sizeof(binding->places)) == 0;
}

static CarriedBinding *find_here(const Carried *carried, const KeptBinding *binding) {
        for (size_t i = 0; i < carried->n; i++)
                if (kept_is_same(&carried->bindings[i].kept, binding) &&
                    has_its_places(&carried->bindings[i], binding))
                        return &carried->bindings[i];
        return NULL;
}

/* Only once: the binding can get its probes anew before all is taken over. */
static int hand_over(CarriedBinding *from, Past *past) {
        int r = past_add(past, &from->past);

        past_done(&from->past);
        return r;
}

int carried_give(Carried *carried, Kept *kept, uint32_t index) {
        _cleanup_(past_done) Past past = {};
        KeptBinding *binding = &kept->bindings[index];
        CarriedBinding *here = find_here(carried, binding);
        int r = 0;

        /* What was measured in other files is older: they were at its path before. */
        for (size_t i = 0; i < carried->n && r >= 0; i++) {
                CarriedBinding *from = &carried->bindings[i];

                if (from != here && (here ? kept_is_same(&from->kept, binding)
                                          : kept_has_same_keys(&from->kept, binding)))
                        r = hand_over(from, &past);
        }
        if (here && r >= 0) {
                binding->limit = here->kept.limit;
                here->kept.limit = (BindingLimit) {};
                r = hand_over(here, &past);
        }
        if (r >= 0)
                kept_set_past(kept, index, &past);
        return r;
}

uint64_t carried_give_common(const Carried *carried, Kept *kept) {
        kept->common->lost = carried->lost;
        kept->common->unwritten = carried->unwritten;
        return carried->lost + carried->n_waiting;
}
