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
#include "manager/settle.h"

/* Before this look, nothing is said. */
#define SAYING_STEP 2

static void stop_looking(Manager *m, Binding *binding) {
        binding->look.due_usec = 0;
        if (binding->look.remark)
                manager_set_remark(m, binding, NULL);
}

static char *describe(const Binding *binding, const FileLook *look) {
        if (look->is_replaced)
                return sentence_make("%s still runs the old version of %s, which was replaced: "
                                     "restart the unit",
                                     binding->unit, binding->resolved.path);
        if (look->running && binding_takes_program(binding))
                return sentence_make("No process of %s has loaded %s, the program of its "
                                     "ExecStart=; its main process runs %s: write Executable=%s",
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
               statistics.counters.starts > binding->measurement.past.counters.starts;
}

static void take_look(Manager *m, Binding *binding, const FileLook *look) {
        _cleanup_free_ char *remark = NULL;

        if (look->is_mapped || has_windows(m, binding)) {
                stop_looking(m, binding);
                return;
        }
        binding->look.step++;
        manager_look_later(m, binding);
        if (look->is_other) {
                manager_settle_binding(m, binding);
                return;
        }
        if (look->n_processes == 0 || binding->look.step <= SAYING_STEP)
                return;
        remark = describe(binding, look);
        if (!remark)
                log_oom();
        else if (!streq_empty(remark, binding->look.remark))
                manager_set_remark(m, binding, remark);
}

void manager_look_at_unit(Manager *m, Binding *binding) {
        _cleanup_(file_look_done) FileLook look = {};
        int r;

        binding->look.question = 0;
        if (!binding->measurement.backend) {
                /* An image may be mounted by now, and a wrapper have become what it is for. */
                binding->look.step++;
                if (binding->view.has_root_image || binding->look.step <= SAYING_STEP)
                        manager_look_later(m, binding);
                manager_settle_binding(m, binding);
                return;
        }
        r = files_look(m->files, binding, &binding->look.question, &look);
        if (r >= 0)
                take_look(m, binding, &look);
        else if (binding->look.question == 0)
                manager_look_later(m, binding);
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
