/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A probe that breaks a program is nothing that should happen, and nothing that an administrator
 * should have to find: when the main process of a unit crashes twice within ten minutes, each time
 * while it was measured, its bindings lose their probes, and the third start is without. If the
 * unit goes on crashing, it was not the probes.
 *
 * Crashes are signals that wrong code or wrong data cause. systemd is asked how a process ended
 * when it tells that the unit has changed, and has forgotten it once the unit runs again: with
 * RestartSec=0 that can be too late.
 */

#include "manager/crash.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/sentence.h"
#include "manager/settle.h"
#include "manager/units.h"

#define CRASHES_MAX 2
#define WITHIN_USEC UINT64_C(600000000)

static bool is_crash(const UnitEnd *end) {
        return (end->code == CLD_KILLED || end->code == CLD_DUMPED) &&
               (end->status == SIGSEGV || end->status == SIGILL || end->status == SIGBUS ||
                end->status == SIGTRAP);
}

static bool is_one_too_many(BindingMeasurement *measurement, uint64_t usec) {
        if (measurement->n_crashes == 0 || usec - measurement->first_crash_usec > WITHIN_USEC) {
                measurement->n_crashes = 0;
                measurement->first_crash_usec = usec;
        }
        return ++measurement->n_crashes >= CRASHES_MAX;
}

static void give_up(Manager *m, Binding *binding, const char *unit, int signal) {
        manager_give_up(m, binding,
                        sentence_make("%s crashed twice within 10min while it was measured, with "
                                      "SIG%s: its probes were removed, in case that they are the "
                                      "cause; 'tlobctl reload' sets them again",
                                      unit, sigabbrev_np(signal)));
}

static bool has_probes(const Binding *binding) {
        return binding_has_file(binding) || binding_has_probe_events(binding);
}

void manager_note_end(Manager *m, const char *unit, const UnitEnd *end) {
        if (!is_crash(end))
                return;
        for (size_t i = 0; i < m->config->bindings.n; i++) {
                Binding *binding = m->config->bindings.items[i];

                /* What has nothing in a program can crash none. */
                if (has_probes(binding) && manager_binding_has_unit(binding, unit) &&
                    binding->measurement.backend &&
                    is_one_too_many(&binding->measurement, end->usec))
                        give_up(m, binding, unit, end->status);
        }
}
