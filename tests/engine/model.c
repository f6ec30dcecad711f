/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Replays a program of the victim (victim.c has its language) and keeps the books that section 4 of
 * the contract asks for. Threads that run at once are replayed one after the other: their windows
 * have nothing to do with each other.
 *
 * What it knows of time is how much must go by at least: a sleep, a spin. That decides for most
 * windows if a budget of theirs is broken; for the rest, both is right.
 *
 * A stack pointer is the number of brackets that are open (the victim sees to that).
 */

#include "model.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct ModelWindow {
        bool open;
        size_t depth;
        uint64_t start_ns;
        uint64_t start_cpu_ns;
} ModelWindow;

typedef struct Thread {
        ModelWindow windows[MODEL_BINDINGS_MAX];
        size_t n_open;
        uint64_t now_ns; /* at least so late */
        uint64_t cpu_ns; /* and at least so much of it on a CPU */
} Thread;

typedef struct Model {
        const ModelBinding *bindings;
        size_t n_bindings;
        ModelBooks *books;
} Model;

/* What became of the program after a part of it. */
typedef enum Outcome {
        WENT_ON,
        JUMPED,
        ENDED, /* the process, and all its threads */
} Outcome;

typedef enum End {
        END_STOP,
        END_EXIT,
        END_EXEC,
        END_ABANDONED,
} End;

static void judge(const ModelBinding *b, const ModelWindow *w, const Thread *t, bool *ret_must,
                  bool *ret_may) {
        *ret_must = (b->total_ns != MODEL_NEVER && t->now_ns - w->start_ns > b->total_ns) ||
                    (b->running_ns != MODEL_NEVER && t->cpu_ns - w->start_cpu_ns > b->running_ns);
        *ret_may = b->total_ns != MODEL_NEVER || b->running_ns != MODEL_NEVER ||
                   b->sleeping_ns != MODEL_NEVER;
}

static void end_window(Model *m, Thread *t, size_t i, End end) {
        ModelBooks *books = &m->books[i];
        ModelWindow *w = &t->windows[i];
        bool must, may;

        judge(&m->bindings[i], w, t, &must, &may);
        books->violations_min += must;
        books->violations_max += may;
        switch (end) {
        case END_STOP:
                books->stopped++;
                books->violated_min += must;
                books->violated_max += may;
                break;
        case END_EXIT:
                books->exited++;
                break;
        case END_EXEC:
                books->execed++;
                break;
        case END_ABANDONED:
                books->abandoned++;
                break;
        }
        w->open = false;
        t->n_open--;
}

static void end_thread(Model *m, Thread *t, End end) {
        for (size_t i = 0; i < m->n_bindings; i++)
                if (t->windows[i].open)
                        end_window(m, t, i, end);
}

static void start(Model *m, Thread *t, size_t i, size_t depth) {
        ModelBooks *books = &m->books[i];
        ModelWindow *w = &t->windows[i];

        if (w->open) {
                /* A frame that begins where that of the window was, or above: that one is gone. */
                if (m->bindings[i].stop || depth > w->depth) {
                        books->nested++;
                        return;
                }
                end_window(m, t, i, END_ABANDONED);
        }

        books->starts++;
        if (t->n_open == MODEL_WINDOWS_MAX) {
                books->over_limit++;
                return;
        }
        *w = (ModelWindow) {
                .open = true,
                .depth = depth,
                .start_ns = t->now_ns,
                .start_cpu_ns = t->cpu_ns,
        };
        t->n_open++;
}

static void stop(Model *m, Thread *t, size_t i, size_t depth) {
        ModelWindow *w = &t->windows[i];
        bool by_return = !m->bindings[i].stop;

        if (w->open && by_return) {
                if (depth > w->depth)
                        return; /* from a nested call */
                if (depth < w->depth)
                        end_window(m, t, i, END_ABANDONED); /* not the return of this window */
        }
        if (w->open)
                end_window(m, t, i, END_STOP);
        else
                m->books[i].unmatched++;
}

static void enter(Model *m, Thread *t, const char *function, size_t depth) {
        for (size_t i = 0; i < m->n_bindings; i++)
                if (m->bindings[i].stop && strcmp(m->bindings[i].stop, function) == 0)
                        stop(m, t, i, depth);
        for (size_t i = 0; i < m->n_bindings; i++)
                if (strcmp(m->bindings[i].start, function) == 0)
                        start(m, t, i, depth);
}

static void leave(Model *m, Thread *t, const char *function, size_t depth) {
        for (size_t i = 0; i < m->n_bindings; i++)
                if (!m->bindings[i].stop && strcmp(m->bindings[i].start, function) == 0)
                        stop(m, t, i, depth);
}

/* Past the ")" that belongs to the "(" before p. */
static const char *const *skip(const char *const *p) {
        for (size_t depth = 1; *p && depth > 0; p++)
                if (strcmp(*p, ")") == 0)
                        depth--;
                else if ((*p)[strlen(*p) - 1] == '(')
                        depth++;
        return p;
}

static Outcome run(Model *m, Thread *t, const char *const *p, size_t depth);

