/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Where the configuration comes from: our own files, and those of the units that have sections for
 * us. A reload asks systemd about these first, and builds and applies the whole when all is known.
 * A unit that appears or changes in between brings its own bindings, and touches no others.
 *
 * The daemon is ready when the first load is done: units that are ordered after it find their
 * bindings set up.
 */

#include "manager/reload.h"

#include <systemd/sd-daemon.h>

#include "log.h"
#include "manager/action.h"
#include "manager/bindings.h"
#include "manager/builds.h"
#include "manager/crash.h"
#include "manager/follow.h"
#include "manager/looks.h"
#include "manager/past.h"
#include "manager/settle.h"
#include "manager/state.h"
#include "manager/units.h"

/* The sections in a unit's files, on top of config. */
static int load_unit(Manager *m, Config *config, const UnitInfo *info) {
        for (char **path = info->files; path && *path; path++) {
                int r;

                if (!units_file_has_sections(m->units, *path))
                        continue;
                r = config_load_unit(config, info->name, *path);
                if (r < 0)
                        return r;
        }
        return 0;
}

typedef struct Load {
        Manager *manager;
        Config *config;
} Load;

static int load_one(const UnitInfo *info, void *userdata) {
        Load *load = userdata;

        if (unit_is_stand_in(info->name))
                return 0;
        return load_unit(load->manager, load->config, info);
}

/* What the files of a template say is for instances that are not known yet. */
static int load_template(const UnitInfo *info, void *userdata) {
        _cleanup_(config_freep) Config *config = NULL;
        Manager *m = userdata;
        int r;

        if (!unit_is_stand_in(info->name))
                return 0;
        r = config_new(&config);
        if (r >= 0)
                r = load_unit(m, config, info);
        if (r >= 0 && config->is_incomplete)
                r = -EIO;
        if (r >= 0)
                r = templates_apply(m->templates, info, TAKE_PTR(config));
        if (r < 0)
                log_warning_errno(r, "Failed to prepare for instances of '%s', ignoring: %m",
                                  info->name);
        return 0;
}

static void load_templates(Manager *m) {
        if (!m->units)
                return;
        templates_begin(m->templates);
        (void) units_for_each(m->units, load_template, m);
        templates_end(m->templates);
}

static int load_config(Manager *m, Config **ret) {
        _cleanup_(config_freep) Config *config = NULL;
        int r;

        r = config_load(m->directories, &config);
        if (r < 0)
                return r;
        if (m->units) {
                r = units_for_each(m->units, load_one, &(Load) { .manager = m, .config = config });
                if (r < 0)
                        return r;
        }
        config_apply_overrides(config);
        *ret = TAKE_PTR(config);
        return 0;
}

/* Bindings of the tlobd before this one, of other names, may have taken the room. */
static void settle_failed(Manager *m) {
        backends_flush(m->backends, NULL);
        for (size_t i = 0; i < m->config->bindings.n; i++)
                if (m->config->bindings.items[i]->measurement.state == BINDING_FAILED)
                        manager_settle_binding(m, m->config->bindings.items[i]);
}

static void get_ready(Manager *m) {
        int r;

        m->is_ready = true;
        if (backends_finish(m->backends))
                settle_failed(m);
        for (size_t i = 0; m->config && i < m->config->bindings.n; i++) {
                manager_read_past(m->config->bindings.items[i]);
                manager_compare_build(m, m->config->bindings.items[i]);
        }
        if (!m->units)
                return;
        r = m->observer ? m->observer->ready(m->observer_data) : 0;
        if (r < 0) {
                (void) sd_event_exit(m->event, r);
                return;
        }
        (void) sd_notify(false, "READY=1");
}

/* What the daemon before this one has left goes when this one is ready. */
static bool is_looking_for_old(Manager *m) {
        if (m->has_looked_for_old)
                return false;
        m->has_looked_for_old = true;
        manager_look_for_old(m);
        return files_is_setting_up(m->files);
}

void manager_conclude_reload(Manager *m) {
        if (!m->is_settling || m->reloading || files_is_setting_up(m->files) ||
            !manager_units_are_known(m) || is_looking_for_old(m))
                return;
        m->is_settling = false;
        manager_tell(m, reloading, false);
        manager_announce(m, reloaded);
        if (!m->is_ready)
                get_ready(m);
        manager_configure_lent(m);
}

