/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VERBS_H
#define VERBS_H

#include "connection.h"
#include "options.h"
#include "output.h"

/*
 * The verbs of tlobctl. argv has the arguments after the verb, and argc their number, which was
 * checked. A verb says itself what went wrong; what it returns is the exit status.
 */

typedef enum ExitStatus {
        STATUS_DONE = 0,
        STATUS_FAILED = 1,
        STATUS_USAGE = 2,
        STATUS_UNMEASURED = 3, /* is-ok; and metrics, of a file that says that there is no tlobd */
        STATUS_UNKNOWN = 4,    /* is-ok */
} ExitStatus;

typedef struct Client {
        Options options;
        Connection connection;
        Output output;
} Client;

/* What 0 or a negative errno comes to, where the reason was said already. */
static inline ExitStatus status_of(int r) {
        return r < 0 ? STATUS_FAILED : STATUS_DONE;
}

/* The same, for functions that fail only for want of memory and say nothing. */
ExitStatus status_of_memory(int r);

/* verb-show.c: what is there */
ExitStatus verb_status(Client *client, int argc, char **argv);
ExitStatus verb_list_bindings(Client *client, int argc, char **argv);
ExitStatus verb_show(Client *client, int argc, char **argv);

/* verb-change.c: what needs rights */
ExitStatus verb_add_binding(Client *client, int argc, char **argv);
ExitStatus verb_remove_binding(Client *client, int argc, char **argv);
ExitStatus verb_set_budget(Client *client, int argc, char **argv);
ExitStatus verb_reload(Client *client, int argc, char **argv);
ExitStatus verb_reset_statistics(Client *client, int argc, char **argv);

/* verb-cat.c, verb-edit.c: the files of units */
ExitStatus verb_cat(Client *client, int argc, char **argv);
ExitStatus verb_edit(Client *client, int argc, char **argv);

/* verb-is-ok.c: does it keep its budget? */
ExitStatus verb_is_ok(Client *client, int argc, char **argv);

/* verb-plot.c: how long do windows take? */
ExitStatus verb_plot(Client *client, int argc, char **argv);

/* verb-metrics.c: what was counted, for Prometheus */
ExitStatus verb_metrics(Client *client, int argc, char **argv);

/* verb-report.c: what was over its budget, when, and why? */
ExitStatus verb_report(Client *client, int argc, char **argv);

/* verb-functions.c: what can be named */
ExitStatus verb_functions(Client *client, int argc, char **argv);

/* verb-suggest.c: what could be named, and which budget it could have */
ExitStatus verb_suggest(Client *client, int argc, char **argv);

/* verb-monitor.c, verb-top.c, verb-violations.c, verb-verify.c */
ExitStatus verb_monitor(Client *client, int argc, char **argv);
ExitStatus verb_top(Client *client, int argc, char **argv);
ExitStatus verb_violations(Client *client, int argc, char **argv);
ExitStatus verb_verify(Client *client, int argc, char **argv);

#endif
