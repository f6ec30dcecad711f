/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "file/processes.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/program.h"
#include "cgroup.h"

#define PROCESSES_MAX 512
#define DEPTH_MAX     8

FILE *process_open_file(uint32_t pid, const char *name) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", pid, name);
        return fopen(path, "re");
}

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

static int look_for_container(uint32_t pid, void *userdata) {
        return container_choose_process(userdata, pid);
}

uint32_t process_of_container(const char *cgroup_path) {
        ContainerProcess found = {};

        (void) processes_of_cgroup(cgroup_path, look_for_container, &found);
        return found.pid;
}
