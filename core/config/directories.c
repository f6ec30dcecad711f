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

static int append_config_home(char ***directories, const char *name, char **ret_error) {
        const char *config = absolute_path_in("XDG_CONFIG_HOME"), *home = absolute_path_in("HOME");
        _cleanup_free_ char *below = NULL;

        if (config)
                return append_below(directories, config, name);
        if (!home)
                return sentence_error(-ENXIO, ret_error,
                                      "Neither XDG_CONFIG_HOME nor HOME is an absolute path: there "
                                      "is no place for a user's configuration");
        if (asprintf(&below, ".config/%s", name) < 0) {
                below = NULL;
                return -ENOMEM;
        }
        return append_below(directories, home, below);
}

/* What persists, and what does not. */
static int directories_of_user(const char *name, char ***ret, char **ret_error) {
        const char *runtime = absolute_path_in("XDG_RUNTIME_DIR");
        _cleanup_(strings_freep) char **directories = NULL;
        int r;

        r = append_config_home(&directories, name, ret_error);
        if (r < 0)
                return r;
        if (!runtime)
                return sentence_error(-ENXIO, ret_error,
                                      "XDG_RUNTIME_DIR is not an absolute path: log in as that "
                                      "user, or do this in a service of that user");
        r = append_below(&directories, runtime, name);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(directories);
        return 0;
}

static int append_installed(char ***directories) {
        static const char *const parents[] = { "/etc/tlob", "/usr/local/lib/tlob",
                                               "/usr/lib/tlob" };
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(parents) && r >= 0; i++)
                r = append_below(directories, parents[i], "user");
        return r;
}

int config_directories_of(RuntimeScope scope, char ***ret, char **ret_error) {
        _cleanup_(strings_freep) char **directories = NULL;
        int r;

        if (scope == RUNTIME_SCOPE_SYSTEM)
                return strings_copy((char *const *) config_directories, ret);
        r = directories_of_user("tlob", &directories, ret_error);
        if (r >= 0)
                r = append_installed(&directories);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(directories);
        return 0;
}

int config_unit_directories_of(RuntimeScope scope, char ***ret, char **ret_error) {
        static const char *const system[] = { "/etc/systemd/system", "/run/systemd/system", NULL };

        if (scope == RUNTIME_SCOPE_SYSTEM)
                return strings_copy((char *const *) system, ret);
        return directories_of_user("systemd/user", ret, ret_error);
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
