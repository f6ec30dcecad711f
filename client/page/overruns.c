/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "page/overruns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/cleanup.h"

static void overrun_done(Overrun *overrun) {
        free(overrun->task);
        free(overrun->cause);
}

static void free_names(Overruns *overruns) {
        free(overruns->machine);
        free(overruns->host);
        free(overruns->binding);
        free(overruns->unit);
}

void overrun_list_done(OverrunList *list) {
        for (size_t i = 0; i < list->n; i++) {
                Overruns *overruns = list->items + i;

                for (size_t k = 0; k < overruns->n; k++)
                        overrun_done(overruns->items + k);
                free(overruns->items);
                free(overruns->held_back);
                free_names(overruns);
        }
        free(list->items);
        *list = (OverrunList) {};
}

static const char *key_of(const Machine *machine) {
        return *machine->id != '\0' ? machine->id : machine->host;
}

Overruns *overrun_list_find(const OverrunList *list, const Machine *machine, const char *binding) {
        for (size_t i = 0; i < list->n; i++)
                if (streq(list->items[i].binding, binding) &&
                    streq(list->items[i].machine, key_of(machine)))
                        return list->items + i;
        return NULL;
}

/* All that is known of a machine is told of the one that has that name now. */
static int rename_machine(OverrunList *list, const Machine *machine) {
        int r = 0;

        for (size_t i = 0; i < list->n && r >= 0; i++)
                if (streq(list->items[i].machine, key_of(machine)) &&
                    !streq(list->items[i].host, machine->host))
                        r = free_and_strdup(&list->items[i].host, machine->host);
        return r < 0 ? r : 0;
}

int overrun_list_get(OverrunList *list, const Machine *machine, const char *binding,
                     const char *unit, Overruns **ret) {
        Overruns *items, made = {};
        int r;

        r = rename_machine(list, machine);
        if (r < 0)
                return r;
        *ret = overrun_list_find(list, machine, binding);
        if (*ret) {
                if (!streq((*ret)->unit, unit))
                        (*ret)->unit[0] = '\0';
                return 0;
        }
        items = reallocarray(list->items, list->n + 1, sizeof(*items));
        if (!items)
                return -ENOMEM;
        list->items = items;
        made.machine = strdup(key_of(machine));
        made.host = strdup(machine->host);
        made.binding = strdup(binding);
        made.unit = strdup(unit);
        if (!made.machine || !made.host || !made.binding || !made.unit) {
                free_names(&made);
                return -ENOMEM;
        }
        list->items[list->n] = made;
        *ret = list->items + list->n++;
        return 0;
}

size_t overrun_list_count_machines(const OverrunList *list) {
        size_t n = 0;

        for (size_t i = 0; i < list->n; i++) {
                size_t k = 0;

                while (k < i && !streq(list->items[k].machine, list->items[i].machine))
                        k++;
                n += k == i;
        }
        return n;
}

bool overrun_list_is_namesake(const OverrunList *list, const Overruns *overruns) {
        for (size_t i = 0; i < list->n; i++)
                if (streq(list->items[i].host, overruns->host) &&
                    !streq(list->items[i].machine, overruns->machine))
                        return true;
        return false;
}

int overruns_add(Overruns *overruns, const Overrun *overrun) {
        Overrun copy = *overrun;

        if (overruns->n == overruns->n_allocated) {
                size_t room = 2 * overruns->n_allocated + 64;
                Overrun *items = reallocarray(overruns->items, room, sizeof(*items));

                if (!items)
                        return -ENOMEM;
                overruns->items = items;
                overruns->n_allocated = room;
        }
        copy.task = strdup(overrun->task);
        copy.cause = strdup(overrun->cause);
        if (!copy.task || !copy.cause) {
                overrun_done(&copy);
                return -ENOMEM;
        }
        overruns->items[overruns->n++] = copy;
        return 0;
}

int overruns_hold_back(Overruns *overruns, uint64_t time_usec, uint64_t n) {
        PlotEvent *events =
                reallocarray(overruns->held_back, overruns->n_held_back + 1, sizeof(*events));

        if (!events)
                return -ENOMEM;
        overruns->held_back = events;
        events[overruns->n_held_back++] =
                (PlotEvent) { .time_usec = time_usec, .length_ns = UINT64_MAX, .count = n };
        overruns->suppressed += n;
        return 0;
}

