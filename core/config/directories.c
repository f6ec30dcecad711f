/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which directories the configuration is read from. Those of a user follow systemd's user manager:
 * $XDG_CONFIG_HOME before $XDG_RUNTIME_DIR, and below /etc and /usr a directory "user", for what an
 * administrator or a package has for the services of all users. No file is looked at here.
 */

#include "config/directories.h"

#include "base/sentence.h"
#include "config/config.h"

/* An empty variable, or one with a relative path, counts as none: XDG Base Directory. */
static const char *absolute_path_in(const char *variable) {
        const char *path = secure_getenv(variable);

        return path && *path == '/' ? path : NULL;
}

static int append_below(char ***directories, const char *parent, const char *name) {
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s/%s", parent, name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        return strings_append(directories, path);
}

static int append_config_home(char ***directories, char **ret_error) {
        const char *config = absolute_path_in("XDG_CONFIG_HOME"), *home = absolute_path_in("HOME");

        if (config)
                return append_below(directories, config, "tlob");
        if (home)
                return append_below(directories, home, ".config/tlob");
        return sentence_error(-ENXIO, ret_error,
                              "Neither XDG_CONFIG_HOME nor HOME is an absolute path: there is no "
                              "place for a user's configuration");
}

static int append_runtime_directory(char ***directories, char **ret_error) {
        const char *runtime = absolute_path_in("XDG_RUNTIME_DIR");

        if (runtime)
                return append_below(directories, runtime, "tlob");
        return sentence_error(-ENXIO, ret_error,
                              "XDG_RUNTIME_DIR is not an absolute path: log in, or start tlobd as "
                              "a user's service");
}

static int directories_of_user(char ***ret, char **ret_error) {
        static const char *const installed[] = { "/etc/tlob", "/usr/local/lib/tlob",
                                                 "/usr/lib/tlob" };
        _cleanup_(strings_freep) char **directories = NULL;
        int r;

        r = append_config_home(&directories, ret_error);
        if (r >= 0)
                r = append_runtime_directory(&directories, ret_error);
        for (size_t i = 0; i < ELEMENTSOF(installed) && r >= 0; i++)
                r = append_below(&directories, installed[i], "user");
        if (r < 0)
                return r;
        *ret = TAKE_PTR(directories);
        return 0;
}

int config_directories_of(RuntimeScope scope, char ***ret, char **ret_error) {
        if (scope == RUNTIME_SCOPE_USER)
                return directories_of_user(ret, ret_error);
        return strings_copy((char *const *) config_directories, ret);
}

int config_directories_parse(const char *list, char ***ret) {
        _cleanup_(strings_freep) char **directories = NULL;
        _cleanup_free_ char *copy = strdup(list);
        char *rest = copy;
        int r;

        if (!copy)
                return -ENOMEM;
        for (const char *path; (path = strsep(&rest, ":"));) {
                if (*path != '/')
                        return -EINVAL;
                r = strings_append(&directories, path);
                if (r < 0)
                        return r;
        }
        /* One for what persists, one for what does not. */
        if (strings_count(directories) < 2 || strings_count(directories) > CONFIG_DIRECTORIES_MAX)
                return -EINVAL;
        *ret = TAKE_PTR(directories);
        return 0;
}
