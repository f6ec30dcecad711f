/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A binding as the monitor has it: its line, with a threshold that tells it from all others, which is
 * written, taken over from a daemon that died, changed, or put back.
 *
 * An event of the monitor names a thread and a threshold, no binding. So every binding gets a threshold
 * of its own, a few nanoseconds above its budget, and one that has been used is not used again soon: what
 * a binding that is gone still causes belongs to nobody.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <sys/eventfd.h>
#include <syslog.h>

#include "kernel-backend.h"
#include "sentence.h"

#define NAME_SIZE 32

void kernel_entry_done(KernelBackend *b, KernelEntry *entry) {
        kernel_repair_unwatch_file(b, entry);
        safe_close(entry->fd);
        kernel_line_done(&entry->line);
        free(entry->unit);
        *entry = (KernelEntry){ .fd = -EBADF, .file_watch = -1 };
}

static bool threshold_is_taken(const KernelBackend *b, uint64_t threshold) {
        size_t n_retired = b->n_retired < KERNEL_RETIRED_MAX ? b->n_retired : KERNEL_RETIRED_MAX;

        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].used && b->entries[i].line.threshold == threshold)
                        return true;
        for (size_t i = 0; i < n_retired; i++)
                if (b->retired[i] == threshold)
                        return true;
        for (size_t i = 0; i < b->foreign.n; i++)
                if (b->foreign.items[i].threshold == threshold)
                        return true;
        for (size_t i = 0; i < b->left.n; i++)
                if (b->left.items[i].threshold == threshold)
                        return true;
        return false;
}

uint64_t kernel_choose_threshold(const KernelBackend *b, uint64_t budget_ns) {
        uint64_t unit = kernel_monitor_unit_ns(&b->monitor), first = (budget_ns + unit - 1) / unit;

        /* The start is told a moment after its clock has begun: by then, the budget has to be over, too. */
        if (kernel_monitor_has_names(&b->monitor))
                return budget_ns + KERNEL_THRESHOLD_ADD;
        for (uint64_t i = 0; i < KERNEL_THRESHOLD_ADD; i++)
                if (!threshold_is_taken(b, first + i))
                        return first + i;
        return 0;
}

void kernel_retire_threshold(KernelBackend *b, uint64_t threshold) {
        b->retired[b->n_retired++ % KERNEL_RETIRED_MAX] = threshold;
}

static bool has_name(const KernelLines *lines, const char *name) {
        for (size_t i = 0; i < lines->n; i++)
                if (streq_empty(lines->items[i].name, name))
                        return true;
        return false;
}

