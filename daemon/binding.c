/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A binding, from configuration to the places in a file where its probes go. It knows neither where
 * its text came from (config.c, bus) nor how it is measured (back ends), and attaches nothing.
 *
 * What is configured and what was resolved from it stay apart, so that a binding can be resolved
 * again when its file was replaced. The keys and their values are in binding-keys.c.
 */

#include "binding.h"

#include <ctype.h>
#include <sys/stat.h>
#include <syslog.h>

#include "library.h"
#include "sentence.h"

int binding_new(const char *name, Binding **ret) {
        _cleanup_(binding_freep) Binding *binding = NULL;

        if (!binding_full_name_is_valid(name))
                return -EINVAL;

        binding = malloc(sizeof(*binding));
        if (!binding)
                return -ENOMEM;
        *binding = (Binding){
                .priority = LOG_WARNING,
                .enabled = true,
                .state = BINDING_WAITING,
        };
        for (size_t i = 0; i < TLOB_N_BUDGETS; i++)
                binding->configured_budget_ns[i] = binding->budget_ns[i] = BUDGET_NONE;
        binding->name = strdup(name);
        if (!binding->name)
                return -ENOMEM;

        *ret = TAKE_PTR(binding);
        return 0;
}

Binding *binding_free(Binding *binding) {
        if (!binding)
                return NULL;

        free(binding->state_reason);
        free(binding->cgroup_path);
        free(binding->backend_reason);
        elf_site_done(&binding->stop_site);
        elf_site_done(&binding->start_site);
        histogram_free(binding->past_lengths);
        free(binding->build_id);
        free(binding->path);
        free(binding->program);
        for (size_t i = 0; i < binding->n_errors; i++)
                free(binding->errors[i].text);
        free(binding->errors);
        free(binding->source);
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

bool binding_unit_is_valid(const char *unit) {
        static const char *const suffixes[] = { ".service", ".slice", ".scope" };
        const char *dot = strrchr(unit, '.');
        size_t n = strlen(unit);

        if (!dot || dot == unit || unit[0] == '@' || n > BINDING_UNIT_MAX ||
            !consists_of(unit, n, ":-_.@\\"))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(suffixes); i++)
                if (streq(dot, suffixes[i]))
                        return true;
        return false;
}

bool unit_name_is_template(const char *name) {
        const char *at = strchr(name, '@');

        return at && at[1] == '.' && at + 1 == strrchr(name, '.');
}

bool binding_full_name_is_valid(const char *name) {
        const char *slash = strchr(name, '/');
        char unit[BINDING_UNIT_MAX + 1];

        if (!slash)
                return binding_name_is_valid(name);
        if ((size_t) (slash - name) >= sizeof(unit))
                return false;
        memcpy(unit, name, (size_t) (slash - name));
        unit[slash - name] = '\0';
        return binding_unit_is_valid(unit) && binding_name_is_valid(slash + 1);
}

bool binding_stop_is_return(const Binding *binding) {
        return binding->stop && streq(binding->stop, "return");
}

uint64_t binding_budget_ns(const Binding *binding) {
        uint64_t smallest = BUDGET_NONE;

        if (binding->budget_ns[TLOB_BUDGET_TOTAL] != BUDGET_NONE)
                return binding->budget_ns[TLOB_BUDGET_TOTAL];
        for (size_t i = 0; i < TLOB_N_BUDGETS; i++)
                if (binding->budget_ns[i] < smallest)
                        smallest = binding->budget_ns[i];
        return smallest;
}

int binding_check_budget(uint64_t ns) {
        return ns == BUDGET_NONE || (ns >= BUDGET_MIN_NS && ns <= BUDGET_MAX_NS) ? 0 : -ERANGE;
}

