/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "service.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "cgroup.h"
#include "test.h"

#define SLICE "tlob-test.slice"

static int root_fd = -EBADF;

void service_make_groups(void) {
        root_fd = cgroup_open_root();
        assert_true(root_fd >= 0);
        (void) mkdirat(root_fd, SLICE, 0755);
        (void) mkdirat(root_fd, SERVICE_GROUP, 0755);
        (void) mkdirat(root_fd, OTHER_GROUP, 0755);
}

/* A task may leave it a moment after somebody has waited for its process. */
int service_remove_group(int dir_fd, const char *path) {
        const struct timespec moment = { .tv_nsec = 1000000 };

        for (unsigned i = 0; unlinkat(dir_fd, path, AT_REMOVEDIR) < 0; i++) {
                if (errno != EBUSY || i == 1000)
                        return -errno;
                (void) nanosleep(&moment, NULL);
        }
        return 0;
}

void service_remove_groups(void) {
        (void) service_remove_group(root_fd, OTHER_GROUP);
        (void) service_remove_group(root_fd, SERVICE_GROUP);
        (void) service_remove_group(root_fd, SLICE);
        root_fd = safe_close(root_fd);
}

int service_setup(void **state) {
        service_make_groups();
        return engine_setup(state);
}

int service_teardown(void **state) {
        int r = engine_teardown(state);

        service_remove_groups();
        return r;
}

uint32_t service_add(Engine *engine, const char *const *keys) {
        _cleanup_(binding_freep) Binding *binding = NULL;

        assert_int_equal(binding_new("test", &binding), 0);
        engine_set_keys(binding, keys);
        engine_set_keys(binding, KEYS("Unit", "test.service"));
        assert_int_equal(cgroup_path_get_id(root_fd, SERVICE_GROUP, &binding->cgroup.id,
                                            &binding->cgroup.level),
                         0);
        return engine_add_binding(engine, binding);
}

static bool is_in_call(pid_t pid, long number) {
        const struct dirent *entry;
        char path[64], text[64];
        bool found = false;
        DIR *dir;

        (void) snprintf(path, sizeof(path), "/proc/%i/task", pid);
        dir = opendir(path);
        assert_non_null(dir);
        while ((entry = readdir(dir)) && !found) {
                FILE *f;

                (void) snprintf(path, sizeof(path), "/proc/%i/task/%.10s/syscall", pid,
                                entry->d_name);
                f = fopen(path, "re");
                found = f && fgets(text, sizeof(text), f) && strtol(text, NULL, 10) == number;
                if (f)
                        (void) fclose(f);
        }
        (void) closedir(dir);
        return found;
}

void service_await_call(pid_t pid, long number) {
        const struct timespec moment = { .tv_nsec = 1000000 };

        while (!is_in_call(pid, number))
                (void) nanosleep(&moment, NULL);
}

void service_move(pid_t pid, const char *group) {
        char procs[128], text[16];
        int fd, n;

        (void) snprintf(procs, sizeof(procs), "%s/cgroup.procs", group);
        fd = openat(root_fd, procs, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        n = snprintf(text, sizeof(text), "%i", pid);
        assert_int_equal(write(fd, text, (size_t) n), n);
        (void) close(fd);
}

void service_start(Victim *victim, const char *path, const char *group, const char *words) {
        char all[256];

        (void) snprintf(all, sizeof(all), "say:ready %s", words);
        program_start(victim, path, all);
        victim_expect(victim, "ready");
        service_move(victim->pid, group);
        victim_continue(victim);
}
