/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Names of symbols: read, compared and listed in bounded time and memory, and fit to be shown. */

#include "base/mangled-name.h"
#include "base/near-name.h"
#include "base/sentence.h"
#include "fuzz.h"

static bool is_accepted(const char *text, void *userdata) {
        return strlen(text) % 2 == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *name = strndup((const char *) data, size), *list = NULL;
        static const char wanted[] = "push_back";
        char text[64];
        NearNames names, reversed;

        fuzz_assert(name);
        for (int arguments = 0; arguments < 2; arguments++) {
                bool known = mangled_name_decode(name, arguments, text, sizeof(text));

                fuzz_assert(strlen(text) < sizeof(text) && (known || text[0] == '\0'));
        }
        near_names_init(&names, wanted, strlen(wanted));
        near_names_offer(&names, name);
        /* And the other way round: what is wanted may be anything, too. */
        near_names_init(&reversed, name, strlen(name));
        near_names_offer(&reversed, wanted);
        near_names_offer(&reversed, "_ZN4shop4Fast6handleEv");
        list = near_names_list(&names, is_accepted, NULL);
        fuzz_assert(list && text_is_printable(list));
        return 0;
}
