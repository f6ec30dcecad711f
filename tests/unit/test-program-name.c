/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* base/program.h: what is known by a name, and of this process that it is in no container. */

#include "base/program.h"

#include <errno.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "test.h"

static void test_names(void **state) {
        assert_true(program_starts_containers("/usr/bin/podman"));
        assert_true(program_starts_containers("conmon"));
        assert_false(program_starts_containers("/usr/bin/podman-compose"));
        assert_false(program_starts_containers("/opt/podman/run"));
        assert_true(program_is_init("/sbin/init"));
        assert_true(program_is_init("/catatonit"));
        assert_false(program_is_init("/usr/sbin/nginx"));
        assert_true(program_is_not_begun("/usr/lib/systemd/systemd-executor"));
        assert_false(program_is_not_begun("/usr/lib/systemd/systemd-journald"));
}

/* Others have whatever processes their users start. */
static void test_scopes(void **state) {
        assert_true(unit_is_scope_of_container("libpod-0a7a5c1e66db.scope"));
        assert_true(unit_is_scope_of_container("docker-0a7a5c1e66db.scope"));
        assert_true(unit_is_scope_of_container("machine-debian.scope"));
        assert_false(unit_is_scope_of_container("session-3.scope"));
        assert_false(unit_is_scope_of_container("docker-0a7a5c1e66db.service"));
        assert_false(unit_is_scope_of_container("app-docker-1.scope"));
        assert_false(unit_is_scope_of_container("libpod"));
}

static void test_no_container(void **state) {
        ContainerProcess found = {};

        assert_false(container_choose_process(&found, (uint32_t) getpid()));
        assert_int_equal(found.pid, 0);
        assert_false(container_choose_process(&found, 0));
        assert_int_equal(found.pid, 0);
}

static void test_of_process(void **state) {
        _cleanup_free_ char *path = NULL;

        assert_int_equal(program_of_process((uint32_t) getpid(), &path), 0);
        assert_string_equal(strrchr(path, '/'), "/test-program-name");
        assert_int_equal(program_of_process(0, &path), -ESRCH);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_scopes),
                cmocka_unit_test(test_no_container),
                cmocka_unit_test(test_of_process),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
