/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "report/past.h"

#include <stdbool.h>

#include "base/strings.h"

static void build_done(PastBuild *build) {
        free(build->id);
        histogram_free(build->lengths);
        *build = (PastBuild) {};
}

void past_done(Past *past) {
        for (size_t i = 0; i < PAST_N_BUILDS; i++)
                build_done(&past->builds[i]);
        histogram_free(past->lengths);
        free(past->told_of);
        *past = (Past) {};
}

static int add_lengths(Past *past, const Histogram *lengths) {
        if (!past->lengths)
                past->lengths = calloc(1, sizeof(*past->lengths));
        if (!past->lengths)
                return -ENOMEM;
        histogram_add(past->lengths, lengths);
        return 0;
}

static int build_init(PastBuild *ret, const char *id, const Histogram *lengths) {
        PastBuild build = { .id = strdup(id), .lengths = malloc(sizeof(*build.lengths)) };

        if (!build.id || !build.lengths) {
                build_done(&build);
                return -ENOMEM;
        }
        *build.lengths = *lengths;
        *ret = build;
        return 0;
}

static bool build_is(const PastBuild *build, const char *id) {
        return build->id && streq(build->id, id);
}

/* It is the last one from now on. */
static int add_build(Past *past, const char *id, const Histogram *lengths) {
        PastBuild *builds = past->builds, before = builds[0], build;
        int r;

        if (build_is(&builds[0], id)) {
                histogram_add(builds[0].lengths, lengths);
                return 0;
        }
        if (build_is(&builds[1], id)) {
                histogram_add(builds[1].lengths, lengths);
                builds[0] = builds[1];
                builds[1] = before;
                return 0;
        }
        r = build_init(&build, id, lengths);
        if (r < 0)
                return r;
        build_done(&builds[1]);
        builds[1] = before;
        builds[0] = build;
        return 0;
}

/* The order stays, and what is known of two newer ones. */
static int add_former_build(Past *past, const char *id, const Histogram *lengths) {
        for (size_t i = 0; i < PAST_N_BUILDS; i++) {
                if (!past->builds[i].id)
                        return build_init(&past->builds[i], id, lengths);
                if (build_is(&past->builds[i], id)) {
                        histogram_add(past->builds[i].lengths, lengths);
                        return 0;
                }
        }
        return 0;
}

static int add_windows(Past *past, const char *id, const Histogram *lengths,
                       int (*add_to_builds)(Past *past, const char *id, const Histogram *lengths)) {
        int r;

        if (histogram_count(lengths, 0) == 0)
                return 0;
        r = add_lengths(past, lengths);
        return r < 0 || !id ? r : add_to_builds(past, id, lengths);
}

int past_add_lengths(Past *past, const char *build_id, const Histogram *lengths) {
        return add_windows(past, build_id, lengths, add_build);
}

int past_add_former(Past *past, const char *build_id, const Histogram *lengths) {
        return add_windows(past, build_id, lengths, add_former_build);
}

int past_add(Past *past, const Past *other) {
        int r = 0;

        statistics_add(&past->statistics, &other->statistics);
        if (other->lengths)
                r = add_lengths(past, other->lengths);
        for (size_t i = PAST_N_BUILDS; i-- > 0 && r >= 0;)
                if (other->builds[i].id)
                        r = add_build(past, other->builds[i].id, other->builds[i].lengths);
        if (other->told_of && r >= 0)
                r = free_and_strdup(&past->told_of, other->told_of);
        return r;
}
