/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "suggest/candidates.h"

#include <ctype.h>
#include <inttypes.h>

#include "base/mangled-name.h"
#include "base/sentence.h"
#include "base/system-call.h"
#include "base/trace-event.h"
#include "elf/function-exits.h"
#include "elf/mark.h"
#include "elf/usdt.h"

#define RANKED_MAX      128
#define FUNCTIONS_MAX   8
#define CALLS_MAX       3
#define PAIRS_MAX       3
#define LABEL_MAX       256
#define NOTES_MAX       100000
#define PROBES_MAX      1000 /* more names are not looked at */
#define NAME_MAX_LENGTH 40

_Static_assert(FUNCTIONS_MAX + CALLS_MAX + 1 + PAIRS_MAX < CANDIDATES_MAX,
               "what the program has leaves no room for its libraries");

/* Two functions contain the same time when they differ by less than this part of it. */
#define SAME_PART 32

void candidates_done(Candidates *candidates) {
        for (size_t i = 0; i < candidates->n; i++) {
                Candidate *candidate = &candidates->items[i];

                free(candidate->label);
                free(candidate->executable);
                free(candidate->build_id);
                free(candidate->start);
                free(candidate->stop);
        }
        *candidates = (Candidates) {};
}

static int add(Candidates *candidates, const char *label, const char *executable, const char *start,
               const char *stop, uint64_t spent_ns) {
        Candidate candidate = {
                .label = strdup(label),
                .executable = executable ? strdup(executable) : NULL,
                .start = strdup(start),
                .stop = strdup(stop),
                .spent_ns = spent_ns,
        };

        candidates->items[candidates->n++] = candidate;
        if (!candidate.label || !candidate.start || !candidate.stop ||
            (executable && !candidate.executable))
                return -ENOMEM;
        return 0;
}

static bool has_start(const Candidates *candidates, const char *executable, const char *start) {
        for (size_t i = 0; i < candidates->n; i++)
                if (streq(candidates->items[i].start, start) &&
                    streq_empty(executable, candidates->items[i].executable))
                        return true;
        return false;
}

static int add_function(Candidates *candidates, const SeenFunction *function, uint64_t spent_ns) {
        char declared[LABEL_MAX], place[32];
        const char *start = function->name && !function->is_fetched ? function->name : place;
        const char *label = function->name ?: start;
        int r;

        (void) snprintf(place, sizeof(place), "0x%" PRIx64, function->offset);
        if (has_start(candidates, function->path, start))
                return 0;
        if (function->name && mangled_name_decode(function->name, false, declared, LABEL_MAX))
                label = declared;
        r = add(candidates, label, function->path, start, "return", spent_ns);
        if (r < 0 || !function->build_id)
                return r;
        candidates->items[candidates->n - 1].build_id = strdup(function->build_id);
        return candidates->items[candidates->n - 1].build_id ? 0 : -ENOMEM;
}

/*
 * A path leads to what is there now. In the old version of a program that is still run, the daemon
 * looks for the same name.
 */
static bool can_be_bound(const SeenFunction *function) {
        return function->fate == FILE_KEPT ||
               (function->fate == FILE_REPLACED && function->is_program && function->name &&
                !function->is_fetched);
}

/* Where files and symbols are called what they like, the daemon refuses some. */
static bool can_be_named(const SeenFunction *function) {
        return text_is_printable(function->path) &&
               (!function->name || text_is_printable(function->name));
}

static bool is_choice(const SeenFunction *function) {
        return function->is_known && !function->is_library && can_be_bound(function) &&
               can_be_named(function);
}

static void add_old_file(Candidates *candidates, const SeenFunction *function) {
        if (!function->is_known || function->is_library || can_be_bound(function) ||
            candidates->n_old == OLD_FILES_MAX)
                return;
        for (size_t i = 0; i < candidates->n_old; i++)
                if (streq(candidates->old[i].path, function->path))
                        return;
        candidates->old[candidates->n_old++] = (OldFile) { function->path, function->fate };
}

/* Is it the same time that is in both? */
static bool is_same_time(const Stretch *a, const Stretch *b) {
        uint64_t difference = a->spent_ns - b->spent_ns;

        return difference <= a->spent_ns / SAME_PART &&
               a->n_seen - b->n_seen <= a->n_seen / SAME_PART;
}

/*
 * From a rank on, those that contain the same time: the first that has a name, else the first.
 * *ret_end: behind the last of them.
 */
static const SeenFunction *choose(const Stacks *stacks, const Stretch *ranked, size_t n,
                                  size_t begin, size_t *ret_end) {
        const SeenFunction *chosen = stacks_get(stacks, ranked[begin].function);
        size_t i;

        for (i = begin + 1; i < n && is_same_time(&ranked[begin], &ranked[i]); i++) {
                const SeenFunction *next = stacks_get(stacks, ranked[i].function);

                if ((!chosen->name || !is_choice(chosen)) && next->name && is_choice(next))
                        chosen = next;
        }
        *ret_end = i;
        return chosen;
}

