/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From frames and tasks to words. The frames of a sleeping task begin in the scheduler, which says
 * nothing; what called it does: that is where the task is blocked.
 */

#include "report/cause.h"

#include <inttypes.h>

#include "base/sentence.h"
#include "base/strings.h"
#include "base/unit-name.h"

/* Functions of the scheduler that every sleep goes through, and those that only wait for others. */
static bool is_scheduler(const char *frame) {
        static const char *const names[] = {
                "__schedule",        "schedule",          "schedule_",  "io_schedule",
                "preempt_schedule",  "rt_mutex_schedule", "wait_woken", "do_wait_intr",
                "__wait_for_common", "wait_for_common",
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                size_t n = strlen(names[i]);

                if (strncmp(frame, names[i], n) == 0 && (frame[n] == '\0' || frame[n] == '.' ||
                                                         frame[n] == '_' || names[i][n - 1] == '_'))
                        return true;
        }
        return false;
}

const char *task_name_format(const char *comm, uint32_t pid, uint32_t tid,
                             char buf[static TASK_NAME_MAX]) {
        if (pid > 0 && tid > 0 && pid != tid)
                (void) snprintf(buf, TASK_NAME_MAX, "%.*s[%" PRIu32 "/%" PRIu32 "]",
                                (int) COMM_ESCAPED_MAX, comm, pid, tid);
        else if (pid > 0 || tid > 0)
                (void) snprintf(buf, TASK_NAME_MAX, "%.*s[%" PRIu32 "]", (int) COMM_ESCAPED_MAX,
                                comm, pid > 0 ? pid : tid);
        else
                (void) snprintf(buf, TASK_NAME_MAX, "%.*s", (int) COMM_ESCAPED_MAX, comm);
        return buf;
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

const char *stack_blocked_in(const Stack *stack) {
        for (size_t i = 0; i < stack->n; i++)
                if (!is_scheduler(stack->frames[i]))
                        return stack->frames[i];
        return NULL;
}

/* The compiler's additions (".isra.0") are nobody's business. */
static int find_blocked_in(const Stack *stack, char **ret) {
        const char *frame = stack_blocked_in(stack);

        if (!frame)
                return 0;
        *ret = strndup(frame, strcspn(frame, "."));
        return *ret ? 0 : -ENOMEM;
}

const char *cause_words_for(const char *blocked_in) {
        static const struct {
                const char *function, *words;
        } held_up[] = {
                { "do_signal_stop", "stopped in" },
                { "ptrace_stop", "stopped by a debugger in" },
                { "do_freezer_trap", "frozen in" },
                { "__refrigerator", "frozen in" },
                { "get_signal", "stopped or frozen in" }, /* the first and the third, inlined */
        };

        for (size_t i = 0; i < ELEMENTSOF(held_up); i++)
                if (streq(blocked_in, held_up[i].function))
                        return held_up[i].words;
        return "blocked in";
}

bool cause_is_quota_of_unit(const char *preempted_by) {
        return strncmp(preempted_by, CAUSE_QUOTA_OF, strlen(CAUSE_QUOTA_OF)) == 0 &&
               unit_name_type(preempted_by, UNIT_ANY);
}

const char *cause_words_for_peer(const char *preempted_by) {
        if (streq_empty(preempted_by, CAUSE_QUOTA))
                return "held back by a";
        return preempted_by && cause_is_quota_of_unit(preempted_by) ? "held back by the"
                                                                    : "preempted by";
}

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

static char *name_peer(const Peer *peer) {
        char task[TASK_NAME_MAX];

        switch (peer->kind) {
        case TLOB_PEER_INTERRUPT:
                return strdup("interrupt");
        case TLOB_PEER_QUOTA:
                return strdup(CAUSE_QUOTA);
        default:
                return text_escape(task_name_format(peer->comm, peer->pid, peer->tid, task));
        }
}

static int make_peer(const Peer *peer, char **ret) {
        if (!peer->is_known)
                return 0;
        *ret = name_peer(peer);
        return *ret ? 0 : -ENOMEM;
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
                r = make_peer(&peers->preempted_by, &cause.preempted_by);
        if (r < 0)
                return r;

        *ret = cause;
        cause = (Cause) {};
        return 0;
}

int cause_set_quota_of(Cause *cause, const char *unit) {
        char *quota = sentence_make(CAUSE_QUOTA_OF "%s", unit);

        if (!quota)
                return -ENOMEM;
        free(cause->preempted_by);
        cause->preempted_by = quota;
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
                r = strings_copy(cause->stack, &copy.stack);
        if (r < 0)
                return r;

        *ret = copy;
        copy = (Cause) {};
        return 0;
}

void cause_done(Cause *cause) {
        free(cause->blocked_in);
        free(cause->woken_by);
        free(cause->preempted_by);
        strings_free(cause->stack);
        *cause = (Cause) {};
}
