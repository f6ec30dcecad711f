/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What becomes of a report: it is given its binding's name and the task's unit, remembered, and
 * told to journal and bus, in this order and in this place only. Rate limits hold back what is
 * told, never what is counted: each binding has its own, and all together have one. What was held
 * back is said with the binding's next report, and in an entry of its own when the interval is
 * over.
 *
 * The back end has limits too, of more reports: what is beyond those costs nobody anything but a
 * counter. What is between the two is remembered, as "tlobctl violations" shows it.
 */

#include "manager/reports.h"

#include "base/clock.h"
#include "base/program.h"
#include "base/sentence.h"
#include "base/unit-name.h"
#include "cgroup.h"
#include "journal.h"
#include "log.h"
#include "manager/action.h"
#include "manager/tolerance.h"
#include "manager/units.h"

/* So many times the rate limit comes out of the back end. */
#define REMEMBERED_PER_TOLD 10

/* Fit to be shown: programs and tasks can have any bytes in their names. */
static int read_executable(uint32_t pid, char **ret) {
        _cleanup_free_ char *path = NULL;
        int r;

        r = program_of_process(pid, &path);
        if (r < 0)
                return r;
        *ret = text_escape(path);
        return *ret ? 0 : -ENOMEM;
}

/*
 * The record names the task's cgroup, which mostly outlives the task: by its number, of which only
 * root can learn the path, or by the path.
 */
static int find_cgroup(Manager *m, const Report *report, char **ret) {
        if (report->cgroup_path)
                return free_and_strdup(ret, report->cgroup_path);
        if (m->cgroup_root < 0 || report->cgroup_id == 0)
                return -ENXIO;
        return cgroup_id_get_path(m->cgroup_root, report->cgroup_id, ret);
}

static int find_unit(Manager *m, const Report *report, char **ret) {
        _cleanup_free_ char *cgroup = NULL;
        int r;

        r = find_cgroup(m, report, &cgroup);
        return r < 0 ? r : manager_unit_of_cgroup(m, cgroup, ret);
}

/* The cgroup is looked for only where it has to do with the cause. */
static int find_cause(Manager *m, const Report *report, const Stack *stack, Cause *ret) {
        const Peer *by = &report->peers.preempted_by;
        _cleanup_free_ char *cgroup = NULL, *unit = NULL;
        _cleanup_(cause_done) Cause cause = {};
        int r;

        r = cause_make(stack, &report->peers, &cause);
        if (r >= 0 && by->is_known && by->kind == TLOB_PEER_QUOTA && m->cgroup_root >= 0 &&
            find_cgroup(m, report, &cgroup) >= 0)
                r = cgroup_path_get_limiting_unit(m->cgroup_root, cgroup, &unit);
        if (r >= 0 && unit)
                r = cause_set_quota_of(&cause, unit);
        if (r < 0)
                return r;
        *ret = cause;
        cause = (Cause) {};
        return 0;
}

/* Is it the unit of all tasks that such a binding is for? */
static bool unit_is_one(const char *unit) {
        const char *type = unit ? strrchr(unit, '.') : NULL;

        return type && !streq(type, ".slice") && !unit_name_is_template(unit);
}

/* A time of the monotonic clock, which is not long ago, on the clock of the day. */
static uint64_t realtime_of(uint64_t time_ns) {
        uint64_t now = now_ns(), realtime_ns = clock_read_ns(CLOCK_REALTIME);

        return now > time_ns ? realtime_ns - (now - time_ns) : realtime_ns;
}

static int violation_init(Manager *m, const Binding *binding, const Report *report,
                          Violation *ret) {
        _cleanup_(violation_done) Violation v = {
                .report = *report,
                .backend = binding->measurement.backend->ops->name,
                .budget_ns = binding->budget_ns[report->budget],
                .realtime_ns = realtime_of(report->time_ns),
                .priority = binding->priority,
        };
        int r;

        v.binding = strdup(binding->name);
        if (!v.binding)
                return -ENOMEM;

        r = find_unit(m, report, &v.unit);
        if (r == -ENOMEM)
                return r;
        /* It has ended meanwhile. */
        if (!v.unit)
                v.unit = strdup(unit_is_one(binding->unit) ? binding_unit_name(binding) : "");
        if (!v.unit)
                return -ENOMEM;

        if (*report->comm) {
                v.comm = text_escape(report->comm);
                if (!v.comm)
                        return -ENOMEM;
        }
        r = read_executable(report->pid, &v.executable);
        if (r == -ENOMEM)
                return r;
        r = find_cause(m, report, report->stack, &v.cause);
        if (r < 0)
                return r;
        v.report.stack = NULL;
        v.report.cgroup_path = NULL;

        *ret = v;
        v = (Violation) {};
        return 0;
}

