/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Probes on return instructions. Where programs return in the place of the task, the kernel steps
 * none of them: it then never maps the area into a process in which it would ("[uprobes]"). And
 * nobody notices: not another tracer at the same place, not a debugger, not a program that returns
 * to nowhere.
 */

#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine.h"
#include "test.h"

#define CALLS     100
#define STEPS_MAX 100000

void return_plainly(void);
void return_repeating(void);
void return_nowhere(void);
void return_after_nop(void);
void return_to_debugger(void);
extern const char returned_to_debugger[];

#define FUNCTION_IN_TEXT(name, ...)                                                                \
        __asm__(".pushsection .text\n"                                                             \
                ".globl " #name "\n"                                                               \
                ".type " #name ", @function\n" #name ": " __VA_ARGS__ "\n"                         \
                ".size " #name ", . - " #name "\n"                                                 \
                ".popsection\n")

FUNCTION_IN_TEXT(return_plainly, "nop; nop; ret");
FUNCTION_IN_TEXT(return_repeating, "nop; nop; repz ret");
/* An address that no processor takes. */
FUNCTION_IN_TEXT(return_nowhere, "nop; movabs $0x4141414141414141, %rax; mov %rax, (%rsp); ret");
/* As compilers begin a function that is to be patched. */
FUNCTION_IN_TEXT(return_after_nop, ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00; nop; ret");
FUNCTION_IN_TEXT(return_to_debugger, "call return_plainly; returned_to_debugger: ret");

static uint32_t add(Engine *engine, const char *function, Binding **ret) {
        _cleanup_free_ char *path = realpath("/proc/self/exe", NULL);

        assert_non_null(path);
        return engine_add(engine,
                          KEYS("Executable", path, "Function", function, "BudgetSec", "1min"), ret);
}

static bool returns_at_once(Engine *engine) {
        return engine->backend->ops->prices(engine->backend)->returns_at_once;
}

/* A child that waits, calls the function some times, and waits. */
typedef struct Child {
        pid_t pid;
        int in, out;
} Child;

static void child_start(Child *child, void (*function)(void)) {
        int in[2], out[2];
        char byte = 0;

        assert_ok(pipe(in));
        assert_ok(pipe(out));
        child->pid = fork();
        assert_true(child->pid >= 0);
        if (child->pid == 0) {
                (void) close(in[1]);
                if (read(in[0], &byte, 1) != 1)
                        _exit(EXIT_FAILURE);
                for (unsigned i = 0; i < CALLS; i++)
                        function();
                if (write(out[1], &byte, 1) != 1)
                        _exit(EXIT_FAILURE);
                _exit(read(in[0], &byte, 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
        }
        (void) close(in[0]);
        (void) close(out[1]);
        child->in = in[1];
        child->out = out[0];
}

static void child_call(Child *child) {
        char byte = 0;

        assert_int_equal(write(child->in, &byte, 1), 1);
        assert_int_equal(read(child->out, &byte, 1), 1);
}

static void child_finish(Child *child) {
        char byte = 0;
        int status;

        assert_int_equal(write(child->in, &byte, 1), 1);
        assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
        assert_int_equal(status, 0);
        (void) close(child->in);
        (void) close(child->out);
}

/* Has the kernel stepped anything in that process? */
static bool was_stepped(pid_t pid) {
        _cleanup_fclose_ FILE *maps = NULL;
        char path[64], line[512];

        (void) snprintf(path, sizeof(path), "/proc/%i/maps", pid);
        maps = fopen(path, "re");
        assert_non_null(maps);
        while (fgets(line, sizeof(line), maps))
                if (strstr(line, "[uprobes]\n"))
                        return true;
        return false;
}

static void assert_counted(Engine *engine, uint32_t index, unsigned n) {
        Statistics s = engine_statistics(engine, index);

        assert_int_equal(s.counters.starts, n);
        assert_int_equal(s.counters.in_budget, n);
        assert_int_equal(s.counters.unmatched, 0);
}

static void test_no_step(void **state) {
        static const struct {
                const char *name;
                void (*function)(void);
        } ways[] = {
                { "return_plainly", return_plainly },
                { "return_repeating", return_repeating },
        };

        for (size_t i = 0; i < ELEMENTSOF(ways); i++) {
                uint32_t index = add(*state, ways[i].name, NULL);
                Child child;

                child_start(&child, ways[i].function);
                child_call(&child);
                assert_int_equal(was_stepped(child.pid), !returns_at_once(*state));
                child_finish(&child);
                assert_counted(*state, index, CALLS);
                engine_remove(*state, index, NULL);
        }
}

static int open_counter(const char *path, uint64_t offset, pid_t pid) {
        struct perf_event_attr attr = {
                .size = sizeof(attr),
                .config1 = (uint64_t) (uintptr_t) path,
                .config2 = offset,
        };
        _cleanup_fclose_ FILE *type = NULL;

        type = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
        assert_non_null(type);
        assert_int_equal(fscanf(type, "%u", &attr.type), 1);
        return (int) syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Whoever else has a probe there sees the registers as they are before the return. */
static void test_other_tracer(void **state) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        uint32_t index = add(*state, "return_plainly", &binding);
        _cleanup_close_ int fd = -EBADF;
        uint64_t count;
        Child child;

        assert_int_equal(binding->resolved.sites.exits.n, 1);
        child_start(&child, return_plainly);
        fd = open_counter(binding->resolved.path, binding->resolved.sites.exits.offsets[0],
                          child.pid);
        assert_true(fd >= 0);
        child_call(&child);
        assert_true(was_stepped(child.pid));
        assert_int_equal(read(fd, &count, sizeof(count)), sizeof(count));
        assert_int_equal(count, CALLS);
        child_finish(&child);
        assert_counted(*state, index, CALLS);
        engine_remove(*state, index, NULL);
}

/* Stops where the function has returned to, and not behind that. */
static void test_debugger(void **state) {
        uint32_t index = add(*state, "return_plainly", NULL);
        struct user_regs_struct regs = {};
        pid_t pid = fork();
        int status;

        assert_true(pid >= 0);
        if (pid == 0) {
                (void) ptrace(PTRACE_TRACEME, 0, NULL, NULL);
                (void) raise(SIGSTOP);
                return_to_debugger();
                _exit(EXIT_SUCCESS);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        for (unsigned i = 0; regs.rip != (uintptr_t) returned_to_debugger; i++) {
                assert_true(WIFSTOPPED(status) && i < STEPS_MAX);
                assert_ok((int) ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL));
                assert_int_equal(waitpid(pid, &status, 0), pid);
                if (WIFSTOPPED(status))
                        assert_ok((int) ptrace(PTRACE_GETREGS, pid, NULL, &regs));
        }
        assert_ok((int) ptrace(PTRACE_DETACH, pid, NULL, NULL));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_counted(*state, index, 1);
        engine_remove(*state, index, NULL);
}

static int die_nowhere(void) {
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                (void) setrlimit(RLIMIT_CORE, &(struct rlimit) {});
                (void) signal(SIGSEGV, SIG_DFL);
                return_nowhere();
                _exit(EXIT_SUCCESS);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

static void test_nowhere(void **state) {
        int without = die_nowhere();
        uint32_t index = add(*state, "return_nowhere", NULL);

        assert_true(WIFSIGNALED(without) && WTERMSIG(without) == SIGSEGV);
        assert_int_equal(die_nowhere(), without);
        assert_counted(*state, index, 1);
        engine_remove(*state, index, NULL);
}

/* What the kernel puts in place of an instruction may not be there for children. */
static void test_children(void **state) {
        uint32_t index = add(*state, "return_after_nop", NULL);
        int status;
        pid_t pid;

        for (unsigned i = 0; i < CALLS; i++)
                return_after_nop();
        pid = fork();
        if (pid == 0) {
                return_after_nop();
                _exit(EXIT_SUCCESS);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_counted(*state, index, CALLS + 1);
        engine_remove(*state, index, NULL);
}

ENGINE_TESTS(returns) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_no_step, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_other_tracer, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_debugger, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_nowhere, engine_setup, engine_teardown),
                cmocka_unit_test_setup_teardown(test_children, engine_setup, engine_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
