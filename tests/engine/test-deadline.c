/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Who finds that a budget has run out, when nobody of ours can run? The back end lives in a process
 * of its own here (this program again, as "test-deadline host KEY VALUE..."), which is stopped by
 * SIGSTOP before the deadline of a window that never ends, and goes on well after it. The record
 * must have been made meanwhile, and its own time stamp says how late.
 *
 * How late it may be:
 *
 *  - asleep, waiting: a timer. 1 ms, which is what it takes when the machine has other things to
 *    do.
 *  - running, without leaving the CPU: the same where the start can arm the timer (deadline mode
 *    "uprobe"); else the next tick finds it, so one tick more.
 *  - in an emulator, one thread runs all CPUs, and each for up to 100 ms.
 *
 * A machine that is busy, or virtual, can keep all timers waiting. So timers of our own are due on
 * each CPU when it should have been found at the latest: by as much as they are late, it may be
 * later.
 */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "engine.h"
#include "test.h"

#define MSEC 1000000ULL

#define BUDGET_NS (200 * MSEC) /* "200ms" below */
#define TIMES     5
#define TRIES     25 /* at most, for that */

typedef struct Finding {
        unsigned type;
        unsigned state;
        unsigned long long time_ns;
        unsigned long long late_ns;
        unsigned long long elapsed_ns;
} Finding;

/* How long the machine may take for what should be done at once. */
static uint64_t slack_ns(void) {
        return machine_is_emulated() ? 250 * MSEC : MSEC;
}

static uint64_t tick_ns(void) {
        struct timespec resolution;

        assert_int_equal(clock_getres(CLOCK_MONOTONIC_COARSE, &resolution), 0);
        return (uint64_t) resolution.tv_nsec;
}

/* CLOCK_MONOTONIC, or the CPU time of a process, which has to be there. */
static uint64_t clock_ns(clockid_t clock) {
        struct timespec ts;

        assert_int_equal(clock_gettime(clock, &ts), 0);
        return (uint64_t) ts.tv_sec * 1000000000U + (uint64_t) ts.tv_nsec;
}

/* In steps, because not every kernel lets one sleep on the CPU clock of another process. */
static void wait_until(clockid_t clock, uint64_t ns) {
        static const struct timespec pause = { .tv_nsec = 10 * MSEC };

        while (clock_ns(clock) < ns)
                (void) nanosleep(&pause, NULL);
}

/* The process with the back end: says "ready", and on each line that it reads what was reported. */
static int host_main(const char *const *keys) {
        void *state = NULL;
        Engine *engine;
        char line[16];

        if (engine_setup(&state) < 0)
                return 1;
        engine = state;
        (void) engine_add(engine, keys, NULL);
        (void) printf("%s\nready\n", engine->backend->ops->deadline_mode(engine->backend));
        (void) fflush(stdout);

        while (fgets(line, sizeof(line), stdin)) {
                engine_collect(engine);
                for (size_t i = 0; i < engine->n_reports; i++) {
                        const Report *r = &engine->reports[i];

                        (void) printf("%u %u %llu %llu %llu\n", r->type, r->state,
                                      (unsigned long long) r->time_ns,
                                      (unsigned long long) r->late_ns,
                                      (unsigned long long) r->elapsed_ns);
                }
                (void) printf("end\n");
                (void) fflush(stdout);
                engine->n_reports = 0;
        }
        return engine_teardown(&state);
}

/* Returns whether deadlines of those that run are left to the tick. */
static bool host_start(Victim *host, const char *keys) {
        char words[256], mode[64];

        (void) snprintf(words, sizeof(words), "host Executable %%v Function victim_a %s", keys);
        program_start(host, "/proc/self/exe", words);
        if (!fgets(mode, sizeof(mode), host->out))
                fail_msg("The process with the back end did not start.");
        victim_expect(host, "ready");
        return strcmp(mode, "switch-tick\n") == 0;
}

static void host_stop(Victim *host) {
        int status;

        assert_int_equal(kill(host->pid, SIGSTOP), 0);
        assert_int_equal(waitpid(host->pid, &status, WUNTRACED), host->pid);
        assert_true(WIFSTOPPED(status));
}

/* Lets it go on, and say what was reported; there is one violation, and nothing else. */
static Finding host_ask(Victim *host) {
        Finding finding = {};
        char line[128];
        size_t n = 0;

        assert_int_equal(kill(host->pid, SIGCONT), 0);
        victim_continue(host);
        while (fgets(line, sizeof(line), host->out) && strcmp(line, "end\n") != 0) {
                assert_int_equal(sscanf(line, "%u %u %llu %llu %llu", &finding.type, &finding.state,
                                        &finding.time_ns, &finding.late_ns, &finding.elapsed_ns),
                                 5);
                n++;
        }
        assert_int_equal(n, 1);
        assert_int_equal(finding.type, REPORT_VIOLATION);
        return finding;
}

