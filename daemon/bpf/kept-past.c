/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A build has its lengths as soon as it has an id: that comes last and goes first, as the daemon
 * can be killed in between.
 */

#include "bpf/kept-past.h"

static void set_id(char to[static KEPT_BUILD_ID_MAX], const char *id) {
        __atomic_store_n(&to[0], '\0', __ATOMIC_SEQ_CST);
        if (!id || id[0] == '\0' || strlen(id) >= KEPT_BUILD_ID_MAX)
                return;
        strcpy(to + 1, id + 1);
        __atomic_store_n(&to[0], id[0], __ATOMIC_RELEASE);
}

static const char *get_id(const char from[static KEPT_BUILD_ID_MAX]) {
        return from[0] != '\0' ? from : NULL;
}

void kept_set_build_id(KeptBinding *binding, const char *id) {
        set_id(binding->build_id, id);
}

const char *kept_get_build_id(const KeptBinding *binding) {
        return get_id(binding->build_id);
}

static Histogram *lengths_of_build(const Kept *kept, uint32_t index, size_t i) {
        return &kept->build_lengths[(size_t) index * PAST_N_BUILDS + i];
}

static void set_build(Kept *kept, uint32_t index, size_t i, const PastBuild *build) {
        char *id = kept->bindings[index].build_ids[i];

        set_id(id, NULL);
        if (!build->id)
                return;
        *lengths_of_build(kept, index, i) = *build->lengths;
        set_id(id, build->id);
}

void kept_set_past(Kept *kept, uint32_t index, const Past *past) {
        KeptBinding *binding = &kept->bindings[index];

        binding->past = past->statistics;
        if (past->lengths)
                kept->past_lengths[index] = *past->lengths;
        binding->has_past_lengths = past->lengths != NULL;
        for (size_t i = 0; i < PAST_N_BUILDS; i++)
                set_build(kept, index, i, &past->builds[i]);
        set_id(binding->told_of, past->told_of);
}

/*
 * The kept memory in the form of a past, which owns nothing of it. What probes have cost begins
 * anew with each daemon.
 */
static Past view(const Kept *kept, uint32_t index) {
        KeptBinding *binding = &kept->bindings[index];
        Past past = {
                .statistics = binding->past,
                .lengths = binding->has_past_lengths ? &kept->past_lengths[index] : NULL,
                .told_of = (char *) get_id(binding->told_of),
        };

        past.statistics.cost_ns = 0;
        for (size_t i = 0; i < PAST_N_BUILDS; i++)
                if (get_id(binding->build_ids[i]))
                        past.builds[i] = (PastBuild) {
                                .id = binding->build_ids[i],
                                .lengths = lengths_of_build(kept, index, i),
                        };
        return past;
}

int kept_add_past(const Kept *kept, uint32_t index, Past *past) {
        Past noted = view(kept, index);

        return past_add(past, &noted);
}
