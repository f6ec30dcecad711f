/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From frames and tasks to words. The frames of a sleeping task begin in the scheduler, which says
 * nothing; what called it does: that is where the task is blocked.
 */

#include "cause.h"

#include <inttypes.h>

#include "sentence.h"

/* Functions of the scheduler that every sleep goes through. */
static bool is_scheduler(const char *frame) {
        static const char *const names[] = {
                "__schedule", "schedule", "schedule_", "io_schedule", "preempt_schedule",
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                size_t n = strlen(names[i]);

                if (strncmp(frame, names[i], n) == 0 && (frame[n] == '\0' || frame[n] == '.' ||
                                                         frame[n] == '_' || names[i][n - 1] == '_'))
                        return true;
        }
        return false;
}

void stack_trim(Stack *stack) {
        size_t skip = 0;

        /* A stack that was taken on the way out has our own programs above "__schedule". */
        for (size_t i = 0; i < stack->n; i++)
                if (strncmp(stack->frames[i], "__schedule", strlen("__schedule")) == 0)
                        skip = i;
        stack->n -= skip;
        memmove(stack->frames, stack->frames[skip], stack->n * sizeof(stack->frames[0]));
}

/* The compiler's additions (".isra.0") are nobody's business. */
static int find_blocked_in(const Stack *stack, char **ret) {
        for (size_t i = 0; i < stack->n; i++) {
                const char *frame = stack->frames[i];

                if (is_scheduler(frame))
                        continue;
                *ret = strndup(frame, strcspn(frame, "."));
                return *ret ? 0 : -ENOMEM;
        }
        return 0;
}

static void strings_free(char **strings) {
        for (char **p = strings; p && *p; p++)
                free(*p);
        free(strings);
}
DEFINE_CLEANUP(char *, strings_free);

static int make_frames(const Stack *stack, char ***ret) {
        _cleanup_(strings_freep) char **frames = NULL;

        frames = calloc(stack->n + 1, sizeof(*frames));
        if (!frames)
                return -ENOMEM;
        for (size_t i = 0; i < stack->n; i++) {
                frames[i] = strndup(stack->frames[i], TLOB_SYMBOL_LEN);
                if (!frames[i])
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(frames);
        return 0;
}

static int make_peer(const struct tlob_peer *peer, char **ret) {
        char comm[TLOB_COMM_LEN + 1] = {};
        _cleanup_free_ char *escaped = NULL;

        if (peer->time_ns == 0)
                return 0;
        if (peer->interrupt)
                *ret = strdup("interrupt");
        else {
                memcpy(comm, peer->comm, TLOB_COMM_LEN);
                escaped = text_escape(comm);
                if (escaped && peer->tid)
                        *ret = sentence_make("%s[%" PRIu32 "]", escaped, peer->tid);
                else
                        *ret = TAKE_PTR(escaped);
        }
        return *ret ? 0 : -ENOMEM;
}

/* Who took the CPU, and who had it last; mostly that is one. */
static int make_preempted_by(const Peers *peers, char **ret) {
        const struct tlob_peer *first = &peers->preempted_by, *last = &peers->ran_before;
        _cleanup_free_ char *a = NULL, *b = NULL;
        int r;

        r = make_peer(first, &a);
        if (r < 0)
                return r;
        /* The one before our return is told only if it came after the one that took the CPU. */
        if (last->time_ns >= first->time_ns && (!a || last->tid != first->tid)) {
                r = make_peer(last, &b);
                if (r < 0)
                        return r;
        }
        if (a && b) {
                *ret = sentence_make("%s, %s", a, b);
                return *ret ? 0 : -ENOMEM;
        }
        *ret = a ? TAKE_PTR(a) : TAKE_PTR(b);
        return 0;
}

int cause_make(const Stack *stack, const Peers *peers, Cause *ret) {
        _cleanup_(cause_done) Cause cause = {};
        int r = 0;

        if (stack && stack->n > 0) {
                r = find_blocked_in(stack, &cause.blocked_in);
                if (r >= 0)
                        r = make_frames(stack, &cause.stack);
        }
        if (r >= 0)
                r = make_peer(&peers->woken_by, &cause.woken_by);
        if (r >= 0)
                r = make_preempted_by(peers, &cause.preempted_by);
        if (r < 0)
                return r;

        *ret = cause;
        cause = (Cause){};
        return 0;
}

static int copy_strings(char **strings, char ***ret) {
        _cleanup_(strings_freep) char **copy = NULL;
        size_t n = 0;

        if (!strings)
                return 0;
        while (strings[n])
                n++;
        copy = calloc(n + 1, sizeof(*copy));
        if (!copy)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                copy[i] = strdup(strings[i]);
                if (!copy[i])
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(copy);
        return 0;
}

int cause_copy(const Cause *cause, Cause *ret) {
        _cleanup_(cause_done) Cause copy = {};
        int r;

        r = free_and_strdup(&copy.blocked_in, cause->blocked_in);
        if (r >= 0)
                r = free_and_strdup(&copy.woken_by, cause->woken_by);
        if (r >= 0)
                r = free_and_strdup(&copy.preempted_by, cause->preempted_by);
        if (r >= 0)
                r = copy_strings(cause->stack, &copy.stack);
        if (r < 0)
                return r;

        *ret = copy;
        copy = (Cause){};
        return 0;
}

void cause_done(Cause *cause) {
        free(cause->blocked_in);
        free(cause->woken_by);
        free(cause->preempted_by);
        strings_free(cause->stack);
        *cause = (Cause){};
}
