/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The life of a daemon with real probes: it starts with a binding, others are added and removed,
 * and another process has windows, some too long. Wherever a binding is active, its books agree
 * with what that process did; and at the end nothing of the daemon is in the kernel. After the
 * fault the same things are asked of it once more, and must work.
 *
 * To load the programs takes most of a second, all the rest a tenth of that. So there are two
 * parts: what fails while a daemon starts and stops, each time another one; and what fails
 * afterwards, one fault after the other in the life of the same daemon, as long as it needs no
 * other programs.
 *
 * Parts whose names begin with "old-" are told that there are no uprobe_multi links.
 */

#include <dlfcn.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/strings.h"
#include "daemon.h"
#include "faults.h"
#include "kernel.h"
#include "scenario.h"
#include "windows.h"

#define BUDGET    "4ms"
#define LONG_USEC 6000
#define SHORT_N   5
#define TELL_NS   UINT64_C(5000000000)
#define WAIT_USEC 1000
#define PATH_SIZE 64

static const BackendOps *const backends_with_probes[] = { &backend_bpf_ops, NULL };

typedef enum Part {
        PART_START,
        PART_LIFE,
        PART_OLD_START,
        PART_OLD_LIFE,
} Part;

const char *const scenario_parts[] = {
        [PART_START] = "start",
        [PART_LIFE] = "life",
        [PART_OLD_START] = "old-start",
        [PART_OLD_LIFE] = "old-life",
        NULL,
};

/* What a binding says of itself. */
typedef struct Books {
        bool is_known; /* nobody knows if that was what failed */
        bool is_active;
        uint64_t starts;
        uint64_t violated;
        uint64_t lost;
        uint64_t ended; /* or is open, all in all */
} Books;

static void read_counters(sd_bus_message *m, Books *books) {
        static const char *const others[] = { "nested",        "unmatched", "suppressed",
                                              "without-traps", "outside",   "processes" };
        const char *name;
        uint64_t value;

        must(sd_bus_message_enter_container(m, 'v', "a{st}") > 0);
        must(sd_bus_message_enter_container(m, 'a', "{st}") > 0);
        while (sd_bus_message_read(m, "{st}", &name, &value) > 0) {
                bool is_other = false;

                for (size_t i = 0; i < ELEMENTSOF(others); i++)
                        is_other |= strncmp(name, others[i], strlen(others[i])) == 0;
                if (streq(name, "starts"))
                        books->starts = value;
                else if (streq(name, "lost"))
                        books->lost = value;
                else if (!is_other)
                        books->ended += value;
                if (streq(name, "violated"))
                        books->violated = value;
        }
        must(sd_bus_message_exit_container(m) >= 0);
        must(sd_bus_message_exit_container(m) >= 0);
}

static const char *read_string(sd_bus_message *m) {
        const char *s;

        must(sd_bus_message_read(m, "v", "s", &s) > 0);
        return s;
}

/* Of the state of the binding that was asked last. */
static char state_reason[512];

/* They balance, and a binding that measures nothing has a reason. */
static Books read_books(const char *name) {
        const char *key, *state = "";
        char path[PATH_SIZE];
        Books books = {};
        sd_bus_message *m;

        *state_reason = '\0';
        (void) snprintf(path, sizeof(path), TLOB_BUS_BINDING_PREFIX "/%s", name);
        m = daemon_call(path, "org.freedesktop.DBus.Properties", "GetAll", "s",
                        TLOB_BUS_BINDING_INTERFACE);
        must(m || may_fail());
        if (!m)
                return books;
        must(sd_bus_message_enter_container(m, 'a', "{sv}") > 0);
        while (sd_bus_message_enter_container(m, 'e', "sv") > 0) {
                must(sd_bus_message_read(m, "s", &key) > 0);
                if (streq(key, "State"))
                        state = read_string(m);
                else if (streq(key, "StateReason"))
                        (void) snprintf(state_reason, sizeof(state_reason), "%s", read_string(m));
                else if (streq(key, "Counters"))
                        read_counters(m, &books);
                else
                        must(sd_bus_message_skip(m, "v") >= 0);
                must(sd_bus_message_exit_container(m) >= 0);
        }
        books.is_known = true;
        books.is_active = streq(state, "active");
        must(books.is_active || *state_reason);
        if (books.starts != books.ended)
                wrong("%s: %" PRIu64 " windows began, and %" PRIu64 " ended or are open", name,
                      books.starts, books.ended);
        sd_bus_message_unref(m);
        return books;
}

/* Returns whether the binding measures. */
static bool have_windows(const char *name, CallerWindow window) {
        Books before = read_books(name), after;

        must(windows_run(window, SHORT_N, 0));
        must(windows_run(window, 1, LONG_USEC));
        daemon_settle();
        after = read_books(name);
        if (!before.is_known || !before.is_active || !after.is_known || !after.is_active)
                return false;
        if (after.starts != before.starts + SHORT_N + 1)
                wrong("%s: %i windows, and %" PRIu64 " counted", name, SHORT_N + 1,
                      after.starts - before.starts);
        must(after.violated > before.violated);
        must(after.lost == before.lost);
        return true;
}

static bool add_function(const char *name) {
        return daemon_do("AddBinding", "sa{sv}t", name, 3, "Executable", "s", windows_program(),
                         "Function", "s", "caller_function", "BudgetSec", "s", BUDGET, UINT64_C(0));
}

static bool add_markers(const char *name) {
        return daemon_do("AddBinding", "sa{sv}t", name, 4, "Executable", "s", windows_program(),
                         "Start", "s", "caller_begin", "Stop", "s", "caller_end", "BudgetSec", "s",
                         BUDGET, UINT64_C(0));
}

