/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * test-faults PART KIND [N]: runs a part of the scenario with one of its allocations (or system
 * calls) made to fail, then with another one, until nothing is left to fail. With N, the N-th only,
 * and with all that the daemon says. A process that ends had a daemon of its own, which may have
 * got over many of them.
 *
 * There are thousands, and it has TLOB_FAULTS_SEC seconds (default: 30), so it begins with one for
 * each place (order.h). With TLOB_FAULTS_SEED it takes them in the same order again.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strings.h"
#include "daemon.h"
#include "faults.h"
#include "order.h"
#include "scenario.h"

#define SECONDS     30
#define HANGING_SEC 60
#define WRONG_MAX   20 /* enough to think about */
#define ENDS_MAX    (SCENARIO_MUST_BE_RESTARTED + 1)
#define BATCH_MAX   1000

/* Faults for one process, which may come to an end before it has tried them all. */
static struct {
        size_t part;
        const uint64_t *faults;
        size_t n;
        uint64_t end_ns;
} batch;

static struct {
        size_t n_begun;
        uint64_t places[BATCH_MAX]; /* where they hit; 0: they did not */
} *shared;

/* What the daemon writes to disk, it waits for: not here. */
static char root[] = "/dev/shm/tlob-faults-XXXXXX";
static char log_path[sizeof(root) + 8]; /* what the last process has said */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

static void remove_all(const char *path) {
        if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0)
                (void) fprintf(stderr, "Failed to remove %s: %m\n", path);
}

static void print_log(void) {
        _cleanup_fclose_ FILE *f = fopen(log_path, "re");
        char line[1024];

        while (f && fgets(line, sizeof(line), f))
                (void) fprintf(stderr, "    %s", line);
}

/* A sanitizer, be it in another process of the daemon. */
static bool has_said_wrong(void) {
        _cleanup_fclose_ FILE *f = fopen(log_path, "re");
        char line[1024];

        while (f && fgets(line, sizeof(line), f))
                if (strstr(line, "Sanitizer") || strstr(line, "runtime error:"))
                        return true;
        return false;
}

/* In the process of the daemon. */
bool scenario_next_fault(void) {
        size_t n = shared->n_begun;

        if (n > 0) {
                shared->places[n - 1] = fault_get()->place;
                if (n == batch.n || now_ns() >= batch.end_ns || fault_get()->crash ||
                    has_said_wrong())
                        return false;
        }
        if (ftruncate(STDERR_FILENO, 0) < 0)
                abort();
        (void) alarm(HANGING_SEC);
        fault_set_next(batch.faults[n]);
        shared->n_begun++;
        return true;
}

bool scenario_has_more_faults(void) {
        return shared->n_begun < batch.n;
}

static _Noreturn void run_child(const char *directory) {
        int fd = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);

        if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
                abort();
        (void) close(fd);
        (void) scenario_next_fault();
        fault_begin(__builtin_frame_address(0));
        scenario_run(directory, batch.part);
        exit(SCENARIO_STATUS + (int) daemon_end());
}

/* Returns the status, as from waitpid(), which is about the last of those that were begun. */
static int run(FaultKind kind, const uint64_t *faults, size_t n, uint64_t end_ns) {
        char directory[64];
        int status;
        pid_t pid;

        (void) snprintf(directory, sizeof(directory), "%s/daemon", root);
        batch.faults = faults;
        batch.n = n < BATCH_MAX ? n : BATCH_MAX;
        batch.end_ns = end_ns;
        shared->n_begun = 0;
        fault_set(kind, 0);
        if (mkdir(directory, 0755) < 0)
                abort();
        pid = fork();
        if (pid < 0)
                abort();
        if (pid == 0)
                run_child(directory);
        if (waitpid(pid, &status, 0) != pid || shared->n_begun == 0)
                abort();
        shared->places[shared->n_begun - 1] = fault_get()->place;
        fault_get()->ahead_ns = 0;
        fault_get()->armed = false;
        remove_all(directory);
        return status;
}

