/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the kernel's monitor cannot promise, in sentences: what is known of its version, what was
 * counted of its weak spots since the back end was made, and what others have in it.
 */

#include "kernel/limitations.h"

#include <inttypes.h>
#include <stdarg.h>

static void limit(KernelContext *c, size_t *n, const char *format, ...) _printf_(3, 4);
static void limit(KernelContext *c, size_t *n, const char *format, ...) {
        va_list arguments;

        if (*n == KERNEL_LIMITS_MAX)
                return;
        va_start(arguments, format);
        if (vasprintf(&c->limitations[*n], format, arguments) < 0)
                c->limitations[*n] = NULL;
        else
                (*n)++;
        va_end(arguments);
}

static void limit_by_counter(KernelContext *c, size_t *n, uint64_t count, const char *what) {
        if (count > 0)
                limit(c, n, "In the kernel's monitor, so far: %" PRIu64 " %s", count, what);
}

static void limit_by_counters(KernelContext *c, size_t *n) {
        KernelStreamCounters counters;

        kernel_stream_get_counters(c->stream, &counters);
        limit_by_counter(c, n, counters.aborted, "windows aborted by an unexpected wakeup");
        limit_by_counter(c, n, counters.unpaired, "errors without a breakdown, which may be false");
        limit_by_counter(
                c, n, c->n_at_stops,
                "violations found by a stop, of which the time in each state is not known");
        limit_by_counter(c, n, counters.lone, "breakdowns of windows that were reset");
        limit_by_counter(c, n, counters.cut, "windows in which events were lost");
        limit_by_counter(c, n, counters.damaged, "damaged pages of the trace buffer");
        limit_by_counter(c, n, c->n_outside, "violations of tasks outside their binding's unit");
        limit_by_counter(c, n, c->n_ended,
                         "violations of tasks that had ended by then, so that nobody knows whether "
                         "they were in their binding's unit");
        limit_by_counter(c, n, c->n_unowned, "violations of bindings that are gone, or of others");
        limit_by_counter(c, n, c->n_ambiguous, "violations that may be of several bindings");
        limit_by_counter(c, n, c->n_false, "violations whose times are below their threshold");
        limit_by_counter(c, n, c->n_resets,
                         "resets of the monitor, in which open windows are lost");
        limit_by_counter(c, n, c->n_repairs, "repairs of what others had switched off or removed");
}

const char *const *kernel_limitations(KernelContext *c) {
        const char *const *of_dialect = dialect_limitations(c->monitor.dialect);
        size_t n = 0;

        for (size_t i = 0; c->limitations[i]; i++)
                free(c->limitations[i]);
        memset(c->limitations, 0, sizeof(c->limitations));

        limit(c, &n, "The kernel's tlob monitor here is %s", dialect_to_string(c->monitor.dialect));
        for (size_t i = 0; of_dialect[i]; i++)
                limit(c, &n, "%s", of_dialect[i]);
        if (c->off)
                limit(c, &n, "The kernel's monitors are switched off: rv/monitoring_on is 0");
        if (c->n_threads_max > 0)
                limit(c, &n,
                      "In the kernel's monitor, so far: %u threads at once that may run the code of "
                      "its bindings, %u of which have room",
                      c->n_threads_max, KERNEL_SLOTS);
        limit_by_counters(c, &n);
        for (size_t i = 0; i < c->foreign.n; i++)
                limit(c, &n, "The kernel's monitor has a binding of someone else: %s",
                      c->foreign.items[i].text);
        return (const char *const *) c->limitations;
}
