/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What systemd says of the units of bindings: which of them it is asked about, where they run, how
 * their processes see files. A template is asked about by its stand-in. What follows for a binding
 * is decided in manager/settle.c.
 */

#include "manager/units.h"

#include "base/sentence.h"
#include "base/unit-name.h"
#include "cgroup.h"
#include "log.h"

/* The unit that systemd is asked about, for one that a binding names. NULL for want of memory. */
static char *unit_to_ask(const char *unit) {
        return unit_name_is_template(unit) ? unit_stand_in_for(unit) : strdup(unit);
}

const UnitInfo *manager_unit_of(const Manager *m, const Binding *binding) {
        _cleanup_free_ char *name = m->units && binding->unit ? unit_to_ask(binding->unit) : NULL;

        return name ? units_get(m->units, name) : NULL;
}

int manager_unit_of_cgroup(const Manager *m, const char *cgroup_path, char **ret_unit) {
        const char *below =
                cgroup_path_below(m->units ? units_get_cgroup(m->units) : "", cgroup_path);

        return below ? cgroup_path_get_unit(below, ret_unit) : -ENXIO;
}

bool manager_binding_has_unit(const Binding *binding, const char *unit) {
        _cleanup_free_ char *name = binding->unit ? unit_to_ask(binding->unit) : NULL;

        return name && streq(name, unit);
}

void manager_watch_unit(Manager *m, Binding *binding) {
        _cleanup_free_ char *name = m->units && binding->unit ? unit_to_ask(binding->unit) : NULL;
        int r;

        if (!name)
                return;
        r = units_watch(m->units, name);
        if (r < 0)
                log_error_errno(r, "Failed to follow '%s': %m", name);
}

void manager_unwatch_unit(Manager *m, Binding *binding) {
        _cleanup_free_ char *name = m->units && binding->unit ? unit_to_ask(binding->unit) : NULL;

        if (name)
                units_unwatch(m->units, name);
}

bool manager_units_are_known(Manager *m) {
        for (; m->units && m->config && m->n_known < m->config->bindings.n; m->n_known++) {
                const Binding *binding = m->config->bindings.items[m->n_known];
                _cleanup_free_ char *name = binding->unit ? unit_to_ask(binding->unit) : NULL;

                if (name && !units_was_asked(m->units, name))
                        return false;
        }
        return true;
}

int manager_ask_unit(Manager *m, const char *unit, char **ret_asked) {
        _cleanup_free_ char *name = NULL;
        int r;

        if (!unit || !m->units)
                return 1;
        name = unit_to_ask(unit);
        if (!name)
                return -ENOMEM;
        if (units_was_asked(m->units, name))
                return 1;
        r = units_watch(m->units, name);
        if (r < 0)
                return r;
        *ret_asked = TAKE_PTR(name);
        return 0;
}

void manager_release_unit(Manager *m, const char *asked) {
        units_unwatch(m->units, asked);
}

/* Of a stand-in, it is that of its template: "/a.slice/foo@.service". */
static int learn_cgroup_path(Binding *binding, const UnitInfo *info) {
        static const char instance[] = "@" UNIT_STAND_IN;
        const char *path = info ? info->cgroup_path : NULL, *found;
        _cleanup_free_ char *template = NULL;

        if (!path || !unit_name_is_template(binding->unit))
                return free_and_strdup(&binding->cgroup.path, path);
        found = strstr(strrchr(path, '/'), instance);
        if (!found)
                return -EINVAL;
        if (asprintf(&template, "%.*s@%s", (int) (found - path), path, found + strlen(instance)) <
            0) {
                template = NULL;
                return -ENOMEM;
        }
        return free_and_strdup(&binding->cgroup.path, template);
}

int manager_confine_binding(Manager *m, Binding *binding) {
        const UnitInfo *info = manager_unit_of(m, binding);
        int r;

        binding->cgroup.id = 0;
        if (!binding->unit)
                return 1;
        r = learn_cgroup_path(binding, info);
        if (r < 0)
                return r;
        if (unit_name_is_template(binding->unit))
                return binding->cgroup.path && info->is_loaded;
        if (!info || !info->cgroup_id)
                return 0;
        binding->cgroup.id = info->cgroup_id;
        binding->cgroup.level = info->cgroup_level;
        return 1;
}

/* How its processes see files. A template has as many processes as instances. */
static int learn_root(Binding *binding, const UnitInfo *info) {
        bool is_one = info && !unit_name_is_template(binding->unit);
        bool is_alias = is_one && !streq(binding->unit, info->name);

        if (free_and_strdup(&binding->view.unit, is_alias ? info->name : NULL) < 0)
                return -ENOMEM;
        binding->view.main_pid = is_one ? info->main_pid : 0;
        binding->view.has_root_image = info && info->has_root_image;
        return free_and_strdup(&binding->view.root_directory, info ? info->root_directory : NULL);
}

int manager_learn_program(const Manager *m, Binding *binding, char **ret_error) {
        const UnitInfo *info = manager_unit_of(m, binding);
        int r;

        r = free_and_strdup(&binding->view.program, info ? info->program : NULL);
        if (r >= 0)
                r = learn_root(binding, info);
        if (r < 0)
                return r;
        if (!binding_takes_program(binding) || binding->view.program)
                return 1;
        if (!info || !info->is_loaded)
                return 0;
        if (info->has_exec)
                return sentence_error(
                        -EINVAL, ret_error,
                        "%s has several programs in its ExecStart=: write Executable=",
                        binding->unit);
        return sentence_error(-EINVAL, ret_error,
                              "%s has no ExecStart=: write Executable= with the program or library "
                              "to be measured",
                              binding->unit);
}

/* Its processes see the files that they have seen, whatever its next ones are to see. */
static bool root_fits(Binding *binding, const UnitInfo *info) {
        bool goes_on = info->cgroup_id > 0 && info->cgroup_id == binding->cgroup.id;

        if (goes_on && info->main_pid == binding->view.main_pid)
                return true;
        return streq_empty(binding->view.root_directory, info->root_directory) &&
               binding->view.has_root_image == info->has_root_image &&
               learn_root(binding, info) >= 0;
}

bool manager_unit_fits(const Manager *m, Binding *binding) {
        const UnitInfo *info = manager_unit_of(m, binding);

        return info && root_fits(binding, info) &&
               (unit_name_is_template(binding->unit) ||
                streq_empty(binding->cgroup.path, info->cgroup_path));
}

bool manager_program_fits(const Manager *m, const Binding *binding) {
        const UnitInfo *info = manager_unit_of(m, binding);

        return !info || streq_empty(binding->view.program, info->program);
}
