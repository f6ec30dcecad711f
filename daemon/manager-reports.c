/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What becomes of a report: it is given its binding's name and the task's unit, remembered, and told
 * to journal and bus, in this order and in this place only. The rate limit holds back what is told,
 * never what is counted: each binding has its own, and what was held back is said with its next
 * report, and in an entry of its own when the interval is over.
 */

#include "cgroup.h"
#include "journal.h"
#include "log.h"
#include "manager.h"
#include "sentence.h"

/* Fit to be shown: programs and tasks can have any bytes in their names. */
static int read_executable(uint32_t pid, char **ret) {
        char link[64], path[4096];
        ssize_t n;

        if (pid == 0)
                return -ESRCH;
        (void) snprintf(link, sizeof(link), "/proc/%u/exe", pid);
        n = readlink(link, path, sizeof(path) - 1);
        if (n < 0)
                return -errno;

        path[n] = '\0';
        *ret = text_escape(path);
        return *ret ? 0 : -ENOMEM;
}

/* The record names the task's cgroup, which mostly outlives the task. */
static int find_unit(Manager *m, uint64_t cgroup_id, char **ret) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (m->cgroup_root < 0 || cgroup_id == 0)
                return -ENXIO;
        r = cgroup_id_get_path(m->cgroup_root, cgroup_id, &path);
        if (r < 0)
                return r;
        return cgroup_path_get_unit(path, ret);
}

/* Is it the unit of all tasks that such a binding is for? */
static bool unit_is_one(const char *unit) {
        const char *type = unit ? strrchr(unit, '.') : NULL;

        return type && !streq(type, ".slice") && !unit_name_is_template(unit);
}

static int violation_init(Manager *m, const Binding *binding, const Report *report,
                          Violation *ret) {
        _cleanup_(violation_done) Violation v = {
                .report = *report,
                .backend = binding->backend->ops->name,
                .budget_ns = binding->budget_ns[report->budget],
                .priority = binding->priority,
        };
        int r;

        v.binding = strdup(binding->name);
        if (!v.binding)
                return -ENOMEM;

        r = find_unit(m, report->cgroup_id, &v.unit);
        if (r == -ENOMEM)
                return r;
        /* It has ended meanwhile. */
        if (!v.unit)
                v.unit = strdup(unit_is_one(binding->unit) ? binding->unit : "");
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
        r = cause_make(report->stack, &report->peers, &v.cause);
        if (r < 0)
                return r;
        v.report.stack = NULL;

        *ret = v;
        v = (Violation){};
        return 0;
}

static void announce_suppressed(Manager *m) {
        for (size_t i = 0; i < m->config->bindings.n; i++) {
                Binding *binding = m->config->bindings.items[i];

                if (binding->suppressed_unannounced == 0)
                        continue;
                (void) journal_suppression(binding, binding->suppressed_unannounced);
                binding->suppressed_unannounced = 0;
        }
}

static int on_suppression(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;

        m->suppression = sd_event_source_disable_unref(m->suppression);
        announce_suppressed(m);
        return 0;
}

/* Counts a report that is held back, and sees to it that this is said at the end of the interval. */
static void hold_back(Manager *m, Binding *binding) {
        binding->n_suppressed++;
        binding->suppressed++;
        binding->suppressed_unannounced++;
        m->n_suppressed++;
        if (m->suppression || !m->event)
                return;
        (void) sd_event_add_time_relative(m->event, &m->suppression, CLOCK_MONOTONIC,
                                          m->config->rate_limit_interval_ns / 1000, 0,
                                          on_suppression, m);
}

/* At most burst violations in an interval, which begins with the first of them. */
static bool within_rate_limit(const Config *config, Binding *binding, uint64_t now_ns) {
        if (config->rate_limit_interval_ns == 0 || config->rate_limit_burst == 0)
                return true;

        if (binding->rate_count == 0 ||
            now_ns - binding->rate_begin_ns >= config->rate_limit_interval_ns) {
                binding->rate_begin_ns = now_ns;
                binding->rate_count = 0;
        }
        if (binding->rate_count >= config->rate_limit_burst)
                return false;
        binding->rate_count++;
        return true;
}

/* A completion is told when its violation was. */
static bool is_held_back(Manager *m, Binding *binding, const Report *report) {
        const Violation *violation;

        if (report->type == REPORT_VIOLATION)
                return !within_rate_limit(m->config, binding, report->time_ns);

        violation = violation_log_find(&m->violations, report->id);
        return violation && violation->held_back;
}

void manager_on_report(Manager *m, BackendSlot *slot, const Report *report) {
        _cleanup_(violation_done) Violation violation = {};
        Binding *binding;
        int r;

        binding = report->backend_index < slot->n_bindings ? slot->bindings[report->backend_index]
                                                           : NULL;
        if (!binding)
                return;
        if (report->type == REPORT_INSTANCE) {
                manager_on_instance(m, slot, report);
                return;
        }

        r = violation_init(m, binding, report, &violation);
        if (r < 0) {
                log_error_errno(r, "Failed to report a violation of '%s': %m", binding->name);
                return;
        }

        violation.held_back = is_held_back(m, binding, report);
        if (report->type == REPORT_VIOLATION && !violation.held_back) {
                violation.suppressed = binding->suppressed;
                binding->suppressed = 0;
        }
        if (report->type == REPORT_VIOLATION && violation_log_add(&m->violations, &violation) < 0)
                log_oom();

        if (violation.held_back) {
                if (report->type == REPORT_VIOLATION)
                        hold_back(m, binding);
                return;
        }
        (void) journal_report(&violation);
        bus_emit_report(m->bus, &violation);
}

const Violation *manager_find_violation(const Manager *m, uint64_t id) {
        return violation_log_find(&m->violations, id);
}

void manager_check_lost(Manager *m, BackendSlot *slot) {
        uint64_t lost = slot->ops->lost(slot->backend), n = lost - slot->lost;

        if (n == 0)
                return;
        slot->lost = lost;
        m->n_lost += n;
        (void) journal_loss(n);
        bus_emit_records_lost(m->bus, n);
}

typedef struct Dispatch {
        Manager *manager;
        BackendSlot *slot;
} Dispatch;

static void on_report(const Report *report, void *userdata) {
        Dispatch *dispatch = userdata;

        manager_on_report(dispatch->manager, dispatch->slot, report);
}

void manager_dispatch(Manager *m, BackendSlot *slot) {
        Dispatch dispatch = { .manager = m, .slot = slot };
        int r;

        r = slot->ops->dispatch(slot->backend, on_report, &dispatch);
        if (r < 0)
                log_error_errno(r, "Failed to read the reports of back end '%s': %m",
                                slot->ops->name);
        manager_check_lost(m, slot);
}
