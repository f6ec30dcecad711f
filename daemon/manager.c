/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The life of the daemon's state: made, started, asked, freed. What happens to bindings is in
 * manager-bindings.c, what happens to reports in manager-reports.c.
 *
 * Everything runs in one thread, from one event loop. A daemon without bindings has nothing in the
 * kernel, and nothing to wake up for but its watchdog.
 */

#include "manager.h"

#include <signal.h>
#include <systemd/sd-daemon.h>

#include "cgroup.h"
#include "log.h"
#include "sentence.h"

int manager_new(const BackendOps *const *ops, const char *const *directories, Manager **ret) {
        _cleanup_(manager_freep) Manager *m = NULL;

        m = calloc(1, sizeof(*m));
        if (!m)
                return -ENOMEM;
        *m = (Manager){ .directories = directories, .cgroup_root = -EBADF };

        for (size_t i = 0; ops[i] && i < BACKENDS_MAX; i++) {
                _cleanup_free_ char *reason = NULL;

                int r = ops[i]->probe(&reason);

                if (r >= 0) {
                        m->slots[m->n_slots++] = (BackendSlot){
                                .ops = ops[i],
                                .unfinished = r > 0,
                        };
                        continue;
                }
                if (!reason && asprintf(&reason, "%s", strerror(-r)) < 0)
                        return -ENOMEM;
                m->absent[m->n_absent++] = (BackendAbsence){
                        .ops = ops[i],
                        .error = r,
                        .reason = TAKE_PTR(reason),
                };
        }

        *ret = TAKE_PTR(m);
        return 0;
}

Manager *manager_free(Manager *m) {
        if (!m)
                return NULL;

        manager_free_templates(m);
        for (size_t i = 0; m->config && i < m->config->bindings.n; i++)
                manager_detach_binding(m, m->config->bindings.items[i]);
        for (size_t i = 0; i < m->n_slots; i++) {
                sd_event_source_disable_unref(m->slots[i].source);
                if (m->slots[i].backend)
                        m->slots[i].ops->free(m->slots[i].backend);
                free(m->slots[i].bindings);
                free(m->slots[i].failure);
        }

        sd_event_source_disable_unref(m->suppression);
        sd_event_source_disable_unref(m->linger);
        violation_log_done(&m->violations);
        units_free(m->units);
        bus_free(m->bus);
        config_free(m->config);
        safe_close(m->cgroup_root);
        for (size_t i = 0; i < m->n_absent; i++)
                free(m->absent[i].reason);
        sd_event_unref(m->event);
        free(m);
        return NULL;
}

static int on_terminate(sd_event_source *source, const struct signalfd_siginfo *si,
                        void *userdata) {
        log_info("Received %s, stopping.", strsignal((int) si->ssi_signo));
        return sd_event_exit(sd_event_source_get_event(source), 0);
}

static int on_hangup(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata) {
        (void) manager_reload(userdata);
        return 0;
}

static int start_event(Manager *m) {
        static const struct {
                int signal;
                sd_event_signal_handler_t handler;
        } signals[] = {
                { SIGTERM, on_terminate },
                { SIGINT, on_terminate },
                { SIGHUP, on_hangup },
        };
        sigset_t set;
        int r;

        r = sd_event_default(&m->event);
        if (r < 0)
                return log_error_errno(r, "Failed to set up the event loop: %m");

        (void) sigemptyset(&set);
        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                (void) sigaddset(&set, signals[i].signal);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return log_error_errno(errno, "Failed to block signals: %m");

        for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
                r = sd_event_add_signal(m->event, NULL, signals[i].signal, signals[i].handler, m);
                if (r < 0)
                        return log_error_errno(r, "Failed to watch for signals: %m");
        }

        r = sd_event_set_watchdog(m->event, true);
        if (r < 0)
                return log_error_errno(r, "Failed to set up the watchdog: %m");
        return 0;
}