/* The same, with what must hold when the process is gone. */
static int run_and_look(FaultKind kind, const uint64_t *faults, size_t n, uint64_t end_ns) {
        int status = run(kind, faults, n, end_ns);
        const char *leftovers = scenario_leftovers();

        if (!leftovers)
                return status;
        (void) fprintf(stderr, "When the daemon was gone, there was still %s.\n", leftovers);
        return W_EXITCODE(EXIT_FAILURE, 0);
}

/*
 * Capstone 4 does not check whether it gets memory for its tables. Only readers of files use it,
 * which may crash: the daemon says which file it was, and asks another one the next time.
 */
static bool is_in_capstone(void) {
        const Fault *fault = fault_get();
        Dl_info info;

        for (int i = 0; i < fault->n_frames; i++)
                if (dladdr(fault->frames[i], &info) && strstr(info.dli_fname, "/libcapstone."))
                        return true;
        return false;
}

/* Where it failed, as far as it is our code. */
static void print_place(void) {
        extern char __executable_start;
        const Fault *fault = fault_get();
        char command[1024];
        size_t n;

        n = (size_t) snprintf(command, sizeof(command), "addr2line -fips -e /proc/%d/exe",
                              (int) getpid());
        for (int i = 2; i < fault->n_frames; i++)
                n += (size_t) snprintf(command + n, sizeof(command) - n, " 0x%tx",
                                       (char *) fault->frames[i] - &__executable_start - 1);
        n += (size_t) snprintf(command + n, sizeof(command) - n, " | grep -v '^[?]' >&2");
        (void) !system(command);
}

typedef struct Tally {
        size_t tried;
        unsigned ends[ENDS_MAX];
        unsigned n_wrong;
        uint64_t *places; /* where they hit */
        size_t n_hit;
} Tally;

/* Returns whether the daemon has got over the last of them, as it has over those before it. */
static bool judge(FaultKind kind, int status, unsigned ends[static ENDS_MAX]) {
        unsigned end =
                WIFEXITED(status) ? (unsigned) WEXITSTATUS(status) - SCENARIO_STATUS : ENDS_MAX;
        int crash = fault_get()->crash;

        ends[SCENARIO_WENT_ON] += shared->n_begun - 1;
        if (end < ENDS_MAX && (is_in_capstone() || (!crash && !has_said_wrong()))) {
                ends[end]++;
                return true;
        }
        (void) fprintf(stderr, "\n%s %s %" PRIu64 " (%s", scenario_parts[batch.part],
                       fault_kind_name(kind), fault_get()->at, fault_get()->call);
        if (shared->n_begun > 1)
                (void) fprintf(stderr, ", after %zu others", shared->n_begun - 1);
        if (WIFSIGNALED(status) || crash)
                (void) fprintf(stderr, "): %s\n", strsignal(crash ?: WTERMSIG(status)));
        else
                (void) fprintf(stderr, "): exit status %d\n", WEXITSTATUS(status));
        print_log();
        print_place();
        return false;
}

/* How many there are, if none fails. */
static uint64_t count(FaultKind kind) {
        static const uint64_t none;
        int status;

        fault_note_places(true);
        status = run_and_look(kind, &none, 1, UINT64_MAX);
        fault_note_places(false);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != SCENARIO_STATUS) {
                (void) fprintf(stderr, "Without any fault (status %#x):\n", (unsigned) status);
                print_log();
                exit(EXIT_FAILURE);
        }
        return fault_get()->n;
}

static int run_one(FaultKind kind, uint64_t at) {
        unsigned ends[ENDS_MAX] = {};
        int status = run_and_look(kind, &at, 1, UINT64_MAX);

        if (!judge(kind, status, ends))
                return EXIT_FAILURE;
        print_log();
        print_place();
        return EXIT_SUCCESS;
}

static uint64_t get_number(const char *variable, uint64_t otherwise) {
        const char *value = getenv(variable);

        return value ? strtoull(value, NULL, 10) : otherwise;
}

