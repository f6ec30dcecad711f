/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl report": a page on what was over its budget. The journal has it all (report-entries.c);
 * from tlobd, if it is there and the journal is this machine's, come the distributions. What
 * follows from both is in page/overruns.c, and how it looks in page/page.c.
 */

#include <err.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/sentence.h"
#include "base/unit-name.h"
#include "lengths.h"
#include "names.h"
#include "page/page.h"
#include "proxy.h"
#include "report-entries.h"
#include "unit-query.h"
#include "verbs.h"
#include "whole-file.h"

#define SINCE_DEFAULT_USEC (UINT64_C(24) * 3600 * 1000000)

/* One binding of the page, and where what is in it is kept. */
typedef struct Part {
        char *title;
        Plot plot;
        HistogramBucket *lengths;
        PlotEvent *events;
} Part;

typedef struct Draft {
        uint64_t since_usec, until_usec;
        Wanted wanted;
        json_object *bindings; /* of tlobd; NULL: not asked, or no answer */
        OverrunList list;
        uint64_t known_usec; /* the journal begins there */
        uint64_t lost;
        char own_host[JOURNAL_TEXT_MAX];
        size_t n_machines;
        Part *parts;
        PageBinding *page;
} Draft;

static void draft_done(Draft *draft) {
        for (size_t i = 0; draft->wanted.units && draft->wanted.units[i]; i++)
                free(draft->wanted.units[i]);
        free(draft->wanted.units);
        free(draft->wanted.met);
        for (size_t i = 0; draft->parts && i < draft->list.n; i++) {
                free(draft->parts[i].title);
                free(draft->parts[i].lengths);
                free(draft->parts[i].events);
        }
        free(draft->parts);
        free(draft->page);
        overrun_list_done(&draft->list);
        json_object_put(draft->bindings);
}

static int draft_init(Draft *draft, Client *client, int argc, char **argv) {
        const Options *options = &client->options;
        uint64_t now = clock_read_ns(CLOCK_REALTIME) / NSEC_PER_USEC;

        *draft = (Draft){
                .since_usec = options->since_usec ?: now - SINCE_DEFAULT_USEC,
                .until_usec = now,
                .wanted = {
                        .names = argv,
                        .units = calloc((size_t) argc + 1, sizeof(char *)),
                        .met = calloc((size_t) argc + 1, sizeof(bool)),
                },
        };
        if (!draft->wanted.units || !draft->wanted.met)
                return -ENOMEM;
        if (gethostname(draft->own_host, sizeof(draft->own_host) - 1) < 0)
                (void) strcpy(draft->own_host, "this machine");
        for (int i = 0; i < argc; i++) {
                draft->wanted.units[i] = options->directory
                                                 ? unit_name_complete(argv[i])
                                                 : unit_name_resolve(&client->connection, argv[i]);
                if (!draft->wanted.units[i])
                        return -ENOMEM;
        }
        return 0;
}

/* Says what is wrong. */
static int read_journal(Draft *draft, const Client *client) {
        _cleanup_(sd_journal_closep) sd_journal *journal = NULL;
        int r;

        r = journal_open_for(&client->connection, client->options.directory, &journal);
        if (r < 0)
                return r;
        (void) sd_journal_get_cutoff_realtime_usec(journal, &draft->known_usec, NULL);
        r = report_read_entries(journal, journal_writer(&client->options), draft->since_usec,
                                &draft->wanted, &draft->list, &draft->lost);
        if (r < 0) {
                errno = -r;
                warn("Failed to read the journal");
        }
        return r;
}

/* The journal of this machine is that of these bindings. */
static int add_binding(Draft *draft, const json_object *binding) {
        Machine machine = { .id = "", .host = draft->own_host };
        Overruns *overruns;

        if (draft->list.n > 0)
                machine = (Machine) { draft->list.items[0].machine, draft->list.items[0].host };
        return overrun_list_get(&draft->list, &machine, json_string(binding, "Name"),
                                json_string(binding, "Unit"), &overruns);
}

