/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_MANAGER_H
#define MANAGER_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sysexits.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "backend/backend.h"
#include "base/cleanup.h"
#include "base/runtime-scope.h"
#include "binding/table.h"
#include "manager/observer.h"
#include "report/violation.h"

/*
 * The daemon's state: configuration, bindings, back ends, and what was reported. Here is what other
 * rooms may ask of it, and make it do.
 *
 * Functions that take ret_error give a sentence for people there when they fail. Their errors,
 * besides system errors: -ENXIO no such binding, -EEXIST the name is taken, -ESRCH no such symbol,
 * -EOPNOTSUPP no back end can do it, -EINVAL and others the binding is wrong.
 */

typedef struct Manager Manager;

/*
 * What sd_event_loop() returns when the program has been replaced by another version, which is to
 * go on: the exit status that asks systemd for that.
 */
#define MANAGER_START_ANEW EX_TEMPFAIL

/*
 * In memory only: nothing else is touched before the manager is started, by the calls below in
 * their order. ops: the back ends to choose from, in order of preference. directories: where the
 * configuration is. Both NULL-terminated, and must outlive the manager.
 */
int manager_new(const BackendOps *const *ops, const char *const *directories, Manager **ret);
Manager *manager_free(Manager *manager);
DEFINE_CLEANUP(Manager, manager_free);

/*
 * Before all else: whose services this one is for; those of the machine if nobody says so. One for
 * a user's is run by that user, who may do there what root may do on the machine.
 */
void manager_set_scope(Manager *manager, RuntimeScope scope);
RuntimeScope manager_get_scope(const Manager *manager);

/* What D-Bus tells. Not copied: it must outlive the manager. "" if none was set. */
void manager_set_version(Manager *manager, const char *version);
const char *manager_get_version(const Manager *manager);

/*
 * Starts the processes that read files, makes the event loop, and sees to the signals that end it.
 * Logs.
 */
int manager_start_loop(Manager *manager);

/*
 * Before manager_start(): what is measured is kept in that directory when the daemon ends, however
 * it ends, and the next one goes on there. directory: an absolute path, which stays the caller's.
 */
void manager_keep_in(Manager *manager, const char *directory);

/*
 * Finds out which back ends work here, follows systemd's units over that connection, loads the
 * configuration, sets the probes. Logs.
 */
int manager_start(Manager *manager, sd_bus *bus);

/* The steps of both, for tests. Starts the processes that read files, and runs in that loop. */
int manager_attach_event(Manager *manager, sd_event *event);

/* Finds out which back ends work here. May mount tracefs, and write to the kernel's monitor. */
int manager_probe_backends(Manager *manager);

/* Follows systemd's units over that connection. */
int manager_follow_units(Manager *manager, sd_bus *bus);

/* The loop; owned by the manager. */
sd_event *manager_get_event(const Manager *manager);

/*
 * If the service is about to start again, or what is measured is in a directory, what there is to
 * report is told, and the rest is left to the next daemon: this process has to end now, without
 * manager_stop(). Returns whether. systemd starts what has failed again by itself, if it is systemd
 * that has started it.
 */
bool manager_leave(Manager *manager, bool has_failed);

/*
 * Takes all probes away; what they had to report is told. What is left to do is manager_free(),
 * which does this too.
 */
void manager_stop(Manager *manager);

/*
 * Reads the configuration again. What cannot be set up is failed, and logged, but no error. Returns
 * 0 when all is done, or 1 when systemd is being asked about units, or files are being looked at:
 * reloaded() of the observer is called when that has been answered and everything is applied. 2: a
 * reload is going on that may have seen files as they were before; another one follows it, and
 * reloaded() is called for both.
 */
int manager_reload(Manager *manager);

/*
 * Somebody asks for all that is configured: with the next reload that can be applied, also bindings
 * get their probes again that were too dear, or whose unit has crashed.
 */
void manager_forgive(Manager *manager);

/*
 * Is anything known of that unit (NULL: of none)? Returns 1: all that there will be. 0: systemd is
 * asked, and unit_known() of the observer is called with *ret_asked, which is the caller's, when it
 * has answered; manager_release_unit() is to be called with that then. Or a negative errno.
 */
int manager_ask_unit(Manager *manager, const char *unit, char **ret_asked);
void manager_release_unit(Manager *manager, const char *asked);

/* Has a reload begun that waits for what systemd says of units? */
bool manager_is_reloading(const Manager *manager);

/* Why the last reload has changed nothing, as a negative errno; 0: it has. */
int manager_reload_error(const Manager *manager);

/* Has the configuration been applied once? */
bool manager_is_ready(const Manager *manager);

/* Are files being looked at that may yet answer in time? */
bool manager_is_busy(const Manager *manager);

/* The bindings, in the order of their names; owned by the manager. */
const BindingTable *manager_bindings(const Manager *manager);

