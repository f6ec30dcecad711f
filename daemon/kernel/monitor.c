/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What is written to, and read from, the kernel's tlob monitor. It does what it is told, once, and
 * knows no binding of the daemon: which lines are ours, and what becomes of them, is in
 * kernel/backend.c.
 *
 * A file is named by its descriptor, as /proc/self/fd/N: what was resolved is what gets the probe,
 * and a binding can be taken away after its file was replaced, which by its path cannot be done.
 * The monitor resolves the link, and shows the path that the file has.
 */

#include "kernel/monitor.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "backend/backend.h"
#include "base/sentence.h"
#include "kernel/event.h"

#define MONITOR_FILE    "rv/monitors/tlob/monitor"
#define REACTORS_FILE   "rv/monitors/tlob/reactors"
#define MONITORING_FILE "rv/monitoring_on"
#define LINE_MAX_SIZE   512

const char *const kernel_monitor_files[] = {
        KERNEL_MONITOR_ENABLE, MONITOR_FILE,          REACTORS_FILE,
        MONITORING_FILE,       "rv/enabled_monitors", NULL,
};

static int write_line(const KernelMonitor *monitor, const char *line) {
        return kernel_tracing_write(monitor->tracing, MONITOR_FILE, line);
}

/* Which unit the breakdown's threshold is in. */
static void look_at_detail(const KernelTracing *tracing, DialectEvidence *ret) {
        _cleanup_free_ char *format = NULL;

        if (kernel_tracing_read(tracing, "events/rv/detail_env_tlob/format", &format) < 0)
                return;
        ret->has_detail_event = true;
        ret->detail_in_us = strstr(format, " threshold_us;");
        ret->detail_in_ns = strstr(format, " threshold_ns;");
}

/*
 * Functions that came with v5. A kernel that does not list its functions counts as older, with
 * stricter limits.
 */
static bool kernel_has_parking(void) {
        static const char *const names[] = { "tlob_destroy_task", "tlob_unbind_reap" };
        _cleanup_fclose_ FILE *types = fopen("/sys/kernel/btf/vmlinux", "re");
        _cleanup_free_ char *word = NULL;
        size_t size = 0;

        /* Its names end with a zero byte each. What is none, is not one of these either. */
        while (types && getdelim(&word, &size, '\0', types) > 0)
                for (size_t i = 0; i < ELEMENTSOF(names); i++)
                        if (streq(word, names[i]))
                                return true;
        return false;
}

static int probe_answers(const KernelMonitor *monitor, DialectEvidence *ret, char **ret_reason) {
        for (size_t i = 0; i < DIALECT_N_PROBES; i++) {
                int r = write_line(monitor, dialect_probes[i]);

                if (r == -EACCES || r == -EPERM || r == -EROFS)
                        return sentence_error(
                                r, ret_reason,
                                "The kernel's tlob monitor is not used: tlobd may not write to "
                                "%s/" MONITOR_FILE ": %s%s",
                                monitor->tracing->path, strerror(-r),
                                r == -EPERM ? "; the kernel may be locked down" : "");
                ret->probe_errors[i] = -r;
        }
        return 0;
}

int kernel_monitor_init(KernelMonitor *monitor, KernelTracing *tracing, char **ret_reason) {
        KernelMonitor result = { .tracing = tracing };
        DialectEvidence evidence = {
                .has_rv = kernel_tracing_has(tracing, "rv/available_monitors"),
                .has_monitor = kernel_tracing_has_line(tracing, "rv/available_monitors", "tlob"),
                .has_budget_event = kernel_tracing_has(tracing, "events/rv/tlob_budget_exceeded"),
                .has_error_event = kernel_tracing_has(tracing, "events/rv/error_env_tlob"),
                .has_change_event = kernel_tracing_has(tracing, "events/rv/event_tlob"),
        };
        int r;

        look_at_detail(tracing, &evidence);
        if (evidence.has_monitor) {
                r = probe_answers(&result, &evidence, ret_reason);
                if (r < 0)
                        return r;
                evidence.has_parking = kernel_has_parking();
        }
        r = dialect_judge(&evidence, &result.dialect, ret_reason);
        if (r < 0)
                return r;
        *monitor = result;
        return 0;
}

bool kernel_monitor_is_on(const KernelMonitor *monitor) {
        bool on;

        return kernel_tracing_read_switch(monitor->tracing, MONITORING_FILE, &on) < 0 || on;
}

int kernel_monitor_check(const KernelMonitor *monitor, char **ret_reason) {
        if (!kernel_monitor_is_on(monitor))
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's monitors are switched off: %s/" MONITORING_FILE
                                      " is 0",
                                      monitor->tracing->path);
        if (kernel_tracing_has_line(monitor->tracing, REACTORS_FILE, "[panic]"))
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The kernel's tlob monitor would stop the machine at each "
                                      "violation: its reactor is 'panic'");
        return 0;
}

