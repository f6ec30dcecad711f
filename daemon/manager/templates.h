/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_TEMPLATES_H
#define MANAGER_TEMPLATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "binding/binding.h"
#include "config/config.h"
#include "report/violation.h"
#include "unit/unit.h"

/*
 * The templates of units that have sections, and the spares that wait for their instances. A spare
 * has a binding for each section; its bindings are the spare's until they are adopted.
 */
typedef struct Templates Templates;

/* What templates need done, as they know no back ends, no configuration and no inotify. */
typedef struct TemplatesHandlers {
        /* Sets the probes of a binding for an instance that nobody knows yet. */
        int (*attach)(Binding *binding, char **ret_error, void *userdata);

        /* The bindings that were attached belong together. */
        void (*complete)(void *userdata);

        /* Takes the probes of a binding away, and the watch on its file: it goes. */
        void (*detach)(Binding *binding, void *userdata);

        /* What has become of its file: a FileChange. */
        int (*compare)(Binding *binding, void *userdata);

        /* Its file was written, and its probes are about to go. */
        void (*note_written)(const Binding *binding, void *userdata);

        /* Are probes still on their way out of the kernel? */
        bool (*is_removing)(void *userdata);

        /* templates_renew() is to be called after that time, or before. */
        void (*look_later)(uint64_t delay_usec, void *userdata);

        /* The unit of that cgroup, the caller's. */
        int (*unit_of)(const char *cgroup_path, char **ret_unit, void *userdata);

        /* The binding is that instance's from now on, which the report tells of. */
        int (*give)(Binding *binding, const char *instance, const Report *report, void *userdata);

        /* A moment later: the bindings of that instance join the others. They are taken over. */
        void (*adopt)(const char *instance, Binding **bindings, size_t n, void *userdata);
} TemplatesHandlers;

/* In memory only. handlers must outlive it. */
int templates_new(const TemplatesHandlers *handlers, void *userdata, Templates **ret);
Templates *templates_free(Templates *templates);
DEFINE_CLEANUP(Templates, templates_free);

/* Instances are adopted, and files looked at later, in that loop; without one, only when asked. */
void templates_attach_event(Templates *templates, sd_event *event);

/* All are forgotten, and their spares go. */
void templates_stop(Templates *templates);

/* How many spares a template has, from the next time on that they are filled. */
void templates_set_spares(Templates *templates, unsigned n);

/* What the sections of a template say now, by its stand-in. Takes config over, also on failure. */
int templates_apply(Templates *templates, const UnitInfo *stand_in, Config *config);

/* Around the calls of that for all templates that there are: others are forgotten. */
void templates_begin(Templates *templates);
void templates_end(Templates *templates);

/* Makes the spares that could not be made before. */
void templates_fill(Templates *templates);

/* Makes room for a binding that needs it. Returns whether there is any more now. */
bool templates_give_up_spare(Templates *templates);

bool templates_are_empty(const Templates *templates);

/* An instance has taken the spare that the binding is of. */
void templates_on_instance(Templates *templates, const Binding *binding, const Report *report);

/* All instances that have taken spares are adopted now. */
void templates_adopt(Templates *templates);

/* What inotify tells of a file; descriptor < 0: something of any file. */
void templates_hear(Templates *templates, int descriptor, bool is_written);

/* Looks at files that are due at that time. Returns when the next are, or UINT64_MAX. */
uint64_t templates_renew(Templates *templates, uint64_t usec);

#endif
