/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What starts a container stays with it in the cgroup of the unit, and so do helpers for its
 * network, some of which have a root of their own, with nothing in it. The container is known by
 * its first process, which has number 1 there; one without numbers of its own, by its root.
 */

#include "file/processes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "cgroup.h"

#define PROCESSES_MAX 512
#define DEPTH_MAX     8

typedef struct Walk {
        ProcessVisitor visit;
        void *userdata;
        unsigned n;
} Walk;

static int visit_processes(int directory, Walk *walk) {
        _cleanup_fclose_ FILE *f = NULL;
        uint32_t pid;
        int fd, r = 0;

        fd = openat(directory, "cgroup.procs", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        f = fdopen(fd, "r");
        if (!f) {
                safe_close(fd);
                return -ENOMEM;
        }
        while (r == 0 && walk->n < PROCESSES_MAX && fscanf(f, "%" SCNu32, &pid) == 1) {
                walk->n++;
                r = walk->visit(pid, walk->userdata);
        }
        return r;
}

/* Takes directory over. */
static int visit_below(int directory, unsigned depth, Walk *walk) {
        _cleanup_closedir_ DIR *d = fdopendir(directory);
        const struct dirent *entry;
        int r;

        if (!d) {
                safe_close(directory);
                return -ENOMEM;
        }
        r = visit_processes(directory, walk);
        while (r == 0 && depth < DEPTH_MAX && (entry = readdir(d))) {
                int fd;

                if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
                        continue;
                fd = openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                if (fd >= 0)
                        r = visit_below(fd, depth + 1, walk);
        }
        return r;
}

int processes_of_cgroup(const char *cgroup_path, ProcessVisitor visit, void *userdata) {
        Walk walk = { .visit = visit, .userdata = userdata };
        _cleanup_close_ int root = cgroup_open_root();
        const char *below = cgroup_path + strspn(cgroup_path, "/");
        int fd;

        if (root < 0)
                return root;
        fd = openat(root, *below ? below : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        return visit_below(fd, 0, &walk);
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

static int look_for_container(uint32_t pid, void *userdata) {
        _cleanup_(root_done) Root root = ROOT_OWN;
        uint32_t *found = userdata;

        if (root_of_process(pid, &root) != 0)
                return 0;
        if (is_first_of_its_own(pid)) {
                *found = pid;
                return 1;
        }
        if (*found == 0)
                *found = pid;
        return 0;
}

uint32_t process_of_container(const char *cgroup_path) {
        uint32_t found = 0;

        (void) processes_of_cgroup(cgroup_path, look_for_container, &found);
        return found;
}
