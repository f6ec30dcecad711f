/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Start=event:…, Stop=event:…: a window is what a task of the unit does between two events of the
 * kernel that it comes to itself. As with system calls, everything that is known of files is left
 * empty, and the offsets are the numbers of the events.
 */

#include "binding/event.h"

#include "base/sentence.h"
#include "base/trace-event.h"

int place_check_event(const char *key, const char *value, char **ret_error) {
        const char *event = trace_event_of_place(value);
        _cleanup_free_ char *why = NULL;
        int r;

        if (!event)
                return 0;
        r = trace_event_check(event, &why);
        if (r < 0 && why)
                return sentence_error(-EINVAL, ret_error, "%s=%s is not possible: '%s' %s", key,
                                      value, event, why);
        return r;
}

static int resolve(const char *place, ElfSite *site, bool *is_probe, char **ret_error) {
        const char *event = trace_event_of_place(place);
        _cleanup_free_ char *why = NULL;
        TraceEvent found;
        int r;

        r = trace_event_find(event, &found, &why);
        if (r < 0)
                return why ? sentence_error(r, ret_error, "'%s' %s", event, why) : r;
        site->offset = found.id;
        *is_probe = found.is_probe;
        return 0;
}

int binding_resolve_events(Binding *binding, BindingFile **ret_file, char **ret_error) {
        _cleanup_(binding_file_freep) BindingFile *file = binding_file_new();
        BindingSites *sites = &binding->resolved.sites;
        bool are_probes[2] = {};
        int r;

        if (!file)
                return -ENOMEM;
        r = resolve(binding->start, &sites->start, &are_probes[0], ret_error);
        if (r >= 0)
                r = resolve(binding->stop, &sites->stop, &are_probes[1], ret_error);
        if (r < 0)
                return r;
        sites->how = TLOB_STOP_PLACE;
        sites->are_events = true;
        sites->has_probe_events = are_probes[0] || are_probes[1];
        *ret_file = TAKE_PTR(file);
        return 0;
}

char *binding_describe_event_cost(const Binding *binding) {
        return sentence_make("While this binding is set, each %s and each %s on this machine takes "
                             "0.3 to 0.5 us longer, whatever task it is of",
                             trace_event_of_place(binding->start),
                             trace_event_of_place(binding->stop));
}
