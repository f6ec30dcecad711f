/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The keys of a binding: the one table from which files, D-Bus properties and options of tlobctl
 * are read, and files are written.
 *
 * A text value must come back as it was after being written to a file and read through libinih: so
 * it is limited in length, begins and ends without white space, and has no white space before a
 * semicolon, which begins a comment there. It must also fit in a D-Bus string.
 */

#include "binding/keys.h"

#include <ctype.h>
#include <strings.h>
#include <syslog.h>

#include "base/duration.h"
#include "base/percent.h"
#include "base/sentence.h"
#include "base/unit-name.h"
#include "binding/internal.h"
#include "binding/window-key.h"

static char **text_field(const Binding *binding, const BindingKey *key) {
        return (char **) ((char *) binding + key->where);
}

static bool *flag_field(const Binding *binding, const BindingKey *key) {
        return (bool *) ((char *) binding + key->where);
}

static bool has_comment(const char *value) {
        for (const char *p = strchr(value, ';'); p; p = strchr(p + 1, ';'))
                if (p > value && isspace((unsigned char) p[-1]))
                        return true;
        return false;
}

/* The next line would be part of it. */
static bool is_continued(const char *value, size_t n) {
        size_t n_backslashes = 0;

        while (n_backslashes < n && value[n - 1 - n_backslashes] == '\\')
                n_backslashes++;
        return n_backslashes % 2 == 1;
}

int key_check_text(const BindingKey *key, const char *value, char **ret_error) {
        size_t n = strlen(value);

        if (!text_is_printable(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s has bytes that are not printable UTF-8", key->name,
                                      value);
        if (n > 0 && (isspace((unsigned char) value[0]) || isspace((unsigned char) value[n - 1])))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s begins or ends with white space: remove it", key->name,
                                      value);
        if (is_continued(value, n))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s ends with a backslash, which would continue the line",
                                      key->name, value);
        if (has_comment(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s has white space before a semicolon, which would begin "
                                      "a comment",
                                      key->name, value);
        return 0;
}

int key_set_text(Binding *binding, const BindingKey *key, const char *value, char **ret_error) {
        int r;

        r = key_check_text(key, value, ret_error);
        if (r < 0)
                return r;
        return free_and_strdup(text_field(binding, key), *value != '\0' ? value : NULL);
}

static int get_window_key(const Binding *binding, const BindingKey *key, char **ret_value) {
        char text[WINDOW_KEY_MAX];

        (void) key;
        if (binding->key.number == 0)
                return 0;
        *ret_value = strdup(window_key_format(binding, text));
        return *ret_value ? 1 : -ENOMEM;
}