/* One window that never ends, and who shares its CPU. */
typedef struct Case {
        const char *keys;  /* budgets of the binding */
        const char *words; /* of the victim, which says "inside" */
        const char *other; /* what another one does, on the same CPU, from then on */
        bool other_has_priority;
        bool stays;      /* the victim is left asleep where it says that */
        bool runs;       /* until it has run for so long: others may take its CPU */
        unsigned states; /* bit mask: those that the task may be in then */
} Case;

static void start_other(Victim *other, const Case *c) {
        const struct sched_param parameter = { .sched_priority = 1 };

        if (!c->other)
                return;
        victim_start(other, c->other);
        victim_expect(other, "ready");
        if (c->other_has_priority && sched_setscheduler(other->pid, SCHED_FIFO, &parameter) < 0)
                fail_msg("SCHED_FIFO is not allowed here.");
}

#define CPUS_MAX 64

/* Our own timer on one CPU. */
typedef struct Watch {
        pthread_t thread;
        unsigned cpu;
        uint64_t due_ns;
        uint64_t late_ns;
} Watch;

static void *watch_run(void *arg) {
        Watch *watch = arg;
        const struct timespec due = { (time_t) (watch->due_ns / 1000000000U),
                                      (long) (watch->due_ns % 1000000000U) };

        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0)
                ;
        watch->late_ns = now_ns() - watch->due_ns;
        return NULL;
}

static void watch_start(Watch *watch, bool has_priority) {
        const struct sched_param parameter = { .sched_priority = has_priority ? 99 : 0 };
        pthread_attr_t attr;
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(watch->cpu, &set);
        assert_int_equal(pthread_attr_init(&attr), 0);
        assert_int_equal(pthread_attr_setaffinity_np(&attr, sizeof(set), &set), 0);
        assert_int_equal(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED), 0);
        assert_int_equal(
                pthread_attr_setschedpolicy(&attr, has_priority ? SCHED_FIFO : SCHED_OTHER), 0);
        assert_int_equal(pthread_attr_setschedparam(&attr, &parameter), 0);
        assert_int_equal(pthread_create(&watch->thread, &attr, watch_run, watch), 0);
        assert_int_equal(pthread_attr_destroy(&attr), 0);
}

static size_t n_cpus(void) {
        long n = sysconf(_SC_NPROCESSORS_ONLN);

        assert_true(n > 0);
        return n < CPUS_MAX ? (size_t) n : CPUS_MAX;
}

/* has_priority: over real-time tasks. */
static void watches_start(Watch watches[static CPUS_MAX], bool has_priority, uint64_t due_ns) {
        for (unsigned i = 0; i < n_cpus(); i++) {
                watches[i] = (Watch) { .cpu = i, .due_ns = due_ns };
                watch_start(&watches[i], has_priority);
        }
}

/* The latest of them. */
static uint64_t watches_finish(Watch watches[static CPUS_MAX]) {
        uint64_t late_ns = 0;

        for (unsigned i = 0; i < n_cpus(); i++) {
                assert_int_equal(pthread_join(watches[i].thread, NULL), 0);
                if (watches[i].late_ns > late_ns)
                        late_ns = watches[i].late_ns;
        }
        return late_ns;
}

/*
 * How late the violation was found, and how late our own timers were. Returns whether the deadline
 * came when all was in place: this process may have to wait for its CPU, too.
 */
static bool check_once(Victim *host, const Case *c, uint64_t bound_ns, uint64_t *ret_late_ns,
                       uint64_t *ret_own_ns) {
        _cleanup_(victim_done) Victim victim = {}, other = {};
        uint64_t in_place_ns, continued_ns, begin_ns;
        Watch watches[CPUS_MAX];
        clockid_t clock = CLOCK_MONOTONIC;
        Finding finding;

        start_other(&other, c);
        victim_start(&victim, c->words);
        victim_expect(&victim, "inside");
        host_stop(host);
        if (c->runs)
                assert_int_equal(clock_getcpuclockid(victim.pid, &clock), 0);
        begin_ns = clock_ns(clock);
        if (!c->stays)
                victim_continue(&victim);
        if (c->other)
                victim_continue(&other);
        in_place_ns = now_ns();
        watches_start(watches, c->other_has_priority, in_place_ns + BUDGET_NS + bound_ns);

        wait_until(clock, begin_ns + BUDGET_NS + 2 * slack_ns() + 20 * MSEC);
        *ret_own_ns = watches_finish(watches);
        continued_ns = now_ns();
        finding = host_ask(host);

        /* The end of the window is reported too, in its time. */
        victim_done(&victim);
        victim_continue(host);
        victim_expect(host, "end");
        if (in_place_ns >= finding.time_ns - finding.late_ns)
                return false;

        /* It was stopped from before the deadline until after the record. */
        assert_true(finding.time_ns < continued_ns);
        assert_true(c->states & (1U << finding.state));
        *ret_late_ns = finding.late_ns;
        return true;
}

