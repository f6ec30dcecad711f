/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What starts a container stays with it in the cgroup of the unit, and so do helpers for its
 * network, some of which have a root of their own, with nothing in it. The container is known by
 * its first process, which has number 1 there, and a root of its own. Containers in a container
 * have the same, deeper down.
 */

#include "base/program.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"

int program_of_process(uint32_t pid, char **ret) {
        char link[64];

        if (pid == 0)
                return -ESRCH;
        (void) snprintf(link, sizeof(link), "/proc/%" PRIu32 "/exe", pid);
        return read_link(link, ret);
}

int root_of_program(uint32_t pid, Root *ret) {
        _cleanup_free_ char *program = NULL;
        int r;

        r = root_of_process(pid, ret);
        if (r != 0 || program_of_process(pid, &program) < 0 || root_inside(ret, program))
                return r;
        root_done(ret);
        *ret = ROOT_OWN;
        return 1;
}

uid_t user_of_process(uint32_t pid) {
        char path[32];
        struct stat st;

        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32, pid);
        return stat(path, &st) < 0 ? (uid_t) -1 : st.st_uid;
}

static bool is_among(const char *program, const char *const *names, size_t n) {
        const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;

        for (size_t i = 0; i < n; i++)
                if (streq(name, names[i]))
                        return true;
        return false;
}

bool program_starts_containers(const char *program) {
        static const char *const names[] = {
                "conmon", "crun", "docker", "lxc-start", "podman", "runc", "systemd-nspawn",
        };

        return is_among(program, names, ELEMENTSOF(names));
}

bool program_is_not_begun(const char *path) {
        static const char *const names[] = { "systemd", "systemd-executor" };

        return is_among(path, names, ELEMENTSOF(names));
}

bool program_is_init(const char *program) {
        static const char *const names[] = {
                "catatonit",   "docker-init", "dumb-init", "init",
                "podman-init", "s6-svscan",   "systemd",   "tini",
        };

        return is_among(program, names, ELEMENTSOF(names));
}

bool unit_is_scope_of_container(const char *unit) {
        static const char *const prefixes[] = {
                "cri-containerd-", "crio-", "docker-", "libpod-", "lxc-", "machine-", "nerdctl-",
        };
        const char *type = strrchr(unit, '.');

        for (size_t i = 0; i < ELEMENTSOF(prefixes); i++)
                if (strncmp(unit, prefixes[i], strlen(prefixes[i])) == 0)
                        return type && streq(type, ".scope");
        return false;
}

/* "NSpid:\t4711\t1": the first in a namespace one below ours. 0: it is the first of none. */
static unsigned depth_of_first(const char *numbers) {
        const char *last = strrchr(numbers, '\t');
        unsigned depth = 0;

        if (!last || !streq(last, "\t1\n"))
                return 0;
        for (const char *p = numbers; p < last; p++)
                depth += *p == '\t';
        return depth;
}

static unsigned read_depth(uint32_t pid) {
        static const char key[] = "NSpid:";
        _cleanup_fclose_ FILE *f = NULL;
        _cleanup_free_ char *line = NULL;
        char path[64];
        size_t size;

        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
        f = fopen(path, "re");
        while (f && getline(&line, &size, f) > 0)
                if (strncmp(line, key, strlen(key)) == 0)
                        return depth_of_first(line);
        return 0;
}

bool container_choose_process(ContainerProcess *found, uint32_t pid) {
        _cleanup_(root_done) Root root = ROOT_OWN;
        unsigned depth = read_depth(pid);

        if (depth == 0 || (found->pid > 0 && depth >= found->depth) ||
            root_of_process(pid, &root) != 0)
                return false;
        *found = (ContainerProcess) { .pid = pid, .depth = depth };
        return depth == 1;
}
