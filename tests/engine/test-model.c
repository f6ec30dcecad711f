/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Random programs, and what a model of the contract says must be counted of them: what the back end
 * counts must be exactly that. A seed decides about program, bindings and budgets. It is printed
 * when its books differ.
 *
 *   TLOB_TEST_SEED=N    begin there, and run this one only
 *   TLOB_TEST_SEEDS=N   so many (default: 1000)
 *
 * Probes are slow to set and to take away, so GROUP_SIZE seeds in a row share their bindings, with
 * other budgets for each.
 *
 * A process gets its probes on longjmp() some milliseconds after its first window began, and these
 * programs do not take longer. So a crowd of others stands by, with which those probes are in all
 * processes.
 */

#include <inttypes.h>
#include <poll.h>

#include "bpf/crowd.h"
#include "bpf/uprobe.h"
#include "engine.h"
#include "model.h"
#include "program.h"
#include "test.h"

#define GROUP_SIZE    50
#define SEEDS_DEFAULT 1000
#define CROWD_SIZE    (CROWD_PROCESSES_MAX + 1)

/* All bindings of one seed. */
typedef struct Set {
        ModelBinding bindings[MODEL_BINDINGS_MAX];
        uint32_t index[MODEL_BINDINGS_MAX];
        size_t n;
} Set;

/* What one binding has counted, and what it should have. */
typedef struct Line {
        const char *what;
        uint64_t seen;
        uint64_t min;
        uint64_t max;
} Line;

static const char *symbol(const char *word) {
        static const struct {
                const char *word;
                const char *symbol;
        } symbols[] = {
                { "a", "victim_a" },        { "b", "victim_b" },        { "c", "victim_c" },
                { "<x", "victim_begin_x" }, { ">x", "victim_end_x" },   { "<y", "victim_begin_y" },
                { ">y", "victim_end_y" },   { "<z", "victim_begin_z" }, { ">z", "victim_end_z" },
        };

        for (size_t i = 0; i < ELEMENTSOF(symbols); i++)
                if (streq(symbols[i].word, word))
                        return symbols[i].symbol;
        fail_msg("There is no '%s'.", word);
        return NULL;
}

/*
 * Mostly functions with their returns. A start and a stop of other functions may lie anywhere, but
 * no start where another binding has a stop: which of them is first is not said.
 */
static ModelBinding make_binding(Random *random) {
        static const char *const functions[] = { "a", "b", "c" };
        static const char *const starts[] = { "a", "<x", "<y", "<z" };
        static const char *const stops[] = { ">x", ">y", ">z" };
        ModelBinding b = {};

        if (random_below(random, 100) < 55) {
                b.start = functions[random_below(random, ELEMENTSOF(functions))];
        } else {
                b.start = starts[random_below(random, ELEMENTSOF(starts))];
                b.stop = stops[random_below(random, ELEMENTSOF(stops))];
        }
        return b;
}

static void set_add(Set *set, Engine *engine, uint64_t group) {
        Random random = { .state = group };

        set->n = 2 + random_below(&random, MODEL_BINDINGS_MAX - 2);
        for (size_t i = 0; i < set->n; i++) {
                ModelBinding *b = &set->bindings[i];

                *b = make_binding(&random);
                set->index[i] = engine_add(engine,
                                           KEYS("Executable", "%v", "BudgetSec", "infinity",
                                                "Start", symbol(b->start), "Stop",
                                                b->stop ? symbol(b->stop) : "return"),
                                           NULL);
        }
}

/*
 * As low as can be, in the middle, out of reach, or none: the model need not tell the last two
 * apart.
 */
