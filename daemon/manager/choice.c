/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which back end measures a binding: by what they can do, and by what the administrator asked for,
 * so that no name of a back end is compared with anything else here. A binding that has its probes
 * is measured where they are, until it is detached or moves (manager/move.c).
 */

#include "manager/choice.h"

#include "base/sentence.h"
#include "base/unit-name.h"
#include "binding/keys.h"
#include "binding/sites.h"
#include "log.h"
#include "manager/builds.h"
#include "manager/past.h"
#include "manager/reports.h"
#include "manager/state.h"
#include "manager/tolerance.h"
#include "manager/watch.h"

BackendChoice manager_choice_of(const Manager *m, const Binding *binding) {
        return binding->choice != BACKEND_CHOICE_AUTO ? binding->choice : m->config->backend;
}

/* Adds a sentence to those that say why the back ends before were not taken. */
static int add_reason(char **reasons, const char *reason) {
        char *joined;

        joined = *reasons ? sentence_make("%s; %s", *reasons, reason) : strdup(reason);
        if (!joined)
                return -ENOMEM;
        free(*reasons);
        *reasons = joined;
        return 0;
}

/* 0 if the back end can measure the binding; else -EOPNOTSUPP, and why not is added to *reasons. */
static int backend_can(const BackendOps *ops, const Binding *binding, const BindingFile *file,
                       char **reasons) {
        const char *lacks = backend_lacks(ops, backend_needs(binding));
        _cleanup_free_ char *reason = NULL;
        int r;

        if (lacks) {
                reason = sentence_make("Back end '%s' cannot %s", ops->name, lacks);
                r = reason ? -EOPNOTSUPP : -ENOMEM;
        } else
                r = ops->can ? ops->can(binding, file, &reason) : 0;
        if (r >= 0)
                return 0;
        if (add_reason(reasons, reason ?: strerror(-r)) < 0)
                return -ENOMEM;
        return r;
}

/* Sets the probes, unless it has them there. */
static int backend_take(Manager *m, const Binding *binding, const BindingFile *file, Place *place,
                        char **reasons) {
        _cleanup_free_ char *reason = NULL;
        int r;

        if (binding->measurement.backend && binding->measurement.backend->ops == place->ops) {
                place->backend = binding->measurement.backend;
                place->index = binding->measurement.index;
                return 0;
        }
        r = backends_make(m->backends, place->ops, &place->backend, &reason);
        if (r >= 0)
                r = place->ops->add(place->backend, binding, file, &place->index, &reason);
        if (r < 0)
                (void) add_reason(reasons, reason ?: strerror(-r));
        return r;
}

/* Why back ends that this build has are not there, unless nobody would look for them. */
static int reasons_of_absent(const Manager *m, char **reasons) {
        const BackendAbsence *absence;

        for (size_t i = 0; (absence = backends_get_absence(m->backends, i)); i++)
                if (add_reason(reasons, absence->reason) < 0)
                        return -ENOMEM;
        return 0;
}

static int no_backend(Manager *m, int error, const char *wanted, const char *reasons,
                      char **ret_error) {
        const BackendAbsence *absence;

        if (!backends_get(m->backends, 0))
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "Nothing can be measured on this machine. %s", reasons ?: "");
        if (error < 0)
                return sentence_error(error, ret_error, "%s", reasons ?: strerror(-error));
        for (size_t i = 0; (absence = backends_get_absence(m->backends, i)); i++)
                if (streq(absence->ops->name, wanted))
                        return sentence_error(-EOPNOTSUPP, ret_error,
                                              "This machine has no back end '%s': %s", wanted,
                                              absence->reason);
        return sentence_error(-EOPNOTSUPP, ret_error,
                              "This machine has no back end '%s'; write Backend=auto", wanted);
}

bool backend_is_wanted(const BackendOps *ops, BackendChoice choice) {
        return choice == BACKEND_CHOICE_AUTO || streq(ops->name, backend_choice_to_string(choice));
}

int manager_try_backends(Manager *m, const Binding *binding, const BindingFile *file, bool take,
                         const BackendOps *except, const char *why, Place *ret, char **ret_error) {
        BackendChoice choice = manager_choice_of(m, binding);
        _cleanup_free_ char *reasons = NULL, *chosen = NULL;
        int error = 0, r = 0;
        Place place = {};

        /* Nothing may fail once it has its probes. */
        chosen = strdup(choice == BACKEND_CHOICE_AUTO ? "The first back end that can measure it"
                                                      : "As configured by Backend=");
        if (!chosen)
                return -ENOMEM;
        if (choice == BACKEND_CHOICE_AUTO || !backends_get(m->backends, 0))
                r = reasons_of_absent(m, &reasons);
        if (r >= 0 && why)
                r = add_reason(&reasons, why);
        for (size_t i = 0; r != -ENOMEM && (place.ops = backends_get(m->backends, i)); i++) {
                if (!backend_is_wanted(place.ops, choice) || (place.ops == except && why))
                        continue;
                r = backend_can(place.ops, binding, file, &reasons);
                if (place.ops == except)
                        continue;
                if (r >= 0 && take)
                        r = backend_take(m, binding, file, &place, &reasons);
                if (r >= 0) {
                        place.reason = reasons ? TAKE_PTR(reasons) : TAKE_PTR(chosen);
                        *ret = place;
                        return 0;
                }
                error = r;
        }
        if (r == -ENOMEM)
                return r;
        r = no_backend(m, error, backend_choice_to_string(choice), reasons, ret_error);
        return r < 0 ? r : -EOPNOTSUPP;
}