void candidates_fetch_names(const Stretches *stretches, Stacks *stacks, ElfDebugFinder finder,
                            void *userdata) {
        Stretch ranked[RANKED_MAX];
        size_t n = stretches_rank(stretches, ranked, RANKED_MAX);

        for (size_t i = 0; i < n; i++)
                if (!stacks_get(stacks, ranked[i].function)->is_library)
                        stacks_fetch_name(stacks, ranked[i].function, finder, userdata);
}

int candidates_add_functions(Candidates *candidates, const Stretches *stretches,
                             const Stacks *stacks) {
        Stretch ranked[RANKED_MAX];
        size_t n = stretches_rank(stretches, ranked, RANKED_MAX), end;
        int r = 0;

        for (size_t i = 0; i < n; i++)
                add_old_file(candidates, stacks_get(stacks, ranked[i].function));
        for (size_t i = 0; i < n && r >= 0 && candidates->n < FUNCTIONS_MAX; i = end) {
                const SeenFunction *function = choose(stacks, ranked, n, i, &end);

                if (is_choice(function))
                        r = add_function(candidates, function, ranked[i].spent_ns);
        }
        return r;
}

/* One that cannot be measured is none. */
static int add_call(Candidates *candidates, uint32_t number, uint64_t spent_ns) {
        _cleanup_free_ char *name = system_call_get_name(number), *why = NULL, *start = NULL;
        int r;

        if (!name)
                return 0;
        r = system_call_find(name, &number, &why);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        start = sentence_make(SYSTEM_CALL_PLACE "%s", name);
        return start ? add(candidates, start, NULL, start, "return", spent_ns) : -ENOMEM;
}

int candidates_add_calls(Candidates *candidates, const uint64_t *spent_ns, size_t n,
                         uint64_t whole_ns) {
        uint64_t below_ns = UINT64_MAX;
        int r = 0;

        for (unsigned i = 0; i < CALLS_MAX && r >= 0; i++) {
                size_t most = n;

                for (size_t call = 0; call < n; call++)
                        if (spent_ns[call] < below_ns &&
                            (most == n || spent_ns[call] > spent_ns[most]))
                                most = call;
                if (most == n || spent_ns[most] == 0 ||
                    spent_ns[most] < whole_ns / STRETCHES_SMALL_PART)
                        break;
                below_ns = spent_ns[most];
                r = add_call(candidates, (uint32_t) most, spent_ns[most]);
        }
        return r;
}

static bool is_of_loops(const char *call) {
        static const char *const names[] = {
                "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6",
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (streq(names[i], call))
                        return true;
        return false;
}

static bool is_in_go(const char *path) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;

        return elf_file_open(path, &elf, NULL) >= 0 && elf_file_is_go(elf);
}

/* The name of that in which they waited longest; NULL: in none, or no memory. */
static char *find_loop(const uint64_t *idle_ns, size_t n) {
        char *longest = NULL;
        uint64_t most_ns = 0;

        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *name = NULL;

                if (idle_ns[i] <= most_ns)
                        continue;
                name = system_call_get_name((uint32_t) i);
                if (!name || !is_of_loops(name))
                        continue;
                most_ns = idle_ns[i];
                free(longest);
                longest = TAKE_PTR(name);
        }
        return longest;
}

int candidates_add_loop(Candidates *candidates, const uint64_t *idle_ns, size_t n,
                        const char *outside) {
        _cleanup_free_ char *call = find_loop(idle_ns, n), *label = NULL, *start = NULL,
                            *stop = NULL;

        if (!call || is_in_go(outside))
                return 0;
        label = sentence_make("steps between %s", call);
        start = sentence_make(TRACE_EVENT_PLACE "syscalls:sys_exit_%s", call);
        stop = sentence_make(TRACE_EVENT_PLACE "syscalls:sys_enter_%s", call);
        return label && start && stop ? add(candidates, label, NULL, start, stop, 0) : -ENOMEM;
}

/* A probe at its first place. */
typedef struct Probe {
        char *name; /* "provider:name" */
        uint64_t offset;
        uint64_t spent_ns; /* in the function that it is in */
} Probe;

typedef struct Probes {
        Probe *items;
        size_t n;
} Probes;

static int take_probe(const UsdtNote *note, void *userdata) {
        Probes *probes = userdata;
        Probe *items;
        char *name;

        if (probes->n == NOTES_MAX)
                return 1;
        if (!text_is_printable(note->provider) || !text_is_printable(note->name))
                return 0;
        name = sentence_make("%s:%s", note->provider, note->name);
        items = name ? reallocarray(probes->items, probes->n + 1, sizeof(*items)) : NULL;
        if (!items) {
                free(name);
                return -ENOMEM;
        }
        probes->items = items;
        items[probes->n++] = (Probe) { .name = name, .offset = note->offset };
        return 0;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(((const Probe *) a)->name, ((const Probe *) b)->name);
}

