/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The state that configuration and unit ask for: what a binding waits for, where its probes go, and
 * whether they are still where they belong. A binding that cannot be set up is failed, with a
 * reason, and stops nobody else.
 */

#include "manager/settle.h"

#include "base/sentence.h"
#include "base/unit-name.h"
#include "log.h"
#include "manager/choice.h"
#include "manager/expect.h"
#include "manager/state.h"
#include "manager/units.h"
#include "manager/watch.h"
#include "own-program.h"

int manager_prepare_binding(Manager *m, Binding *binding, BindingFile **ret_file, bool *ret_runs,
                            char **ret_error) {
        _cleanup_free_ char *error = NULL;
        int r, runs, known;

        binding->measurement.question = 0;
        r = binding_check(binding, ret_error);
        if (r < 0)
                return r;
        runs = manager_confine_binding(m, binding);
        if (runs < 0)
                return runs;
        known = manager_learn_program(m, binding, ret_error);
        if (known < 0)
                return known;

        *ret_file = NULL;
        *ret_runs = runs;
        if (!known || (!runs && unit_name_is_template(binding->unit)))
                return 0;
        r = files_resolve(m->files, binding, &binding->measurement.question, ret_file, &error);
        if (r < 0 && ret_error)
                *ret_error = TAKE_PTR(error);
        return r == -ENOENT && !runs ? 0 : r;
}

int manager_wait_for_unit(Manager *m, Binding *binding, bool is_resolved, const char *why) {
        const UnitInfo *info = manager_unit_of(m, binding);
        bool is_missing = info && !info->is_loaded;
        _cleanup_free_ char *reason = NULL;

        reason = is_missing
                         ? sentence_make("systemd cannot load %s, or there is no such unit",
                                         binding->unit)
                         : sentence_make("%s is not running%s%s%s", binding->unit,
                                         is_resolved ? ""
                                                     : ", and its program or library is not there",
                                         why ? ": " : "", why ?: "");
        if (!reason)
                return -ENOMEM;
        manager_detach_former(m, binding);
        manager_forget_unit(binding);
        if (manager_state_in_backend(binding) == BINDING_FAILED) {
                _cleanup_free_ char *remark = manager_remark_of_backend(binding);

                manager_set_state(m, binding, BINDING_FAILED, remark);
        } else
                manager_set_state(m, binding, BINDING_WAITING, reason);
        return 0;
}

void manager_set_active(Manager *m, Binding *binding) {
        BindingState state = manager_state_in_backend(binding);
        _cleanup_free_ char *remark = NULL;

        if (state == BINDING_ACTIVE)
                manager_set_state_active(m, binding);
        manager_expect_unit(m, binding);
        remark = manager_remark_of_backend(binding);
        if (state != BINDING_ACTIVE)
                manager_set_state(m, binding, state, remark);
        else if (remark)
                manager_set_remark(m, binding, remark);
}

void manager_drop_former(Manager *m, Binding *binding) {
        manager_detach_former(m, binding);
        if (binding->measurement.state == BINDING_ACTIVE)
                manager_set_active(m, binding);
}

/* Its unit is the only one who could see its file. */
static int wait_for_root(Manager *m, Binding *binding, bool runs, char **error) {
        manager_set_state(m, binding, BINDING_WAITING, *error);
        free(*error);
        *error = NULL;
        if (runs)
                manager_expect_unit(m, binding);
        else
                manager_forget_unit(binding);
        return 0;
}

/* The machine has not enough of something, for the moment. */
static bool error_may_pass(int error) {
        return error == -ENOMEM || error == -EAGAIN || error == -EBUSY || error == -EINTR ||
               error == -EMFILE || error == -ENFILE || error == -ENOBUFS;
}

/* Of one that is tried again already, that goes on. */
static void try_again_later(Manager *m, Binding *binding) {
        if (binding->watch.retries > 0)
                return;
        binding->watch.retries = 1;
        manager_check_file_later(m, binding, WATCH_INTERVAL_USEC);
}

