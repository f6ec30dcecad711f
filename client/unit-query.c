/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What tlobctl asks systemd itself: which files a unit is made of, because they are read and
 * written here, to read them again, and whether there is such a unit at all. Everything else is
 * tlobd's to say.
 *
 * systemd loads no templates, only their instances. So an instance of a name that nobody gives
 * stands for its template: its files are those of all instances.
 */

#include "unit-query.h"

#include <ctype.h>
#include <err.h>
#include <stdlib.h>
#include <time.h>

#include "base/program.h"
#include "base/sentence.h"
#include "base/strings.h"
#include "base/unit-name.h"
#include "binding/binding.h"
#include "note.h"

#define SYSTEMD_NAME "org.freedesktop.systemd1"
#define SYSTEMD_PATH "/org/freedesktop/systemd1"
#define SYSTEMD_UNIT "org.freedesktop.systemd1.Unit"
#define ANY_INSTANCE "tlobctl_any"

/* A process that has just been made is given a second to become its program. */
#define BEGIN_NSEC  20000000
#define BEGIN_TRIES 50

void unit_files_done(UnitFiles *files) {
        strings_free(files->paths);
        free(files->id);
        *files = (UnitFiles) {};
}

static int complain(int r, const sd_bus_error *error) {
        warnx("Failed to query systemd: %s", error->message ?: strerror(-r));
        return r;
}

/* The fragment goes before the drop-ins. */
static int join_paths(const char *fragment, char **drop_ins, char ***ret) {
        size_t n = strings_count(drop_ins);
        char **paths;

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
        strings_free(reply->drop_ins);
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

/* "foo" -> "foo.service", "foo@" -> "foo@.service"; and the unit to ask systemd about for it. */
static int complete_name(const char *name, char **ret_id, char **ret_asked) {
        _cleanup_free_ char *id = unit_name_complete(name), *asked = NULL;

        if (!id)
                return -ENOMEM;
        asked = unit_name_is_template(id) ? unit_name_make_instance(id, ANY_INSTANCE) : strdup(id);
        if (!asked)
                return -ENOMEM;
        *ret_id = TAKE_PTR(id);
        *ret_asked = TAKE_PTR(asked);
        return 0;
}

/* "foo@tlobctl_any.service" -> "foo@.service" */
static void remove_instance(char *id) {
        char *at = strstr(id, "@" ANY_INSTANCE ".");

        if (at)
                memmove(at + 1, at + 1 + strlen(ANY_INSTANCE), strlen(at + strlen(ANY_INSTANCE)));
}

static int query(Connection *connection, const char *unit, UnitReply *ret, sd_bus_error *error) {
        _cleanup_free_ char *path = NULL;
        int r;

        r = sd_bus_path_encode(SYSTEMD_PATH "/unit", unit, &path);
        return r < 0 ? r : ask(connection->bus, path, ret, error);
}

char *unit_name_resolve(Connection *connection, const char *name) {
        _cleanup_free_ char *id = NULL, *asked = NULL, *path = NULL, *found = NULL;

        if (complete_name(name, &id, &asked) < 0)
                return NULL;
        if (!unit_name_is_valid(asked) || !connection->bus ||
            sd_bus_path_encode(SYSTEMD_PATH "/unit", asked, &path) < 0 ||
            sd_bus_get_property_string(connection->bus, SYSTEMD_NAME, path, SYSTEMD_UNIT, "Id",
                                       NULL, &found) < 0)
                return TAKE_PTR(id);
        remove_instance(found);
        return TAKE_PTR(found);
}

/* "not-found" and the like, as a person would say it. */
static int complain_state(const Options *options, const char *unit, const char *state) {
        const char *scope = options_scope_text(options);

        if (streq(state, "not-found"))
                warnx("There is no unit %s; see 'systemctl%s list-unit-files'", unit, scope);
        else
                warnx("Unit %s is %s; see 'systemctl%s status %s'", unit, state, scope, unit);
        return -ENOENT;
}

int unit_files_query(Connection *connection, const char *name, UnitFiles *ret) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *id = NULL, *asked = NULL;
        _cleanup_(unit_reply_done) UnitReply reply = {};
        int r;

        r = complete_name(name, &id, &asked);
        if (r < 0)
                return connection_complain_reply(r);
        if (!connection_is_local(connection))
                return connection_complain_elsewhere(connection, "The configuration of a unit");
        r = connection_open(connection);
        if (r < 0)
                return r;
        r = query(connection, asked, &reply, &error);
        if (r < 0)
                return complain(r, &error);
        if (!streq(reply.state, "loaded"))
                return complain_state(connection->options, id, reply.state);

        r = join_paths(reply.fragment, reply.drop_ins, &ret->paths);
        if (r < 0)
                return connection_complain_reply(r);
        /* The strings have moved. */
        free(reply.drop_ins);
        reply.drop_ins = NULL;
        remove_instance(reply.id);
        ret->id = TAKE_PTR(reply.id);
        ret->needs_reload = reply.needs_reload;
        return 0;
}

