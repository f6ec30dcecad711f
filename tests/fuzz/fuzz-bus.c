/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Calls that nobody would make, over a socket pair, to the daemon's bus objects with a fake back
 * end and a stand-in for systemd. Root makes them, and strangers whom the daemon cannot ask about.
 *
 * Each call that wants an answer gets one, and only one; no other gets any. A stranger changes
 * nothing. There are as many bindings as the answers say, and when they have been removed nothing
 * is left of them: no file, and no memory.
 */

#include <dirent.h>
#include <malloc.h>
#include <sys/socket.h>

#include "call.h"
#include "elf-image.h"
#include "fake-backend.h"
#include "fake-systemd.h"
#include "fuzz.h"
#include "log.h"
#include "test.h"
#include "tlob-bus.h"

#define FUNCTION ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)

#define CALLS_MAX    32 /* of an input */
#define SERIAL_FIRST UINT32_C(0x80000000)
#define GROWTH_MAX   ((int64_t) 16 << 20)

typedef struct Sent {
        const CallMember *member;
        bool stranger;
        bool wants_answer;
        unsigned n_answers;
} Sent;

static struct {
        Fixture *fixture;
        char program[64];
        Call call;
        Wire header;
        Sent sent[CALLS_MAX];
        size_t n_sent;
        uint32_t serial; /* of the first of them */
        uint64_t n_strangers;
        size_t n_bindings; /* as the answers say */
        bool is_unknown;   /* until the next look: one changed something and wanted no answer */
        int64_t growth;    /* of the memory, over all inputs */
} fuzz = { .serial = SERIAL_FIRST };

/* A binding is written to disk with each call that adds one; here nobody waits for that. */
int fsync(int fd) {
        return 0;
}

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static int64_t allocated(void) {
        return (int64_t) (__sanitizer_get_current_allocated_bytes
                                  ? __sanitizer_get_current_allocated_bytes()
                                  : mallinfo2().uordblks);
}

static bool is_called(const Sent *sent, const char *name) {
        return streq(sent->member->name, name);
}

/* It is root's, or about what not everybody may see. */
static bool is_privileged(const Sent *sent) {
        static const char *const members[] = {
                "AddBinding", "RemoveBinding",   "SetBudget", "Reload",
                "Remove",     "ResetStatistics", "Verify",    "GetStack",
        };

        for (size_t i = 0; i < ELEMENTSOF(members); i++)
                if (is_called(sent, members[i]))
                        return true;
        return false;
}

static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        uint64_t serial;
        Sent *sent;

        if (sd_bus_message_get_reply_cookie(m, &serial) < 0 || serial < SERIAL_FIRST)
                return 0;
        fuzz_assert(serial >= fuzz.serial && serial - fuzz.serial < fuzz.n_sent);
        sent = &fuzz.sent[serial - fuzz.serial];
        sent->n_answers++;
        fuzz_assert(sent->wants_answer && sent->n_answers == 1);
        if (sd_bus_message_is_method_error(m, NULL))
                return 1;

        fuzz_assert(!sent->stranger || !is_privileged(sent));
        fuzz_assert(!is_called(sent, "Set") && !is_called(sent, "Nothing"));
        if (is_called(sent, "AddBinding"))
                fuzz.n_bindings++;
        if (is_called(sent, "RemoveBinding") || is_called(sent, "Remove"))
                fuzz.n_bindings--;
        return 1;
}

static void write_program(void) {
        ElfImage image;
        FILE *f;

        elf_image_init(&image);
        elf_image_add(&image, "with_endbr", FUNCTION, SECTION_TEXT, 0, 0x20);
        elf_image_add(&image, "plain", FUNCTION, SECTION_TEXT, 0x20, 0x10);
        (void) snprintf(fuzz.program, sizeof(fuzz.program), "%s/program", fuzz.fixture->directory);
        f = fopen(fuzz.program, "we");
        fuzz_assert(f && fwrite(&image, sizeof(image), 1, f) == 1 && fclose(f) == 0);
}

static void stop(void) {
        void *state = fuzz.fixture;

        (void) fixture_teardown(&state);
}

static void start(void) {
        void *state;

        log_set_max_level(-1);
        fuzz_assert(fake_systemd_setup(&state) == 0);
        fuzz.fixture = state;
        write_program();
        add_unit("a.service", "[Service]\n")->programs[0] = fuzz.program;
        add_unit("b@.service", "[Service]\n");
        add_unit("b@1.service", "[Service]\n")->cgroup = "/";
        fuzz_assert(sd_bus_add_filter(fuzz.fixture->client, NULL, on_message, NULL) >= 0);
        fuzz_assert(atexit(stop) == 0);
}

/* A call may be larger than what the socket holds. */
static void write_all(const uint8_t *data, size_t size) {
        int fd = sd_bus_get_fd(fuzz.fixture->client);

        while (size > 0) {
                ssize_t n = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);

                fuzz_assert(n >= 0 || errno == EAGAIN);
                if (n > 0) {
                        data += n;
                        size -= (size_t) n;
                } else
                        fuzz_assert(sd_event_run(manager_get_event(fuzz.fixture->manager), 0) >= 0);
        }
}

static void look(void) {
        size_t n;

        fixture_run(fuzz.fixture);
        for (size_t i = 0; i < fuzz.n_sent; i++)
                fuzz_assert(fuzz.sent[i].n_answers == fuzz.sent[i].wants_answer);
        n = manager_bindings(fuzz.fixture->manager)->n;
        fuzz_assert(fuzz.is_unknown || n == fuzz.n_bindings);
        fuzz.n_bindings = n;
        fuzz.is_unknown = false;
}

