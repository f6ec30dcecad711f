/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The monitor is one for the whole machine, and others use it too: "rv mon tlob" switches it off when
 * it ends, a change of the reactor or a careless write to enabled_monitors takes all bindings away, and
 * anyone may remove ours by hand. The files are watched; after each change by anyone the monitor is
 * compared with what we have set, and what is missing is put back.
 *
 * Whoever keeps at it wins: after some repairs in a minute all bindings are given up, and the manager
 * looks for another back end. The same when a violation would stop the machine.
 *
 * It never polls: tracefs gives inotify events for writes by programs.
 */

#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <syslog.h>

#include "kernel-backend.h"
#include "sentence.h"

#define REPAIRS_MAX         5
#define REPAIRS_INTERVAL_NS UINT64_C(60000000000)

int kernel_repair_start(KernelBackend *b) {
        b->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (b->watch_fd < 0)
                return -errno;
        for (size_t i = 0; kernel_monitor_files[i]; i++) {
                _cleanup_free_ char *path =
                        kernel_tracing_path(&b->tracing, kernel_monitor_files[i]);
                int watch;

                if (!path)
                        return -ENOMEM;
                watch = inotify_add_watch(b->watch_fd, path, IN_CLOSE_WRITE);
                /* Some are there with some configurations of the kernel only. */
                if (watch < 0 && errno != ENOENT)
                        return -errno;
                if (streq(kernel_monitor_files[i], KERNEL_MONITOR_ENABLE))
                        b->enable_watch = watch;
        }
        return 0;
}

/* When a file is replaced, its last link goes. */
int kernel_repair_watch_file(KernelBackend *b, KernelEntry *entry) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%i", entry->fd);
        entry->file_watch = inotify_add_watch(b->watch_fd, path, IN_ATTRIB);
        return entry->file_watch < 0 ? -errno : 0;
}

void kernel_repair_unwatch_file(KernelBackend *b, KernelEntry *entry) {
        int watch = entry->file_watch;

        entry->file_watch = -1;
        if (watch < 0)
                return;
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].used && b->entries[i].file_watch == watch)
                        return;
        (void) inotify_rm_watch(b->watch_fd, watch);
}

static void give_up(KernelBackend *b, KernelEntry *entry, const char *why) {
        if (entry->given_up)
                return;
        entry->given_up = true;
        kernel_backend_notice(b, LOG_WARNING, (uint32_t) (entry - b->entries), "%s", why);
}

static void give_up_all(KernelBackend *b, const char *why) {
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].used && !b->entries[i].retired)
                        give_up(b, &b->entries[i], why);
}

static void on_file(KernelBackend *b, int watch) {
        for (size_t i = 0; i < b->n_entries; i++) {
                KernelEntry *entry = &b->entries[i];
                struct stat st;

                if (!entry->used || entry->retired || entry->file_watch != watch)
                        continue;
                if (fstat(entry->fd, &st) >= 0 && st.st_nlink == 0)
                        give_up(b, entry, "Its file was replaced or removed");
        }
}

/* Someone wrote to "enable". If that was not us, and it is on: they want it so, whatever we do. */
static void on_enable(KernelBackend *b) {
        bool enabled;

        if (b->own_enables > 0) {
                b->own_enables--;
                return;
        }
        if (kernel_monitor_get_enabled(&b->monitor, &enabled) < 0 || !enabled)
                return;
        b->state.enabled = true;
        (void) kernel_backend_save(b);
}

/* Returns true if it is about the monitor's files. */
static bool on_watch(KernelBackend *b, const struct inotify_event *event) {
        if (event->mask & IN_ATTRIB) {
                on_file(b, event->wd);
                return false;
        }
        if (event->wd == b->enable_watch)
                on_enable(b);
        return event->mask & IN_CLOSE_WRITE;
}

/* Returns true if anyone, we too, wrote to the monitor's files. */
static bool read_watches(KernelBackend *b) {
        char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
        const struct inotify_event *event;
        bool written = false;
        ssize_t n;

        while ((n = read(b->watch_fd, buffer, sizeof(buffer))) > 0)
                for (char *p = buffer; p < buffer + n; p += sizeof(*event) + event->len) {
                        event = (const struct inotify_event *) p;
                        if (on_watch(b, event))
                                written = true;
                }
        b->own_enables = 0; /* what is the same twice running is told once */
        return written;
}

/* Counts a repair. False when there were too many of late. */
static bool may_repair(KernelBackend *b) {
        uint64_t now = kernel_now_ns();

        if (b->n_repairs_now == 0 || now - b->repair_begin_ns >= REPAIRS_INTERVAL_NS) {
                b->repair_begin_ns = now;
                b->n_repairs_now = 0;
        }
        b->n_repairs_now++;
        b->n_repairs++;
        return b->n_repairs_now <= REPAIRS_MAX;
}

