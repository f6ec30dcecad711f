/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The monitor is one for the whole machine, and others use it too: "rv mon tlob" switches it off
 * when it ends, a change of the reactor or a careless write to enabled_monitors takes all bindings
 * away, and anyone may remove ours by hand. The files are watched; after each change by anyone the
 * monitor is compared with what we have set, and what is missing is put back.
 *
 * While none of our bindings is in use, because their units do not run, it is left as others want
 * it. Else ours are set again, and the log says so. Whoever keeps at it wins: after some repairs in
 * a minute all bindings are given up, and the manager looks for another back end. The same when a
 * violation would stop the machine.
 *
 * It never polls: tracefs gives inotify events for writes by programs.
 */

#include "kernel/repair.h"

#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <syslog.h>

#include "base/clock.h"
#include "base/sentence.h"
#include "kernel/leaving.h"
#include "kernel/owner.h"
#include "kernel/reset.h"

#define REPAIRS_MAX         5
#define REPAIRS_INTERVAL_NS UINT64_C(60000000000)

int kernel_repair_start(KernelContext *c) {
        c->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (c->watch_fd < 0)
                return -errno;
        for (size_t i = 0; kernel_monitor_files[i]; i++) {
                _cleanup_free_ char *path =
                        kernel_tracing_path(&c->tracing, kernel_monitor_files[i]);
                int watch;

                if (!path)
                        return -ENOMEM;
                watch = inotify_add_watch(c->watch_fd, path, IN_CLOSE_WRITE);
                /* Some are there with some configurations of the kernel only. */
                if (watch < 0 && errno != ENOENT)
                        return -errno;
                if (streq(kernel_monitor_files[i], KERNEL_MONITOR_ENABLE))
                        c->enable_watch = watch;
        }
        return 0;
}

/* When a file is replaced, its last link goes. */
int kernel_repair_watch_file(KernelContext *c, KernelEntry *entry) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%i", entry->fd);
        entry->file_watch = inotify_add_watch(c->watch_fd, path, IN_ATTRIB);
        return entry->file_watch < 0 ? -errno : 0;
}

void kernel_repair_unwatch_file(KernelContext *c, KernelEntry *entry) {
        int watch = entry->file_watch;

        entry->file_watch = -1;
        if (watch < 0)
                return;
        for (size_t i = 0; i < c->n_entries; i++)
                if (c->entries[i].used && c->entries[i].file_watch == watch)
                        return;
        (void) inotify_rm_watch(c->watch_fd, watch);
}

static void give_up_all(KernelContext *c, const char *why) {
        for (size_t i = 0; i < c->n_entries; i++)
                if (c->entries[i].used && !c->entries[i].retired)
                        kernel_context_give_up(c, &c->entries[i], why);
}

static void on_file(KernelContext *c, int watch) {
        for (size_t i = 0; i < c->n_entries; i++) {
                KernelEntry *entry = &c->entries[i];
                KernelFile file;
                unsigned links;

                if (!entry->used || entry->retired || entry->file_watch != watch)
                        continue;
                if (kernel_file_stat(entry->fd, "", &file, &links) >= 0 && links == 0)
                        kernel_context_give_up(c, entry, "Its file was replaced or removed");
        }
}

/* In the end it is to be as others wanted it last. */
static void note_wish(KernelContext *c, bool enabled) {
        if (c->state.enabled == enabled)
                return;
        c->state.enabled = enabled;
        (void) kernel_context_save(c);
}

/* Someone wrote to "enable". If that was not us: they want it so, whatever we do. */
static void on_enable(KernelContext *c) {
        bool enabled;

        if (c->own_enables > 0)
                c->own_enables--;
        else if (kernel_monitor_get_enabled(&c->monitor, &enabled) >= 0)
                note_wish(c, enabled);
}

/* Returns true if it is about the monitor's files. */
static bool on_watch(KernelContext *c, const struct inotify_event *event) {
        if (event->mask & IN_ATTRIB) {
                on_file(c, event->wd);
                return false;
        }
        if (event->wd == c->enable_watch)
                on_enable(c);
        return event->mask & IN_CLOSE_WRITE;
}

bool kernel_repair_hear(KernelContext *c) {
        char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
        const struct inotify_event *event;
        bool written = false;
        ssize_t n;

        while ((n = read(c->watch_fd, buffer, sizeof(buffer))) > 0)
                for (char *p = buffer; p < buffer + n; p += sizeof(*event) + event->len) {
                        event = (const struct inotify_event *) p;
                        if (on_watch(c, event))
                                written = true;
                }
        c->own_enables = 0; /* what is the same twice running is told once */
        return written;
}

