/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Records sched_switch and sched_wakeup through tracefs, raw, with the clock that our programs use.
 * tracefs is mounted for that in a mount namespace of our own, so that nobody else sees it.
 *
 * The states are what the tracepoints tell: who is switched out while runnable waits, who is switched
 * out otherwise sleeps until a wakeup. Each is summed up by itself.
 */

#include "recording.h"

#include <sched.h>
#include <sys/mount.h>
#include <tracefs.h>

#include "cleanup.h"
#include "test.h"
#include "violation.h"

#define BUFFER_KIB "8192" /* for each CPU */

#define PREEMPTED 0x100 /* in prev_state: TASK_REPORT_MAX */

/* A task enters a state; by a wakeup only if it sleeps. */
typedef struct Change {
        uint64_t time_ns;
        uint32_t tid;
        enum tlob_state state;
        bool wakeup;
} Change;

struct Recording {
        char directory[32];
        char name[32];
        struct tep_handle *tep;
        struct tracefs_instance *instance;
        Change *changes;
        size_t n_changes;
        size_t n_missed;
};

static void mount_tracefs(char directory[static 32]) {
        (void) strcpy(directory, "/tmp/tlob-tracefs.XXXXXX");
        assert_non_null(mkdtemp(directory));
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tracefs", directory, "tracefs", 0, NULL) < 0)
                fail_msg("Cannot mount tracefs: %m");
        assert_int_equal(tracefs_set_tracing_dir(directory), 0);
}

Recording *recording_start(void) {
        static const char *const systems[] = { "sched", NULL };
        Recording *r = calloc(1, sizeof(*r));

        assert_non_null(r);
        mount_tracefs(r->directory);
        (void) snprintf(r->name, sizeof(r->name), "tlob-test-%d", getpid());
        r->instance = tracefs_instance_create(r->name);
        r->tep = tracefs_local_events_system(r->directory, systems);
        if (!r->instance || !r->tep)
                fail_msg("tracefs does not take an instance: %m");

        assert_true(tracefs_instance_file_write(r->instance, "trace_clock", "mono") > 0);
        assert_true(tracefs_instance_file_write(r->instance, "buffer_size_kb", BUFFER_KIB) > 0);
        assert_int_equal(tracefs_event_enable(r->instance, "sched", "sched_switch"), 0);
        assert_int_equal(tracefs_event_enable(r->instance, "sched", "sched_wakeup"), 0);
        return r;
}

static uint64_t field(struct tep_event *event, struct tep_record *record, const char *name) {
        unsigned long long value;

        assert_int_equal(tep_get_field_val(NULL, event, name, record, &value, 0), 0);
        return value;
}

static void add_change(Recording *r, uint64_t time_ns, uint64_t tid, enum tlob_state state,
                       bool wakeup) {
        r->changes = reallocarray(r->changes, r->n_changes + 1, sizeof(*r->changes));
        assert_non_null(r->changes);
        r->changes[r->n_changes++] = (Change){
                .time_ns = time_ns, .tid = (uint32_t) tid, .state = state, .wakeup = wakeup
        };
}

static int on_event(struct tep_event *event, struct tep_record *record, int cpu, void *userdata) {
        Recording *r = userdata;

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
static void check_nothing_lost(Recording *r) {
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

static void remove_instance(Recording *r) {
        assert_int_equal(tracefs_instance_destroy(r->instance), 0);
        tracefs_instance_free(r->instance);
        r->instance = NULL;
        assert_false(tracefs_instance_exists(r->name));
}

void recording_stop(Recording *r) {
        assert_int_equal(tracefs_trace_off(r->instance), 0);
        assert_int_equal(tracefs_iterate_raw_events(r->tep, r->instance, NULL, 0, on_event, r), 0);
        check_nothing_lost(r);
        remove_instance(r);
}

ssize_t recording_spent(const Recording *r, uint32_t tid, uint64_t start_ns, uint64_t end_ns,
                        uint64_t ret_spent_ns[static TLOB_N_STATES]) {
        enum tlob_state state = TLOB_RUNNING;
        uint64_t last_ns = start_ns;
        ssize_t n = 0;

        memset(ret_spent_ns, 0, TLOB_N_STATES * sizeof(uint64_t));
        for (size_t i = 0; i < r->n_changes; i++) {
                const Change *c = &r->changes[i];

                if (c->tid != tid || c->time_ns <= start_ns || c->time_ns >= end_ns)
                        continue;
                if (c->wakeup && state != TLOB_SLEEPING)
                        continue;
                if (!c->wakeup && (c->state == TLOB_RUNNING) == (state == TLOB_RUNNING))
                        return -1;
                ret_spent_ns[state] += c->time_ns - last_ns;
                last_ns = c->time_ns;
                state = c->state;
                n++;
        }
        ret_spent_ns[state] += end_ns - last_ns;
        return state == TLOB_RUNNING ? n : -1;
}

void recording_print(const Recording *r, uint32_t tid, uint64_t start_ns, uint64_t end_ns) {
        for (size_t i = 0; i < r->n_changes; i++) {
                const Change *c = &r->changes[i];

                if (c->tid == tid && c->time_ns > start_ns && c->time_ns < end_ns)
                        print_message("  %+10lld ns: %s%s\n", (long long) (c->time_ns - start_ns),
                                      tlob_state_to_string(c->state),
                                      c->wakeup ? ", woken up" : "");
        }
}

Recording *recording_free(Recording *r) {
        if (!r)
                return NULL;

        if (r->instance) {
                (void) tracefs_instance_destroy(r->instance);
                tracefs_instance_free(r->instance);
        }
        if (r->tep)
                tep_free(r->tep);
        (void) umount2(r->directory, MNT_DETACH);
        (void) rmdir(r->directory);
        free(r->changes);
        free(r);
        return NULL;
}