int kernel_monitor_list(const KernelMonitor *monitor, KernelLines *ret) {
        _cleanup_free_ char *text = NULL;
        int r;

        r = kernel_tracing_read(monitor->tracing, MONITOR_FILE, &text);
        if (r < 0)
                return r;
        return kernel_lines_parse(text, ret);
}

uint64_t kernel_monitor_unit_ns(const KernelMonitor *monitor) {
        return monitor->dialect == DIALECT_V2 ? 1000 : 1;
}

bool kernel_monitor_has_names(const KernelMonitor *monitor) {
        return monitor->dialect == DIALECT_NAMED;
}

bool kernel_monitor_owns_threads(const KernelMonitor *monitor) {
        return monitor->dialect == DIALECT_V5 || monitor->dialect == DIALECT_NAMED;
}

static int refused(int error, uint64_t start, char **ret_reason) {
        const char *why;

        switch (-error) {
        case EEXIST:
                return sentence_error(error, ret_reason,
                                      "There is a binding in the kernel's monitor already that "
                                      "conflicts with one at 0x%" PRIx64 " of this file",
                                      start);
        case ENAMETOOLONG:
                why = "the path of the file is longer than 255 bytes";
                break;
        case EIO:
                why = "files on this file system cannot have probes";
                break;
        case ENOTSUPP_KERNEL:
                why = "the kernel cannot put a probe on one of these instructions";
                break;
        case EINVAL:
                why = "one of the offsets is outside the file, or not on an instruction";
                break;
        default:
                why = strerror(-error);
        }
        return sentence_error(error, ret_reason,
                              "The kernel's tlob monitor refused the binding: %s", why);
}

int kernel_monitor_add(const KernelMonitor *monitor, int fd, const KernelLine *line,
                       char **ret_reason) {
        char text[LINE_MAX_SIZE];
        int r;

        (void) snprintf(text, sizeof(text),
                        "p%s%s /proc/self/fd/%i:0x%" PRIx64 " 0x%" PRIx64 " threshold=%" PRIu64,
                        line->name ? ":" : "", line->name ?: "", fd, line->start, line->stop,
                        line->threshold);
        r = write_line(monitor, text);
        return r < 0 ? refused(r, line->start, ret_reason) : 0;
}

static int remove_name(const KernelMonitor *monitor, const char *name) {
        char text[LINE_MAX_SIZE];

        (void) snprintf(text, sizeof(text), "-:%s", name);
        return write_line(monitor, text);
}

int kernel_monitor_remove(const KernelMonitor *monitor, int fd, const KernelLine *line) {
        char text[LINE_MAX_SIZE];

        if (line->name)
                return remove_name(monitor, line->name);
        (void) snprintf(text, sizeof(text), "-/proc/self/fd/%i:0x%" PRIx64, fd, line->start);
        return write_line(monitor, text);
}

/*
 * The kernel looks a path up as we see it. One that our unit hides from us is below the root of
 * PID 1, and is shown without it. n: what is before the path.
 */
static int write_line_with_path(const KernelMonitor *monitor, const char *line, size_t n) {
        char text[LINE_MAX_SIZE];
        int r = write_line(monitor, line);

        if (r != -ENOENT || snprintf(text, sizeof(text), "%.*s/proc/1/root%s", (int) n, line,
                                     line + n) >= (int) sizeof(text))
                return r;
        return write_line(monitor, text) < 0 ? r : 0;
}

int kernel_monitor_restore_line(const KernelMonitor *monitor, const KernelLine *line) {
        const char *path = strchr(line->text, '/');

        return path ? write_line_with_path(monitor, line->text, (size_t) (path - line->text))
                    : write_line(monitor, line->text);
}

int kernel_monitor_remove_line(const KernelMonitor *monitor, const KernelLine *line) {
        char text[LINE_MAX_SIZE];

        if (!line->path)
                return -EINVAL;
        if (line->name)
                return remove_name(monitor, line->name);
        (void) snprintf(text, sizeof(text), "-%s:0x%" PRIx64, line->path, line->start);
        return write_line_with_path(monitor, text, 1);
}

int kernel_monitor_get_enabled(const KernelMonitor *monitor, bool *ret) {
        return kernel_tracing_read_switch(monitor->tracing, KERNEL_MONITOR_ENABLE, ret);
}

int kernel_monitor_set_enabled(const KernelMonitor *monitor, bool enabled) {
        return kernel_tracing_write(monitor->tracing, KERNEL_MONITOR_ENABLE, enabled ? "1" : "0");
}
