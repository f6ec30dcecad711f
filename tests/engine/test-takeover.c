/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Back ends that are killed, and others that go on where they stood: what the victim has done is in
 * the books of the last one, whoever was there at the time.
 */

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include "daemon.h"
#include "service.h"
#include "test.h"
#include "tracing.h"

#define MSEC 1000000LL

static void step(Victim *victim, const char *word) {
        victim_continue(victim);
        victim_expect(victim, word);
}

static void calls_and_a_window(Daemon *d, bool other_build) {
        const char *const *keys = FUNCTION("a", "20ms");
        _cleanup_(victim_done) Victim victim = {};
        const Counters *c;
        Answer all;

        daemon_start(d, keys);
        victim_start(&victim,
                     "say:ready repeat:300 ( a( ) ) say:first repeat:300 ( a( ) ) "
                     "a( say:in sleep:100000000 ) say:second repeat:300 ( a( ) ) say:third");
        victim_expect(&victim, "ready");
        step(&victim, "first");
        daemon_kill(d);
        if (other_build)
                daemon_be_other_build(d);
        /* Nobody is there, and a budget runs out. */
        step(&victim, "in");
        step(&victim, "second");
        daemon_start(d, keys);
        step(&victim, "third");
        all = daemon_ask(d);
        victim_continue(&victim);
        victim_finish(&victim);

        c = &all.statistics.counters;
        assert_int_equal(c->starts, 901);
        assert_int_equal(c->in_budget + c->violated, 901);
        assert_int_equal(c->nested, 0);
        assert_int_equal(c->unmatched, 0);
        assert_true(c->violated > 0);
        assert_int_equal(all.n_violations, c->violations);
        assert_int_equal(all.n_completions, c->violations);
        /* A machine that is busy can keep a task, whose time runs already, from falling asleep. */
        assert_true(all.slept_ns >= (uint64_t) (50 * MSEC));
}

#define CALL  "rt_sigtimedwait"
#define CALLS KEYS("Syscall", CALL, "BudgetSec", "20ms")

static const char *caller_path(void) {
        const char *path = getenv("TLOB_TEST_CALLS");

        if (!path)
                fail_msg("TLOB_TEST_CALLS does not name the program that makes system calls.");
        return path;
}

/* System calls, and one that outlives two daemons. Others on this machine make some, too. */
static void test_system_calls(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        uint64_t length;
        Daemon *d = *state;
        const Counters *c;
        Answer all;

        daemon_start(d, CALLS);
        service_start(&victim, caller_path(), SERVICE_GROUP,
                      "try:300 thread:600000000000 say:in try:300 say:first try:300 "
                      "say:second try:300 say:third join");
        victim_expect(&victim, "in");
        service_await_call(victim.pid, SYS_rt_sigtimedwait);
        daemon_kill(d);
        /* Nobody is there, and a budget runs out. */
        step(&victim, "first");
        daemon_start(d, CALLS);
        step(&victim, "second");
        daemon_kill(d);
        daemon_be_other_build(d);
        daemon_start(d, CALLS);
        step(&victim, "third");
        assert_int_equal(daemon_ask(d).statistics.open, 1);
        victim_continue(&victim);
        victim_finish(&victim);
        all = daemon_ask(d);

        c = &all.statistics.counters;
        assert_int_equal(c->starts, 1201);
        assert_int_equal(c->in_budget + c->violated, c->starts);
        assert_int_equal(c->nested + c->unmatched, 0);
        assert_true(c->violated > 0);
        assert_int_equal(victim.n_windows, 1);
        length = victim.windows[0].end_ns - victim.windows[0].start_ns;
        assert_true(all.statistics.max_ns <= length);
        assert_true(all.statistics.max_ns + 50 * MSEC >= length);
        assert_true(all.slept_ns + 50 * MSEC >= length);
}

static void test_calls_and_a_window(void **state) {
        calls_and_a_window(*state, false);
}

#ifdef __x86_64__

/* Until it says that word; the back end is looked at meanwhile, as somebody wants to join. */
static void step_and_join(const Daemon *d, Victim *victim, const char *word) {
        struct pollfd out = { .fd = fileno(victim->out), .events = POLLIN };

        while (poll(&out, 1, 0) == 0)
                (void) daemon_tell(d, LOOK);
        victim_expect(victim, word);
}

/*
 * Windows without traps: they go on while nobody is there, beyond the second for which they are
 * allowed, and with the next back end.
 */