static BindingLimit *kept_limit(const Binding *binding) {
        Backend *backend = binding->measurement.backend;

        if (!backend || !backend->ops->kept_limit)
                return NULL;
        return backend->ops->kept_limit(backend, binding->measurement.index);
}

void manager_note_limit(const Binding *binding) {
        BindingLimit *kept = kept_limit(binding);

        if (kept)
                *kept = binding->limit;
}

void manager_announce_suppressed(Manager *m, Binding *binding) {
        Statistics statistics;

        if (binding->limit.unannounced == 0 && binding->n_told == 0)
                return;
        /* Counts what the back end has held back. */
        (void) manager_get_statistics(m, binding, &statistics);
        binding->n_told = 0;
        if (binding->limit.unannounced == 0)
                return;
        (void) journal_suppression(binding, binding->limit.unannounced);
        binding->limit.unannounced = 0;
        manager_note_limit(binding);
}

static int on_suppression(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        m->suppression = sd_event_source_disable_unref(m->suppression);
        for (size_t i = 0; i < m->config->bindings.n; i++)
                manager_announce_suppressed(m, m->config->bindings.items[i]);
        return 0;
}

static void announce_later(Manager *m) {
        if (m->suppression || !m->event)
                return;
        (void) sd_event_add_time_relative(m->event, &m->suppression, CLOCK_MONOTONIC,
                                          m->config->rate_limit_interval_ns / 1000, 0,
                                          on_suppression, m);
}

/*
 * Counts reports that are held back, and sees to it that this is said at the end of the interval.
 */
static void hold_back(Manager *m, Binding *binding, uint64_t n) {
        binding->limit.n_suppressed += n;
        binding->limit.suppressed += n;
        binding->limit.unannounced += n;
        m->n_suppressed += n;
        manager_note_limit(binding);
        announce_later(m);
}

void manager_count_suppressed(Manager *m, Binding *binding, const Statistics *statistics) {
        uint64_t counted = statistics->counters.suppressed, seen = binding->limit.seen;

        if (counted == STATISTIC_UNKNOWN || counted <= seen)
                return;
        binding->limit.seen = counted;
        hold_back(m, binding->latter ?: binding, counted - seen);
        if (binding->latter)
                manager_note_limit(binding);
}

void manager_take_over_limit(Manager *m, Binding *binding) {
        const BindingLimit *kept = kept_limit(binding);
        BindingLimit *limit = &binding->limit;

        if (!kept)
                return;
        if (limit->rate.count == 0)
                limit->rate = kept->rate;
        limit->n_suppressed += kept->n_suppressed;
        limit->suppressed += kept->suppressed;
        limit->unannounced += kept->unannounced;
        limit->seen = kept->seen;
        m->n_suppressed += kept->n_suppressed;
        manager_note_limit(binding);
        if (limit->unannounced > 0)
                announce_later(m);
}

void manager_limit_reports(Manager *m) {
        const Config *c = m->config;
        const ReportLimit limit = {
                .interval_ns = c->rate_limit_interval_ns,
                .n = (uint64_t) c->rate_limit_burst * REMEMBERED_PER_TOLD,
                .n_overall = (uint64_t) c->overall_rate_limit_burst * REMEMBERED_PER_TOLD,
        };

        backends_limit_reports(m->backends, &limit);
}

/*
 * A violation that was told, by the number of its window. Numbers are given one after the other, so
 * that it is forgotten when another one is told TOLD_MAX numbers later; its completion is held back
 * then.
 */
typedef struct Told {
        uint64_t id; /* 0: none */

        /* The one that was broken: it may be another by the time of the completion. */
        uint64_t budget_ns;
} Told;

#define TOLD_MAX 8192

static void told_add(Manager *m, const Violation *violation) {
        if (!m->told)
                m->told = calloc(TOLD_MAX, sizeof(*m->told));
        if (!m->told) {
                log_oom();
                return;
        }
        m->told[violation->report.id % TOLD_MAX] = (Told) {
                .id = violation->report.id,
                .budget_ns = violation->budget_ns,
        };
}

