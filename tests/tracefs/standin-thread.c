/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which starts and stops the monitor takes. Up to v4 a thread has a slot while it is in a window,
 * and the stop of any binding ends it. From v5 on it has one from its first start until it exits
 * ("parked" between windows), and belongs to the binding of that start: starts and stops of others
 * are refused, and a thread whose binding goes while its window is open belongs to nobody any more.
 */

#include "standin-thread.h"

#include <errno.h>

static StandinThread *find(StandinThreads *threads, pid_t id) {
        for (size_t i = 0; i < threads->n; i++)
                if (threads->items[i].id == id)
                        return &threads->items[i];
        return NULL;
}

static void forget(StandinThreads *threads, StandinThread *thread) {
        *thread = threads->items[--threads->n];
}

int standin_thread_start(StandinThreads *threads, pid_t id, unsigned binding) {
        StandinThread *thread = find(threads, id);

        if (thread && (thread->is_open || thread->owner != binding))
                return -EALREADY;
        if (!thread) {
                if (threads->n == STANDIN_SLOTS)
                        return -ENOSPC;
                thread = &threads->items[threads->n++];
        }
        *thread = (StandinThread) { .id = id, .owner = binding, .is_open = true };
        return 0;
}

int standin_thread_stop(StandinThreads *threads, pid_t id, unsigned binding) {
        StandinThread *thread = find(threads, id);

        if (!thread)
                return -ESRCH;
        if (!threads->are_owned) {
                forget(threads, thread);
                return 0;
        }
        if (thread->owner != binding)
                return -EALREADY;
        thread->is_open = false;
        return 0;
}

void standin_thread_exit(StandinThreads *threads, pid_t id) {
        StandinThread *thread = find(threads, id);

        if (thread)
                forget(threads, thread);
}

void standin_threads_orphan(StandinThreads *threads, unsigned binding) {
        for (size_t i = threads->n; i-- > 0 && threads->are_owned;) {
                StandinThread *thread = &threads->items[i];

                if (thread->owner != binding)
                        continue;
                if (thread->is_open)
                        thread->owner = 0;
                else
                        forget(threads, thread);
        }
}