/* Returns how many of them were tried. */
static size_t try(FaultKind kind, const uint64_t *faults, size_t n, uint64_t end_ns, Tally *tally) {
        int status = run_and_look(kind, faults, n, end_ns);

        tally->n_wrong += !judge(kind, status, tally->ends);
        tally->tried += shared->n_begun;
        /* One more or less can come before a fault each time: it may hit elsewhere, or nothing. */
        for (size_t i = 0; i < shared->n_begun; i++)
                if (shared->places[i] != 0)
                        tally->places[tally->n_hit++] = shared->places[i];
        return shared->n_begun;
}

static bool has_hit(const Tally *tally, uint64_t place) {
        for (size_t i = 0; i < tally->n_hit; i++)
                if (tally->places[i] == place)
                        return true;
        return false;
}

static bool goes_on(const Tally *tally, uint64_t end_ns) {
        return tally->n_wrong < WRONG_MAX && now_ns() < end_ns;
}

/* What a daemon does once in its life, only a fault that has it for itself can hit. */
static void try_all(FaultKind kind, const Order *order, uint64_t end_ns, Tally *tally) {
        size_t done = 0;

        while (done < order->n && goes_on(tally, end_ns))
                done += try(kind, order->items + done, order->n - done, end_ns, tally);
        for (size_t i = 0; i < order->n_places && goes_on(tally, end_ns); i++)
                if (!has_hit(tally, fault_place(order->items[i])))
                        (void) try(kind, order->items + i, 1, end_ns, tally);
}

static int run_all(FaultKind kind) {
        uint64_t seed = get_number("TLOB_FAULTS_SEED", (uint64_t) time(NULL)), end_ns;
        Tally tally = {};
        Order order;

        order_make(count(kind), seed, &order);
        end_ns = now_ns() + get_number("TLOB_FAULTS_SEC", SECONDS) * 1000000000;
        tally.places = calloc(order.n + order.n_places + 1, sizeof(*tally.places));
        if (!tally.places)
                abort();
        try_all(kind, &order, end_ns, &tally);
        (void) printf("%s %s: %zu tried of %zu, at %zu of %zu places (seed %" PRIu64
                      "); went on after %u, did not start with %u, "
                      "ended with an error after %u, is to be restarted after %u, %u wrong\n",
                      scenario_parts[batch.part], fault_kind_name(kind), tally.tried, order.n,
                      order_count_places(&order, tally.places, tally.n_hit), order.n_places, seed,
                      tally.ends[SCENARIO_WENT_ON], tally.ends[SCENARIO_DID_NOT_START],
                      tally.ends[SCENARIO_ENDED], tally.ends[SCENARIO_MUST_BE_RESTARTED],
                      tally.n_wrong);
        free(tally.places);
        order_done(&order);
        return tally.n_wrong == 0 && tally.tried > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool find_part(const char *name) {
        for (batch.part = 0; scenario_parts[batch.part]; batch.part++)
                if (streq(scenario_parts[batch.part], name))
                        return true;
        return false;
}

static bool find_kind(const char *name, FaultKind *ret) {
        for (FaultKind kind = 0; kind < FAULT_N_KINDS; kind++)
                if (streq(fault_kind_name(kind), name)) {
                        *ret = kind;
                        return true;
                }
        return false;
}

int main(int argc, char *argv[]) {
        FaultKind kind;
        int r;

        if (argc < 3 || !find_part(argv[1]) || !find_kind(argv[2], &kind))
                return 2;
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                      0);
        if (shared == MAP_FAILED || !mkdtemp(root))
                abort();
        (void) snprintf(log_path, sizeof(log_path), "%s/log", root);
        if (!scenario_can_run(root))
                r = EXIT_FAILURE;
        else if (argc > 3)
                r = run_one(kind, strtoull(argv[3], NULL, 10));
        else
                r = run_all(kind);
        remove_all(root);
        return r;
}
