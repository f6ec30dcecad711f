/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Verify(): how a binding would be set up, which is not. */

#include <inttypes.h>

#include "base/sentence.h"
#include "binding/sites.h"
#include "binding/window-key.h"
#include "bus/internal.h"
#include "tlob-bus.h"

/* What there is to say about the stop. */
static int append_stop(sd_bus_message *m, const Binding *binding) {
        const FunctionExits *exits = &binding->resolved.sites.exits;
        _cleanup_free_ char *note = NULL;
        int r;

        r = binding_describe_stop(binding, &note);
        if (r >= 0 && note)
                r = sd_bus_message_append(m, "{sv}", "stop-note", "s", note);
        if (r >= 0 && exits->n > 0)
                r = sd_bus_message_append(m, "{sv}{sv}", "ways-out", "u",
                                          (uint32_t) function_exits_n_ways(exits), "tail-calls",
                                          "u", (uint32_t) function_exits_n_jumps(exits));
        return r;
}

static int append_semaphores(sd_bus_message *m, const Binding *binding) {
        _cleanup_free_ char *note = NULL;
        int r;

        r = binding_describe_semaphores(binding, &note);
        return r < 0 || !note ? r : sd_bus_message_append(m, "{sv}", "semaphore-note", "s", note);
}

/* What there is to say about the probes. */
static int append_probes(sd_bus_message *m, const Binding *binding, const Verdict *verdict) {
        _cleanup_free_ char *note = NULL;
        int r;

        r = binding_describe_start(binding, &note);
        if (r >= 0 && note)
                r = sd_bus_message_append(m, "{sv}", "start-note", "s", note);
        if (r >= 0)
                r = append_stop(m, binding);
        if (r >= 0)
                r = append_semaphores(m, binding);
        if (r >= 0 && verdict->price)
                r = sd_bus_message_append(m, "{sv}", "price", "s", verdict->price);
        return r;
}

/* How often the function was inlined, if it was, or may have been. */
static int append_copies(sd_bus_message *m, const Binding *binding) {
        const char *function = binding->resolved.sites.start.function ?: "the function";
        const InlinedCopies *copies = &binding->resolved.copies;
        _cleanup_free_ char *note = NULL;

        if (!copies->is_known || (copies->is_complete && copies->n == 0))
                return 0;
        if (copies->n == 0)
                note = sentence_make(
                        "Inlined copies of %s are not measured, but could not be counted",
                        function);
        else
                note = sentence_make("%s%" PRIu64 " inlined cop%s of %s %s not measured",
                                     copies->is_complete ? "" : "At least ", copies->n,
                                     copies->n == 1 ? "y" : "ies", function,
                                     copies->n == 1 ? "is" : "are");
        if (!note)
                return -ENOMEM;
        return sd_bus_message_append(m, "{sv}{sv}", "inlined-copies", "t", copies->n,
                                     "inlined-note", "s", note);
}

/* The function, and how far behind its beginning; else as it is configured. */
static char *describe_site(const ElfSite *site, const char *configured) {
        if (site->function && site->distance > 0)
                return sentence_make("%s+0x%" PRIx64, site->function, site->distance);
        return strdup(site->function ?: configured);
}

static int append_places(sd_bus_message *m, const char *key, const ElfSite *site) {
        return site->n_places == 0
                       ? 0
                       : sd_bus_message_append(m, "{sv}", key, "u", (uint32_t) site->n_places);
}

static int append_key(sd_bus_message *m, const Binding *binding) {
        char text[WINDOW_KEY_MAX];

        if (!binding->resolved.sites.key)
                return 0;
        return sd_bus_message_append(m, "{sv}", "key", "s", window_key_format(binding, text));
}

static int append_verified(sd_bus_message *m, const Binding *binding, const Verdict *verdict) {
        const BindingResolved *resolved = &binding->resolved;
        bool is_return = binding_stop_is_return(binding);
        _cleanup_free_ char *start = NULL, *stop = NULL;
        int r;

        start = describe_site(&resolved->sites.start, binding->start);
        stop = is_return ? strdup(binding->stop)
                         : describe_site(&resolved->sites.stop, binding->stop);
        if (!start || !stop)
                return -ENOMEM;
        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        if (binding_has_file(binding)) {
                r = sd_bus_message_append(m, "{sv}{sv}", "executable", "s", resolved->path,
                                          "start-offset", "t", resolved->sites.start.offset);
                if (r < 0)
                        return r;
        }
        r = sd_bus_message_append(m, "{sv}{sv}{sv}{sv}", "start", "s", start, "stop", "s", stop,
                                  "backend", "s", verdict->backend, "reason", "s", verdict->reason);
        if (r < 0)
                return r;
        r = append_places(m, "start-places", &resolved->sites.start);
        if (r >= 0)
                r = append_places(m, "stop-places", &resolved->sites.stop);
        if (r < 0)
                return r;
        if (!is_return && binding_has_file(binding)) {
                r = sd_bus_message_append(m, "{sv}", "stop-offset", "t",
                                          resolved->sites.stop.offset);
                if (r < 0)
                        return r;
        }
        if (resolved->build_id) {
                r = sd_bus_message_append(m, "{sv}", "build-id", "s", resolved->build_id);
                if (r < 0)
                        return r;
        }
        r = append_key(m, binding);
        if (r >= 0)
                r = append_probes(m, binding, verdict);
        if (r >= 0)
                r = append_copies(m, binding);
        if (r >= 0 && verdict->cost)
                r = sd_bus_message_append(m, "{sv}", "cost", "s", verdict->cost);
        if (r >= 0 && verdict->unwinding_cost)
                r = sd_bus_message_append(m, "{sv}", "unwinding-cost", "s",
                                          verdict->unwinding_cost);
        if (r < 0)
                return r;
        return sd_bus_message_close_container(m);
}

int bus_method_verify(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(verdict_done) Verdict verdict = {};
        _cleanup_free_ char *sentence = NULL;
        Bus *bus = userdata;
        int r;

        r = binding_new("verify", &binding);
        if (r < 0)
                return r;
        r = bus_read_properties(m, binding, error);
        if (r < 0)
                return r;

        /* It opens files with our rights. */
        r = bus_authorize(bus, m, TLOB_ACTION_INSPECT, bus_method_verify, error);
        if (r <= 0)
                return r < 0 ? r : 1;
        r = bus_wait_for_unit(bus, m, binding->unit, bus_method_verify);
        if (r <= 0)
                return r < 0 ? r : 1;

        r = manager_verify_binding(bus->manager, binding, &verdict, &sentence);
        if (r == -EINPROGRESS && binding->measurement.question > 0) {
                r = bus_wait_for_file(bus, m, binding->measurement.question, bus_method_verify);
                return r < 0 ? r : 1;
        }
        if (r < 0)
                return bus_set_error(error, r, sentence);

        r = sd_bus_message_new_method_return(m, &reply);
        if (r < 0)
                return r;
        r = append_verified(reply, binding, &verdict);
        if (r < 0)
                return r;
        return sd_bus_send(NULL, reply, NULL);
}
