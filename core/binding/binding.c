/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A binding, from configuration to the places in a file where its probes go. It knows neither where
 * its text came from (config.c, bus) nor how it is measured (back ends), and attaches nothing.
 *
 * What is configured and what was resolved from it stay apart, so that a binding can be resolved
 * again when its file was replaced. The keys and their values are in binding/keys.c.
 */

#include "binding/binding.h"

#include <ctype.h>
#include <sys/stat.h>
#include <syslog.h>

#include "base/sentence.h"
#include "base/system-call.h"
#include "base/trace-event.h"
#include "base/unit-name.h"
#include "elf/mark.h"

int binding_new(const char *name, Binding **ret) {
        _cleanup_(binding_freep) Binding *binding = NULL;

        if (!binding_full_name_is_valid(name))
                return -EINVAL;

        binding = malloc(sizeof(*binding));
        if (!binding)
                return -ENOMEM;
        *binding = (Binding) {
                .priority = LOG_WARNING,
                .enabled = true,
                .cpu_limit = BINDING_CPU_LIMIT,
                .on_violation_interval_ns = BINDING_ON_VIOLATION_NS,
                .tolerance_window_ns = BINDING_TOLERANCE_NS,
                .measurement.state = BINDING_WAITING,
        };
        for (size_t i = 0; i < TLOB_N_BUDGETS; i++)
                binding->configured_budget_ns[i] = binding->budget_ns[i] = BUDGET_NONE;
        binding->name = strdup(name);
        if (!binding->name)
                return -ENOMEM;

        *ret = TAKE_PTR(binding);
        return 0;
}

static void source_done(BindingSource *source) {
        for (size_t i = 0; i < source->n_errors; i++)
                free(source->errors[i].text);
        free(source->errors);
        free(source->place);
}

void binding_sites_done(BindingSites *sites) {
        free(sites->key);
        elf_site_done(&sites->start);
        elf_site_done(&sites->stop);
        function_exits_done(&sites->exits);
}

static void resolved_done(BindingResolved *resolved) {
        binding_sites_done(&resolved->sites);
        free(resolved->build_id);
        free(resolved->start_code);
        free(resolved->inner_path);
        free(resolved->path);
}

static void forget_failures(BindingMeasurement *measurement) {
        for (size_t i = 0; i < ELEMENTSOF(measurement->failures); i++) {
                free(measurement->failures[i]);
                measurement->failures[i] = NULL;
        }
}

void binding_forget_failures(Binding *binding) {
        forget_failures(&binding->measurement);
}

static void measurement_done(BindingMeasurement *measurement) {
        free(measurement->reason);
        free(measurement->backend_reason);
        forget_failures(measurement);
        free(measurement->given_up);
        past_done(&measurement->past);
}

Binding *binding_free(Binding *binding) {
        if (!binding)
                return NULL;

        binding_free(binding->former);
        free(binding->tolerance_state.track);
        measurement_done(&binding->measurement);
        free(binding->look.remark);
        free(binding->look.kept);
        free(binding->cgroup.path);
        resolved_done(&binding->resolved);
        free(binding->view.unit);
        free(binding->view.root_directory);
        free(binding->view.program);
        free(binding->view.loaded);
        free(binding->lent.file);
        source_done(&binding->source);
        free(binding->tolerance_text);
        free(binding->on_violation);
        free(binding->build_id);
        free(binding->stop);
        free(binding->start);
        free(binding->executable);
        free(binding->unit);
        free(binding->name);
        free(binding);
        return NULL;
}

static bool consists_of(const char *s, size_t n, const char *punctuation) {
        for (size_t i = 0; i < n; i++)
                if (s[i] == '\0' || ((signed char) s[i] < 0) ||
                    (!isalnum((unsigned char) s[i]) && !strchr(punctuation, s[i])))
                        return false;
        return true;
}

bool binding_name_is_valid(const char *name) {
        size_t n = strlen(name);

        return n >= 1 && n <= BINDING_NAME_MAX && name[0] != '.' && consists_of(name, n, "-_.");
}

bool binding_full_name_is_valid(const char *name) {
        const char *slash = strchr(name, '/');
        char unit[UNIT_NAME_MAX + 1];

        if (!slash)
                return binding_name_is_valid(name);
        if ((size_t) (slash - name) >= sizeof(unit))
                return false;
        memcpy(unit, name, (size_t) (slash - name));
        unit[slash - name] = '\0';
        return unit_name_is_valid(unit) && binding_name_is_valid(slash + 1);
}

bool stop_is_return(const char *stop) {
        return streq(stop, "return") || streq(stop, "ret-sites") || streq(stop, "return-probe");
}