bool binding_takes_program(const Binding *binding) {
        return !binding->executable && binding->unit;
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

int binding_check(const Binding *binding, char **ret_error) {
        int r;

        r = check_executable(binding, ret_error);
        if (r < 0)
                return r;
        if (!binding->start)
                return sentence_error(-EINVAL, ret_error,
                                      "Start= is missing: write where a window begins, or "
                                      "Function= for a whole function");
        if (!binding->stop)
                return sentence_error(-EINVAL, ret_error,
                                      "Stop= is missing: write where a window ends, such as "
                                      "Stop=return");
        if (streq(binding->start, binding->stop))
                return sentence_error(-EINVAL, ret_error,
                                      "Start= and Stop= are both '%s': a window needs two places",
                                      binding->start);
        if (binding->budgets_given == 0)
                return sentence_error(-EINVAL, ret_error,
                                      "BudgetSec= is missing: write the longest time that a window "
                                      "may take, or infinity to measure only");
        return 0;
}

/* Programs that run others' code: a function of theirs is hardly ever meant. */
static bool is_interpreter(const char *program) {
        static const char *const names[] = {
                "ash",  "bash",   "busybox", "csh",  "dash",  "env",    "fish", "guile",
                "java", "ksh",    "lua",     "mksh", "node",  "nodejs", "perl", "php",
                "pypy", "python", "ruby",    "sh",   "tclsh", "tcsh",   "zsh",
        };
        const char *name = strrchr(program, '/');
        size_t n;

        name = name ? name + 1 : program;
        n = strcspn(name, "0123456789.-");
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (strlen(names[i]) == n && strncmp(names[i], name, n) == 0)
                        return true;
        return false;
}

/* The program of the unit, if that can be meant. */
static int find_program(const Binding *binding, char **ret_path, char **ret_error) {
        if (!binding->program)
                return sentence_error(
                        -EINVAL, ret_error,
                        "The program of %s is not known: write Executable=", binding->unit);
        if (is_interpreter(binding->program))
                return sentence_error(-EINVAL, ret_error,
                                      "ExecStart= of %s is %s, which runs other code: write "
                                      "Executable= with the program or library to be measured",
                                      binding->unit, binding->program);
        *ret_path = strdup(binding->program);
        return *ret_path ? 0 : -ENOMEM;
}

static int find_executable(const Binding *binding, char **ret_path, char **ret_error) {
        int r;

        r = check_executable(binding, ret_error);
        if (r < 0)
                return r;
        if (binding_takes_program(binding))
                return find_program(binding, ret_path, ret_error);
        if (binding->executable[0] == '/') {
                *ret_path = strdup(binding->executable);
                return *ret_path ? 0 : -ENOMEM;
        }

        r = library_find(binding->executable, binding->program, ret_path);
        if (r == -ENOENT)
                return sentence_error(r, ret_error,
                                      "No library '%s' for this machine where the loader looks: "
                                      "write its absolute path",
                                      binding->executable);
        return r;
}

static int open_executable(const Binding *binding, const char *path, ElfFile **ret,
                           char **ret_error) {
        _cleanup_free_ char *sentence = NULL;
        int r;

        if (!binding_takes_program(binding))
                return elf_file_open(path, ret, ret_error);
        r = elf_file_open(path, ret, &sentence);
        if (r >= 0 || !sentence)
                return r;
        return sentence_error(r, ret_error,
                              "%s, the program of ExecStart= of %s. Write Executable= with the "
                              "program or library to be measured",
                              sentence, binding->unit);
}

static int resolve_sites(const Binding *binding, ElfFile *elf, ElfSite *ret_start,
                         ElfSite *ret_stop, char **ret_error) {
        _cleanup_(elf_site_done) ElfSite start = {}, stop = {};
        int r;

        r = elf_file_resolve(elf, binding->start, &start, ret_error);
        if (r < 0)
                return r;
        if (!binding_stop_is_return(binding)) {
                r = elf_file_resolve(elf, binding->stop, &stop, ret_error);
                if (r < 0)
                        return r;
                if (start.offset == stop.offset)
                        return sentence_error(-EINVAL, ret_error,
                                              "Start=%s and Stop=%s are the same place in %s: a "
                                              "window needs two",
                                              binding->start, binding->stop, elf_file_path(elf));
        }

        *ret_start = start;
        *ret_stop = stop;
        start = stop = (ElfSite){};
        return 0;
}

int binding_resolve(Binding *binding, ElfFile **ret_elf, char **ret_error) {
        _cleanup_(elf_site_done) ElfSite start = {}, stop = {};
        _cleanup_free_ char *path = NULL, *build_id = NULL;
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        struct stat st;
        int r;

        r = binding_check(binding, ret_error);
        if (r < 0)
                return r;
        r = find_executable(binding, &path, ret_error);
        if (r < 0)
                return r;
        r = open_executable(binding, path, &elf, ret_error);
        if (r < 0)
                return r;
        r = resolve_sites(binding, elf, &start, &stop, ret_error);
        if (r < 0)
                return r;
        r = free_and_strdup(&build_id, elf_file_build_id(elf));
        if (r < 0)
                return r;

        if (fstat(elf_file_fd(elf), &st) < 0)
                return -errno;

        binding->device = st.st_dev;
        binding->inode = st.st_ino;
        free(binding->path);
        binding->path = TAKE_PTR(path);
        free(binding->build_id);
        binding->build_id = TAKE_PTR(build_id);
        elf_site_done(&binding->start_site);
        binding->start_site = start;
        elf_site_done(&binding->stop_site);
        binding->stop_site = stop;
        start = stop = (ElfSite){};
        *ret_elf = TAKE_PTR(elf);
        return 0;
}

bool binding_file_is_current(const Binding *binding) {
        struct stat st;

        return binding->path && stat(binding->path, &st) >= 0 && st.st_dev == binding->device &&
               st.st_ino == binding->inode;
}

int binding_set_state(Binding *binding, BindingState state, const char *reason) {
        int r;

        r = free_and_strdup(&binding->state_reason, reason);
        if (r < 0)
                return r;
        binding->state = state;
        return 0;
}

const char *binding_own_name(const Binding *binding) {
        const char *slash = strchr(binding->name, '/');

        return slash ? slash + 1 : binding->name;
}

bool binding_same_probes(const Binding *a, const Binding *b) {
        return streq_empty(a->executable, b->executable) && streq_empty(a->start, b->start) &&
               streq_empty(a->stop, b->stop) && streq_empty(a->unit, b->unit) &&
               streq_empty(a->program, b->program) && a->choice == b->choice &&
               a->enabled == b->enabled;
}

static void update_error(Binding *binding) {
        binding->error = binding->n_errors > 0 ? binding->errors[0].text : NULL;
}

int binding_add_error(Binding *binding, const char *key, const char *text) {
        _cleanup_free_ char *copy = strdup(text);
        BindingError *errors;

        if (!copy)
                return -ENOMEM;
        errors = reallocarray(binding->errors, binding->n_errors + 1, sizeof(*errors));
        if (!errors)
                return -ENOMEM;
        binding->errors = errors;

        binding_clear_error(binding, key);
        errors[binding->n_errors++] = (BindingError){ .key = key, .text = TAKE_PTR(copy) };
        update_error(binding);
        return 0;
}

void binding_clear_error(Binding *binding, const char *key) {
        size_t kept = 0;

        for (size_t i = 0; i < binding->n_errors; i++)
                if (streq(binding->errors[i].key, key))
                        free(binding->errors[i].text);
                else
                        binding->errors[kept++] = binding->errors[i];
        binding->n_errors = kept;
        update_error(binding);
}

int binding_keep_lengths(Binding *binding, const Histogram *lengths) {
        static const Histogram none = {};

        if (memcmp(lengths, &none, sizeof(none)) == 0)
                return 0;
        if (!binding->past_lengths)
                binding->past_lengths = calloc(1, sizeof(*binding->past_lengths));
        if (!binding->past_lengths)
                return -ENOMEM;
        histogram_add(binding->past_lengths, lengths);
        return 0;
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

void binding_adopt(Binding *binding, Binding *from) {
        binding->path = TAKE_PTR(from->path);
        binding->build_id = TAKE_PTR(from->build_id);
        binding->start_site = from->start_site;
        from->start_site = (ElfSite){};
        binding->stop_site = from->stop_site;
        from->stop_site = (ElfSite){};
        binding->cgroup_id = from->cgroup_id;
        binding->cgroup_level = from->cgroup_level;
        binding->cgroup_path = TAKE_PTR(from->cgroup_path);
        binding->device = from->device;
        binding->inode = from->inode;
        binding->state = from->state;
        binding->state_reason = TAKE_PTR(from->state_reason);
        binding->backend_reason = TAKE_PTR(from->backend_reason);
        binding->backend = TAKE_PTR(from->backend);
        binding->backend_index = from->backend_index;
        binding->past = from->past;
        binding->past_lengths = TAKE_PTR(from->past_lengths);
        binding->rate_begin_ns = from->rate_begin_ns;
        binding->rate_count = from->rate_count;
        binding->n_suppressed = from->n_suppressed;
        binding->suppressed = from->suppressed;
        binding->suppressed_unannounced = from->suppressed_unannounced;
}
