/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The back end that measures with the kernel's own tlob monitor, driven through tracefs. The monitor
 * is built into kernels that have it, and is enabled as long as there is a binding for it here.
 *
 * Here are what the daemon asks for and the life of the back end; kernel-entry.c has a binding's place in
 * the monitor, kernel-report.c what becomes of its events, kernel-repair.c what others do to it.
 *
 * What the monitor does not tell is not known here: how many windows there were, how long those took that
 * kept their budget, and when one that broke it ended. There are no completions.
 *
 * Probes are taken out before the monitor is switched off, and it is switched as rarely as can be: a
 * start that races with the switch was seen to crash the kernel.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <syslog.h>

#include "kernel-backend.h"
#include "sentence.h"

static KernelBackend *KERNEL(Backend *backend) {
        return (KernelBackend *) backend;
}

static void add_notice(KernelBackend *b, BackendNotice notice, const char *raw) {
        char *text = text_escape(raw);
        BackendNotice *notices;

        notices = reallocarray(b->notices, b->n_notices + 1, sizeof(*notices));
        if (!text || !notices) {
                free(text);
                b->notices = notices ?: b->notices;
                return;
        }
        b->notices = notices;
        notice.text = text;
        notices[b->n_notices++] = notice;
}

void kernel_backend_notice(KernelBackend *b, int level, uint32_t index, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        va_list arguments;
        int n;

        va_start(arguments, format);
        n = vasprintf(&text, format, arguments);
        va_end(arguments);
        if (n >= 0)
                add_notice(b, (BackendNotice){ .level = level, .index = index }, text);
        else
                text = NULL;
}

void kernel_backend_advise(KernelBackend *b, uint32_t index, const char *why) {
        add_notice(b, (BackendNotice){ .level = LOG_WARNING, .index = index, .is_advice = true },
                   why);
}

bool kernel_backend_has_entries(const KernelBackend *b) {
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].used && !b->entries[i].retired && !b->entries[i].given_up)
                        return true;
        return false;
}

/* Our lines: of the entries, left by a daemon before us, and not gone yet. */
int kernel_backend_save(KernelBackend *b) {
        KernelState state = { .enabled = b->state.enabled, .mounted = b->state.mounted };
        int r = 0;

        for (size_t i = 0; i < b->n_entries && r >= 0; i++)
                if (b->entries[i].used && !b->entries[i].retired)
                        r = kernel_lines_add(&state.lines, b->entries[i].line.text,
                                             strlen(b->entries[i].line.text));
        for (size_t i = 0; i < b->left.n && r >= 0; i++)
                r = kernel_lines_add(&state.lines, b->left.items[i].text,
                                     strlen(b->left.items[i].text));
        for (size_t i = 0; i < b->leaving.n && r >= 0; i++)
                r = kernel_lines_add(&state.lines, b->leaving.items[i].text,
                                     strlen(b->leaving.items[i].text));
        if (r >= 0)
                r = kernel_state_save(&state);
        kernel_state_done(&state);
        return r;
}

int kernel_backend_enable(KernelBackend *b, bool enabled) {
        int r;

        r = kernel_monitor_set_enabled(&b->monitor, enabled);
        if (r >= 0)
                b->own_enables++;
        return r;
}

static int kernel_backend_probe(char **ret_reason) {
        KernelTracing tracing;
        KernelMonitor monitor;
        int r;

        r = kernel_tracing_init(&tracing, ret_reason);
        if (r < 0)
                return r;
        r = kernel_monitor_init(&monitor, &tracing, ret_reason);
        if (r >= 0)
                r = kernel_monitor_check(&monitor, ret_reason);
        kernel_tracing_done(&tracing);
        return r < 0 ? r : kernel_state_is_left();
}

/* Switched off, as we found it. Bindings of others stay, as far as the monitor lets them. */
static void switch_off(KernelBackend *b) {
        _cleanup_(kernel_lines_done) KernelLines others = {};
        bool enabled;

        if (b->state.enabled || kernel_monitor_get_enabled(&b->monitor, &enabled) < 0 || !enabled)
                return;
        (void) kernel_monitor_list(&b->monitor, &others);
        (void) kernel_backend_enable(b, false);
        for (size_t i = 0; i < others.n; i++)
                (void) kernel_monitor_restore_line(&b->monitor, &others.items[i]);
}

