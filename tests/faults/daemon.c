/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Both sides of the bus are in this process, and only what the daemon's side does counts. It may
 * refuse a call, refuse to start, or end because its bus or its loop fails; each with a sentence.
 * What it may not: crash, hang, leave a call without an answer, or lose a descriptor.
 */

#include "daemon.h"

#include <dirent.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-event.h>

#include "base/strings.h"
#include "bus/bus.h"
#include "faults.h"
#include "journal-socket.h"
#include "log.h"
#include "manager/manager.h"

#define IDLE_TURNS   3
#define WAIT_USEC    1000
#define TURNS_MAX    300
#define SETTLE_TURNS 100
#define RETRY_USEC   UINT64_C(11000000) /* a back end that could not be made is made again then */
#define RELOADS_MAX  2

static struct {
        char directories[2][64];
        const char *pointers[3];
        char program[256];
        unsigned n_descriptors;
        sd_event *event;
        Manager *manager;
        Bus *bus;
        sd_bus *client;
        int journal;
        unsigned n_entries;
        char refusal[64];
        ScenarioEnd end;
} self = { .journal = -EBADF };

ScenarioEnd daemon_end(void) {
        return self.end;
}

const char *daemon_program(void) {
        return self.program;
}

const char *daemon_refusal(void) {
        return self.refusal;
}

unsigned daemon_count_entries(void) {
        return self.n_entries;
}

void wrong(const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void) vfprintf(stderr, format, ap);
        va_end(ap);
        (void) fputc('\n', stderr);
        exit(EXIT_FAILURE);
}

bool may_fail(void) {
        FaultKind kind = fault_get()->kind;

        return fault_has_hit() && kind != FAULT_INTERRUPT && kind != FAULT_SHORT;
}

/* What the daemon does begins, and ends. Readers of files go on in between. */
static void enter_daemon(void) {
        fault_spare_me(false);
}

static void leave_daemon(void) {
        fault_spare_me(true);
}

static unsigned count_descriptors(void) {
        DIR *directory = opendir("/proc/self/fd");
        unsigned n = 0;

        must(directory);
        while (readdir(directory))
                n++;
        (void) closedir(directory);
        return n;
}

static void write_config(const char *name, const char *text) {
        char path[128];
        FILE *f;

        (void) snprintf(path, sizeof(path), "%s/%s", self.directories[0], name);
        f = fopen(path, "we");
        must(f);
        must(fputs(text, f) >= 0);
        must(fclose(f) == 0);
}

void daemon_write_config(const char *settings, const char *bindings) {
        write_config("tlobd.conf", settings);
        write_config("bindings.d/50.conf", bindings);
}

static void open_journal(const char *directory) {
        static char journal[sizeof(((struct sockaddr_un *) NULL)->sun_path)];
        struct sockaddr_un address = { .sun_family = AF_UNIX };

        (void) snprintf(journal, sizeof(journal), "%s/journal", directory);
        strcpy(address.sun_path, journal);
        self.journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        must(self.journal >= 0);
        must(bind(self.journal, (struct sockaddr *) &address, sizeof(address)) == 0);
        journal_socket_set_path(journal);
}

void daemon_prepare(const char *directory) {
        static const char *const names[] = { "etc", "run" };
        char path[128];

        leave_daemon();
        (void) setvbuf(stderr, NULL, _IONBF, 0);
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                (void) snprintf(self.directories[i], sizeof(self.directories[i]), "%s/%s",
                                directory, names[i]);
                must(mkdir(self.directories[i], 0755) == 0);
                (void) snprintf(path, sizeof(path), "%s/bindings.d", self.directories[i]);
                must(mkdir(path, 0755) == 0);
                self.pointers[i] = self.directories[i];
        }
        must(readlink("/proc/self/exe", self.program, sizeof(self.program) - 1) > 0);
        open_journal(directory);
}

/* As journald does. */
static void read_journal(void) {
        char entry[4096];

        while (recv(self.journal, entry, sizeof(entry), 0) > 0)
                self.n_entries++;
}

bool daemon_is_over(void) {
        return !self.manager || self.end != SCENARIO_WENT_ON;
}

bool daemon_turn(uint64_t usec) {
        int client, server;

        client = sd_bus_process(self.client, NULL);
        must(client >= 0 || may_fail());
        enter_daemon();
        server = sd_event_run(self.event, usec);
        leave_daemon();
        read_journal();
        if (server >= 0 && sd_event_get_state(self.event) != SD_EVENT_FINISHED)
                return client > 0 || server > 0;
        must(may_fail());
        self.end = SCENARIO_ENDED;
        return false;
}

/* Without memory, libsystemd cannot even end: what lasts is over after a while. */
static bool wait_a_turn(unsigned n, uint64_t usec) {
        if (n == TURNS_MAX)
                daemon_spare();
        return daemon_turn(usec);
}

void daemon_settle(void) {
        unsigned idle = 0;

        for (unsigned n = 0; idle < IDLE_TURNS && !daemon_is_over(); n++) {
                bool is_busy = manager_is_busy(self.manager);

                idle = wait_a_turn(n, is_busy ? WAIT_USEC : 0) || is_busy ? 0 : idle + 1;
        }
}

typedef struct Answer {
        sd_bus_message *message;
} Answer;

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Answer *answer = userdata;

        answer->message = sd_bus_message_ref(m);
        return 0;
}

static void note_refusal(const char *member, const sd_bus_error *error) {
        (void) fprintf(stderr, "%s: %s\n", member, error->message);
        (void) snprintf(self.refusal, sizeof(self.refusal), "%s", error->name);
        must(error->message && *error->message);
        must(geteuid() != 0 || !strstr(error->message, "Access denied: "));
}

