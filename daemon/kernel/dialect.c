/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Telling the versions of the kernel's tlob monitor apart: evidence in, verdict and sentence out.
 * It looks at nothing itself; kernel/monitor.c gathers the evidence.
 *
 * The same key word, threshold=, means microseconds in one version and nanoseconds in the next. So
 * two kinds of evidence have to agree, the fields of an event and what the monitor says to lines
 * that it must refuse, before anything is written to it.
 */

#include "kernel/dialect.h"

#include "base/sentence.h"

const char *const dialect_probes[DIALECT_N_PROBES] = {
        [PROBE_SHORT] = "p /proc/self/tlobd-none:0x10 0x20 threshold=999",
        [PROBE_PLAIN] = "p /proc/self/tlobd-none:0x10 0x20 threshold=5000",
        [PROBE_NAMED] = "p:tlobd /proc/self/tlobd-none:0x10 0x20 threshold=5000",
        [PROBE_FIRST] = "5000:0x10:0x20:/proc/self/tlobd-none",
        [PROBE_NAMED_SHORT] = "p:tlobd /proc/self/tlobd-none:0x10 0x20 threshold=999",
        [PROBE_NAMED_REMOVE] = "-:tlobd_none",
};

/* What each version answers. PROBE_NAMED is refused by all that know no names. */
static const struct {
        KernelDialect dialect;
        int errors[DIALECT_N_PROBES];
} answers[] = {
        { DIALECT_V1, { EINVAL, EINVAL, EINVAL, ENOENT, EINVAL, EINVAL } },
        { DIALECT_V2, { ENOENT, ENOENT, EINVAL, EINVAL, EINVAL, EINVAL } },
        { DIALECT_V3, { ERANGE, ENOENT, EINVAL, EINVAL, EINVAL, EINVAL } },
};

static KernelDialect judge_answers(const DialectEvidence *e) {
        for (size_t i = 0; i < ELEMENTSOF(answers); i++)
                if (memcmp(e->probe_errors, answers[i].errors, sizeof(answers[i].errors)) == 0)
                        return answers[i].dialect;
        /* No version with names was seen: that it takes them is what it is known by. */
        return e->probe_errors[PROBE_NAMED] == ENOENT ? DIALECT_NAMED : DIALECT_UNKNOWN;
}

static KernelDialect judge_events(const DialectEvidence *e) {
        if (e->has_budget_event)
                return DIALECT_V1;
        if (!e->has_error_event)
                return DIALECT_UNKNOWN;
        if (!e->has_detail_event)
                return DIALECT_NAMED;
        if (e->detail_in_us == e->detail_in_ns)
                return DIALECT_UNKNOWN;
        return e->detail_in_us ? DIALECT_V2 : DIALECT_V3;
}

/*
 * What is published of the version with names leaves open how it is to be driven. It can be asked:
 * the unit of threshold= shows by the least that it takes, a microsecond as in v3, and how a
 * binding is removed by the answer to removing one that is not there. How it shows its bindings is
 * seen with the first one.
 */
static int judge_named(const DialectEvidence *e, char **ret_reason) {
        const char *why = NULL;

        if (e->probe_errors[PROBE_NAMED_SHORT] != ERANGE)
                why = "it accepts a threshold= of 999, so its unit may not be nanoseconds";
        else if (e->probe_errors[PROBE_NAMED_REMOVE] != ENOENT)
                why = "it does not accept '-:NAME', so a binding could not be removed";
        else if (!e->has_change_event)
                why = "it has neither of the events that report the time in each state";
        if (!why)
                return 0;
        return sentence_error(-EOPNOTSUPP, ret_reason,
                              "The kernel's tlob monitor is not used: it is a version with names, "
                              "and %s",
                              why);
}

int dialect_judge(const DialectEvidence *e, KernelDialect *ret, char **ret_reason) {
        KernelDialect by_events, by_answers;

        *ret = DIALECT_UNKNOWN;
        if (!e->has_rv)
                return sentence_error(
                        -ENOENT, ret_reason,
                        "The kernel has no runtime verification (CONFIG_RV), so no tlob monitor");
        if (!e->has_monitor)
                return sentence_error(-ENOENT, ret_reason,
                                      "The kernel's runtime verification has no tlob monitor");

        by_events = judge_events(e);
        by_answers = judge_answers(e);
        if (by_events == DIALECT_UNKNOWN || by_events != by_answers)
                return sentence_error(
                        -EOPNOTSUPP, ret_reason,
                        "The kernel's tlob monitor is not used: by its events it is %s, by its "
                        "answers %s, and a budget in the wrong unit would be off by a factor of "
                        "1000",
                        dialect_to_string(by_events), dialect_to_string(by_answers));

        *ret = by_events == DIALECT_V3 && e->has_parking ? DIALECT_V5 : by_events;
        if (*ret == DIALECT_V1)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's tlob monitor is not used: it is its first "
                                      "version, which reports violations of dead tasks");
        return *ret == DIALECT_NAMED ? judge_named(e, ret_reason) : 0;
}

const char *dialect_to_string(KernelDialect dialect) {
        static const char *const names[] = {
                [DIALECT_UNKNOWN] = "a version that tlobd does not know",
                [DIALECT_V1] = "v1",
                [DIALECT_V2] = "v2 (microseconds)",
                [DIALECT_V3] = "v3 or v4",
                [DIALECT_V5] = "v5 or v6",
                [DIALECT_NAMED] = "a later version with names",
        };

        return names[dialect];
}

#define COMMON_LIMITATIONS                                                                         \
        "In the kernel's monitor, windows that keep their budget leave no trace: their number, "   \
        "times and ends are not known",                                                            \
                "In the kernel's monitor, a task has one window at a time: starts inside it are "  \
                "not measured",                                                                    \
                "In the kernel's monitor, how a window over its budget ended is not known"

#define WAKEUP_LIMITATION                                                                          \
        "In the kernel's monitor, a window ends unmeasured when its task is woken before it sleeps"

#define PARKING_LIMITATION                                                                         \
        "In the kernel's monitor, 64 threads can be measured as long as they live; further "       \
        "threads are neither measured nor counted"

#define OWNER_LIMITATION                                                                           \
        "In the kernel's monitor, a thread belongs to the binding that it runs first: only one "   \
        "binding per program is possible, or a single one if it is on a library; bindings of "     \
        "others count"

const char *const *dialect_limitations(KernelDialect dialect) {
        static const char *const shared_stop[] = {
                COMMON_LIMITATIONS,
                WAKEUP_LIMITATION,
                "In the kernel's monitor, the stop of any binding ends the window of its task",
                "In the kernel's monitor, a task that was over its budget is not measured again "
                "until it reaches a stop",
                "In the kernel's monitor, 64 windows can be open at once; further windows are neither "
                "measured nor counted",
                NULL,
        };
        static const char *const parking[] = {
                COMMON_LIMITATIONS, WAKEUP_LIMITATION, PARKING_LIMITATION, OWNER_LIMITATION, NULL,
        };
        static const char *const named[] = {
                COMMON_LIMITATIONS,
                PARKING_LIMITATION,
                OWNER_LIMITATION,
                NULL,
        };

        switch (dialect) {
        case DIALECT_V5:
                return parking;
        case DIALECT_NAMED:
                return named;
        default:
                return shared_stop;
        }
}
