/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Two files are measured at most: that which is at the path, and one that was there before. Of two
 * that were, the one that is still run stays.
 *
 * Who runs a file is asked of the processes of the unit. Without a unit it would be those of the
 * whole machine: they are counted, and less often.
 */

#include "manager/former.h"

#include "base/sentence.h"
#include "base/unit-name.h"
#include "binding/executable.h"
#include "binding/keys.h"
#include "log.h"
#include "manager/builds.h"
#include "manager/choice.h"
#include "manager/expect.h"
#include "manager/past.h"
#include "manager/reports.h"
#include "manager/settle.h"
#include "manager/state.h"
#include "manager/units.h"
#include "manager/watch.h"

#define COUNT_USEC (UINT64_C(600) * 1000000)

#define RETRY_STEPS_MAX 4 /* after 1, 2, 4, 8, 16, 16 ... seconds */

static bool has_one_unit(const Binding *binding) {
        return binding->unit && !unit_name_is_template(binding->unit);
}

/* Does the unit run the file that the binding is resolved in? 1, 0, or a negative errno. */
static int unit_runs(Manager *m, const Binding *binding, unsigned *ret_question) {
        _cleanup_(file_look_done) FileLook look = {};
        int r;

        if (binding->cgroup.id == 0)
                return 0;
        r = files_look(m->files, binding, false, ret_question, &look);
        return r < 0 ? r : look.is_mapped;
}

/* The same of any process. */
static int machine_runs(Manager *m, const Binding *binding, unsigned *ret_question) {
        FileUsers users;
        int r;

        r = files_count(m->files, binding, ret_question, &users);
        return r < 0 ? r : users.n_processes + users.n_unseen > 0;
}

/* Its former is the program that its unit had before, at another path. */
static bool has_other_path(const Binding *binding) {
        return !streq(binding->resolved.path, binding->former->resolved.path);
}

static char *describe(const Binding *binding) {
        const Binding *former = binding->former;

        if (has_one_unit(binding) && has_other_path(binding))
                return sentence_make("%s still runs %s, and runs %s from its next start on: both "
                                     "are measured",
                                     binding->unit, former->resolved.path, binding->resolved.path);
        if (has_one_unit(binding))
                return sentence_make(
                        "%s still runs the old version of %s, which was replaced: both are "
                        "measured",
                        binding->unit, binding->resolved.path);
        return sentence_make("Some processes still run the old version of %s, which was replaced: "
                             "both are measured",
                             former->resolved.path);
}

/* It is the former's reason, as the binding may have others. */
static void tell_of_both(Manager *m, Binding *binding) {
        _cleanup_free_ char *reason = describe(binding);

        if (!reason || free_and_strdup(&binding->former->measurement.reason, reason) < 0)
                log_oom();
        if (binding->measurement.state == BINDING_ACTIVE)
                manager_set_active(m, binding);
}

/* A copy of the binding, resolved in what is at its path now, or in that old program. */
static int prepare_copy(Manager *m, const Binding *binding, const OldProgram *old,
                        unsigned *ret_question, Binding **ret, BindingFile **ret_file,
                        char **ret_error) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_(binding_freep) Binding *copy = NULL;
        bool runs;
        int r;

        r = binding_copy(binding, &copy);
        if (r < 0)
                return r;
        copy->view.old = *old;
        r = manager_prepare_binding(m, copy, &file, &runs, ret_error);
        /* When that is answered, this is done again. */
        if (r == -EINPROGRESS)
                *ret_question = copy->measurement.question;
        if (r < 0)
                return r;
        if (!file)
                return -ENOENT;
        if (manager_file_was_written(m, copy))
                return -EINPROGRESS;
        *ret = TAKE_PTR(copy);
        *ret_file = TAKE_PTR(file);
        return 0;
}

static bool are_in_one_file(const Binding *a, const Binding *b) {
        return a->resolved.device == b->resolved.device && a->resolved.inode == b->resolved.inode;
}

/*
 * Is the file that it is to leave still run? Without a unit, the one that was there before it is
 * known to be: that one stays.
 */
static int is_run(Manager *m, const Binding *binding) {
        unsigned question = 0;

        return has_one_unit(binding) ? unit_runs(m, binding, &question) : !binding->former;
}

/* The same of its former. Where the unit is may have changed since, and who is its main process. */
static int former_is_run(Manager *m, Binding *binding) {
        Binding *former = binding->former;
        int r;

        if (!has_one_unit(binding))
                return machine_runs(m, former, &binding->look.question);
        former->view.main_pid = binding->view.main_pid;
        r = manager_confine_binding(m, former);
        return r < 0 ? r : unit_runs(m, former, &binding->look.question);
}

