/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the kernel's monitor cannot promise, in sentences: what is known of its version, what was counted of its
 * weak spots since the back end was made, and what others have in it.
 */

#include <inttypes.h>
#include <stdarg.h>

#include "kernel-backend.h"

static void limit(KernelBackend *b, size_t *n, const char *format, ...) _printf_(3, 4);
static void limit(KernelBackend *b, size_t *n, const char *format, ...) {
        va_list arguments;

        if (*n == KERNEL_LIMITS_MAX)
                return;
        va_start(arguments, format);
        if (vasprintf(&b->limitations[*n], format, arguments) < 0)
                b->limitations[*n] = NULL;
        else
                (*n)++;
        va_end(arguments);
}

static void limit_by_counter(KernelBackend *b, size_t *n, uint64_t count, const char *what) {
        if (count > 0)
                limit(b, n, "In the kernel's monitor, so far: %" PRIu64 " %s", count, what);
}

static void limit_by_counters(KernelBackend *b, size_t *n) {
        KernelStreamCounters counters;

        kernel_stream_get_counters(b->stream, &counters);
        limit_by_counter(b, n, counters.aborted, "windows aborted by an unexpected wakeup");
        limit_by_counter(b, n, counters.unpaired, "errors without a breakdown, which may be false");
        limit_by_counter(b, n, counters.lone, "breakdowns of windows that were reset");
        limit_by_counter(b, n, counters.cut, "windows in which events were lost");
        limit_by_counter(b, n, counters.damaged, "damaged pages of the trace buffer");
        limit_by_counter(b, n, b->n_outside, "violations of tasks outside their binding's unit");
        limit_by_counter(b, n, b->n_unowned, "violations of bindings that are gone, or of others");
        limit_by_counter(b, n, b->n_ambiguous, "violations that may be of several bindings");
        limit_by_counter(b, n, b->n_false, "violations whose times are below their threshold");
        limit_by_counter(b, n, b->n_repairs, "repairs of what others had switched off or removed");
}

const char *const *kernel_limitations(KernelBackend *b) {
        const char *const *of_dialect = dialect_limitations(b->monitor.dialect);
        size_t n = 0;

        for (size_t i = 0; b->limitations[i]; i++)
                free(b->limitations[i]);
        memset(b->limitations, 0, sizeof(b->limitations));

        limit(b, &n, "The kernel's tlob monitor here is %s", dialect_to_string(b->monitor.dialect));
        for (size_t i = 0; of_dialect[i]; i++)
                limit(b, &n, "%s", of_dialect[i]);
        if (b->off)
                limit(b, &n, "The kernel's monitors are switched off: rv/monitoring_on is 0");
        if (b->n_threads_max > 0)
                limit(b, &n,
                      "In the kernel's monitor, so far: %u threads at once that may run the code of "
                      "its bindings, %u of which have room",
                      b->n_threads_max, KERNEL_SLOTS);
        limit_by_counters(b, &n);
        for (size_t i = 0; i < b->foreign.n; i++)
                limit(b, &n, "The kernel's monitor has a binding of someone else: %s",
                      b->foreign.items[i].text);
        return (const char *const *) b->limitations;
}
