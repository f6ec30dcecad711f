/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What happens to bindings when their unit or their file changes: probes that are where they belong
 * stay; others are set anew. With the first write to a file they go at once, and come back when the
 * writer has closed it, or has rested for a while. How this is noticed is in manager/watch.c.
 */

#include "manager/follow.h"

#include <sys/inotify.h>

#include "base/sentence.h"
#include "base/unit-name.h"
#include "binding/executable.h"
#include "log.h"
#include "manager/backend-facts.h"
#include "manager/choice.h"
#include "manager/former.h"
#include "manager/looks.h"
#include "manager/settle.h"
#include "manager/state.h"
#include "manager/units.h"
#include "manager/watch.h"

#define CHECKS_MAX  32 /* in one turn of the loop */
#define RETRIES_MAX 8  /* after 1, 2, 4 ... seconds; of one whose file cannot be used */
#define STEPS_MAX   5  /* of one whose file is missing: the last one again and again */

/* Its probes are to go now. They come back when it has come to rest. */
static void begin_writing(Manager *m, Binding *binding, uint64_t delay_usec) {
        if (binding->former) {
                manager_fall_back(m, binding);
        } else if (!binding->watch.is_written) {
                binding->watch.is_written = true;
                manager_settle_binding(m, binding);
                manager_note_written(m, binding);
                log_notice("'%s' measures nothing for a moment: %s was written to.", binding->name,
                           binding->resolved.path);
        }
        manager_check_file_later(m, binding, delay_usec);
}

/*
 * Whoever replaces a program may start it at once: if the new one can be measured, it is from its
 * first call on. What has only begun to come is looked at later.
 */
static void follow_at_once(Manager *m, Binding *binding) {
        uint64_t now;
        unsigned question = 0;

        if (!binding->measurement.backend || sd_event_now(m->event, CLOCK_MONOTONIC, &now) < 0)
                return;
        /* One that is replaced all the time is looked at when it is due. */
        if (now < binding->watch.followed_usec + WATCH_INTERVAL_USEC ||
            manager_compare_file(m, binding, &question) != FILE_IS_OTHER)
                return;
        (void) manager_follow_replacement(m, binding, true);
        binding->watch.followed_usec = now;
}

/* Something has happened to its file. */
static void hear_binding(Manager *m, Binding *binding, uint32_t mask) {
        BindingWatch *watch = &binding->watch;

        if (mask & IN_IGNORED)
                watch->descriptor = 0;
        else if (mask & IN_MODIFY)
                begin_writing(m, binding, WATCH_REST_USEC);
        else if (watch->is_written && (mask & IN_CLOSE_WRITE))
                manager_check_file_later(m, binding, WATCH_CLOSED_USEC);
        else if (watch->due_usec == 0)
                manager_check_file_later(m, binding, WATCH_SETTLE_USEC);
        watch->is_heard |= !(mask & IN_IGNORED);
        if (mask & (IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF))
                follow_at_once(m, binding);
}

/* In a file that nobody finds any more, nobody waits for a writer to end. */
static void hear_former(Manager *m, Binding *binding, uint32_t mask) {
        if (mask & IN_IGNORED) {
                binding->former->watch.descriptor = 0;
                return;
        }
        binding->former->watch.is_heard = true;
        if (mask & IN_MODIFY)
                manager_drop_former(m, binding);
}

static bool is_about(const Binding *binding, const struct inotify_event *event) {
        return binding->watch.descriptor > 0 &&
               (binding->watch.descriptor == event->wd || (event->mask & IN_Q_OVERFLOW));
}

static void hear(Manager *m, const struct inotify_event *event) {
        for (size_t i = 0; i < m->config->bindings.n; i++) {
                Binding *binding = m->config->bindings.items[i];

                if (is_about(binding, event))
                        hear_binding(m, binding, event->mask);
                if (binding->former && is_about(binding->former, event))
                        hear_former(m, binding, event->mask);
        }
        templates_hear(m->templates, event->wd, event->mask & IN_MODIFY);
}

/*
 * What its unit runs goes on, and is measured. One that does not run is set up anew; and that of a
 * template, for nobody knows when the last of its instances that runs the old program ends.
 */
static bool follow_program(Manager *m, Binding *binding) {
        return binding->cgroup.id > 0 && manager_follow_replacement(m, binding, false);
}

