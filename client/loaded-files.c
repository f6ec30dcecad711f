/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a program opens while it runs is in no file of it, only in its mappings. A path is where the
 * process has found the file; another one may be there by now, and that is what will be measured.
 */

#include "loaded-files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/sentence.h"
#include "base/strings.h"

#define PATHS_MAX 4096

/* 7f2c1a028000-7f2c1a1bd000 r-xp 00028000 fe:00 1234 /usr/lib/... */
static const char *find_path(char *line) {
        static const char deleted[] = " (deleted)";
        const char *mode = strchr(line, ' '), *path = strchr(line, '/');
        size_t n;

        line[strcspn(line, "\n")] = '\0';
        if (!mode || !path || strnlen(mode, 4) < 4 || mode[3] != 'x' || !text_is_printable(path))
                return NULL;
        n = strlen(path);
        if (n >= strlen(deleted) && streq(path + n - strlen(deleted), deleted))
                return NULL;
        return path;
}

/* The pieces of a file lie beside each other. */
static int add_path(const char *path, char ***paths, size_t *n) {
        int r;

        if (*n == PATHS_MAX || (*n > 0 && streq((*paths)[*n - 1], path)))
                return 0;
        r = strings_append(paths, path);
        if (r >= 0)
                (*n)++;
        return r;
}

int loaded_files_list(uint32_t pid, char ***ret) {
        _cleanup_(strings_freep) char **paths = NULL;
        _cleanup_free_ char *line = NULL;
        _cleanup_fclose_ FILE *f = NULL;
        size_t size = 0, n = 0;
        char name[64];
        int r = 0;

        (void) snprintf(name, sizeof(name), "/proc/%" PRIu32 "/maps", pid);
        f = fopen(name, "re");
        if (!f)
                return -errno;
        while (r >= 0 && getline(&line, &size, f) > 0) {
                const char *path = find_path(line);

                if (path)
                        r = add_path(path, &paths, &n);
        }
        if (r >= 0 && ferror(f))
                r = -EIO;
        if (r >= 0)
                *ret = TAKE_PTR(paths);
        return r;
}