/*
 * The kernel runs timers of BPF programs in soft interrupts, and leaves these to a thread when they
 * are many: no timer of ours is late then. So of the windows, one may be found later.
 */
static void check(const Case *c, bool running) {
        _cleanup_(victim_done) Victim host = {};
        bool by_tick = host_start(&host, c->keys);
        uint64_t bound_ns = slack_ns() + (running && by_tick ? tick_ns() : 0);
        unsigned n = 0, n_late = 0;

        for (unsigned i = 0; n < TIMES; i++) {
                uint64_t late_ns, own_ns;

                assert_true(i < TRIES);
                if (!check_once(&host, c, bound_ns, &late_ns, &own_ns))
                        continue;
                n++;
                print_message("late by %.3f ms of at most %.3f ms, our own timers by %.3f ms\n",
                              (double) late_ns / MSEC, (double) bound_ns / MSEC,
                              (double) own_ns / MSEC);
                n_late += late_ns > bound_ns + own_ns + slack_ns();
        }
        assert_in_range(n_late, 0, 1);
        assert_int_equal(close(TAKE_FD(host.in)), 0);
        victim_finish(&host);
        assert_int_equal(host.status, 0);
}

static void test_asleep(void **state) {
        check(&(Case) { .keys = "BudgetSec 200ms",
                        .words = "a( say:inside )",
                        .stays = true,
                        .states = 1U << TLOB_SLEEPING },
              false);
}

static void test_asleep_for_too_long(void **state) {
        check(&(Case) { .keys = "BudgetSec infinity SleepingBudgetSec 200ms",
                        .words = "a( say:inside )",
                        .stays = true,
                        .states = 1U << TLOB_SLEEPING },
              false);
}

/*
 * Its window begins when the back end is stopped already, and it never leaves its CPU from then on.
 */
static void test_running(void **state) {
        check(&(Case) { .keys = "BudgetSec 200ms",
                        .words = "pin:0 say:inside a( spin:1000000000000 )",
                        .runs = true,
                        .states = 1U << TLOB_RUNNING | 1U << TLOB_WAITING },
              true);
}

static void test_running_for_too_long(void **state) {
        check(&(Case) { .keys = "BudgetSec infinity RunningBudgetSec 200ms",
                        .words = "pin:0 say:inside a( spin:1000000000000 )",
                        .runs = true,
                        .states = 1U << TLOB_RUNNING | 1U << TLOB_WAITING },
              true);
}

/* The other one may not be there for long: a real-time task gets 95 % of each second at most. */
static void test_waiting_behind_a_real_time_task(void **state) {
        check(&(Case) { .keys = "BudgetSec 200ms",
                        .words = "pin:0 a( say:inside spin:1000000000000 )",
                        .other = "pin:0 say:ready spin:600000000",
                        .other_has_priority = true,
                        .states = 1U << TLOB_WAITING },
              false);
}

static void test_taking_turns(void **state) {
        check(&(Case) { .keys = "BudgetSec 200ms",
                        .words = "pin:0 a( say:inside spin:1000000000000 )",
                        .other = "pin:0 say:ready spin:1000000000000",
                        .states = 1U << TLOB_RUNNING | 1U << TLOB_WAITING },
              true);
}

int main(int argc, char *argv[]) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_asleep),
                cmocka_unit_test(test_asleep_for_too_long),
                cmocka_unit_test(test_running),
                cmocka_unit_test(test_running_for_too_long),
                cmocka_unit_test(test_waiting_behind_a_real_time_task),
                cmocka_unit_test(test_taking_turns),
        };

        if (argc > 1 && strcmp(argv[1], "host") == 0) {
                /* Programs that stay behind are seen by other tests. */
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                return host_main((const char *const *) argv + 2);
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
