/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Instances of templates that nobody has known before they run: foo@new.service, started for the
 * first time, with sections in foo@.service. No round trip to systemd is quick enough for their
 * first call. So bindings are made beforehand, for whatever instance comes: a spare has one for
 * each section. When the kernel sees the cgroup of an unknown instance, it gives it a spare, and
 * tells, before anything else is told of it. From then on the bindings have the instance's name; a
 * moment later they join the others, and another spare takes the place.
 *
 * What an instance's bindings are is systemd's to say in the end: it is asked, and what it says is
 * applied as for all units. A spare is made from what it says of the template's stand-in.
 */

#include "manager/templates.h"

#include "binding/keys.h"
#include "cgroup.h"
#include "file/binding-question.h"
#include "log.h"
#include "manager/delays.h"

typedef struct Spare {
        unsigned number;
        char *instance; /* that has taken it; NULL: none */
        Binding **bindings;
        size_t n;
} Spare;

typedef struct Template {
        char *unit; /* its stand-in */
        char *cgroup_path;
        char *program;
        Config *config; /* its bindings */
        unsigned round;
        Spare *spares;
        size_t n;
        bool is_written;   /* a file of theirs is: there are none until due_usec */
        uint64_t due_usec; /* when their files are looked at; 0: never */
} Template;

struct Templates {
        const TemplatesHandlers *handlers;
        void *userdata;
        sd_event *event;
        Template **items;
        size_t n;
        unsigned spares_max;       /* of each */
        unsigned round;            /* of the last reload */
        unsigned n_spares;         /* made so far: the number of the last one */
        sd_event_source *adoption; /* pending while spares have been taken */
};

int templates_new(const TemplatesHandlers *handlers, void *userdata, Templates **ret) {
        Templates *templates = calloc(1, sizeof(*templates));

        if (!templates)
                return -ENOMEM;
        *templates = (Templates) { .handlers = handlers, .userdata = userdata };
        *ret = templates;
        return 0;
}

static void spare_done(Templates *templates, Spare *spare) {
        for (size_t i = 0; i < spare->n; i++) {
                templates->handlers->detach(spare->bindings[i], templates->userdata);
                binding_free(spare->bindings[i]);
        }
        free(spare->bindings);
        free(spare->instance);
        *spare = (Spare) {};
}

static Template *template_free(Templates *templates, Template *template) {
        for (size_t i = 0; i < template->n; i++)
                spare_done(templates, &template->spares[i]);
        free(template->spares);
        config_free(template->config);
        free(template->program);
        free(template->cgroup_path);
        free(template->unit);
        free(template);
        return NULL;
}

void templates_stop(Templates *templates) {
        for (size_t i = 0; i < templates->n; i++)
                template_free(templates, templates->items[i]);
        free(templates->items);
        templates->items = NULL;
        templates->n = 0;
        templates->adoption = sd_event_source_disable_unref(templates->adoption);
}

Templates *templates_free(Templates *templates) {
        if (!templates)
                return NULL;

        templates_stop(templates);
        sd_event_unref(templates->event);
        free(templates);
        return NULL;
}

void templates_attach_event(Templates *templates, sd_event *event) {
        templates->event = sd_event_ref(event);
}

void templates_set_spares(Templates *templates, unsigned n) {
        templates->spares_max = n;
}

/* One section of a template, for an instance that is not there yet. */
static int spare_add(Templates *templates, Spare *spare, const Template *template,
                     const Binding *section) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *error = NULL;
        int r;

        if (section->source.error || !section->enabled)
                return 0;
        r = binding_copy_for_unit(section, template->unit, &binding);
        if (r < 0)
                return r;
        binding->spare = spare->number;
        r = templates->handlers->attach(binding, &error, templates->userdata);
        /* All of one spare, or none: its file may answer later. */
        if (r == -ENOMEM || r == -ENOSPC || (r < 0 && binding->measurement.question > 0))
                return r;
        if (r < 0) {
                log_debug("No spare instance of '%s' is prepared: %s.", binding->name,
                          error ?: strerror(-r));
                return 0;
        }
        spare->bindings[spare->n++] = TAKE_PTR(binding);
        return 0;
}

/* Returns 1, 0 if the template has nothing that can be made ready, or a negative errno. */
static int template_add_spare(Templates *templates, Template *template) {
        const BindingTable *sections = &template->config->bindings;
        Spare *spares, spare = { .number = ++templates->n_spares };
        int r = 0;

        spares = reallocarray(template->spares, template->n + 1, sizeof(*spares));
        if (!spares)
                return -ENOMEM;
        template->spares = spares;
        spare.bindings = calloc(sections->n, sizeof(Binding *));
        if (!spare.bindings)
                return -ENOMEM;
        for (size_t i = 0; i < sections->n && r >= 0; i++)
                r = spare_add(templates, &spare, template, sections->items[i]);
        if (r < 0 || spare.n == 0) {
                spare_done(templates, &spare);
                return r;
        }
        template->spares[template->n++] = spare;
        templates->handlers->complete(templates->userdata);
        return 1;
}

