/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The options of tlobctl. They are described in one table, from which come the parser's table, the
 * help, and the check that a verb is not given an option that it would ignore: such an option is an
 * error, as someone who writes "remove-binding --unit=..." expects it to do something.
 *
 * The options that are keys of a binding are passed on as text, whatever they are: the daemon alone
 * decides what is a good value, and its sentence says what is not.
 */

#include "options.h"

#include <assert.h>
#include <ctype.h>
#include <err.h>
#include <getopt.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/duration.h"
#include "moment.h"

#define TIME_MIN_NS (2 * NSEC_PER_SEC)
#define TIME_MAX_NS NSEC_PER_HOUR

/* What an option does to the member of Options at offset. */
typedef enum OptionKind {
        KIND_SET,
        KIND_CLEAR,
        KIND_TEXT,
        KIND_KEY,
        KIND_JSON,
        KIND_JSON_AUTO,
        KIND_LINES,
        KIND_TIME,
        KIND_DELAY,
        KIND_SORT,
        KIND_PERCENTILE,
        KIND_SINCE,
} OptionKind;

typedef struct Option {
        char letter; /* 0: no short form */
        const char *name;
        const char *argument; /* NULL: takes none */
        OptionGroup group;
        OptionKind kind;
        size_t offset;
        const char *key; /* of KIND_KEY */
        const char *help;
} Option;

#define SET(member)   KIND_SET, offsetof(Options, member), NULL
#define CLEAR(member) KIND_CLEAR, offsetof(Options, member), NULL
#define TEXT(member)  KIND_TEXT, offsetof(Options, member), NULL
#define KEY(key)      KIND_KEY, 0, key
#define OTHER(kind)   kind, 0, NULL