static void set_budgets(Set *set, Engine *engine, Random *random) {
        static const uint64_t total_ns[] = { 1000, 30000, 60000000000, BUDGET_NONE };
        static const uint64_t state_ns[] = { 1000, 3600000000000, BUDGET_NONE, BUDGET_NONE };

        for (size_t i = 0; i < set->n; i++) {
                ModelBinding *b = &set->bindings[i];
                uint64_t budget_ns[TLOB_N_BUDGETS];

                budget_ns[TLOB_BUDGET_TOTAL] = total_ns[random_below(random, ELEMENTSOF(total_ns))];
                budget_ns[TLOB_BUDGET_RUNNING] =
                        state_ns[random_below(random, ELEMENTSOF(state_ns))];
                budget_ns[TLOB_BUDGET_WAITING] = BUDGET_NONE;
                budget_ns[TLOB_BUDGET_MINIMUM] = BUDGET_NONE;
                budget_ns[TLOB_BUDGET_SLEEPING] =
                        state_ns[random_below(random, ELEMENTSOF(state_ns))];
                assert_int_equal(
                        engine->backend->ops->set_budget(engine->backend, set->index[i], budget_ns),
                        0);

                b->total_ns = budget_ns[TLOB_BUDGET_TOTAL] <= 30000 ? budget_ns[TLOB_BUDGET_TOTAL]
                                                                    : MODEL_NEVER;
                b->running_ns = budget_ns[TLOB_BUDGET_RUNNING] <= 1000
                                        ? budget_ns[TLOB_BUDGET_RUNNING]
                                        : MODEL_NEVER;
                b->sleeping_ns = budget_ns[TLOB_BUDGET_SLEEPING] <= 1000
                                         ? budget_ns[TLOB_BUDGET_SLEEPING]
                                         : MODEL_NEVER;
        }
}

/* The counters of a and not yet of b. */
static Counters difference(const Counters *a, const Counters *b) {
        Counters d = *a;

        for (size_t i = 0; i < sizeof(d) / sizeof(uint64_t); i++)
                ((uint64_t *) &d)[i] -= ((const uint64_t *) b)[i];
        return d;
}

/* Whether each violation has been reported once, and so has its end; fills in what was reported. */
static bool reports_pair(const Engine *engine, uint32_t index, uint64_t *ret_violations,
                         uint64_t *ret_completions, uint64_t *ret_stops) {
        bool good = true;

        *ret_violations = *ret_completions = *ret_stops = 0;
        for (size_t i = 0; i < engine->n_reports; i++) {
                const Report *r = &engine->reports[i];
                size_t violations = 0, completions = 0;

                if (r->backend_index != index)
                        continue;
                for (size_t j = 0; j < engine->n_reports; j++) {
                        const Report *other = &engine->reports[j];

                        if (other->id != r->id)
                                continue;
                        good = good && other->backend_index == index && other->tid == r->tid &&
                               other->budget == r->budget;
                        violations += other->type == REPORT_VIOLATION;
                        completions += other->type == REPORT_COMPLETION;
                        /* The violation first, and of the same window. */
                        if (r->type == REPORT_VIOLATION && other->type == REPORT_COMPLETION)
                                good = good && j > i && other->elapsed_ns >= r->elapsed_ns &&
                                       other->time_ns - other->elapsed_ns ==
                                               r->time_ns - r->elapsed_ns;
                }
                good = good && violations == 1 && completions == 1;
                *ret_violations += r->type == REPORT_VIOLATION;
                *ret_completions += r->type == REPORT_COMPLETION;
                *ret_stops += r->type == REPORT_COMPLETION && r->end == TLOB_END_STOP;
        }
        return good;
}

/* Prints what differs. */
static bool compare_binding(const Engine *engine, uint32_t index, const Counters *s,
                            uint64_t n_open, const ModelBooks *m) {
        uint64_t violations, completions, stops;
        bool good = reports_pair(engine, index, &violations, &completions, &stops);

        if (!good)
                print_message("  violations and completions are not pairs\n");

        const Line lines[] = {
                { "starts", s->starts, m->starts, m->starts },
                { "stopped", s->in_budget + s->violated, m->stopped, m->stopped },
                { "exit", s->ended[TLOB_END_EXIT], m->exited, m->exited },
                { "exec", s->ended[TLOB_END_EXEC], m->execed, m->execed },
                { "abandoned", s->ended[TLOB_END_ABANDONED], m->abandoned, m->abandoned },
                { "removed", s->ended[TLOB_END_REMOVED], 0, 0 },
                { "open", n_open, 0, 0 },
                { "over limit", s->over_limit, m->over_limit, m->over_limit },
                { "nested", s->nested, m->nested, m->nested },
                { "unmatched", s->unmatched, m->unmatched, m->unmatched },
                { "lost", s->lost, 0, 0 },
                { "violated", s->violated, m->violated_min, m->violated_max },
                { "violations", s->violations, m->violations_min, m->violations_max },
                { "violations reported", violations, s->violations, s->violations },
                { "completions reported", completions, s->violations, s->violations },
                { "completions by the stop", stops, s->violated, s->violated },
        };
        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                if (lines[i].seen < lines[i].min || lines[i].seen > lines[i].max) {
                        good = false;
                        print_message("  %s: %" PRIu64 " instead of %" PRIu64 " to %" PRIu64 "\n",
                                      lines[i].what, lines[i].seen, lines[i].min, lines[i].max);
                }
        return good;
}