/* The binding has the probes of next from now on, and next those of the binding. */
static void exchange(Manager *m, Binding *binding, Binding *next) {
        const BindingWatch before = binding->watch;

        binding_begin_file(binding, next);
        manager_forget_kept(binding);
        /* However often it is replaced. */
        binding->watch.looked_usec = before.looked_usec;
        binding->watch.followed_usec = before.followed_usec;
        backends_put(m->backends, binding);
        backends_put(m->backends, next);
        /* Killed in between, it is better known to neither than to both. */
        manager_note_limit(next);
        manager_note_past(next);
        manager_note_limit(binding);
        manager_note_past(binding);
}

/* From now on it measures in next, too, or only there. */
static void begin_file(Manager *m, Binding *binding, Binding *next, bool old_is_run) {
        Binding *first = binding->former;

        exchange(m, binding, next);
        if (first && old_is_run)
                binding->former = first;
        if (first || !old_is_run)
                manager_detach_former(m, binding);
        if (first)
                binding->former = old_is_run ? next : first;
        manager_compare_build(m, binding);
        manager_complete_bindings(m);
}

/* The file of its former is at its path again, and has its probes. */
static void return_to_former(Manager *m, Binding *binding, bool new_is_run) {
        exchange(m, binding, binding->former);
        if (!new_is_run)
                manager_detach_former(m, binding);
        manager_check_file_later(m, binding, WATCH_SETTLE_USEC);
}

/* What is kept ready for others goes, if there is no place. */
static int attach_copy(Manager *m, Binding *copy, const BindingFile *file, char **ret_error) {
        int r;

        do {
                free(*ret_error);
                *ret_error = NULL;
                r = manager_attach_binding(m, copy, file, ret_error);
        } while (r == -ENOSPC && templates_give_up_spare(m->templates));
        return r;
}

/* Returns as manager_attach_binding(). */
static int begin_next(Manager *m, Binding *binding, bool old_is_run, char **ret_error) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_(binding_freep) Binding *next = NULL;
        const OldProgram none = {};
        int r;

        r = prepare_copy(m, binding, &none, &binding->measurement.question, &next, &file,
                         ret_error);
        if (r < 0)
                return r;
        if (binding->former && are_in_one_file(next, binding->former)) {
                return_to_former(m, binding, old_is_run);
                return 0;
        }
        /* Nobody could see its path for a moment, it has been rewritten, or has another name. */
        if (are_in_one_file(next, binding)) {
                binding_exchange_paths(binding, next);
                return -EALREADY;
        }
        r = attach_copy(m, next, file, ret_error);
        if (r >= 0)
                begin_file(m, binding, TAKE_PTR(next), old_is_run);
        return r;
}

static char *describe_kept(const Binding *binding, bool is_moved, int r, const char *error) {
        const char *unit = binding->unit, *path = binding->resolved.path;

        if (is_moved)
                return sentence_make("%s still runs %s, and is measured there until it is "
                                     "restarted: what its ExecStart= names now cannot be: %s",
                                     unit, path, error);
        if (r == -ENOENT)
                return sentence_make("%s still runs %s, which was removed, and is measured there "
                                     "until it is restarted",
                                     unit, path);
        return sentence_make("%s still runs the old version of %s, which was replaced, and is "
                             "measured there until it is restarted: the new version cannot be: %s",
                             unit, path, error);
}

/*
 * What is at its path now cannot be measured. What was there is, as long as it is run; perhaps
 * somebody is on the way to put something better there.
 */
static void stay(Manager *m, Binding *binding, bool is_moved, int r, const char *error) {
        _cleanup_free_ char *reason = describe_kept(binding, is_moved, r, error);

        manager_check_file_later(m, binding, WATCH_INTERVAL_USEC << binding->watch.retries);
        if (binding->watch.retries < RETRY_STEPS_MAX)
                binding->watch.retries++;
        if (!reason || streq_empty(reason, binding->look.kept))
                return;
        log_notice("'%s': %s.", binding->name, reason);
        free(binding->look.kept);
        binding->look.kept = TAKE_PTR(reason);
        manager_set_active(m, binding);
}

static void tell_of_replacement(Manager *m, Binding *binding, bool is_moved) {
        if (!binding->former) {
                (void) log_full_errno(binding_has_passing_files(binding) ? LOG_DEBUG : LOG_NOTICE,
                                      0, "'%s' is set up anew: %s%s %s.", binding->name,
                                      is_moved ? "it is in " : "", binding->resolved.path,
                                      is_moved ? "now" : "was replaced");
                if (binding->measurement.state == BINDING_ACTIVE)
                        manager_set_active(m, binding);
                manager_tell_changed(m, binding);
                return;
        }
        if (is_moved)
                log_notice("'%s': the program of %s is %s now, which is measured, and %s as long "
                           "as it is run.",
                           binding->name, binding->unit, binding->resolved.path,
                           binding->former->resolved.path);
        else
                log_notice("'%s': %s was replaced: the new version is measured, and the old one as "
                           "long as it is run.",
                           binding->name, binding->resolved.path);
        manager_set_remark(m, binding, NULL);
        if (has_one_unit(binding))
                tell_of_both(m, binding);
        binding->look.step = 0;
        manager_look_later(m, binding);
}

