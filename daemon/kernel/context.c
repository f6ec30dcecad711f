/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the files of the back end share, and the few acts that all of them need: telling the manager
 * something, giving up a binding, writing to disk what is to be put back, switching the monitor. It
 * is below all others, and calls none of them: who owns threads, when to reset and what to repair
 * is decided there.
 */

#include "kernel/context.h"

#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <syslog.h>

#include "base/sentence.h"

int kernel_context_init(KernelContext *c, const BackendConfig *config) {
        int r;

        c->epoll_fd = c->watch_fd = c->kick_fd = c->crowd_fd = -EBADF;
        c->entries = calloc(config->bindings_max, sizeof(*c->entries));
        if (!c->entries)
                return -ENOMEM;
        c->n_entries = config->bindings_max;
        c->files = config->files;
        for (size_t i = 0; i < c->n_entries; i++)
                c->entries[i].fd = c->entries[i].file_watch = -1;
        c->sees_tasks = kernel_tasks_are_visible();
        c->own_pid = config->leave_out_self ? (uint32_t) getpid() : 0;
        r = kernel_tasks_new(&c->tasks);
        if (r < 0)
                return r;
        c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        c->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        c->crowd_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (c->epoll_fd < 0 || c->kick_fd < 0 || c->crowd_fd < 0)
                return -errno;
        return 0;
}

void kernel_context_done(KernelContext *c) {
        free(c->entries);
        free(c->gone);
        kernel_stream_free(c->stream);
        kernel_tasks_free(c->tasks);
        safe_close(c->kick_fd);
        safe_close(c->crowd_fd);
        safe_close(c->watch_fd);
        safe_close(c->epoll_fd);
        kernel_state_done(&c->state);
        kernel_lines_done(&c->foreign);
        free(c->foreign_files);
        kernel_lines_done(&c->left);
        kernel_lines_done(&c->leaving);
        for (size_t i = 0; i < c->n_notices; i++)
                free(c->notices[i].text);
        free(c->notices);
        for (size_t i = 0; c->limitations[i]; i++)
                free(c->limitations[i]);
        kernel_tracing_done(&c->tracing);
}

static void add_notice(KernelContext *c, BackendNotice notice, const char *raw) {
        char *text = text_escape(raw);
        BackendNotice *notices;

        notices = reallocarray(c->notices, c->n_notices + 1, sizeof(*notices));
        if (!text || !notices) {
                free(text);
                c->notices = notices ?: c->notices;
                return;
        }
        c->notices = notices;
        notice.text = text;
        notices[c->n_notices++] = notice;
}

void kernel_context_notice(KernelContext *c, int level, uint32_t index, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vasprintf(&text, format, arguments);
        va_end(arguments);
        if (n >= 0)
                add_notice(c, (BackendNotice) { .level = level, .index = index }, text);
        else
                text = NULL;
}

void kernel_context_advise(KernelContext *c, uint32_t index, const char *why) {
        add_notice(c, (BackendNotice) { .level = LOG_WARNING, .index = index, .is_advice = true },
                   why);
}

int kernel_context_next_notice(KernelContext *c, BackendNotice *ret) {
        if (c->n_notices == 0)
                return 0;
        *ret = c->notices[0];
        c->n_notices--;
        memmove(c->notices, c->notices + 1, c->n_notices * sizeof(*c->notices));
        return 1;
}

void kernel_context_forget_notices(KernelContext *c, uint32_t index) {
        size_t n = 0;

        for (size_t i = 0; i < c->n_notices; i++)
                if (c->notices[i].index == index)
                        free(c->notices[i].text);
                else
                        c->notices[n++] = c->notices[i];
        c->n_notices = n;
}

bool kernel_entry_is_live(const KernelEntry *entry) {
        return entry->used && !entry->retired && !entry->given_up;
}

bool kernel_context_has_entries(const KernelContext *c) {
        for (size_t i = 0; i < c->n_entries; i++)
                if (kernel_entry_is_live(&c->entries[i]))
                        return true;
        return false;
}

int kernel_context_add_line(const KernelContext *c, const KernelEntry *entry, char **ret_reason) {
        if (!kernel_file_is_at(entry->fd, entry->line.path))
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitor opens a file by its path, and at '%s' "
                                      "tlobd finds another one, or none",
                                      entry->line.path);
        return kernel_monitor_add(&c->monitor, entry->fd, &entry->line, ret_reason);
}

void kernel_context_retire_threshold(KernelContext *c, uint64_t threshold) {
        c->retired[c->n_retired++ % KERNEL_RETIRED_MAX] = threshold;
}

static int add_lines(KernelLines *lines, const KernelLines *more) {
        int r = 0;

        for (size_t i = 0; i < more->n && r >= 0; i++)
                r = kernel_lines_add(lines, more->items[i].text, strlen(more->items[i].text));
        return r;
}

/* Our lines: of the entries, left by a daemon before us, and not gone yet. */
int kernel_context_save(const KernelContext *c) {
        KernelState state = { .enabled = c->state.enabled, .mounted = c->state.mounted };
        int r = 0;

        for (size_t i = 0; i < c->n_entries && r >= 0; i++)
                if (c->entries[i].used && !c->entries[i].retired)
                        r = kernel_lines_add(&state.lines, c->entries[i].line.text,
                                             strlen(c->entries[i].line.text));
        if (r >= 0)
                r = add_lines(&state.lines, &c->left);
        if (r >= 0)
                r = add_lines(&state.lines, &c->leaving);
        if (r >= 0)
                r = kernel_state_save(KERNEL_STATE_DIRECTORY, &state);
        kernel_state_done(&state);
        return r;
}

int kernel_context_enable(KernelContext *c, bool enabled) {
        int r;

        r = kernel_monitor_set_enabled(&c->monitor, enabled);
        if (r >= 0)
                c->own_enables++;
        return r;
}

void kernel_context_give_up(KernelContext *c, KernelEntry *entry, const char *why) {
        if (entry->given_up)
                return;
        entry->given_up = true;
        kernel_context_notice(c, LOG_WARNING, (uint32_t) (entry - c->entries), "%s", why);
}
