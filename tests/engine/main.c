/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Runs the groups of tests that are in this program, or those that are named; "list" prints their
 * names.
 */

#include <string.h>

#include "engine.h"

/* The linker knows where the section lies. */
extern const EngineTests __start_engine_tests[], __stop_engine_tests[];

static bool is_wanted(const EngineTests *tests, char *const *names) {
        if (!names[0])
                return true;
        while (*names && strcmp(*names, tests->name) != 0)
                names++;
        return *names;
}

int main(int argc, char *argv[]) {
        int n_failed = 0, n = 0;

        for (const EngineTests *tests = __start_engine_tests; tests < __stop_engine_tests; tests++)
                if (argc > 1 && strcmp(argv[1], "list") == 0)
                        (void) printf("%s\n", tests->name);
                else if (is_wanted(tests, argv + 1)) {
                        n_failed += tests->run();
                        n++;
                }
        return n_failed > 0 || (n == 0 && argc > 1 && strcmp(argv[1], "list") != 0);
}
