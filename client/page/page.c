/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * It has to look right in a window, on a phone and on paper, by day and by night: one column that
 * is as wide as there is room, tables that scroll by themselves, and pictures that shrink.
 */

#include "page/page.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "base/duration.h"
#include "plot/svg.h"

#define WORST    10
#define REASONS  8
#define TIME_MAX 64

static const char *const state_names[] = {
        [TLOB_RUNNING] = "running",
        [TLOB_WAITING] = "waiting",
        [TLOB_SLEEPING] = "sleeping",
};

static const char style[] =
        ":root{color-scheme:light dark;--line:#d1d5db;--gray:#6b7280;--bad:#b91c1c;--running:#3b82f6;"
        "--waiting:#d97706;--sleeping:#7c3aed;--card:#ffffff}\n"
        "body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:60rem}\n"
        "h1{font-size:1.5rem;line-height:1.2}h2{font-size:1.15rem;margin-top:2.5rem;"
        "overflow-wrap:anywhere}h3{font-size:1rem;margin-bottom:.25rem}\n"
        ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.9rem}\n"
        "th,td{text-align:left;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line);"
        "vertical-align:top}\n"
        "th{font-weight:600;color:var(--gray);white-space:nowrap}\n"
        ".n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\n"
        ".note,.gray{color:var(--gray)}.bad{color:var(--bad);font-weight:600}\n"
        ".name{overflow-wrap:anywhere;min-width:8rem}\n"
        ".bar{display:flex;width:8rem;height:.8rem;margin-top:.35rem;border-radius:.2rem;"
        "overflow:hidden;background:var(--line)}.bar i{display:block;height:100%}\n"
        ".running{background:var(--running)}.waiting{background:var(--waiting)}"
        ".sleeping{background:var(--sleeping)}\n"
        ".key i{display:inline-block;width:.8rem;height:.8rem;border-radius:.2rem;"
        "margin:0 .3rem 0 .8rem}\n"
        ".picture{background:var(--card);border-radius:.5rem;overflow-x:auto}"
        ".picture svg{display:block;width:100%;min-width:36rem;height:auto}\n"
        "@media(prefers-color-scheme:dark){:root{--line:#374151;--gray:#9ca3af;--bad:#f87171}}\n"
        "@media print{body{max-width:none;font-size:11pt}section{break-inside:avoid}"
        ".bar,.bar i,.key i{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n";

static const char *format_time(uint64_t usec, char buf[static TIME_MAX]) {
        time_t seconds = (time_t) (usec / 1000000);
        struct tm tm;

        if (!localtime_r(&seconds, &tm) || strftime(buf, TIME_MAX, "%Y-%m-%d %H:%M:%S", &tm) == 0)
                (void) strcpy(buf, "-");
        return buf;
}

/* With an element around it, or before and after being "". */
static int put_text(FILE *f, const char *before, const char *text, const char *after) {
        _cleanup_free_ char *escaped = xml_escape(text);

        if (!escaped)
                return -ENOMEM;
        (void) fprintf(f, "%s%s%s", before, escaped, after);
        return 0;
}

static void put_duration(FILE *f, uint64_t ns) {
        char buf[DURATION_MAX];

        (void) fprintf(f, "<td class=\"n\">%s</td>",
                       ns == UINT64_MAX ? "–" : duration_format_short(ns, buf));
}

static void put_count(FILE *f, uint64_t n, bool is_bad) {
        if (n == UINT64_MAX)
                (void) fputs("<td class=\"n\">–</td>", f);
        else
                (void) fprintf(f, "<td class=\"n%s\">%" PRIu64 "</td>",
                               is_bad && n > 0 ? " bad" : "", n);
}

/* What part of the time a task was in which state. */
static void put_shares(FILE *f, const uint64_t ns[static TLOB_N_STATES]) {
        double sum = 0;

        for (size_t i = 0; i < TLOB_N_STATES; i++)
                sum += ns[i] == UINT64_MAX ? 0 : (double) ns[i];
        if (sum <= 0) {
                (void) fputs("<td>–</td>", f);
                return;
        }
        (void) fputs("<td><div class=\"bar\" title=\"", f);
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                if (ns[i] != UINT64_MAX)
                        (void) fprintf(f, "%s%.0f %% %s", i > 0 ? ", " : "",
                                       (double) ns[i] / sum * 100, state_names[i]);
        (void) fputs("\">", f);
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                if (ns[i] != UINT64_MAX && ns[i] > 0)
                        (void) fprintf(f, "<i class=\"%s\" style=\"width:%.1f%%\"></i>",
                                       state_names[i], (double) ns[i] / sum * 100);
        (void) fputs("</div></td>", f);
}

