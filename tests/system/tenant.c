/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The tlobd of a user that does not keep to the rules: says one thing to the system's one, and
 * prints what that answers.
 *
 * usage: tenant CASE CGROUP FILE
 *        tenant forge DESTINATION TEXT: a report that seems to be of the system's one
 *        tenant wire-version: prints the version of what such two say to each other
 */

#include <fcntl.h>
#include <inttypes.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "backend/wire.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/program.h"
#include "binding/keys.h"
#include "bus-packet.h"
#include "tlob-bus.h"

#define MANY      70
#define FLOOD     20000
#define DEAF_USEC UINT64_C(3000000)

#define AGAIN_USEC 200000

static sd_bus *bus;
static unsigned n_reports, n_told_lost, n_interrupts, n_others;

static void need(int r, const char *what) {
        if (r >= 0)
                return;
        (void) fprintf(stderr, "%s: %s\n", what, strerror(-r));
        exit(2);
}

static sd_bus_message *begin(const char *member) {
        sd_bus_message *m = NULL;

        need(sd_bus_message_new_method_call(bus, &m, TLOB_BUS_NAME, TLOB_BUS_PATH,
                                            TLOB_BUS_LENDER_INTERFACE, member),
             "call");
        return m;
}

static void print_answer(int r, const sd_bus_error *error) {
        (void) printf("%s\n", r >= 0 ? "done" : error->message ?: strerror(-r));
}

/* Whoever has kept it busy is told to wait, and does. */
static void say(sd_bus_message *m) {
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        while ((r = sd_bus_call(bus, m, 0, &error, NULL)) < 0 &&
               sd_bus_error_has_name(&error, SD_BUS_ERROR_LIMITS_EXCEEDED)) {
                sd_bus_error_free(&error);
                (void) usleep(AGAIN_USEC);
        }
        print_answer(r, &error);
        sd_bus_message_unref(m);
}

static void ask_for(const char *member, uint64_t id) {
        sd_bus_message *m = begin(member);

        need(sd_bus_message_append(m, "t", id), "id");
        say(m);
}

/* What a case has otherwise than it should be. */
typedef struct Case {
        const char *name;
        const char *unit;
        const char *cgroup;
        const char *start;
        const char *stop;
        const char *file;
        int flags;
        uint64_t budget_ns;
        uint64_t sleeping_budget_ns;
        uint64_t version;
        size_t cut;
        uint32_t number; /* of the file; 0: as it was opened */
} Case;

static const Case cases[] = {
        { "good" },
        { "version", .version = WIRE_VERSION + 1 },
        { "cut-off", .cut = 10 },
        { "system-cgroup", .cgroup = "/system.slice/tlobd.service" },
        { "future-cgroup", .cgroup = "/system.slice/later.service" },
        { "root-cgroup", .cgroup = "/" },
        { "dots", .cgroup = "/user.slice/../system.slice/tlobd.service" },
        { "relative", .cgroup = "user.slice" },
        { "template", .unit = "app@.service" },
        { "call", .start = "syscall:read", .stop = "return" },
        { "event", .start = "event:syscalls:sys_enter_read",
          .stop = "event:syscalls:sys_exit_read" },
        { "short-budget", .budget_ns = 1 },
        { "no-code", .start = "0x1", .stop = "0x14a8" },
        { "directory", .file = "/usr" },
        { "device", .file = "/dev/null" },
        { "held-device", .file = "/dev/null", .flags = O_PATH },
        { "process-file", .file = "/proc/self/maps" },
        { "unreadable", .flags = O_PATH },
        { "no-file", .number = 4711 },
        { "no-number", .number = UINT32_MAX },
};

static void put_binding(sd_bus_message *m, const Case *c, const char *cgroup, const char *file) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        static Packet packet;

        need(binding_new("app.service/request", &binding), "binding");
        need(binding_set_key(binding, "Unit", c->unit ?: "app.service", NULL), "unit");
        need(binding_set_key(binding, "Start", c->start ?: "handle_request", NULL), "start");
        need(binding_set_key(binding, "Stop", c->stop ?: "return", NULL), "stop");
        need(binding_set_key(binding, "BudgetSec", "1s", NULL), "budget");
        if (c->budget_ns)
                binding->budget_ns[TLOB_BUDGET_TOTAL] = c->budget_ns;
        if (c->sleeping_budget_ns)
                binding->budget_ns[TLOB_BUDGET_SLEEPING] = c->sleeping_budget_ns;
        binding->cgroup.path = strdup(c->cgroup ?: cgroup);
        binding->cgroup.id = 1;
        binding->resolved.path = strdup(file);
        packet_init(&packet);
        wire_put_binding(&packet, binding);
        need(sd_bus_message_append_array(m, 'y', packet.data, packet.size - c->cut), "bytes");
}

static void lend(const Case *c, uint64_t id, const char *cgroup, const char *file) {
        int fd = open(c->file ?: file, c->flags ?: O_RDONLY);
        sd_bus_message *m = begin("Lend");

        need(sd_bus_message_append(m, "tt", c->version ?: WIRE_VERSION, id), "version");
        put_binding(m, c, cgroup, file);
        need(sd_bus_message_append(m, "u", c->number ?: (uint32_t) fd), "file");
        say(m);
        safe_close(fd);
}

static const Case *find_case(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                if (strcmp(cases[i].name, name) == 0)
                        return &cases[i];
        return NULL;
}

/* Is that another user's, or anybody where it is no task that is told of? */
static void count_peer(const Peer *peer) {
        bool is_task = peer->kind == TLOB_PEER_TASK;

        if (!peer->is_known)
                return;
        n_interrupts += peer->kind == TLOB_PEER_INTERRUPT;
        n_others += is_task ? user_of_process(peer->pid) != getuid()
                            : peer->pid > 0 || peer->tid > 0 || *peer->comm != '\0';
}