/* libsystemd (252) does not notice that the error by which it answers has got no memory either. */
static bool is_never_answered(unsigned n_turns) {
        return fault_get()->kind == FAULT_NO_MEMORY && n_turns > TURNS_MAX + SETTLE_TURNS;
}

sd_bus_message *daemon_call(const char *path, const char *interface, const char *member,
                            const char *types, ...) {
        sd_bus_message *m = NULL;
        sd_bus_slot *slot = NULL;
        Answer answer = {};
        va_list ap;

        if (daemon_is_over())
                return NULL;
        must(sd_bus_message_new_method_call(self.client, &m, NULL, path, interface, member) >= 0);
        va_start(ap, types);
        must(sd_bus_message_appendv(m, types, ap) >= 0);
        va_end(ap);
        must(sd_bus_call_async(self.client, &slot, m, on_answer, &answer, 0) >= 0);
        for (unsigned n = 0; !answer.message && !daemon_is_over() && !is_never_answered(n); n++)
                (void) wait_a_turn(n, WAIT_USEC);
        daemon_settle();
        sd_bus_slot_unref(slot);
        sd_bus_message_unref(m);
        if (!answer.message || !sd_bus_message_is_method_error(answer.message, NULL))
                return answer.message;
        note_refusal(member, sd_bus_message_get_error(answer.message));
        sd_bus_message_unref(answer.message);
        return NULL;
}

bool daemon_remove(const char *name) {
        sd_bus_message *m;

        m = daemon_call(TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "RemoveBinding", "st", name,
                        UINT64_C(0));
        sd_bus_message_unref(m);
        return m;
}

uint64_t daemon_get(const char *property) {
        const char *type;
        sd_bus_message *m;
        uint64_t n = 0;
        uint32_t u = 0;

        m = daemon_call(TLOB_BUS_PATH, "org.freedesktop.DBus.Properties", "Get", "ss",
                        TLOB_BUS_MANAGER_INTERFACE, property);
        must(m || may_fail());
        if (!m)
                return 0;
        must(sd_bus_message_peek_type(m, NULL, &type) > 0);
        if (streq(type, "u"))
                must(sd_bus_message_read(m, "v", "u", &u) > 0);
        else
                must(sd_bus_message_read(m, "v", "t", &n) > 0);
        sd_bus_message_unref(m);
        return n + u;
}

bool daemon_reload_until_active(uint64_t n) {
        for (unsigned i = 0; i < RELOADS_MAX; i++) {
                must(daemon_do("Reload", ""));
                if (daemon_get("NActive") == n)
                        return true;
                fault_pass_time(RETRY_USEC);
        }
        return false;
}

void daemon_give_up(void) {
        self.end = SCENARIO_MUST_BE_RESTARTED;
}

static int start_bus(void) {
        sd_bus *server = NULL;
        sd_id128_t id;
        int pair[2], r;

        must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
        must(sd_id128_randomize(&id) == 0);
        must(sd_bus_new(&server) == 0);
        must(sd_bus_set_fd(server, pair[0], pair[0]) == 0);
        must(sd_bus_set_server(server, 1, id) == 0);
        must(sd_bus_set_exit_on_disconnect(server, true) == 0);
        must(sd_bus_start(server) >= 0);
        must(sd_bus_new(&self.client) == 0);
        must(sd_bus_set_fd(self.client, pair[1], pair[1]) == 0);
        /* A back end that cannot be made takes its time, and clocks are moved. */
        must(sd_bus_set_method_call_timeout(self.client, UINT64_MAX) >= 0);
        must(sd_bus_start(self.client) >= 0);
        enter_daemon();
        r = bus_new(self.manager, server, &self.bus);
        leave_daemon();
        /*
         * libsystemd 252 leaves something of an object that it cannot export for want of memory,
         * and crashes when the connection is freed, as the daemon does at its end.
         */
        if (r < 0 && may_fail() &&
            (fault_get()->kind == FAULT_MEMORY || fault_get()->kind == FAULT_NO_MEMORY))
                _exit(SCENARIO_STATUS + SCENARIO_DID_NOT_START);
        sd_bus_unref(server);
        return r;
}

bool daemon_start(const BackendOps *const *ops) {
        int r;

        self.n_descriptors = count_descriptors();
        must(sd_event_new(&self.event) >= 0);
        enter_daemon();
        r = manager_new(ops, self.pointers, &self.manager);
        if (r >= 0)
                r = manager_attach_event(self.manager, self.event);
        if (r >= 0)
                r = manager_probe_backends(self.manager);
        leave_daemon();
        if (r >= 0)
                r = start_bus();
        if (r >= 0) {
                enter_daemon();
                r = manager_reload(self.manager);
                leave_daemon();
        }
        if (r >= 0)
                daemon_settle();
        else
                self.end = SCENARIO_DID_NOT_START;
        must(r >= 0 || may_fail());
        return r >= 0;
}

void daemon_arm(void) {
        fault_get()->armed = true;
}

void daemon_spare(void) {
        fault_get()->armed = false;
}

void daemon_stop(void) {
        enter_daemon();
        if (self.manager)
                manager_stop(self.manager);
        self.bus = bus_free(self.bus);
        self.manager = manager_free(self.manager);
        leave_daemon();
        self.client = sd_bus_flush_close_unref(self.client);
        self.event = sd_event_unref(self.event);
        journal_socket_set_path("/nonexistent");
        daemon_spare();
        self.journal = safe_close(self.journal);
        if (count_descriptors() != self.n_descriptors - 1)
                wrong("%u descriptors were open before, and %u are now", self.n_descriptors - 1,
                      count_descriptors());
}