/* Bindings that are measured must not go because a disk has a bad moment. Takes config. */
static void refuse_config(Manager *m, Config *config) {
        manager_log_messages(config);
        config_free(config);
        m->reload_error = -EIO;
        log_error("Part of the configuration cannot be read: all bindings stay as they were.");
}

void manager_forgive(Manager *m) {
        m->forgives = true;
}

/* All that is needed is known but for files. */
static int finish_reload(Manager *m) {
        Config *config = NULL;
        int r;

        m->reloading = false;
        r = load_config(m, &config);
        if (r >= 0 && m->violations.size == 0)
                r = violation_log_init(&m->violations, config->violations_max);
        m->reload_error = r < 0 ? r : 0;
        if (r < 0) {
                log_error_errno(r, "Failed to read the configuration: %m");
                config_free(config);
        } else if (config->is_incomplete && m->is_ready)
                refuse_config(m, config);
        else {
                manager_take_instances(m);
                manager_forget_failures(m);
                if (m->forgives)
                        manager_forget_given_up(m);
                m->forgives = false;
                manager_apply_config(m, config);
                load_templates(m);
                log_info("Bindings that are configured: %zu.", m->config->bindings.n);
        }

        m->is_settling = true;
        m->n_known = 0;
        manager_conclude_reload(m);
        return m->is_settling ? 1 : m->reload_error;
}

int manager_reload(Manager *m) {
        int r;

        if (m->reloading) {
                r = units_refresh(m->units);
                if (r >= 0)
                        return 1;
                if (r != -EALREADY)
                        return finish_reload(m);
                m->reload_again = true;
                return 2;
        }

        m->reloading = true;
        manager_tell(m, reloading, true);
        r = m->units ? units_refresh(m->units) : -EHOSTUNREACH;
        if (r >= 0)
                return 1;
        return finish_reload(m);
}

static void on_refreshed(int error, void *userdata) {
        Manager *m = userdata;

        if (error < 0)
                log_full_errno(error == -EHOSTUNREACH ? LOG_DEBUG : LOG_WARNING, error,
                               "Failed to ask systemd about its units, ignoring: %m");
        (void) finish_reload(m);
        if (m->reload_again) {
                m->reload_again = false;
                (void) manager_reload(m);
        }
}

static void on_reloaded(void *userdata) {
        (void) manager_reload(userdata);
}

static void on_ended(const char *unit, const UnitEnd *end, void *userdata) {
        manager_note_end(userdata, unit, end);
}

static void on_state(const char *unit, const UnitInfo *info, void *userdata) {
        Manager *m = userdata;

        manager_take_instances(m);
        if (info && unit_is_stand_in(unit) && !m->reloading)
                (void) load_template(info, m);
        for (size_t i = 0; i < m->config->bindings.n; i++) {
                Binding *binding = m->config->bindings.items[i];

                if (manager_binding_has_unit(binding, unit))
                        manager_follow_unit(m, binding);
        }
        manager_tell(m, unit_known, unit);
        manager_conclude_reload(m);
}

static void on_files(const char *unit, const UnitInfo *info, void *userdata) {
        _cleanup_(config_freep) Config *config = NULL;
        Manager *m = userdata;
        int r;

        /* It is about to be read with all others. */
        if (m->reloading)
                return;
        manager_take_instances(m);
        if (unit_is_stand_in(unit)) {
                if (info)
                        (void) load_template(info, m);
                return;
        }
        r = config_new(&config);
        if (r >= 0 && info)
                r = load_unit(m, config, info);
        if (r < 0)
                log_error_errno(r, "Failed to read the files of '%s': %m", unit);
        else if (config->is_incomplete) {
                manager_log_messages(config);
                log_error("Some files of '%s' cannot be read: its bindings stay as they were.",
                          unit);
        } else
                manager_apply_unit(m, unit, config);
}

const UnitsHandlers manager_units_handlers = {
        .ended = on_ended,
        .state = on_state,
        .files = on_files,
        .reloaded = on_reloaded,
        .refreshed = on_refreshed,
        .started = manager_on_started,
};