static Backend *kernel_backend_free(Backend *backend) {
        KernelBackend *b = KERNEL(backend);

        if (!b)
                return NULL;
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].used) {
                        if (!b->entries[i].retired)
                                (void) backend->ops->remove(backend, (uint32_t) i, NULL, NULL);
                        kernel_entry_done(b, &b->entries[i]);
                }
        for (size_t i = 0; i < b->left.n; i++)
                (void) kernel_monitor_remove_line(&b->monitor, &b->left.items[i]);
        b->remover = kernel_remover_free(b->remover);
        if (b->stream) {
                switch_off(b);
                (void) kernel_state_forget();
        }
        free(b->entries);
        kernel_stream_free(b->stream);
        kernel_tasks_free(b->tasks);
        safe_close(b->kick_fd);
        safe_close(b->crowd_fd);
        safe_close(b->watch_fd);
        safe_close(b->epoll_fd);
        kernel_state_done(&b->state);
        kernel_lines_done(&b->foreign);
        kernel_lines_done(&b->left);
        kernel_lines_done(&b->leaving);
        for (size_t i = 0; i < b->n_notices; i++)
                free(b->notices[i].text);
        free(b->notices);
        for (size_t i = 0; b->limitations[i]; i++)
                free(b->limitations[i]);
        kernel_tracing_done(&b->tracing);
        free(b);
        return NULL;
}

/* What a daemon that died has left: its lines that are still there, and how it found the monitor. */
static int take_over(KernelBackend *b, const KernelLines *present) {
        _cleanup_(kernel_state_done) KernelState before = {};
        int r;

        r = kernel_state_load(&before);
        if (r == -ENOENT || r == -EBADMSG)
                return 0;
        if (r < 0)
                return r;
        b->state.enabled = before.enabled;
        b->state.mounted = b->tracing.mounted = b->tracing.mounted || before.mounted;
        for (size_t i = 0; i < before.lines.n; i++) {
                const KernelLine *line = kernel_lines_find(present, &before.lines.items[i]);

                if (!line)
                        continue;
                r = kernel_lines_add(&b->left, line->text, strlen(line->text));
                if (r < 0)
                        return r;
        }
        return eventfd_write(b->kick_fd, 1) < 0 ? -errno : 0;
}

static int look_around(KernelBackend *b, char **ret_reason) {
        _cleanup_(kernel_lines_done) KernelLines present = {};
        int r;

        r = kernel_tracing_init(&b->tracing, ret_reason);
        if (r < 0)
                return r;
        b->state.mounted = b->tracing.mounted;
        r = kernel_monitor_init(&b->monitor, &b->tracing, ret_reason);
        if (r >= 0)
                r = kernel_monitor_check(&b->monitor, ret_reason);
        if (r >= 0)
                r = kernel_monitor_get_enabled(&b->monitor, &b->state.enabled);
        if (r >= 0)
                r = kernel_monitor_list(&b->monitor, &present);
        if (r >= 0)
                r = take_over(b, &present);
        return r < 0 ? r : kernel_repair_note_foreign(b, &present);
}

