/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Where a path seems to be, by its text and the list of mounts alone: looking at the path itself is
 * what may hang.
 */

#include "file/place.h"

#include <mntent.h>

#include "base/cleanup.h"
#include "base/root.h"

/* Those of PID 1 where we see fewer. */
static FILE *open_mounts(void) {
        _cleanup_(root_done) Root machine = ROOT_OWN;

        return setmntent(root_of_machine(&machine) == 0 ? "/proc/1/mounts" : "/proc/self/mounts",
                         "re");
}

/* The mount point that a path is below, by its text alone: the path is not touched. */
static char *mount_of(const char *path) {
        FILE *mounts = open_mounts();
        char buffer[8192], *found = NULL;
        struct mntent entry;
        size_t longest = 1;

        if (!mounts)
                return NULL;
        while (getmntent_r(mounts, &entry, buffer, sizeof(buffer))) {
                size_t n = strlen(entry.mnt_dir);

                if (n <= longest || strncmp(path, entry.mnt_dir, n) != 0 || path[n] != '/')
                        continue;
                free(found);
                found = strdup(entry.mnt_dir);
                longest = n;
        }
        (void) endmntent(mounts);
        return found;
}

char *file_place(const char *path) {
        const char *slash = strrchr(path, '/');

        if (!slash)
                return NULL;
        return mount_of(path) ?: strndup(path, (size_t) (slash - path));
}
