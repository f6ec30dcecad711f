/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Records sched_switch and sched_wakeup through tracefs, raw, with the clock that our programs use.
 *
 * The states are what the tracepoints tell: who is switched out while runnable waits, who is
 * switched out otherwise sleeps until a wakeup. Each is summed up by itself.
 */

#include "recording.h"

#include <sys/mount.h>
#include <tracefs.h>

#include "base/cleanup.h"
#include "report/violation.h"
#include "test.h"
#include "tracing.h"

#define BUFFER_KIB "8192" /* for each CPU */

#define PREEMPTED 0x100 /* in prev_state: TASK_REPORT_MAX */

/* A task enters a state; by a wakeup only if it sleeps. */
typedef struct Change {
        uint64_t time_ns;
        uint32_t tid;
        enum tlob_state state;
        bool wakeup;
} Change;

/* What one instance says. */
typedef struct Side {
        char name[32];
        struct tracefs_instance *instance;
        Change *changes;
        size_t n_changes;
        size_t n_missed;
} Side;

struct Recording {
        char directory[32];
        struct tep_handle *tep;
        Side before, after;
};

static void mount_tracefs(char directory[static 32]) {
        (void) strcpy(directory, "/tmp/tlob-tracefs.XXXXXX");
        assert_non_null(mkdtemp(directory));
        tracing_mount(directory);
        assert_int_equal(tracefs_set_tracing_dir(directory), 0);
}

static void start_side(Side *side, const char *word) {
        (void) snprintf(side->name, sizeof(side->name), "tlob-test-%d-%s", getpid(), word);
        side->instance = tracefs_instance_create(side->name);
        if (!side->instance)
                fail_msg("tracefs does not take an instance: %m");

        assert_int_equal(tracefs_trace_off(side->instance), 0);
        assert_true(tracefs_instance_file_write(side->instance, "trace_clock", "mono") > 0);
        assert_true(tracefs_instance_file_write(side->instance, "buffer_size_kb", BUFFER_KIB) > 0);
        assert_int_equal(tracefs_event_enable(side->instance, "sched", "sched_switch"), 0);
        assert_int_equal(tracefs_event_enable(side->instance, "sched", "sched_wakeup"), 0);
}

Recording *recording_new(void) {
        static const char *const systems[] = { "sched", NULL };
        Recording *r = calloc(1, sizeof(*r));

        assert_non_null(r);
        mount_tracefs(r->directory);
        r->tep = tracefs_local_events_system(r->directory, systems);
        if (!r->tep)
                fail_msg("tracefs does not tell of its events: %m");
        start_side(&r->before, "before");
        return r;
}

static void forget(Side *side) {
        free(side->changes);
        side->changes = NULL;
        side->n_changes = side->n_missed = 0;
}

void recording_start(Recording *r) {
        forget(&r->before);
        forget(&r->after);
        if (!r->after.instance)
                start_side(&r->after, "after");
        assert_int_equal(tracefs_trace_on(r->before.instance), 0);
        assert_int_equal(tracefs_trace_on(r->after.instance), 0);
}

static uint64_t field(struct tep_event *event, struct tep_record *record, const char *name) {
        unsigned long long value;

        assert_int_equal(tep_get_field_val(NULL, event, name, record, &value, 0), 0);
        return value;
}

static void add_change(Side *r, uint64_t time_ns, uint64_t tid, enum tlob_state state,
                       bool wakeup) {
        r->changes = reallocarray(r->changes, r->n_changes + 1, sizeof(*r->changes));
        assert_non_null(r->changes);
        r->changes[r->n_changes++] = (Change) {
                .time_ns = time_ns, .tid = (uint32_t) tid, .state = state, .wakeup = wakeup
        };
}

static int on_event(struct tep_event *event, struct tep_record *record, int cpu, void *userdata) {
        Side *r = userdata;

        if (record->missed_events != 0)
                r->n_missed++;
        if (streq(event->name, "sched_switch")) {
                uint64_t state = field(event, record, "prev_state");

                add_change(r, record->ts, field(event, record, "prev_pid"),
                           state == 0 || state & PREEMPTED ? TLOB_WAITING : TLOB_SLEEPING, false);
                add_change(r, record->ts, field(event, record, "next_pid"), TLOB_RUNNING, false);
        } else if (streq(event->name, "sched_wakeup")) {
                add_change(r, record->ts, field(event, record, "pid"), TLOB_WAITING, true);
        }
        return 0;
}