/* Counts a repair. False when there were too many of late. */
static bool may_repair(KernelContext *c) {
        uint64_t now = now_ns();

        if (c->n_repairs_now == 0 || now - c->repair_begin_ns >= REPAIRS_INTERVAL_NS) {
                c->repair_begin_ns = now;
                c->n_repairs_now = 0;
        }
        c->n_repairs_now++;
        c->n_repairs++;
        return c->n_repairs_now <= REPAIRS_MAX;
}

static const KernelEntry *entry_of(const KernelContext *c, const KernelLine *line) {
        for (size_t i = 0; i < c->n_entries; i++)
                if (c->entries[i].used && !c->entries[i].retired &&
                    kernel_line_equal(&c->entries[i].line, line))
                        return &c->entries[i];
        return NULL;
}

/* The file is that of the first look that found it: meanwhile its path may be another one's. */
static int add_foreign(KernelContext *c, const KernelLine *line, const KernelLines *before,
                       const KernelFile *files_before) {
        const KernelLine *known = kernel_lines_find(before, line);
        KernelFile file = known ? files_before[known - before->items] : (KernelFile) {};
        int r;

        if (file.inode == 0)
                file = kernel_file_from_path(c->files, line->path);
        r = kernel_lines_add(&c->foreign, line->text, strlen(line->text));
        if (r >= 0)
                c->foreign_files[c->foreign.n - 1] = file;
        return r;
}

static int set_foreign(KernelContext *c, const KernelLines *lines, const KernelLines *before,
                       const KernelFile *files_before) {
        c->foreign = (KernelLines) {};
        c->foreign_files = calloc(lines->n + 1, sizeof(*c->foreign_files));
        if (!c->foreign_files)
                return -ENOMEM;
        for (size_t i = 0; i < before->n; i++)
                if (!kernel_lines_find(lines, &before->items[i]))
                        kernel_reset_note(c, &files_before[i]);
        for (size_t i = 0; i < lines->n; i++) {
                const KernelLine *line = &lines->items[i];
                int r;

                if (entry_of(c, line) || kernel_lines_find(&c->left, line) ||
                    kernel_lines_find(&c->leaving, line))
                        continue;
                r = add_foreign(c, line, before, files_before);
                if (r < 0)
                        return r;
        }
        return 0;
}

int kernel_repair_note_foreign(KernelContext *c, const KernelLines *lines) {
        _cleanup_(kernel_lines_done) KernelLines before = c->foreign;
        _cleanup_free_ KernelFile *files_before = c->foreign_files;

        return set_foreign(c, lines, &before, files_before);
}

static size_t count_missing(const KernelContext *c, const KernelLines *lines) {
        size_t n = 0;

        for (size_t i = 0; i < c->n_entries; i++)
                n += kernel_entry_is_live(&c->entries[i]) &&
                     !kernel_lines_find(lines, &c->entries[i].line);
        return n;
}

static void put_back(KernelContext *c, const KernelLines *lines) {
        for (size_t i = 0; i < c->n_entries; i++) {
                KernelEntry *entry = &c->entries[i];
                _cleanup_free_ char *reason = NULL;

                if (!kernel_entry_is_live(entry) || kernel_lines_find(lines, &entry->line))
                        continue;
                kernel_reset_note(c, &entry->file);
                if (kernel_context_add_line(c, entry, &reason) < 0)
                        kernel_context_give_up(
                                c, entry, reason ?: "It was removed from the kernel's monitor");
        }
}

/* What is missing is put back while the monitor is off, if it is: no window can be hot then. */
static int repair(KernelContext *c, const KernelLines *lines, bool enabled, size_t n_missing) {
        if (!may_repair(c)) {
                give_up_all(c, "Other programs keep removing its binding from the kernel's "
                               "monitor, and tlobd has given up");
                return 0;
        }
        put_back(c, lines);
        if (!enabled) {
                int r = kernel_context_enable(c, true);

                if (r < 0)
                        return r;
        }
        kernel_context_notice(
                c, LOG_NOTICE, BACKEND_NO_INDEX,
                "Someone %s the kernel's tlob monitor and %zu bindings were lost; code that ran "
                "meanwhile was not measured. tlobd sets them again because they are in use, up to %i "
                "times a minute; with Backend=bpf it leaves the monitor alone",
                enabled ? "reset" : "switched off", n_missing, REPAIRS_MAX);
        return 0;
}