/* The newest; NULL: there is none. */
static Overrun *find(const Overruns *overruns, uint64_t id) {
        for (size_t i = overruns->n; i-- > 0;)
                if (overruns->items[i].id == id && id != 0)
                        return overruns->items + i;
        return NULL;
}

bool overruns_has(const Overruns *overruns, uint64_t id) {
        return find(overruns, id);
}

void overruns_complete(Overruns *overruns, const Overrun *end) {
        Overrun *overrun = find(overruns, end->id);

        if (!overrun)
                return;
        overrun->end = end->end;
        if (end->end)
                return;
        overrun->length_ns = end->length_ns;
        memcpy(overrun->spent_ns, end->spent_ns, sizeof(overrun->spent_ns));
}

uint64_t overrun_over_ns(const Overrun *overrun) {
        return budget_get_overrun(overrun->budget, overrun->budget_ns, overrun->length_ns,
                                  overrun->spent_ns);
}

static int compare_texts(const void *a, const void *b) {
        return strcmp((*(const Overrun *const *) a)->cause, (*(const Overrun *const *) b)->cause);
}

static int compare_reasons(const void *a, const void *b) {
        const Reason *x = a, *y = b;

        if (x->over_ns != y->over_ns)
                return x->over_ns < y->over_ns ? 1 : -1;
        return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp(x->text, y->text);
}

/* All of them, to be sorted. */
static const Overrun **list_all(const Overruns *overruns) {
        const Overrun **list = calloc(overruns->n + 1, sizeof(*list));

        for (size_t i = 0; list && i < overruns->n; i++)
                list[i] = overruns->items + i;
        return list;
}

size_t overruns_rank_reasons(const Overruns *overruns, Reason **ret) {
        _cleanup_free_ const Overrun **list = list_all(overruns);
        Reason *reasons = list ? calloc(overruns->n + 1, sizeof(*reasons)) : NULL;
        size_t n = 0;

        *ret = reasons;
        if (!reasons)
                return 0;
        qsort(list, overruns->n, sizeof(*list), compare_texts);
        for (size_t i = 0; i < overruns->n; i++) {
                if (n == 0 || !streq(reasons[n - 1].text, list[i]->cause))
                        reasons[n++] = (Reason) { .text = list[i]->cause };
                reasons[n - 1].n++;
                reasons[n - 1].over_ns += overrun_over_ns(list[i]);
        }
        qsort(reasons, n, sizeof(*reasons), compare_reasons);
        return n;
}

/* One whose length is not known comes last. */
static int compare_lengths(const void *a, const void *b) {
        const Overrun *x = *(const Overrun *const *) a, *y = *(const Overrun *const *) b;
        uint64_t left = x->length_ns + 1, right = y->length_ns + 1;

        if (left != right)
                return left < right ? 1 : -1;
        return (x->time_usec > y->time_usec) - (x->time_usec < y->time_usec);
}

size_t overruns_find_worst(const Overruns *overruns, size_t n, const Overrun ***ret) {
        *ret = list_all(overruns);
        if (!*ret)
                return 0;
        qsort(*ret, overruns->n, sizeof(**ret), compare_lengths);
        return overruns->n < n ? overruns->n : n;
}

void overruns_sum(const Overruns *overruns, uint64_t ret_ns[static TLOB_N_STATES]) {
        memset(ret_ns, 0, TLOB_N_STATES * sizeof(*ret_ns));
        for (size_t i = 0; i < overruns->n; i++)
                for (size_t k = 0; k < TLOB_N_STATES; k++)
                        if (overruns->items[i].spent_ns[k] != UINT64_MAX)
                                ret_ns[k] += overruns->items[i].spent_ns[k];
}

size_t overruns_to_events(const Overruns *overruns, PlotEvent **ret) {
        size_t n = overruns->n + overruns->n_held_back;
        PlotEvent *events = calloc(n + 1, sizeof(*events));

        *ret = events;
        if (!events)
                return 0;
        for (size_t i = 0; i < overruns->n; i++)
                events[i] = (PlotEvent) {
                        .time_usec = overruns->items[i].time_usec,
                        .length_ns = overruns->items[i].length_ns,
                        .id = overruns->items[i].id,
                        .count = 1,
                };
        if (overruns->n_held_back > 0)
                memcpy(events + overruns->n, overruns->held_back,
                       overruns->n_held_back * sizeof(*events));
        return n;
}
