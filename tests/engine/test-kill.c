/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A daemon that is killed must be gone at once, however many probes it has, because only then can
 * it be started again; and its probes must go too. The probes are set in this very program, where
 * their breakpoints can be seen.
 */

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "bpf/uprobe.h"
#include "engine.h"
#include "test.h"

#define N_BINDINGS 60

/* One after the other, 120 probes took 6 s (Linux 6.18). */
#define GONE_NS_MAX  2000000000ULL
#define CLEAN_NS_MAX 10000000000ULL

/* Windows go from each of them to the next. */
__asm__(".text\n.altmacro\n"
        ".macro kill_target i\n"
        ".globl kill_\\i\n.type kill_\\i, @function\nkill_\\i:\n"
#ifdef __x86_64__
        "push %rbp\npop %rbp\n"
#endif
        "ret\n.size kill_\\i, .-kill_\\i\n"
        ".endm\n"
        ".set i, 0\n"
        ".rept 61\nkill_target %i\n.set i, i + 1\n.endr\n"
        ".noaltmacro\n");
extern const volatile unsigned char kill_0[], kill_60[];

static void add_bindings(Engine *engine) {
        char self[4096], start[32], stop[32];
        ssize_t n;

        n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        assert_in_range(n, 1, sizeof(self) - 1);
        self[n] = '\0';
        for (unsigned i = 0; i < N_BINDINGS; i++) {
                (void) snprintf(start, sizeof(start), "kill_%u", i);
                (void) snprintf(stop, sizeof(stop), "kill_%u", i + 1);
                (void) engine_add(
                        engine,
                        KEYS("Executable", self, "Start", start, "Stop", stop, "BudgetSec", "1s"),
                        NULL);
        }
}

/* What a daemon does until somebody kills it. */
static _Noreturn void run_daemon(int ready_fd, bool has_bindings) {
        void *state = NULL;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) engine_setup(&state);
        if (has_bindings)
                add_bindings(state);
        (void) write(ready_fd, "", 1);
        for (;;)
                (void) pause();
}

static pid_t start_daemon(bool has_bindings) {
        int fds[2];
        pid_t pid;
        char c;

        assert_int_equal(pipe(fds), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void) close(fds[0]);
                run_daemon(fds[1], has_bindings);
        }
        (void) close(fds[1]);
        assert_int_equal(read(fds[0], &c, 1), 1);
        (void) close(fds[0]);
        return pid;
}

/* Returns how long it took until it was gone. */
static uint64_t kill_daemon(pid_t pid) {
        uint64_t begin = now_ns();

        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        return now_ns() - begin;
}

static bool tells_of_death(void **state) {
        const char *const *sentence;
        Engine *engine;
        bool found = false;

        assert_int_equal(engine_setup(state), 0);
        engine = *state;
        sentence = engine->backend->ops->limitations(engine->backend);
        for (; *sentence; sentence++)
                found = found || strstr(*sentence, "When tlobd is killed");
        assert_int_equal(engine_teardown(state), 0);
        return found;
}

/* Beyond what it takes without any binding: some kernels let go of the other programs slowly. */
static void test_it_is_gone_at_once(void **state) {
        unsigned char first = kill_0[0], last = kill_60[0];
        uint64_t begin, without_ns;
        pid_t pid;

        /* There, a perf event is let go after the other; "tlobctl status" says so. */
        if (!uprobe_multi_is_supported()) {
                assert_true(tells_of_death(state));
                return;
        }

        without_ns = kill_daemon(start_daemon(false));
        pid = start_daemon(true);
        assert_int_not_equal(kill_0[0], first);
        assert_int_not_equal(kill_60[0], last);

        begin = now_ns();
        assert_in_range(kill_daemon(pid), 0, 2 * without_ns + GONE_NS_MAX);

        while (now_ns() - begin < CLEAN_NS_MAX && (kill_0[0] != first || kill_60[0] != last))
                (void) usleep(10000);
        assert_int_equal(kill_0[0], first);
        assert_int_equal(kill_60[0], last);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_it_is_gone_at_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