/*
 * The time in each state: if all windows were reported, then the reports say the same as the books.
 */
static bool compare_times(const Engine *engine, uint32_t index, const Counters *s) {
        uint64_t spent_ns[TLOB_N_STATES] = {};

        if (s->violations != s->starts - s->over_limit)
                return true;
        for (size_t i = 0; i < engine->n_reports; i++)
                if (engine->reports[i].backend_index == index &&
                    engine->reports[i].type == REPORT_COMPLETION &&
                    engine->reports[i].end != TLOB_END_ABANDONED)
                        for (size_t j = 0; j < TLOB_N_STATES; j++)
                                spent_ns[j] += engine->reports[i].spent_ns[j];
        if (memcmp(spent_ns, s->spent_ns, sizeof(spent_ns)) == 0)
                return true;
        print_message("  the states of all reports do not sum up to those of the books\n");
        return false;
}

/*
 * The victim has gone. A timer that found a violation on another CPU may be just about to hand its
 * report over.
 */
static void collect_all(Engine *engine, const Set *set, const Counters *before) {
        struct pollfd fd = { .fd = engine->backend->ops->get_fd(engine->backend),
                             .events = POLLIN };
        size_t expected = 0;

        for (size_t i = 0; i < set->n; i++)
                expected += 2 * (engine_statistics(engine, set->index[i]).counters.violations -
                                 before[i].violations);
        while (engine->n_reports < expected && poll(&fd, 1, 1000) > 0)
                engine_collect(engine);
}

typedef struct Run {
        void *engine;
        uint64_t seed;
        Victim crowd[CROWD_SIZE];
} Run;

typedef struct Totals {
        uint64_t windows;
        uint64_t violations;
        uint64_t undecided;
        uint64_t abandoned;
        uint64_t over_limit;
        uint64_t nested;
        uint64_t unmatched;
} Totals;

static void totals_add(Totals *totals, const Counters *s, const ModelBooks *m) {
        totals->windows += s->starts;
        totals->violations += s->violations;
        totals->undecided += m->violations_max - m->violations_min;
        totals->abandoned += s->ended[TLOB_END_ABANDONED];
        totals->over_limit += s->over_limit;
        totals->nested += s->nested;
        totals->unmatched += s->unmatched;
}

static void print_binding(const ModelBinding *b) {
        print_message("  %s to %s, budgets: %" PRId64 ", running %" PRId64 ", sleeping %" PRId64
                      " ns\n",
                      b->start, b->stop ?: "its return", (int64_t) b->total_ns,
                      (int64_t) b->running_ns, (int64_t) b->sleeping_ns);
}

static void print_reports(const Engine *engine, uint32_t index) {
        for (size_t i = 0; i < engine->n_reports; i++) {
                const Report *r = &engine->reports[i];

                if (r->backend_index != index)
                        continue;
                print_message("    %s %" PRIu64 ": task %u at %" PRIu64 ", elapsed %" PRIu64
                              " (%" PRIu64 " %" PRIu64 " %" PRIu64 "), budget %s, exceeded %x\n",
                              r->type == REPORT_VIOLATION ? "violation" : "completion", r->id,
                              r->tid, r->time_ns, r->elapsed_ns, r->spent_ns[0], r->spent_ns[1],
                              r->spent_ns[2], budget_to_string(r->budget), r->exceeded);
        }
}

