/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The same in C++, with what the linker makes one of: templates, and functions in headers. */

#include "tlob-mark.h"

#include <optional>

namespace marks {

TLOB_MARK(request);
TLOB_MARK(step);

template <class T> __attribute__((noinline)) T step(T x) {
        TLOB_SCOPE(step);

        if (x > T(100))
                throw x;
        return x * 2;
}

inline int request(int x) {
        tlob_begin(request);
        x = step(x);
        tlob_end(request);
        return x;
}

int other(int x);

#ifdef OTHER

int other(int x) {
        std::optional<tlob_scope_request> window;

        if (x > 1)
                window.emplace();
        return step(x + 1) + request(x);
}

} // namespace marks

#else

} // namespace marks

int main(int argc, char **) {
        try {
                return marks::request(argc) + marks::other(argc) > 1000;
        } catch (int) {
                return 1;
        }
}

#endif
