/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl suggest UNIT": finds out what to measure in a service that runs, in two steps. First,
 * its stacks are sampled: that shows in which functions and system calls it spends its time. Then
 * each of these is measured by a binding that reports nothing: only that shows how often it is
 * called, and how long a call takes. A drop-in for the service comes out, with budgets.
 *
 * "tlobctl suggest BINDING" proposes a budget for what is measured already.
 *
 * ^C ends a step early; what is known by then is shown. But while names are fetched, it ends all.
 * Other signals end it, with nothing left in place.
 */

#include <err.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/program.h"
#include "base/sentence.h"
#include "base/system-call.h"
#include "budget.h"
#include "debug-servers.h"
#include "lengths.h"
#include "note.h"
#include "proposal.h"
#include "proxy.h"
#include "suggest/members.h"
#include "suggest/sampler.h"
#include "suggest/sleepers.h"
#include "trial.h"
#include "unit-query.h"
#include "verbs.h"

#define DEFAULT_NS (60 * NSEC_PER_SEC)
#define STEP_MS    100
#define LOOK_MS    20
#define LEAST_NS   (200 * NSEC_PER_MSEC) /* for each candidate */
#define RARELY     5 /* between two looks, at least so many times as long as the last one took */

static volatile sig_atomic_t interrupted; /* this step is to end */
static volatile sig_atomic_t ended_by;    /* a signal: all of it is to end; 0: none */

static void on_signal(int number) {
        interrupted = 1;
        if (number != SIGINT)
                ended_by = number;
}

static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };

/* Not of one that whoever has started it has it ignore, as nohup does. */
static void handle_signals(int how, void (*handler)(int number)) {
        const struct sigaction action = { .sa_handler = handler };
        static bool are_known, is_ignored[ELEMENTSOF(signals)];
        struct sigaction before;
        sigset_t mask;

        for (size_t i = 0; i < ELEMENTSOF(signals) && !are_known; i++)
                is_ignored[i] =
                        sigaction(signals[i], NULL, &before) >= 0 && before.sa_handler == SIG_IGN;
        are_known = true;
        (void) sigemptyset(&mask);
        for (size_t i = 0; i < ELEMENTSOF(signals); i++)
                if (!is_ignored[i]) {
                        (void) sigaddset(&mask, signals[i]);
                        (void) sigaction(signals[i], &action, NULL);
                }
        (void) sigprocmask(how, &mask, NULL);
}

/*
 * Whatever it is told, it takes its binding away. Signals come while it waits only, and so
 * interrupt no call.
 */
static void catch_signals(void) {
        handle_signals(SIG_BLOCK, on_signal);
}

/* It ends at once; but not by a ^C that was meant for the step before. */
static void let_signals_end(void) {
        (void) signal(SIGINT, SIG_IGN);
        handle_signals(SIG_UNBLOCK, SIG_DFL);
}

/* When nothing of it is left: who waits for it is to see that it was a signal. */
static void end_by_signal(void) {
        if (ended_by == 0)
                return;
        let_signals_end();
        (void) raise(ended_by);
}

static void wait_ms(int ms) {
        const struct timespec time = { ms / 1000, (long) (ms % 1000) * 1000000 };
        sigset_t none;

        (void) sigemptyset(&none);
        (void) ppoll(NULL, 0, &time, &none);
}

/* How far a step is, on a terminal. what: NULL when it is over. */
static void show_progress(const char *what, uint64_t done_ns, uint64_t whole_ns) {
        static uint64_t shown = UINT64_MAX;

        if (!isatty(STDERR_FILENO) || (what && done_ns / NSEC_PER_SEC == shown))
                return;
        shown = what ? done_ns / NSEC_PER_SEC : UINT64_MAX;
        if (what)
                (void) fprintf(stderr, "\r%s: %" PRIu64 " of %" PRIu64 " s (^C to go on)", what,
                               done_ns / NSEC_PER_SEC, whole_ns / NSEC_PER_SEC);
        else
                (void) fprintf(stderr, "\r\033[K");
}

#define CALLS_N 1024

/* What was seen of a service. */
typedef struct Look {
        Members members;
        Sleepers sleepers;
        Stacks *stacks;
        Stretches *stretches;
        uint64_t weight_ns; /* what a sample stands for */
        uint64_t n_samples;
        uint64_t n_unknown; /* of these, which could not be unwound */
        uint64_t n_lost;
        uint64_t spent_ns[CALLS_N]; /* in system calls, by their number */
        uint64_t idle_ns[CALLS_N];  /* the same of those in which they wait for work */
} Look;