/* The buffers count what they had no room for. */
static void check_nothing_lost(Side *r) {
        for (int cpu = 0; cpu < (int) sysconf(_SC_NPROCESSORS_ONLN); cpu++) {
                _cleanup_free_ char *text = NULL;
                char path[64];

                (void) snprintf(path, sizeof(path), "per_cpu/cpu%d/stats", cpu);
                text = tracefs_instance_file_read(r->instance, path, NULL);
                assert_non_null(text);
                if (!strstr(text, "\noverrun: 0\n") || !strstr(text, "\ndropped events: 0\n"))
                        fail_msg("The recording has lost events: %s", text);
        }
        assert_int_equal(r->n_missed, 0);
}

static void stop_side(Recording *r, Side *side) {
        assert_int_equal(tracefs_trace_off(side->instance), 0);
        assert_int_equal(
                tracefs_iterate_raw_events(r->tep, side->instance, NULL, 0, on_event, side), 0);
        check_nothing_lost(side);
        /* Empties it. */
        assert_true(tracefs_instance_file_write(side->instance, "trace", "") >= 0);
}

void recording_stop(Recording *r) {
        stop_side(r, &r->before);
        stop_side(r, &r->after);
}

/*
 * The next change of the task from *i on, at which a task that was in that state comes into
 * another.
 */
static const Change *next_change(const Side *side, size_t *i, uint32_t tid, uint64_t start_ns,
                                 uint64_t end_ns, enum tlob_state state) {
        while (*i < side->n_changes) {
                const Change *c = &side->changes[(*i)++];

                if (c->tid == tid && c->time_ns > start_ns && c->time_ns < end_ns &&
                    (!c->wakeup || state == TLOB_SLEEPING))
                        return c;
        }
        return NULL;
}

static bool is_next(const Change *c, enum tlob_state state) {
        return c->wakeup || (c->state == TLOB_RUNNING) != (state == TLOB_RUNNING);
}

int recording_spent(const Recording *r, uint32_t tid, uint64_t start_ns, uint64_t end_ns,
                    Spent *ret) {
        enum tlob_state state = TLOB_RUNNING;
        uint64_t last_ns = start_ns;
        size_t i = 0, j = 0;

        *ret = (Spent) {};
        for (;;) {
                const Change *a = next_change(&r->before, &i, tid, start_ns, end_ns, state);
                const Change *b = next_change(&r->after, &j, tid, start_ns, end_ns, state);

                if (!a && !b)
                        break;
                if (!a || !b || a->state != b->state || a->wakeup != b->wakeup ||
                    a->time_ns > b->time_ns || !is_next(a, state))
                        return -1;
                ret->ns[state] += b->time_ns - last_ns;
                ret->unsure_ns += b->time_ns - a->time_ns;
                last_ns = b->time_ns;
                state = b->state;
                ret->n_changes++;
        }
        ret->ns[state] += end_ns - last_ns;
        return state == TLOB_RUNNING ? 0 : -1;
}

static void print_side(const Side *side, uint32_t tid, uint64_t start_ns, uint64_t end_ns) {
        for (size_t i = 0; i < side->n_changes; i++) {
                const Change *c = &side->changes[i];

                if (c->tid == tid && c->time_ns > start_ns && c->time_ns < end_ns)
                        print_message("  %+10lld ns: %s%s\n", (long long) (c->time_ns - start_ns),
                                      tlob_state_to_string(c->state),
                                      c->wakeup ? ", woken up" : "");
        }
}

void recording_print(const Recording *r, uint32_t tid, uint64_t start_ns, uint64_t end_ns) {
        print_message(" before the engine:\n");
        print_side(&r->before, tid, start_ns, end_ns);
        print_message(" after it:\n");
        print_side(&r->after, tid, start_ns, end_ns);
}

static void side_done(Side *side) {
        forget(side);
        if (!side->instance)
                return;
        (void) tracefs_instance_destroy(side->instance);
        tracefs_instance_free(side->instance);
}

Recording *recording_free(Recording *r) {
        if (!r)
                return NULL;

        side_done(&r->before);
        side_done(&r->after);
        if (r->tep)
                tep_free(r->tep);
        (void) umount2(r->directory, MNT_DETACH);
        (void) rmdir(r->directory);
        free(r);
        return NULL;
}
