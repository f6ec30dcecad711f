/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * tlobctl, the command for tlobd. This file has the table of verbs, finds the one that was meant,
 * checks the number of its arguments and which options it takes, and runs it. What a verb does is
 * in verb-*.c; tlobctl knows only what the D-Bus interface says, keeps nothing, and needs no rights
 * of its own.
 *
 * Exit status: 0 done, 1 failed, 2 usage; is-ok has more. The usage is checked before there is a
 * connection.
 */

#include <err.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <unistd.h>

#include "verbs.h"
#include "version.h"

typedef ExitStatus (*VerbHandler)(Client *client, int argc, char **argv);

typedef struct Verb {
        const char *name;
        const char *arguments; /* for people */
        int min, max;
        unsigned takes; /* options, of TAKES() */
        bool needs_rights;
        VerbHandler run;
        const char *help;
} Verb;

static ExitStatus verb_help(Client *client, int argc, char **argv);

/* The first is the default. */
static const Verb verbs[] = {
        { "status", "", 0, 0, TAKES(GROUP_ALL), false, verb_status, "Show the status of tlobd" },
        { "list-bindings", "", 0, 0, TAKES(GROUP_ALL) | TAKES(GROUP_UNIT) | TAKES(GROUP_BINDING),
          false, verb_list_bindings, "List the bindings" },
        { "show", "NAME...", 1, INT_MAX, 0, false, verb_show, "Show bindings in detail" },
        { "cat", "UNIT", 1, 1, 0, false, verb_cat, "Show the files that bind a unit" },
        { "monitor", "", 0, 0, TAKES(GROUP_UNIT) | TAKES(GROUP_BINDING), false, verb_monitor,
          "Show violations as they happen" },
        { "top", "[PATTERN]", 0, 1,
          TAKES(GROUP_TOP) | TAKES(GROUP_LINES) | TAKES(GROUP_UNIT) | TAKES(GROUP_BINDING), false,
          verb_top, "Show bindings or units as they change" },
        { "violations", "", 0, 0, TAKES(GROUP_LINES) | TAKES(GROUP_UNIT) | TAKES(GROUP_BINDING),
          false, verb_violations, "Show recent violations" },
        { "is-ok", "UNIT | BINDING...", 1, INT_MAX, TAKES(GROUP_CHECK) | TAKES(GROUP_SINCE), false,
          verb_is_ok, "Check whether budgets are kept" },
        { "plot", "UNIT | BINDING...", 1, INT_MAX, TAKES(GROUP_PLOT) | TAKES(GROUP_SINCE), false,
          verb_plot, "Draw how long windows take" },
        { "report", "[UNIT | BINDING...]", 0, INT_MAX, TAKES(GROUP_OUTPUT) | TAKES(GROUP_SINCE),
          false, verb_report, "Write a page on what was over its budget" },
        { "metrics", "", 0, 0,
          TAKES(GROUP_OUTPUT) | TAKES(GROUP_VARLINK) | TAKES(GROUP_UNIT) | TAKES(GROUP_BINDING),
          false, verb_metrics, "Print what was counted, for Prometheus" },
        { "add-binding", "NAME | LINE", 1, 1,
          TAKES(GROUP_UNIT) | TAKES(GROUP_PERSIST) | TAKES(GROUP_KEYS), true, verb_add_binding,
          "Add a binding" },
        { "remove-binding", "NAME...", 1, INT_MAX, 0, true, verb_remove_binding,
          "Remove bindings that add-binding added" },
        { "set-budget", "NAME TIME", 2, 2, TAKES(GROUP_PERSIST), true, verb_set_budget,
          "Change the budget of a binding" },
        { "edit", "UNIT", 1, 1, TAKES(GROUP_PERSIST), true, verb_edit,
          "Edit the budgets of a unit" },
        { "verify", "[FILE...]", 0, INT_MAX, TAKES(GROUP_UNIT) | TAKES(GROUP_KEYS), true,
          verb_verify, "Check bindings without adding them" },
        { "functions", "UNIT | FILE [PATTERN]", 1, 2, TAKES(GROUP_LIBRARIES), false, verb_functions,
          "List the functions of a program" },
        { "suggest", "UNIT | BINDING", 1, 1, TAKES(GROUP_TIME), true, verb_suggest,
          "Find what to measure, or a budget for it" },
        { "reload", "", 0, 0, 0, true, verb_reload, "Read the configuration again" },
        { "reset-statistics", "[NAME...]", 0, INT_MAX, 0, true, verb_reset_statistics,
          "Set counters to zero" },
        { "help", "[COMMAND]", 0, 1, TAKES_ANY, false, verb_help,
          "Show this help, or that of a command" },
};