static int start_bus(Manager *m) {
        _cleanup_(sd_bus_unrefp) sd_bus *bus = NULL;
        int r;

        r = sd_bus_open_system(&bus);
        if (r < 0)
                return log_error_errno(r, "Failed to connect to the system bus: %m");
        /* Without a bus nobody can reach us: systemd starts us again, and the bus is back then. */
        r = sd_bus_set_exit_on_disconnect(bus, true);
        if (r < 0)
                return log_error_errno(r, "Failed to watch the connection to the bus: %m");
        r = bus_new(m, bus, &m->bus);
        if (r < 0)
                return log_error_errno(r, "Failed to set up the bus objects: %m");
        r = bus_start(m->bus, m->event);
        if (r < 0)
                return log_error_errno(r, "Failed to export the bus objects: %m");
        return 0;
}

int manager_start(Manager *m) {
        int r;

        m->cgroup_root = cgroup_open_root();

        r = start_event(m);
        if (r < 0)
                return r;
        r = start_bus(m);
        if (r < 0)
                return r;
        r = units_new(bus_get_connection(m->bus), &manager_units_handlers, m, &m->units);
        if (r < 0)
                return log_error_errno(r, "Failed to follow systemd's units: %m");

        for (size_t i = 0; i < m->n_absent; i++)
                (void) log_full_errno(m->n_slots == 0 ? LOG_ERR : LOG_DEBUG, 0, "%s.",
                                      m->absent[i].reason);
        if (m->n_slots == 0)
                log_error("Nothing can be measured here.");
        r = config_new(&m->config);
        if (r < 0)
                return log_oom();
        r = manager_reload(m);
        return r < 0 ? r : 0;
}

const BindingTable *manager_bindings(const Manager *m) {
        return &m->config->bindings;
}

Binding *manager_find_binding(Manager *m, const char *name, char **ret_error) {
        Binding *binding;

        binding = binding_table_get(&m->config->bindings, name);
        if (!binding)
                (void) sentence_error(
                        -ENXIO, ret_error,
                        "There is no binding '%s'; 'tlobctl list-bindings' lists them", name);
        return binding;
}

int manager_get_statistics(Manager *m, const Binding *binding, Statistics *ret) {
        Statistics statistics = {};

        if (binding->backend) {
                int r = binding->backend->ops->statistics(binding->backend, binding->backend_index,
                                                          &statistics);

                if (r < 0)
                        return r;
        }
        statistics_add(&statistics, &binding->past);
        *ret = statistics;
        return 0;
}

int manager_get_histogram(Manager *m, const Binding *binding, Histogram *ret) {
        Histogram histogram = {};

        if (binding->backend) {
                const BackendOps *ops = binding->backend->ops;
                int r = -EOPNOTSUPP;

                if (ops->histogram)
                        r = ops->histogram(binding->backend, binding->backend_index, &histogram);
                if (r < 0)
                        return r;
        }
        if (binding->past_lengths)
                histogram_add(&histogram, binding->past_lengths);
        *ret = histogram;
        return 0;
}

int manager_reset_statistics(Manager *m, Binding *binding) {
        binding->past = (Statistics){};
        binding->past_lengths = histogram_free(binding->past_lengths);
        binding->n_suppressed = 0;
        if (!binding->backend)
                return 0;
        return binding->backend->ops->reset_statistics(binding->backend, binding->backend_index);
}

int manager_get_totals(Manager *m, ManagerTotals *ret) {
        ManagerTotals totals = {
                .windows = m->past.counters.starts,
                .violations = m->past.counters.violations,
        };

        for (size_t i = 0; i < m->config->bindings.n; i++) {
                const Binding *binding = m->config->bindings.items[i];
                Statistics statistics;
                int r;

                r = manager_get_statistics(m, binding, &statistics);
                if (r < 0)
                        return r;
                totals.windows = statistic_add(totals.windows, statistics.counters.starts);
                totals.violations =
                        statistic_add(totals.violations, statistics.counters.violations);
        }
        *ret = totals;
        return 0;
}
