/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* daemon/bpf/pins.c: what it does not take for its own. The rest needs a kernel: tests/engine. */

#include "bpf/pins.h"

#include <fcntl.h>

#include "temporary.h"
#include "test.h"

/* Of a directory that comes from somewhere else, nothing is removed. */
static void test_other_directory(void **state) {
        Pins *pins = NULL;
        Temporary tmp;
        int fd;

        temporary_init(&tmp);
        temporary_write(&tmp, "link_1", "text");
        fd = open(tmp.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(pins_inherit(fd, &pins), -ESTALE);
        assert_null(pins);
        /* It is still the caller's. */
        assert_ok(faccessat(fd, "link_1", F_OK, 0));
        (void) close(fd);
        temporary_done(&tmp);
}

static void test_no_directory(void **state) {
        Pins *pins = NULL;
        int ends[2];

        assert_ok(pipe(ends));
        assert_int_equal(pins_inherit(ends[0], &pins), -ESTALE);
        assert_null(pins);
        (void) close(ends[0]);
        (void) close(ends[1]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_other_directory),
                cmocka_unit_test(test_no_directory),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
