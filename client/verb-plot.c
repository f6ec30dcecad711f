/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl plot": how long the windows of a binding took, as a picture, and with --since= when its
 * violations were. It brings together what the daemon has counted and what the journal has; how
 * that becomes a picture is in plot/.
 */

#include <err.h>
#include <langinfo.h>

#include "base/clock.h"
#include "base/duration.h"
#include "journal.h"
#include "lengths.h"
#include "names.h"
#include "plot/svg.h"
#include "plot/text.h"
#include "proxy.h"
#include "verbs.h"

#define WIDTH 80 /* of what is not for a terminal */

/* What a picture is made from, and where that is kept. */
typedef struct Picture {
        Plot plot;
        json_object *binding; /* owned */
        HistogramBucket *lengths;
        PlotEvent *events;
        size_t n_allocated;
} Picture;

typedef struct Pictures {
        Picture *items;
        size_t n;
} Pictures;

static void pictures_done(Pictures *pictures) {
        for (size_t i = 0; i < pictures->n; i++) {
                json_object_put(pictures->items[i].binding);
                free(pictures->items[i].lengths);
                free(pictures->items[i].events);
        }
        free(pictures->items);
}

static void add_mark(Plot *plot, const char *name, uint64_t ns) {
        if (ns != UINT64_MAX)
                plot->marks[plot->n_marks++] = (PlotMark) { name, ns };
}

static void add_marks(Plot *plot, const json_object *binding) {
        static const struct {
                const char *name;
                unsigned per_mille;
        } percentiles[] = {
                { "p50", 500 },
                { "p90", 900 },
                { "p99", 990 },
                { "p99.9", 999 },
        };

        add_mark(plot, "budget", plot->budget_ns);
        for (size_t i = 0; i < ELEMENTSOF(percentiles); i++)
                add_mark(plot, percentiles[i].name,
                         lengths_quantile(binding, percentiles[i].per_mille));
        if (plot->n_lengths > 0)
                add_mark(plot, "max", plot->max_ns);
}

/* The binding belongs to the picture from now on. */
static int add_picture(Pictures *pictures, json_object *binding, const Options *options) {
        Picture *items = reallocarray(pictures->items, pictures->n + 1, sizeof(*items)), *picture;

        if (!items)
                return -ENOMEM;
        pictures->items = items;
        picture = items + pictures->n++;
        *picture = (Picture) { .binding = json_object_get(binding) };
        picture->plot = (Plot) {
                .name = json_string(binding, "Name"),
                .n_lengths = lengths_read(binding, &picture->lengths),
                .max_ns = json_number(binding, "MaxNSec"),
                .budget_ns = lengths_budget(binding),
                .has_events = options->since_usec > 0,
                .since_usec = options->since_usec,
                .until_usec = clock_read_ns(CLOCK_REALTIME) / NSEC_PER_USEC,
        };
        if (!picture->lengths)
                return -ENOMEM;
        picture->plot.has_unknown_lengths =
                picture->plot.n_lengths == 0 && json_number(binding, "Windows") == UINT64_MAX;
        picture->plot.lengths = picture->lengths;
        add_marks(&picture->plot, binding);
        return 0;
}

/* Returns 1 if all names are known. */
static int collect(Client *client, const json_object *bindings, int argc, char **argv,
                   Pictures *pictures) {
        bool all_known = true;
        int r = 0;

        for (int i = 0; r >= 0 && i < argc; i++) {
                _cleanup_json_ json_object *found = NULL;
                _cleanup_free_ char *unit = NULL;

                r = names_find(&client->connection, bindings, argv[i], &found, &unit);
                if (r >= 0 && json_object_array_length(found) == 0) {
                        all_known = false;
                        r = names_complain(bindings, argv[i]);
                }
                for (size_t k = 0; r >= 0 && k < json_object_array_length(found); k++)
                        r = add_picture(pictures, json_object_array_get_idx(found, k),
                                        &client->options);
        }
        return r < 0 ? r : all_known;
}

static int append_event(Picture *picture, const PlotEvent *event) {
        if (picture->plot.n_events == picture->n_allocated) {
                size_t room = 2 * picture->n_allocated + 64;
                PlotEvent *more = reallocarray(picture->events, room, sizeof(*more));

                if (!more)
                        return -ENOMEM;
                picture->events = more;
                picture->plot.events = more;
                picture->n_allocated = room;
        }
        picture->events[picture->plot.n_events++] = *event;
        return 0;
}