static uint64_t violations_of(const PageBinding *binding) {
        return binding->overruns->n + binding->overruns->suppressed;
}

static void put_key(FILE *f) {
        (void) fputs("<p class=\"key note\">The time of these windows:", f);
        for (size_t i = 0; i < TLOB_N_STATES; i++)
                (void) fprintf(f, "<i class=\"%s\"></i>%s", state_names[i], state_names[i]);
        (void) fputs("</p>\n", f);
}

static int put_summary_row(FILE *f, size_t i, const PageBinding *binding) {
        _cleanup_free_ const Overrun **worst = NULL;
        uint64_t spent_ns[TLOB_N_STATES];
        size_t n = overruns_find_worst(binding->overruns, 1, &worst);
        int r;

        if (!worst)
                return -ENOMEM;
        (void) fprintf(f, "<tr><td class=\"name\"><a href=\"#b%zu\">", i);
        r = put_text(f, "", binding->title, "</a></td>");
        put_duration(f, binding->budget_ns);
        put_duration(f, binding->p99_ns);
        put_count(f, violations_of(binding), true);
        put_duration(f, n > 0 ? worst[0]->length_ns : UINT64_MAX);
        overruns_sum(binding->overruns, spent_ns);
        put_shares(f, spent_ns);
        (void) fputs("</tr>\n", f);
        return r;
}

static int put_summary(FILE *f, const Page *page) {
        int r = 0;

        put_key(f);
        (void) fputs("<div class=\"scroll\"><table><thead><tr><th>Binding</th>"
                     "<th class=\"n\">Budget</th><th class=\"n\">p99</th>"
                     "<th class=\"n\">Violations</th><th class=\"n\">Longest</th><th>Time</th></tr>"
                     "</thead><tbody>\n",
                     f);
        for (size_t i = 0; r >= 0 && i < page->n; i++)
                r = put_summary_row(f, i, page->bindings + i);
        (void) fputs("</tbody></table></div>\n", f);
        return r;
}

static int put_reasons(FILE *f, const Overruns *overruns) {
        _cleanup_free_ Reason *reasons = NULL;
        size_t n = overruns_rank_reasons(overruns, &reasons);
        int r = reasons ? 0 : -ENOMEM;

        (void) fputs(
                "<h3>Why</h3>\n<div class=\"scroll\"><table><thead><tr><th>Until the budget was "
                "used up, mostly</th><th class=\"n\">Windows</th><th class=\"n\">Beyond budget by</th>"
                "</tr></thead><tbody>\n",
                f);
        for (size_t i = 0; r >= 0 && i < n && i < REASONS; i++) {
                r = put_text(f, "<tr><td class=\"name\">", reasons[i].text, "</td>");
                put_count(f, reasons[i].n, false);
                put_duration(f, reasons[i].over_ns);
                (void) fputs("</tr>\n", f);
        }
        (void) fputs("</tbody></table></div>\n", f);
        if (n > REASONS)
                (void) fprintf(f, "<p class=\"note\">and %zu other reasons</p>\n", n - REASONS);
        return r;
}

static int put_window(FILE *f, const Overrun *overrun) {
        char time[TIME_MAX];
        int r;

        (void) fprintf(f, "<tr><td class=\"n\">%s</td>", format_time(overrun->time_usec, time));
        r = put_text(f, "<td class=\"name\">", overrun->task, "</td>");
        put_duration(f, overrun->length_ns);
        put_shares(f, overrun->spent_ns);
        if (r >= 0)
                r = put_text(f, "<td class=\"name\">", overrun->cause, "");
        if (overrun->budget != TLOB_BUDGET_TOTAL && overrun->budget != TLOB_BUDGET_MINIMUM)
                (void) fprintf(f, "<span class=\"gray\">, of its %s budget</span>",
                               state_names[overrun->budget - TLOB_BUDGET_RUNNING]);
        if (overrun->end)
                (void) fprintf(f, "<span class=\"gray\"> (%s)</span>", overrun->end);
        (void) fputs("</td></tr>\n", f);
        return r;
}

