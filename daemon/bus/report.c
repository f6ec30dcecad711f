/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Reports as D-Bus messages: the signals Violation and Completed, and the entries of
 * GetViolations(). The members are documented in org.tlob1.xml. A broadcast carries no addresses,
 * no arguments and no stacks: every peer on the bus can read it.
 */

#include "bus/internal.h"
#include "log.h"
#include "tlob-bus.h"

static int append_exceeded(sd_bus_message *m, unsigned exceeded) {
        int r;

        r = sd_bus_message_open_container(m, 'e', "sv");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "s", "exceeded");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, 'v', "as");
        if (r < 0)
                return r;
        r = sd_bus_message_open_container(m, 'a', "s");
        if (r < 0)
                return r;
        for (int i = 0; i < TLOB_N_BUDGETS; i++)
                if (exceeded & (1U << i)) {
                        r = sd_bus_message_append(m, "s", budget_to_string((enum tlob_budget) i));
                        if (r < 0)
                                return r;
                }
        for (int i = 0; i < 3; i++) {
                r = sd_bus_message_close_container(m);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int append_number(sd_bus_message *m, const char *key, uint64_t value) {
        return sd_bus_message_append(m, "{sv}", key, "t", value);
}

/* Of what there may be nothing. */
static int append_amount(sd_bus_message *m, const char *key, uint64_t value) {
        return value > 0 ? append_number(m, key, value) : 0;
}

static int append_string(sd_bus_message *m, const char *key, const char *value) {
        return value && *value ? sd_bus_message_append(m, "{sv}", key, "s", value) : 0;
}

static int append_cause(sd_bus_message *m, const Cause *cause) {
        int r;

        r = append_string(m, "blocked_in", cause->blocked_in);
        if (r < 0)
                return r;
        r = append_string(m, "woken_by", cause->woken_by);
        if (r < 0)
                return r;
        return append_string(m, "preempted_by", cause->preempted_by);
}

/* The details, without the array around them. */
static int append_detail_entries(sd_bus_message *m, const Violation *v) {
        const Report *report = &v->report;
        int r;

        r = append_number(m, "id", report->id);
        if (r < 0)
                return r;
        r = append_number(m, "time_ns", report->time_ns);
        if (r < 0)
                return r;
        r = append_number(m, "realtime_ns", v->realtime_ns);
        if (r < 0)
                return r;
        r = append_string(m, "budget", budget_to_string(report->budget));
        if (r < 0)
                return r;
        r = append_string(m, "state", tlob_state_to_string(report->state));
        if (r < 0)
                return r;
        if (report->pid) {
                r = sd_bus_message_append(m, "{sv}", "pid", "u", report->pid);
                if (r < 0)
                        return r;
        }
        r = append_string(m, "comm", v->comm);
        if (r < 0)
                return r;
        r = append_string(m, "executable", v->executable);
        if (r < 0)
                return r;
        r = append_string(m, "backend", v->backend);
        if (r < 0)
                return r;
        r = append_cause(m, &v->cause);
        if (r < 0)
                return r;
        r = append_amount(m, "stolen_ns", report->stolen_ns);
        if (r < 0)
                return r;
        r = append_amount(m, "probes_ns", report->probes_ns);
        if (r < 0)
                return r;
        r = append_amount(m, "suppressed", v->suppressed);
        if (r < 0)
                return r;

        if (report->type == REPORT_COMPLETION) {
                r = append_exceeded(m, report->exceeded);
                if (r < 0)
                        return r;
                return append_string(m, "end", tlob_end_to_string(report->end));
        }
        return report->late_ns != STATISTIC_UNKNOWN ? append_number(m, "late_ns", report->late_ns)
                                                    : 0;
}

int bus_append_details(sd_bus_message *m, const Violation *violation) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        r = append_detail_entries(m, violation);
        if (r < 0)
                return r;
        return sd_bus_message_close_container(m);
}

/* How long a window of the log took that has ended. */
static int append_length(sd_bus_message *m, const Violation *v) {
        int r;

        if (!v->ended)
                return 0;
        r = sd_bus_message_append(m, "{sv}{sv}{sv}{sv}", "took_ns", "t", v->took_ns,
                                  "took_running_ns", "t", v->took_spent_ns[TLOB_RUNNING],
                                  "took_waiting_ns", "t", v->took_spent_ns[TLOB_WAITING],
                                  "took_sleeping_ns", "t", v->took_spent_ns[TLOB_SLEEPING]);
        if (r >= 0)
                r = append_amount(m, "took_stolen_ns", v->took_stolen_ns);
        if (r >= 0)
                r = append_amount(m, "took_probes_ns", v->took_probes_ns);
        return r < 0 ? r : append_string(m, "end", tlob_end_to_string(v->end));
}

int bus_append_violation(sd_bus_message *m, const Violation *v) {
        const Report *report = &v->report;
        int r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "{sv}{sv}{sv}{sv}{sv}{sv}{sv}{sv}", "binding", "s", v->binding,
                                  "unit", "s", v->unit, "tid", "u", report->tid, "budget_ns", "t",
                                  v->budget_ns, "elapsed_ns", "t", report->elapsed_ns, "running_ns",
                                  "t", report->spent_ns[TLOB_RUNNING], "waiting_ns", "t",
                                  report->spent_ns[TLOB_WAITING], "sleeping_ns", "t",
                                  report->spent_ns[TLOB_SLEEPING]);
        if (r < 0)
                return r;
        r = append_detail_entries(m, v);
        if (r < 0)
                return r;
        r = append_length(m, v);
        if (r < 0)
                return r;
        return sd_bus_message_close_container(m);
}

static int report_signal(Bus *bus, const Violation *v, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        const Report *report = &v->report;
        int r;

        r = sd_bus_message_new_signal(bus->bus, &m, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE,
                                      report->type == REPORT_VIOLATION ? "Violation" : "Completed");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "ssuttttt", v->binding, v->unit, report->tid, v->budget_ns,
                                  report->elapsed_ns, report->spent_ns[TLOB_RUNNING],
                                  report->spent_ns[TLOB_WAITING], report->spent_ns[TLOB_SLEEPING]);
        if (r < 0)
                return r;
        r = bus_append_details(m, v);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

void bus_emit_report(const Violation *violation, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        Bus *bus = userdata;
        int r;

        if (!bus_has_room(bus, true))
                return;
        r = report_signal(bus, violation, &m);
        if (r >= 0)
                r = sd_bus_send(bus->bus, m, NULL);
        if (r < 0)
                log_warning_errno(r, "Failed to send a signal about '%s', ignoring: %m",
                                  violation->binding);
}
