/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_H
#define MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "backend.h"
#include "binding-table.h"
#include "bus.h"
#include "cleanup.h"
#include "config.h"
#include "unit.h"
#include "violation.h"

/*
 * The daemon's state: configuration, bindings, back ends, and what was reported. Built by
 * manager_new() in memory only; manager_start() touches the world.
 *
 * Functions that take ret_error give a sentence for people there when they fail. Their errors, beside
 * system errors: -ENXIO no such binding, -EEXIST the name is taken, -ESRCH no such symbol,
 * -EOPNOTSUPP no back end can do it, -EINVAL and others the binding is wrong.
 */

#define BACKENDS_MAX 4

/* A back end that works here, made when the first binding needs it. */
typedef struct BackendSlot {
        const BackendOps *ops;
        Backend *backend; /* NULL: not in use */
        sd_event_source *source;
        Binding **bindings; /* by the back end's index; not owned */
        size_t n_bindings;
        uint64_t lost;   /* as last seen */
        bool unfinished; /* a daemon that died has left something: make it once */
        int error;       /* of the last attempt to make it, and when and why it failed */
        uint64_t failed_ns;
        char *failure;
} BackendSlot;

/* A back end that this build has, but that does not work here. */
typedef struct BackendAbsence {
        const BackendOps *ops;
        int error;
        char *reason;
} BackendAbsence;

/* A template with sections, and the spares that wait for its instances; see manager-instances.c. */
typedef struct Template Template;

typedef struct Manager {
        sd_event *event;
        Bus *bus;
        Units *units;
        bool reloading;
        bool reload_again; /* asked for while it was going on */
        bool is_ready;     /* the configuration has been read once */

        const char *const *directories; /* of the configuration, highest precedence first */
        Config *config;

        BackendSlot slots[BACKENDS_MAX];
        size_t n_slots;
        BackendAbsence absent[BACKENDS_MAX];
        size_t n_absent;

        Template **templates;
        size_t n_templates;
        unsigned n_applying;       /* while bindings are applied that belong together */
        unsigned template_round;   /* of the last reload */
        unsigned n_spares;         /* made so far: the number of the last one */
        sd_event_source *adoption; /* pending while spares have been taken */

        sd_event_source *linger; /* back ends that are out of use go when it fires */

        ViolationLog violations;
        sd_event_source *suppression; /* pending while reports are held back */
        uint64_t n_suppressed;
        uint64_t n_lost;
        int cgroup_root;

        Statistics past; /* of bindings that are gone */
} Manager;

/*
 * ops: the back ends to choose from, in order of preference. directories: where the configuration
 * is. Both NULL-terminated, and must outlive the manager.
 */
int manager_new(const BackendOps *const *ops, const char *const *directories, Manager **ret);
Manager *manager_free(Manager *manager);
DEFINE_CLEANUP(Manager, manager_free);

/* Connects to the bus, loads the configuration, sets the probes. */
int manager_start(Manager *manager);

/* The bindings, in the order of their names; owned by the manager. */
const BindingTable *manager_bindings(const Manager *manager);

/*
 * Reads the configuration again. What cannot be set up is failed, and logged, but no error. Returns
 * 0 when all is done, or 1 when systemd is being asked about units: bus_on_reloaded() is called then
 * when it has answered and everything is applied. 2: a reload is going on that may have seen files as they
 * were before; another one follows it, and bus_on_reloaded() is called for both.
 */
int manager_reload(Manager *manager);

/*
 * Puts a whole new configuration in the place of the old one, with the bindings of units in it. What
 * measures the same as before goes on. Takes config over.
 */
void manager_apply_config(Manager *manager, Config *config);

/* The same for the bindings of one unit, from its own files; the rest of config is not looked at. */
void manager_apply_unit(Manager *manager, const char *unit, Config *config);

/*
 * Notes what systemd says of the program of the binding's unit. Returns 1 if that is all that there is
 * to know, 0 if the binding needs it and the unit is not loaded, or an error with a sentence.
 */
int manager_learn_program(const Manager *manager, Binding *binding, char **ret_error);

/* What Units tells; userdata is the manager. */
extern const UnitsHandlers manager_units_handlers;

/*
 * Adds a binding at run time. Takes it over, also on failure. *ret: owned by the manager. When it
 * fails, nothing is changed.
 */
int manager_add_binding(Manager *manager, Binding *binding, uint64_t flags, Binding **ret,
                        char **ret_error);

