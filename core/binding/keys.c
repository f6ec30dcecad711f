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
#include "base/mangled-name.h"
#include "base/percent.h"
#include "base/sentence.h"
#include "base/system-call.h"
#include "base/trace-event.h"
#include "base/unit-name.h"
#include "binding/call.h"
#include "binding/event.h"

typedef struct BindingKey {
        const char *name;
        int (*set)(Binding *binding, const struct BindingKey *key, const char *value,
                   char **ret_error);
        int (*get)(const Binding *binding, const struct BindingKey *key, char **ret_value);
        size_t where; /* offsetof() its field, or which budget */
} BindingKey;

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

static int check_text(const BindingKey *key, const char *value, char **ret_error) {
        size_t n = strlen(value);

        if (!text_is_printable(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s has bytes that are not printable UTF-8", key->name,
                                      value);
        if (n > 0 && (isspace((unsigned char) value[0]) || isspace((unsigned char) value[n - 1])))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s begins or ends with white space: remove it", key->name,
                                      value);
        if (has_comment(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s has white space before a semicolon, which would begin "
                                      "a comment",
                                      key->name, value);
        return 0;
}

static int set_text(Binding *binding, const BindingKey *key, const char *value, char **ret_error) {
        int r;

        r = check_text(key, value, ret_error);
        if (r < 0)
                return r;
        return free_and_strdup(text_field(binding, key), *value != '\0' ? value : NULL);
}

/* Takes a component off a path; what leads nowhere else is skipped. */
static size_t next_component(const char **path, const char **ret) {
        size_t n;

        do {
                *path += strspn(*path, "/");
                n = strcspn(*path, "/");
                *ret = *path;
                *path += n;
        } while (n == 1 && **ret == '.');
        return n;
}

/* Paths that mean whoever opens them: here, a process of tlobd. */
static bool is_own_to_each(const char *path) {
        static const char *const places[][2] = {
                { "proc", "self" }, { "proc", "thread-self" }, { "dev", "fd" },
                { "dev", "stdin" }, { "dev", "stdout" },       { "dev", "stderr" },
        };
        const char *parts[2];
        size_t lengths[2];

        for (size_t i = 0; i < ELEMENTSOF(parts); i++)
                lengths[i] = next_component(&path, &parts[i]);
        for (size_t i = 0; i < ELEMENTSOF(places); i++)
                if (strlen(places[i][0]) == lengths[0] && strlen(places[i][1]) == lengths[1] &&
                    strncmp(places[i][0], parts[0], lengths[0]) == 0 &&
                    strncmp(places[i][1], parts[1], lengths[1]) == 0)
                        return true;
        return false;
}

static int set_executable(Binding *binding, const BindingKey *key, const char *value,
                          char **ret_error) {
        if (value[0] != '/' && (strchr(value, '/') || value[0] == '.'))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is neither an absolute path nor the name of a library",
                                      key->name, value);
        if (value[0] == '/' && is_own_to_each(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s names a different file in each process that opens "
                                      "it, tlobd included: write the path of the file itself",
                                      key->name, value);
        return set_text(binding, key, value, ret_error);
}

static int check_site(const BindingKey *key, const char *value, char **ret_error) {
        if (strpbrk(value, name_is_of_source(value) ? "\t" : " \t"))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a place in a program: write a symbol, "
                                      "symbol+0x1c, or an offset such as 0x12a0",
                                      key->name, value);
        return check_text(key, value, ret_error);
}