static const KernelEntry *entry_of(const KernelBackend *b, const KernelLine *line) {
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].used && !b->entries[i].retired &&
                    kernel_line_equal(&b->entries[i].line, line))
                        return &b->entries[i];
        return NULL;
}

int kernel_repair_note_foreign(KernelBackend *b, const KernelLines *lines) {
        kernel_lines_done(&b->foreign);
        for (size_t i = 0; i < lines->n; i++) {
                const KernelLine *line = &lines->items[i];
                int r;

                if (entry_of(b, line) || kernel_lines_find(&b->left, line) ||
                    kernel_lines_find(&b->leaving, line))
                        continue;
                r = kernel_lines_add(&b->foreign, line->text, strlen(line->text));
                if (r < 0)
                        return r;
        }
        return 0;
}

static size_t count_missing(const KernelBackend *b, const KernelLines *lines) {
        size_t n = 0;

        for (size_t i = 0; i < b->n_entries; i++)
                n += b->entries[i].used && !b->entries[i].retired && !b->entries[i].given_up &&
                     !kernel_lines_find(lines, &b->entries[i].line);
        return n;
}

static void put_back(KernelBackend *b, const KernelLines *lines) {
        for (size_t i = 0; i < b->n_entries; i++) {
                KernelEntry *entry = &b->entries[i];
                _cleanup_free_ char *reason = NULL;

                if (!entry->used || entry->retired || entry->given_up ||
                    kernel_lines_find(lines, &entry->line))
                        continue;
                if (kernel_monitor_add(&b->monitor, entry->fd, &entry->line, &reason) < 0)
                        give_up(b, entry, reason ?: "It was removed from the kernel's monitor");
        }
}

/* What is missing is put back while the monitor is off, if it is: no window can be hot then. */
static int repair(KernelBackend *b, const KernelLines *lines, bool enabled, size_t n_missing) {
        if (!may_repair(b)) {
                give_up_all(b, "Others keep on taking its binding out of the kernel's monitor");
                return 0;
        }
        put_back(b, lines);
        if (!enabled) {
                int r = kernel_backend_enable(b, true);

                if (r < 0)
                        return r;
        }
        kernel_backend_notice(
                b, LOG_NOTICE, BACKEND_NO_INDEX,
                "Someone %s the kernel's tlob monitor and %zu bindings were lost; they "
                "are set again, and what ran meanwhile was not measured",
                enabled ? "reset" : "switched off", n_missing);
        return 0;
}

static void look_at_switch(KernelBackend *b) {
        bool off = !kernel_monitor_is_on(&b->monitor);

        if (off == b->off)
                return;
        b->off = off;
        kernel_backend_notice(b, off ? LOG_WARNING : LOG_NOTICE, BACKEND_NO_INDEX,
                              off ? "Someone has switched all of the kernel's monitors off "
                                    "(rv/monitoring_on); nothing is measured by them"
                                  : "The kernel's monitors are switched on again");
}

static int compare(KernelBackend *b) {
        _cleanup_(kernel_lines_done) KernelLines lines = {};
        _cleanup_free_ char *reason = NULL;
        size_t n_missing;
        bool enabled;
        int r;

        look_at_switch(b);
        if (!kernel_backend_has_entries(b))
                return 0;
        if (!b->off && kernel_monitor_check(&b->monitor, &reason) < 0) {
                give_up_all(b, reason ?: "The kernel's monitor cannot be used any more");
                return 0;
        }
        r = kernel_monitor_list(&b->monitor, &lines);
        if (r < 0)
                return r;
        r = kernel_monitor_get_enabled(&b->monitor, &enabled);
        if (r < 0)
                return r;
        n_missing = count_missing(b, &lines);
        if (!enabled || n_missing > 0) {
                r = repair(b, &lines, enabled, n_missing);
                if (r < 0)
                        return r;
        }
        return kernel_repair_note_foreign(b, &lines);
}

/* What a daemon that died had set, and the configuration of today does not ask for. */
static void remove_left(KernelBackend *b) {
        if (b->left.n == 0)
                return;
        for (size_t i = 0; i < b->left.n; i++)
                kernel_leaving_add(b, &b->left.items[i], -EBADF);
        kernel_backend_notice(
                b, LOG_NOTICE, BACKEND_NO_INDEX,
                "%zu bindings are removed from the kernel's monitor that a tlobd which died "
                "had left there",
                b->left.n);
        kernel_lines_done(&b->left);
        (void) kernel_backend_save(b);
}

bool kernel_repair_is_hopeless(const KernelBackend *b) {
        return b->n_repairs_now > REPAIRS_MAX &&
               kernel_now_ns() - b->repair_begin_ns < REPAIRS_INTERVAL_NS;
}

int kernel_repair_run(KernelBackend *b) {
        eventfd_t kicks;

        if (eventfd_read(b->kick_fd, &kicks) >= 0)
                remove_left(b);
        return read_watches(b) ? compare(b) : 0;
}
