/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A binding as the monitor has it: its line, with a threshold that tells it from all others, which
 * is written, taken over from a daemon that died, changed, or put back.
 *
 * An event of the monitor names a thread and a threshold, no binding. So every binding gets a
 * threshold of its own, a few nanoseconds above its budget, and one that has been used is not used
 * again soon: what a binding that is gone still causes belongs to nobody.
 */

#include "kernel/entry.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/eventfd.h>
#include <syslog.h>

#include "base/clock.h"
#include "base/sentence.h"
#include "kernel/ability.h"
#include "kernel/crowd.h"
#include "kernel/leaving.h"
#include "kernel/owner.h"
#include "kernel/repair.h"
#include "kernel/reset.h"

#define NAME_SIZE 32

void kernel_entry_done(KernelContext *c, KernelEntry *entry) {
        kernel_context_forget_notices(c, (uint32_t) (entry - c->entries));
        kernel_repair_unwatch_file(c, entry);
        safe_close(entry->fd);
        kernel_line_done(&entry->line);
        free(entry->unit);
        *entry = (KernelEntry) { .fd = -EBADF, .file_watch = -1 };
}

static bool threshold_is_taken(const KernelContext *c, uint64_t threshold) {
        size_t n_retired = c->n_retired < KERNEL_RETIRED_MAX ? c->n_retired : KERNEL_RETIRED_MAX;

        for (size_t i = 0; i < c->n_entries; i++)
                if (c->entries[i].used && c->entries[i].line.threshold == threshold)
                        return true;
        for (size_t i = 0; i < n_retired; i++)
                if (c->retired[i] == threshold)
                        return true;
        for (size_t i = 0; i < c->foreign.n; i++)
                if (c->foreign.items[i].threshold == threshold)
                        return true;
        for (size_t i = 0; i < c->left.n; i++)
                if (c->left.items[i].threshold == threshold)
                        return true;
        return false;
}

uint64_t kernel_choose_threshold(const KernelContext *c, uint64_t budget_ns) {
        uint64_t unit = kernel_monitor_unit_ns(&c->monitor), first = (budget_ns + unit - 1) / unit;

        /*
         * The start is told a moment after its clock has begun: by then, the budget has to be over,
         * too.
         */
        if (kernel_monitor_has_names(&c->monitor))
                return budget_ns + KERNEL_THRESHOLD_ADD;
        for (uint64_t i = 0; i < KERNEL_THRESHOLD_ADD; i++)
                if (!threshold_is_taken(c, first + i))
                        return first + i;
        return 0;
}

static bool has_name(const KernelLines *lines, const char *name) {
        for (size_t i = 0; i < lines->n; i++)
                if (streq_empty(lines->items[i].name, name))
                        return true;
        return false;
}

/* One that nobody has, if this monitor wants one; else NULL. */
static const char *choose_name(const KernelContext *c, char ret[static NAME_SIZE]) {
        bool taken = true;

        if (!kernel_monitor_has_names(&c->monitor))
                return NULL;
        for (unsigned i = 0; taken; i++) {
                (void) snprintf(ret, NAME_SIZE, "tlobd_%u", i);
                taken = has_name(&c->foreign, ret) || has_name(&c->left, ret) ||
                        has_name(&c->leaving, ret);
                for (size_t j = 0; j < c->n_entries && !taken; j++)
                        taken = c->entries[j].used && streq_empty(c->entries[j].line.name, ret);
        }
        return ret;
}

/* The line of an entry, as the monitor will show it. Takes the old one's place. */
static int entry_set_line(KernelEntry *entry, const char *name, uint64_t start, uint64_t stop,
                          uint64_t threshold) {
        _cleanup_(kernel_lines_done) KernelLines lines = {};
        _cleanup_free_ char *text = NULL;
        char link[64], path[4096];
        ssize_t n;
        int r;

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%i", entry->fd);
        n = readlink(link, path, sizeof(path) - 1);
        if (n < 0)
                return -errno;
        path[n] = '\0';
        if (asprintf(&text, "p%s%s %s:0x%" PRIx64 " 0x%" PRIx64 " threshold=%" PRIu64,
                     name ? ":" : "", name ?: "", path, start, stop, threshold) < 0)
                return -ENOMEM;
        r = kernel_lines_parse(text, &lines);
        if (r < 0)
                return r;
        if (lines.n != 1 || !lines.items[0].path)
                return -EINVAL;
        kernel_line_done(&entry->line);
        entry->line = lines.items[0];
        free(TAKE_PTR(lines.items));
        lines.n = 0;
        return 0;
}

/*
 * Is the line, which looks like the entry's, on its file? The monitor shows a path only, but takes
 * no second one there.
 */
static bool is_on_file(KernelContext *c, const KernelEntry *entry) {
        int r = kernel_context_add_line(c, entry, NULL);

        if (r >= 0)
                (void) kernel_monitor_remove(&c->monitor, entry->fd, &entry->line);
        return r == -EEXIST;
}

