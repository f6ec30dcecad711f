/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A probe belongs to an instruction of a file. When somebody writes in the file, the kernel goes on
 * executing the instruction that was there when the probe was set, in every process that starts:
 * that kills them. When another file takes its place, the probes are in one that nobody starts any
 * more.
 *
 * So each file that has probes is watched, by its open descriptor: no path is walked here. With the
 * first write the probes go, before anything else is done. They are set again, wherever they belong
 * then, when the writer has closed the file, or has rested for a while; and not before the old ones
 * have left the kernel, which else would keep the old instruction. What else happens to a file is
 * only a reason to compare it, which the processes that read files do. A file that changes all the
 * time is looked at once a second.
 *
 * File systems that do not tell (NFS, FUSE), and writes through a mapping, are found by the same
 * comparison at a reload, and when the binding's unit starts. There may be a write between the
 * reading of a file and the watch on it: a moment after its probes were set, it is compared once.
 *
 * Here files are watched, and dates kept; what a write does to a binding is in manager/follow.c.
 */

#include "manager/watch.h"

#include <sys/inotify.h>

#include "base/sentence.h"
#include "log.h"
#include "manager/backend-facts.h"
#include "manager/state.h"

#define MASK (IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)

/*
 * A busy file must not keep the loop from other work; another one's first write is heard this much
 * later.
 */
#define BUSY_USEC 100000
#define BUSY_MAX  20

static uint64_t now_usec(const Manager *m) {
        uint64_t now = 0;

        (void) sd_event_now(m->event, CLOCK_MONOTONIC, &now);
        return now;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata);

static void arm(Manager *m, uint64_t due_usec) {
        uint64_t next;

        if (!m->watch_timer) {
                if (sd_event_add_time(m->event, &m->watch_timer, CLOCK_MONOTONIC, due_usec, 0,
                                      on_time, m) < 0)
                        log_oom();
                return;
        }
        if (sd_event_source_get_enabled(m->watch_timer, NULL) <= 0 ||
            sd_event_source_get_time(m->watch_timer, &next) < 0 || next > due_usec)
                (void) sd_event_source_set_time(m->watch_timer, due_usec);
        (void) sd_event_source_set_enabled(m->watch_timer, SD_EVENT_ONESHOT);
}

void manager_arm_watch(Manager *m, uint64_t delay_usec) {
        if (m->event)
                arm(m, now_usec(m) + delay_usec);
}

void manager_check_file_later(Manager *m, Binding *binding, uint64_t delay_usec) {
        BindingWatch *watch = &binding->watch;
        uint64_t soonest = watch->looked_usec + WATCH_INTERVAL_USEC;

        if (!m->event)
                return;
        watch->due_usec = now_usec(m) + delay_usec;
        if (watch->looked_usec > 0 && watch->due_usec < soonest)
                watch->due_usec = soonest;
        arm(m, watch->due_usec);
}

sd_event_source *manager_get_watch(const Manager *m) {
        return m->watch_source;
}

void manager_note_written(Manager *m, const Binding *binding) {
        m->written[m->n_written++ % ELEMENTSOF(m->written)] = (WrittenFile) {
                .device = binding->resolved.device,
                .inode = binding->resolved.inode,
                .usec = now_usec(m),
        };
}

bool manager_file_was_written(const Manager *m, const Binding *binding) {
        if (!m->event)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(m->written); i++) {
                const WrittenFile *file = &m->written[i];

                if (file->usec > 0 && file->inode == binding->resolved.inode &&
                    file->device == binding->resolved.device &&
                    (now_usec(m) - file->usec < WATCH_CLOSED_USEC ||
                     backends_are_removing(m->backends)))
                        return true;
        }
        return false;
}

void manager_wait_for_file(Manager *m, Binding *binding) {
        _cleanup_free_ char *reason = NULL;

        reason = sentence_make("%s was written to: the probes are set again when that is done",
                               binding->resolved.path);
        binding->watch.is_written = true;
        manager_set_state(m, binding, BINDING_WAITING, reason);
        if (binding->watch.due_usec == 0)
                manager_check_file_later(m, binding, WATCH_CLOSED_USEC);
}

