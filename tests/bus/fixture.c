/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Two buses over a socket pair carry calls, errors, signals and introspection in one process,
 * without a bus daemon. What needs one (names, policies, polkit) is tested under a booted systemd.
 */

#include "fixture.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "bus/internal.h"
#include "fake-backend.h"
#include "test.h"

#define CALLER_USEC 1000000

static void start_buses(Fixture *fixture) {
        _cleanup_(sd_bus_unrefp) sd_bus *server = NULL;
        sd_id128_t id;
        int pair[2];

        assert_ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair));
        assert_ok(sd_id128_randomize(&id));

        assert_ok(sd_bus_new(&server));
        assert_ok(sd_bus_set_fd(server, pair[0], pair[0]));
        assert_ok(sd_bus_set_server(server, 1, id));
        assert_true(sd_bus_start(server) >= 0);

        assert_ok(sd_bus_new(&fixture->client));
        assert_ok(sd_bus_set_fd(fixture->client, pair[1], pair[1]));
        assert_true(sd_bus_start(fixture->client) >= 0);

        assert_ok(bus_new(fixture->manager, server, &fixture->bus));
}

void fixture_write(Fixture *fixture, unsigned directory, const char *name, const char *text) {
        _cleanup_free_ char *path = NULL, *parent = NULL;
        _cleanup_fclose_ FILE *f = NULL;

        assert_true(asprintf(&path, "%s/%s", fixture->directories[directory], name) > 0);
        parent = strndup(path, (size_t) (strrchr(path, '/') - path));
        assert_non_null(parent);
        (void) mkdir(parent, 0755);
        f = fopen(path, "we");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
}

int fixture_setup_configured(void **state, const char *daemon_config) {
        static const char *const names[] = { "etc", "run" };
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        Fixture *fixture;

        fixture = calloc(1, sizeof(*fixture));
        assert_non_null(fixture);
        strcpy(fixture->directory, "/tmp/tlob-bus-XXXXXX");
        assert_non_null(mkdtemp(fixture->directory));
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                assert_true(asprintf(&fixture->directories[i], "%s/%s", fixture->directory,
                                     names[i]) > 0);
                assert_ok(mkdir(fixture->directories[i], 0755));
        }

        if (daemon_config)
                fixture_write(fixture, 0, "tlobd.conf", daemon_config);
        assert_ok(manager_new(fake_backends, (const char *const *) fixture->directories,
                              &fixture->manager));
        assert_true(sd_event_new(&event) >= 0);
        assert_ok(manager_attach_event(fixture->manager, event));
        assert_ok(manager_probe_backends(fixture->manager));
        start_buses(fixture);
        assert_ok(manager_reload(fixture->manager));
        fixture_run(fixture);
        *state = fixture;
        return 0;
}

int fixture_setup(void **state) {
        return fixture_setup_configured(state, NULL);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

void fixture_stop(Fixture *fixture) {
        if (fixture->manager)
                manager_stop(fixture->manager);
        fixture->bus = bus_free(fixture->bus);
        fixture->manager = manager_free(fixture->manager);
}

int fixture_teardown(void **state) {
        Fixture *fixture = *state;

        fixture_stop(fixture);
        sd_bus_flush_close_unref(fixture->client);
        assert_ok(nftw(fixture->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS));
        for (size_t i = 0; i < ELEMENTSOF(fixture->directories); i++)
                free(fixture->directories[i]);
        free(fixture);
        return 0;
}

void fixture_forgive_callers(Fixture *fixture) {
        BusLimits *limits = &fixture->bus->limits;

        for (size_t i = 0; i < ELEMENTSOF(limits->callers); i++)
                limits->callers[i].left_usec = CALLER_USEC;
}

/* One turn of each side; returns whether anything was done. */
static bool turn(Fixture *fixture) {
        int client, server;

        client = sd_bus_process(fixture->client, NULL);
        assert_true(client >= 0);
        server = sd_event_run(manager_get_event(fixture->manager), 0);
        assert_true(server >= 0);
        return client > 0 || server > 0;
}

void fixture_run(Fixture *fixture) {
        /* A message may be on its way in the socket: idle twice is idle. */
        for (unsigned idle = 0; idle < 3;)
                idle = turn(fixture) || manager_is_busy(fixture->manager) ? 0 : idle + 1;
}

typedef struct Reply {
        sd_bus_message *message;
} Reply;

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Reply *reply = userdata;

        reply->message = sd_bus_message_ref(m);
        return 0;
}

int fixture_call(Fixture *fixture, const char *path, const char *interface, const char *member,
                 sd_bus_error *error, sd_bus_message **ret, const char *types, ...) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *answer = NULL;
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        Reply reply = {};
        va_list ap;
        int r;

        r = sd_bus_message_new_method_call(fixture->client, &m, NULL, path, interface, member);
        assert_true(r >= 0);
        va_start(ap, types);
        r = sd_bus_message_appendv(m, types ?: "", ap);
        va_end(ap);
        assert_true(r >= 0);

        assert_true(sd_bus_call_async(fixture->client, &slot, m, on_reply, &reply, 0) >= 0);
        while (!reply.message)
                turn(fixture);
        answer = reply.message;

        if (sd_bus_message_is_method_error(answer, NULL)) {
                (void) sd_bus_error_copy(error, sd_bus_message_get_error(answer));
                return -sd_bus_message_get_errno(answer);
        }
        if (ret)
                *ret = TAKE_PTR(answer);
        return 0;
}