/* All that are not measured, unless others are asked for. */
static int add_failed(Draft *draft) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < json_object_array_length(draft->bindings); i++) {
                const json_object *binding = json_object_array_get_idx(draft->bindings, i);

                if (streq(json_string(binding, "State"), "failed"))
                        r = add_binding(draft, binding);
        }
        return r;
}

/* Those that are named are on the page, also if all is well. Returns 1 if all names are known. */
static int add_named(Draft *draft, Client *client, int argc, char **argv) {
        bool all_known = true;
        int r = 0;

        for (int i = 0; r >= 0 && i < argc; i++) {
                bool is_known = draft->wanted.met[i];
                _cleanup_json_ json_object *found = NULL;
                _cleanup_free_ char *unit = NULL;

                if (draft->bindings)
                        r = names_find(&client->connection, draft->bindings, argv[i], &found,
                                       &unit);
                for (size_t k = 0; r >= 0 && found && k < json_object_array_length(found); k++) {
                        r = add_binding(draft, json_object_array_get_idx(found, k));
                        is_known = true;
                }
                if (r < 0 || is_known)
                        continue;
                all_known = false;
                if (draft->bindings)
                        r = names_complain(draft->bindings, argv[i]);
                else
                        warnx("The journal has nothing of '%s'", argv[i]);
        }
        return r < 0 ? r : all_known;
}

static const json_object *find_binding(const Draft *draft, const char *name) {
        for (size_t i = 0; draft->bindings && i < json_object_array_length(draft->bindings); i++) {
                const json_object *binding = json_object_array_get_idx(draft->bindings, i);

                if (streq(json_string(binding, "Name"), name))
                        return binding;
        }
        return NULL;
}

static const char *problem_of(const json_object *binding) {
        return streq(json_string(binding, "State"), "failed") ? json_string(binding, "StateReason")
                                                              : "";
}

/* What tlobd knows of it. */
static int fill_from_binding(Part *part, PageBinding *page, const json_object *binding) {
        Plot *plot = &part->plot;

        plot->n_lengths = lengths_read(binding, &part->lengths);
        if (!part->lengths)
                return -ENOMEM;
        plot->lengths = part->lengths;
        /* Some back ends do not know them. */
        plot->without_lengths = plot->n_lengths == 0 && json_number(binding, "Windows") != 0;
        plot->max_ns = json_number(binding, "MaxNSec");
        page->windows = json_number(binding, "Windows");
        page->p99_ns = lengths_quantile(binding, 990);
        page->budget_ns = lengths_budget(binding);
        page->problem = problem_of(binding);
        if (page->p99_ns != UINT64_MAX)
                plot->marks[plot->n_marks++] = (PlotMark) { "p99", page->p99_ns };
        if (plot->n_lengths > 0 && plot->max_ns != UINT64_MAX)
                plot->marks[plot->n_marks++] = (PlotMark) { "max", plot->max_ns };
        return 0;
}

/* With its machine, where there are several, and the beginning of its id, where it needs that. */
static char *make_title(const Draft *draft, const Overruns *overruns) {
        if (draft->n_machines <= 1)
                return strdup(overruns->binding);
        if (overrun_list_is_namesake(&draft->list, overruns))
                return sentence_make("%s (%.8s): %s", overruns->host, overruns->machine,
                                     overruns->binding);
        return sentence_make("%s: %s", overruns->host, overruns->binding);
}

/* What the journal knows. Of several budgets, that of the total time is the one to draw. */
static void fill_from_journal(const Draft *draft, const Overruns *overruns, Part *part,
                              PageBinding *page) {
        *page = (PageBinding) {
                .title = part->title,
                .overruns = overruns,
                .plot = &part->plot,
                .windows = UINT64_MAX,
                .p99_ns = UINT64_MAX,
                .budget_ns = UINT64_MAX,
        };
        for (size_t i = overruns->n; i-- > 0 && page->budget_ns == UINT64_MAX;)
                if (overruns->items[i].budget == TLOB_BUDGET_TOTAL)
                        page->budget_ns = overruns->items[i].budget_ns;
        part->plot = (Plot) {
                .name = part->title,
                .without_lengths = true,
                .max_ns = UINT64_MAX,
                .has_events = true,
                .since_usec = draft->since_usec,
                .until_usec = draft->until_usec,
        };
}

