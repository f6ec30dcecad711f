/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What starts a container stays with it in the cgroup of the unit, and so do helpers for its
 * network, some of which have a root of their own, with nothing in it. The container is known by
 * its first process, which has number 1 there; one without numbers of its own, by its root.
 */

#include "base/program.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/root.h"

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

/* Is its number 1 in a namespace below ours? "NSpid:\t4711\t1" */
static bool is_first_of_its_own(uint32_t pid) {
        static const char key[] = "NSpid:";
        _cleanup_fclose_ FILE *f = NULL;
        _cleanup_free_ char *line = NULL;
        char path[64];
        size_t size;

        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
        f = fopen(path, "re");
        while (f && getline(&line, &size, f) > 0) {
                const char *last = strrchr(line, '\t');

                if (strncmp(line, key, strlen(key)) == 0)
                        return last && last != line + strlen(key) && streq(last, "\t1\n");
        }
        return false;
}

bool container_choose_process(uint32_t *found, uint32_t pid) {
        _cleanup_(root_done) Root root = ROOT_OWN;

        if (root_of_process(pid, &root) != 0)
                return false;
        if (is_first_of_its_own(pid)) {
                *found = pid;
                return true;
        }
        if (*found == 0)
                *found = pid;
        return false;
}
