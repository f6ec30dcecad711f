/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What "tlobctl suggest" has to say. What is measured is often a part of something else that was
 * measured, and called as often: then the larger one is proposed.
 */

#include "proposal.h"

#include "base/duration.h"
#include "base/system-call.h"
#include "budget.h"
#include "bus-json.h"
#include "elf/mark.h"

#define SECTIONS_MAX 4

/* Numbers of windows that differ by less than this part, in as much time, are as good as equal. */
#define SIMILAR_PART 3

static const Field fields[] = {
        { "Name", "NAME", FIELD_WRAPPED },
        { "Windows", "WINDOWS", FIELD_COUNT },
        { "P50NSec", "P50", FIELD_DURATION },
        { "P99NSec", "P99", FIELD_DURATION },
        { "MaxNSec", "LONGEST", FIELD_DURATION },
        { "RunningNSec", "RUNNING", FIELD_DURATION },
        { "WaitingNSec", "WAITING", FIELD_DURATION },
        { "SleepingNSec", "SLEEPING", FIELD_DURATION },
        { "BudgetNSec", "BUDGET", FIELD_BUDGET },
        {},
};

static int add_numbers(json_object *row, const Measured *measured) {
        const struct {
                const char *key;
                uint64_t value;
        } numbers[] = {
                { "Windows", measured->n },
                { "P50NSec", measured->p50_ns },
                { "P99NSec", measured->p99_ns },
                { "P999NSec", measured->p999_ns },
                { "MaxNSec", measured->max_ns },
                { "RunningNSec", measured->spent_ns[0] },
                { "WaitingNSec", measured->spent_ns[1] },
                { "SleepingNSec", measured->spent_ns[2] },
                { "BudgetNSec", budget_propose(measured->p999_ns) },
        };
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(numbers) && r >= 0; i++)
                r = json_add_number(row, numbers[i].key, numbers[i].value);
        return r;
}

static int make_row(const Candidate *candidate, const Measured *measured, json_object **ret) {
        _cleanup_json_ json_object *row = json_object_new_object();
        int r;

        if (!row)
                return -ENOMEM;
        r = json_add_string(row, "Name", candidate->label);
        if (r >= 0)
                r = json_add_string(row, "Executable", candidate->executable ?: "");
        if (r >= 0)
                r = json_add_string(row, "Start", candidate->start);
        if (r >= 0)
                r = json_add_string(row, "Stop", candidate->stop);
        if (r >= 0)
                r = add_numbers(row, measured);
        if (r >= 0)
                *ret = TAKE_PTR(row);
        return r;
}

static uint64_t total_ns(const Measured *measured) {
        return measured->spent_ns[0] + measured->spent_ns[1] + measured->spent_ns[2];
}

/* What was measured, the most time first. */
typedef struct Order {
        const Trial *trial;
        size_t items[CANDIDATES_MAX]; /* indices */
        size_t n;
} Order;

static int compare_measured(const void *a, const void *b, void *userdata) {
        const Trial *trial = userdata;
        uint64_t x = total_ns(&trial->measured[*(const size_t *) a]);
        uint64_t y = total_ns(&trial->measured[*(const size_t *) b]);

        return (x < y) - (x > y);
}

static Order sort_measured(const Trial *trial) {
        Order order = { .trial = trial };

        for (size_t i = 0; i < trial->candidates->n; i++)
                if (!trial->measured[i].refusal && trial->measured[i].n > 0)
                        order.items[order.n++] = i;
        qsort_r(order.items, order.n, sizeof(*order.items), compare_measured, (void *) trial);
        return order;
}

static int make_rows(const Order *order, json_object **ret) {
        _cleanup_json_ json_object *rows = json_object_new_array();
        int r = rows ? 0 : -ENOMEM;

        for (size_t i = 0; i < order->n && r >= 0; i++) {
                size_t index = order->items[i];
                json_object *row;

                r = make_row(&order->trial->candidates->items[index],
                             &order->trial->measured[index], &row);
                if (r >= 0)
                        r = json_append(rows, row);
        }
        if (r >= 0)
                *ret = TAKE_PTR(rows);
        return r;
}

static bool is_whole_function(const Candidate *candidate) {
        return streq(candidate->stop, "return") && candidate->executable;
}

static bool is_offset(const char *place) {
        return place[0] >= '0' && place[0] <= '9';
}

/* What a window is, as people would write it. */
static void print_places(const Candidate *candidate) {
        const char *start = candidate->start, *call = system_call_of_place(start), *mark;
        size_t n = mark_of_places(start, candidate->stop, &mark);

        if (is_whole_function(candidate))
                (void) printf("Function=%s\n", start);
        else if (call)
                (void) printf("Syscall=%s\n", call);
        else if (n > 0)
                (void) printf(MARK_KEY "%.*s\n", (int) n, mark);
        else
                (void) printf("Start=%s\nStop=%s\n", start, candidate->stop);
}