static int set_start(Binding *binding, const BindingKey *key, const char *value, char **ret_error) {
        const char *call = system_call_of_place(value);
        int r;

        if (stop_is_return(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not possible: only Stop= can be the return",
                                      key->name, value);
        r = check_site(key, value, ret_error);
        if (r >= 0 && call)
                r = place_check_call(key->name, value, call, ret_error);
        if (r >= 0)
                r = place_check_event(key->name, value, ret_error);
        if (r < 0)
                return r;
        return free_and_strdup(&binding->start, *value != '\0' ? value : NULL);
}

static int set_stop(Binding *binding, const BindingKey *key, const char *value, char **ret_error) {
        int r;

        if (system_call_of_place(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not possible: only Start= can be a system call",
                                      key->name, value);

        r = check_site(key, value, ret_error);
        if (r >= 0)
                r = place_check_event(key->name, value, ret_error);
        if (r < 0)
                return r;
        return free_and_strdup(&binding->stop, *value != '\0' ? value : NULL);
}

/* From start to return: what such a key is short for. */
static int set_whole(Binding *binding, const BindingKey *key, const char *start, char **ret_error) {
        _cleanup_free_ char *stop = NULL;
        int r;

        r = free_and_strdup(&stop, *start != '\0' ? "return" : NULL);
        if (r < 0)
                return r;
        r = set_start(binding, key, start, ret_error);
        if (r < 0)
                return r;
        free(binding->stop);
        binding->stop = TAKE_PTR(stop);
        return 0;
}

static int set_function(Binding *binding, const BindingKey *key, const char *value,
                        char **ret_error) {
        const char *call = system_call_of_place(value);

        if (call)
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a function: write Syscall=%s", key->name, value,
                                      call);
        if (strncmp(value, USDT_PLACE, strlen(USDT_PLACE)) == 0 || trace_event_of_place(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a function: write it as Start=, and where the "
                                      "window ends as Stop=",
                                      key->name, value);
        return set_whole(binding, key, value, ret_error);
}

static int set_system_call(Binding *binding, const BindingKey *key, const char *value,
                           char **ret_error) {
        char start[BINDING_VALUE_MAX + 16] = "";
        int r;

        if (*value == '\0')
                return set_whole(binding, key, value, ret_error);
        r = place_check_call(key->name, value, value, ret_error);
        if (r < 0)
                return r;
        (void) snprintf(start, sizeof(start), SYSTEM_CALL_PLACE "%s", value);
        return set_whole(binding, key, start, ret_error);
}

#define BUILD_ID_LENGTH_MIN 8
#define BUILD_ID_LENGTH_MAX 128

static int set_build_id(Binding *binding, const BindingKey *key, const char *value,
                        char **ret_error) {
        size_t n = strlen(value);
        int r;

        if (n > 0 && (n < BUILD_ID_LENGTH_MIN || n > BUILD_ID_LENGTH_MAX || n % 2 != 0 ||
                      strspn(value, "0123456789abcdefABCDEF") != n))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not a build-id: write all its hexadecimal digits, "
                                      "as 'tlobctl verify' and 'file' show them",
                                      key->name, value);
        r = free_and_strdup(&binding->build_id, n > 0 ? value : NULL);
        for (char *p = binding->build_id; r >= 0 && p && *p != '\0'; p++)
                *p = (char) tolower((unsigned char) *p);
        return r;
}

static int set_unit(Binding *binding, const BindingKey *key, const char *value, char **ret_error) {
        if (*value != '\0' && !unit_name_is_valid(value))
                return sentence_error(-EINVAL, ret_error,
                                      "%s=%s is not the name of a service, slice or scope: write "
                                      "it with its suffix, such as nginx.service",
                                      key->name, value);
        return set_text(binding, key, value, ret_error);
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

/* X(name, set, get, where) */
#define BINDING_KEYS(X)                                                                            \
        X("Executable", set_executable, get_text, offsetof(Binding, executable))                   \
        X("Start", set_start, get_text, offsetof(Binding, start))                                  \
        X("Stop", set_stop, get_text, offsetof(Binding, stop))                                     \
        X("Function", set_function, NULL, 0)                                                       \
        X("Syscall", set_system_call, NULL, 0)                                                     \
        X("BuildID", set_build_id, get_text, offsetof(Binding, build_id))                          \
        X("BudgetSec", set_budget, get_budget, TLOB_BUDGET_TOTAL)                                  \
        X("RunningBudgetSec", set_budget, get_budget, TLOB_BUDGET_RUNNING)                         \
        X("WaitingBudgetSec", set_budget, get_budget, TLOB_BUDGET_WAITING)                         \
        X("SleepingBudgetSec", set_budget, get_budget, TLOB_BUDGET_SLEEPING)                       \
        X("Unit", set_unit, get_text, offsetof(Binding, unit))                                     \
        X("Backend", set_backend, get_backend, 0)                                                  \
        X("Priority", set_priority, get_priority, 0)                                               \
        X("CPULimit", set_cpu_limit, get_cpu_limit, 0)                                             \
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