/* The first element of an array of structures that begin with a path; NULL: it is empty. */
static int read_program(sd_bus_message *m, char **ret) {
        const char *path = NULL;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "(sasbttttuii)");
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'r', "sasbttttuii");
        if (r > 0)
                r = sd_bus_message_read(m, "s", &path);
        if (r < 0)
                return r;
        *ret = path ? strdup(path) : NULL;
        return path && !*ret ? -ENOMEM : 0;
}

static int ask_program(sd_bus *bus, const char *unit, char **ret, sd_bus_error *error) {
        _cleanup_message_ sd_bus_message *reply = NULL;
        _cleanup_free_ char *path = NULL;
        int r;

        r = sd_bus_path_encode(SYSTEMD_PATH "/unit", unit, &path);
        if (r >= 0)
                r = sd_bus_get_property(bus, SYSTEMD_NAME, path, SYSTEMD_NAME ".Service",
                                        "ExecStart", error, &reply, "a(sasbttttuii)");
        return r < 0 ? r : read_program(reply, ret);
}

/* 0: it has none, or does not run. */
static uint32_t find_main_pid(sd_bus *bus, const char *unit) {
        _cleanup_free_ char *path = NULL;
        uint32_t pid;

        if (sd_bus_path_encode(SYSTEMD_PATH "/unit", unit, &path) < 0 ||
            sd_bus_get_property_trivial(bus, SYSTEMD_NAME, path, SYSTEMD_NAME ".Service", "MainPID",
                                        NULL, 'u', &pid) < 0)
                return 0;
        return pid;
}

static int choose_process(sd_bus_message *m, ContainerProcess *ret) {
        const char *cgroup, *command;
        uint32_t pid;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "(sus)");
        while (r >= 0 && (r = sd_bus_message_read(m, "(sus)", &cgroup, &pid, &command)) > 0)
                if (container_choose_process(ret, pid))
                        break;
        return r;
}

/* The process of the container that a unit has started. 0: none is seen. */
static uint32_t find_container_pid(sd_bus *bus, const char *unit) {
        _cleanup_message_ sd_bus_message *reply = NULL;
        ContainerProcess found = {};

        if (sd_bus_call_method(bus, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_NAME ".Manager",
                               "GetUnitProcesses", NULL, &reply, "s", unit) < 0 ||
            choose_process(reply, &found) < 0)
                return 0;
        return found.pid;
}

/* Reads what a process runs: if it has just been made, as soon as that has begun. */
static int read_running(uint32_t pid, char **ret) {
        const struct timespec pause = { .tv_nsec = BEGIN_NSEC };
        int r;

        r = program_of_process(pid, ret);
        for (unsigned i = 1; i < BEGIN_TRIES && r >= 0 && program_is_not_begun(*ret); i++) {
                (void) nanosleep(&pause, NULL);
                free(*ret);
                *ret = NULL;
                r = program_of_process(pid, ret);
        }
        return r;
}

/*
 * What that process runs, and the tree it sees, as far as that can be seen: NULL if not, or if the
 * file is not there any more.
 */
static char *find_running(uint32_t pid, Root *ret_root) {
        _cleanup_free_ char *path = NULL;
        char *running = NULL;

        if (read_running(pid, &path) < 0 || root_of_program(pid, ret_root) < 0)
                return NULL;
        return root_resolve(ret_root, path, &running) < 0 ? NULL : running;
}

uint32_t unit_main_pid_query(Connection *connection, const char *unit) {
        return connection_open(connection) < 0 ? 0 : find_main_pid(connection->bus, unit);
}

/* A setting of a service that is a path; NULL: it has none, or it is not known. */
static char *ask_path(sd_bus *bus, const char *unit, const char *setting) {
        _cleanup_free_ char *path = NULL, *value = NULL;

        if (sd_bus_path_encode(SYSTEMD_PATH "/unit", unit, &path) < 0 ||
            sd_bus_get_property_string(bus, SYSTEMD_NAME, path, SYSTEMD_NAME ".Service", setting,
                                       NULL, &value) < 0 ||
            *value == '\0')
                return NULL;
        return TAKE_PTR(value);
}

/* The tree in which a service will run, if none of its processes shows that. Says what is wrong. */
static int find_configured_root(sd_bus *bus, const char *unit, Root *ret) {
        _cleanup_free_ char *image = ask_path(bus, unit, "RootImage");
        _cleanup_free_ char *directory = NULL;
        int r;

        if (image) {
                warnx("The files of %s are in its RootImage=, which only its processes see: start "
                      "it, and be root",
                      unit);
                return -ENOENT;
        }
        directory = ask_path(bus, unit, "RootDirectory");
        if (!directory)
                return 0;
        r = root_of_directory(&ROOT_OWN, directory, ret);
        if (r < 0)
                warnx("Cannot open %s, RootDirectory= of %s: %s", directory, unit, strerror(-r));
        return r;
}