bool binding_stop_is_return(const Binding *binding) {
        return binding->stop && stop_is_return(binding->stop);
}

bool binding_is_of_mark(const Binding *binding) {
        const char *name;

        return mark_of_places(binding->start, binding->stop, &name) > 0;
}

static uint64_t decisive_budget(const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        uint64_t smallest = BUDGET_NONE;

        if (budget_ns[TLOB_BUDGET_TOTAL] != BUDGET_NONE)
                return budget_ns[TLOB_BUDGET_TOTAL];
        for (size_t i = TLOB_BUDGET_RUNNING; i <= TLOB_BUDGET_SLEEPING; i++)
                if (budget_ns[i] < smallest)
                        smallest = budget_ns[i];
        return smallest;
}

uint64_t binding_budget_ns(const Binding *binding) {
        return decisive_budget(binding->budget_ns);
}

uint64_t binding_configured_budget_ns(const Binding *binding) {
        return decisive_budget(binding->configured_budget_ns);
}

int binding_check_budget(uint64_t ns) {
        return ns == BUDGET_NONE || (ns >= BUDGET_MIN_NS && ns <= BUDGET_MAX_NS) ? 0 : -ERANGE;
}

bool binding_total_fits(const Binding *binding, uint64_t total_ns) {
        uint64_t minimum_ns = binding->configured_budget_ns[TLOB_BUDGET_MINIMUM];

        return minimum_ns == BUDGET_NONE || minimum_ns < total_ns;
}

static bool is_event(const char *place) {
        return place && trace_event_of_place(place);
}

bool binding_has_events(const Binding *binding) {
        return is_event(binding->start) || is_event(binding->stop);
}

bool binding_has_probe_events(const Binding *binding) {
        const BindingSites *sites = &binding->resolved.sites;

        return sites->start_event == TRACE_EVENT_PROBE || sites->stop_event == TRACE_EVENT_PROBE;
}

bool binding_has_call_events(const Binding *binding) {
        const BindingSites *sites = &binding->resolved.sites;

        return trace_event_is_of_call(sites->start_event) ||
               trace_event_is_of_call(sites->stop_event);
}

static bool has_call(const Binding *binding) {
        return binding->start && system_call_of_place(binding->start);
}

bool binding_has_file(const Binding *binding) {
        return !has_call(binding) && !binding_has_events(binding);
}

static bool is_usdt(const char *place) {
        return place && strncmp(place, USDT_PLACE, strlen(USDT_PLACE)) == 0;
}

bool binding_has_usdt(const Binding *binding) {
        return is_usdt(binding->start) || is_usdt(binding->stop);
}

bool binding_takes_program(const Binding *binding) {
        return !binding->executable && binding->unit && binding_has_file(binding);
}

bool binding_takes_library(const Binding *binding) {
        return binding->executable && *binding->executable != '\0' && *binding->executable != '/';
}

static int check_executable(const Binding *binding, char **ret_error) {
        /* What the unit's program is, only systemd knows. */
        if (binding_takes_program(binding))
                return 0;
        if (!binding->executable)
                return sentence_error(-EINVAL, ret_error,
                                      "Executable= is missing: write the absolute path of the "
                                      "program, or the name of a library such as libc.so.6");
        if (binding->executable[0] != '/' && strchr(binding->executable, '/'))
                return sentence_error(-EINVAL, ret_error,
                                      "Executable=%s is neither an absolute path nor the name of "
                                      "a library",
                                      binding->executable);
        if (!text_is_printable(binding->executable))
                return sentence_error(-EINVAL, ret_error,
                                      "Executable=%s has bytes that are not printable UTF-8",
                                      binding->executable);
        return 0;
}

static int check_call(const Binding *binding, char **ret_error) {
        const char *call = system_call_of_place(binding->start);

        if (binding->executable)
                return sentence_error(-EINVAL, ret_error,
                                      "Executable=%s and Syscall=%s exclude each other: a system "
                                      "call is measured whatever program makes it. Remove one of "
                                      "them",
                                      binding->executable, call);
        if (binding->build_id)
                return sentence_error(-EINVAL, ret_error,
                                      "BuildID=%s and Syscall=%s exclude each other: a system call "
                                      "is of no file. Remove one of them",
                                      binding->build_id, call);
        if (binding->stop && !streq(binding->stop, "return"))
                return sentence_error(-EINVAL, ret_error,
                                      "Stop=%s is not possible with Start=%s: the window of a "
                                      "system call ends when it returns. Write Stop=return",
                                      binding->stop, binding->start);
        return 0;
}

