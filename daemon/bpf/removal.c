/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The windows of a binding that is taken away: they end here, as the programs would have ended
 * them, in the books and with the reports that they owe.
 */

#include "bpf/backend.h"
#include "task-name.h"

/*
 * Which budgets a report breaks: exceeded, and of the first of them budget and late_ns. A window
 * that is ended from outside is not too short.
 */
static void judge(Report *report, const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        for (int i = TLOB_BUDGET_SLEEPING; i >= 0; i--) {
                uint64_t value =
                        i == TLOB_BUDGET_TOTAL ? report->elapsed_ns : report->spent_ns[i - 1];

                if (value <= budget_ns[i])
                        continue;
                report->exceeded |= 1U << i;
                report->budget = (enum tlob_budget) i;
                report->late_ns = value - budget_ns[i];
        }
}

/* It comes after the records that its window may have in the buffer. */
static void owe(BpfBackend *b, const Report *report, Statistics *final) {
        if (record_reader_owe(&b->records, report) < 0)
                final->counters.lost++;
}

typedef struct Removal {
        BpfBackend *b;
        const Entry *entry;
        Statistics *final;
        Histogram *histogram; /* NULL: nobody asks */
} Removal;

static void add_lengths(const Removal *removal, const Report *report) {
        Statistics *final = removal->final;

        for (size_t i = 0; i < TLOB_N_STATES; i++)
                final->counters.spent_ns[i] =
                        statistic_add(final->counters.spent_ns[i], report->spent_ns[i]);
        final->counters.elapsed_ns += report->elapsed_ns;
        if (removal->histogram)
                removal->histogram->counts[histogram_bucket(report->elapsed_ns)]++;
        if (report->elapsed_ns > final->max_ns)
                final->max_ns = report->elapsed_ns;
}

/*
 * A window that ended because its binding is being removed: books, and the reports that it owes.
 * One of which nobody knows whether it was left before is in no total, as in the programs, and has
 * broken no budget that was not reported.
 */
static void on_window_removed(Report *report, uint64_t claim, bool is_elsewhere, void *userdata) {
        Removal *removal = userdata;
        Statistics *final = removal->final;
        BpfBackend *b = removal->b;

        final->counters.ended[TLOB_END_REMOVED]++;
        if (!is_elsewhere) {
                add_lengths(removal, report);
                judge(report, removal->entry->budget_ns);
        }
        if (!report->exceeded && !TLOB_CLAIM_IS_VIOLATED(claim))
                return;

        /* Of which nothing has been reported. */
        if (TLOB_CLAIM_IS_VIOLATED(claim) && TLOB_CLAIM_ID(claim) == TLOB_ID_SUPPRESSED)
                return;
        /* The programs note it where they report something. */
        if (!*report->comm)
                (void) task_read_name(report->tid, report->comm);
        if (TLOB_CLAIM_IS_VIOLATED(claim)) {
                report->id = TLOB_CLAIM_ID(claim);
                report->budget = (enum tlob_budget) TLOB_CLAIM_BUDGET(claim);
                report->exceeded |= 1U << report->budget;
        } else {
                final->counters.violations++;
                report->id = __atomic_fetch_add(&b->programs.bpf->data->next_window_id, 1,
                                                __ATOMIC_RELAXED);
                report->type = REPORT_VIOLATION;
                owe(b, report, final);
        }
        report->type = REPORT_COMPLETION;
        owe(b, report, final);
}

int bpf_entry_end_windows(BpfBackend *b, const Entry *entry, Statistics *final,
                          Histogram *histogram) {
        Removal removal = {
                .b = b,
                .entry = entry,
                .final = final,
                .histogram = histogram,
        };
        int r;

        r = task_table_end(&b->tasks, entry->generation, on_window_removed, &removal);
        return r >= 0 && entry->is_keyed ? bpf_programs_tend_keyed(&b->programs) : r;
}
