/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A caller that means no good: it makes one call of tlobd with something far too large in it, or
 * with a file descriptor, or many at once, and prints the name of each error, or "answered". Or it
 * makes calls on several connections, and reads no answer until it is killed.
 *
 * usage: caller path|interface|name|key|value|keys|descriptor|calls|unread N
 */

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "tlob-bus.h"

static void must(int r, const char *what) {
        if (r < 0)
                errx(EXIT_FAILURE, "Failed to %s: %s", what, strerror(-r));
}

/* There is one, for as long as the process lives. */
static const char *long_string(size_t n, char first) {
        static char *s;

        s = malloc(n + 1);
        if (!s)
                err(EXIT_FAILURE, "malloc");
        memset(s, 'x', n);
        s[0] = first;
        s[n] = '\0';
        return s;
}

static sd_bus_message *new_call(sd_bus *bus, const char *path, const char *interface,
                                const char *member) {
        sd_bus_message *m;

        must(sd_bus_message_new_method_call(bus, &m, TLOB_BUS_NAME, path, interface, member),
             "make a call");
        return m;
}

static void append_property(sd_bus_message *m, const char *key, const char *value) {
        must(sd_bus_message_append(m, "{sv}", key, "s", value), "append a property");
}

/* AddBinding() with n properties of that key and value; value NULL: with a descriptor. */
static sd_bus_message *new_add(sd_bus *bus, size_t n, const char *key, const char *value) {
        sd_bus_message *m = new_call(bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "AddBinding");

        must(sd_bus_message_append(m, "s", "mine"), "append the name");
        must(sd_bus_message_open_container(m, 'a', "{sv}"), "open the properties");
        for (size_t i = 0; i < n; i++)
                if (value)
                        append_property(m, key, value);
                else
                        must(sd_bus_message_append(m, "{sv}", key, "h", 0), "append descriptor 0");
        must(sd_bus_message_close_container(m), "close the properties");
        must(sd_bus_message_append(m, "t", UINT64_C(0)), "append the flags");
        return m;
}

static sd_bus_message *new_large(sd_bus *bus, const char *what, size_t n) {
        sd_bus_message *m;

        if (strcmp(what, "path") == 0)
                return new_call(bus, long_string(n, '/'), TLOB_BUS_MANAGER_INTERFACE, "Reload");
        if (strcmp(what, "key") == 0)
                return new_add(bus, 1, long_string(n, 'K'), "yes");
        if (strcmp(what, "value") == 0)
                return new_add(bus, 1, "Executable", long_string(n, '/'));
        if (strcmp(what, "keys") == 0)
                return new_add(bus, n, "Required", "yes");
        if (strcmp(what, "descriptor") == 0)
                return new_add(bus, n, "Executable", NULL);
        if (strcmp(what, "interface") == 0)
                m = new_call(bus, TLOB_BUS_PATH, "org.freedesktop.DBus.Properties", "GetAll");
        else if (strcmp(what, "name") == 0)
                m = new_call(bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "GetBinding");
        else
                errx(EXIT_FAILURE, "There is no '%s'", what);
        must(sd_bus_message_append(m, "s", long_string(n, 'o')), "append the string");
        return m;
}

static void print_reply(sd_bus_message *m) {
        const sd_bus_error *error = sd_bus_message_get_error(m);

        (void) puts(error ? error->name : "answered");
        (void) fflush(stdout);
}

static int on_reply(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        size_t *n_left = userdata;

        print_reply(m);
        --*n_left;
        return 0;
}

/* All at once: polkit is asked about each. */
static void make_calls(sd_bus *bus, size_t n) {
        size_t n_left = n;

        for (size_t i = 0; i < n; i++) {
                sd_bus_message *m =
                        new_call(bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "Reload");

                must(sd_bus_call_async(bus, NULL, m, on_reply, &n_left, 0), "call");
                sd_bus_message_unref(m);
        }
        while (n_left > 0) {
                int r = sd_bus_process(bus, NULL);

                must(r, "process the bus");
                if (r == 0)
                        must(sd_bus_wait(bus, UINT64_MAX), "wait for the bus");
        }
}

#define N_UNREAD 3 /* connections */

#define PATIENCE 15 /* seconds, after which the bus takes no more for now: as good as all */

static void say_unread(int signal_number) {
        (void) !write(STDOUT_FILENO, "unread\n", strlen("unread\n"));
}

static void flush(sd_bus *bus) {
        int r;

        do
                r = sd_bus_flush(bus);
        while (r == -EINTR);
        must(r, "flush");
}

/* n calls on each. */
static _Noreturn void never_read(size_t n) {
        (void) signal(SIGALRM, say_unread);
        (void) alarm(PATIENCE);
        for (size_t i = 0; i < N_UNREAD; i++) {
                sd_bus *bus;

                must(sd_bus_open_system(&bus), "connect to the bus");
                for (size_t j = 0; j < n; j++) {
                        sd_bus_message *m = new_call(bus, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE,
                                                     "GetViolations");

                        must(sd_bus_message_append(m, "u", 1000U), "append the number");
                        must(sd_bus_send(bus, m, &(uint64_t) { 0 }), "send");
                        flush(bus);
                        sd_bus_message_unref(m);
                }
        }
        if (alarm(0) > 0)
                say_unread(0);
        for (;;)
                (void) pause();
}

int main(int argc, char **argv) {
        sd_bus *bus;
        size_t n;

        if (argc != 3)
                errx(EXIT_FAILURE, "usage: caller WHAT N");
        n = strtoul(argv[2], NULL, 10);
        if (strcmp(argv[1], "unread") == 0)
                never_read(n);
        must(sd_bus_open_system(&bus), "connect to the bus");
        if (strcmp(argv[1], "calls") == 0) {
                make_calls(bus, n);
        } else {
                sd_bus_message *m = new_large(bus, argv[1], n), *reply = NULL;
                sd_bus_error error = SD_BUS_ERROR_NULL;
                int r = sd_bus_call(bus, m, 0, &error, &reply);

                (void) puts(r >= 0 ? "answered" : error.name ?: strerror(-r));
                sd_bus_error_free(&error);
                sd_bus_message_unref(reply);
                sd_bus_message_unref(m);
        }
        sd_bus_flush_close_unref(bus);
        return EXIT_SUCCESS;
}