bool manager_follow_replacement(Manager *m, Binding *binding, bool is_early) {
        bool is_moved = !manager_program_fits(m, binding);
        _cleanup_free_ char *error = NULL;
        int r, old_is_run = is_run(m, binding);

        r = old_is_run < 0 ? old_is_run : begin_next(m, binding, old_is_run, &error);
        if (r >= 0) {
                tell_of_replacement(m, binding, is_moved);
                return true;
        }
        if (r == -EALREADY && is_moved)
                return manager_learn_program(m, binding, NULL) >= 0;
        if (r == -EALREADY)
                return is_early;
        if (is_early || r == -EINPROGRESS) {
                manager_check_file_later(m, binding, WATCH_SETTLE_USEC);
                return true;
        }
        if (!has_one_unit(binding) || (old_is_run <= 0 && !binding->former))
                return false;
        stay(m, binding, is_moved, r, error ?: strerror(-r));
        return true;
}

/*
 * The books of a binding that had another file are in those of the binding already, unless the
 * daemon before this one has not seen that it was replaced.
 */
static void take_books(Binding *binding, Binding *old) {
        BindingMeasurement *measurement = &binding->measurement;
        BindingLimit *to = &binding->limit, *from = &old->limit;

        if (measurement->past.statistics.counters.starts == 0 &&
            past_add(&measurement->past, &old->measurement.past) < 0)
                log_oom();
        manager_clear_past(old);
        manager_note_past(binding);
        to->n_suppressed += from->n_suppressed;
        to->suppressed += from->suppressed;
        to->unannounced += from->unannounced;
        from->n_suppressed = from->suppressed = from->unannounced = 0;
        manager_note_limit(binding);
        manager_note_limit(old);
}

static void add_former(Manager *m, Binding *binding, Binding *old) {
        old->latter = binding;
        binding->former = old;
        take_books(binding, old);
        manager_complete_bindings(m);
        manager_set_remark(m, binding, NULL);
        tell_of_both(m, binding);
        binding->look.step = 0;
        manager_look_later(m, binding);
        log_notice("'%s': %s still runs the old version of %s, which is measured, too.",
                   binding->name, binding->unit, binding->resolved.path);
}

int manager_measure_old(Manager *m, Binding *binding, char **ret_error) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_(binding_freep) Binding *old = NULL;
        int r;

        r = prepare_copy(m, binding, &binding->look.old, &binding->look.question, &old, &file,
                         ret_error);
        if (r >= 0 && are_in_one_file(old, binding))
                r = -EEXIST;
        if (r >= 0)
                r = free_and_strdup(&old->resolved.path, binding->resolved.path);
        if (r >= 0)
                r = free_and_strdup(&old->resolved.inner_path, binding->resolved.inner_path);
        if (r >= 0)
                r = attach_copy(m, old, file, ret_error);
        if (r < 0)
                return r;
        add_former(m, binding, TAKE_PTR(old));
        return 0;
}

void manager_look_at_former(Manager *m, Binding *binding) {
        const Binding *former = binding->former;
        int r = former_is_run(m, binding);

        if (r < 0 && binding->look.question > 0)
                return;
        if (r == 0) {
                log_info("'%s': no process runs %s%s any more.", binding->name,
                         has_other_path(binding) ? "" : "the old version of ",
                         former->resolved.path);
                manager_drop_former(m, binding);
                /* There may be another one. */
                binding->look.step = 0;
                if (has_one_unit(binding))
                        manager_look_later(m, binding);
                return;
        }
        if (r > 0)
                tell_of_both(m, binding);
        binding->look.step++;
        if (has_one_unit(binding))
                manager_look_later(m, binding);
        else
                manager_look_in(m, binding, COUNT_USEC);
}

void manager_fall_back(Manager *m, Binding *binding) {
        Binding *former = binding->former;

        exchange(m, binding, former);
        manager_note_written(m, former);
        manager_detach_former(m, binding);
        log_notice("'%s' is measured only in the old version of %s for a moment: the new one was "
                   "written to.",
                   binding->name, binding->resolved.path);
        if (binding->measurement.state == BINDING_ACTIVE)
                manager_set_active(m, binding);
}
