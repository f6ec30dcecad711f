/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A binding can have its probes, and a unit that runs, and yet never see anything: in a file that
 * none of the unit's processes has. They see other files below their own root, run another program
 * than ExecStart= says, or have not been restarted since an upgrade. So when a unit has started,
 * its processes are looked at, a few times: a process that has just been made is still systemd, and
 * libraries can be loaded at any time.
 *
 * What is found is said in the binding's state, and once in the log.
 */

#include "manager/looks.h"

#include "base/sentence.h"
#include "log.h"
#include "manager/expect.h"
#include "manager/former.h"
#include "manager/settle.h"

/* Before this look, nothing is said. */
#define SAYING_STEP 2

static void stop_looking(Manager *m, Binding *binding) {
        binding->look.due_usec = 0;
        if (binding->look.remark)
                manager_set_remark(m, binding, NULL);
}

/* Why it is not active at all is the reason of its state, for as long as it has that. */
static char *remark_of_active(const Binding *binding) {
        return manager_state_in_backend(binding) == BINDING_ACTIVE
                       ? manager_remark_of_backend(binding)
                       : NULL;
}

static char *describe_old(const Binding *binding, const char *why) {
        return sentence_make("%s still runs the old version of %s, which was replaced%s: restart "
                             "the unit",
                             binding->unit, binding->resolved.path, why);
}

static char *describe(const Binding *binding, const FileLook *look) {
        if (look->is_replaced)
                return describe_old(binding, "");
        if (look->running && binding_takes_program(binding))
                return sentence_make("No process of %s has loaded %s, the program of its "
                                     "ExecStart=; its main process runs %s: restart the unit if "
                                     "its ExecStart= was changed, else write Executable=%s",
                                     binding->unit, binding->resolved.path, look->running,
                                     look->running);
        if (look->running)
                return sentence_make("No process of %s has loaded %s; its main process runs %s",
                                     binding->unit, binding->resolved.path, look->running);
        return sentence_make("No process of %s has loaded %s", binding->unit,
                             binding->resolved.path);
}

static bool has_windows(Manager *m, Binding *binding) {
        Statistics statistics;

        return manager_get_statistics(m, binding, &statistics) >= 0 &&
               statistics.counters.starts > binding->measurement.past.statistics.counters.starts;
}

static bool has_ended_windows(Manager *m, Binding *binding) {
        const Counters *past = &binding->measurement.past.statistics.counters;
        Statistics now;

        return manager_get_statistics(m, binding, &now) >= 0 &&
               now.counters.in_budget + now.counters.violated > past->in_budget + past->violated;
}

/* Takes remark; NULL: there was no memory for it. */
static void say(Manager *m, Binding *binding, char *remark) {
        if (!remark)
                log_oom();
        else if (!streq_empty(remark, binding->look.remark))
                manager_set_remark(m, binding, remark);
        free(remark);
}

/* Who still runs the old version is measured there, too; else why not is said. */
static void measure_old(Manager *m, Binding *binding) {
        _cleanup_free_ char *error = NULL, *why = NULL;
        int r;

        r = manager_measure_old(m, binding, &error);
        if (r == -EINPROGRESS && binding->look.question > 0)
                return;
        binding->look.old = (OldProgram) {};
        if (r >= 0)
                return;
        binding->look.step++;
        manager_look_later(m, binding);
        /* It has ended meanwhile, or there is nothing to be said. */
        if (r == -ESTALE || !error || has_windows(m, binding) || binding->look.step <= SAYING_STEP)
                return;
        why = sentence_make(", and cannot be measured there: %s", error);
        say(m, binding, why ? describe_old(binding, why) : NULL);
}

/*
 * Is the file theirs? A library of that name may be loaded later by the main process, which is
 * believed before others. Of that name is also the old version.
 */