static int print_section(const Candidate *candidate, const Measured *measured, const char *name) {
        char budget[DURATION_MAX];

        (void) printf("\n[X-Tlob %s]\n", name);
        if (candidate->executable)
                (void) printf("Executable=%s\n", candidate->executable);
        /* Elsewhere something else may be there. */
        if (candidate->build_id && is_offset(candidate->start))
                (void) printf("BuildID=%s\n", candidate->build_id);
        if (is_offset(candidate->start) && !is_offset(candidate->label))
                (void) printf("# %s\n", candidate->label);
        print_places(candidate);
        (void) printf("BudgetSec=%s\n", duration_format(budget_propose(measured->p999_ns), budget));
        return 0;
}

/* As often: mostly the one is a part of the other. */
static bool are_alike(const Order *order, size_t a, size_t b) {
        uint64_t x = order->trial->measured[a].n, y = order->trial->measured[b].n;

        return x > y ? x - y <= x / SIMILAR_PART : y - x <= y / SIMILAR_PART;
}

static bool has_name(const Order *order, size_t index) {
        return strncmp(order->trial->candidates->items[index].label, "0x", 2) != 0;
}

/*
 * The one to propose of those that are like the one at that rank, and take about as long: one that
 * has a name, if there is one, and of these the one that was found first, which is around others.
 */
static size_t prefer(const Order *order, size_t rank) {
        size_t first = order->items[rank], best = first;
        uint64_t least_ns = total_ns(&order->trial->measured[first]) / 8 * 7;

        for (size_t i = rank; i < order->n; i++) {
                size_t item = order->items[i];

                if (has_name(order, item) && are_alike(order, first, item) &&
                    total_ns(&order->trial->measured[item]) >= least_ns &&
                    (!has_name(order, best) || item < best))
                        best = item;
        }
        return best;
}

/* It is so short that nobody waits for it, and probes would be most of its time. */
static bool is_too_short(const Order *order, size_t index) {
        const Measured *measured = &order->trial->measured[index];

        return measured->probes_ns != UINT64_MAX && measured->probes_ns > total_ns(measured);
}

static size_t choose(const Order *order, size_t chosen[static SECTIONS_MAX]) {
        size_t n = 0;

        for (size_t i = 0; i < order->n && n < SECTIONS_MAX; i++) {
                bool is_there = false;

                for (size_t j = 0; j < n; j++)
                        is_there |= are_alike(order, chosen[j], order->items[i]);
                if (!is_there && !is_too_short(order, order->items[i]))
                        chosen[n++] = prefer(order, i);
        }
        return n;
}

/* Methods of several classes can have the same name. */
static char *name_section(const Order *order, const size_t *chosen, size_t i) {
        const Candidate *items = order->trial->candidates->items;
        _cleanup_free_ char *name = candidate_make_name(&items[chosen[i]], 1);
        unsigned number = 1;

        for (size_t j = 0; name && j < i; j++) {
                _cleanup_free_ char *other = candidate_make_name(&items[chosen[j]], 1);

                number += other && streq(other, name);
        }
        return name ? candidate_make_name(&items[chosen[i]], number) : NULL;
}

static int print_drop_in(const Order *order, const char *unit) {
        size_t chosen[SECTIONS_MAX], n = choose(order, chosen);
        bool few = false;
        int r = 0;

        if (n == 0) {
                (void) printf("\nThere is no drop-in to propose: probes would take more time than "
                              "what they measure.\n");
                return 0;
        }
        (void) printf("\n# /etc/systemd/system/%s.d/50-latency.conf, then 'systemctl "
                      "daemon-reload'.\n# Budgets: what all but one in a thousand took, and half "
                      "as much more.\n",
                      unit);
        for (size_t i = 0; i < n && r >= 0; i++) {
                _cleanup_free_ char *name = name_section(order, chosen, i);

                few |= order->trial->measured[chosen[i]].n < BUDGET_WINDOWS_FEW;
                r = name ? print_section(&order->trial->candidates->items[chosen[i]],
                                         &order->trial->measured[chosen[i]], name)
                         : -ENOMEM;
        }
        if (few)
                (void) printf("\n# Where there were fewer than %i windows, it is the longest one "
                              "and half as much more.\n",
                              BUDGET_WINDOWS_FEW);
        return r;
}

int proposal_show(Output *output, const Trial *trial, const char *unit) {
        _cleanup_json_ json_object *rows = NULL;
        Order order = sort_measured(trial);
        int r;

        r = make_rows(&order, &rows);
        if (r < 0)
                return r;
        if (output->json != JSON_OFF) {
                r = output_json(output, rows);
                return r < 0 || order.n > 0 ? r : -ENODATA;
        }
        if (order.n == 0)
                return -ENODATA;
        r = output_table(output, fields, rows, "candidate");
        return r < 0 ? r : print_drop_in(&order, unit);
}
