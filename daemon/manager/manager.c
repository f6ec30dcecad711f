/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The life of the daemon's state: made, started, asked, freed. What happens to bindings is in
 * manager/settle.c, manager/bindings.c and manager/change.c, what happens to reports in
 * manager/reports.c.
 *
 * Everything runs in one thread, from one event loop. A daemon without bindings has nothing in the
 * kernel, and nothing to wake up for but its watchdog.
 */

#include "manager/internal.h"

#include <signal.h>
#include <systemd/sd-daemon.h>

#include "base/root.h"
#include "base/sentence.h"
#include "cgroup.h"
#include "journal.h"
#include "log.h"
#include "manager/action.h"
#include "manager/backend-facts.h"
#include "manager/builds.h"
#include "manager/choice.h"
#include "manager/files.h"
#include "manager/follow.h"
#include "manager/guard.h"
#include "manager/instances.h"
#include "manager/move.h"
#include "manager/past.h"
#include "manager/reload.h"
#include "manager/reports.h"
#include "manager/retry.h"
#include "manager/state.h"
#include "manager/store.h"
#include "manager/tolerance.h"

static void on_backend_event(void *userdata) {
        Manager *m = userdata;

        manager_guard_costs(m);
        manager_announce(m, take_turn);
}

static const BackendsHandlers backends_handlers = {
        .report = manager_on_report,
        .lost = manager_on_loss,
        .unwritten = manager_on_unwritten,
        .notice = manager_on_notice,
        .kept = manager_on_kept,
        .event_done = on_backend_event,
};

int manager_new(const BackendOps *const *ops, const char *const *directories, Manager **ret) {
        _cleanup_(manager_freep) Manager *m = NULL;
        int r;

        m = calloc(1, sizeof(*m));
        if (!m)
                return -ENOMEM;
        *m = (Manager) {
                .directories = directories,
                .cgroup_root = -EBADF,
                .keep_fd = -EBADF,
                .follow = &manager_follow_handlers,
        };
        r = backends_new(ops, &backends_handlers, m, &m->backends);
        if (r < 0)
                return r;
        r = templates_new(&manager_templates_handlers, m, &m->templates);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(m);
        return 0;
}

void manager_set_scope(Manager *m, RuntimeScope scope) {
        m->scope = scope;
        journal_set_scope(scope);
}

RuntimeScope manager_get_scope(const Manager *m) {
        return m->scope;
}

void manager_set_version(Manager *m, const char *version) {
        m->version = version;
}

const char *manager_get_version(const Manager *m) {
        return m->version ?: "";
}

void manager_stop(Manager *m) {
        if (m->templates)
                templates_stop(m->templates);
        manager_stop_guard(m);
        while (m->n_lent > 0)
                manager_evict_lent(m, m->lent[m->n_lent - 1], NULL);
        for (size_t i = 0; m->config && i < m->config->bindings.n; i++)
                manager_detach_binding(m, m->config->bindings.items[i]);
        manager_stop_comparing(m);
        manager_stop_tolerances(m);
        if (m->backends)
                backends_stop(m->backends);
        for (size_t i = 0; m->config && i < m->config->bindings.n; i++)
                manager_announce_suppressed(m, m->config->bindings.items[i]);
        m->units = units_free(m->units);
        manager_drain_journal(m);
}

/* Where nobody knows: what nobody goes on with goes when systemd gives up what it has stored. */
static bool expects_restart(const Manager *m, bool has_failed) {
        int r = -ENOTCONN;

        /* Whoever measures for a user's tlobd stops when that is gone. */
        if (m->scope == RUNTIME_SCOPE_USER)
                return false;
        if (has_failed || m->keep_in)
                return m->is_stored;
        if (m->units)
                r = units_expect_restart(m->units);
        return r > 0 || (r < 0 && m->is_stored);
}

/* What cannot be in the directory would stay in the kernel when that is removed. */
static void detach_unkept(Manager *m) {
        const BackendOps *ops;

        for (size_t i = 0; m->config && i < m->config->bindings.n; i++) {
                Binding *binding = m->config->bindings.items[i];

                if (binding->measurement.backend && !binding->measurement.backend->ops->keep)
                        manager_detach_binding(m, binding);
        }
        for (size_t i = 0; (ops = backends_get(m->backends, i)); i++)
                if (!ops->keep)
                        backends_clear(m->backends, ops);
}

bool manager_leave(Manager *m, bool has_failed) {
        if (!expects_restart(m, has_failed)) {
                (void) sd_notify(false, "STOPPING=1\nSTATUS=Removing the probes.");
                return false;
        }
        if (m->keep_in)
                detach_unkept(m);
        backends_flush(m->backends, NULL);
        manager_drain_journal(m);
        /* Whoever starts the next one finds no process of this one. */
        m->files_source = sd_event_source_disable_unref(m->files_source);
        m->files = files_free(m->files);
        return true;
}

