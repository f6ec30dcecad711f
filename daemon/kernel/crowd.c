/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The monitor has slots for so many threads, and leaves out all others without a word. So how many
 * there are is looked at from here: when a binding is set, and every few seconds after that,
 * because nothing tells of threads that begin. It is the one thing here that is asked again and
 * again, and only while the monitor has a binding of ours.
 *
 * When there are too many, the manager is advised to move the binding that most of them may run,
 * one each time. One that has to stay is still measured, and the number is told.
 */

#include "kernel/crowd.h"

#include <limits.h>
#include <sys/timerfd.h>
#include <syslog.h>

#include "base/sentence.h"
#include "kernel/census.h"

#define INTERVAL_SEC 5

/* What is in the monitor, ours first, and whose it is; NULL for somebody else's. */
typedef struct Crowd {
        KernelFile *files;
        KernelEntry **entries;
        unsigned *each;
        size_t n;
        unsigned total;
} Crowd;

static void crowd_done(Crowd *crowd) {
        free(crowd->files);
        free(crowd->entries);
        free(crowd->each);
        *crowd = (Crowd) {};
}

static int crowd_count(const KernelContext *c, unsigned max_threads, Crowd *ret,
                       char **ret_reason) {
        size_t max = c->n_entries + c->foreign.n;
        _cleanup_(crowd_done) Crowd crowd = {
                .files = calloc(max, sizeof(*crowd.files)),
                .entries = calloc(max, sizeof(*crowd.entries)),
                .each = calloc(max, sizeof(*crowd.each)),
        };
        int r;

        if (!crowd.files || !crowd.entries || !crowd.each)
                return -ENOMEM;
        for (size_t i = 0; i < c->n_entries; i++) {
                KernelEntry *entry = &c->entries[i];

                if (!entry->used || entry->retired || entry->given_up)
                        continue;
                crowd.entries[crowd.n] = entry;
                crowd.files[crowd.n++] = entry->file;
        }
        for (size_t i = 0; i < c->foreign.n; i++)
                crowd.files[crowd.n++] = c->foreign_files[i];
        r = kernel_census(crowd.files, crowd.n, max_threads, crowd.each, &crowd.total, ret_reason);
        if (r < 0)
                return r;
        *ret = crowd;
        crowd = (Crowd) {};
        return 0;
}

int kernel_crowd_check(const KernelContext *c, char **ret_reason) {
        _cleanup_(crowd_done) Crowd crowd = {};
        int r;

        r = crowd_count(c, KERNEL_SLOTS, &crowd, ret_reason);
        if (r < 0 || crowd.total <= KERNEL_SLOTS)
                return r;
        return sentence_error(-EOPNOTSUPP, ret_reason,
                              "The kernel's monitor has room for %i threads, and more than that "
                              "may run the code of its bindings with this one",
                              KERNEL_SLOTS);
}

int kernel_crowd_watch(KernelContext *c) {
        static const struct itimerspec interval = {
                .it_value.tv_sec = INTERVAL_SEC,
                .it_interval.tv_sec = INTERVAL_SEC,
        };

        return timerfd_settime(c->crowd_fd, 0, &interval, NULL) < 0 ? -errno : 0;
}

static void unwatch(KernelContext *c) {
        (void) timerfd_settime(c->crowd_fd, 0, &(struct itimerspec) {}, NULL);
}

static KernelEntry *find_largest(const Crowd *crowd) {
        size_t largest = crowd->n;

        for (size_t i = 0; i < crowd->n; i++)
                if (crowd->entries[i] && !crowd->entries[i]->crowded &&
                    (largest == crowd->n || crowd->each[i] > crowd->each[largest]))
                        largest = i;
        return largest < crowd->n ? crowd->entries[largest] : NULL;
}

static void look(KernelContext *c) {
        _cleanup_(crowd_done) Crowd crowd = {};
        _cleanup_free_ char *why = NULL;
        KernelEntry *entry;

        if (crowd_count(c, UINT_MAX, &crowd, NULL) < 0)
                return;
        if (crowd.total <= KERNEL_SLOTS) {
                for (size_t i = 0; i < crowd.n; i++)
                        if (crowd.entries[i])
                                crowd.entries[i]->crowded = false;
                return;
        }
        if (crowd.total > c->n_threads_max)
                c->n_threads_max = crowd.total;
        entry = find_largest(&crowd);
        if (!entry)
                return;
        entry->crowded = true;
        why = sentence_make("The kernel's monitor has room for %i threads, and %u may run the code "
                            "of its bindings now",
                            KERNEL_SLOTS, crowd.total);
        if (why)
                kernel_context_advise(c, (uint32_t) (entry - c->entries), why);
}

void kernel_crowd_run(KernelContext *c) {
        uint64_t n;

        if (read(c->crowd_fd, &n, sizeof(n)) != sizeof(n))
                return;
        if (kernel_context_has_entries(c))
                look(c);
        else
                unwatch(c);
}