/* Out of the list first: reports can come in while it goes. */
static void template_remove_spare(Templates *templates, Template *template, size_t i) {
        Spare spare = template->spares[i];

        template->spares[i] = template->spares[--template->n];
        spare_done(templates, &spare);
}

/* When the files of its spares are. */
static void template_look_later(Templates *templates, Template *template, uint64_t delay_usec) {
        uint64_t now;

        if (template->due_usec > 0 || !templates->event ||
            sd_event_now(templates->event, CLOCK_MONOTONIC, &now) < 0)
                return;
        template->due_usec = now + delay_usec;
        templates->handlers->look_later(delay_usec, templates->userdata);
}

/* When it is looked at again: at the files of what there is, or for what there is not. */
static uint64_t delay_after(int r) {
        return r > 0 || r == -EINPROGRESS || r == -ETIMEDOUT ? WATCH_SETTLE_USEC
                                                             : WATCH_ABSENT_USEC;
}

/* That there is no room for more is no error: bindings go first. */
static int template_fill(Templates *templates, Template *template) {
        int r = 1;

        if (template->is_written)
                return 0;
        while (template->n > templates->spares_max)
                template_remove_spare(templates, template, template->n - 1);
        while (r > 0 && template->n < templates->spares_max) {
                r = template_add_spare(templates, template);
                template_look_later(templates, template, delay_after(r));
        }
        return r == -ENOSPC || r == -EINPROGRESS || r == -ETIMEDOUT ? 0 : r;
}

static void template_give_up(Templates *templates, Template *template) {
        while (template->n > 0)
                template_remove_spare(templates, template, template->n - 1);
}

void templates_fill(Templates *templates) {
        for (size_t i = 0; i < templates->n; i++)
                if (template_fill(templates, templates->items[i]) < 0)
                        log_oom();
}

bool templates_give_up_spare(Templates *templates) {
        for (size_t i = 0; i < templates->n; i++) {
                Template *template = templates->items[i];

                if (template->n == 0)
                        continue;
                template_remove_spare(templates, template, template->n - 1);
                return true;
        }
        return false;
}

static Template *find_template(const Templates *templates, const char *unit) {
        for (size_t i = 0; i < templates->n; i++)
                if (streq(templates->items[i]->unit, unit))
                        return templates->items[i];
        return NULL;
}

static int get_or_make_template(Templates *templates, const char *unit, Template **ret) {
        Template **items, *template;

        *ret = find_template(templates, unit);
        if (*ret)
                return 0;
        items = reallocarray(templates->items, templates->n + 1, sizeof(*items));
        if (!items)
                return -ENOMEM;
        templates->items = items;
        template = calloc(1, sizeof(*template));
        if (!template)
                return -ENOMEM;
        template->unit = strdup(unit);
        if (!template->unit) {
                free(template);
                return -ENOMEM;
        }
        templates->items[templates->n++] = *ret = template;
        return 0;
}

/* The probes of its spares go now, and come back later, in what its file is then. */
static void template_pause(Templates *templates, Template *template, uint64_t delay_usec) {
        for (size_t i = 0; template->n > 0 && templates->event && i < template->spares[0].n; i++)
                templates->handlers->note_written(template->spares[0].bindings[i],
                                                  templates->userdata);
        template_give_up(templates, template);
        template->is_written = templates->event;
        template->due_usec = 0;
        template_look_later(templates, template, delay_usec);
}

/* The greatest FileChange of its spares. */
static int template_compare(const Templates *templates, const Template *template) {
        int change = FILE_IS_SAME;

        for (size_t i = 0; i < template->n; i++)
                for (size_t j = 0; j < template->spares[i].n; j++) {
                        int r = templates->handlers->compare(template->spares[i].bindings[j],
                                                             templates->userdata);

                        change = r > change ? r : change;
                }
        return change;
}

/* Its spares are right, as far as files go, or there are none. */
static void template_check(Templates *templates, Template *template) {
        int change = template_compare(templates, template);

        if (change == FILE_IS_OTHER)
                template_give_up(templates, template);
        else if (change > FILE_IS_SAME)
                template_pause(templates, template, WATCH_CLOSED_USEC);
}

static bool template_is_on(const Template *template, int descriptor) {
        for (size_t i = 0; i < template->n; i++)
                for (size_t j = 0; j < template->spares[i].n; j++)
                        if (template->spares[i].bindings[j]->watch.descriptor == descriptor)
                                return true;
        return false;
}

void templates_hear(Templates *templates, int descriptor, bool is_written) {
        for (size_t i = 0; i < templates->n; i++) {
                Template *template = templates->items[i];

                if (descriptor >= 0 && !template_is_on(template, descriptor))
                        continue;
                if (is_written)
                        template_pause(templates, template, WATCH_REST_USEC);
                else
                        template_look_later(templates, template, WATCH_SETTLE_USEC);
        }
}

