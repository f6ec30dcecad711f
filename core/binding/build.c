/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Which build is measured now, the file says. */

#include "binding/build.h"

#define WORSE_PART 50 /* of the windows: 2 of 100 */

const PastBuild *binding_add_build(const Binding *binding, Histogram *lengths) {
        const PastBuild *builds = binding->measurement.past.builds, *before = &builds[0];
        const char *id = binding->resolved.build_id;

        if (id && builds[0].id && streq(builds[0].id, id)) {
                histogram_add(lengths, builds[0].lengths);
                before = &builds[1];
        } else if (id && builds[1].id && streq(builds[1].id, id))
                histogram_add(lengths, builds[1].lengths);
        return id && before->id ? before : NULL;
}

/* The bucket that the 99th percentile is in. */
static size_t find_p99(const Histogram *lengths, uint64_t n) {
        uint64_t above = 0;
        size_t bucket = TLOB_BUCKETS - 1;

        for (; bucket > 0; bucket--) {
                above += lengths->counts[bucket];
                if (above > n / 100)
                        break;
        }
        return bucket;
}

bool lengths_are_worse(const Histogram *before, const Histogram *now, uint64_t *ret_before_ns,
                       uint64_t *ret_now_ns) {
        uint64_t n_before = histogram_count(before, 0), n_now = histogram_count(now, 0), before_ns,
                 now_ns;
        size_t p99;

        if (n_before < BUILD_WINDOWS_MIN || n_now < BUILD_WINDOWS_MIN)
                return false;
        p99 = find_p99(before, n_before);
        before_ns = histogram_upper_bound(p99);
        now_ns = histogram_upper_bound(find_p99(now, n_now));
        if (histogram_count(now, p99 + 1) <= n_now / WORSE_PART ||
            now_ns < before_ns + before_ns / 4)
                return false;
        *ret_before_ns = before_ns;
        *ret_now_ns = now_ns;
        return true;
}
