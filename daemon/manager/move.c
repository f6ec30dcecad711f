/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Bindings that go from one back end to another: when their budgets change, and when their back end
 * says that another one would do better, or that it cannot measure them any longer.
 *
 * A binding that moves is set in its new place first, however long that takes, and leaves the old
 * one then. For a moment both measure it: at one point in time, by the clock of the reports, it
 * goes from one to the other.
 */

#include "manager/move.h"

#include "base/clock.h"
#include "log.h"
#include "manager/choice.h"
#include "manager/past.h"
#include "manager/reports.h"
#include "manager/settle.h"
#include "manager/state.h"
#include "manager/units.h"
#include "manager/watch.h"

/* Of what both have seen, each report is taken from one of them. */
static void change_place(Manager *m, Binding *binding, const Place *place, uint64_t until_ns) {
        manager_flush_binding(m, binding);
        m->move = (Move) {
                .binding = binding,
                .from = binding->measurement.backend,
                .at_ns = until_ns > 0 ? until_ns : now_ns(),
        };
        (void) place->ops->reset_statistics(place->backend, place->index);
        manager_detach_binding(m, binding);
        manager_settle_in(m, binding, place);
        manager_note_limit(binding);
        manager_note_past(binding);
        manager_flush_binding(m, binding);
        m->move = (Move) {};
        manager_complete_bindings(m);
        /* In two files it was measured only there. */
        if (binding->measurement.state == BINDING_ACTIVE)
                manager_set_active(m, binding);
}

/* Its probes are in the file as it was when they were set: a change since is yet to be found. */
static void stay_in(Binding *binding, const BindingResolved *before) {
        binding->resolved.device = before->device;
        binding->resolved.inode = before->inode;
        binding->resolved.mapped = before->mapped;
        binding->resolved.stamp = before->stamp;
}

/*
 * The first back end that can measure the binding now gets it, but for except (may be NULL); why
 * not that one: a sentence, or NULL. Its probes are set there before they leave their old place.
 * until_ns: violations that the old place finds after that count no more; 0: until it leaves.
 * Returns 1, 0 if it is in the right place, or a negative errno: it stays where it is.
 */
static int move_binding(Manager *m, Binding *binding, const BackendOps *except, const char *why,
                        uint64_t until_ns) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_free_ char *error = NULL;
        const BindingResolved before = binding->resolved;
        Place place;
        bool runs;
        int r;

        /* It goes to the program that its unit runs next when that is followed. */
        if (!manager_program_fits(m, binding))
                return -EBUSY;
        r = manager_prepare_binding(m, binding, &file, &runs, &error);
        /* Whoever cannot do without asks again. */
        binding->measurement.question = 0;
        if (r < 0 || !file)
                return r < 0 ? r : -ENOENT;
        r = manager_try_backends(m, binding, file, true, except, why, &place, &error);
        if (r < 0 || place.backend == binding->measurement.backend)
                stay_in(binding, &before);
        if (r < 0) {
                backends_release(m->backends);
                return r;
        }
        if (place.backend == binding->measurement.backend) {
                manager_settle_in(m, binding, &place);
                backends_release(m->backends);
                return 0;
        }
        change_place(m, binding, &place, until_ns);
        manager_watch_file(m, binding, file);
        return 1;
}

/* Is there another back end, before its own, that may have become able to measure it? */
static bool has_better_place(const Manager *m, const Binding *binding) {
        BackendChoice choice = manager_choice_of(m, binding);
        const BackendOps *ops;

        for (size_t i = 0; (ops = backends_get(m->backends, i)); i++) {
                if (ops == binding->measurement.backend->ops)
                        return !backend_is_wanted(ops, choice);
                if (backend_is_wanted(ops, choice) && !backend_lacks(ops, backend_needs(binding)))
                        return true;
        }
        return false;
}

/* One that would have to move goes instead: for the sake of an old file it is not worth it. */
static void apply_to_former(Manager *m, Binding *binding) {
        Binding *former = binding->former;

        memcpy(former->budget_ns, binding->budget_ns, sizeof(former->budget_ns));
        if (former->measurement.backend->ops->set_budget(
                    former->measurement.backend, former->measurement.index, former->budget_ns) < 0)
                manager_drop_former(m, binding);
}

int manager_apply_budgets(Manager *m, Binding *binding) {
        uint64_t begin_ns = now_ns();
        Backend *backend = binding->measurement.backend;
        int r;

        if (!backend)
                return 0;
        if (binding->former)
                apply_to_former(m, binding);
        r = backend->ops->set_budget(backend, binding->measurement.index, binding->budget_ns);
        if (r == -EOPNOTSUPP) {
                if (move_binding(m, binding, backend->ops, NULL, begin_ns) < 0)
                        manager_settle_binding(m, binding);
                return 0;
        }
        if (r >= 0 && has_better_place(m, binding))
                (void) move_binding(m, binding, NULL, NULL, 0);
        return r;
}

/*
 * One that it cannot measure any longer is set up anew; one that would be better off elsewhere goes
 * on here until it is measured there, or for good, if nobody else can.
 */
void manager_on_notice(const BackendNotice *notice, const BackendOps *ops, Binding *binding,
                       void *userdata) {
        Manager *m = userdata;

        if (binding->lent.user) {
                if (!notice->is_advice)
                        manager_evict_lent(m, binding, notice->text);
                return;
        }
        if (binding->latter) {
                (void) log_full_errno(notice->level, 0,
                                      "'%s' is not measured in the old version of %s any more. %s.",
                                      binding->name, binding->resolved.path, notice->text);
                manager_drop_former(m, binding->latter);
                return;
        }
        if (notice->is_final) {
                (void) log_full_errno(notice->level, 0, "'%s' is not measured any more. %s.",
                                      binding->name, notice->text);
                manager_give_up(m, binding, strdup(notice->text));
        } else if (!notice->is_advice) {
                (void) log_full_errno(notice->level, 0, "'%s' is set up anew. %s.", binding->name,
                                      notice->text);
                manager_settle_binding(m, binding);
        } else if (move_binding(m, binding, ops, notice->text, 0) > 0)
                (void) log_full_errno(notice->level, 0, "'%s' is now measured by '%s'. %s.",
                                      binding->name, binding->measurement.backend->ops->name,
                                      notice->text);
        else {
                (void) log_full_errno(notice->level, 0, "'%s' stays with back end '%s'. %s.",
                                      binding->name, ops->name, notice->text);
                return;
        }
        manager_tell_changed(m, binding);
}
