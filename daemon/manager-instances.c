/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Instances of templates that nobody has known before they run: foo@new.service, started for the first
 * time, with sections in foo@.service. No round trip to systemd is quick enough for their first call.
 * So bindings are made beforehand, for whatever instance comes: a spare has one for each section. When
 * the kernel sees the cgroup of an unknown instance, it gives it a spare, and tells, before anything else
 * is told of it. From then on the bindings have the instance's name; a moment later they join the
 * others, and another spare takes the place.
 *
 * What an instance's bindings are is systemd's to say in the end: it is asked, and what it says is
 * applied as for all units. A spare is made from what it says of the template's stand-in.
 */

#include "cgroup.h"
#include "log.h"
#include "manager.h"

typedef struct Spare {
        unsigned number;
        char *instance; /* that has taken it; NULL: none */
        Binding **bindings;
        size_t n;
} Spare;

struct Template {
        char *unit; /* its stand-in */
        char *cgroup_path;
        char *program;
        Config *config; /* its bindings */
        unsigned round;
        Spare *spares;
        size_t n;
};

static void spare_done(Manager *m, Spare *spare) {
        for (size_t i = 0; i < spare->n; i++) {
                manager_detach_binding(m, spare->bindings[i]);
                binding_free(spare->bindings[i]);
        }
        free(spare->bindings);
        free(spare->instance);
        *spare = (Spare){};
}

static Template *template_free(Manager *m, Template *template) {
        for (size_t i = 0; i < template->n; i++)
                spare_done(m, &template->spares[i]);
        free(template->spares);
        config_free(template->config);
        free(template->program);
        free(template->cgroup_path);
        free(template->unit);
        free(template);
        return NULL;
}

void manager_free_templates(Manager *m) {
        for (size_t i = 0; i < m->n_templates; i++)
                template_free(m, m->templates[i]);
        free(m->templates);
        m->templates = NULL;
        m->n_templates = 0;
        m->adoption = sd_event_source_disable_unref(m->adoption);
}

/* One section of a template, for an instance that is not there yet. */
static int spare_add(Manager *m, Spare *spare, const Template *template, const Binding *section) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *error = NULL;
        int r;

        if (section->error || !section->enabled)
                return 0;
        r = binding_copy_for_unit(section, template->unit, &binding);
        if (r < 0)
                return r;
        binding->spare = spare->number;
        r = manager_attach_spare(m, binding, &error);
        if (r == -ENOMEM || r == -ENOSPC)
                return r;
        if (r < 0) {
                log_debug("Nothing is kept ready for '%s': %s.", binding->name,
                          error ?: strerror(-r));
                return 0;
        }
        spare->bindings[spare->n++] = TAKE_PTR(binding);
        return 0;
}

/* Returns 1, 0 if the template has nothing that can be made ready, or a negative errno. */
static int template_add_spare(Manager *m, Template *template) {
        const BindingTable *sections = &template->config->bindings;
        Spare *spares, spare = { .number = ++m->n_spares };
        int r = 0;

        spares = reallocarray(template->spares, template->n + 1, sizeof(*spares));
        if (!spares)
                return -ENOMEM;
        template->spares = spares;
        spare.bindings = calloc(sections->n, sizeof(Binding *));
        if (!spare.bindings)
                return -ENOMEM;
        for (size_t i = 0; i < sections->n && r >= 0; i++)
                r = spare_add(m, &spare, template, sections->items[i]);
        if (r < 0 || spare.n == 0) {
                spare_done(m, &spare);
                return r;
        }
        template->spares[template->n++] = spare;
        manager_complete_backends(m);
        return 1;
}

/* Out of the list first: reports can come in while it goes. */
static void template_remove_spare(Manager *m, Template *template, size_t i) {
        Spare spare = template->spares[i];

        template->spares[i] = template->spares[--template->n];
        spare_done(m, &spare);
}

/* That there is no room for more is no error: bindings go first. */
static int template_fill(Manager *m, Template *template) {
        int r = 1;

        while (template->n > m->config->spare_instances)
                template_remove_spare(m, template, template->n - 1);
        while (r > 0 && template->n < m->config->spare_instances)
                r = template_add_spare(m, template);
        return r == -ENOSPC ? 0 : r;
}

static void template_give_up(Manager *m, Template *template) {
        while (template->n > 0)
                template_remove_spare(m, template, template->n - 1);
}

bool manager_give_up_spare(Manager *m) {
        for (size_t i = 0; i < m->n_templates; i++) {
                Template *template = m->templates[i];

                if (template->n == 0)
                        continue;
                template_remove_spare(m, template, template->n - 1);
                return true;
        }
        return false;
}

static Template *find_template(const Manager *m, const char *unit) {
        for (size_t i = 0; i < m->n_templates; i++)
                if (streq(m->templates[i]->unit, unit))
                        return m->templates[i];
        return NULL;
}

static int get_or_make_template(Manager *m, const char *unit, Template **ret) {
        Template **templates, *template;

        *ret = find_template(m, unit);
        if (*ret)
                return 0;
        templates = reallocarray(m->templates, m->n_templates + 1, sizeof(*templates));
        if (!templates)
                return -ENOMEM;
        m->templates = templates;
        template = calloc(1, sizeof(*template));
        if (!template)
                return -ENOMEM;
        template->unit = strdup(unit);
        if (!template->unit) {
                free(template);
                return -ENOMEM;
        }
        m->templates[m->n_templates++] = *ret = template;
        return 0;
}