static int set_unit(Binding *binding, const BindingKey *key, const char *value, char **ret_error) {
        if (*value != '\0' && !unit_name_is_valid(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not the name of a service, slice or scope: write "
                                      "it with its suffix, such as nginx.service",
                                      key->name, value);
        return key_set_text(binding, key, value, ret_error);
}

static int get_text(const Binding *binding, const BindingKey *key, char **ret_value) {
        const char *value = *text_field(binding, key);
        char *copy;

        if (!value)
                return 0;
        copy = strdup(value);
        if (!copy)
                return -ENOMEM;
        *ret_value = copy;
        return 1;
}

static void put_budget(Binding *binding, size_t budget, uint64_t ns) {
        binding->configured_budget_ns[budget] = binding->budget_ns[budget] = ns;
}

static int set_budget(Binding *binding, const BindingKey *key, const char *value,
                      char **ret_error) {
        uint64_t ns = BUDGET_NONE;
        int r;

        if (*value == '\0') {
                put_budget(binding, key->where, BUDGET_NONE);
                binding->budgets_given &= ~(1U << key->where);
                return 0;
        }

        r = duration_parse(value, &ns);
        if (r == -EBADMSG)
                return sentence_error(-EINVAL, ret_error, "%s=%s is not a time: " DURATION_NO_UNIT,
                                      key->name, value);
        if (r == -EINVAL)
                return sentence_error(r, ret_error,
                                      "%s=%s is not a time: write a number with a unit, such as "
                                      "250us, 1.5ms or 2s",
                                      key->name, value);
        if (r >= 0)
                r = binding_check_budget(ns);
        if (r < 0)
                return sentence_error(r, ret_error,
                                      "%s=%s is not a possible budget: write a time from 1us to "
                                      "1h, or infinity",
                                      key->name, value);
        put_budget(binding, key->where, ns);
        binding->budgets_given |= 1U << key->where;
        return 0;
}

static int get_budget(const Binding *binding, const BindingKey *key, char **ret_value) {
        char buf[DURATION_MAX], *copy;

        if (!(binding->budgets_given & (1U << key->where)))
                return 0;
        copy = strdup(duration_format(binding->configured_budget_ns[key->where], buf));
        if (!copy)
                return -ENOMEM;
        *ret_value = copy;
        return 1;
}

static const char *const backend_names[] = {
        [BACKEND_CHOICE_AUTO] = "auto",
        [BACKEND_CHOICE_KERNEL] = "kernel",
        [BACKEND_CHOICE_BPF] = "bpf",
};

const char *backend_choice_to_string(BackendChoice choice) {
        return backend_names[choice];
}

int backend_choice_from_string(const char *s, BackendChoice *ret) {
        for (size_t i = 0; i < ELEMENTSOF(backend_names); i++)
                if (streq(s, backend_names[i])) {
                        *ret = (BackendChoice) i;
                        return 0;
                }
        return -EINVAL;
}

static int set_backend(Binding *binding, const BindingKey *key, const char *value,
                       char **ret_error) {
        if (*value == '\0') {
                binding->choice = BACKEND_CHOICE_AUTO;
                return 0;
        }
        if (backend_choice_from_string(value, &binding->choice) < 0)
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a back end: write auto, kernel or bpf",
                                      key->name, value);
        return 0;
}

static int get_backend(const Binding *binding, const BindingKey *key, char **ret_value) {
        char *copy;

        if (binding->choice == BACKEND_CHOICE_AUTO)
                return 0;
        copy = strdup(backend_choice_to_string(binding->choice));
        if (!copy)
                return -ENOMEM;
        *ret_value = copy;
        return 1;
}

static const char *const priority_names[] = {
        [LOG_EMERG] = "emerg", [LOG_ALERT] = "alert",     [LOG_CRIT] = "crit",
        [LOG_ERR] = "err",     [LOG_WARNING] = "warning", [LOG_NOTICE] = "notice",
        [LOG_INFO] = "info",   [LOG_DEBUG] = "debug",
};

static int set_priority(Binding *binding, const BindingKey *key, const char *value,
                        char **ret_error) {
        if (*value == '\0') {
                binding->priority = LOG_WARNING;
                return 0;
        }
        for (int i = 0; i < (int) ELEMENTSOF(priority_names); i++)
                if (streq(value, priority_names[i]) || (value[0] == '0' + i && value[1] == '\0')) {
                        binding->priority = i;
                        return 0;
                }
        return sentence_error(-EINVAL, ret_error,
                              "%s=%s is not a priority: write emerg, alert, crit, err, warning, "
                              "notice, info, debug, or 0 to 7",
                              key->name, value);
}

static int get_priority(const Binding *binding, const BindingKey *key, char **ret_value) {
        char *copy;

        if (binding->priority == LOG_WARNING)
                return 0;
        copy = strdup(priority_names[binding->priority]);
        if (!copy)
                return -ENOMEM;
        *ret_value = copy;
        return 1;
}

static int parse_boolean(const char *s) {
        static const char *const yes[] = { "1", "yes", "y", "true", "t", "on" };
        static const char *const no[] = { "0", "no", "n", "false", "f", "off" };

        for (size_t i = 0; i < ELEMENTSOF(yes); i++) {
                if (strcasecmp(s, yes[i]) == 0)
                        return 1;
                if (strcasecmp(s, no[i]) == 0)
                        return 0;
        }
        return -EINVAL;
}