static int poll_also(KernelBackend *b, int fd) {
        struct epoll_event event = { .events = EPOLLIN };

        return epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int kernel_backend_set_up(KernelBackend *b, const BackendConfig *config, char **ret_reason) {
        bool stale = false;
        int r;

        b->entries = calloc(config->bindings_max, sizeof(*b->entries));
        if (!b->entries)
                return -ENOMEM;
        b->n_entries = config->bindings_max;
        for (size_t i = 0; i < b->n_entries; i++)
                b->entries[i].fd = b->entries[i].file_watch = -1;
        b->sees_tasks = kernel_tasks_are_visible();
        r = kernel_tasks_new(&b->tasks);
        if (r < 0)
                return r;
        b->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        b->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        b->crowd_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (b->epoll_fd < 0 || b->kick_fd < 0 || b->crowd_fd < 0)
                return -errno;

        r = look_around(b, ret_reason);
        if (r >= 0)
                r = kernel_remover_new(&b->monitor, b->kick_fd, &b->remover);
        if (r >= 0)
                r = kernel_stream_new(&b->tracing, kernel_monitor_has_names(&b->monitor),
                                      config->ring_buffer_size, &b->stream, &stale, ret_reason);
        if (r >= 0)
                r = kernel_repair_start(b);
        if (r >= 0)
                r = poll_also(b, kernel_stream_get_fd(b->stream));
        if (r >= 0)
                r = poll_also(b, b->watch_fd);
        if (r >= 0)
                r = poll_also(b, b->kick_fd);
        if (r >= 0)
                r = poll_also(b, b->crowd_fd);
        if (r >= 0 && stale)
                kernel_backend_notice(
                        b, LOG_NOTICE, BACKEND_NO_INDEX,
                        "A tlobd that died has left a trace instance; what is in it is "
                        "reported now");
        return r < 0 ? r : kernel_backend_save(b);
}

static int kernel_backend_new(const BackendConfig *config, Backend **ret, char **ret_reason) {
        KernelBackend *b;
        int r;

        b = calloc(1, sizeof(*b));
        if (!b)
                return -ENOMEM;
        b->backend.ops = &backend_kernel_ops;
        b->epoll_fd = b->watch_fd = b->kick_fd = b->crowd_fd = -EBADF;

        r = kernel_backend_set_up(b, config, ret_reason);
        if (r < 0) {
                kernel_backend_free(&b->backend);
                if (*ret_reason)
                        return r;
                return sentence_error(r, ret_reason, "The kernel's tlob monitor cannot be used: %s",
                                      strerror(-r));
        }
        *ret = &b->backend;
        return 0;
}

static int kernel_backend_add(Backend *backend, const Binding *binding, const ElfFile *elf,
                              uint32_t *ret_index, char **ret_reason) {
        KernelBackend *b = KERNEL(backend);
        KernelEntry *entry = b->entries;
        int r;

        while (entry < b->entries + b->n_entries && entry->used)
                entry++;
        if (kernel_repair_is_hopeless(b))
                return sentence_error(-EBUSY, ret_reason,
                                      "Others keep on taking bindings out of the kernel's monitor");
        if (entry == b->entries + b->n_entries)
                return sentence_error(
                        -ENOSPC, ret_reason,
                        "There are %zu bindings already; raise BindingsMax= in tlobd.conf",
                        b->n_entries);

        *entry = (KernelEntry){
                .used = true,
                .fd = -EBADF,
                .file_watch = -1,
                .line.text = strdup(""),
                .budget_ns = binding->budget_ns[TLOB_BUDGET_TOTAL],
                .cgroup_id = binding->cgroup_id,
                .cgroup_level = binding->cgroup_level,
        };
        r = free_and_strdup(&entry->unit, binding->unit);
        if (r >= 0)
                r = entry->line.text ? kernel_entry_attach(b, entry, binding, elf, ret_reason)
                                     : -ENOMEM;
        if (r < 0) {
                kernel_entry_done(b, entry);
                (void) kernel_backend_save(b);
                return r;
        }
        *ret_index = (uint32_t) (entry - b->entries);
        return 0;
}

static void entry_statistics(const KernelEntry *entry, Statistics *ret) {
        memset(ret, 0xff, sizeof(*ret)); /* STATISTIC_UNKNOWN everywhere */
        ret->counters.violations = entry->violations;
        ret->counters.lost = 0;
}

static int kernel_backend_remove(Backend *backend, uint32_t index, Statistics *ret_final,
                                 Histogram *histogram) {
        KernelBackend *b = KERNEL(backend);
        KernelEntry *entry = &b->entries[index];

        kernel_repair_unwatch_file(b, entry);
        entry->retired = true;
        kernel_leaving_add(b, &entry->line, fcntl(entry->fd, F_DUPFD_CLOEXEC, 3));
        kernel_retire_threshold(b, entry->line.threshold);
        (void) kernel_backend_save(b);
        if (ret_final)
                entry_statistics(entry, ret_final);
        return 0;
}

/* The monitor knows no units: nothing changes for it. */
static int kernel_backend_set_cgroup(Backend *backend, uint32_t index, uint64_t cgroup_id,
                                     unsigned level) {
        KernelBackend *b = KERNEL(backend);

        for (size_t i = 0; i < b->n_entries; i++) {
                KernelEntry *entry = &b->entries[i];

                if (!entry->used || !streq_empty(entry->unit, b->entries[index].unit))
                        continue;
                entry->cgroup_id = cgroup_id;
                entry->cgroup_level = level;
        }
        return 0;
}

static int kernel_backend_set_budget(Backend *backend, uint32_t index,
                                     const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        KernelBackend *b = KERNEL(backend);
        KernelEntry *entry = &b->entries[index];
        uint64_t threshold;

        for (int i = TLOB_BUDGET_RUNNING; i < TLOB_N_BUDGETS; i++)
                if (budget_ns[i] != BUDGET_NONE)
                        return -EOPNOTSUPP;
        if (kernel_check_budget(budget_ns[TLOB_BUDGET_TOTAL], NULL) < 0)
                return -EOPNOTSUPP;
        if (budget_ns[TLOB_BUDGET_TOTAL] == entry->budget_ns)
                return 0;

        threshold = kernel_choose_threshold(b, budget_ns[TLOB_BUDGET_TOTAL]);
        if (threshold == 0)
                return -EOPNOTSUPP;
        entry->budget_ns = budget_ns[TLOB_BUDGET_TOTAL];
        return kernel_entry_change(b, entry, threshold);
}

static int kernel_backend_get_fd(Backend *backend) {
        return KERNEL(backend)->epoll_fd;
}

static int kernel_backend_dispatch(Backend *backend, BackendReportHandler handler, void *userdata) {
        KernelBackend *b = KERNEL(backend);
        int n, r;

        b->handler = handler;
        b->userdata = userdata;
        n = kernel_stream_read(b->stream, kernel_on_violation, b);
        if (kernel_stream_is_pending(b->stream))
                (void) eventfd_write(b->kick_fd, 1);
        kernel_leaving_reap(b);
        r = kernel_repair_run(b);
        kernel_crowd_run(b);

        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].retired)
                        kernel_entry_done(b, &b->entries[i]);
        return n < 0 ? n : r < 0 ? r : n;
}