/* A jump to a bracket of that depth: the frames that lie deeper are gone. */
static void unwind(Model *m, Thread *t, size_t depth) {
        for (size_t i = 0; i < m->n_bindings; i++)
                if (!m->bindings[i].stop && t->windows[i].open && t->windows[i].depth >= depth)
                        end_window(m, t, i, END_ABANDONED);
}

/* A thread of this process, from its beginning to its end. */
static Outcome run_thread(Model *m, Thread *parent, const char *const *p) {
        Thread thread = {};
        Outcome outcome = run(m, &thread, p, 1);

        if (outcome == JUMPED)
                unwind(m, &thread, 0);
        if (outcome != ENDED)
                end_thread(m, &thread, END_EXIT);
        parent->now_ns += thread.now_ns;
        return outcome == ENDED ? ENDED : WENT_ON;
}

/* All at once: the time of one, the books of all. */
static void run_threads(Model *m, Thread *parent, const char *const *p, size_t n) {
        uint64_t begin_ns = parent->now_ns;

        for (size_t i = 0; i < n; i++) {
                parent->now_ns = begin_ns;
                (void) run_thread(m, parent, p);
        }
}

static Outcome run_call(Model *m, Thread *t, const char *function, const char *const *p,
                        size_t depth) {
        Outcome outcome;

        enter(m, t, function, depth);
        outcome = run(m, t, p, depth + 1);
        if (outcome == WENT_ON)
                leave(m, t, function, depth);
        return outcome;
}

static Outcome run_repeat(Model *m, Thread *t, const char *const *p, size_t n, size_t depth) {
        Outcome outcome = WENT_ON;

        for (size_t i = 0; i < n && outcome == WENT_ON; i++)
                outcome = run(m, t, p, depth + 1);
        return outcome;
}

/* What opens a bracket, which begins at p. */
static Outcome run_bracket(Model *m, Thread *t, const char *word, const char *const *p,
                           size_t depth) {
        size_t n = strchr(word, ':') ? strtoul(strchr(word, ':') + 1, NULL, 10) : 1;
        Outcome outcome;

        if (strncmp(word, "repeat:", 7) == 0)
                return run_repeat(m, t, p, n, depth);
        if (strncmp(word, "threads:", 8) == 0) {
                run_threads(m, t, p, n);
                return WENT_ON;
        }
        if (strcmp(word, "thread(") == 0)
                return run_thread(m, t, p);
        if (strcmp(word, "fork(") == 0) {
                (void) run_thread(m, t, p); /* a process of its own, with one thread */
                return WENT_ON;
        }
        if (strcmp(word, "jump(") == 0) {
                outcome = run(m, t, p, depth + 1);
                if (outcome != JUMPED)
                        return outcome;
                unwind(m, t, depth);
                return WENT_ON;
        }
        return run_call(m, t, (char[]) { word[0], '\0' }, p, depth);
}

static Outcome run_word(Model *m, Thread *t, const char *word, size_t depth) {
        const char *colon = strchr(word, ':');
        uint64_t ns = colon ? strtoull(colon + 1, NULL, 10) : 0;

        if (word[0] == '<' || word[0] == '>') {
                enter(m, t, word, depth);
                leave(m, t, word, depth);
        } else if (strncmp(word, "sleep:", 6) == 0 || strncmp(word, "spin:", 5) == 0) {
                t->now_ns += ns;
        } else if (strncmp(word, "burn:", 5) == 0) {
                t->now_ns += ns;
                t->cpu_ns += ns;
        } else if (strcmp(word, "jump") == 0) {
                return JUMPED;
        } else if (strcmp(word, "exec") == 0) {
                end_thread(m, t, END_EXEC);
                return ENDED;
        } else if (strcmp(word, "exit") == 0 || strcmp(word, "kill") == 0) {
                return ENDED;
        } else {
                assert(strncmp(word, "yield:", 6) == 0);
        }
        return WENT_ON;
}

static Outcome run(Model *m, Thread *t, const char *const *p, size_t depth) {
        Outcome outcome = WENT_ON;

        while (outcome == WENT_ON && *p && strcmp(*p, ")") != 0) {
                const char *word = *p++;

                if (*p && strcmp(*p, "(") == 0)
                        p++;
                else if (word[strlen(word) - 1] != '(') {
                        outcome = run_word(m, t, word, depth);
                        continue;
                }
                outcome = run_bracket(m, t, word, p, depth);
                p = skip(p);
        }
        /* exit, kill and exec end the windows of every thread of the process. */
        if (outcome == ENDED)
                end_thread(m, t, END_EXIT);
        return outcome;
}

uint64_t model_run(const char *const *words, const ModelBinding *bindings, size_t n_bindings,
                   ModelBooks ret_books[static MODEL_BINDINGS_MAX]) {
        Model m = { .bindings = bindings, .n_bindings = n_bindings, .books = ret_books };
        Thread outside = {};

        assert(n_bindings <= MODEL_BINDINGS_MAX);
        memset(ret_books, 0, n_bindings * sizeof(*ret_books));
        (void) run_thread(&m, &outside, words);
        return outside.now_ns;
}
