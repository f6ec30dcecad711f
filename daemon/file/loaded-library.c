/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Where the dynamic loader finds a library depends on LD_LIBRARY_PATH and on the processor, and a
 * program can load others from anywhere. What a process has mapped tells, by the path with links
 * resolved: libz.so.1 is /usr/lib/x86_64-linux-gnu/libz.so.1.2.13 there, and its directory has a
 * link of the bare name. What is found has to be the file that is mapped.
 */

#include "file/loaded-library.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/root.h"
#include "binding/executable.h"
#include "file/processes.h"

typedef struct Search {
        const Root *root;
        const char *name;
        char *path;
} Search;

/* Takes path if it leads to what is mapped. */
static int accept(Search *search, const char *path, const MappedIdentity *mapped) {
        _cleanup_close_ int fd = -EBADF;
        MappedIdentity identity;

        fd = root_open(search->root, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return 0;
        identity = file_identify_mapping(fd);
        if (identity.inode == 0 || identity.inode != mapped->inode ||
            identity.device != mapped->device)
                return 0;
        search->path = strdup(path);
        return search->path ? 1 : -ENOMEM;
}

/* 7f2c1a028000-7f2c1a1bd000 r-xp 00028000 fe:00 1234 /usr/lib/... */
static bool is_executable(const char *line) {
        const char *mode = strchr(line, ' ');

        return mode && strnlen(mode, 4) == 4 && mode[3] == 'x';
}

/* Is it the name of the library, or one that a link of that name may lead to? */
static bool is_like(const char *file, const char *name) {
        size_t n = strlen(name);

        return strncmp(file, name, n) == 0 && (file[n] == '\0' || file[n] == '.');
}

static int look_at_line(Search *search, char *line) {
        char link[PATH_MAX], *path, *slash;
        MappedIdentity mapped;
        uint64_t begin;
        int r;

        line[strcspn(line, "\n")] = '\0';
        path = strchr(line, '/');
        slash = path ? strrchr(path, '/') : NULL;
        if (!slash || !is_like(slash + 1, search->name) || !is_executable(line) ||
            !file_parse_mapping(line, &begin, &mapped) || mapped.inode == 0)
                return 0;
        r = accept(search, path, &mapped);
        if (r == 0 && snprintf(link, sizeof(link), "%.*s/%s", (int) (slash - path), path,
                               search->name) < (int) sizeof(link))
                r = accept(search, link, &mapped);
        return r;
}

static int look_at_process(uint32_t pid, void *userdata) {
        _cleanup_fclose_ FILE *f = NULL;
        _cleanup_free_ char *line = NULL;
        Search *search = userdata;
        char path[64];
        size_t size;
        int r = 0;

        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", pid);
        f = fopen(path, "re");
        while (f && r == 0 && getline(&line, &size, f) > 0)
                r = look_at_line(search, line);
        return r;
}

int loaded_library_find(const Binding *binding, const char *name, char **ret_path) {
        uint32_t first = binding->view.container_pid ?: binding->view.main_pid;
        _cleanup_(root_done) Root root = ROOT_OWN;
        Search search = { .root = &root, .name = name };
        int r;

        if (binding_open_root(binding, NULL, &root, NULL) < 0)
                return -ENOENT;
        r = first > 0 ? look_at_process(first, &search) : 0;
        if (r == 0 && binding->cgroup.path)
                r = processes_of_cgroup(binding->cgroup.path, look_at_process, &search);
        if (r == -ENOMEM)
                return r;
        if (r <= 0)
                return -ENOENT;
        *ret_path = search.path;
        return 0;
}