/* One that nobody has, if this monitor wants one; else NULL. */
static const char *choose_name(const KernelBackend *b, char ret[static NAME_SIZE]) {
        bool taken = true;

        if (!kernel_monitor_has_names(&b->monitor))
                return NULL;
        for (unsigned i = 0; taken; i++) {
                (void) snprintf(ret, NAME_SIZE, "tlobd_%u", i);
                taken = has_name(&b->foreign, ret) || has_name(&b->left, ret) ||
                        has_name(&b->leaving, ret);
                for (size_t j = 0; j < b->n_entries && !taken; j++)
                        taken = b->entries[j].used && streq_empty(b->entries[j].line.name, ret);
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

/* A line of a daemon that died that is just this binding: taken over as it is. */
static bool adopt_left(KernelBackend *b, KernelEntry *entry, uint64_t start, uint64_t stop) {
        uint64_t unit = kernel_monitor_unit_ns(&b->monitor);

        for (size_t i = 0; i < b->left.n; i++) {
                KernelLine *line = &b->left.items[i];
                uint64_t ns = line->threshold * unit;

                if (line->start != start || line->stop != stop || ns < entry->budget_ns ||
                    ns - entry->budget_ns > unit * KERNEL_THRESHOLD_ADD ||
                    entry_set_line(entry, line->name, start, stop, line->threshold) < 0 ||
                    !kernel_line_equal(&entry->line, line))
                        continue;
                kernel_line_done(line);
                *line = b->left.items[--b->left.n];
                return true;
        }
        return false;
}

/* What was taken is to be there: what the monitor shows is the truth. */
static int check_line(KernelBackend *b, KernelEntry *entry, char **ret_reason) {
        _cleanup_(kernel_lines_done) KernelLines lines = {};
        int r;

        r = kernel_monitor_list(&b->monitor, &lines);
        if (r < 0)
                return r;
        if (kernel_lines_find(&lines, &entry->line))
                return 0;
        (void) kernel_monitor_remove(&b->monitor, entry->fd, &entry->line);
        return sentence_error(-EIO, ret_reason,
                              "The kernel's tlob monitor took the binding, but shows it otherwise "
                              "than it was written: '%s' is missing",
                              entry->line.text);
}

static int entry_write(KernelBackend *b, KernelEntry *entry, char **ret_reason) {
        int r;

        kernel_leaving_wait_for(b, entry->line.path);
        /* On disk before in the kernel. */
        r = kernel_backend_save(b);
        if (r < 0)
                return r;
        entry->since_ns = kernel_now_ns();
        r = kernel_monitor_add(&b->monitor, entry->fd, &entry->line, ret_reason);
        return r < 0 ? r : check_line(b, entry, ret_reason);
}

static int ensure_enabled(KernelBackend *b) {
        bool enabled;
        int r;

        r = kernel_monitor_get_enabled(&b->monitor, &enabled);
        return r < 0 || enabled ? r : kernel_backend_enable(b, true);
}

/* Names and programs of others count here: they are looked at as they are now. */
static int check_others(KernelBackend *b, const KernelEntry *entry, char **ret_reason) {
        _cleanup_(kernel_lines_done) KernelLines lines = {};
        int r;

        r = kernel_monitor_list(&b->monitor, &lines);
        if (r >= 0)
                r = kernel_repair_note_foreign(b, &lines);
        return r < 0 ? r : kernel_check_owner(b, entry, ret_reason);
}

int kernel_entry_attach(KernelBackend *b, KernelEntry *entry, const Binding *binding,
                        const ElfFile *elf, char **ret_reason) {
        uint64_t start = binding->start_site.offset, stop, threshold;
        char name[NAME_SIZE];
        int r;

        r = kernel_find_stop(binding, elf, &stop, ret_reason);
        if (r < 0)
                return r;
        entry->fd = fcntl(elf_file_fd(elf), F_DUPFD_CLOEXEC, 3);
        if (entry->fd < 0)
                return -errno;
        r = kernel_file_from_elf((ElfFile *) elf, &entry->file);
        if (r >= 0 && kernel_monitor_has_names(&b->monitor))
                r = check_others(b, entry, ret_reason);
        if (r >= 0)
                r = kernel_crowd_check(b, ret_reason);
        if (r < 0)
                return r;

        if (!adopt_left(b, entry, start, stop)) {
                threshold = kernel_choose_threshold(b, entry->budget_ns);
                if (threshold == 0)
                        return sentence_error(-ENOSPC, ret_reason,
                                              "Too many bindings of about the same budget for the "
                                              "kernel's monitor");
                r = entry_set_line(entry, choose_name(b, name), start, stop, threshold);
                if (r >= 0)
                        r = entry_write(b, entry, ret_reason);
        }
        if (r >= 0)
                r = kernel_repair_watch_file(b, entry);
        if (r >= 0)
                r = kernel_crowd_watch(b);
        return r < 0 ? r : ensure_enabled(b);
}

/* By the file that is open, if it is ours: its path may be another one's by now. */
static int put_back_line(KernelBackend *b, const KernelLine *line) {
        for (size_t i = 0; i < b->n_entries; i++) {
                const KernelEntry *entry = &b->entries[i];

                if (entry->used && !entry->retired && kernel_line_equal(&entry->line, line))
                        return kernel_monitor_add(&b->monitor, entry->fd, line, NULL);
        }
        return kernel_monitor_restore_line(&b->monitor, line);
}

/*
 * v5 and later never measure a task again that was in a window while its binding was taken away, unless the
 * monitor is reset as a whole. The others would rather not be switched while windows are hot.
 */
static int reset_monitor(KernelBackend *b) {
        _cleanup_(kernel_lines_done) KernelLines lines = {};
        int r;

        kernel_remover_wait(b->remover);
        r = kernel_monitor_list(&b->monitor, &lines);
        if (r >= 0)
                r = kernel_backend_enable(b, false);
        for (size_t i = 0; i < lines.n && r >= 0; i++)
                r = put_back_line(b, &lines.items[i]);
        if (r >= 0)
                r = kernel_backend_enable(b, true);
        return r;
}

int kernel_entry_change(KernelBackend *b, KernelEntry *entry, uint64_t threshold) {
        _cleanup_free_ char *reason = NULL;
        int r;

        r = kernel_monitor_remove(&b->monitor, entry->fd, &entry->line);
        if (r < 0 && r != -ENOENT)
                return r;
        kernel_retire_threshold(b, entry->line.threshold);
        r = entry_set_line(entry, entry->line.name, entry->line.start, entry->line.stop, threshold);
        if (r >= 0)
                r = entry_write(b, entry, &reason);
        if (r >= 0 && (b->monitor.dialect == DIALECT_V5 || kernel_monitor_has_names(&b->monitor)))
                r = reset_monitor(b);
        if (r < 0) {
                entry->given_up = true;
                kernel_backend_notice(b, LOG_WARNING, (uint32_t) (entry - b->entries), "%s",
                                      reason ?: "Its budget could not be changed in the kernel");
                (void) eventfd_write(b->kick_fd, 1);
        }
        return r;
}