static void joined(Daemon *d, bool other_build) {
        const char *path = getenv("TLOB_TEST_JOINER");
        const char *const *keys = KEYS("Executable", path, "Mark", "request", "BudgetSec", "20ms");
        _cleanup_(victim_done) Victim victim = {};
        char text[RESULT_MAX];
        unsigned long n_begun;
        size_t n_violations;
        const Counters *c;
        Answer all;

        if (!path)
                fail_msg("TLOB_TEST_JOINER does not name what has marks.");
        daemon_start(d, keys);
        program_start(
                &victim, path,
                "ready pair:50000 say:ready pair:50000 quick idle:1200000000 pair:50000 quick "
                "nap:50000000 say:alone pair:50000 say:again idle:1200000000 ready pair:50000 say:third");
        step_and_join(d, &victim, "ready");
        n_violations = daemon_ask(d).n_violations;
        daemon_kill(d);
        if (other_build)
                daemon_be_other_build(d);
        step(&victim, "alone");
        daemon_start(d, keys);
        step(&victim, "again");
        victim_continue(&victim);
        step_and_join(d, &victim, "third");
        all = daemon_ask(d);
        victim_continue(&victim);
        program_finish(&victim, text);

        assert_int_equal(sscanf(text, "result %lu", &n_begun), 1);
        c = &all.statistics.counters;
        assert_int_equal(c->starts, n_begun);
        assert_int_equal(c->in_budget + c->violated, n_begun);
        assert_int_equal(all.n_lengths, n_begun);
        assert_true(c->untrapped > 3 * 49000 && c->untrapped < n_begun);
        assert_int_equal(c->nested + c->unmatched, 0);
        assert_true(c->violated > 0);
        assert_int_equal(n_violations + all.n_violations, c->violations);
}

static void test_joined(void **state) {
        joined(*state, false);
}

static void test_joined_other_build(void **state) {
        joined(*state, true);
}

#endif

#define HOOK "hook_"