static int put_worst(FILE *f, const Overruns *overruns) {
        _cleanup_free_ const Overrun **worst = NULL;
        size_t n = overruns_find_worst(overruns, WORST, &worst);
        int r = worst ? 0 : -ENOMEM;

        (void) fprintf(
                f,
                "<h3>The longest</h3>\n<div class=\"scroll\"><table><thead><tr>"
                "<th class=\"n\">Found</th><th>Task</th><th class=\"n\">Length</th>"
                "<th>Time</th><th>Until the budget was used up, mostly</th></tr></thead><tbody>\n");
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = put_window(f, worst[i]);
        (void) fputs("</tbody></table></div>\n", f);
        return r;
}

static int put_about(FILE *f, const PageBinding *binding) {
        const Overruns *overruns = binding->overruns;
        char budget[DURATION_MAX];
        int r = 0;

        (void) fputs("<p class=\"note\">", f);
        if (*overruns->unit != '\0')
                r = put_text(f, "In ", overruns->unit, ". ");
        (void) fprintf(f, "Budget: %s. ",
                       binding->budget_ns == UINT64_MAX
                               ? "none"
                               : duration_format_short(binding->budget_ns, budget));
        (void) fprintf(f, "%zu violation%s reported", overruns->n, overruns->n == 1 ? "" : "s");
        if (overruns->suppressed > 0)
                (void) fprintf(f, ", %" PRIu64 " more held back by the rate limit",
                               overruns->suppressed);
        if (binding->windows != UINT64_MAX)
                (void) fprintf(f, "; %" PRIu64 " windows since the statistics began",
                               binding->windows);
        (void) fputs(".</p>\n", f);
        if (r >= 0 && binding->problem && *binding->problem != '\0')
                r = put_text(f, "<p class=\"bad\">It is not measured now: ", binding->problem,
                             ".</p>\n");
        return r;
}

static int put_binding(FILE *f, size_t i, const PageBinding *binding) {
        int r;

        (void) fprintf(f, "<section><h2 id=\"b%zu\">", i);
        r = put_text(f, "", binding->title, "</h2>\n");
        if (r >= 0)
                r = put_about(f, binding);
        (void) fputs("<div class=\"picture\">\n", f);
        if (r >= 0)
                r = plot_write_svg(binding->plot, 1, f);
        (void) fputs("</div>\n", f);
        if (r >= 0 && binding->overruns->n > 0)
                r = put_reasons(f, binding->overruns);
        if (r >= 0 && binding->overruns->n > 0)
                r = put_worst(f, binding->overruns);
        (void) fputs("</section>\n", f);
        return r;
}

static int put_head(FILE *f, const Page *page) {
        char since[TIME_MAX], until[TIME_MAX];
        int r;

        (void) fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                     "<meta name=\"color-scheme\" content=\"light dark\">\n",
                     f);
        r = put_text(f, "<title>Latency budgets on ", page->host, "</title>\n");
        (void) fprintf(f, "<style>\n%s</style>\n</head>\n<body>\n", style);
        if (r >= 0)
                r = put_text(f, "<h1>Latency budgets on ", page->host, "</h1>\n");
        (void) fprintf(f, "<p>From %s to %s.</p>\n", format_time(page->since_usec, since),
                       format_time(page->until_usec, until));
        if (page->known_usec > page->since_usec)
                (void) fprintf(f, "<p class=\"bad\">The journal begins only at %s.</p>\n",
                               format_time(page->known_usec, since));
        return r;
}

int page_write(const Page *page, FILE *f) {
        int r = put_head(f, page);

        if (page->lost > 0)
                (void) fprintf(f,
                               "<p class=\"bad\">%" PRIu64 " reports were lost in that time; the "
                               "counters have them.</p>\n",
                               page->lost);
        if (page->n == 0)
                (void) fputs("<p>The journal has nothing that was over its budget in that "
                             "time.</p>\n",
                             f);
        else if (r >= 0)
                r = put_summary(f, page);
        for (size_t i = 0; r >= 0 && i < page->n; i++)
                r = put_binding(f, i, page->bindings + i);
        (void) fputs("<p class=\"note\">Made by tlobctl report.</p>\n</body>\n</html>\n", f);
        return r;
}
