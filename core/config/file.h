/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CONFIG_FILE_H
#define CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

/*
 * Which files there are, in which order, and what is in one of them. What it means is config.c's.
 */

#define CONFIG_SECTION_MAX 320 /* "Override ", a unit's name, "/", a binding's name */

/* A place in a file, for messages. */
typedef struct ConfigPlace {
        const char *file;
        unsigned line; /* 0: the whole file */
} ConfigPlace;

/*
 * Who is told what is in a file. Strings hold during the call. A negative errno ends the reading
 * and is returned by it.
 */
typedef struct ConfigHandlers {
        /*
         * A section begins. Returns 1 if its keys are wanted, 0 if its lines are not even looked
         * at.
         */
        int (*section)(const ConfigPlace *place, const char *section, void *userdata);

        /* A key, in a section that is wanted. Returns 0. */
        int (*key)(const ConfigPlace *place, const char *key, const char *value, void *userdata);

        /*
         * Something cannot be read: a line (with its key if that much is clear, else NULL), or a
         * file. Returns 0.
         */
        int (*problem)(const ConfigPlace *place, const char *key, const char *sentence,
                       void *userdata);
} ConfigHandlers;

/* Reads text, as if it were the contents of file. */
int config_file_parse(const char *file, const char *text, size_t size,
                      const ConfigHandlers *handlers, void *userdata);

/* Is that no matter of a file, but one of too many descriptors, or of its disk, for the moment? */
bool config_error_may_pass(int error);

/* Reads a file whole. -ENOENT and the like; -EISDIR, -EINVAL (not a regular file), -EFBIG. */
int config_file_load(const char *path, char **ret_text, size_t *ret_size);

/*
 * Both: a file that cannot be read is a problem, one that vanished is none. Returns 1 if that is
 * not for what the file is: then nobody knows what is in it.
 */
int config_file_read(const char *path, const ConfigHandlers *handlers, void *userdata);

/* Paths, owned by the list, in the order in which they are to be read. */
typedef struct ConfigFileList {
        char **paths;
        size_t n;
        bool is_incomplete; /* a directory could not be read, though it may be: a problem */
} ConfigFileList;

void config_file_list_done(ConfigFileList *list);

/*
 * Lists the *.conf in SUBDIRECTORY of each of n directories, highest precedence first, sorted by
 * file name. Of files of the same name only the first counts, and if that is a link to /dev/null,
 * none.
 */
int config_file_list(const char *const *directories, size_t n, const char *subdirectory,
                     const ConfigHandlers *handlers, void *userdata, ConfigFileList *ret);

/*
 * Finds the first NAME in n directories. -ENOENT if there is none, or if it is a link to /dev/null.
 */
int config_file_find(const char *const *directories, size_t n, const char *name, char **ret_path);

#endif