static void template_renew(Templates *templates, Template *template) {
        template->due_usec = 0;
        if (template->is_written && templates->handlers->is_removing(templates->userdata)) {
                template_look_later(templates, template, WATCH_CLOSED_USEC);
                return;
        }
        if (!template->is_written)
                template_check(templates, template);
        else
                template->is_written = false;
        if (template_fill(templates, template) < 0)
                log_oom();
}

uint64_t templates_renew(Templates *templates, uint64_t usec) {
        uint64_t next = UINT64_MAX;

        for (size_t i = 0; i < templates->n; i++) {
                Template *template = templates->items[i];

                if (template->due_usec > 0 && template->due_usec <= usec)
                        template_renew(templates, template);
                if (template->due_usec > 0 && template->due_usec < next)
                        next = template->due_usec;
        }
        return next;
}

/* Would spares that were made now be as those that there are? */
static bool template_is_current(const Templates *templates, const Template *template,
                                const UnitInfo *info, const Config *config) {
        const BindingTable *old = template->config ? &template->config->bindings : NULL;

        if (!old || old->n != config->bindings.n ||
            !streq_empty(template->cgroup_path, info->cgroup_path) ||
            !streq_empty(template->program, info->program))
                return false;
        for (size_t i = 0; i < old->n; i++)
                if (!binding_same_configuration(old->items[i], config->bindings.items[i]))
                        return false;
        return true;
}

static int template_set(Templates *templates, Template *template, const UnitInfo *info,
                        Config *config) {
        int r;

        template_give_up(templates, template);
        config_free(template->config);
        template->config = config;
        r = free_and_strdup(&template->cgroup_path, info->cgroup_path);
        if (r >= 0)
                r = free_and_strdup(&template->program, info->program);
        return r;
}

int templates_apply(Templates *templates, const UnitInfo *info, Config *config) {
        Template *template;
        int r;

        r = get_or_make_template(templates, info->name, &template);
        if (r < 0) {
                config_free(config);
                return r;
        }
        template->round = templates->round;
        if (template_is_current(templates, template, info, config))
                config_free(config);
        else
                r = template_set(templates, template, info, config);
        template_check(templates, template);
        return r < 0 ? r : template_fill(templates, template);
}

void templates_begin(Templates *templates) {
        templates->round++;
}

void templates_end(Templates *templates) {
        for (size_t i = templates->n; i-- > 0;) {
                Template *template = templates->items[i];

                if (template->round == templates->round && template->config->bindings.n > 0)
                        continue;
                templates->items[i] = templates->items[--templates->n];
                template_free(templates, template);
        }
}

static Spare *find_spare(const Templates *templates, unsigned number) {
        for (size_t i = 0; i < templates->n; i++)
                for (size_t j = 0; j < templates->items[i]->n; j++)
                        if (templates->items[i]->spares[j].number == number)
                                return &templates->items[i]->spares[j];
        return NULL;
}

static void adopt(Templates *templates, Spare *spare) {
        templates->handlers->adopt(spare->instance, spare->bindings, spare->n, templates->userdata);
        spare->n = 0;
        spare_done(templates, spare);
}

static void adopt_all(Templates *templates) {
        templates->adoption = sd_event_source_disable_unref(templates->adoption);
        for (size_t i = 0; i < templates->n; i++) {
                Template *template = templates->items[i];
                size_t n = template->n;

                for (size_t j = n; j-- > 0;)
                        if (template->spares[j].instance) {
                                Spare spare = template->spares[j];

                                template->spares[j] = template->spares[--template->n];
                                adopt(templates, &spare);
                        }
                if (template->n < n && template_fill(templates, template) < 0)
                        log_oom();
        }
}

static int on_adoption(sd_event_source *source, void *userdata) {
        adopt_all(userdata);
        return 0;
}

/* Not at once: whoever had the reports dispatched may be in the middle of the table. */
static int schedule_adoption(Templates *templates) {
        int r;

        if (templates->adoption || !templates->event)
                return 0;
        r = sd_event_add_defer(templates->event, &templates->adoption, on_adoption, templates);
        if (r < 0)
                return r;
        return sd_event_source_set_priority(templates->adoption, SD_EVENT_PRIORITY_IMPORTANT);
}

static int spare_become(Templates *templates, Spare *spare, const Report *report) {
        int r;

        r = templates->handlers->unit_of(report->cgroup_path, &spare->instance,
                                         templates->userdata);
        for (size_t i = 0; i < spare->n && r >= 0; i++)
                r = templates->handlers->give(spare->bindings[i], spare->instance, report,
                                              templates->userdata);
        return r < 0 ? r : schedule_adoption(templates);
}

void templates_on_instance(Templates *templates, const Binding *binding, const Report *report) {
        Spare *spare = find_spare(templates, binding->spare);
        int r;

        /* It was on its way out. */
        if (!spare)
                return;
        r = spare_become(templates, spare, report);
        if (r < 0)
                log_error_errno(r, "Failed to measure '%s' from its first call: %m",
                                report->cgroup_path);
}

void templates_adopt(Templates *templates) {
        if (templates->adoption)
                adopt_all(templates);
}

bool templates_are_empty(const Templates *templates) {
        return templates->n == 0;
}