/* The hooks that are pinned, which must all be of one set: its name, and how many. */
static size_t find_hooks(const Daemon *d, char ret_set[static 32]) {
        const struct dirent *entry;
        size_t n = 0;
        DIR *dir;

        dir = fdopendir(openat(d->fds[0], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        assert_non_null(dir);
        while ((entry = readdir(dir))) {
                size_t length = (size_t) (strrchr(entry->d_name, '_') - entry->d_name);

                if (strncmp(entry->d_name, HOOK, strlen(HOOK)) != 0)
                        continue;
                if (n++ > 0)
                        assert_memory_equal(entry->d_name, ret_set, length);
                (void) snprintf(ret_set, 32, "%.*s", (int) length, entry->d_name);
        }
        (void) closedir(dir);
        return n;
}

/* Upgrades: the hooks are replaced, and all else is as if they were not. */
static void test_other_build(void **state) {
        char before[32], after[32];
        Daemon *d = *state;
        size_t n;

        daemon_start(d, FUNCTION("a", "20ms"));
        n = find_hooks(d, before);
        assert_true(n > 0);
        daemon_kill(d);
        daemon_start(d, FUNCTION("a", "20ms"));
        assert_int_equal(find_hooks(d, after), n);
        assert_string_equal(after, before);
        daemon_kill(d);
        calls_and_a_window(d, true);
        assert_int_equal(find_hooks(d, after), n);
        assert_string_not_equal(after, before);
}

static void rest(unsigned ms) {
        (void) nanosleep(&(struct timespec) { ms / 1000, (long) (ms % 1000) * MSEC }, NULL);
}

#define THREADS 8

/* Daemons are killed, and others while they take over from those. */
static void kill_again_and_again(Daemon *d, const char *const *keys) {
        /* Loading the programs takes seconds in an emulator. */
        unsigned n_deaths = machine_is_emulated() ? 1 : 8;

        for (unsigned i = 0; i < n_deaths; i++) {
                rest(i * 7);
                daemon_kill(d);
                if (i % 2 == 0)
                        daemon_be_other_build(d);
                daemon_fork(d, keys);
                rest(i * 40);
                daemon_kill(d);
                daemon_start(d, keys);
        }
}

/*
 * At any moment, while more threads make calls than there are CPUs, so that many of them stand
 * still at the probe: daemons are killed, and others while they take over from those.
 */
static void test_again_and_again(void **state) {
        const char *const *keys = FUNCTION("storm", "1min");
        unsigned n_calls = machine_is_emulated() ? 8000 : 50000;
        _cleanup_(victim_done) Victim victim = {};
        Daemon *d = *state;
        const Counters *c;
        char words[64];
        Answer all;

        daemon_start(d, keys);
        (void) snprintf(words, sizeof(words), "say:ready threads:%i ( storm:%u ) say:done", THREADS,
                        n_calls);
        victim_start(&victim, words);
        victim_expect(&victim, "ready");
        victim_continue(&victim);
        kill_again_and_again(d, keys);
        victim_expect(&victim, "done");
        all = daemon_ask(d);
        victim_continue(&victim);
        victim_finish(&victim);
        c = &all.statistics.counters;
        print_message("%llu starts, %llu in budget, %llu nested, %llu unmatched\n",
                      (unsigned long long) c->starts, (unsigned long long) c->in_budget,
                      (unsigned long long) c->nested, (unsigned long long) c->unmatched);
        assert_int_equal(c->starts, THREADS * n_calls);
        assert_int_equal(c->in_budget, THREADS * n_calls);
        assert_int_equal(c->nested, 0);
        assert_int_equal(c->unmatched, 0);
}

/* What the next one does not know any more is taken out of the kernel. */
static void test_another_binding(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Daemon *d = *state;
        Answer all;

        daemon_start(d, FUNCTION("b", "1min"));
        daemon_kill(d);
        daemon_start(d, FUNCTION("a", "1min"));
        victim_start(&victim, "a( ) b( ) a( ) say:done");
        victim_expect(&victim, "done");
        all = daemon_ask(d);
        assert_int_equal(all.statistics.counters.starts, 2);
        assert_int_equal(all.statistics.counters.in_budget, 2);
        victim_continue(&victim);
        victim_finish(&victim);
}

#define EVENTS(from, to)                                                                           \
        KEYS("Start", "event:syscalls:sys_" from "_" CALL, "Stop",                                 \
             "event:syscalls:sys_" to "_" CALL, "BudgetSec", "1min")

/* The same name and the same call, but what is measured is another thing. */
static void test_other_events(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Daemon *d = *state;
        Answer all;

        daemon_start(d, EVENTS("enter", "exit"));
        service_start(&victim, caller_path(), SERVICE_GROUP, "try:100 say:in try:10 say:done");
        victim_expect(&victim, "in");
        daemon_kill(d);
        daemon_start(d, EVENTS("exit", "enter"));
        step(&victim, "done");
        all = daemon_ask(d);
        assert_int_equal(all.statistics.counters.starts, 10);
        assert_int_equal(all.statistics.counters.in_budget, 9);
        victim_continue(&victim);
        victim_finish(&victim);
}

/* Windows that are open then are all that is lost, and that is in the books. */
static void test_other_layout(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Daemon *d = *state;
        const Counters *c;
        Answer all;

        daemon_start(d, FUNCTION("a", "20ms"));
        victim_start(&victim, "repeat:10 ( a( ) ) say:ready repeat:300 ( a( ) ) a( say:in ) "
                              "say:out repeat:200 ( a( ) ) a( sleep:50000000 ) say:done");
        victim_expect(&victim, "ready");
        (void) daemon_tell(d, RESET);
        step(&victim, "in");
        daemon_kill(d);
        daemon_be_other_layout(d);
        daemon_start(d, FUNCTION("a", "20ms"));
        step(&victim, "out");
        all = daemon_tell(d, ASK);
        c = &all.statistics.counters;
        assert_int_equal(c->starts, 301);
        assert_int_equal(c->in_budget + c->violated, 300);
        assert_int_equal(c->ended[TLOB_END_REMOVED], 1);
        assert_int_equal(all.n_lengths, 300);
        /* What was counted by three of them. */
        daemon_kill(d);
        daemon_be_other_layout(d);
        daemon_start(d, FUNCTION("a", "20ms"));
        step(&victim, "done");
        all = daemon_ask(d);
        victim_continue(&victim);
        victim_finish(&victim);
        assert_int_equal(c->starts, 502);
        assert_int_equal(c->in_budget + c->violated, 501);
        assert_true(all.statistics.max_ns >= (uint64_t) (50 * MSEC));
        assert_int_equal(all.n_lengths, 501);
        assert_true(all.n_violations > 0);
}

/* Of a binding that was measured in two files, nothing is missing. */
static void two_files(Daemon *d, bool other_layout) {
        _cleanup_(victim_done) Victim victim = {};
        const Counters *c;
        Answer all;

        daemon_former_keys = FUNCTION("b", "1min");
        daemon_start(d, FUNCTION("a", "1min"));
        daemon_former_keys = NULL;
        victim_start(&victim, "repeat:10 ( a( ) ) repeat:5 ( b( ) ) b( say:in ) "
                              "repeat:3 ( a( ) b( ) ) say:done");
        victim_expect(&victim, "in");
        daemon_kill(d);
        if (other_layout)
                daemon_be_other_layout(d);
        daemon_start(d, FUNCTION("a", "1min"));
        step(&victim, "done");
        all = daemon_ask(d);
        victim_continue(&victim);
        victim_finish(&victim);

        c = &all.statistics.counters;
        assert_int_equal(c->starts, 10 + 6 + 3);
        assert_int_equal(c->in_budget, 10 + 5 + 3);
        assert_int_equal(c->ended[TLOB_END_REMOVED], 1);
        assert_int_equal(c->unmatched, 0);
}

static void test_two_files(void **state) {
        two_files(*state, false);
}

static void test_two_files_other_layout(void **state) {
        two_files(*state, true);
}

/* A reset holds for all that come after. */
static void test_reset(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Daemon *d = *state;
        Answer all;

        daemon_start(d, FUNCTION("a", "1min"));
        victim_start(&victim, "repeat:10 ( a( ) ) say:ready repeat:5 ( a( ) ) say:done");
        victim_expect(&victim, "ready");
        all = daemon_tell(d, RESET);
        assert_int_equal(all.statistics.counters.starts, 0);
        daemon_kill(d);
        daemon_start(d, FUNCTION("a", "1min"));
        step(&victim, "done");
        all = daemon_ask(d);
        victim_continue(&victim);
        victim_finish(&victim);
        assert_int_equal(all.statistics.counters.starts, 5);
        assert_int_equal(all.n_lengths, 5);
}

/* The same with system calls. */
static void make_calls_again_and_again(Daemon *d, const char *const *keys) {
        unsigned n_calls = machine_is_emulated() ? 8000 : 200000;
        _cleanup_(victim_done) Victim victim = {};
        const Counters *c;
        char words[64];
        Answer all;

        daemon_start(d, keys);
        (void) snprintf(words, sizeof(words), "storm:%i:%u say:done", THREADS, n_calls);
        service_start(&victim, caller_path(), SERVICE_GROUP, words);
        kill_again_and_again(d, keys);
        victim_expect(&victim, "done");
        all = daemon_ask(d);
        victim_continue(&victim);
        victim_finish(&victim);
        c = &all.statistics.counters;
        print_message("%llu starts, %llu in budget\n", (unsigned long long) c->starts,
                      (unsigned long long) c->in_budget);
        assert_int_equal(c->nested + c->unmatched, 0);
        assert_int_equal(c->starts, 4 * THREADS * n_calls);
        assert_int_equal(c->in_budget, c->starts);
}

static void test_system_calls_again_and_again(void **state) {
        make_calls_again_and_again(*state, KEYS("Syscall", CALL, "BudgetSec", "1min"));
}

static void test_events_again_and_again(void **state) {
        make_calls_again_and_again(*state, EVENTS("enter", "exit"));
}

static int set_up_service(void **state) {
        int r = daemon_set_up(state);

        service_make_groups();
        ((Daemon *) *state)->is_of_service = true;
        return r;
}

static int tear_down_service(void **state) {
        int r = daemon_tear_down(state);

        service_remove_groups();
        return r;
}

#define TEST(f)         cmocka_unit_test_setup_teardown(f, daemon_set_up, daemon_tear_down)
#define TEST_SERVICE(f) cmocka_unit_test_setup_teardown(f, set_up_service, tear_down_service)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_calls_and_a_window),
#ifdef __x86_64__
                TEST(test_joined),
                TEST(test_joined_other_build),
#endif
                TEST(test_other_build),
                TEST(test_again_and_again),
                TEST_SERVICE(test_system_calls),
                TEST_SERVICE(test_system_calls_again_and_again),
                TEST_SERVICE(test_events_again_and_again),
        };
        /* No matter of the kernel: not where it takes long to load the programs twice more. */
        const struct CMUnitTest others[] = {
                TEST(test_another_binding),        TEST_SERVICE(test_other_events),
                TEST(test_other_layout),           TEST(test_two_files),
                TEST(test_two_files_other_layout), TEST(test_reset),
        };
        int r;

        r = cmocka_run_group_tests(tests, tracing_need, NULL);
        if (r == 0 && !machine_is_emulated())
                r = cmocka_run_group_tests(others, tracing_need, NULL);
        return r;
}