static bool run_seed(Engine *engine, Set *set, uint64_t seed, Totals *totals) {
        _cleanup_(victim_done) Victim victim = {};
        _cleanup_free_ char *words = NULL;
        Counters before[MODEL_BINDINGS_MAX];
        ModelBooks books[MODEL_BINDINGS_MAX];
        Random random = { .state = ~seed };
        Program program;
        bool good = true;

        program_make(&random, &program);
        words = program_to_string(&program);
        set_budgets(set, engine, &random);
        (void) model_run(program.list, set->bindings, set->n, books);

        engine->n_reports = 0;
        for (size_t i = 0; i < set->n; i++)
                before[i] = engine_statistics(engine, set->index[i]).counters;
        engine_run(engine, &victim, words);
        collect_all(engine, set, before);

        for (size_t i = 0; i < set->n; i++) {
                Statistics after = engine_statistics(engine, set->index[i]);
                Counters s = difference(&after.counters, &before[i]);

                totals_add(totals, &s, &books[i]);
                if (compare_binding(engine, set->index[i], &s, after.open, &books[i]) &&
                    compare_times(engine, set->index[i], &s))
                        continue;
                print_binding(&set->bindings[i]);
                print_reports(engine, set->index[i]);
                good = false;
        }
        if (!good)
                print_message("TLOB_TEST_SEED=%" PRIu64 " failed: %s\n", seed, words);
        return good;
}

/* Of each of them, the back end of this group has seen a window. */
static void crowd_come(Engine *engine, Victim crowd[static CROWD_SIZE]) {
        if (!uprobe_multi_takes_processes())
                return;
        (void) engine_add(engine, FUNCTION("d", "infinity"), NULL);
        for (size_t i = 0; i < CROWD_SIZE; i++) {
                if (crowd[i].pid == 0)
                        victim_start(&crowd[i], "repeat:1000000 ( d( ) say:here )");
                else
                        victim_continue(&crowd[i]);
                victim_expect(&crowd[i], "here");
                engine_collect(engine);
        }
}

static uint64_t from_environment(const char *name, uint64_t otherwise) {
        const char *value = getenv(name);

        return value ? strtoull(value, NULL, 10) : otherwise;
}

static void test_books_are_those_of_the_model(void **state) {
        Run *run = *state;
        uint64_t n =
                from_environment("TLOB_TEST_SEEDS", getenv("TLOB_TEST_SEED") ? 1 : SEEDS_DEFAULT);
        uint64_t end, failed = 0;
        Totals totals = {};

        run->seed = from_environment("TLOB_TEST_SEED", 0);
        end = run->seed + n;
        while (run->seed < end) {
                Set set = {};

                assert_int_equal(engine_setup(&run->engine), 0);
                set_add(&set, run->engine, run->seed / GROUP_SIZE);
                crowd_come(run->engine, run->crowd);
                do {
                        failed += !run_seed(run->engine, &set, run->seed, &totals);
                        run->seed++;
                } while (run->seed < end && run->seed % GROUP_SIZE != 0);
                assert_int_equal(engine_teardown(&run->engine), 0);
                run->engine = NULL;
        }

        print_message("%" PRIu64 " seeds: %" PRIu64 " windows, %" PRIu64 " violations (%" PRIu64
                      " windows undecided), %" PRIu64 " abandoned, %" PRIu64
                      " over the limit, %" PRIu64 " nested starts, %" PRIu64 " unmatched stops\n",
                      n, totals.windows, totals.violations, totals.undecided, totals.abandoned,
                      totals.over_limit, totals.nested, totals.unmatched);
        if (failed > 0)
                fail_msg("%" PRIu64 " of %" PRIu64 " seeds failed.", failed, n);
}

static int setup(void **state) {
        static Run run;

        *state = &run;
        return 0;
}

/* What the fixture found wrong has ended the test in the middle of a seed. */
static int teardown(void **state) {
        Run *run = *state;

        if (run->engine) {
                print_message("TLOB_TEST_SEED=%" PRIu64 " failed.\n", run->seed);
                (void) engine_teardown(&run->engine);
        }
        for (size_t i = 0; i < CROWD_SIZE; i++)
                victim_done(&run->crowd[i]);
        return 0;
}

ENGINE_TESTS(model) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_books_are_those_of_the_model, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
