/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Any bytes as a page of a trace buffer, with the formats of a real kernel. */

#include "fuzz.h"
#include "kernel-event.h"
#include "kernel-formats.h"

typedef struct Seen {
        KernelPairing pairing;
        size_t n;
} Seen;

static void on_event(const KernelEvent *event, void *userdata) {
        Seen *seen = userdata;
        KernelEvent violation;

        fuzz_assert(event->type <= KERNEL_EVENT_MISSED);
        fuzz_assert(event->type != KERNEL_EVENT_ERROR_ENV || event->state < TLOB_N_STATES);
        seen->n += event->type != KERNEL_EVENT_MISSED;
        if (kernel_pairing_push(&seen->pairing, event, &violation))
                fuzz_assert(violation.id == event->id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char *const texts[KERNEL_N_EVENTS] = FORMATS_V3;
        static KernelFormats *formats;
        KernelPage page;
        Seen seen = {};

        if (!formats)
                fuzz_assert(kernel_formats_new(texts, &formats, NULL) == 0);
        fuzz_assert(kernel_page_decode(formats, data, size, on_event, &seen, &page) == 0);
        fuzz_assert(seen.n == page.n_events && 4 * page.n_events <= size);
        return 0;
}