/* A probe is one, wherever it is. */
static void remove_doubles(Probes *probes) {
        size_t n = 0;

        if (probes->n > 0)
                qsort(probes->items, probes->n, sizeof(*probes->items), compare_names);
        for (size_t i = 0; i < probes->n; i++)
                if (n > 0 && streq(probes->items[n - 1].name, probes->items[i].name))
                        free(probes->items[i].name);
                else
                        probes->items[n++] = probes->items[i];
        probes->n = n < PROBES_MAX ? n : PROBES_MAX;
        for (size_t i = probes->n; i < n; i++)
                free(probes->items[i].name);
}

static void probes_done(Probes *probes) {
        for (size_t i = 0; i < probes->n; i++)
                free(probes->items[i].name);
        free(probes->items);
}

static int compare_probes(const void *a, const void *b) {
        const Probe *x = a, *y = b;

        return (x->spent_ns < y->spent_ns) - (x->spent_ns > y->spent_ns);
}

/* Those first in whose functions most time was spent. */
static void sort_probes(Probes *probes, const Stretches *stretches, const Stacks *stacks,
                        const ElfFile *elf, const char *path) {
        for (size_t i = 0; i < probes->n; i++) {
                uint64_t entry;
                uint32_t function;

                if (function_find_entry(elf, probes->items[i].offset, &entry) >= 0 &&
                    stacks_find(stacks, path, entry, &function) >= 0)
                        probes->items[i].spent_ns = stretches_get_spent_in(stretches, function);
        }
        if (probes->n > 0)
                qsort(probes->items, probes->n, sizeof(*probes->items), compare_probes);
}

static bool ends_with(const char *s, const char *end) {
        size_t n = strlen(s), m = strlen(end);

        return n > m && streq(s + n - m, end);
}

static const char *find_probe(const Probes *probes, const char *stem, size_t n, const char *end) {
        for (size_t i = 0; i < probes->n; i++)
                if (strncmp(probes->items[i].name, stem, n) == 0 &&
                    streq(probes->items[i].name + n, end))
                        return probes->items[i].name;
        return NULL;
}

/* The probe that ends what another one begins; NULL: its name is not of a beginning. */
static const char *find_end(const Probes *probes, const char *name) {
        static const char *const pairs[][2] = {
                { "start", "done" },   { "start", "end" },    { "start", "stop" },
                { "begin", "end" },    { "begin", "done" },   { "entry", "return" },
                { "start", "finish" }, { "begin", "finish" }, { "enter", "exit" },
        };
        const char *end = NULL;

        for (size_t i = 0; i < ELEMENTSOF(pairs) && !end; i++)
                if (ends_with(name, pairs[i][0]))
                        end = find_probe(probes, name, strlen(name) - strlen(pairs[i][0]),
                                         pairs[i][1]);
        return end;
}

static int add_pair(Candidates *candidates, const char *inside, const Probe *begin,
                    const char *end) {
        _cleanup_free_ char *start = sentence_make(USDT_PLACE "%s", begin->name);
        _cleanup_free_ char *stop = sentence_make(USDT_PLACE "%s", end);
        _cleanup_free_ char *label = NULL;
        const char *mark;
        size_t n;

        if (!start || !stop)
                return -ENOMEM;
        n = mark_of_places(start, stop, &mark);
        label = n > 0 ? sentence_make(MARK_KEY "%.*s", (int) n, mark) : strdup(start);
        return label ? add(candidates, label, inside, start, stop, begin->spent_ns) : -ENOMEM;
}

int candidates_add_usdt(Candidates *candidates, const Stretches *stretches, const Stacks *stacks,
                        const char *outside, const char *inside) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_(probes_done) Probes probes = {};
        size_t end_of_room = candidates->n + PAIRS_MAX;
        int r;

        if (end_of_room > CANDIDATES_MAX)
                end_of_room = CANDIDATES_MAX;
        if (!text_is_printable(inside))
                return 0;

        r = elf_file_open(outside, &elf, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        r = elf_file_visit_usdt(elf, take_probe, &probes);
        remove_doubles(&probes);
        if (r >= 0)
                sort_probes(&probes, stretches, stacks, elf, inside);
        for (size_t i = 0;
             i < probes.n && r >= 0 && candidates->n < end_of_room && probes.items[i].spent_ns > 0;
             i++) {
                const char *end = find_end(&probes, probes.items[i].name);

                if (end)
                        r = add_pair(candidates, inside, &probes.items[i], end);
        }
        return r;
}

char *candidate_make_name(const Candidate *candidate, unsigned number) {
        const char *label = candidate->label;
        char name[NAME_MAX_LENGTH + 1] = "";
        size_t n = 0;

        if (strncmp(label, MARK_KEY, strlen(MARK_KEY)) == 0)
                label += strlen(MARK_KEY);
        if (strchr(label, ':'))
                label = strrchr(label, ':') + 1;
        for (; *label && n < NAME_MAX_LENGTH; label++)
                if (isalnum((unsigned char) *label) || *label == '_')
                        name[n++] = *label;
                else if (n > 0 && name[n - 1] != '-')
                        name[n++] = '-';
        while (n > 0 && name[n - 1] == '-')
                n--;
        name[n] = '\0';
        if (n == 0)
                (void) snprintf(name, sizeof(name), "window");
        return number > 1 ? sentence_make("%s-%u", name, number) : strdup(name);
}
