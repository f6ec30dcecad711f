/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Start=event:…, Stop=event:…, or user_event:…: a window is what a task of the unit does between
 * two events of the kernel that it comes to itself, or that it writes. As with system calls,
 * everything that is known of files is left empty, and the offsets are the numbers of the events.
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

static int resolve(const char *place, ElfSite *site, TraceEventKind *ret_kind, char **ret_error) {
        const char *event = trace_event_of_place(place);
        _cleanup_free_ char *why = NULL;
        TraceEvent found;
        int r;

        r = trace_event_find(event, &found, &why);
        if (r < 0)
                return why ? sentence_error(r, ret_error, "'%s' %s", event, why) : r;
        site->offset = found.id;
        *ret_kind = found.kind;
        return 0;
}

int binding_resolve_events(Binding *binding, BindingFile **ret_file, char **ret_error) {
        _cleanup_(binding_file_freep) BindingFile *file = binding_file_new();
        BindingSites *sites = &binding->resolved.sites;
        int r;

        if (!file)
                return -ENOMEM;
        r = resolve(binding->start, &sites->start, &sites->start_event, ret_error);
        if (r >= 0)
                r = resolve(binding->stop, &sites->stop, &sites->stop_event, ret_error);
        if (r < 0)
                return r;
        if (sites->start_event == sites->stop_event && sites->start.offset == sites->stop.offset)
                return sentence_error(-EINVAL, ret_error,
                                      "Start=%s and Stop=%s are the same event: a window needs two",
                                      binding->start, binding->stop);
        sites->how = TLOB_STOP_PLACE;
        *ret_file = TAKE_PTR(file);
        return 0;
}

static bool is_of_user(const Binding *binding) {
        const BindingSites *sites = &binding->resolved.sites;

        return sites->start_event == TRACE_EVENT_USER && sites->stop_event == TRACE_EVENT_USER;
}

char *binding_describe_event_cost(const Binding *binding) {
        const char *start = trace_event_of_place(binding->start),
                   *stop = trace_event_of_place(binding->stop);

        if (binding_has_call_events(binding))
                return sentence_make("While this binding is set, every system call on this machine "
                                     "takes 0.2 to 0.4 us longer, and each %s and each %s 0.1 to "
                                     "0.3 us more than that, whatever task it is of",
                                     start, stop);
        if (is_of_user(binding))
                return sentence_make("While this binding is set, every program on this machine "
                                     "that has registered %s or %s writes it, with a system call "
                                     "each time",
                                     start, stop);
        return sentence_make("While this binding is set, each %s and each %s on this machine takes "
                             "0.3 to 0.5 us longer, whatever task it is of",
                             start, stop);
}