/* A wrapper is not what somebody wants to measure. Replaces *program. Says what is wrong. */
static int prefer_running(sd_bus *bus, const char *unit, Root *ret_root, char **program) {
        _cleanup_free_ char *running = find_running(find_main_pid(bus, unit), ret_root);
        _cleanup_free_ char *configured = NULL;

        /* Its file may be gone, but not the tree. */
        if (!running)
                return ret_root->fd >= 0 ? 0 : find_configured_root(bus, unit, ret_root);
        if (root_resolve(ret_root, *program, &configured) >= 0 && streq(running, configured))
                return 0;
        note("The main process of %s runs %s, not %s of its ExecStart=: write Executable=%s", unit,
             running, *program, running);
        free(*program);
        *program = TAKE_PTR(running);
        return 0;
}

/* The first program of its container. Takes program, which starts that, or frees it. */
static int find_contained(sd_bus *bus, const char *unit, Root *ret_root, char **program) {
        char *running = find_running(find_container_pid(bus, unit), ret_root);

        if (!running) {
                warnx("%s starts a container by %s, of which no program is seen: start it, and be "
                      "root; or name a program or library by its path on this machine",
                      unit, *program);
                return -ENOENT;
        }
        if (program_is_init(running) || program_starts_containers(running))
                note("The first program in the container of %s is %s, which runs others", unit,
                     running);
        free(*program);
        *program = running;
        return 0;
}

int unit_program_query(Connection *connection, const char *name, Root *ret_root, char **ret) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_(unit_files_done) UnitFiles files = {};
        _cleanup_free_ char *id = NULL, *asked = NULL;
        int r;

        r = unit_files_query(connection, name, &files);
        if (r < 0)
                return r;
        r = complete_name(files.id, &id, &asked);
        if (r < 0)
                return connection_complain_reply(r);
        if (!streq(strrchr(id, '.'), ".service")) {
                warnx("%s is not a service; name a program or library", id);
                return -EINVAL;
        }
        r = ask_program(connection->bus, asked, ret, &error);
        if (r < 0)
                return complain(r, &error);
        *ret_root = ROOT_OWN;
        if (*ret && program_starts_containers(*ret))
                return find_contained(connection->bus, asked, ret_root, ret);
        if (*ret)
                return prefer_running(connection->bus, asked, ret_root, ret);
        warnx("%s starts no program", id);
        return -ENOENT;
}

/* "service" -> "org.freedesktop.systemd1.Service" */
static char *interface_of(const char *id) {
        const char *type = strrchr(id, '.');
        char *interface = NULL;

        if (asprintf(&interface, SYSTEMD_NAME ".%c%s", toupper((unsigned char) type[1]), type + 2) <
            0)
                return NULL;
        return interface;
}

/* A service can be active without a process: it may have started others, and ended. */
static int complain_no_process(sd_bus *bus, const char *id, const char *path) {
        _cleanup_free_ char *state = NULL;

        (void) sd_bus_get_property_string(bus, SYSTEMD_NAME, path, SYSTEMD_NAME ".Unit",
                                          "ActiveState", NULL, &state);
        if (streq_empty(state, "active"))
                warnx("%s is active, but has no process: name the unit whose processes do the work",
                      id);
        else
                warnx("%s does not run", id);
        return -ESRCH;
}

int unit_cgroup_query(Connection *connection, const char *name, char **ret_id, char **ret_path) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *path = NULL, *interface = NULL, *cgroup = NULL;
        _cleanup_(unit_files_done) UnitFiles files = {};
        int r;

        r = unit_files_query(connection, name, &files);
        if (r < 0)
                return r;
        interface = interface_of(files.id);
        if (!interface)
                return connection_complain_reply(-ENOMEM);
        r = sd_bus_path_encode(SYSTEMD_PATH "/unit", files.id, &path);
        if (r >= 0)
                r = sd_bus_get_property_string(connection->bus, SYSTEMD_NAME, path, interface,
                                               "ControlGroup", &error, &cgroup);
        if (r < 0)
                return complain(r, &error);
        if (*cgroup == '\0')
                return complain_no_process(connection->bus, files.id, path);
        *ret_id = TAKE_PTR(files.id);
        *ret_path = TAKE_PTR(cgroup);
        return 0;
}

int unit_find_missing(Connection *connection, const char *name, char **ret) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *id = NULL, *asked = NULL;
        _cleanup_(unit_reply_done) UnitReply reply = {};
        int r;

        r = complete_name(name, &id, &asked);
        if (r < 0)
                return r;
        if (*id == '\0' || streq(strrchr(id, '.'), ".scope") || connection_open(connection) < 0 ||
            query(connection, asked, &reply, &error) < 0 || !streq(reply.state, "not-found"))
                return 0;
        *ret = TAKE_PTR(id);
        return 1;
}

int unit_files_reload(Connection *connection) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        r = sd_bus_call_method(connection->bus, SYSTEMD_NAME, SYSTEMD_PATH, SYSTEMD_NAME ".Manager",
                               "Reload", &error, NULL, NULL);
        return r < 0 ? complain(r, &error) : 0;
}
