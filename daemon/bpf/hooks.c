/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * One set of hooks takes over from another in this order: it is attached, and pinned, and has
 * nothing to say; it acts, and the other set does not; the other set goes away. A daemon can be
 * killed between any two of these: what is pinned and does not act is nobody's, and the next one
 * removes it.
 */

#include "bpf/hooks.h"

#include <bpf/libbpf.h>

#include "base/clock.h"

#define KIND "hook_"

typedef struct SetName {
        char text[16];
} SetName;

static SetName set_name(uint32_t number) {
        SetName name;

        (void) snprintf(name.text, sizeof(name.text), KIND "%08x_", number);
        return name;
}

void hooks_prepare(struct tlob_bpf *bpf) {
        /* Two daemons do not begin in the same microsecond, nor a multiple of 71 minutes apart. */
        bpf->rodata->hooks_number = (uint32_t) now_usec();
        bpf->bss->hooks_acting = bpf->rodata->hooks_number;
}

/* So that they go on without us. */
static int pin(const struct tlob_bpf *bpf, const Pins *pins) {
        const struct bpf_object_skeleton *skeleton = bpf->skeleton;

        for (int i = 0; i < skeleton->prog_cnt; i++) {
                const struct bpf_link *link = *skeleton->progs[i].link;
                char name[32];
                int r;

                if (!link)
                        continue;
                (void) snprintf(name, sizeof(name), "%s%i",
                                set_name(bpf->rodata->hooks_number).text, i);
                r = pins_add_named(pins, name, bpf_link__fd(link));
                if (r < 0)
                        return r;
        }
        return 0;
}

int hooks_attach(struct tlob_bpf *bpf, const Pins *pins, bool *ret_pinned) {
        int r;

        r = tlob_bpf__attach(bpf);
        if (r < 0)
                return r;
        *ret_pinned = pins && pin(bpf, pins) >= 0;
        __atomic_store_n(&bpf->bss->hooks_acting, bpf->rodata->hooks_number, __ATOMIC_RELEASE);
        return 0;
}

void hooks_remove_others(const struct tlob_bpf *bpf, const Pins *pins) {
        pins_remove_others(pins, KIND, set_name(bpf->bss->hooks_acting).text);
}