static void look_done(Look *look) {
        stretches_free(look->stretches);
        stacks_free(look->stacks);
        sleepers_done(&look->sleepers);
        members_done(&look->members);
}

/* Who had that stack; n: 0 if it could not be unwound. Returns 0 or -ENOMEM. */
static int unwind(Look *look, const StackSample *sample, StretchFrame *frames, StretchStack *ret) {
        bool is_complete = false;
        int n = stacks_unwind(look->stacks, sample, frames, &is_complete);

        if (n < 0)
                return n;
        look->n_samples++;
        look->n_unknown += n == 0;
        *ret = (StretchStack) {
                .tid = sample->tid,
                .frames = frames,
                .n = (size_t) n,
                .is_complete = n > 0 && is_complete,
        };
        return 0;
}

static int on_runner(const StackSample *sample, void *userdata) {
        StretchFrame frames[STRETCH_FRAMES_MAX];
        Look *look = userdata;
        StretchStack stack;
        int r;

        if (!members_have(&look->members, sample->pid))
                return 0;
        r = unwind(look, sample, frames, &stack);
        return r < 0 ? r : stretches_add(look->stretches, &stack, look->weight_ns);
}

/* A futex can be a lock that somebody holds, or something that is not there yet. */
static bool is_idle(const Look *look, uint32_t call, const StretchFrame *frames, size_t n) {
        _cleanup_free_ char *name = system_call_get_name(call);

        if (!name)
                return false;
        return streq(name, "futex") ? !stacks_wait_for_lock(look->stacks, frames, n)
                                    : call_is_of_waiting(name);
}

static int on_sleeper(const StackSample *sample, uint32_t call, void *userdata) {
        StretchFrame frames[STRETCH_FRAMES_MAX];
        Look *look = userdata;
        StretchStack stack;
        int r;

        r = unwind(look, sample, frames, &stack);
        if (r < 0)
                return r;
        stack.is_idle = is_idle(look, call, frames, stack.n);
        if (call < CALLS_N)
                *(stack.is_idle ? &look->idle_ns[call] : &look->spent_ns[call]) += look->weight_ns;
        return stretches_add(look->stretches, &stack, look->weight_ns);
}

/* Who sleeps has done so since the last time. */
static int look_once(Look *look, Sampler *sampler, uint64_t since_ns) {
        uint64_t now = now_ns();
        int r;

        look->weight_ns = sampler_get_period(sampler);
        r = sampler_dispatch(sampler, on_runner, look);
        look->weight_ns = now - since_ns;
        return r < 0 ? r : sleepers_look(&look->sleepers, now, on_sleeper, look);
}

static int sample(Look *look, uint64_t whole_ns) {
        uint64_t begin_ns = now_ns(), looked_ns = begin_ns, done_ns = 0;
        _cleanup_(sampler_freep) Sampler *sampler = NULL;
        _cleanup_free_ char *error = NULL;
        int r, took_ms = 0;

        r = sampler_new(&sampler, &error);
        if (r < 0) {
                warnx("%s", error ?: "Out of memory");
                return r;
        }
        while (r >= 0 && !interrupted && done_ns < whole_ns) {
                uint64_t woken_ns;

                show_progress("Looking where its time goes", done_ns, whole_ns);
                /* To look at many threads takes long: the machine has better things to do. */
                wait_ms(took_ms > LOOK_MS / RARELY ? took_ms * RARELY : LOOK_MS);
                woken_ns = now_ns();
                r = look_once(look, sampler, looked_ns);
                looked_ns = now_ns();
                took_ms = (int) ((looked_ns - woken_ns) / NSEC_PER_MSEC);
                done_ns = looked_ns - begin_ns;
        }
        show_progress(NULL, 0, 0);
        look->n_lost = sampler_count_lost(sampler);
        if (r < 0)
                warnx("Out of memory");
        return r;
}

static int look_at(Look *look, const char *cgroup, uint64_t whole_ns) {
        int r;

        look->members.cgroup = cgroup;
        look->sleepers.members = &look->members;
        r = stacks_new(&look->stacks);
        if (r >= 0)
                r = stretches_new(&look->stretches);
        if (r < 0) {
                warnx("Out of memory");
                return r;
        }
        return sample(look, whole_ns);
}

/* Then nothing is in place that had to be taken back. */
static void fetch_names(const Look *look) {
        _cleanup_(debug_servers_freep) DebugServers *servers = debug_servers_new();

        if (!servers)
                return;
        let_signals_end();
        candidates_fetch_names(look->stretches, look->stacks, debug_servers_find, servers);
        catch_signals();
}