static int check_events(const Binding *binding, char **ret_error) {
        const char *start = binding->start ?: "", *stop = binding->stop ?: "";
        bool starts = is_event(binding->start);

        if (binding->executable)
                return sentence_error(-EINVAL, ret_error,
                                      "Executable=%s and %s=%s exclude each other: an event of the "
                                      "kernel is measured whatever program causes it. Remove one "
                                      "of them",
                                      binding->executable, starts ? "Start" : "Stop",
                                      starts ? start : stop);
        if (binding->build_id)
                return sentence_error(-EINVAL, ret_error,
                                      "BuildID=%s and %s=%s exclude each other: an event of the "
                                      "kernel is of no file. Remove one of them",
                                      binding->build_id, starts ? "Start" : "Stop",
                                      starts ? start : stop);
        if (binding->start && binding->stop && (!starts || !is_event(binding->stop)))
                return sentence_error(-EINVAL, ret_error,
                                      "Start=%s and Stop=%s do not go together: a window that "
                                      "begins or ends at an event of the kernel does both",
                                      start, stop);
        return 0;
}

static int check_places(const Binding *binding, char **ret_error) {
        if (binding_has_events(binding))
                return check_events(binding, ret_error);
        return has_call(binding) ? check_call(binding, ret_error)
                                 : check_executable(binding, ret_error);
}

bool binding_has_state_budget(const Binding *binding) {
        for (size_t i = TLOB_BUDGET_RUNNING; i <= TLOB_BUDGET_SLEEPING; i++)
                if (binding->budget_ns[i] != BUDGET_NONE)
                        return true;
        return false;
}

static int check_key(const Binding *binding, char **ret_error) {
        if (binding->key.number == 0)
                return 0;
        if (!binding_has_file(binding))
                return sentence_error(-EINVAL, ret_error,
                                      "Key=arg%u is not possible with Start=%s: only functions and "
                                      "USDT probes have arguments",
                                      binding->key.number, binding->start);
        if (binding_stop_is_return(binding))
                return sentence_error(-EINVAL, ret_error,
                                      "Key=arg%u is not possible with Stop=%s: there the window "
                                      "ends in the thread that it began in. Write Start= and Stop= "
                                      "with two functions that have the same argument",
                                      binding->key.number, binding->stop);
        if (binding_has_state_budget(binding))
                return sentence_error(
                        -EINVAL, ret_error,
                        "Key=arg%u is not possible with a budget of a state: of a window that any "
                        "thread may end only the length is known. Write BudgetSec= only",
                        binding->key.number);
        if (binding->choice == BACKEND_CHOICE_KERNEL)
                return sentence_error(-EINVAL, ret_error,
                                      "Key=arg%u is not possible with Backend=kernel: the kernel's "
                                      "monitor knows tasks only",
                                      binding->key.number);
        return 0;
}

/* systemd starts a service for tlobd as it would for root. */
static int check_rights(const Binding *binding, char **ret_error) {
        if (!binding->on_violation || binding->source.added_by == 0)
                return 0;
        return sentence_error(-EACCES, ret_error,
                              "OnViolation=%s starts a service as root would: only root may add a "
                              "binding with it",
                              binding->on_violation);
}

int binding_check(const Binding *binding, char **ret_error) {
        int r;

        r = check_places(binding, ret_error);
        if (r < 0)
                return r;
        if (!binding->start)
                return sentence_error(-EINVAL, ret_error,
                                      "Start= is missing: write where a window begins, or "
                                      "Function=, Mark= or Syscall= for all of it");
        if (!binding->stop)
                return sentence_error(-EINVAL, ret_error,
                                      "Stop= is missing: write where a window ends, such as "
                                      "Stop=return");
        if (streq(binding->start, binding->stop))
                return sentence_error(-EINVAL, ret_error,
                                      "Start= and Stop= are both '%s': a window needs two places",
                                      binding->start);
        r = check_key(binding, ret_error);
        if (r < 0)
                return r;
        if (binding->budgets_given == 0)
                return sentence_error(-EINVAL, ret_error,
                                      "BudgetSec= is missing: write the longest time that a window "
                                      "may take, or infinity to measure only");
        if (!binding_total_fits(binding, binding->configured_budget_ns[TLOB_BUDGET_TOTAL]))
                return sentence_error(-EINVAL, ret_error,
                                      "BudgetMinSec= is not shorter than BudgetSec=: no window "
                                      "could keep both");
        return check_rights(binding, ret_error);
}

int binding_set_state(Binding *binding, BindingState state, const char *reason) {
        int r;

        r = free_and_strdup(&binding->measurement.reason, reason);
        if (r < 0)
                return r;
        binding->measurement.state = state;
        return 0;
}