static bool flag_default(const BindingKey *key) {
        return key->where == offsetof(Binding, enabled);
}

static int set_flag(Binding *binding, const BindingKey *key, const char *value, char **ret_error) {
        int r = *value != '\0' ? parse_boolean(value) : flag_default(key);

        if (r < 0)
                return sentence_error(r, ret_error, "%s=%s is neither yes nor no", key->name,
                                      value);
        *flag_field(binding, key) = r;
        return 0;
}

static int get_flag(const Binding *binding, const BindingKey *key, char **ret_value) {
        bool flag = *flag_field(binding, key);
        char *copy;

        if (flag == flag_default(key))
                return 0;
        copy = strdup(flag ? "yes" : "no");
        if (!copy)
                return -ENOMEM;
        *ret_value = copy;
        return 1;
}

static int set_cpu_limit(Binding *binding, const BindingKey *key, const char *value,
                         char **ret_error) {
        unsigned limit = BINDING_CPU_LIMIT;

        if (*value != '\0' && percent_parse(value, &limit) < 0)
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a share of a CPU: write one such as %i%%, or "
                                      "infinity",
                                      key->name, value, BINDING_CPU_LIMIT);
        binding->cpu_limit = limit;
        return 0;
}

static int get_cpu_limit(const Binding *binding, const BindingKey *key, char **ret_value) {
        if (binding->cpu_limit == BINDING_CPU_LIMIT)
                return 0;
        *ret_value = percent_format(binding->cpu_limit);
        return *ret_value ? 1 : -ENOMEM;
}

static int set_on_violation(Binding *binding, const BindingKey *key, const char *value,
                            char **ret_error) {
        const char *type = unit_name_type(value, UNIT_ANY);

        if (*value != '\0' && (!unit_name_is_valid(value) || !type || !streq(type, ".service")))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not the name of a service: write it with its "
                                      "suffix, such as capture@.service",
                                      key->name, value);
        return key_set_text(binding, key, value, ret_error);
}

static int set_tolerance(Binding *binding, const BindingKey *key, const char *value,
                         char **ret_error) {
        Tolerance tolerance = {};

        if (*value != '\0' && tolerance_parse(value, &tolerance) < 0)
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a share of the windows: write one such as "
                                      "3/100 or 0.1%%",
                                      key->name, value);
        binding->tolerance = tolerance;
        return key_set_text(binding, key, value, ret_error);
}

/* A time between others than those of budgets. */
typedef struct Interval {
        size_t where;
        uint64_t default_ns;
        uint64_t min_ns;
        uint64_t max_ns;
} Interval;

static const Interval intervals[] = {
        { offsetof(Binding, on_violation_interval_ns), BINDING_ON_VIOLATION_NS, NSEC_PER_SEC,
          24 * NSEC_PER_HOUR },
        { offsetof(Binding, tolerance_window_ns), BINDING_TOLERANCE_NS, 10 * NSEC_PER_SEC,
          720 * NSEC_PER_HOUR },
};

static int set_interval(Binding *binding, const BindingKey *key, const char *value,
                        char **ret_error) {
        const Interval *interval = &intervals[key->where];
        uint64_t ns = interval->default_ns;
        char min[DURATION_MAX], max[DURATION_MAX];

        if (*value != '\0' &&
            (duration_parse(value, &ns) < 0 || ns < interval->min_ns || ns > interval->max_ns))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a possible time: write one from %s to %s, "
                                      "with its unit",
                                      key->name, value, duration_format(interval->min_ns, min),
                                      duration_format(interval->max_ns, max));
        *(uint64_t *) ((char *) binding + interval->where) = ns;
        return 0;
}

