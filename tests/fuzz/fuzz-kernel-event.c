/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Any bytes as a page of a trace buffer, with the formats of a real kernel: decoded, paired, summed
 * up.
 */

#include "fuzz.h"
#include "kernel-formats.h"
#include "kernel/event.h"
#include "kernel/window.h"

typedef struct Seen {
        KernelPairing pairing;
        KernelWindows *windows;
        size_t n;
} Seen;

static void on_event(const KernelEvent *event, void *userdata) {
        Seen *seen = userdata;
        KernelEvent violation;

        fuzz_assert(event->type <= KERNEL_EVENT_MISSED);
        fuzz_assert(event->type != KERNEL_EVENT_ERROR_ENV || event->state < TLOB_N_STATES);
        fuzz_assert(event->type != KERNEL_EVENT_CHANGE || event->is_stop ||
                    event->state < TLOB_N_STATES);
        seen->n += event->type != KERNEL_EVENT_MISSED;
        if (kernel_pairing_push(&seen->pairing, event, &violation))
                fuzz_assert(violation.id == event->id);
        if (kernel_windows_push(seen->windows, event, &violation))
                fuzz_assert(violation.id == event->id && event->type == KERNEL_EVENT_ERROR_ENV);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char *texts[KERNEL_N_EVENTS] = FORMATS_V3;
        _cleanup_(kernel_windows_freep) KernelWindows *windows = NULL;
        static KernelFormats *formats;
        KernelPage page;
        Seen seen = {};

        texts[KERNEL_EVENT_CHANGE] = FORMAT_CHANGE;
        if (!formats)
                fuzz_assert(kernel_formats_new(texts, &formats, NULL) == 0);
        fuzz_assert(kernel_windows_new(&windows) == 0);
        seen.windows = windows;
        fuzz_assert(kernel_page_decode(formats, data, size, on_event, &seen, &page) == 0);
        fuzz_assert(seen.n == page.n_events && 4 * page.n_events <= size);
        return 0;
}
