/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "manager/action.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/unit-name.h"
#include "log.h"
#include "manager/violation-file.h"

/*
 * What a unit would look at is over by then: such reports come when tlobd was away for a while.
 */
#define OLD_NS (10 * UINT64_C(1000000000))

/*
 * Whatever a unit does takes its time from services that are late already: one for a binding, and
 * not many.
 */
static Action *find_place(Manager *m, const Binding *binding) {
        Action *place = NULL;

        for (size_t i = 0; i < ELEMENTSOF(m->actions); i++) {
                Action *action = &m->actions[i];

                if (!action->unit)
                        place = action;
                else if (streq(action->binding, binding->name))
                        return NULL;
        }
        return place;
}

static void action_done(Action *action) {
        free(action->binding);
        free(action->unit);
        *action = (Action) {};
}

void manager_actions_done(Manager *m) {
        for (size_t i = 0; i < ELEMENTSOF(m->actions); i++)
                action_done(&m->actions[i]);
}

/* The files of services that have not ended stay. */
static int write_file(const Manager *m, const Violation *violation) {
        uint64_t used[ELEMENTSOF(m->actions)];

        for (size_t i = 0; i < ELEMENTSOF(m->actions); i++)
                used[i] = m->actions[i].id;
        return violation_file_write(m->directories[1], violation, used, ELEMENTSOF(used));
}

/* A template gets an instance for each window, and a file that tells of it. */
static int prepare_unit(Manager *m, const Binding *binding, const Violation *violation,
                        char **ret) {
        char id[WINDOW_ID_MAX];
        int r;

        if (!unit_name_is_template(binding->on_violation))
                return free_and_strdup(ret, binding->on_violation);
        (void) snprintf(id, sizeof(id), "%" PRIu64, violation->report.id);
        *ret = unit_name_make_instance(binding->on_violation, id);
        if (!*ret)
                return -ENOMEM;
        r = write_file(m, violation);
        if (r < 0)
                log_warning_errno(r, "Failed to write the file for '%s', which starts without: %m",
                                  *ret);
        return 0;
}

static int start(Manager *m, const Binding *binding, const Violation *violation, Action *place) {
        _cleanup_free_ char *name = NULL, *unit = NULL;
        int r;

        name = strdup(binding->name);
        if (!name)
                return -ENOMEM;
        r = prepare_unit(m, binding, violation, &unit);
        if (r >= 0)
                r = units_start(m->units, unit);
        if (r < 0)
                return r;
        *place = (Action) {
                .binding = TAKE_PTR(name),
                .unit = TAKE_PTR(unit),
                .id = violation->report.id,
        };
        return 0;
}

static bool is_too_soon(const Binding *binding, uint64_t now) {
        return binding->action.last_ns > 0 &&
               now - binding->action.last_ns < binding->on_violation_interval_ns;
}

void manager_act(Manager *m, Binding *binding, const Violation *violation) {
        BindingAction *action = &binding->action;
        Action *place = NULL;
        uint64_t now;
        int r;

        if (!binding->on_violation || !m->units)
                return;
        now = now_ns();
        if (now - violation->report.time_ns <= OLD_NS && !is_too_soon(binding, now))
                place = find_place(m, binding);
        if (!place) {
                action->n_skipped++;
                return;
        }
        action->last_ns = now;
        r = start(m, binding, violation, place);
        if (r < 0) {
                action->n_skipped++;
                log_warning_errno(r, "Failed to start '%s' on a violation of '%s': %m",
                                  binding->on_violation, binding->name);
                return;
        }
        action->n_started++;
}

void manager_on_started(const char *unit, const char *error, void *userdata) {
        Manager *m = userdata;

        for (size_t i = 0; i < ELEMENTSOF(m->actions); i++) {
                Action *action = &m->actions[i];

                if (!streq_empty(action->unit, unit))
                        continue;
                if (error)
                        log_warning("'%s', which was to be started on a violation of '%s', failed: "
                                    "%s",
                                    unit, action->binding, error);
                action_done(action);
                return;
        }
}