const char *binding_tolerance_state(const Binding *binding) {
        const BindingTolerance *state = &binding->tolerance_state;

        if (binding->tolerance.allowed == 0)
                return "";
        if (!state->track || !state->is_known)
                return "unknown";
        return state->track->is_broken ? "broken" : "kept";
}

const char *binding_own_name(const Binding *binding) {
        const char *slash = strchr(binding->name, '/');

        return slash ? slash + 1 : binding->name;
}

const char *binding_unit_name(const Binding *binding) {
        return binding->view.unit ?: binding->unit ?: "";
}

bool binding_same_probes(const Binding *a, const Binding *b) {
        return streq_empty(a->executable, b->executable) && streq_empty(a->start, b->start) &&
               streq_empty(a->stop, b->stop) && streq_empty(a->build_id, b->build_id) &&
               streq_empty(a->unit, b->unit) && a->key.number == b->key.number &&
               a->key.size == b->key.size && a->key.is_signed == b->key.is_signed &&
               a->choice == b->choice && a->unsafe == b->unsafe && a->enabled == b->enabled;
}

static void update_error(BindingSource *source) {
        source->error = source->n_errors > 0 ? source->errors[0].text : NULL;
}

int binding_add_error(Binding *binding, const char *key, const char *text) {
        _cleanup_free_ char *copy = strdup(text);
        BindingSource *source = &binding->source;
        BindingError *errors;

        if (!copy)
                return -ENOMEM;
        errors = reallocarray(source->errors, source->n_errors + 1, sizeof(*errors));
        if (!errors)
                return -ENOMEM;
        source->errors = errors;

        binding_clear_error(binding, key);
        errors[source->n_errors++] = (BindingError) { .key = key, .text = TAKE_PTR(copy) };
        update_error(source);
        return 0;
}

void binding_clear_error(Binding *binding, const char *key) {
        BindingSource *source = &binding->source;
        size_t kept = 0;

        for (size_t i = 0; i < source->n_errors; i++)
                if (streq(source->errors[i].key, key))
                        free(source->errors[i].text);
                else
                        source->errors[kept++] = source->errors[i];
        source->n_errors = kept;
        update_error(source);
}

const char *binding_state_to_string(BindingState state) {
        static const char *const names[] = {
                [BINDING_ACTIVE] = "active",
                [BINDING_WAITING] = "waiting",
                [BINDING_DISABLED] = "disabled",
                [BINDING_FAILED] = "failed",
        };

        return names[state];
}

/* Every byte, so that it does not matter what is in it. */
#define SWAP(a, b)                                                                                 \
        do {                                                                                       \
                typeof(a) *x = &(a), *y = &(b), kept;                                              \
                memcpy(&kept, x, sizeof(kept));                                                    \
                memcpy(x, y, sizeof(kept));                                                        \
                memcpy(y, &kept, sizeof(kept));                                                    \
        } while (0)

void binding_adopt(Binding *binding, Binding *from) {
        SWAP(binding->view, from->view);
        SWAP(binding->resolved, from->resolved);
        SWAP(binding->cgroup, from->cgroup);
        SWAP(binding->watch, from->watch);
        SWAP(binding->look, from->look);
        SWAP(binding->users, from->users);
        SWAP(binding->measurement, from->measurement);
        SWAP(binding->limit, from->limit);
        SWAP(binding->n_told, from->n_told);
        SWAP(binding->action, from->action);
        SWAP(binding->tolerance_state, from->tolerance_state);
        SWAP(binding->former, from->former);
        if (binding->former)
                binding->former->latter = binding;
        if (from->former)
                from->former->latter = from;
}

void binding_exchange_paths(Binding *binding, Binding *next) {
        SWAP(binding->resolved.path, next->resolved.path);
        SWAP(binding->resolved.inner_path, next->resolved.inner_path);
}

void binding_begin_file(Binding *binding, Binding *next) {
        SWAP(binding->resolved, next->resolved);
        SWAP(binding->view.program, next->view.program);
        SWAP(binding->view.root_directory, next->view.root_directory);
        SWAP(binding->view.has_root_image, next->view.has_root_image);
        SWAP(binding->watch, next->watch);
        SWAP(binding->users, next->users);
        SWAP(binding->measurement.backend, next->measurement.backend);
        SWAP(binding->measurement.index, next->measurement.index);
        SWAP(binding->measurement.backend_reason, next->measurement.backend_reason);
        SWAP(binding->measurement.cost_ns, next->measurement.cost_ns);
        SWAP(binding->limit.seen, next->limit.seen);
        next->latter = binding;
        binding->former = next;
}