static const Option table[] = {
        { 'h', "help", NULL, GROUP_GENERAL, SET(help), "Show this help" },
        { 0, "version", NULL, GROUP_GENERAL, SET(version), "Show the version" },
        { 0, "json", "MODE", GROUP_GENERAL, OTHER(KIND_JSON), "Print JSON: short, pretty or off" },
        { 'j', NULL, NULL, GROUP_GENERAL, OTHER(KIND_JSON_AUTO),
          "Print JSON, pretty on a terminal, else short" },
        { 0, "no-legend", NULL, GROUP_GENERAL, CLEAR(legend), "Print neither headers nor totals" },
        { 0, "no-pager", NULL, GROUP_GENERAL, CLEAR(pager),
          "Do not pipe long output into a pager" },
        { 0, "no-ask-password", NULL, GROUP_GENERAL, CLEAR(ask_password),
          "Do not ask for a password" },
        { 0, "user", NULL, GROUP_GENERAL, SET(user), "Your own tlobd, for your own services" },
        { 0, "system", NULL, GROUP_GENERAL, CLEAR(user), "That of the machine (default)" },
        { 'H', "host", "[USER@]HOST", GROUP_GENERAL, TEXT(host),
          "Act on another machine, over ssh" },
        { 'M', "machine", "CONTAINER", GROUP_GENERAL, TEXT(machine),
          "Act in a container of this machine" },
        { 0, "all", NULL, GROUP_ALL, SET(all), "status: the counters too; list-bindings: why" },
        { 'n', "lines", "N", GROUP_LINES, OTHER(KIND_LINES),
          "violations: show at most N; top: N screens" },
        { 'u', "unit", "UNIT", GROUP_UNIT, TEXT(unit),
          "Only of this unit; or: of the new binding" },
        { 'b', "binding", "NAME", GROUP_BINDING, TEXT(binding), "Only of this binding" },
        { 0, "libraries", NULL, GROUP_LIBRARIES, SET(libraries),
          "functions: also of its libraries" },
        { 0, "for", "TIME", GROUP_TIME, OTHER(KIND_TIME), "suggest: how long (default: 60s)" },
        { 0, "units", NULL, GROUP_TOP, SET(units), "top: show units instead of bindings" },
        { 'd', "delay", "TIME", GROUP_TOP, OTHER(KIND_DELAY),
          "top: time between screens (default: 1s)" },
        { 0, "iterations", "N", GROUP_TOP, OTHER(KIND_LINES), "top: end after N screens" },
        { 0, "sort", "KEY", GROUP_TOP, OTHER(KIND_SORT), "top: by violations, windows, p99, ..." },
        { 0, "batch", NULL, GROUP_TOP, SET(batch), "top: print one screen after the other" },
        { 'q', "quiet", NULL, GROUP_CHECK, SET(quiet), "is-ok: print nothing" },
        { 0, "percentile", "P", GROUP_CHECK, OTHER(KIND_PERCENTILE),
          "is-ok: compare a percentile, as 99 or 99.9" },
        { 0, "svg", NULL, GROUP_PLOT, SET(svg), "plot: write an SVG" },
        { 'o', "output", "FILE", GROUP_OUTPUT, TEXT(output),
          "metrics, report: into this file, as a whole" },
        { 0, "varlink", NULL, GROUP_VARLINK, SET(varlink),
          "metrics: answer systemd-report, over Varlink" },
        { 'S', "since", "TIME", GROUP_SINCE, OTHER(KIND_SINCE),
          "From the journal since then, as 1h or today" },
        { 'D', "directory", "DIR", GROUP_SINCE, TEXT(directory),
          "From the journal files in this directory" },
        { 0, "runtime", NULL, GROUP_PERSIST, CLEAR(persist),
          "Until the next reboot (default, except for edit)" },
        { 0, "persist", NULL, GROUP_PERSIST, SET(persist),
          "Also after a reboot (the default for edit)" },
        { 0, "executable", "FILE", GROUP_KEYS, KEY("Executable"),
          "A path, or the name of a library" },
        { 0, "start", "PLACE", GROUP_KEYS, KEY("Start"), "Where a window begins" },
        { 0, "stop", "PLACE", GROUP_KEYS, KEY("Stop"), "Where it ends, or 'return'" },
        { 0, "cpu-limit", "SHARE", GROUP_KEYS, KEY("CPULimit"),
          "What its probes may take, as 50%" },
        { 0, "on-violation", "UNIT", GROUP_KEYS, KEY("OnViolation"),
          "A service to start on a violation" },
        { 0, "tolerance", "SHARE", GROUP_KEYS, KEY("Tolerance"),
          "How many windows may be late, as 0.1%" },
        { 0, "tolerance-window", "TIME", GROUP_KEYS, KEY("ToleranceWindowSec"),
          "In which time (1h)" },
        { 0, "unsafe", "BOOL", GROUP_KEYS, KEY("Unsafe"), "Accept places that cannot be checked" },
        { 0, "function", "NAME", GROUP_KEYS, KEY("Function"),
          "A window is one call of this function" },
        { 0, "syscall", "NAME", GROUP_KEYS, KEY("Syscall"),
          "A window is one such system call of the unit" },
        { 0, "mark", "NAME", GROUP_KEYS, KEY("Mark"),
          "A window is what the program marks with this name" },
        { 0, "key", "ARGUMENT", GROUP_KEYS, KEY("Key"), "What windows are told apart by, as arg1" },
        { 0, "build-id", "ID", GROUP_KEYS, KEY("BuildID"), "Only in this build of the file" },
        { 0, "budget", "TIME", GROUP_KEYS, KEY("BudgetSec"), "The longest that a window may take" },
        { 0, "running-budget", "TIME", GROUP_KEYS, KEY("RunningBudgetSec"), "... on a CPU" },
        { 0, "waiting-budget", "TIME", GROUP_KEYS, KEY("WaitingBudgetSec"),
          "... runnable, without a CPU" },
        { 0, "sleeping-budget", "TIME", GROUP_KEYS, KEY("SleepingBudgetSec"), "... blocked" },
        { 0, "min-budget", "TIME", GROUP_KEYS, KEY("BudgetMinSec"),
          "The shortest that a window may take" },
        { 0, "backend", "NAME", GROUP_KEYS, KEY("Backend"), "Back end: auto, kernel or bpf" },
        { 0, "priority", "LEVEL", GROUP_KEYS, KEY("Priority"),
          "Journal priority of its violations" },
};

/* What getopt_long() gives for a long option: apart from every letter. */
#define LONG_BASE 0x100

static void fill_getopt(struct option *longs, char *shorts) {
        *shorts++ = ':';
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                const Option *option = table + i;

                if (option->letter != 0) {
                        *shorts++ = option->letter;
                        if (option->argument)
                                *shorts++ = ':';
                }
                if (option->name)
                        *longs++ = (struct option) {
                                option->name,
                                option->argument ? required_argument : no_argument,
                                NULL,
                                LONG_BASE + (int) i,
                        };
        }
        *longs = (struct option) {};
        *shorts = '\0';
}

