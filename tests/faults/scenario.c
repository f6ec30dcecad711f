/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Both sides of the bus are in this process, and only what the daemon's side does counts. It may
 * refuse a call, refuse to start, or end because its bus or its loop fails; each with a sentence.
 * What it may not: crash, hang, leave a call without an answer, lose a descriptor, or be worse
 * afterwards than before. So after the fault the same things are asked of it once more, and must
 * work.
 */

#include "scenario.h"

#include <dirent.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/strings.h"
#include "bus/bus.h"
#include "fake-backend.h"
#include "faults.h"
#include "journal-socket.h"
#include "log.h"
#include "manager/manager.h"
#include "tlob-bus.h"

#define IDLE_TURNS  3
#define WAIT_USEC   1000
#define RELOAD_USEC 500000
#define RETRY_NS    UINT64_C(15000000000)
#define CONFIG                                                                                     \
        "[Binding first]\nExecutable=%1$s\nFunction=scenario_measured\nBudgetSec=1ms\n"            \
        "[Binding second]\nExecutable=%1$s\nFunction=scenario_measured\nBudgetSec=2ms\n"

static struct {
        char directories[2][64];
        const char *pointers[3];
        char program[256]; /* this one: all bindings are on it */
        sd_event *event;
        Manager *manager;
        Bus *bus;
        sd_bus *client;
        int journal;
        uint64_t window;
        char refusal[64]; /* the name of the last error */
        ScenarioEnd end;
} self = { .journal = -EBADF };

ScenarioEnd scenario_end(void) {
        return self.end;
}

static _Noreturn _printf_(1, 2) void wrong(const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void) vfprintf(stderr, format, ap);
        va_end(ap);
        (void) fputc('\n', stderr);
        exit(EXIT_FAILURE);
}

#define must(condition)                                                                            \
        do {                                                                                       \
                if (!(condition))                                                                  \
                        wrong("%s:%i: %s does not hold", __FILE__, __LINE__, #condition);          \
        } while (0)

/* Whether this was what failed: with EINTR and parts of files all must go well. */
static bool may_fail(void) {
        FaultKind kind = fault_get()->kind;

        return fault_has_hit() && (kind == FAULT_MEMORY || kind == FAULT_CALL);
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

__attribute__((noinline)) void scenario_measured(void) {
        __asm__ volatile("nop");
}

static void write_config(const char *path) {
        FILE *f = fopen(path, "we");

        must(f);
        must(fprintf(f, CONFIG, self.program) > 0);
        must(fclose(f) == 0);
}

static void prepare(const char *directory) {
        static const char *const names[] = { "etc", "run" };
        static char journal[sizeof(((struct sockaddr_un *) NULL)->sun_path)];
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        char path[128];

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                (void) snprintf(self.directories[i], sizeof(self.directories[i]), "%s/%s",
                                directory, names[i]);
                must(mkdir(self.directories[i], 0755) == 0);
                (void) snprintf(path, sizeof(path), "%s/bindings.d", self.directories[i]);
                must(mkdir(path, 0755) == 0);
                self.pointers[i] = self.directories[i];
        }
        (void) snprintf(path, sizeof(path), "%s/bindings.d/50.conf", self.directories[0]);
        must(readlink("/proc/self/exe", self.program, sizeof(self.program) - 1) > 0);
        write_config(path);

        (void) snprintf(journal, sizeof(journal), "%s/journal", directory);
        strcpy(address.sun_path, journal);
        self.journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        must(self.journal >= 0);
        must(bind(self.journal, (struct sockaddr *) &address, sizeof(address)) == 0);
        journal_socket_set_path(journal);
}

/* As journald does. Returns how many entries there were. */
static unsigned read_journal(void) {
        char entry[4096];
        unsigned n = 0;

        while (recv(self.journal, entry, sizeof(entry), 0) > 0)
                n++;
        return n;
}

/* The daemon's loop is over. */
static bool is_over(void) {
        return !self.manager || self.end != SCENARIO_WENT_ON;
}

/* One turn of each side, with the fault in the daemon's; returns whether anything was done. */
static bool turn(uint64_t usec) {
        int client, server;

        client = sd_bus_process(self.client, NULL);
        must(client >= 0 || may_fail());
        enter_daemon();
        server = sd_event_run(self.event, usec);
        leave_daemon();
        (void) read_journal();
        if (server >= 0 && sd_event_get_state(self.event) != SD_EVENT_FINISHED)
                return client > 0 || server > 0;
        must(may_fail());
        self.end = SCENARIO_ENDED;
        return false;
}

static void settle(void) {
        for (unsigned idle = 0; idle < IDLE_TURNS && !is_over();)
                idle = turn(manager_is_busy(self.manager) ? WAIT_USEC : 0) ||
                                       manager_is_busy(self.manager)
                               ? 0
                               : idle + 1;
}

typedef struct Answer {
        sd_bus_message *message;
} Answer;

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Answer *answer = userdata;

        answer->message = sd_bus_message_ref(m);
        return 0;
}