static int get_interval(const Binding *binding, const BindingKey *key, char **ret_value) {
        const Interval *interval = &intervals[key->where];
        uint64_t ns = *(const uint64_t *) ((const char *) binding + interval->where);
        char text[DURATION_MAX];

        if (ns == interval->default_ns)
                return 0;
        *ret_value = strdup(duration_format(ns, text));
        return *ret_value ? 1 : -ENOMEM;
}

/* X(name, set, get, where) */
#define BINDING_KEYS(X)                                                                            \
        X("Executable", key_set_executable, get_text, offsetof(Binding, executable))               \
        X("Start", key_set_start, get_text, offsetof(Binding, start))                              \
        X("Stop", key_set_stop, get_text, offsetof(Binding, stop))                                 \
        X("Function", key_set_function, NULL, 0)                                                   \
        X("Syscall", key_set_system_call, NULL, 0)                                                 \
        X("Mark", key_set_mark, NULL, 0)                                                           \
        X("Key", key_set_window_key, get_window_key, 0)                                            \
        X("BuildID", key_set_build_id, get_text, offsetof(Binding, build_id))                      \
        X("BudgetSec", set_budget, get_budget, TLOB_BUDGET_TOTAL)                                  \
        X("RunningBudgetSec", set_budget, get_budget, TLOB_BUDGET_RUNNING)                         \
        X("WaitingBudgetSec", set_budget, get_budget, TLOB_BUDGET_WAITING)                         \
        X("SleepingBudgetSec", set_budget, get_budget, TLOB_BUDGET_SLEEPING)                       \
        X("BudgetMinSec", set_budget, get_budget, TLOB_BUDGET_MINIMUM)                             \
        X("Unit", set_unit, get_text, offsetof(Binding, unit))                                     \
        X("Backend", set_backend, get_backend, 0)                                                  \
        X("Priority", set_priority, get_priority, 0)                                               \
        X("CPULimit", set_cpu_limit, get_cpu_limit, 0)                                             \
        X("OnViolation", set_on_violation, get_text, offsetof(Binding, on_violation))              \
        X("OnViolationIntervalSec", set_interval, get_interval, 0)                                 \
        X("Tolerance", set_tolerance, get_text, offsetof(Binding, tolerance_text))                 \
        X("ToleranceWindowSec", set_interval, get_interval, 1)                                     \
        X("Required", set_flag, get_flag, offsetof(Binding, required))                             \
        X("Enabled", set_flag, get_flag, offsetof(Binding, enabled))                               \
        X("Unsafe", set_flag, get_flag, offsetof(Binding, unsafe))

#define KEY_ROW(name, set, get, where)  { name, set, get, where },
#define KEY_NAME(name, set, get, where) name,

static const BindingKey keys[] = { BINDING_KEYS(KEY_ROW) };

const char *const *binding_keys(void) {
        static const char *const names[] = { BINDING_KEYS(KEY_NAME) NULL };

        return names;
}

static const BindingKey *find_key(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (streq(keys[i].name, name))
                        return &keys[i];
        return NULL;
}

int binding_set_key(Binding *binding, const char *name, const char *value, char **ret_error) {
        const BindingKey *key = find_key(name);
        size_t n = strlen(value);

        if (!key)
                return -ENOENT;
        if (n > BINDING_VALUE_MAX)
                return sentence_error(-EINVAL, ret_error,
                                      "The value of %s= is too long: it has %zu bytes; the limit "
                                      "is %i",
                                      name, n, BINDING_VALUE_MAX);
        return key->set(binding, key, value, ret_error);
}

/* What a key says. Function= is content with another Stop= than the return. */
typedef struct PlaceKey {
        const char *name;
        bool start, stop;
} PlaceKey;

