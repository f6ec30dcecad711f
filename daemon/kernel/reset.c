/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The monitor off and on again, with all bindings back in it.
 *
 * From v5 on, a thread that is in a window when its binding is taken away belongs to nobody any
 * more: it is not measured again until it exits, also when the same binding is set once more. The
 * monitor forgets threads when it is switched off, and that is the only way. So when a binding has
 * gone whose threads one of ours may have, the monitor is reset; windows that are open then are
 * lost, which is counted. Earlier versions are not reset: they need it not, and a start that races
 * with the switch was seen to crash v3.
 */

#include "kernel/reset.h"

#include <errno.h>
#include <inttypes.h>
#include <syslog.h>

void kernel_reset_forget(KernelContext *c) {
        free(c->gone);
        c->gone = NULL;
        c->n_gone = 0;
}

void kernel_reset_note(KernelContext *c, const KernelFile *file) {
        KernelFile *gone;

        if (!kernel_monitor_owns_threads(&c->monitor))
                return;
        for (size_t i = 0; i < c->n_gone; i++)
                if (kernel_file_equal(&c->gone[i], file))
                        return;
        gone = reallocarray(c->gone, c->n_gone + 1, sizeof(*gone));
        if (!gone)
                return;
        c->gone = gone;
        gone[c->n_gone++] = *file;
}

/*
 * The monitor shows a path only, which may be another file's than when the line was seen first: the
 * code is another one there, and a probe in the middle of an instruction breaks it.
 */
static bool is_replaced(const KernelContext *c, const KernelLine *line) {
        const KernelLine *known = kernel_lines_find(&c->foreign, line);
        KernelFile file;

        if (!known)
                return false;
        file = kernel_file_from_path(c->files, line->path);
        return !kernel_file_equal(&file, &c->foreign_files[known - c->foreign.items]);
}

/*
 * One that is not ours. was_there: it was on the file that is at its path, from where it could be
 * removed; else that is another one's, or in another mount namespace.
 */
static void restore(KernelContext *c, const KernelLine *line, bool was_there) {
        int r = !was_there || is_replaced(c, line) ? -ESTALE
                                                   : kernel_monitor_restore_line(&c->monitor, line);

        if (r < 0)
                kernel_context_notice(c, LOG_WARNING, BACKEND_NO_INDEX,
                                      "'%s', which is not tlobd's, is not in the kernel's monitor "
                                      "any more, as that had to be reset: %s",
                                      line->text,
                                      r == -ESTALE ? "the file at that path is another one"
                                                   : strerror(-r));
}

static KernelEntry *find_own(KernelContext *c, const KernelLine *line) {
        for (size_t i = 0; i < c->n_entries; i++)
                if (kernel_entry_is_live(&c->entries[i]) &&
                    kernel_line_equal(&c->entries[i].line, line))
                        return &c->entries[i];
        return NULL;
}

static void put_back(KernelContext *c, KernelEntry *entry) {
        _cleanup_free_ char *reason = NULL;

        if (kernel_context_add_line(c, entry, &reason) < 0)
                kernel_context_give_up(c, entry,
                                       reason ?: "The kernel's monitor no longer accepts it");
}

/*
 * Takes all away that is not ours, as far as that is possible, and switches the monitor off.
 * *ret_removed: which were taken away by their paths, or are known; the caller's, also after an
 * error.
 */
static int clear(KernelContext *c, const KernelLines *lines, bool **ret_removed) {
        bool *removed = calloc(lines->n + 1, sizeof(*removed));
        int r;

        *ret_removed = removed;
        if (!removed)
                return -ENOMEM;
        for (size_t i = 0; i < lines->n; i++)
                removed[i] =
                        !find_own(c, &lines->items[i]) &&
                        kernel_monitor_remove_line(&c->monitor, &lines->items[i]) >= 0 &&
                        (!lines->items[i].name || kernel_lines_find(&c->foreign, &lines->items[i]));
        r = kernel_context_enable(c, false);
        for (size_t i = 0; i < lines->n && r < 0; i++)
                if (removed[i])
                        restore(c, &lines->items[i], true);
        return r;
}

int kernel_reset_run(KernelContext *c) {
        _cleanup_(kernel_lines_done) KernelLines lines = {};
        _cleanup_free_ bool *removed = NULL;
        int r;

        kernel_remover_wait(c->remover);
        r = kernel_monitor_list(&c->monitor, &lines);
        if (r >= 0)
                r = clear(c, &lines, &removed);
        if (r < 0)
                return r;
        for (size_t i = 0; i < lines.n; i++) {
                KernelEntry *entry = find_own(c, &lines.items[i]);

                if (entry)
                        put_back(c, entry);
                else
                        restore(c, &lines.items[i], removed[i]);
        }
        kernel_reset_forget(c);
        c->n_resets++;
        return kernel_context_enable(c, true);
}

/* Has a binding gone whose threads this one may have? */
static bool is_bereft(const KernelContext *c, const KernelEntry *entry) {
        for (size_t i = 0; i < c->n_gone; i++)
                if (kernel_file_overlaps(&c->gone[i], &entry->file))
                        return true;
        return false;
}

bool kernel_reset_is_needed(const KernelContext *c) {
        bool enabled;

        if (c->n_gone == 0)
                return false;
        for (size_t i = 0; i < c->n_entries; i++)
                if (kernel_entry_is_live(&c->entries[i]) && is_bereft(c, &c->entries[i]))
                        return kernel_monitor_get_enabled(&c->monitor, &enabled) >= 0 && enabled;
        return false;
}

void kernel_reset_leave(KernelContext *c) {
        _cleanup_(kernel_lines_done) KernelLines others = {};
        _cleanup_free_ bool *removed = NULL;
        bool enabled;

        if (kernel_monitor_get_enabled(&c->monitor, &enabled) < 0 || !enabled ||
            (c->state.enabled && c->n_gone == 0))
                return;
        if (kernel_monitor_list(&c->monitor, &others) < 0 || clear(c, &others, &removed) < 0)
                return;
        for (size_t i = 0; i < others.n; i++)
                restore(c, &others.items[i], removed[i]);
        if (c->state.enabled)
                (void) kernel_context_enable(c, true);
}
