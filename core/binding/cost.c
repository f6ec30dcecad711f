/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The price of a binding for those that it is not for: a probe in a file is met by every process
 * that runs the code there. How many these are is counted elsewhere (file/maps.c), and whether the
 * probes can be kept from them is for the back end to say. Nothing is measured here: what a probe
 * costs is told by its instruction.
 */

#include "binding/cost.h"

#include "base/sentence.h"
#include "binding/call.h"
#include "binding/event.h"
#include "elf/decoder.h"

static ProbeKind kind_of_exits(const FunctionExits *exits, int fd) {
        ProbeKind dearest = PROBE_UNKNOWN;

        for (size_t i = 0; i < exits->n; i++) {
                ProbeKind kind = probe_kind_at(fd, exits->offsets[i]);

                if (kind > dearest)
                        dearest = kind;
        }
        return dearest;
}

static ProbeKind kind_of_site(const ElfSite *site, int fd) {
        ProbeKind dearest = probe_kind_at(fd, site->offset);

        for (size_t i = 1; i < site->n_places; i++) {
                ProbeKind kind = probe_kind_at(fd, site->places[i].offset);

                if (kind > dearest)
                        dearest = kind;
        }
        return dearest;
}

void binding_read_probes(Binding *binding, int fd) {
        BindingResolved *resolved = &binding->resolved;
        const BindingSites *sites = &resolved->sites;

        free(resolved->start_code);
        resolved->start_code = decoder_describe(fd, sites->start.offset);
        resolved->start_kind = kind_of_site(&sites->start, fd);
        if (resolved->start_kind == PROBE_RETURN)
                resolved->start_kind = PROBE_STEPPED; /* a start does not return */
        switch (sites->how) {
        case TLOB_STOP_PLACE:
                resolved->stop_kind = kind_of_site(&sites->stop, fd);
                break;
        case TLOB_STOP_EXITS:
        case TLOB_STOP_GO:
                resolved->stop_kind = kind_of_exits(&sites->exits, fd);
                break;
        case TLOB_STOP_RETURN_PROBE:
                /* The instruction that the function returns to is the kernel's own: one trap. */
                resolved->stop_kind = resolved->start_kind ? PROBE_EMULATED : PROBE_UNKNOWN;
                break;
        case TLOB_STOP_CALL:
                break;
        }
}

/* "all 34 processes that map", "at least 34 ...", "the one process that maps" */
static char *describe_number(const FileUsers *users) {
        if (users->n_unseen > 0)
                return sentence_make("at least %u process%s", users->n_processes,
                                     users->n_processes == 1 ? " that maps" : "es that map");
        return users->n_processes == 1
                       ? strdup("the one process that maps")
                       : sentence_make("all %u processes that map", users->n_processes);
}

static char *describe_users(const Binding *binding, const FileUsers *users) {
        _cleanup_free_ char *number = NULL, *outside = NULL;

        if (!users)
                return sentence_make("The probes are in every process that maps %s",
                                     binding->resolved.path);
        if (users->n_processes == 0)
                return sentence_make(users->n_unseen > 0
                                             ? "tlobd sees no process that maps %s, but cannot "
                                               "inspect all; any that does gets the probes"
                                             : "No process maps %s now; any that does later gets "
                                               "the probes",
                                     binding->resolved.path);
        number = describe_number(users);
        outside = binding->unit ? sentence_make(", %s%u of them outside %s",
                                                users->n_unseen > 0 ? "at least " : "",
                                                users->n_outside, binding->unit)
                                : strdup("");
        return number && outside ? sentence_make("The probes are in %s %s%s", number,
                                                 binding->resolved.path, outside)
                                 : NULL;
}

int binding_describe_price(const Binding *binding, const ProbePrices *prices, char **ret) {
        _cleanup_free_ char *start = NULL, *stop = NULL;

        *ret = NULL;
        if (!binding_has_file(binding))
                return 0;
        start = probe_kind_describe_cost(binding->resolved.start_kind, prices);
        stop = probe_kind_describe_cost(binding->resolved.stop_kind, prices);
        if (!start || !stop)
                return 0;
        *ret = sentence_make("%s at the start and %s at the stop", start, stop);
        return *ret ? 0 : -ENOMEM;
}

int binding_describe_cost(const Binding *binding, const FileUsers *users, const ProbePrices *prices,
                          char **ret) {
        _cleanup_free_ char *who = NULL, *price = NULL;
        int r;

        *ret = NULL;
        if (!binding_has_file(binding)) {
                *ret = binding_has_events(binding) ? binding_describe_event_cost(binding)
                                                   : binding_describe_call_cost(binding);
                return *ret ? 0 : -ENOMEM;
        }
        if (binding->unit && users && users->n_outside == 0 && users->n_unseen == 0)
                return 0;
        who = describe_users(binding, users);
        if (!who)
                return -ENOMEM;
        r = binding_describe_price(binding, prices, &price);
        if (r < 0)
                return r;
        *ret = sentence_make("%s: each call of the measured code takes longer%s%s", who,
                             price ? ", by " : "", price ?: "");
        return *ret ? 0 : -ENOMEM;
}
