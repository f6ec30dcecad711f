/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Records sched_switch, sched_waking, sched_wakeup and sched_migrate_task through tracefs, raw, by
 * the clock that our programs use.
 *
 * The states are what the tracepoints tell: who is switched out while runnable waits, who is
 * switched out otherwise sleeps until a wakeup. Each is summed up by itself.
 */

#include "recording.h"

#include <sys/mount.h>
#include <tracefs.h>

#include "base/cleanup.h"
#include "base/sanitizer.h"
#include "report/violation.h"
#include "test.h"
#include "tracing.h"

#define BUFFER_KIB "8192" /* for each CPU */

#ifdef SANITIZED
const char *__lsan_default_suppressions(void);

/* libtracefs 1.8 forgets the page that it has for a CPU without events. */
const char *__lsan_default_suppressions(void) {
        return "leak:tracefs_cpu_flush_buf\n";
}
#endif

#define PREEMPTED 0x100 /* in prev_state: TASK_REPORT_MAX */

/* A task enters a state, on that CPU; by a wakeup only if it sleeps. */
typedef struct Change {
        uint64_t time_ns;
        uint32_t tid;
        uint32_t cpu;
        enum tlob_state state;
        bool wakeup;
} Change;

/* Somebody begins to wake a task, or it is moved to that CPU. */
typedef struct Moment {
        uint64_t time_ns;
        uint32_t tid;
        uint32_t cpu;
} Moment;

typedef struct Moments {
        Moment *items;
        size_t n;
} Moments;

/* What one instance says. */
typedef struct Side {
        char name[32];
        struct tracefs_instance *instance;
        Change *changes;
        size_t n_changes;
        Moments wakings;
        Moments moves;
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
        assert_int_equal(tracefs_event_enable(side->instance, "sched", "sched_waking"), 0);
        assert_int_equal(tracefs_event_enable(side->instance, "sched", "sched_wakeup"), 0);
        assert_int_equal(tracefs_event_enable(side->instance, "sched", "sched_migrate_task"), 0);
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
        free(side->wakings.items);
        free(side->moves.items);
        side->changes = NULL;
        side->wakings = side->moves = (Moments) {};
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

static void add_change(Side *r, const Change *change) {
        r->changes = reallocarray(r->changes, r->n_changes + 1, sizeof(*r->changes));
        assert_non_null(r->changes);
        r->changes[r->n_changes++] = *change;
}

static void add_moment(Moments *moments, const Moment *moment) {
        moments->items = reallocarray(moments->items, moments->n + 1, sizeof(*moments->items));
        assert_non_null(moments->items);
        moments->items[moments->n++] = *moment;
}

static int on_event(struct tep_event *event, struct tep_record *record, int cpu, void *userdata) {
        Side *r = userdata;

        if (record->missed_events != 0)
                r->n_missed++;
        if (streq(event->name, "sched_switch")) {
                uint64_t state = field(event, record, "prev_state");
                bool waits = state == 0 || state & PREEMPTED;
                Change out = { record->ts, (uint32_t) field(event, record, "prev_pid"),
                               (uint32_t) cpu, waits ? TLOB_WAITING : TLOB_SLEEPING, false };
                Change in = { record->ts, (uint32_t) field(event, record, "next_pid"),
                              (uint32_t) cpu, TLOB_RUNNING, false };

                add_change(r, &out);
                add_change(r, &in);
        } else if (streq(event->name, "sched_wakeup")) {
                add_change(r, &(Change) { record->ts, (uint32_t) field(event, record, "pid"),
                                          (uint32_t) field(event, record, "target_cpu"),
                                          TLOB_WAITING, true });
        } else if (streq(event->name, "sched_waking")) {
                add_moment(&r->wakings,
                           &(Moment) { record->ts, (uint32_t) field(event, record, "pid"), 0 });
        } else if (streq(event->name, "sched_migrate_task")) {
                add_moment(&r->moves,
                           &(Moment) { record->ts, (uint32_t) field(event, record, "pid"),
                                       (uint32_t) field(event, record, "dest_cpu") });
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

/* Of the task, the last one after the one moment and not after the other; NULL: there is none. */
static const Moment *last_moment(const Moments *moments, uint32_t tid, uint64_t after_ns,
                                 uint64_t until_ns) {
        const Moment *last = NULL;

        for (size_t i = 0; i < moments->n && moments->items[i].time_ns <= until_ns; i++)
                if (moments->items[i].tid == tid && moments->items[i].time_ns > after_ns)
                        last = &moments->items[i];
        return last;
}

/* How long it took to wake the task, from the last time that this began after it fell asleep. */
static uint64_t waking_ns(const Side *side, const Change *wakeup, uint64_t asleep_ns) {
        const Moment *waking = last_moment(&side->wakings, wakeup->tid, asleep_ns, wakeup->time_ns);

        return waking ? wakeup->time_ns - waking->time_ns : 0;
}

/* Does a task that has waited get the CPU that it was on last? */
static bool is_where_it_was(const Side *side, const Change *before, const Change *now) {
        const Moment *move;

        if (!before || now->state != TLOB_RUNNING)
                return true;
        move = last_moment(&side->moves, now->tid, before->time_ns, now->time_ns);
        return now->cpu == (move ? move->cpu : before->cpu);
}

static bool is_next(const Change *c, enum tlob_state state) {
        return c->wakeup || (c->state == TLOB_RUNNING) != (state == TLOB_RUNNING);
}

int recording_spent(const Recording *r, uint32_t tid, uint64_t start_ns, uint64_t end_ns,
                    Spent *ret) {
        enum tlob_state state = TLOB_RUNNING;
        const Change *before = NULL;
        uint64_t last_ns = start_ns;
        size_t i = 0, j = 0;

        *ret = (Spent) {};
        for (;;) {
                const Change *a = next_change(&r->before, &i, tid, start_ns, end_ns, state);
                const Change *b = next_change(&r->after, &j, tid, start_ns, end_ns, state);

                if (!a && !b)
                        break;
                if (!a || !b || a->state != b->state || a->wakeup != b->wakeup ||
                    a->time_ns > b->time_ns || !is_next(a, state) ||
                    !is_where_it_was(&r->before, before, a))
                        return -1;
                ret->ns[state] += b->time_ns - last_ns;
                ret->unsure_ns += b->time_ns - a->time_ns;
                if (a->wakeup)
                        ret->waking_ns += waking_ns(&r->before, a, last_ns);
                last_ns = b->time_ns;
                before = a;
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
                        print_message("  %+10lld ns: %s on CPU %u%s\n",
                                      (long long) (c->time_ns - start_ns),
                                      tlob_state_to_string(c->state), c->cpu,
                                      c->wakeup ? ", woken up" : "");
        }
        for (size_t i = 0; i < side->moves.n; i++) {
                const Moment *m = &side->moves.items[i];

                if (m->tid == tid && m->time_ns > start_ns && m->time_ns < end_ns)
                        print_message("  %+10lld ns: moved to CPU %u\n",
                                      (long long) (m->time_ns - start_ns), m->cpu);
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