/* The probes of a unit that does not run are set all the same: they are there when it starts. */
int manager_try_to_settle(Manager *m, Binding *binding, char **ret_error) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        bool runs;
        int r;

        binding->measurement.question = 0;
        /* Its file need not be looked at: there may be a hundred thousand of them. */
        if (!binding->unit && backends_are_full(m->backends) &&
            !templates_give_up_spare(m->templates))
                return sentence_error(-ENOSPC, ret_error,
                                      "There are %u bindings already; raise BindingsMax= in "
                                      "tlobd.conf",
                                      m->config->bindings_max);
        r = manager_prepare_binding(m, binding, &file, &runs, ret_error);
        if (r == -EAGAIN)
                return wait_for_root(m, binding, runs, ret_error);
        if (error_may_pass(r))
                try_again_later(m, binding);
        if (r < 0)
                return r;
        if (!file)
                return manager_wait_for_unit(m, binding, false, *ret_error);
        if (manager_file_was_written(m, binding)) {
                manager_wait_for_file(m, binding);
                return 0;
        }

        do {
                free(*ret_error);
                *ret_error = NULL;
                r = manager_attach_binding(m, binding, file, ret_error);
        } while (r == -ENOSPC && templates_give_up_spare(m->templates));
        if (error_may_pass(r))
                try_again_later(m, binding);
        if (r < 0 && (runs || r != -ENOSPC))
                return r;
        if (!runs)
                return manager_wait_for_unit(m, binding, true, NULL);
        manager_look_anew(binding);
        manager_set_active(m, binding);
        return 0;
}

int manager_attach_spare(Manager *m, Binding *binding, char **ret_error) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        bool runs;
        int r;

        r = manager_prepare_binding(m, binding, &file, &runs, ret_error);
        if (r < 0)
                return r;
        if (!file || !binding->cgroup.path)
                return -ENOENT;
        if (manager_file_was_written(m, binding))
                return -EAGAIN;
        return manager_attach_binding(m, binding, file, ret_error);
}

/* Once, until all files answer again. */
static void note_late_file(Manager *m, const char *sentence) {
        if (!m->files_are_late)
                log_warning("%s. Bindings of this file wait.", sentence);
        m->files_are_late = true;
}

/*
 * Whoever measures for this tlobd is of another version. Returns true if its own program is by now,
 * too: it ends then, to be started anew.
 */
static bool start_anew(Manager *m) {
        int code;

        if (!own_program_is_replaced())
                return false;
        if (sd_event_get_exit_code(m->event, &code) >= 0)
                return true;
        log_notice("tlobd was upgraded: ending, to be started anew.");
        return sd_event_exit(m->event, MANAGER_START_ANEW) >= 0;
}

/* It cannot be settled, or not yet. */
static void fail(Manager *m, Binding *binding, int r, const char *error) {
        _cleanup_free_ char *reason = NULL;

        if (r == -EPROTO && start_anew(m))
                return;
        if (binding->measurement.question > 0) {
                if (r == -ETIMEDOUT)
                        note_late_file(m, error);
                manager_set_state(m, binding, BINDING_WAITING, error);
                return;
        }
        /* Its next process has no hook yet when it starts, and would set one over the probe. */
        if (r == -ETXTBSY) {
                manager_give_up(m, binding, strdup(error ?: strerror(-r)));
                return;
        }
        reason = sentence_make("%s: %s", binding->source.place ?: binding->name,
                               error ?: strerror(-r));
        manager_set_state(m, binding, BINDING_FAILED, reason);
        /* What its program becomes, loads, and sees of files can be told once it runs. */
        if (binding->view.main_pid > 0)
                manager_expect_unit(m, binding);
}

/* What is no matter of its unit and its file. Returns true if it is settled by that. */
static bool settle_early(Manager *m, Binding *binding) {
        if (binding->source.error)
                manager_set_state(m, binding, BINDING_FAILED, binding->source.error);
        else if (!binding->enabled)
                manager_set_state(m, binding, BINDING_DISABLED, NULL);
        else if (binding->measurement.given_up)
                manager_set_state(m, binding, BINDING_FAILED, binding->measurement.given_up);
        else if (binding->watch.is_written) {
                manager_wait_for_file(m, binding);
                return true;
        } else
                return false;
        manager_unwatch_file(m, binding);
        return true;
}

void manager_settle_binding(Manager *m, Binding *binding) {
        _cleanup_free_ char *error = NULL;
        int r;

        manager_detach_binding(m, binding);
        if (settle_early(m, binding))
                return;
        r = manager_try_to_settle(m, binding, &error);
        if (r < 0)
                fail(m, binding, r, error);
        manager_complete_bindings(m);
}

void manager_give_up(Manager *m, Binding *binding, char *why) {
        if (!why) {
                log_oom();
                return;
        }
        free(binding->measurement.given_up);
        binding->measurement.given_up = why;
        manager_settle_binding(m, binding);
}

void manager_forget_given_up(Manager *m) {
        for (size_t i = 0; i < m->config->bindings.n; i++) {
                BindingMeasurement *measurement = &m->config->bindings.items[i]->measurement;

                free(measurement->given_up);
                measurement->given_up = NULL;
                measurement->n_crashes = 0;
        }
}
