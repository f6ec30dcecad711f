/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The tlobd of a user that does not keep to the rules: says one thing to the system's one, and
 * prints what that answers, or that it was hung up on.
 *
 * usage: tenant CASE CGROUP FILE
 */

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "backend/wire.h"
#include "base/cleanup.h"
#include "binding/keys.h"

#define ANSWER_MSEC 10000
#define MANY        70
#define FLOOD       20000

static Packet packet;

static int complain(const char *what) {
        perror(what);
        exit(2);
}

static int connect_to_system(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = WIRE_SOCKET };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                (void) complain("connect");
        return fd;
}

static void begin(WireType type, uint64_t id) {
        packet_init(&packet);
        packet_put_number(&packet, type);
        packet_put_number(&packet, id);
}

static void say(int fd, int passed) {
        (void) packet_send(fd, &packet, passed);
}

/* Prints it; reports and the like are no answers. */
static void hear(int fd) {
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
        const char *sentence;
        uint64_t error;
        int unwanted;

        do {
                if (poll(&poll_fd, 1, ANSWER_MSEC) <= 0) {
                        (void) printf("silence\n");
                        return;
                }
                if (packet_receive(fd, &packet, &unwanted) <= 0) {
                        (void) printf("hung up\n");
                        return;
                }
        } while (packet_take_number(&packet) != WIRE_ANSWER);
        error = packet_take_number(&packet);
        sentence = packet_take_text(&packet);
        (void) printf("%s\n", error == 0 ? "done" : sentence ?: "?");
}

static int hello(void) {
        int fd = connect_to_system();

        begin(WIRE_HELLO, WIRE_VERSION);
        say(fd, -EBADF);
        hear(fd);
        return fd;
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
} Case;

static const Case cases[] = {
        { "good" },
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
        { "process-file", .file = "/proc/self/maps" },
        { "unreadable", .flags = O_PATH },
};

static void put_binding(const Case *c, const char *cgroup, const char *file) {
        _cleanup_(binding_freep) Binding *binding = NULL;

        if (binding_new("app.service/request", &binding) < 0 ||
            binding_set_key(binding, "Unit", c->unit ?: "app.service", NULL) < 0 ||
            binding_set_key(binding, "Start", c->start ?: "handle_request", NULL) < 0 ||
            binding_set_key(binding, "Stop", c->stop ?: "return", NULL) < 0 ||
            binding_set_key(binding, "BudgetSec", "1s", NULL) < 0)
                (void) complain("binding");
        if (c->budget_ns)
                binding->budget_ns[TLOB_BUDGET_TOTAL] = c->budget_ns;
        binding->cgroup.path = strdup(c->cgroup ?: cgroup);
        binding->cgroup.id = 1;
        binding->resolved.path = strdup(file);
        wire_put_binding(&packet, binding);
}

static void add(int fd, const Case *c, uint64_t id, const char *cgroup, const char *file) {
        int passed = open(c->file ?: file, c->flags ?: O_RDONLY);

        begin(WIRE_ADD, id);
        put_binding(c, cgroup, file);
        say(fd, passed);
        safe_close(passed);
}

static const Case *find_case(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                if (strcmp(cases[i].name, name) == 0)
                        return &cases[i];
        return NULL;
}

/* What is no matter of a binding. */
static void misbehave(const char *name, const char *cgroup, const char *file) {
        int fd = strcmp(name, "silent") == 0 ? -EBADF : connect_to_system();

        if (strcmp(name, "early") == 0)
                begin(WIRE_BOOKS, 1);
        else if (strcmp(name, "version") == 0)
                begin(WIRE_HELLO, WIRE_VERSION + 1);
        else if (strcmp(name, "garbage") == 0) {
                packet_init(&packet);
                packet_put_string(&packet, "GET / HTTP/1.1");
        } else if (strcmp(name, "silent") == 0) {
                for (int i = 0; i < MANY; i++)
                        (void) connect_to_system();
                fd = connect_to_system();
                begin(WIRE_HELLO, WIRE_VERSION);
        } else {
                safe_close(fd);
                fd = hello();
                if (strcmp(name, "nothing") == 0)
                        begin(WIRE_BOOKS, 77);
                else if (strcmp(name, "no-file") == 0) {
                        begin(WIRE_ADD, 1);
                        put_binding(&cases[0], cgroup, file);
                } else if (strcmp(name, "cut-off") == 0) {
                        begin(WIRE_ADD, 1);
                        put_binding(&cases[0], cgroup, file);
                        packet.size /= 2;
                } else if (strcmp(name, "twice") == 0) {
                        add(fd, &cases[0], 1, cgroup, file);
                        hear(fd);
                        add(fd, &cases[0], 1, cgroup, file);
                        hear(fd);
                        return;
                } else if (strcmp(name, "flood") == 0) {
                        begin(WIRE_BOOKS, 77);
                        for (int i = 0; i < FLOOD; i++)
                                if (send(fd, packet.data, packet.size, MSG_DONTWAIT) < 0)
                                        (void) usleep(10);
                }
        }
        say(fd, -EBADF);
        hear(fd);
}

static void add_many(const char *cgroup, const char *file) {
        int fd = hello();

        for (uint64_t id = 1; id <= MANY; id++) {
                add(fd, &cases[0], id, cgroup, file);
                hear(fd);
        }
}

int main(int argc, char *argv[]) {
        const Case *c;

        if (argc != 4)
                return 2;
        c = find_case(argv[1]);
        if (strcmp(argv[1], "many") == 0)
                add_many(argv[2], argv[3]);
        else if (c) {
                int fd = hello();

                add(fd, c, 1, argv[2], argv[3]);
                hear(fd);
        } else
                misbehave(argv[1], argv[2], argv[3]);
        return 0;
}