/* Would spares that were made now be as those that there are? */
static bool template_is_current(const Template *template, const UnitInfo *info,
                                const Config *config) {
        const BindingTable *old = template->config ? &template->config->bindings : NULL;

        if (!old || old->n != config->bindings.n ||
            !streq_empty(template->cgroup_path, info->cgroup_path) ||
            !streq_empty(template->program, info->program))
                return false;
        for (size_t i = 0; i < old->n; i++)
                if (!binding_same_configuration(old->items[i], config->bindings.items[i]))
                        return false;
        for (size_t i = 0; i < template->n; i++)
                for (size_t j = 0; j < template->spares[i].n; j++)
                        if (!binding_file_is_current(template->spares[i].bindings[j]))
                                return false;
        return true;
}

static int template_set(Manager *m, Template *template, const UnitInfo *info, Config *config) {
        int r;

        template_give_up(m, template);
        config_free(template->config);
        template->config = config;
        r = free_and_strdup(&template->cgroup_path, info->cgroup_path);
        if (r >= 0)
                r = free_and_strdup(&template->program, info->program);
        return r;
}

int manager_apply_template(Manager *m, const UnitInfo *info, Config *config) {
        Template *template;
        int r;

        r = get_or_make_template(m, info->name, &template);
        if (r < 0) {
                config_free(config);
                return r;
        }
        template->round = m->template_round;
        if (template_is_current(template, info, config))
                config_free(config);
        else
                r = template_set(m, template, info, config);
        return r < 0 ? r : template_fill(m, template);
}

void manager_begin_templates(Manager *m) {
        m->template_round++;
}

void manager_end_templates(Manager *m) {
        for (size_t i = m->n_templates; i-- > 0;) {
                Template *template = m->templates[i];

                if (template->round == m->template_round && template->config->bindings.n > 0)
                        continue;
                m->templates[i] = m->templates[--m->n_templates];
                template_free(m, template);
        }
}

static Spare *find_spare(const Manager *m, unsigned number) {
        for (size_t i = 0; i < m->n_templates; i++)
                for (size_t j = 0; j < m->templates[i]->n; j++)
                        if (m->templates[i]->spares[j].number == number)
                                return &m->templates[i]->spares[j];
        return NULL;
}

/* From now on the binding is the instance's. */
static int binding_become(Manager *m, Binding *binding, const char *instance,
                          const Report *report) {
        _cleanup_free_ char *name = NULL;
        int r;

        if (asprintf(&name, "%s/%s", instance, binding_own_name(binding)) < 0) {
                name = NULL;
                return -ENOMEM;
        }
        r = free_and_strdup(&binding->unit, instance);
        if (r >= 0)
                r = free_and_strdup(&binding->cgroup_path, report->cgroup_path);
        if (r >= 0)
                r = binding_set_state(binding, BINDING_ACTIVE, NULL);
        if (r < 0)
                return r;
        free(binding->name);
        binding->name = TAKE_PTR(name);
        binding->cgroup_id = report->cgroup_id;
        binding->cgroup_level = report->cgroup_level;
        binding->spare = 0;
        if (!config_get_override(m->config, binding->name, &binding->budget_ns[TLOB_BUDGET_TOTAL]))
                return 0;
        return binding->backend->ops->set_budget(binding->backend, binding->backend_index,
                                                 binding->budget_ns);
}

/* In the configuration's table, and followed by what systemd says. */
static void adopt(Manager *m, Spare *spare) {
        for (size_t i = 0; i < spare->n; i++)
                manager_adopt_binding(m, spare->bindings[i]);
        if (m->units && units_expect(m->units, spare->instance) < 0)
                log_oom();
        spare->n = 0;
        spare_done(m, spare);
}

static void adopt_all(Manager *m) {
        m->adoption = sd_event_source_disable_unref(m->adoption);
        for (size_t i = 0; i < m->n_templates; i++) {
                Template *template = m->templates[i];
                size_t n = template->n;

                for (size_t j = n; j-- > 0;)
                        if (template->spares[j].instance) {
                                Spare spare = template->spares[j];

                                template->spares[j] = template->spares[--template->n];
                                adopt(m, &spare);
                        }
                if (template->n < n && template_fill(m, template) < 0)
                        log_oom();
        }
}

static int on_adoption(sd_event_source *source, void *userdata) {
        adopt_all(userdata);
        return 0;
}

/* Not at once: whoever had the reports dispatched may be in the middle of the table. */
static int schedule_adoption(Manager *m) {
        int r;

        if (m->adoption || !m->event)
                return 0;
        r = sd_event_add_defer(m->event, &m->adoption, on_adoption, m);
        if (r < 0)
                return r;
        return sd_event_source_set_priority(m->adoption, SD_EVENT_PRIORITY_IMPORTANT);
}

static int spare_become(Manager *m, Spare *spare, const Report *report) {
        int r;

        r = cgroup_path_get_unit(report->cgroup_path, &spare->instance);
        for (size_t i = 0; i < spare->n && r >= 0; i++)
                r = binding_become(m, spare->bindings[i], spare->instance, report);
        return r < 0 ? r : schedule_adoption(m);
}

void manager_on_instance(Manager *m, BackendSlot *slot, const Report *report) {
        Spare *spare = find_spare(m, slot->bindings[report->backend_index]->spare);
        int r;

        /* It was on its way out. */
        if (!spare)
                return;
        r = spare_become(m, spare, report);
        if (r < 0)
                log_error_errno(r, "Failed to measure '%s' from its first call: %m",
                                report->cgroup_path);
}

void manager_take_instances(Manager *m) {
        if (m->n_templates == 0)
                return;
        for (size_t i = 0; i < m->n_slots; i++)
                if (m->slots[i].backend)
                        manager_dispatch(m, &m->slots[i]);
        if (m->adoption)
                adopt_all(m);
}