/* A line of a daemon that died that is just this binding: taken over as it is. */
static bool adopt_left(KernelContext *c, KernelEntry *entry, uint64_t start, uint64_t stop) {
        uint64_t unit = kernel_monitor_unit_ns(&c->monitor);

        for (size_t i = 0; i < c->left.n; i++) {
                KernelLine *line = &c->left.items[i];
                uint64_t ns = line->threshold * unit;

                if (line->start != start || line->stop != stop || ns < entry->budget_ns ||
                    ns - entry->budget_ns > unit * KERNEL_THRESHOLD_ADD ||
                    entry_set_line(entry, line->name, start, stop, line->threshold) < 0 ||
                    !kernel_line_equal(&entry->line, line) || !is_on_file(c, entry))
                        continue;
                kernel_line_done(line);
                *line = c->left.items[--c->left.n];
                return true;
        }
        return false;
}

/* What was taken is to be there: what the monitor shows is the truth. */
static int check_line(KernelContext *c, KernelEntry *entry, char **ret_reason) {
        _cleanup_(kernel_lines_done) KernelLines lines = {};
        int r;

        r = kernel_monitor_list(&c->monitor, &lines);
        if (r >= 0 && kernel_lines_find(&lines, &entry->line))
                return 0;
        (void) kernel_monitor_remove(&c->monitor, entry->fd, &entry->line);
        if (r < 0)
                return r;
        return sentence_error(-EIO, ret_reason,
                              "The kernel's tlob monitor accepted the binding, but lists it "
                              "differently: '%s' is missing",
                              entry->line.text);
}

static int entry_write(KernelContext *c, KernelEntry *entry, char **ret_reason) {
        int r;

        kernel_leaving_wait_for(c, entry->line.path);
        /* On disk before in the kernel. */
        r = kernel_context_save(c);
        if (r < 0)
                return r;
        entry->since_ns = now_ns();
        r = kernel_context_add_line(c, entry, ret_reason);
        return r < 0 ? r : check_line(c, entry, ret_reason);
}

static int ensure_enabled(KernelContext *c) {
        bool enabled;
        int r;

        r = kernel_monitor_get_enabled(&c->monitor, &enabled);
        return r < 0 || enabled ? r : kernel_context_enable(c, true);
}

/* What others have counts here: it is looked at as it is now. */
static int check_others(KernelContext *c, const KernelEntry *entry, char **ret_reason) {
        _cleanup_(kernel_lines_done) KernelLines lines = {};
        int r;

        r = kernel_monitor_list(&c->monitor, &lines);
        if (r >= 0)
                r = kernel_repair_note_foreign(c, &lines);
        return r < 0 ? r : kernel_owner_check(c, entry, ret_reason);
}

int kernel_entry_attach(KernelContext *c, KernelEntry *entry, const Binding *binding,
                        const BindingFile *file, char **ret_reason) {
        uint64_t start = binding->resolved.sites.start.offset, stop, threshold;
        char name[NAME_SIZE];
        int r;

        r = kernel_find_stop(binding, &stop, ret_reason);
        if (r < 0)
                return r;
        entry->fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
        if (entry->fd < 0)
                return -errno;
        entry->file = kernel_file_of_binding(binding, file);
        if (kernel_monitor_owns_threads(&c->monitor))
                r = check_others(c, entry, ret_reason);
        if (r >= 0)
                r = kernel_crowd_check(c, ret_reason);
        if (r < 0)
                return r;

        if (!adopt_left(c, entry, start, stop)) {
                threshold = kernel_choose_threshold(c, entry->budget_ns);
                if (threshold == 0)
                        return sentence_error(-ENOSPC, ret_reason,
                                              "Too many bindings of about the same budget for the "
                                              "kernel's monitor");
                r = entry_set_line(entry, choose_name(c, name), start, stop, threshold);
                if (r >= 0)
                        r = entry_write(c, entry, ret_reason);
                if (r < 0)
                        return r;
        }
        r = kernel_repair_watch_file(c, entry);
        if (r >= 0)
                r = kernel_crowd_watch(c);
        if (r >= 0)
                r = ensure_enabled(c);
        if (r >= 0 && kernel_reset_is_needed(c))
                r = kernel_reset_run(c);
        /* It is in the monitor by now. */
        if (r < 0) {
                kernel_leaving_add(c, &entry->line, fcntl(entry->fd, F_DUPFD_CLOEXEC, 3));
                kernel_context_retire_threshold(c, entry->line.threshold);
        }
        return r;
}

int kernel_entry_change(KernelContext *c, KernelEntry *entry, uint64_t threshold) {
        _cleanup_free_ char *reason = NULL;
        int r;

        r = kernel_monitor_remove(&c->monitor, entry->fd, &entry->line);
        if (r < 0 && r != -ENOENT)
                return r;
        kernel_context_retire_threshold(c, entry->line.threshold);
        r = entry_set_line(entry, entry->line.name, entry->line.start, entry->line.stop, threshold);
        if (r >= 0)
                r = entry_write(c, entry, &reason);
        if (r >= 0 && kernel_monitor_owns_threads(&c->monitor))
                r = kernel_reset_run(c);
        if (r < 0) {
                kernel_context_give_up(c, entry,
                                       reason ?: "Its budget could not be changed in the kernel");
                (void) eventfd_write(c->kick_fd, 1);
        }
        return 0;
}