static int fill_part(Draft *draft, size_t i) {
        const Overruns *overruns = draft->list.items + i;
        const json_object *binding = find_binding(draft, overruns->binding);
        PageBinding *page = draft->page + i;
        Part *part = draft->parts + i;
        int r = 0;

        part->title = make_title(draft, overruns);
        if (!part->title)
                return -ENOMEM;
        fill_from_journal(draft, overruns, part, page);
        if (binding)
                r = fill_from_binding(part, page, binding);
        if (r < 0)
                return r;
        part->plot.budget_ns = page->budget_ns;
        if (page->budget_ns != UINT64_MAX)
                part->plot.marks[part->plot.n_marks++] = (PlotMark) { "budget", page->budget_ns };
        part->plot.n_events = overruns_to_events(overruns, &part->events);
        part->plot.events = part->events;
        return part->events ? 0 : -ENOMEM;
}

static uint64_t count_of(const Overruns *overruns) {
        return overruns->n + overruns->suppressed;
}

static int compare_overruns(const void *a, const void *b) {
        const Overruns *x = a, *y = b;

        if (count_of(x) != count_of(y))
                return count_of(x) < count_of(y) ? 1 : -1;
        return strcmp(x->binding, y->binding)
                       ?: strcmp(x->host, y->host) ?: strcmp(x->machine, y->machine);
}

static int make_page(Draft *draft) {
        int r = 0;

        if (draft->list.n > 0)
                qsort(draft->list.items, draft->list.n, sizeof(*draft->list.items),
                      compare_overruns);
        draft->n_machines = overrun_list_count_machines(&draft->list);
        draft->parts = calloc(draft->list.n + 1, sizeof(*draft->parts));
        draft->page = calloc(draft->list.n + 1, sizeof(*draft->page));
        if (!draft->parts || !draft->page)
                return -ENOMEM;
        for (size_t i = 0; r >= 0 && i < draft->list.n; i++)
                r = fill_part(draft, i);
        return r;
}

static int write_report(FILE *f, const void *userdata) {
        const Draft *draft = userdata;
        char several[64];
        Page page = {
                .host = draft->list.n > 0 ? draft->list.items[0].host : draft->own_host,
                .since_usec = draft->since_usec,
                .until_usec = draft->until_usec,
                .known_usec = draft->known_usec,
                .bindings = draft->page,
                .n = draft->list.n,
                .lost = draft->lost,
        };

        if (draft->n_machines > 1) {
                (void) snprintf(several, sizeof(several), "%zu machines", draft->n_machines);
                page.host = several;
        }
        return page_write(&page, f);
}

static int check_options(const Client *client) {
        if (client->output.json == JSON_OFF)
                return 0;
        warnx("A report is for people; 'journalctl -t tlob -o json' has what it is made from");
        return -EINVAL;
}

ExitStatus verb_report(Client *client, int argc, char **argv) {
        _cleanup_json_ json_object *bindings = NULL;
        _cleanup_(draft_done) Draft draft = {};
        int r, known;

        if (check_options(client) < 0)
                return STATUS_USAGE;
        client->output.pager_wanted = false;
        if (!client->options.directory)
                (void) proxy_get_bindings(&client->connection, &bindings);
        r = draft_init(&draft, client, argc, argv);
        if (r < 0)
                return status_of_memory(r);
        draft.bindings = TAKE_PTR(bindings);
        if (read_journal(&draft, client) < 0)
                return STATUS_FAILED;
        known = add_named(&draft, client, argc, argv);
        r = known < 0 ? known : 0;
        if (r >= 0 && draft.bindings && argc == 0)
                r = add_failed(&draft);
        if (r >= 0)
                r = make_page(&draft);
        if (r < 0)
                return status_of_memory(r);
        r = whole_file_write(client->options.output, WHOLE_FILE_KEPT, write_report, &draft);
        return r < 0 || !known ? STATUS_FAILED : STATUS_DONE;
}