/* The newest of that window; NULL: there is none. */
static PlotEvent *find_event(const Picture *picture, uint64_t id) {
        for (size_t i = picture->plot.n_events; i-- > 0;)
                if (picture->events[i].id == id && id != 0)
                        return &picture->events[i];
        return NULL;
}

/* The end of a window gives its violation, a short while before, its true length. */
static void complete(Picture *picture, const JournalReport *report) {
        PlotEvent *event = find_event(picture, report->id);

        if (event && !report->unseen)
                event->length_ns = report->length_ns;
}

static int add_report(Picture *picture, const JournalReport *report) {
        const PlotEvent event = {
                .time_usec = report->time_usec,
                .length_ns = report->kind == KIND_VIOLATION ? report->length_ns : UINT64_MAX,
                .id = report->kind == KIND_VIOLATION ? report->id : 0,
                .count = report->kind == KIND_VIOLATION ? 1 : report->suppressed,
        };

        if (report->kind == KIND_COMPLETION) {
                complete(picture, report);
                return 0;
        }
        if (report->is_repeated && find_event(picture, event.id))
                return 0;
        return append_event(picture, &event);
}

/* Says what is wrong. */
static int read_events(sd_journal *journal, uid_t writer, Picture *picture) {
        const char *const names[] = { picture->plot.name, NULL };
        JournalReport report;
        int r;

        r = journal_select(journal, writer, (1U << N_REPORT_KINDS) - 1, names, NULL,
                           picture->plot.since_usec);
        while (r >= 0 && (r = journal_next(journal, &report)) > 0)
                r = add_report(picture, &report);
        if (r < 0) {
                errno = -r;
                warn("Failed to read the journal");
        }
        return r;
}

static int read_all_events(const Client *client, Pictures *pictures) {
        _cleanup_(sd_journal_closep) sd_journal *journal = NULL;
        int r;

        r = journal_open_for(&client->connection, client->options.directory, &journal);
        for (size_t i = 0; r >= 0 && i < pictures->n; i++)
                r = read_events(journal, journal_writer(&client->options), pictures->items + i);
        return r;
}

static int write_text(Output *output, const Pictures *pictures) {
        const TextStyle style = {
                .width = output->width > 0 ? output->width : WIDTH,
                .colors = output->colors,
                .utf8 = streq(nl_langinfo(CODESET), "UTF-8"),
        };
        int r = 0;

        output_begin(output);
        for (size_t i = 0; r >= 0 && i < pictures->n; i++) {
                if (i > 0)
                        (void) putchar('\n');
                r = plot_write_text(&pictures->items[i].plot, &style, stdout);
        }
        return r;
}

static int write_svg(const Pictures *pictures) {
        _cleanup_free_ Plot *plots = calloc(pictures->n + 1, sizeof(*plots));

        if (!plots)
                return -ENOMEM;
        for (size_t i = 0; i < pictures->n; i++)
                plots[i] = pictures->items[i].plot;
        return pictures->n > 0 ? plot_write_svg(plots, pictures->n, stdout) : 0;
}

static int check_options(const Client *client) {
        if (client->output.json != JSON_OFF) {
                warnx("A picture is for people; 'tlobctl show -j' has the numbers");
                return -EINVAL;
        }
        if (client->options.directory && client->options.since_usec == 0) {
                warnx("--directory= is for --since=; give that, too");
                return -EINVAL;
        }
        return 0;
}

ExitStatus verb_plot(Client *client, int argc, char **argv) {
        _cleanup_(pictures_done) Pictures pictures = {};
        _cleanup_json_ json_object *bindings = NULL;
        int known, r;

        if (check_options(client) < 0)
                return STATUS_USAGE;
        if (proxy_get_bindings(&client->connection, &bindings) < 0)
                return STATUS_FAILED;
        known = collect(client, bindings, argc, argv, &pictures);
        if (known < 0)
                return status_of_memory(known);
        if (client->options.since_usec > 0 && read_all_events(client, &pictures) < 0)
                return STATUS_FAILED;
        r = client->options.svg ? write_svg(&pictures) : write_text(&client->output, &pictures);
        if (r < 0)
                return status_of_memory(r);
        return known ? STATUS_DONE : STATUS_FAILED;
}
