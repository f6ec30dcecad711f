/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Bindings that are on their way out of the monitor. They are still ours: on disk until they are
 * gone, and nobody else's when the monitor is looked at.
 */

#include "kernel/leaving.h"

#include <fcntl.h>
#include <syslog.h>

static void told(KernelContext *c, const KernelLine *line, int error) {
        /* -ENOENT: someone was quicker. */
        if (error < 0 && error != -ENOENT)
                kernel_context_notice(
                        c, LOG_WARNING, BACKEND_NO_INDEX,
                        "'%s' cannot be removed from the kernel's monitor, ignoring: %s",
                        line->text, strerror(-error));
}

static void drop(KernelLines *lines, const KernelLine *line) {
        for (size_t i = 0; i < lines->n; i++)
                if (streq(lines->items[i].text, line->text)) {
                        kernel_line_done(&lines->items[i]);
                        lines->items[i] = lines->items[--lines->n];
                        return;
                }
}

void kernel_leaving_add(KernelContext *c, const KernelLine *line, int fd) {
        int r;

        r = kernel_lines_add(&c->leaving, line->text, strlen(line->text));
        if (r < 0)
                safe_close(fd);
        else
                r = kernel_remover_push(c->remover, line, fd);
        if (r >= 0)
                return;
        drop(&c->leaving, line);
        told(c, line, kernel_monitor_remove_line(&c->monitor, line));
}

void kernel_leaving_reap(KernelContext *c) {
        KernelRemoval removal;
        bool any = false;

        while (kernel_remover_pop(c->remover, &removal) > 0) {
                told(c, &removal.line, removal.error);
                drop(&c->leaving, &removal.line);
                kernel_line_done(&removal.line);
                any = true;
        }
        if (any)
                (void) kernel_context_save(c);
}

void kernel_leaving_wait_for(KernelContext *c, const char *path) {
        for (size_t i = 0; i < c->leaving.n; i++)
                if (streq_empty(c->leaving.items[i].path, path)) {
                        kernel_remover_wait(c->remover);
                        kernel_leaving_reap(c);
                        return;
                }
}