/* NULL: the daemon has ended, or refused it with a sentence. */
static sd_bus_message *call(const char *path, const char *interface, const char *member,
                            const char *types, ...) {
        sd_bus_message *m = NULL;
        sd_bus_slot *slot = NULL;
        Answer answer = {};
        va_list ap;

        if (is_over())
                return NULL;
        must(sd_bus_message_new_method_call(self.client, &m, NULL, path, interface, member) >= 0);
        va_start(ap, types);
        must(sd_bus_message_appendv(m, types, ap) >= 0);
        va_end(ap);
        must(sd_bus_call_async(self.client, &slot, m, on_answer, &answer, 0) >= 0);
        while (!answer.message && !is_over())
                (void) turn(WAIT_USEC);
        settle();
        sd_bus_slot_unref(slot);
        sd_bus_message_unref(m);
        if (answer.message && sd_bus_message_is_method_error(answer.message, NULL)) {
                const sd_bus_error *error = sd_bus_message_get_error(answer.message);

                (void) fprintf(stderr, "%s: %s\n", member, error->message);
                (void) snprintf(self.refusal, sizeof(self.refusal), "%s", error->name);
                must(error->message && *error->message);
                must(geteuid() != 0 || !strstr(error->message, "denied"));
                sd_bus_message_unref(answer.message);
                return NULL;
        }
        return answer.message;
}

/* Returns whether it was done. */
#define do_call(...)                                                                               \
        ({                                                                                         \
                sd_bus_message *_answer =                                                          \
                        call(TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, __VA_ARGS__);              \
                must(_answer || may_fail());                                                       \
                sd_bus_message_unref(_answer);                                                     \
                _answer;                                                                           \
        })

static bool add(const char *name) {
        return do_call("AddBinding", "sa{sv}t", name, 3, "Executable", "s", self.program,
                       "Function", "s", "scenario_measured", "BudgetSec", "s", "5ms", UINT64_C(0));
}

static void report(uint32_t index) {
        const Report violation = {
                .type = REPORT_VIOLATION,
                .backend_index = index,
                .id = ++self.window,
                .time_ns = now_ns(),
                .elapsed_ns = 6000000,
                .spent_ns = { 1000000, 2000000, 3000000 },
                .exceeded = 1,
                .tid = 1,
                .comm = "program",
        };

        fake_report(&violation);
        settle();
}

/* Of all bindings. */
static uint64_t count_violations(void) {
        sd_bus_message *m;
        uint64_t n;

        m = call(TLOB_BUS_PATH, "org.freedesktop.DBus.Properties", "Get", "ss",
                 TLOB_BUS_MANAGER_INTERFACE, "Violations");
        must(m || may_fail());
        if (!m)
                return 0;
        must(sd_bus_message_read(m, "v", "t", &n) > 0);
        sd_bus_message_unref(m);
        return n;
}