/* A completion is told when its violation was. Returns whether it was, and forgets it. */
static bool told_take(Manager *m, uint64_t id, uint64_t *ret_budget_ns) {
        Told *told = m->told ? &m->told[id % TOLD_MAX] : NULL;

        if (!told || told->id != id)
                return false;
        *ret_budget_ns = told->budget_ns;
        *told = (Told) {};
        return true;
}

static void tell(Manager *m, const Violation *violation) {
        (void) journal_report(violation);
        manager_tell(m, report, violation);
}

/* The limit of all silences no binding: the first of each in an interval is told. */
static bool admit(Manager *m, Binding *binding, uint64_t time_ns) {
        const Config *c = m->config;
        RateLimit *rate = &binding->limit.rate;

        return rate_limit_admit(rate, c->rate_limit_interval_ns, c->rate_limit_burst, time_ns) &&
               (rate_limit_admit(&m->overall_rate, c->rate_limit_interval_ns,
                                 c->overall_rate_limit_burst, time_ns) ||
                rate->count == 1);
}

/*
 * A back end lets more through than is told here. So if it was the first to hold something back,
 * that was for what other bindings reported, and the rest of the interval.
 */
static void look_for_suppressed(Manager *m, Binding *binding) {
        bool is_first = binding->limit.rate.count == 1;
        Statistics statistics;

        binding->n_told++;
        if (is_first)
                announce_later(m);
        if (is_first || binding->limit.suppressed > 0)
                (void) manager_get_statistics(m, binding, &statistics);
}

static void on_violation(Manager *m, Binding *binding, Violation *violation) {
        violation->held_back = !admit(m, binding, violation->report.time_ns);
        if (!violation->held_back) {
                look_for_suppressed(m, binding);
                violation->suppressed = binding->limit.suppressed;
                binding->limit.suppressed = 0;
        }
        if (violation_log_add(&m->violations, violation) < 0)
                log_oom();
        if (violation->held_back) {
                hold_back(m, binding, 1);
                return;
        }
        told_add(m, violation);
        tell(m, violation);
        manager_note_limit(binding);
}

/* Also when its violation was held back: the log has it. */
static void complete_log(Manager *m, const Report *report) {
        _cleanup_(cause_done) Cause cause = {};

        if (!violation_log_find(&m->violations, report->id))
                return;
        if (find_cause(m, report, NULL, &cause) < 0)
                log_oom();
        violation_log_complete(&m->violations, report, &cause);
}

/* While a binding moves: a violation that is to be taken from its other place. */
static bool is_of_other_place(const Manager *m, const Binding *binding, const Backend *backend,
                              const Report *report) {
        bool is_after = report->time_ns >= m->move.at_ns;

        return m->move.binding == binding && report->type == REPORT_VIOLATION &&
               (backend == m->move.from) == is_after;
}

void manager_on_report(const Report *report, const Backend *backend, Binding *binding,
                       void *userdata) {
        _cleanup_(violation_done) Violation violation = {};
        Manager *m = userdata;
        uint64_t budget_ns = 0;
        int r;

        if (binding->lent.user) {
                manager_on_lent_report(m, binding, report);
                return;
        }
        if (binding->latter)
                binding = binding->latter;
        if (is_of_other_place(m, binding, backend, report))
                return;
        if (report->type == REPORT_INSTANCE) {
                templates_on_instance(m->templates, binding, report);
                return;
        }

        if (report->type == REPORT_COMPLETION) {
                complete_log(m, report);
                if (!told_take(m, report->id, &budget_ns))
                        return;
        }

        r = violation_init(m, binding, report, &violation);
        if (r < 0) {
                log_error_errno(r, "Failed to report a violation of '%s': %m", binding->name);
                return;
        }
        if (report->type == REPORT_VIOLATION) {
                on_violation(m, binding, &violation);
                manager_act(m, binding, &violation);
                manager_use_tolerance(m, binding);
                return;
        }
        violation.budget_ns = budget_ns;
        tell(m, &violation);
}

const Violation *manager_find_violation(const Manager *m, uint64_t id) {
        return violation_log_find(&m->violations, id);
}

size_t manager_count_violations(const Manager *m) {
        return m->violations.n;
}

const Violation *manager_get_violation(const Manager *m, size_t i) {
        return violation_log_get(&m->violations, i);
}

void manager_on_loss(uint64_t n, void *userdata) {
        Manager *m = userdata;

        (void) journal_loss(n);
        manager_tell(m, records_lost, n);
}