/* What libraries have that its main process sees. */
static int add_libraries(const Look *look, uint32_t pid, const char *program,
                         Candidates *candidates) {
        const char *inside;
        size_t i = 0;
        int r = 0;

        while (r >= 0 && (inside = stacks_next_file(look->stacks, &i))) {
                _cleanup_free_ char *outside = NULL;

                if (streq(inside, program))
                        continue;
                outside = sentence_make("/proc/%" PRIu32 "/root%s", pid, inside);
                r = outside ? candidates_add_usdt(candidates, look->stretches, look->stacks,
                                                  outside, inside)
                            : -ENOMEM;
        }
        return r;
}

/* What the program that its main process runs has, and what it does; and its libraries. */
static int add_program(Client *client, const Look *look, const char *unit, Candidates *candidates) {
        uint32_t pid = unit_main_pid_query(&client->connection, unit);
        _cleanup_free_ char *inside = NULL;
        char outside[64];
        int r;

        r = program_of_process(pid, &inside);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        path_strip_deleted(inside);
        (void) snprintf(outside, sizeof(outside), "/proc/%" PRIu32 "/exe", pid);
        r = candidates_add_loop(candidates, look->idle_ns, CALLS_N, outside);
        if (r >= 0)
                r = candidates_add_usdt(candidates, look->stretches, look->stacks, outside, inside);
        return r < 0 ? r : add_libraries(look, pid, inside, candidates);
}

/* What is left of that time for one of so many candidates: to change them takes time, too. */
static uint64_t share_of(uint64_t begin_ns, uint64_t whole_ns, size_t n_left) {
        uint64_t done_ns = now_ns() - begin_ns,
                 left_ns = whole_ns > done_ns ? whole_ns - done_ns : 0;

        return left_ns / n_left > LEAST_NS ? left_ns / n_left : LEAST_NS;
}

/* begin_ns and whole_ns: of all candidates. */
static void wait_for_windows(uint64_t for_ns, uint64_t begin_ns, uint64_t whole_ns) {
        uint64_t now = now_ns(), until_ns = now + for_ns;

        while (!interrupted && now < until_ns) {
                uint64_t done_ns = now - begin_ns;

                show_progress("Measuring what was found", done_ns < whole_ns ? done_ns : whole_ns,
                              whole_ns);
                wait_ms(STEP_MS);
                now = now_ns();
        }
}

static int try(Trial *trial, Client *client, const Candidates *candidates, const char *unit,
               uint64_t whole_ns) {
        uint64_t begin_ns = now_ns();
        int r;

        interrupted = 0;
        r = trial_init(trial, &client->connection, candidates);
        for (size_t i = 0; i < candidates->n && r >= 0 && !interrupted; i++) {
                r = trial_begin(trial, i, unit);
                if (r > 0) {
                        wait_for_windows(share_of(begin_ns, whole_ns, candidates->n - i), begin_ns,
                                         whole_ns);
                        r = trial_end(trial, i);
                }
        }
        show_progress(NULL, 0, 0);
        return r;
}

/* What could not be seen, and why. */
static void remark(const Look *look, const Trial *trial) {
        if (look->n_unknown > 0)
                note("%" PRIu64 " of %" PRIu64 " stacks could not be read: their processes had "
                     "ended, their files could not be opened, or there were too many of them",
                     look->n_unknown, look->n_samples);
        if (look->n_lost > 0)
                note("%" PRIu64 " samples were lost: the machine is very busy", look->n_lost);
        for (size_t i = 0; i < trial->candidates->n; i++) {
                const Candidate *candidate = &trial->candidates->items[i];
                const Measured *measured = &trial->measured[i];

                if (measured->refusal)
                        note("%s: %s", candidate->label, measured->refusal);
                else if (measured->was_tried && measured->n == 0 && candidate->executable)
                        note("%s: no window of it has ended meanwhile", candidate->label);
        }
}

/* The daemon would measure what is at their paths now. */
static void remark_old_files(const Candidates *candidates, const char *unit) {
        for (size_t i = 0; i < candidates->n_old; i++) {
                const char *path = candidates->old[i].path;

                if (candidates->old[i].fate == FILE_REPLACED)
                        note("%s was replaced while %s ran: restart the unit, so that functions in "
                             "this file can be measured",
                             path, unit);
                else
                        note("%s was deleted while %s ran: functions in this file cannot be "
                             "measured",
                             path, unit);
        }
}