static void send_call(const Call *call) {
        Sent *sent = &fuzz.sent[fuzz.n_sent++];
        char sender[32];

        *sent = (Sent) {
                .member = call->member,
                .stranger = call->flags & CALL_STRANGER,
                .wants_answer = !(call->flags & CALL_NO_REPLY),
        };
        if (!sent->wants_answer && !sent->stranger)
                fuzz.is_unknown = true;

        (void) snprintf(sender, sizeof(sender), ":1.%" PRIu64, ++fuzz.n_strangers);
        wire_init(&fuzz.header, call->flags & CALL_BIG);
        wire_header(&fuzz.header,
                    &(WireHeader) {
                            .type = WIRE_CALL,
                            .flags = call->flags & CALL_NO_REPLY ? WIRE_NO_REPLY : 0,
                            .serial = fuzz.serial + (uint32_t) fuzz.n_sent - 1,
                            .path = call->path,
                            .interface = call->flags & CALL_NO_INTERFACE ? NULL
                                                                         : call->member->interface,
                            .member = call->member->name,
                            .sender = sent->stranger ? sender : NULL,
                            .signature = *call->signature ? call->signature : NULL,
                    },
                    call->body.size);
        /* Nothing is left of what sd-bus itself has to send: that is done with the last look. */
        write_all(fuzz.header.data, fuzz.header.size);
        write_all(call->body.data, call->body.size);
}

static void remove_all(void) {
        const BindingTable *bindings = manager_bindings(fuzz.fixture->manager);

        while (bindings->n > 0) {
                _cleanup_free_ char *name = strdup(bindings->items[0]->name);

                fuzz_assert(name);
                fuzz_assert(fixture_call(fuzz.fixture, TLOB_BUS_PATH, TLOB_BUS_MANAGER_INTERFACE,
                                         "RemoveBinding", NULL, NULL, "st", name,
                                         UINT64_C(0)) == 0);
        }
        fixture_run(fuzz.fixture);
        fuzz.n_bindings = 0;
}

static void check_empty(const char *directory, const char *name) {
        char path[96];
        const struct dirent *entry;
        DIR *d;

        (void) snprintf(path, sizeof(path), "%s/%s", directory, name);
        d = opendir(path);
        if (!d)
                return;
        while ((entry = readdir(d)))
                fuzz_assert(streq(entry->d_name, ".") || streq(entry->d_name, ".."));
        (void) closedir(d);
}

/* There is something to ask about: a window of a binding that is measured. */
static void report(Feed *feed) {
        const BindingTable *bindings = manager_bindings(fuzz.fixture->manager);
        unsigned budget = feed_below(feed, TLOB_N_BUDGETS);
        Report report = {
                .type = feed_below(feed, 2) == 0 ? REPORT_VIOLATION : REPORT_COMPLETION,
                .id = feed_below(feed, 4),
                .time_ns = 1,
                .elapsed_ns = 6000000,
                .spent_ns = { 1000000, 2000000, 3000000 },
                .budget = (enum tlob_budget) budget,
                .exceeded = 1U << budget,
                .state = (enum tlob_state) feed_below(feed, TLOB_N_STATES),
                .end = (enum tlob_end) feed_below(feed, TLOB_N_ENDS),
                .tid = feed_byte(feed),
                .pid = feed_byte(feed),
        };

        for (size_t i = 0; i < TLOB_COMM_LEN; i++)
                report.comm[i] = (char) feed_byte(feed);
        for (size_t i = 0; i < bindings->n; i++)
                if (bindings->items[i]->measurement.backend) {
                        report.backend_index = bindings->items[i]->measurement.index;
                        fake_report(&report);
                        break;
                }
        fixture_run(fuzz.fixture);
}

/* It starts, or ends. */
static void change_unit(void) {
        FakeUnit *unit = &systemd.units[0];

        unit->cgroup = *unit->cgroup ? "" : "/";
        unit_changes(unit->name);
}

static void run(const uint8_t *data, size_t size) {
        Feed input = { data, size }, frame;

        fuzz.n_sent = 0;
        while (fuzz.n_sent < CALLS_MAX && feed_frame(&input, &frame)) {
                if (frame.size > 0 && frame.data[0] == FRAME_REPORT)
                        report(&frame);
                else if (frame.size > 0 && frame.data[0] == FRAME_UNIT)
                        change_unit();
                else {
                        call_read(&frame, fuzz.program, &fuzz.call);
                        if (!fuzz.call.body.full)
                                send_call(&fuzz.call);
                }
                if (!(fuzz.call.flags & CALL_BURST))
                        look();
        }
        look();
        fuzz.serial += (uint32_t) fuzz.n_sent;
        if (fuzz.serial > UINT32_MAX - CALLS_MAX)
                fuzz.serial = SERIAL_FIRST;
}

static void clean(void) {
        if (*systemd.units[0].cgroup)
                change_unit();
        remove_all();
        for (size_t i = 0; i < 2; i++) {
                check_empty(fuzz.fixture->directories[i], "bindings.d");
                check_empty(fuzz.fixture->directories[i], "overrides.d");
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const uint8_t add[] = { 1, 0 };
        int64_t before;

        if (!fuzz.fixture) {
                start();
                /* Where every call fails, nothing is found; only root may add bindings. */
                run(add, sizeof(add));
                fuzz_assert(fuzz.n_bindings == (geteuid() == 0));
                clean();
        }
        before = allocated();
        fixture_forgive_callers(fuzz.fixture);
        run(data, size);
        clean();
        fuzz.growth += allocated() - before;
        fuzz_assert(fuzz.growth < GROWTH_MAX);
        return 0;
}