static const Option *find_option(int c) {
        if (c >= LONG_BASE)
                return table + (c - LONG_BASE);
        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (c > 0 && table[i].letter == c)
                        return table + i;
        return NULL;
}

static int complain(int c, char **argv) {
        const char *word = argv[optind - 1];

        if (c == ':')
                warnx("%s needs a value; see 'tlobctl --help'", word);
        else if (optopt >= LONG_BASE)
                warnx("--%s takes no value; see 'tlobctl --help'", find_option(optopt)->name);
        else if (optopt == 0)
                warnx("Option %s is unknown or ambiguous; see 'tlobctl --help'", word);
        else
                warnx("There is no option -%c; see 'tlobctl --help', and write '--' before an "
                      "argument that begins with '-'",
                      isascii(optopt) && isprint(optopt) ? optopt : '?');
        return -EINVAL;
}

static int parse_json(const char *value, JsonMode *ret) {
        static const char *const names[] = {
                [JSON_OFF] = "off",
                [JSON_SHORT] = "short",
                [JSON_PRETTY] = "pretty",
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (streq(value, names[i])) {
                        *ret = (JsonMode) i;
                        return 0;
                }
        warnx("--json=%s is not known; write short, pretty or off", value);
        return -EINVAL;
}

static int parse_lines(const char *name, const char *value, uint32_t *ret) {
        unsigned long n;
        char *end;

        errno = 0;
        n = strtoul(value, &end, 10);
        if (!isdigit((unsigned char) value[0]) || *end != '\0' || errno != 0 || n < 1 ||
            n > UINT32_MAX) {
                warnx("--%s=%s is not a number; write 1 or more", name, value);
                return -EINVAL;
        }
        *ret = (uint32_t) n;
        return 0;
}

static int parse_time(const char *value, uint64_t *ret) {
        if (duration_parse(value, ret) >= 0 && *ret >= TIME_MIN_NS && *ret <= TIME_MAX_NS)
                return 0;
        warnx("--for=%s is not possible; write 2s to 1h, as in 30s or 5min", value);
        return -EINVAL;
}

static int parse_delay(const char *value, uint64_t *ret) {
        if (duration_parse(value, ret) >= 0 && *ret >= DELAY_MIN_NS && *ret <= DELAY_MAX_NS)
                return 0;
        warnx("--delay=%s is not possible; write 100ms to 1h, as in 2s", value);
        return -EINVAL;
}

/* One digit behind the point at most: more are not in the histograms. */
static int parse_percentile(const char *value, unsigned *ret) {
        unsigned per_mille = 0;
        const char *p = value;

        for (; isdigit((unsigned char) *p) && p - value < 2; p++)
                per_mille = per_mille * 10 + 10 * (unsigned) (*p - '0');
        if (p > value && *p == '.' && isdigit((unsigned char) p[1])) {
                per_mille += (unsigned) (p[1] - '0');
                p += 2;
        }
        if (*p != '\0' || per_mille == 0) {
                warnx("--percentile=%s is not possible; write 0.1 to 99.9, as in 99", value);
                return -EINVAL;
        }
        *ret = per_mille;
        return 0;
}

static int parse_since(const char *value, uint64_t *ret) {
        int r = moment_parse(value, clock_read_ns(CLOCK_REALTIME) / NSEC_PER_USEC, ret);

        if (r >= 0) {
                /* 0 stands for an option that was not given. */
                *ret += *ret == 0;
                return 0;
        }
        warnx("--since=%s is not %s; write a time like 1h, '2026-11-24 09:30' or today", value,
              r == -ERANGE ? "in the past" : "a time");
        return -EINVAL;
}

static int parse_sort(const char *value, SortKey *ret) {
        SortKey key = sort_key_from_string(value);

        if (key == N_SORT_KEYS) {
                warnx("--sort=%s is not known; write violations, windows, p50, p99, max, cost, "
                      "state or name",
                      value);
                return -EINVAL;
        }
        *ret = key;
        return 0;
}

static int set_key(Options *options, const char *key, const char *value) {
        for (size_t i = 0; i < OPTION_KEYS_N; i++)
                if (streq(options->keys[i].key, key))
                        options->keys[i].value = value;
        return 0;
}

static int apply(Options *options, const Option *option, const char *value) {
        void *member = (char *) options + option->offset;

        options->given[option->group] = option->name ?: "json";

        switch (option->kind) {
        case KIND_SET:
        case KIND_CLEAR:
                *(bool *) member = option->kind == KIND_SET;
                return 0;
        case KIND_TEXT:
                *(const char **) member = value;
                return 0;
        case KIND_KEY:
                return set_key(options, option->key, value);
        case KIND_JSON:
                return parse_json(value, &options->json);
        case KIND_JSON_AUTO:
                options->json = isatty(STDOUT_FILENO) ? JSON_PRETTY : JSON_SHORT;
                return 0;
        case KIND_LINES:
                return parse_lines(option->name, value, &options->lines);
        case KIND_TIME:
                return parse_time(value, &options->time_ns);
        case KIND_DELAY:
                return parse_delay(value, &options->delay_ns);
        case KIND_SORT:
                return parse_sort(value, &options->sort);
        case KIND_PERCENTILE:
                return parse_percentile(value, &options->per_mille);
        case KIND_SINCE:
                return parse_since(value, &options->since_usec);
        }
        return 0;
}

static void options_init(Options *options) {
        size_t n = 0;

        *options = (Options) { .legend = true, .pager = true, .ask_password = true };
        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (table[i].kind == KIND_KEY) {
                        assert(n < OPTION_KEYS_N);
                        options->keys[n++].key = table[i].key;
                }
        assert(n == OPTION_KEYS_N);
}

static void set_scope(Options *options) {
        const char *where = options->host ?: options->machine;

        if (options->user)
                (void) strcpy(options->scope, " --user");
        else if (where)
                (void) snprintf(options->scope, sizeof(options->scope), " --%s=%s",
                                options->host ? "host" : "machine", where);
}

int options_parse(Options *options, int argc, char **argv, int *ret_first) {
        struct option longs[ELEMENTSOF(table) + 1];
        char shorts[2 * ELEMENTSOF(table) + 2];
        int c, r;

        options_init(options);
        fill_getopt(longs, shorts);
        opterr = 0;
        while ((c = getopt_long(argc, argv, shorts, longs, NULL)) >= 0) {
                if (c == '?' || c == ':')
                        return complain(c, argv);
                r = apply(options, find_option(c), optarg);
                if (r < 0)
                        return r;
        }

        if (options->host && options->machine) {
                warnx("--host= and --machine= exclude each other; give one of them");
                return -EINVAL;
        }
        if (options->user && (options->host || options->machine)) {
                warnx("--user and --%s= exclude each other; log in there as that user, with ssh "
                      "or 'machinectl shell', and run 'tlobctl --user'",
                      options->host ? "host" : "machine");
                return -EINVAL;
        }
        set_scope(options);
        *ret_first = optind;
        return 0;
}

RuntimeScope options_scope(const Options *options) {
        return options->user ? RUNTIME_SCOPE_USER : RUNTIME_SCOPE_SYSTEM;
}

const char *options_scope_text(const Options *options) {
        return options->scope;
}

int options_check(const Options *options, const char *verb, unsigned takes) {
        for (unsigned i = GROUP_GENERAL + 1; i < N_OPTION_GROUPS; i++)
                if (options->given[i] && !(takes & TAKES(i))) {
                        warnx("'%s' does not accept --%s; see 'tlobctl help %s'", verb,
                              options->given[i], verb);
                        return -EINVAL;
                }
        return 0;
}

const char *options_get_key(const Options *options, const char *key) {
        for (size_t i = 0; i < OPTION_KEYS_N; i++)
                if (streq(options->keys[i].key, key))
                        return options->keys[i].value;
        return NULL;
}

bool options_has_keys(const Options *options) {
        for (size_t i = 0; i < OPTION_KEYS_N; i++)
                if (options->keys[i].value)
                        return true;
        return false;
}

static void print_option(const Option *option) {
        const char letter[] = { option->letter != 0 ? '-' : ' ', option->letter ?: ' ', '\0' };
        char left[64];

        (void) snprintf(left, sizeof(left), "%s %s%s%s%s", letter, option->name ? "--" : "",
                        option->name ?: "", option->argument ? "=" : "", option->argument ?: "");
        (void) printf("  %-28s %s\n", left, option->help);
}

void options_print_help(unsigned takes) {
        for (size_t i = 0; i < ELEMENTSOF(table); i++)
                if (takes & TAKES(table[i].group))
                        print_option(table + i);
}
