/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The two things that tlobctl asks systemd itself, because its files are read and written here: which
 * files a unit is made of, and to read them again. Everything else is tlobd's to say.
 */

#include "unit-query.h"

#include <err.h>

#include "filter.h"

#define SYSTEMD_NAME "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define SYSTEMD_UNIT "org.freedesktop.systemd1.Unit"

static void free_strings(char **strings) {
        for (char **p = strings; p && *p; p++)
                free(*p);
        free(strings);
}

void unit_files_done(UnitFiles *files) {
        free_strings(files->paths);
        free(files->id);
        *files = (UnitFiles){};
}

static int complain(int r, const sd_bus_error *error) {
        warnx("systemd could not be asked: %s", error->message ?: strerror(-r));
        return r;
}

/* The fragment goes before the drop-ins. */
static int join_paths(const char *fragment, char **drop_ins, char ***ret) {
        size_t n = 0;
        char **paths;

        while (drop_ins && drop_ins[n])
                n++;
        paths = calloc(n + 2, sizeof(*paths));
        if (!paths)
                return -ENOMEM;
        if (*fragment != '\0') {
                paths[0] = strdup(fragment);
                if (!paths[0]) {
                        free(paths);
                        return -ENOMEM;
                }
        }
        if (n > 0)
                memcpy(paths + (paths[0] != NULL), drop_ins, n * sizeof(*paths));
        *ret = paths;
        return 0;
}

typedef struct UnitReply {
        char *id;
        char *state;
        char *fragment;
        char **drop_ins;
        int needs_reload;
} UnitReply;

static void unit_reply_done(UnitReply *reply) {
        free(reply->id);
        free(reply->state);
        free(reply->fragment);
        free_strings(reply->drop_ins);
}

static int ask(sd_bus *bus, const char *path, UnitReply *ret, sd_bus_error *error) {
        const struct {
                const char *property;
                char **ret;
        } texts[] = {
                { "Id", &ret->id },
                { "LoadState", &ret->state },
                { "FragmentPath", &ret->fragment },
        };
        int r;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                r = sd_bus_get_property_string(bus, SYSTEMD_NAME, path, SYSTEMD_UNIT,
                                               texts[i].property, error, texts[i].ret);
                if (r < 0)
                        return r;
        }
        r = sd_bus_get_property_trivial(bus, SYSTEMD_NAME, path, SYSTEMD_UNIT, "NeedDaemonReload",
                                        error, 'b', &ret->needs_reload);
        if (r < 0)
                return r;
        return sd_bus_get_property_strv(bus, SYSTEMD_NAME, path, SYSTEMD_UNIT, "DropInPaths", error,
                                        &ret->drop_ins);
}

int unit_files_query(Connection *connection, const char *name, UnitFiles *ret) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *complete = unit_name_complete(name), *path = NULL;
        _cleanup_(unit_reply_done) UnitReply reply = {};
        int r;

        if (!complete)
                return connection_complain_reply(-ENOMEM);
        if (!connection_is_local(connection)) {
                warnx("The files of units can only be read on this machine; leave out --host= and "
                      "--machine=");
                return -EOPNOTSUPP;
        }
        r = connection_open(connection);
        if (r < 0)
                return r;
        r = sd_bus_path_encode(SYSTEMD_PATH "/unit", complete, &path);
        if (r < 0)
                return connection_complain_reply(r);
        r = ask(connection->bus, path, &reply, &error);
        if (r < 0)
                return complain(r, &error);
        if (!streq(reply.state, "loaded")) {
                warnx("Unit %s is %s; see 'systemctl status %s'", complete, reply.state, complete);
                return -ENOENT;
        }

        r = join_paths(reply.fragment, reply.drop_ins, &ret->paths);
        if (r < 0)
                return connection_complain_reply(r);
        /* The strings have moved. */
        free(reply.drop_ins);
        reply.drop_ins = NULL;
        ret->id = TAKE_PTR(reply.id);
        ret->needs_reload = reply.needs_reload;
        return 0;
}

int unit_files_reload(Connection *connection) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        r = sd_bus_call_method(connection->bus, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_NAME ".Manager",
                               "Reload", &error, NULL, NULL);
        return r < 0 ? complain(r, &error) : 0;
}