Manager *manager_free(Manager *m) {
        if (!m)
                return NULL;

        manager_stop(m);
        sd_event_source_disable_unref(m->journal_retry);
        sd_event_source_disable_unref(m->files_source);
        sd_event_source_disable_unref(m->looks);
        sd_event_source_disable_unref(m->watch_timer);
        sd_event_source_disable_unref(m->watch_source);
        sd_event_source_disable_unref(m->after_event);
        sd_event_source_disable_unref(m->suppression);
        manager_actions_done(m);
        violation_log_done(&m->violations);
        free(m->told);
        free(m->lent);
        free(m->counted.cgroup);
        manager_forget_failures(m);
        config_free(m->config);
        safe_close(m->cgroup_root);
        safe_close(m->keep_fd);
        templates_free(m->templates);
        backends_free(m->backends);
        files_free(m->files);
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
        manager_forgive(userdata);
        (void) manager_reload(userdata);
        return 0;
}

/* Before all else: whoever ends the daemon must not wait until it has nothing left to do. */
static int watch_signal(Manager *m, int signal, sd_event_signal_handler_t handler) {
        sd_event_source *source;
        int r;

        r = sd_event_add_signal(m->event, &source, signal, handler, m);
        if (r < 0)
                return r;
        r = sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IMPORTANT);
        if (r >= 0)
                r = sd_event_source_set_floating(source, true);
        (void) sd_event_source_unref(source);
        return r;
}

static int after_event(sd_event_source *source, void *userdata) {
        Manager *m = userdata;

        manager_send_status(m);
        manager_retry_journal(m);
        manager_announce(m, event_done);
        return 0;
}

int manager_attach_event(Manager *m, sd_event *event) {
        int r;

        m->event = sd_event_ref(event);
        backends_attach_event(m->backends, event);
        templates_attach_event(m->templates, event);
        r = manager_start_files(m);
        if (r < 0)
                return r;
        r = sd_event_add_post(m->event, &m->after_event, after_event, m);
        if (r < 0)
                return r;
        /* Right after it, so that what the event took can be seen. */
        return sd_event_source_set_priority(m->after_event, SD_EVENT_PRIORITY_IMPORTANT);
}

void manager_keep_in(Manager *m, const char *directory) {
        m->keep_in = directory;
}

sd_event *manager_get_event(const Manager *m) {
        return m->event;
}

/* What is measured then has its place elsewhere, or the reason with its binding. */
static void check_sight(void) {
        _cleanup_(root_done) Root machine = ROOT_OWN;
        int r;

        r = root_of_machine(&machine);
        if (r < 0)
                log_warning_errno(r, "Failed to open /proc/1/root: programs and unit files that "
                                     "tlobd's own service hides, such as those in /home, /root and "
                                     "/tmp, are not found, ignoring: %m");
}

int manager_start_loop(Manager *m) {
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
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

        if (m->scope == RUNTIME_SCOPE_SYSTEM)
                check_sight();
        r = sd_event_default(&event);
        if (r >= 0)
                r = manager_attach_event(m, event);
        if (r < 0)
                return log_error_errno(r, "Failed to set up the event loop, or the processes that "
                                          "read files: %m");

        (void) sigemptyset(&set);
        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                (void) sigaddset(&set, signals[i].signal);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return log_error_errno(errno, "Failed to block signals: %m");

        for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
                r = watch_signal(m, signals[i].signal, signals[i].handler);
                if (r < 0)
                        return log_error_errno(r, "Failed to watch for signals: %m");
        }

        r = sd_event_set_watchdog(m->event, true);
        if (r < 0)
                return log_error_errno(r, "Failed to set up the watchdog: %m");
        return 0;
}

void manager_observe(Manager *m, const ManagerObserver *observer, void *userdata) {
        m->observer = observer;
        m->observer_data = userdata;
}

int manager_follow_units(Manager *m, sd_bus *bus) {
        return units_new(bus, &manager_units_handlers, m, &m->units);
}

int manager_probe_backends(Manager *m) {
        return backends_probe(m->backends);
}

/* Why back ends of this build do not work here. */
static void log_absences(const Manager *m) {
        bool has_any = backends_get(m->backends, 0);
        const BackendAbsence *absence;

        for (size_t i = 0; (absence = backends_get_absence(m->backends, i)); i++)
                (void) log_full_errno(has_any ? LOG_DEBUG : LOG_ERR, 0, "%s.", absence->reason);
        if (!has_any)
                log_error("Nothing can be measured on this machine.");
}