static bool is_settled(Manager *m, Binding *binding, const FileLook *look) {
        if (look->is_replaced && !look->is_mapped)
                return has_windows(m, binding);
        if (binding_takes_library(binding))
                return !look->is_elsewhere && binding->look.step > SAYING_STEP &&
                       (look->is_mains || has_windows(m, binding));
        return look->is_mapped || has_windows(m, binding);
}

/*
 * What happens tells whether its windows can end: where they are between events, or have keys.
 * Takes remark, the back end's.
 */
static void look_at_ends(Manager *m, Binding *binding, char *remark) {
        binding->look.step++;
        manager_look_later(m, binding);
        if (remark)
                say(m, binding, remark);
        else if (has_ended_windows(m, binding))
                stop_looking(m, binding);
}

/* Its file is theirs: without a key, that is all that there is to be said. */
static void look_at_settled(Manager *m, Binding *binding) {
        char *remark = remark_of_active(binding);

        if (remark || binding->resolved.sites.key)
                look_at_ends(m, binding, remark);
        else
                stop_looking(m, binding);
}

static void take_look(Manager *m, Binding *binding, const FileLook *look) {
        if (look->is_early) {
                binding->look.step++;
                manager_look_later(m, binding);
                return;
        }
        if (look->old.pid > 0 && !look->is_other) {
                binding->look.old = look->old;
                measure_old(m, binding);
                return;
        }
        if (is_settled(m, binding, look)) {
                look_at_settled(m, binding);
                return;
        }
        binding->look.step++;
        manager_look_later(m, binding);
        if (look->is_other || look->is_elsewhere) {
                /* Whoever checks the file keeps the old one, if the new one cannot be measured. */
                if (binding->watch.due_usec == 0)
                        manager_settle_binding(m, binding);
                return;
        }
        if (look->is_mapped || look->n_processes == 0 || binding->look.step <= SAYING_STEP)
                return;
        say(m, binding, describe(binding, look));
}

void manager_look_at_unit(Manager *m, Binding *binding) {
        _cleanup_(file_look_done) FileLook look = {};
        bool wants_old;
        int r;

        binding->look.question = 0;
        /* In the new file there need be nobody yet. */
        if (binding->former) {
                manager_look_at_former(m, binding);
                return;
        }
        if (!binding->measurement.backend) {
                /*
                 * An image may be mounted by now, a container run, a library be loaded, and a
                 * wrapper have become what it is for.
                 */
                binding->look.step++;
                if (binding->measurement.state == BINDING_WAITING ||
                    binding_takes_library(binding) || binding->look.step <= SAYING_STEP)
                        manager_look_later(m, binding);
                manager_settle_binding(m, binding);
                return;
        }
        if (binding_has_events(binding)) {
                look_at_ends(m, binding, remark_of_active(binding));
                return;
        }
        if (binding->look.old.pid > 0) {
                measure_old(m, binding);
                return;
        }
        wants_old = binding->look.step == 0 || backends_have_left(m->backends);
        r = files_look(m->files, binding, wants_old, &binding->look.question, &look);
        if (r >= 0)
                take_look(m, binding, &look);
        else if (binding->look.question == 0)
                manager_look_later(m, binding);
}

void manager_look_for_old(Manager *m) {
        if (!backends_have_left(m->backends))
                return;
        for (size_t i = 0; i < m->config->bindings.n; i++) {
                Binding *binding = m->config->bindings.items[i];

                if (binding->look.due_usec > 0 && binding->measurement.backend)
                        manager_look_at_unit(m, binding);
        }
}

uint64_t manager_look_at_units(Manager *m, uint64_t usec) {
        uint64_t next = UINT64_MAX;

        for (size_t i = 0; i < m->config->bindings.n; i++) {
                Binding *binding = m->config->bindings.items[i];

                if (binding->look.due_usec > 0 && binding->look.due_usec <= usec) {
                        binding->look.due_usec = 0;
                        manager_look_at_unit(m, binding);
                }
                if (binding->look.due_usec > 0 && binding->look.due_usec < next)
                        next = binding->look.due_usec;
        }
        return next;
}