static int kernel_backend_next_notice(Backend *backend, BackendNotice *ret) {
        KernelBackend *b = KERNEL(backend);

        if (b->n_notices == 0)
                return 0;
        *ret = b->notices[0];
        b->n_notices--;
        memmove(b->notices, b->notices + 1, b->n_notices * sizeof(*b->notices));
        return 1;
}

static uint64_t kernel_backend_lost(Backend *backend) {
        KernelStreamCounters counters;

        kernel_stream_get_counters(KERNEL(backend)->stream, &counters);
        return counters.lost;
}

static int kernel_backend_statistics(Backend *backend, uint32_t index, Statistics *ret) {
        entry_statistics(&KERNEL(backend)->entries[index], ret);
        return 0;
}

static int kernel_backend_reset_statistics(Backend *backend, uint32_t index) {
        KERNEL(backend)->entries[index].violations = 0;
        return 0;
}

static const char *const *kernel_backend_limitations(Backend *backend) {
        return kernel_limitations(KERNEL(backend));
}

static const char *kernel_backend_deadline_mode(Backend *backend) {
        return "uprobe";
}

const BackendOps backend_kernel_ops = {
        .name = "kernel",
        .capabilities = BACKEND_CAN_RETURN | BACKEND_CAN_CONFINE,
        .probe = kernel_backend_probe,
        .new = kernel_backend_new,
        .free = kernel_backend_free,
        .can = kernel_can,
        .add = kernel_backend_add,
        .remove = kernel_backend_remove,
        .set_cgroup = kernel_backend_set_cgroup,
        .set_budget = kernel_backend_set_budget,
        .get_fd = kernel_backend_get_fd,
        .dispatch = kernel_backend_dispatch,
        .next_notice = kernel_backend_next_notice,
        .lost = kernel_backend_lost,
        .statistics = kernel_backend_statistics,
        .reset_statistics = kernel_backend_reset_statistics,
        .limitations = kernel_backend_limitations,
        .deadline_mode = kernel_backend_deadline_mode,
};