static uint32_t count_active(void) {
        sd_bus_message *m;
        uint32_t n;

        m = call(TLOB_BUS_PATH, "org.freedesktop.DBus.Properties", "Get", "ss",
                 TLOB_BUS_MANAGER_INTERFACE, "NActive");
        must(m);
        must(sd_bus_message_read(m, "v", "u", &n) > 0);
        sd_bus_message_unref(m);
        return n;
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
        must(sd_bus_start(self.client) >= 0);
        enter_daemon();
        r = bus_new(self.manager, server, &self.bus);
        leave_daemon();
        /*
         * libsystemd 252 leaves something of an object that it cannot export for want of memory,
         * and crashes when the connection is freed, as the daemon does at its end.
         */
        if (r < 0 && may_fail() && fault_get()->kind == FAULT_MEMORY)
                _exit(SCENARIO_STATUS + SCENARIO_DID_NOT_START);
        sd_bus_unref(server);
        return r;
}

static bool start(void) {
        int r;

        must(sd_event_new(&self.event) >= 0);
        enter_daemon();
        r = manager_new(fake_backends, self.pointers, &self.manager);
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
                settle();
        else
                self.end = SCENARIO_DID_NOT_START;
        must(r >= 0 || may_fail());
        return r >= 0;
}

/* Everything that people do with it. */
static void live(void) {
        report(0);
        (void) add("third");
        (void) do_call("ListBindings", "");
        report(1);
        (void) do_call("GetViolations", "u", 10);
        (void) do_call("SetBudget", "stt", "first", UINT64_C(7000000), UINT64_C(0));
        (void) do_call("SetBudget", "stt", "second", UINT64_C(7000000), TLOB_FLAG_PERSIST);
        (void) do_call("Reload", "");
        (void) count_violations();
        report(0);
        (void) do_call("ResetStatistics", "");
        (void) do_call("RemoveBinding", "st", "third", UINT64_C(0));
}

static bool remove_third(void) {
        sd_bus_message *m;

        m = call(TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE, "RemoveBinding", "st", "third",
                 UINT64_C(0));
        sd_bus_message_unref(m);
        return m;
}

/* A back end that could not be made is made again after a while. */
static void reload_until_active(void) {
        uint64_t end_ns = now_ns() + RETRY_NS;

        do
                must(do_call("Reload", ""));
        while (count_active() < 2 && now_ns() < end_ns && usleep(RELOAD_USEC) == 0);
        must(count_active() == 2);
}

/* What may have failed is done once more, and whoever fails now has not got over it. */
static void live_on(void) {
        uint64_t before;

        if (is_over())
                return;
        fault_get()->armed = false;
        must(remove_third() || streq(self.refusal, TLOB_ERROR_NO_SUCH_BINDING));
        /* Its file may be there, and not have been read. */
        must(do_call("Reload", ""));
        (void) remove_third();
        reload_until_active();
        before = count_violations();
        /* Two of these are in use, whatever has become of the fault. */
        for (uint32_t i = 0; i < 3; i++)
                report(i);
        must(count_violations() == before + 2);
        must(add("fourth"));
        must(count_active() == 3);
        must(do_call("RemoveBinding", "st", "fourth", UINT64_C(0)));
        must(count_active() == 2);
}

static void stop(void) {
        fault_get()->armed = true;
        enter_daemon();
        if (self.manager)
                manager_stop(self.manager);
        self.bus = bus_free(self.bus);
        self.manager = manager_free(self.manager);
        leave_daemon();
        self.client = sd_bus_flush_close_unref(self.client);
        self.event = sd_event_unref(self.event);
        journal_socket_set_path("/nonexistent");
}

void scenario_run(const char *directory) {
        unsigned before;

        leave_daemon();
        fault_get()->armed = true;
        (void) setvbuf(stderr, NULL, _IONBF, 0);
        prepare(directory);
        before = count_descriptors();
        if (start())
                live();
        live_on();
        stop();
        fault_get()->armed = false;
        self.journal = safe_close(self.journal);
        if (count_descriptors() != before - 1)
                wrong("%u descriptors were open before, and %u are now", before - 1,
                      count_descriptors());
}
