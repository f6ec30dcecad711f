/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Bindings that are on their way out of the monitor. They are still ours: on disk until they are gone, and
 * nobody else's when the monitor is looked at.
 */

#include <fcntl.h>
#include <syslog.h>

#include "kernel-backend.h"

static void told(KernelBackend *b, const KernelLine *line, int error) {
        /* -ENOENT: someone was quicker. */
        if (error < 0 && error != -ENOENT)
                kernel_backend_notice(
                        b, LOG_WARNING, BACKEND_NO_INDEX,
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

void kernel_leaving_add(KernelBackend *b, const KernelLine *line, int fd) {
        int r;

        r = kernel_lines_add(&b->leaving, line->text, strlen(line->text));
        if (r < 0)
                safe_close(fd);
        else
                r = kernel_remover_push(b->remover, line, fd);
        if (r >= 0)
                return;
        drop(&b->leaving, line);
        told(b, line, kernel_monitor_remove_line(&b->monitor, line));
}

void kernel_leaving_reap(KernelBackend *b) {
        KernelRemoval removal;
        bool any = false;

        while (kernel_remover_pop(b->remover, &removal) > 0) {
                told(b, &removal.line, removal.error);
                drop(&b->leaving, &removal.line);
                kernel_line_done(&removal.line);
                any = true;
        }
        if (any)
                (void) kernel_backend_save(b);
}

void kernel_leaving_wait_for(KernelBackend *b, const char *path) {
        for (size_t i = 0; i < b->leaving.n; i++)
                if (streq_empty(b->leaving.items[i].path, path)) {
                        kernel_remover_wait(b->remover);
                        kernel_leaving_reap(b);
                        return;
                }
}