/* Does a task run that one of ours could measure? */
static bool is_in_use(const KernelContext *c) {
        for (size_t i = 0; i < c->n_entries; i++)
                if (kernel_entry_is_live(&c->entries[i]) &&
                    (!c->entries[i].unit || c->entries[i].cgroup_id != 0))
                        return true;
        return false;
}

static void leave_alone(KernelContext *c) {
        if (!c->left_alone)
                kernel_context_notice(c, LOG_INFO, BACKEND_NO_INDEX,
                                      "Someone switched off or reset the kernel's tlob monitor; "
                                      "it stays so until a unit runs that has a binding in it");
        c->left_alone = true;
}

static void look_at_switch(KernelContext *c) {
        bool off = !kernel_monitor_is_on(&c->monitor);

        if (off == c->off)
                return;
        c->off = off;
        kernel_context_notice(c, off ? LOG_WARNING : LOG_NOTICE, BACKEND_NO_INDEX,
                              off ? "Someone has switched all of the kernel's monitors off "
                                    "(rv/monitoring_on); nothing is measured by them"
                                  : "The kernel's monitors are switched on again");
}

/* Threads that somebody's binding has left behind, when it was taken away. */
static int see_to_threads(KernelContext *c, bool repaired) {
        kernel_owner_look(c);
        if (!kernel_reset_is_needed(c))
                return 0;
        if (repaired || may_repair(c))
                return kernel_reset_run(c);
        give_up_all(c, "Other programs keep changing the bindings in the kernel's monitor");
        return 0;
}

static int compare(KernelContext *c) {
        _cleanup_(kernel_lines_done) KernelLines lines = {};
        _cleanup_free_ char *reason = NULL;
        size_t n_missing;
        bool enabled;
        int r;

        look_at_switch(c);
        if (!kernel_context_has_entries(c))
                return 0;
        if (!c->off && kernel_monitor_check(&c->monitor, &reason) < 0) {
                give_up_all(c, reason ?: "The kernel's monitor cannot be used any more");
                return 0;
        }
        r = kernel_monitor_list(&c->monitor, &lines);
        if (r < 0)
                return r;
        r = kernel_monitor_get_enabled(&c->monitor, &enabled);
        if (r < 0)
                return r;
        if (!enabled)
                note_wish(c, false);
        n_missing = count_missing(c, &lines);
        if (!enabled || n_missing > 0) {
                if (!is_in_use(c)) {
                        leave_alone(c);
                        return kernel_repair_note_foreign(c, &lines);
                }
                r = repair(c, &lines, enabled, n_missing);
                if (r < 0)
                        return r;
        }
        c->left_alone = false;
        r = kernel_repair_note_foreign(c, &lines);
        if (!enabled)
                kernel_reset_forget(c);
        return r < 0 ? r : see_to_threads(c, !enabled || n_missing > 0);
}

/* What a daemon that died had set, and the configuration of today does not ask for. */
static void remove_left(KernelContext *c) {
        if (c->left.n == 0)
                return;
        for (size_t i = 0; i < c->left.n; i++) {
                KernelFile file = kernel_file_from_path(c->files, c->left.items[i].path);

                kernel_reset_note(c, &file);
                kernel_leaving_add(c, &c->left.items[i], -EBADF);
                kernel_context_retire_threshold(c, c->left.items[i].threshold);
        }
        kernel_context_notice(
                c, LOG_NOTICE, BACKEND_NO_INDEX,
                "Removing %zu bindings from the kernel's monitor that an earlier tlobd left "
                "there when it died",
                c->left.n);
        kernel_lines_done(&c->left);
        (void) kernel_context_save(c);
}

bool kernel_repair_is_hopeless(const KernelContext *c) {
        return c->n_repairs_now > REPAIRS_MAX &&
               now_ns() - c->repair_begin_ns < REPAIRS_INTERVAL_NS;
}

/* What fails is tried again in the next turn, for which nobody else may give an occasion. */
int kernel_repair_run(KernelContext *c) {
        eventfd_t kicks;
        int r;

        if (eventfd_read(c->kick_fd, &kicks) >= 0)
                remove_left(c);
        if (kernel_repair_hear(c))
                c->is_changed = true;
        if (!c->is_changed)
                return 0;
        r = compare(c);
        if (r >= 0)
                c->is_changed = false;
        else
                (void) eventfd_write(c->kick_fd, 1);
        return r;
}

int kernel_repair_on_use(KernelContext *c) {
        return c->left_alone ? compare(c) : 0;
}