/* Everything that people do with it. */
static void live(void) {
        (void) have_windows("first", CALLER_FUNCTION);
        if (add_markers("second"))
                (void) have_windows("second", CALLER_MARKERS);
        (void) daemon_do("GetViolations", "u", 10);
        (void) daemon_do("SetBudget", "stt", "first", UINT64_C(5000000), UINT64_C(0));
        (void) daemon_do("RemoveBinding", "st", "second", UINT64_C(0));
        if (add_function("second"))
                (void) have_windows("second", CALLER_FUNCTION);
        (void) daemon_do("Reload", "");
        (void) daemon_do("ResetStatistics", "");
        (void) have_windows("first", CALLER_FUNCTION);
}

/* A window that is too long is told, by itself. */
static void expect_told(const char *name, CallerWindow window) {
        uint64_t end_ns = now_ns() + TELL_NS, before = daemon_get("Violations");
        unsigned entries = daemon_count_entries();

        must(have_windows(name, window));
        while (daemon_count_entries() == entries && now_ns() < end_ns)
                (void) daemon_turn(WAIT_USEC);
        must(daemon_count_entries() > entries);
        must(daemon_get("Violations") > before);
}

/*
 * libbpf finds out by calls of bpf() what the kernel has, once in the life of a process, and takes
 * any error for a no.
 */
static bool failed_in_libbpf(void) {
        const Fault *fault = fault_get();
        Dl_info own, info;

        must(dladdr((void *) scenario_run, &own));
        for (int i = 0; i < fault->n_frames; i++)
                if (dladdr(fault->frames[i], &info) && info.dli_fbase != own.dli_fbase)
                        return strstr(info.dli_fname, "/libbpf.");
        return false;
}

/* What may have failed is done once more, and whoever fails now has not got over it. */
static void live_on(void) {
        daemon_spare();
        if (daemon_is_over())
                return;
        must(daemon_remove("second") || streq(daemon_refusal(), TLOB_ERROR_NO_SUCH_BINDING));
        /* Its file may be there, and not have been read. */
        must(daemon_do("Reload", ""));
        (void) daemon_remove("second");
        if (!daemon_reload_until_active(1)) {
                (void) read_books("first");
                must(fault_lasts() || failed_in_libbpf());
                must(strstr(state_reason, "restart it"));
                daemon_give_up();
                return;
        }
        expect_told("first", CALLER_FUNCTION);
        must(add_markers("third"));
        must(daemon_get("NActive") == 2);
        expect_told("third", CALLER_MARKERS);
        must(daemon_do("RemoveBinding", "st", "third", UINT64_C(0)));
        must(daemon_get("NActive") == 1);
        must(have_windows("first", CALLER_FUNCTION));
}

bool scenario_can_run(const char *directory) {
        _cleanup_free_ char *reason = NULL;

        if (backend_bpf_ops.probe(&reason) < 0) {
                (void) fprintf(stderr, "This needs BPF and uprobes, and cannot run here: %s.\n",
                               reason);
                return false;
        }
        if (geteuid() != 0) {
                (void) fprintf(stderr, "This needs root, and cannot run without.\n");
                return false;
        }
        kernel_note();
        windows_start(directory);
        return true;
}

const char *scenario_leftovers(void) {
        return kernel_leftovers();
}

/* Those that take probes away end after they have said that they are done. */
static void wait_for_threads(void) {
        static const struct timespec pause = { .tv_nsec = 1000000 };
        unsigned n = 0;
        char line[256];

        for (;; (void) nanosleep(&pause, NULL)) {
                FILE *f = fopen("/proc/self/status", "re");

                must(f);
                while (fgets(line, sizeof(line), f) && sscanf(line, "Threads: %u", &n) != 1)
                        ;
                (void) fclose(f);
                if (n == 1)
                        return;
        }
}

/* Of some thousand windows that are too long, each is to be told. */
static void write_config(void) {
        char bindings[512];

        (void) snprintf(bindings, sizeof(bindings),
                        "[Binding first]\nExecutable=%s\nFunction=caller_function\n"
                        "BudgetSec=" BUDGET "\n",
                        windows_program());
        daemon_write_config("[Daemon]\nRateLimitIntervalSec=0\nTasksMax=64\n", bindings);
}

/* Returns whether the same back end has got over it: its successor has other programs. */
static bool live_one_round(void) {
        unsigned loads = kernel_count_loads();

        daemon_arm();
        live();
        live_on();
        wait_for_threads();
        return !daemon_is_over() && kernel_count_loads() == loads;
}

/*
 * After each fault there is as much in the kernel as before. What the first windows of a daemon
 * bring, probes on libraries, stays: it may fail only where there is nothing to compare with.
 */
static void live_in_rounds(void) {
        bool compares = scenario_has_more_faults();

        if (compares) {
                live();
                live_on();
                wait_for_threads();
                kernel_mark();
        }
        while (live_one_round()) {
                const char *surplus = compares ? kernel_surplus() : NULL;

                if (surplus)
                        wrong("Then there was more in the kernel: %s", surplus);
                if (!scenario_next_fault())
                        return;
        }
}

static void start_and_stop(void) {
        daemon_arm();
        if (daemon_start(backends_with_probes))
                live_on();
        daemon_arm();
        daemon_stop();
}

void scenario_run(const char *directory, size_t part) {
        const char *leftovers;

        kernel_forget();
        fault_get()->has_no_multi = part >= PART_OLD_START;
        daemon_prepare(directory);
        write_config();
        if (part == PART_START || part == PART_OLD_START) {
                start_and_stop();
        } else {
                must(daemon_start(backends_with_probes));
                live_in_rounds();
                daemon_stop();
        }
        wait_for_threads();
        leftovers = kernel_leftovers();
        if (leftovers)
                wrong("In the kernel there is still %s", leftovers);
}