ExitStatus status_of_memory(int r) {
        if (r < 0)
                warnx("Out of memory");
        return status_of(r);
}

static const Verb *find_verb(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (streq(verbs[i].name, name))
                        return verbs + i;
        warnx("There is no command '%s'; see 'tlobctl --help'", name);
        return NULL;
}

static void print_verb(const Verb *verb) {
        char left[64];

        (void) snprintf(left, sizeof(left), "%s %s", verb->name, verb->arguments);
        (void) printf("  %-28s %s\n", left, verb->help);
}

static void print_help(void) {
        (void) puts("tlobctl [OPTIONS...] [COMMAND] [ARGUMENTS...]\n\nFind out where programs "
                    "exceed their latency budgets.\n\nCommands:");
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                print_verb(verbs + i);
        (void) puts("\nOptions:");
        options_print_help(TAKES(GROUP_GENERAL));
        (void) puts("\nOptions of some commands:");
        options_print_help(TAKES_ANY & ~TAKES(GROUP_GENERAL) & ~TAKES(GROUP_KEYS));
        (void) puts("\nOptions of add-binding and verify, see tlob.binding(5):");
        options_print_help(TAKES(GROUP_KEYS));
        (void) puts("\nSee tlobctl(1).");
}

static void print_verb_help(const Verb *verb) {
        (void) printf("tlobctl [OPTIONS...] %s%s%s\n\n%s.\n", verb->name,
                      *verb->arguments != '\0' ? " " : "", verb->arguments, verb->help);
        if (verb->takes != 0) {
                (void) puts("\nOptions, besides those for all commands:");
                options_print_help(verb->takes & ~TAKES(GROUP_GENERAL));
        }
        (void) puts("\nSee tlobctl(1).");
}

static ExitStatus verb_help(Client *client, int argc, char **argv) {
        const Verb *verb = NULL;

        if (argc > 0) {
                verb = find_verb(argv[0]);
                if (!verb)
                        return STATUS_USAGE;
        }
        if (verb && verb->run != verb_help)
                print_verb_help(verb);
        else
                print_help();
        return STATUS_DONE;
}

static ExitStatus run_verb(Client *client, int argc, char **argv) {
        const Verb *verb = argc > 0 ? find_verb(argv[0]) : verbs;

        if (!verb || options_check(&client->options, verb->name, verb->takes) < 0)
                return STATUS_USAGE;
        client->connection.needs_rights = verb->needs_rights;
        if (argc > 0) {
                argc--;
                argv++;
        }
        if (argc < verb->min || argc > verb->max) {
                warnx("'%s' takes %s arguments; write 'tlobctl %s%s%s'", verb->name,
                      argc < verb->min ? "more"
                      : verb->max == 0 ? "no"
                                       : "fewer",
                      verb->name, *verb->arguments != '\0' ? " " : "", verb->arguments);
                return STATUS_USAGE;
        }
        return verb->run(client, argc, argv);
}

static ExitStatus run(Client *client, int argc, char **argv) {
        if (client->options.version) {
                (void) puts("tlobctl " VERSION);
                return STATUS_DONE;
        }
        if (client->options.help)
                return verb_help(client, argc > 0, argv);
        return run_verb(client, argc, argv);
}

/*
 * What is closed must not become another file, into which our output would go: it becomes one to
 * which writing, or for the input reading, is an error all the same.
 */
static void fill_closed(void) {
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0)
                        (void) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv) {
        Client client = {};
        ExitStatus status;
        int first, r;

        fill_closed();
        /* A reader may have seen enough. Services pass on that they ignore it. */
        (void) signal(SIGPIPE, SIG_DFL);
        (void) setlocale(LC_CTYPE, "");
        (void) setlocale(LC_TIME, "");
        if (options_parse(&client.options, argc, argv, &first) < 0)
                return STATUS_USAGE;

        client.connection.options = &client.options;
        output_init(&client.output, &client.options);
        status = run(&client, argc - first, argv + first);
        connection_done(&client.connection);

        r = output_done(&client.output);
        if (r < 0) {
                errno = -r;
                warn("Failed to write the output");
                return status == STATUS_UNKNOWN ? status : STATUS_FAILED;
        }
        return status;
}