int manager_start(Manager *m, sd_bus *bus) {
        int r;

        r = manager_probe_backends(m);
        if (r < 0)
                return log_oom();
        r = manager_take_store(m);
        if (r < 0)
                return r;
        m->cgroup_root = cgroup_open_root();

        r = manager_follow_units(m, bus);
        if (r < 0)
                return log_error_errno(r, "Failed to follow systemd's units: %m");

        log_absences(m);
        r = config_new(&m->config);
        if (r < 0)
                return log_oom();
        r = manager_reload(m);
        return r < 0 ? r : 0;
}

bool manager_is_reloading(const Manager *m) {
        return m->reloading;
}

int manager_reload_error(const Manager *m) {
        return m->reload_error;
}

bool manager_is_ready(const Manager *m) {
        return m->is_ready;
}

bool manager_is_busy(const Manager *m) {
        return files_is_busy(m->files);
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

int manager_get_statistics(Manager *m, Binding *binding, Statistics *ret) {
        Statistics statistics = {};

        if (binding->measurement.backend) {
                int r = binding->measurement.backend->ops->statistics(
                        binding->measurement.backend, binding->measurement.index, &statistics);

                if (r < 0)
                        return r;
                manager_count_suppressed(m, binding, &statistics);
        }
        statistics_add(&statistics, &binding->measurement.past.statistics);
        if (binding->former) {
                Statistics former;
                int r = manager_get_statistics(m, binding->former, &former);

                if (r < 0)
                        return r;
                statistics_add(&statistics, &former);
                statistics.open = statistic_add(statistics.open, former.open);
        }
        *ret = statistics;
        return 0;
}

const char *manager_backend_of(const Binding *binding) {
        return binding->measurement.backend ? binding->measurement.backend->ops->name : "";
}

int manager_describe_reach(const Binding *binding, char **ret) {
        const Backend *backend = binding->measurement.backend;
        char *reach = NULL;

        if (backend && backend->ops->reach) {
                reach = backend->ops->reach(binding->measurement.backend,
                                            binding->measurement.index);
                if (!reach)
                        return -ENOMEM;
        }
        *ret = reach;
        return 0;
}

int manager_get_histogram(Manager *m, const Binding *binding, Histogram *ret) {
        Histogram histogram = {};

        if (binding->measurement.backend) {
                const BackendOps *ops = binding->measurement.backend->ops;
                int r = -EOPNOTSUPP;

                if (ops->histogram)
                        r = ops->histogram(binding->measurement.backend, binding->measurement.index,
                                           &histogram);
                if (r < 0)
                        return r;
        }
        if (binding->measurement.past.lengths)
                histogram_add(&histogram, binding->measurement.past.lengths);
        if (binding->former) {
                Histogram former;
                int r = manager_get_histogram(m, binding->former, &former);

                if (r < 0)
                        return r;
                histogram_add(&histogram, &former);
        }
        *ret = histogram;
        return 0;
}

int manager_reset_statistics(Manager *m, Binding *binding) {
        Statistics statistics;
        int r;

        r = manager_get_statistics(m, binding, &statistics);
        if (r < 0)
                return r;
        if (binding->former)
                r = manager_reset_statistics(m, binding->former);
        if (r < 0)
                return r;
        binding->limit.seen = 0;
        manager_clear_past(binding);
        binding->limit.n_suppressed = 0;
        manager_note_limit(binding);
        if (binding->measurement.backend)
                r = binding->measurement.backend->ops->reset_statistics(
                        binding->measurement.backend, binding->measurement.index);
        if (r >= 0)
                manager_restart_tolerance(m, binding);
        return r;
}

int manager_get_totals(Manager *m, ManagerTotals *ret) {
        ManagerTotals totals = {
                .windows = m->past.counters.starts,
                .violations = m->past.counters.violations,
        };

        for (size_t i = 0; i < m->config->bindings.n; i++) {
                Binding *binding = m->config->bindings.items[i];
                Statistics statistics;
                int r;

                r = manager_get_statistics(m, binding, &statistics);
                if (r < 0)
                        return r;
                totals.windows = statistic_add(totals.windows, statistics.counters.starts);
                totals.violations =
                        statistic_add(totals.violations, statistics.counters.violations);
        }
        totals.suppressed = m->n_suppressed;
        totals.probes_ns = backends_get_cost(m->backends);
        *ret = totals;
        return 0;
}

uint64_t manager_get_lost(const Manager *m) {
        return backends_get_lost(m->backends);
}

const char *manager_get_backend(const Manager *m, size_t i) {
        const BackendOps *ops = backends_get(m->backends, i);

        return ops ? ops->name : NULL;
}

const char *manager_get_limitation(const Manager *m, size_t i) {
        return backends_get_limitation(m->backends, i);
}

const char *manager_get_ignored(const Manager *m, size_t i) {
        return m->config && i < m->config->n_messages ? m->config->messages[i].text : NULL;
}

const char *manager_get_deadline_mode(const Manager *m) {
        return backends_get_deadline_mode(m->backends);
}

void manager_take_notices(Manager *m) {
        backends_take_notices(m->backends);
}