static const PlaceKey *find_place_key(const char *name) {
        static const PlaceKey place_keys[] = {
                { "Start", true, false },  { "Stop", false, true }, { "Function", true, false },
                { "Syscall", true, true }, { "Mark", true, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(place_keys); i++)
                if (streq(place_keys[i].name, name))
                        return &place_keys[i];
        return NULL;
}

bool binding_key_is_place(const char *name) {
        return find_place_key(name) != NULL;
}

static int check_place_key(const PlaceKeys *given, const PlaceKey *key, const char *value,
                           char **ret_error) {
        const char *other = NULL;

        if (key->start && given->start && given->start != key->name)
                other = given->start;
        else if (key->stop && given->stop && given->stop != key->name)
                other = given->stop;
        if (!other || *value == '\0')
                return 0;
        return sentence_error(-EINVAL, ret_error,
                              "%s=%s says what is measured, but %s= has said so already: write one "
                              "of them, or two bindings",
                              key->name, value, other);
}

/* An empty value takes back what the same key has said. */
static void note_place_key(PlaceKeys *given, const PlaceKey *key, bool is_empty) {
        const char *now = is_empty ? NULL : key->name;

        if (key->start && (now || given->start == key->name))
                given->start = now;
        if (key->stop && (now || given->stop == key->name))
                given->stop = now;
}

int binding_set_next_key(Binding *binding, PlaceKeys *given, const char *name, const char *value,
                         char **ret_error) {
        const PlaceKey *key = find_place_key(name);
        _cleanup_free_ char *stop = NULL;
        int r;

        if (!key)
                return binding_set_key(binding, name, value, ret_error);
        r = check_place_key(given, key, value, ret_error);
        if (r < 0)
                return r;
        if (!key->stop && given->stop)
                stop = TAKE_PTR(binding->stop);
        r = binding_set_key(binding, name, value, ret_error);
        if (stop) {
                free(binding->stop);
                binding->stop = TAKE_PTR(stop);
        }
        if (r >= 0)
                note_place_key(given, key, *value == '\0');
        return r;
}

int binding_get_key(const Binding *binding, const char *name, char **ret_value) {
        const BindingKey *key = find_key(name);

        return key && key->get ? key->get(binding, key, ret_value) : -ENOENT;
}

static int copy_as(const Binding *binding, const char *name, const char *unit, Binding **ret) {
        _cleanup_(binding_freep) Binding *copy = NULL;
        int r;

        r = binding_new(name, &copy);
        if (r < 0)
                return r;
        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                _cleanup_free_ char *value = NULL;

                if (!keys[i].get)
                        continue;
                r = keys[i].get(binding, &keys[i], &value);
                if (r > 0)
                        r = keys[i].set(copy, &keys[i], value, NULL);
                if (r < 0)
                        return r;
        }
        r = free_and_strdup(&copy->unit, unit);
        if (r >= 0)
                r = free_and_strdup(&copy->source.place, binding->source.place);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(copy);
        return 0;
}

int binding_copy(const Binding *binding, Binding **ret) {
        Binding *copy;
        int r;

        r = copy_as(binding, binding->name, binding->unit, &copy);
        if (r < 0)
                return r;
        memcpy(copy->budget_ns, binding->budget_ns, sizeof(copy->budget_ns));
        *ret = copy;
        return 0;
}

int binding_copy_for_unit(const Binding *binding, const char *unit, Binding **ret) {
        _cleanup_free_ char *name = NULL;

        if (asprintf(&name, "%s/%s", unit, binding_own_name(binding)) < 0) {
                name = NULL;
                return -ENOMEM;
        }
        return copy_as(binding, name, unit, ret);
}

bool binding_same_configuration(const Binding *a, const Binding *b) {
        if (!streq(a->name, b->name) || !streq_empty(a->source.place, b->source.place) ||
            !streq_empty(a->source.error, b->source.error))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                _cleanup_free_ char *of_a = NULL, *of_b = NULL;

                if (keys[i].get &&
                    (keys[i].get(a, &keys[i], &of_a) < 0 || keys[i].get(b, &keys[i], &of_b) < 0 ||
                     !streq_empty(of_a, of_b)))
                        return false;
        }
        return true;
}
