/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the manager does for templates: their spares are set up as bindings are, and when an
 * instance has taken one, its bindings become the instance's, and then bindings like all others.
 */

#include "manager/instances.h"

#include "log.h"
#include "manager/backend-facts.h"
#include "manager/bindings.h"
#include "manager/choice.h"
#include "manager/internal.h"
#include "manager/settle.h"
#include "manager/units.h"
#include "manager/watch.h"

static int attach(Binding *binding, char **ret_error, void *userdata) {
        return manager_attach_spare(userdata, binding, ret_error);
}

static void complete(void *userdata) {
        manager_complete_bindings(userdata);
}

static void detach(Binding *binding, void *userdata) {
        manager_detach_binding(userdata, binding);
        manager_unwatch_file(userdata, binding);
}

static int compare(Binding *binding, void *userdata) {
        unsigned question;

        return manager_compare_file(userdata, binding, &question);
}

static void note_written(const Binding *binding, void *userdata) {
        manager_note_written(userdata, binding);
}

static bool is_removing(void *userdata) {
        const Manager *m = userdata;

        return backends_are_removing(m->backends);
}

static void look_later(uint64_t delay_usec, void *userdata) {
        manager_arm_watch(userdata, delay_usec);
}

static int give(Binding *binding, const char *instance, const Report *report, void *userdata) {
        _cleanup_free_ char *name = NULL;
        const Manager *m = userdata;
        int r;

        if (asprintf(&name, "%s/%s", instance, binding_own_name(binding)) < 0) {
                name = NULL;
                return -ENOMEM;
        }
        r = free_and_strdup(&binding->unit, instance);
        if (r >= 0)
                r = free_and_strdup(&binding->cgroup.path, report->cgroup_path);
        if (r >= 0)
                r = binding_set_state(binding, BINDING_ACTIVE, NULL);
        if (r < 0)
                return r;
        free(binding->name);
        binding->name = TAKE_PTR(name);
        binding->cgroup.id = report->cgroup_id;
        binding->cgroup.level = report->cgroup_level;
        binding->spare = 0;
        if (!config_override_budget(m->config, binding))
                return 0;
        return binding->measurement.backend->ops->set_budget(
                binding->measurement.backend, binding->measurement.index, binding->budget_ns);
}

static int unit_of(const char *cgroup_path, char **ret_unit, void *userdata) {
        return manager_unit_of_cgroup(userdata, cgroup_path, ret_unit);
}

/* In the configuration's table, and followed by what systemd says. */
static void adopt(const char *instance, Binding **bindings, size_t n, void *userdata) {
        Manager *m = userdata;

        for (size_t i = 0; i < n; i++)
                manager_adopt_binding(m, bindings[i]);
        if (m->units && units_expect(m->units, instance) < 0)
                log_oom();
}

const TemplatesHandlers manager_templates_handlers = {
        .attach = attach,
        .complete = complete,
        .detach = detach,
        .compare = compare,
        .note_written = note_written,
        .is_removing = is_removing,
        .look_later = look_later,
        .unit_of = unit_of,
        .give = give,
        .adopt = adopt,
};

void manager_take_instances(Manager *m) {
        if (templates_are_empty(m->templates))
                return;
        backends_flush(m->backends, NULL);
        templates_adopt(m->templates);
}