static int suggest_for_unit(Client *client, const char *name) {
        uint64_t whole_ns = client->options.time_ns ?: DEFAULT_NS;
        _cleanup_(candidates_done) Candidates candidates = {};
        _cleanup_free_ char *unit = NULL, *cgroup = NULL;
        _cleanup_(trial_done) Trial trial = {};
        _cleanup_(look_done) Look look = {};
        int r;

        catch_signals();
        r = unit_cgroup_query(&client->connection, name, &unit, &cgroup);
        if (r >= 0)
                r = look_at(&look, cgroup, whole_ns / 2);
        if (r >= 0 && ended_by > 0)
                r = -EINTR;
        if (r < 0)
                return r;
        fetch_names(&look);
        r = candidates_add_functions(&candidates, look.stretches, look.stacks);
        if (r >= 0)
                r = candidates_add_calls(&candidates, look.spent_ns, CALLS_N,
                                         stretches_get_spent(look.stretches));
        if (r >= 0)
                r = add_program(client, &look, unit, &candidates);
        if (r < 0)
                return connection_complain_reply(r);
        remark_old_files(&candidates, unit);
        if (candidates.n == 0) {
                warnx("Nothing was found to be measured in %s, in %" PRIu64 " stacks: %s", unit,
                      look.n_samples,
                      look.n_samples == 0 ? "it did nothing"
                                          : "no function in which it spends time was seen to end");
                return -ENOENT;
        }
        note("%zu functions and calls are measured now, one after the other. What is called very "
             "often slows %s down for about a second, until it is given up",
             candidates.n, unit);
        r = try(&trial, client, &candidates, unit, whole_ns - whole_ns / 2);
        if (r >= 0 && ended_by > 0)
                r = -EINTR;
        if (r < 0)
                return r;
        remark(&look, &trial);
        r = proposal_show(&client->output, &trial, unit);
        if (r == -ENODATA) {
                warnx("There is nothing to propose for %s: nothing of what was found could be "
                      "measured to its end. Try it with a longer --for=, while it has work to do",
                      unit);
                return r;
        }
        return r < 0 ? connection_complain_reply(r) : 0;
}

static int suggest_for_binding(Client *client, const char *name) {
        _cleanup_json_ json_object *binding = NULL;
        char budget[DURATION_MAX], text[DURATION_MAX];
        uint64_t n, p999, proposed;
        const char *quote;
        int r;

        r = proxy_get_binding(&client->connection, name, &binding);
        if (r < 0)
                return r;
        n = json_number(binding, "Windows");
        p999 = lengths_quantile(binding, 999);
        if (p999 == UINT64_MAX) {
                warnx("%s has measured no windows yet", name);
                return -ENODATA;
        }
        proposed = budget_propose(p999);
        if (client->output.json != JSON_OFF) {
                r = json_add_number(binding, "ProposedBudgetNSec", proposed);
                return r < 0 ? r : output_json(&client->output, binding);
        }
        (void) duration_format(proposed, budget);
        /* "1min 6s", "foo\\x2dbar.service/x": a shell takes it as it is. */
        quote = strpbrk(name, "\\") || strpbrk(budget, " ") ? "'" : "";
        (void) printf("%s: %" PRIu64 " windows, all but one in a thousand took up to %s. "
                      "Half as much more:\n\ntlobctl%s set-budget %s%s%s %s%s%s\n",
                      name, n, duration_format_short(p999, text),
                      options_scope_text(&client->options), quote, name, quote, quote, budget,
                      quote);
        if (n < BUDGET_WINDOWS_FEW)
                (void) printf("\nThere are fewer than %i windows: this is the longest one.\n",
                              BUDGET_WINDOWS_FEW);
        return 0;
}

/* Returns 1, 0, or a negative errno after it has said what is wrong. */
static int is_binding(Client *client, const char *name) {
        _cleanup_json_ json_object *bindings = NULL;
        int r;

        if (strchr(name, '/'))
                return 1;
        r = proxy_list_bindings(&client->connection, &bindings);
        for (size_t i = 0; r >= 0 && i < json_object_array_length(bindings); i++)
                if (streq(json_string(json_object_array_get_idx(bindings, i), "Name"), name))
                        return 1;
        return r;
}

ExitStatus verb_suggest(Client *client, int argc, char **argv) {
        int r;

        r = is_binding(client, argv[0]);
        if (r == 0 && client->options.user) {
                warnx("'%s' is not a binding, and what to measure in a unit cannot be suggested "
                      "with --user: sampling stacks requires root",
                      argv[0]);
                return STATUS_FAILED;
        }
        if (r >= 0)
                r = r > 0 ? suggest_for_binding(client, argv[0])
                          : suggest_for_unit(client, argv[0]);
        end_by_signal();
        return status_of(r);
}