static int on_report(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        static Packet packet;
        uint64_t id, lost;
        Report report;
        Stack stack;

        need(sd_bus_message_read(m, "t", &id), "id");
        need(bus_packet_read(m, &packet), "packet");
        need(wire_take_report(&packet, &report, &stack), "report");
        need(sd_bus_message_read(m, "t", &lost), "lost");
        n_reports++;
        n_told_lost += lost > 0;
        count_peer(&report.peers.woken_by);
        count_peer(&report.peers.preempted_by);
        return 0;
}

static void hear_for(uint64_t usec) {
        uint64_t end = now_usec() + usec, now;

        while ((now = now_usec()) < end)
                if (sd_bus_process(bus, NULL) == 0)
                        (void) sd_bus_wait(bus, end - now);
}

static void hear(void) {
        need(sd_bus_match_signal(bus, NULL, TLOB_BUS_NAME, TLOB_BUS_PATH, TLOB_BUS_LENDER_INTERFACE,
                                 "Report", on_report, NULL),
             "match");
}

/* Sleeps that a timer ends, which is an interrupt of whatever the CPU does then. */
static void be_woken(const char *cgroup, const char *library) {
        static const Case sleepy = { "sleepy", .start = "poll", .sleeping_budget_ns = 1000 };

        hear();
        lend(&sleepy, 1, cgroup, library);
        hear_for(DEAF_USEC);
        (void) printf("%u by interrupts, %u others\n", n_interrupts, n_others);
}

/* One that says that it is never told enough, and one that never says so. */
static void be_deaf(const char *cgroup, const char *file) {
        static const Case busy = { "busy", .budget_ns = 1000 };
        sd_bus_message *heard;

        hear();
        lend(&busy, 1, cgroup, file);
        hear_for(DEAF_USEC);
        (void) printf("%u reports, %u with losses\n", n_reports, n_told_lost);
        n_reports = 0;
        heard = begin("Heard");
        need(sd_bus_message_append(heard, "u", UINT32_MAX), "heard");
        need(sd_bus_message_set_expect_reply(heard, false), "no reply");
        need(sd_bus_send(bus, heard, NULL), "send");
        sd_bus_message_unref(heard);
        hear_for(DEAF_USEC / 3);
        (void) printf("%s, %u with losses\n", n_reports > 0 ? "more" : "nothing", n_told_lost);
}

/* Whoever is told this must not believe it. */
static void forge(const char *destination, const char *text) {
        Report report = {
                .type = REPORT_VIOLATION,
                .elapsed_ns = 4711,
                .exceeded = 1,
                .pid = 1,
                .tid = 1,
        };
        static Packet packet;

        (void) snprintf(report.comm, sizeof(report.comm), "%s", text);
        packet_init(&packet);
        wire_put_report(&packet, &report);
        for (uint64_t id = 0; id < MANY; id++) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

                need(sd_bus_message_new_signal(bus, &m, TLOB_BUS_PATH, TLOB_BUS_LENDER_INTERFACE,
                                               "Report"),
                     "signal");
                need(sd_bus_message_set_destination(m, destination), "destination");
                need(sd_bus_message_append(m, "t", id), "id");
                need(sd_bus_message_append_array(m, 'y', packet.data, packet.size), "report");
                need(sd_bus_message_append(m, "t", UINT64_C(4711)), "lost");
                need(sd_bus_send(bus, m, NULL), "send");
        }
        need(sd_bus_flush(bus), "flush");
}

static void flood(void) {
        for (int i = 0; i < FLOOD; i++) {
                sd_bus_message *m = begin("GetBooks");

                need(sd_bus_message_append(m, "t", UINT64_C(77)), "id");
                need(sd_bus_message_set_expect_reply(m, false), "no reply");
                need(sd_bus_send(bus, m, NULL), "send");
                sd_bus_message_unref(m);
        }
        need(sd_bus_flush(bus), "flush");
}

/* What is no matter of a binding. */
static void misbehave(const char *name, const char *cgroup, const char *file) {
        static const char *const members[] = { "TakeBack", "GetBooks", "Reset" };

        if (strcmp(name, "early") == 0)
                ask_for("GetBooks", 1);
        else if (strcmp(name, "deaf") == 0)
                be_deaf(cgroup, file);
        else if (strcmp(name, "woken") == 0)
                be_woken(cgroup, file);
        else if (strcmp(name, "flood") == 0)
                flood();
        else if (strcmp(name, "forge") == 0)
                forge(cgroup, file);
        else if (strcmp(name, "twice") == 0) {
                lend(&cases[0], 1, cgroup, file);
                lend(&cases[0], 1, cgroup, file);
        } else if (strcmp(name, "many") == 0)
                for (uint64_t id = 1; id <= MANY; id++)
                        lend(&cases[0], id, cgroup, file);
        else {
                lend(&cases[0], 1, cgroup, file);
                for (size_t i = 0; i < ELEMENTSOF(members); i++)
                        ask_for(members[i], 77);
        }
}

int main(int argc, char *argv[]) {
        const Case *c;

        if (argc == 2 && strcmp(argv[1], "wire-version") == 0) {
                (void) printf("%" PRIu64 "\n", WIRE_VERSION);
                return EXIT_SUCCESS;
        }
        if (argc != 4)
                return 2;
        need(sd_bus_open_system(&bus), "bus");
        c = find_case(argv[1]);
        if (c)
                lend(c, 1, argv[2], argv[3]);
        else
                misbehave(argv[1], argv[2], argv[3]);
        (void) fflush(stdout);
        sd_bus_flush_close_unref(bus);
        return 0;
}
