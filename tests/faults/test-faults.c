/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * test-faults KIND [N]: runs the scenario with its first allocation (or system call) made to fail,
 * then with its second, and so on, until nothing is left to fail; each time in a process of its
 * own. With N, the N-th only, and with all that the daemon says.
 *
 * There are thousands, and it has TLOB_FAULTS_SEC seconds (default: 30). So it takes them in an
 * order in which any part of them is spread evenly, and begins with another one each time.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "faults.h"
#include "scenario.h"

#define SECONDS      30
#define HANGING_SEC  60
#define WRONG_MAX    20 /* enough to think about */
#define ENDS_MAX     (SCENARIO_ENDED + 1)
#define GOLDEN_RATIO 0.6180339887498949

/* What the daemon writes to disk, it waits for: not here. */
static char root[] = "/dev/shm/tlob-faults-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

static void remove_all(const char *path) {
        if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0)
                (void) fprintf(stderr, "Failed to remove %s: %m\n", path);
}

static _Noreturn void run_child(const char *directory, const char *log) {
        int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
                abort();
        (void) close(fd);
        (void) alarm(HANGING_SEC);
        scenario_run(directory);
        exit(SCENARIO_STATUS + (int) scenario_end());
}

/* Returns the status, as from waitpid(); what was said is in root/log. */
static int run(FaultKind kind, uint64_t at) {
        char directory[64], log[64];
        int status;
        pid_t pid;

        (void) snprintf(directory, sizeof(directory), "%s/daemon", root);
        (void) snprintf(log, sizeof(log), "%s/log", root);
        fault_set(kind, at);
        if (mkdir(directory, 0755) < 0)
                abort();
        pid = fork();
        if (pid < 0)
                abort();
        if (pid == 0)
                run_child(directory, log);
        if (waitpid(pid, &status, 0) != pid)
                abort();
        remove_all(directory);
        return status;
}

static void print_log(void) {
        _cleanup_fclose_ FILE *f = NULL;
        char path[64], line[1024];

        (void) snprintf(path, sizeof(path), "%s/log", root);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
                (void) fprintf(stderr, "    %s", line);
}

static bool is_in_log(const char *text) {
        _cleanup_fclose_ FILE *f = NULL;
        char path[64], line[1024];

        (void) snprintf(path, sizeof(path), "%s/log", root);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
                if (strstr(line, text))
                        return true;
        return false;
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

/* Returns whether the daemon has got over it. */
static bool judge(FaultKind kind, uint64_t at, int status, unsigned ends[static ENDS_MAX]) {
        unsigned end =
                WIFEXITED(status) ? (unsigned) WEXITSTATUS(status) - SCENARIO_STATUS : ENDS_MAX;
        int crash = fault_get()->crash;

        if (end < ENDS_MAX && (is_in_capstone() || (!crash && !is_in_log("Sanitizer") &&
                                                    !is_in_log("runtime error:")))) {
                ends[end]++;
                return true;
        }
        (void) fprintf(stderr, "\n%s %" PRIu64 " (%s): ", fault_kind_name(kind), at,
                       fault_get()->call);
        if (WIFSIGNALED(status) || crash)
                (void) fprintf(stderr, "%s\n", strsignal(crash ?: WTERMSIG(status)));
        else
                (void) fprintf(stderr, "exit status %d\n", WEXITSTATUS(status));
        print_log();
        print_place();
        return false;
}

/* How many there are, if none fails. */
static uint64_t count(FaultKind kind) {
        int status = run(kind, 0);

        if (!WIFEXITED(status) || WEXITSTATUS(status) != SCENARIO_STATUS) {
                (void) fprintf(stderr, "Without any fault (status %#x):\n", (unsigned) status);
                print_log();
                exit(EXIT_FAILURE);
        }
        return fault_get()->n;
}

static int run_one(FaultKind kind, uint64_t at) {
        unsigned ends[ENDS_MAX] = {};
        int status = run(kind, at);

        if (!judge(kind, at, status, ends))
                return EXIT_FAILURE;
        print_log();
        print_place();
        return EXIT_SUCCESS;
}

static int run_all(FaultKind kind) {
        const char *budget = getenv("TLOB_FAULTS_SEC");
        uint64_t n = count(kind), step, at, tried = 0, end_ns;
        unsigned ends[ENDS_MAX] = {}, n_wrong = 0;

        end_ns = now_ns() + (uint64_t) (budget ? atoi(budget) : SECONDS) * 1000000000;
        /* No divisor in common with n: so all are met once. */
        step = (uint64_t) ((double) n * GOLDEN_RATIO) | 1;
        for (uint64_t a = step, b = n; b != 0;) {
                uint64_t rest = a % b;

                a = b;
                b = rest;
                if (b == 0 && a > 1) {
                        a = step += 2;
                        b = n;
                }
        }
        at = (uint64_t) time(NULL) % n;
        for (; tried < n && now_ns() < end_ns && n_wrong < WRONG_MAX; tried++) {
                n_wrong += !judge(kind, at + 1, run(kind, at + 1), ends);
                at = (at + step) % n;
        }
        (void) printf("%s: %" PRIu64 " of %" PRIu64
                      " tried; went on after %u, did not start with %u, "
                      "ended with an error after %u, %u wrong\n",
                      fault_kind_name(kind), tried, n, ends[SCENARIO_WENT_ON],
                      ends[SCENARIO_DID_NOT_START], ends[SCENARIO_ENDED], n_wrong);
        return n_wrong == 0 && tried > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char *argv[]) {
        int r;

        if (argc < 2)
                return 2;
        if (!mkdtemp(root))
                abort();
        for (FaultKind kind = 0; kind < FAULT_N_KINDS; kind++)
                if (strcmp(argv[1], fault_kind_name(kind)) == 0) {
                        r = argc > 2 ? run_one(kind, strtoull(argv[2], NULL, 10)) : run_all(kind);
                        remove_all(root);
                        return r;
                }
        return 2;
}
