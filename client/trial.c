/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A binding is called "suggest-PID-N", by the process that has added it: whoever comes after one
 * that was killed can tell, and removes it.
 */

#include "trial.h"

#include <err.h>
#include <signal.h>

#include "base/sentence.h"
#include "lengths.h"
#include "proxy.h"
#include "tlob-bus.h"

#define NAME_FORMAT "suggest-%i-%zu"

/* Nobody has asked for this one in particular, so it may take less than others. */
#define CPU_LIMIT "25%"

static int remove_binding(Connection *connection, const char *name) {
        _cleanup_message_ sd_bus_message *call = NULL;
        _cleanup_free_ char *sentence = NULL;
        int r;

        r = connection_new_call(connection, NULL, TLOB_BUS_MANAGER_INTERFACE, "RemoveBinding",
                                &call);
        if (r >= 0)
                r = sd_bus_message_append(call, "st", name, UINT64_C(0));
        return r < 0 ? r : connection_ask(connection, call, NULL, &sentence);
}

/* Of a process that is no more. */
static bool is_orphan(const char *name) {
        int pid, end = 0;
        size_t n;

        return sscanf(name, NAME_FORMAT "%n", &pid, &n, &end) == 2 && name[end] == '\0' &&
               pid > 0 && kill(pid, 0) < 0 && errno == ESRCH;
}

static int remove_orphans(Connection *connection) {
        _cleanup_json_ json_object *bindings = NULL;
        int r;

        r = proxy_list_bindings(connection, &bindings);
        for (size_t i = 0; r >= 0 && i < json_object_array_length(bindings); i++) {
                const json_object *binding = json_object_array_get_idx(bindings, i);
                const char *name = json_string(binding, "Name");

                /* Somebody's own can be called so, and has a budget. */
                if (is_orphan(name) && json_number(binding, "BudgetNSec") == UINT64_MAX)
                        (void) remove_binding(connection, name);
        }
        return r;
}

static int append_keys(sd_bus_message *call, const char *name, const char *unit,
                       const Candidate *candidate) {
        const char *const keys[][2] = {
                { "Unit", unit },
                { "Executable", candidate->executable },
                { "Start", candidate->start },
                { "Stop", candidate->stop },
                { "BudgetSec", "infinity" },
                { "CPULimit", CPU_LIMIT },
        };
        int r;

        r = sd_bus_message_append(call, "s", name);
        if (r >= 0)
                r = sd_bus_message_open_container(call, 'a', "{sv}");
        for (size_t i = 0; i < ELEMENTSOF(keys) && r >= 0; i++)
                if (keys[i][1])
                        r = sd_bus_message_append(call, "{sv}", keys[i][0], "s", keys[i][1]);
        if (r >= 0)
                r = sd_bus_message_close_container(call);
        return r < 0 ? r : sd_bus_message_append(call, "t", UINT64_C(0));
}

int trial_init(Trial *trial, Connection *connection, const Candidates *candidates) {
        *trial = (Trial) { .connection = connection, .candidates = candidates };
        return remove_orphans(connection);
}

int trial_begin(Trial *trial, size_t candidate, const char *unit) {
        Measured *measured = &trial->measured[candidate];
        _cleanup_message_ sd_bus_message *call = NULL;
        _cleanup_free_ char *name = NULL;
        int r;

        if (asprintf(&name, NAME_FORMAT, getpid(), candidate) < 0) {
                name = NULL;
                return connection_complain_arguments(-ENOMEM);
        }
        r = connection_new_call(trial->connection, NULL, TLOB_BUS_MANAGER_INTERFACE, "AddBinding",
                                &call);
        if (r < 0)
                return r;
        r = append_keys(call, name, unit, &trial->candidates->items[candidate]);
        if (r < 0)
                return connection_complain_arguments(r);
        measured->was_tried = true;
        /* Where there is no answer, it may be there nevertheless. */
        trial->name = TAKE_PTR(name);
        r = connection_ask(trial->connection, call, NULL, &measured->refusal);
        if (r == -EREMOTEIO) {
                free(TAKE_PTR(trial->name));
                return 0;
        }
        if (r < 0) {
                warnx("%s", measured->refusal ?: "Out of memory");
                return r;
        }
        return 1;
}

/* The limit is ours: nobody is to do anything about it. */
static const char *explain(const char *reason) {
        return strstr(reason, "CPULimit=" CPU_LIMIT) ? "to measure it took more than " CPU_LIMIT
                                                       " of a CPU, as it is called often"
                                                     : reason;
}

static int read_measured(Connection *connection, const char *name, Measured *ret) {
        static const char *const states[] = { "RunningNSec", "WaitingNSec", "SleepingNSec" };
        _cleanup_free_ HistogramBucket *buckets = NULL;
        _cleanup_json_ json_object *binding = NULL;
        size_t n;
        int r;

        r = proxy_get_binding(connection, name, &binding);
        if (r < 0)
                return r;
        n = lengths_read(binding, &buckets);
        ret->n = lengths_count(buckets, n);
        if (streq(json_string(binding, "State"), "failed"))
                ret->refusal = strdup(explain(json_string(binding, "StateReason")));
        ret->max_ns = json_number(binding, "MaxNSec");
        ret->p50_ns = histogram_quantile(buckets, n, 500, ret->max_ns);
        ret->p99_ns = histogram_quantile(buckets, n, 990, ret->max_ns);
        ret->p999_ns = histogram_quantile(buckets, n, 999, ret->max_ns);
        ret->probes_ns = json_number(binding, "ProbesNSec");
        for (size_t state = 0; state < ELEMENTSOF(states); state++)
                ret->spent_ns[state] = json_number(binding, states[state]);
        return 0;
}

static void forget_binding(Trial *trial) {
        int r = trial->name ? remove_binding(trial->connection, trial->name) : 0;

        /* To be refused is to hear that there is none. */
        if (r < 0 && r != -EREMOTEIO)
                warnx("'%s' may be left, which measures for nobody; remove it with 'tlobctl "
                      "remove-binding %s'",
                      trial->name, trial->name);
        free(TAKE_PTR(trial->name));
}

int trial_end(Trial *trial, size_t candidate) {
        int r;

        r = read_measured(trial->connection, trial->name, &trial->measured[candidate]);
        forget_binding(trial);
        return r;
}

static void measured_done(Measured *measured) {
        free(measured->refusal);
}

void trial_done(Trial *trial) {
        forget_binding(trial);
        for (size_t i = 0; i < CANDIDATES_MAX; i++)
                measured_done(&trial->measured[i]);
        *trial = (Trial) {};
}