int manager_choose_backend(Manager *m, Binding *binding, const BindingFile *file,
                           const BackendOps **ret_backend, char **ret_reason, char **ret_error) {
        Place place;
        int r;

        r = manager_try_backends(m, binding, file, false, NULL, NULL, &place, ret_error);
        if (r < 0)
                return r;
        *ret_backend = place.ops;
        *ret_reason = place.reason;
        return 0;
}

void manager_settle_in(Manager *m, Binding *binding, const Place *place) {
        binding->measurement.backend = place->backend;
        binding->measurement.index = place->index;
        backends_put(m->backends, binding);
        free(binding->measurement.backend_reason);
        binding->measurement.backend_reason = place->reason;
        /* What these places have cost before, for others, is not its: somebody may be looking. */
        binding->measurement.cost_ns =
                place->ops->cost ? place->ops->cost(place->backend, place->index) : 0;
}

/*
 * What was asked for can break the program, or measure next to nothing: as wrappers do, of fopen()
 * for one.
 */
static void warn_of_stop(const Binding *binding) {
        const BindingSites *sites = &binding->resolved.sites;
        bool is_wrapper = sites->exits.n > 0 && sites->exits.n_returns == 0;
        bool goes_on = function_exits_n_jumps(&sites->exits) > 0;
        _cleanup_free_ char *note = NULL;

        if (sites->how != TLOB_STOP_RETURN_PROBE && !goes_on)
                return;
        if (binding_describe_stop(binding, &note) < 0)
                return;
        if (is_wrapper)
                log_warning(
                        "'%s' may measure next to nothing, because its function is left only by "
                        "calling others. %s.",
                        binding->name, note);
        else if (goes_on)
                log_notice("'%s' does not measure what its function ends with: %s.", binding->name,
                           note);
        else
                log_warning("'%s' has Stop=%s. %s.", binding->name, binding->stop, note);
}

static void warn_of_semaphores(const Binding *binding) {
        _cleanup_free_ char *note = NULL;

        if (binding_describe_semaphores(binding, &note) >= 0 && note)
                log_warning("'%s' may not see all of its windows. %s.", binding->name, note);
}

int manager_attach_binding(Manager *m, Binding *binding, const BindingFile *file,
                           char **ret_error) {
        Place place;
        int r;

        r = manager_try_backends(m, binding, file, true, NULL, NULL, &place, ret_error);
        if (r < 0) {
                backends_release(m->backends);
                return r;
        }
        manager_settle_in(m, binding, &place);
        manager_forget_kept(binding);
        manager_take_over_limit(m, binding);
        manager_take_over_past(binding);
        manager_watch_file(m, binding, file);
        manager_compare_build(m, binding);
        manager_follow_tolerance(m, binding);
        warn_of_stop(binding);
        warn_of_semaphores(binding);
        return 0;
}

/* What was counted is the past of the binding, or of the one whose former it is. */
static void detach(Manager *m, Binding *binding) {
        Histogram lengths = {};
        Backend *backend = binding->measurement.backend;
        Statistics final;

        if (!backend)
                return;

        /* What has been reported by then is counted in what it has in the end. */
        backends_flush(m->backends, backend);
        if (backend->ops->remove(backend, binding->measurement.index, &final, &lengths) >= 0) {
                manager_count_suppressed(m, binding, &final);
                manager_add_past(binding, &final, &lengths);
        }
        /* The last reports are still the binding's. */
        backends_flush(m->backends, backend);
        backends_take(m->backends, binding);
        binding->measurement.backend = NULL;
        binding->limit.seen = 0;
        free(binding->measurement.backend_reason);
        binding->measurement.backend_reason = NULL;
        backends_release(m->backends);
}

void manager_detach_former(Manager *m, Binding *binding) {
        _cleanup_(binding_freep) Binding *former = binding->former;

        if (!former)
                return;
        detach(m, former);
        manager_unwatch_file(m, former);
        binding->former = NULL;
        manager_note_past(binding);
        manager_compare_build(m, binding);
        /* Without one unit, nothing but that was looked at. */
        if (!binding->unit || unit_name_is_template(binding->unit))
                binding->look.due_usec = binding->look.question = 0;
}

void manager_detach_binding(Manager *m, Binding *binding) {
        manager_detach_former(m, binding);
        detach(m, binding);
}

void manager_complete_bindings(Manager *m) {
        if (m->n_applying == 0)
                backends_complete(m->backends);
}

void manager_flush_binding(Manager *m, const Binding *binding) {
        if (binding->measurement.backend)
                backends_flush(m->backends, binding->measurement.backend);
}