static int on_readable(sd_event_source *source, int fd, uint32_t revents, void *userdata) {
        char buffer[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
        const struct inotify_event *event;
        Manager *m = userdata;
        ssize_t n;

        n = read(fd, buffer, sizeof(buffer));
        if (n <= 0)
                return 0;
        manager_take_instances(m);
        for (char *p = buffer; p < buffer + n; p += sizeof(*event) + event->len) {
                event = (const struct inotify_event *) p;
                m->follow->heard(m, event);
        }
        return 0;
}

/* Made for the first file. Returns the descriptor or a negative errno. */
static int get_inotify(Manager *m) {
        _cleanup_close_ int fd = -EBADF;
        int r;

        if (m->watch_source)
                return sd_event_source_get_io_fd(m->watch_source);
        fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (fd < 0)
                return -errno;
        r = sd_event_add_io(m->event, &m->watch_source, fd, EPOLLIN, on_readable, m);
        if (r < 0)
                return r;
        (void) sd_event_source_set_io_fd_own(m->watch_source, true);
        (void) sd_event_source_set_priority(m->watch_source, SD_EVENT_PRIORITY_IMPORTANT);
        (void) sd_event_source_set_ratelimit(m->watch_source, BUSY_USEC, BUSY_MAX);
        return TAKE_FD(fd);
}

typedef struct Watched {
        const Binding *binding;
        int descriptor;
} Watched;

static bool is_other_user(const Binding *other, const void *userdata) {
        const Watched *watched = userdata;

        return other != watched->binding && other->watch.descriptor == watched->descriptor;
}

/* In a reload, the table has not all of those that have probes. */
static bool has_other_users(const Manager *m, const Binding *binding, int descriptor) {
        const Watched watched = { .binding = binding, .descriptor = descriptor };

        if (backends_have(m->backends, is_other_user, &watched))
                return true;
        for (size_t i = 0; m->config && i < m->config->bindings.n; i++)
                if (is_other_user(m->config->bindings.items[i], &watched))
                        return true;
        return false;
}

void manager_unwatch_file(Manager *m, Binding *binding) {
        int descriptor = binding->watch.descriptor;

        binding->watch = (BindingWatch) {};
        if (descriptor > 0 && m->watch_source && !has_other_users(m, binding, descriptor))
                (void) inotify_rm_watch(sd_event_source_get_io_fd(m->watch_source), descriptor);
}

static int add_watch(Manager *m, const BindingFile *file) {
        char path[64];
        int fd, descriptor;

        fd = get_inotify(m);
        if (fd < 0)
                return fd;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%i", file->fd);
        descriptor = inotify_add_watch(fd, path, MASK);
        return descriptor < 0 ? -errno : descriptor;
}

void manager_watch_file(Manager *m, Binding *binding, const BindingFile *file) {
        uint64_t looked_usec = binding->watch.looked_usec;
        int descriptor, old = binding->watch.descriptor;

        if (!m->event || file->fd < 0)
                return;
        descriptor = add_watch(m, file);
        if (descriptor != old)
                manager_unwatch_file(m, binding);
        binding->watch = (BindingWatch) {
                .descriptor = descriptor < 0 ? 0 : descriptor,
                .looked_usec = looked_usec,
        };
        if (descriptor < 0 && !m->watch_has_failed)
                log_warning_errno(descriptor,
                                  "Failed to watch %s: writes to it and further files are not "
                                  "noticed before a reload, ignoring: %m",
                                  binding->resolved.path);
        m->watch_has_failed = descriptor < 0;
        if (!binding->spare)
                manager_check_file_later(m, binding, WATCH_SETTLE_USEC);
}

int manager_compare_file(const Manager *m, Binding *binding, unsigned *ret_question) {
        bool is_known = binding->watch.is_heard || binding->spare;
        FileStamp now;
        int r;

        r = files_compare(m->files, binding, ret_question, &now);
        if (r != FILE_IS_TOUCHED || !is_known)
                return r;
        /* Had it been written, that would have been heard, too. */
        binding->resolved.stamp = now;
        return FILE_IS_SAME;
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        Manager *m = userdata;
        uint64_t next = m->follow->check_files(m, usec);

        if (next < UINT64_MAX)
                arm(m, next);
        return 0;
}