/* NULL and a sentence if there is no binding of that full name. */
Binding *manager_find_binding(Manager *manager, const char *name, char **ret_error);

/*
 * Adds a binding at run time, for the user that is in its source. Takes it over, also on failure.
 * *ret: owned by the manager. When it fails, nothing is changed. -EINPROGRESS: its file is being
 * looked at; the same is to be called again when file_known() of the observer is called with
 * *ret_question.
 */
int manager_add_binding(Manager *manager, Binding *binding, uint64_t flags, Binding **ret,
                        unsigned *ret_question, char **ret_error);

int manager_remove_binding(Manager *manager, const char *name, char **ret_error);
int manager_set_budget(Manager *manager, const char *name, uint64_t budget_ns, uint64_t flags,
                       char **ret_error);

/* What a binding would become. */
typedef struct Verdict {
        const char *backend;
        char *reason;               /* why that one */
        char *price;                /* as of manager_describe_price() */
        char *cost;                 /* as of manager_describe_cost() */
        const char *unwinding_cost; /* for programs that unwind stacks, a sentence; NULL: none */
} Verdict;

void verdict_done(Verdict *verdict);

/*
 * Could that binding be added? Resolves it, and names the back end that would measure it.
 * -EINPROGRESS: as above; binding->question is the question.
 */
int manager_verify_binding(Manager *manager, Binding *binding, Verdict *ret, char **ret_error);

/*
 * What the probes of a binding take from the thread that has a window, as words for a sentence; the
 * caller's. NULL: it has no probes, or that is not known.
 */
int manager_describe_price(Manager *manager, const Binding *binding, char **ret);

/*
 * What a binding with its probes costs processes that it is not for, as a sentence; the caller's.
 * NULL: nothing, or it has no probes. -EINPROGRESS: as above.
 */
int manager_describe_cost(Manager *manager, Binding *binding, unsigned *ret_question, char **ret);

/* The name of the back end that measures a binding; "": none. */
const char *manager_backend_of(const Binding *binding);

/*
 * Which processes its probes are in, as words for a sentence; the caller's. NULL: it has none, or
 * its back end does not know.
 */
int manager_describe_reach(const Binding *binding, char **ret);

/* Since tlobd was started, or the last reset: also from times when its unit ran before. */
int manager_get_statistics(Manager *manager, Binding *binding, Statistics *ret);

/* The lengths of its windows, for the same time. -EOPNOTSUPP: its back end does not know them. */
int manager_get_histogram(Manager *manager, const Binding *binding, Histogram *ret);

/*
 * Those of the build that its file is now, and the build that it was before, owned by the binding.
 * NULL: no other one has been measured since tlobd was started, or the last reset.
 */
const PastBuild *manager_get_builds(const Binding *binding, Histogram *ret);
int manager_reset_statistics(Manager *manager, Binding *binding);

typedef struct ManagerTotals {
        uint64_t windows;
        uint64_t violations;
        uint64_t suppressed;
        uint64_t probes_ns; /* CPU time that the probes that there are now have taken */
} ManagerTotals;

int manager_get_totals(Manager *manager, ManagerTotals *ret);

/* Records that did not reach the manager. */
uint64_t manager_get_lost(const Manager *manager);

/* The violation of that window, NULL if it is forgotten. Owned by the manager. */
const Violation *manager_find_violation(const Manager *manager, uint64_t id);

/* How many are remembered. */
size_t manager_count_violations(const Manager *manager);

/* The i-th of those that are remembered, the last one first; NULL: there are no more. */
const Violation *manager_get_violation(const Manager *manager, size_t i);

/*
 * The name of the i-th back end that works here, in order of preference; NULL: there are no more.
 */
const char *manager_get_backend(const Manager *manager, size_t i);

/*
 * The i-th thing that cannot be promised on this machine, as a sentence; NULL: there are no more.
 */
const char *manager_get_limitation(const Manager *manager, size_t i);

/*
 * The i-th thing that was ignored in the files of the configuration when all of it was last read:
 * "FILE:LINE: sentence"; NULL: there are no more.
 */
const char *manager_get_ignored(const Manager *manager, size_t i);

/*
 * How deadlines are found at least, as in the D-Bus property DeadlineMode; "": nothing is measured.
 */
const char *manager_get_deadline_mode(const Manager *manager);

/* Sees to what back ends have to say, as after each of their events. */
void manager_take_notices(Manager *manager);

/*
 * Sees to instances that have taken spares and of which nobody has told yet. To be called before
 * what systemd says of units is believed.
 */
void manager_take_instances(Manager *manager);

/*
 * Hears of writes to files that have probes; NULL: there are none. For tests, which make it deaf.
 */
sd_event_source *manager_get_watch(const Manager *manager);

#endif