bool manager_file_fits(Manager *m, Binding *binding) {
        int r;

        binding->measurement.question = 0;
        if (!manager_program_fits(m, binding))
                return follow_program(m, binding);
        r = manager_compare_file(m, binding, &binding->measurement.question);
        if (r >= 0)
                binding->watch.is_heard = false;
        if (r == FILE_IS_TOUCHED || r == FILE_IS_REWRITTEN) {
                begin_writing(m, binding, WATCH_CLOSED_USEC);
                return !binding->watch.is_written;
        }
        if (r == FILE_IS_OTHER && manager_follow_replacement(m, binding, false)) {
                binding->watch.followed_usec = binding->watch.looked_usec;
                return true;
        }
        if (r == FILE_IS_SAME && binding->look.kept) {
                manager_forget_kept(binding);
                if (binding->measurement.state == BINDING_ACTIVE)
                        manager_set_active(m, binding);
        }
        if (r == FILE_IS_OTHER)
                (void) log_full_errno(binding_has_passing_files(binding) ? LOG_DEBUG : LOG_NOTICE,
                                      0, "'%s' is set up anew: %s was replaced or removed.",
                                      binding->name, binding->resolved.path);
        /* As long as nobody can say otherwise, its file is the same. */
        return r != FILE_IS_OTHER;
}

static void settle(Manager *m, Binding *binding) {
        unsigned retries = binding->watch.retries;

        binding->watch.is_written = false;
        manager_settle_binding(m, binding);
        if (binding->measurement.backend || binding->watch.due_usec > 0)
                return;
        /* Perhaps somebody is on the way to write it. */
        switch (binding->measurement.state) {
        case BINDING_WAITING:
                if (retries >= STEPS_MAX)
                        retries = STEPS_MAX - 1;
                break;
        case BINDING_FAILED:
                if (retries >= RETRIES_MAX) {
                        binding->watch.retries = 0;
                        return;
                }
                break;
        default:
                return;
        }
        binding->watch.retries = retries + 1;
        manager_check_file_later(m, binding, WATCH_INTERVAL_USEC << retries);
}

static void check_file(Manager *m, Binding *binding, uint64_t usec) {
        binding->watch.due_usec = 0;
        if (binding->watch.is_written && backends_are_removing(m->backends)) {
                manager_check_file_later(m, binding, WATCH_CLOSED_USEC);
                return;
        }
        /* What is being read is read to its end. */
        if (!binding->measurement.backend && binding->measurement.question > 0) {
                manager_check_file_later(m, binding, WATCH_INTERVAL_USEC);
                return;
        }
        binding->watch.looked_usec = usec;
        if (binding->watch.is_written)
                log_notice("'%s' is set up anew: %s was written to.", binding->name,
                           binding->resolved.path);
        else if (binding->measurement.backend ? manager_file_fits(m, binding)
                                              : binding->watch.retries == 0)
                return;
        if (binding->watch.is_written && binding->watch.due_usec > 0)
                return;
        settle(m, binding);
}

static uint64_t check_files(Manager *m, uint64_t usec) {
        unsigned n = 0;
        uint64_t next;

        for (size_t i = 0; i < m->config->bindings.n && n < CHECKS_MAX; i++) {
                Binding *binding = m->config->bindings.items[i];

                if (binding->watch.due_usec == 0 || binding->watch.due_usec > usec)
                        continue;
                check_file(m, binding, usec);
                n++;
        }
        next = templates_renew(m->templates, usec);
        for (size_t i = 0; i < m->config->bindings.n; i++) {
                uint64_t due = m->config->bindings.items[i]->watch.due_usec;

                if (due > 0 && due < next)
                        next = due;
        }
        return next;
}

bool manager_probes_fit(Manager *m, Binding *binding) {
        return binding->measurement.backend && (!binding->unit || manager_unit_fits(m, binding)) &&
               manager_file_fits(m, binding);
}

/* Of a binding or its former. */
static int set_cgroup(const Binding *binding, const Binding *of) {
        return binding->measurement.backend->ops->set_cgroup(binding->measurement.backend,
                                                             binding->measurement.index,
                                                             of->cgroup.id, of->cgroup.level);
}

void manager_follow_unit(Manager *m, Binding *binding) {
        int runs, r;

        if (!manager_probes_fit(m, binding)) {
                manager_settle_binding(m, binding);
                return;
        }
        if (!binding->unit)
                return;
        runs = manager_confine_binding(m, binding);
        /* Where units are told by who is in them, what they did until now is told first. */
        if (runs == 0)
                manager_flush_binding(m, binding);
        r = runs < 0 ? runs : set_cgroup(binding, binding);
        if (r >= 0 && binding->former)
                r = set_cgroup(binding->former, binding);
        if (r >= 0 && !runs)
                r = manager_wait_for_unit(m, binding, true, NULL);
        if (r < 0)
                manager_settle_binding(m, binding);
        else if (runs)
                manager_set_active(m, binding);
}

const FollowHandlers manager_follow_handlers = {
        .heard = hear,
        .check_files = check_files,
        .look_at_units = manager_look_at_units,
};