/* Could that binding be added? Resolves it, and names the back end that would measure it and why. */
int manager_verify_binding(Manager *manager, Binding *binding, const char **ret_backend,
                           char **ret_reason, char **ret_error);

int manager_remove_binding(Manager *manager, const char *name, char **ret_error);
int manager_set_budget(Manager *manager, const char *name, uint64_t budget_ns, uint64_t flags,
                       char **ret_error);

/* NULL and a sentence if there is no binding of that full name. */
Binding *manager_find_binding(Manager *manager, const char *name, char **ret_error);

/* Since tlobd was started, or the last reset: also from times when its unit ran before. */
int manager_get_statistics(Manager *manager, const Binding *binding, Statistics *ret);

/* The lengths of its windows, for the same time. -EOPNOTSUPP: its back end does not know them. */
int manager_get_histogram(Manager *manager, const Binding *binding, Histogram *ret);
int manager_reset_statistics(Manager *manager, Binding *binding);

/* The violation of that window, NULL if it is forgotten. Owned by the manager. */
const Violation *manager_find_violation(const Manager *manager, uint64_t id);

typedef struct ManagerTotals {
        uint64_t windows;
        uint64_t violations;
} ManagerTotals;

int manager_get_totals(Manager *manager, ManagerTotals *ret);

/* The unit that systemd is asked about, for one that a binding names. NULL for want of memory. */
char *manager_unit_to_ask(const char *unit);

/* Is it this unit that systemd is asked about for the binding? */
bool manager_binding_has_unit(const Binding *binding, const char *unit);

/* Brings a binding into the state that configuration and unit ask for. Never fails: see its state. */
void manager_settle_binding(Manager *manager, Binding *binding);

/* The same when only its unit has changed: probes that are where they belong stay. */
void manager_follow_unit(Manager *manager, Binding *binding);

/* Sets the probes of a binding for an instance that nobody knows yet. Its state is left alone. */
int manager_attach_spare(Manager *manager, Binding *binding, char **ret_error);

/* Makes a binding that has its probes one of the configuration's. Takes it over. */
void manager_adopt_binding(Manager *manager, Binding *binding);

/* What the sections of a template say now, by its stand-in. Takes config over, also on failure. */
int manager_apply_template(Manager *manager, const UnitInfo *stand_in, Config *config);

/* Around the calls of that for all templates that there are: others are forgotten. */
void manager_begin_templates(Manager *manager);
void manager_end_templates(Manager *manager);

/* An instance has taken a spare: it has its bindings. */
void manager_on_instance(Manager *manager, BackendSlot *slot, const Report *report);

/*
 * Sees to instances that have taken spares and of which nobody has told yet. To be called before what systemd
 * says of units is believed.
 */
void manager_take_instances(Manager *manager);

/* Makes room for a binding that needs it. Returns whether there is any more now. */
bool manager_give_up_spare(Manager *manager);

void manager_free_templates(Manager *manager);

/* Takes the probes of a binding away, if it has any. */
void manager_detach_binding(Manager *manager, Binding *binding);

/* All reports that are there, through manager_on_report(). */
void manager_dispatch(Manager *manager, BackendSlot *slot);

/* The one place where reports come by: count, remember, limit, journal, bus. */
void manager_on_report(Manager *manager, BackendSlot *slot, const Report *report);

/* Records that did not reach us since the last look. */
void manager_check_lost(Manager *manager, BackendSlot *slot);

/* The slot that a back end is in. */
BackendSlot *manager_slot_of(Manager *manager, const Backend *backend);

/* The back end that would measure a resolved binding, by what both can do, and why this one. */
int manager_choose_backend(Manager *manager, Binding *binding, const ElfFile *elf,
                           const char **ret_backend, char **ret_reason, char **ret_error);

/* Sets the probes of a resolved binding, with the first back end that can. */
int manager_attach_binding(Manager *manager, Binding *binding, const ElfFile *elf,
                           char **ret_error);

/* Bindings that were attached are all that belong together, unless more are being applied. */
void manager_complete_backends(Manager *manager);

/* Puts right what a daemon that died has left, with the back ends that can. */
void manager_finish_backends(Manager *manager);

/* Back ends that no binding uses any more go a little later. */
void manager_release_backends(Manager *manager);

/* To be called after each dispatch from the event loop. */
void manager_take_notices(Manager *manager, BackendSlot *slot);

#endif
