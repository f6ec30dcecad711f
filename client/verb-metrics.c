/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl metrics": what tlobd and the bindings have counted, for Prometheus and what reads its
 * format; as JSON, in the form of systemd's metrics; or to whom asks over Varlink.
 *
 * With --output=, into a file that is there as a whole or not at all, as node_exporter wants it.
 * Without tlobd that file says only that there is none: old numbers would look like new ones. Where
 * tlobd has refused to answer, the file stays, and gets old.
 */

#include <err.h>

#include "metric-json.h"
#include "metric-server.h"
#include "metric-source.h"
#include "metrics/exposition.h"
#include "verbs.h"
#include "whole-file.h"

static int write_text(FILE *f, const void *userdata) {
        MetricSink sink = exposition_sink(f);

        return metric_source_list(userdata, &sink);
}

static int add_sample(void *userdata, json_object *sample) {
        return json_append(userdata, sample);
}

/* With the names that systemd has given these members, which are not ours. */
static int write_json(FILE *f, const void *userdata, int flags) {
        _cleanup_json_ json_object *samples = json_object_new_array();
        MetricJson json = { .handler = add_sample, .userdata = samples };
        MetricSink sink = metric_json_sink(&json);
        const char *text;
        int r;

        if (!samples)
                return -ENOMEM;
        r = metric_source_list(userdata, &sink);
        if (r < 0 || json.error < 0)
                return r < 0 ? r : json.error;
        text = json_object_to_json_string_ext(samples, flags | JSON_C_TO_STRING_NOSLASHESCAPE);
        if (!text)
                return -ENOMEM;
        (void) fprintf(f, "%s\n", text);
        return 0;
}

static int write_short(FILE *f, const void *userdata) {
        return write_json(f, userdata, JSON_C_TO_STRING_PLAIN);
}

static int write_pretty(FILE *f, const void *userdata) {
        return write_json(f, userdata, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
}

ExitStatus verb_metrics(Client *client, int argc, char **argv) {
        static const WholeFileWriter writers[] = {
                [JSON_OFF] = write_text,
                [JSON_SHORT] = write_short,
                [JSON_PRETTY] = write_pretty,
        };
        _cleanup_(metric_answer_done) MetricAnswer answer = {};
        const char *path = client->options.output;
        int asked, r;

        if (client->options.varlink) {
                if (path || client->output.json != JSON_OFF) {
                        warnx("With --varlink, leave out --output= and --json=");
                        return STATUS_USAGE;
                }
                return status_of(metric_server_run(client));
        }
        client->output.pager_wanted = false;
        asked = metric_source_ask(client, &answer);
        if (asked < 0 && (!path || connection_was_refused(asked)))
                return STATUS_FAILED;
        r = whole_file_write(path, WHOLE_FILE_SCRAPED, writers[client->output.json], &answer);
        return r < 0 ? STATUS_FAILED : asked < 0 ? STATUS_UNMEASURED : STATUS_DONE;
}
