/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A queue of probes to take away and its workers, which do nothing but close(): they share nothing
 * with the rest of the daemon, and end when the queue is empty, so that an idle daemon has one
 * thread. It reports no errors: there is nothing that could be done about them.
 */

#include "bpf/detacher.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include "worker.h"

/*
 * They wait, and each for its own grace period: 200 probes took 8 of them 2.9 s, and 64 0.5 s
 * (Linux 6.18).
 */
#define WORKERS_MAX 64

typedef struct Item Item;

struct Item {
        Uprobe *uprobe;
        Item *next;
};

struct Detacher {
        pthread_mutex_t mutex;
        pthread_cond_t idle; /* the last worker has gone */
        int idle_fd;
        Item *first;
        unsigned n_workers;
};

int detacher_new(Detacher **ret) {
        Detacher *detacher;

        detacher = calloc(1, sizeof(*detacher));
        if (!detacher)
                return -ENOMEM;

        detacher->idle_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (detacher->idle_fd < 0) {
                int r = -errno;

                free(detacher);
                return r;
        }
        (void) pthread_mutex_init(&detacher->mutex, NULL);
        (void) pthread_cond_init(&detacher->idle, NULL);
        *ret = detacher;
        return 0;
}

static void *detacher_work(void *arg) {
        Detacher *detacher = arg;
        Item *item;

        (void) pthread_mutex_lock(&detacher->mutex);
        while ((item = detacher->first)) {
                detacher->first = item->next;
                (void) pthread_mutex_unlock(&detacher->mutex);
                uprobe_detach(item->uprobe);
                free(item);
                (void) pthread_mutex_lock(&detacher->mutex);
        }
        if (--detacher->n_workers == 0) {
                (void) pthread_cond_signal(&detacher->idle);
                (void) eventfd_write(detacher->idle_fd, 1);
        }
        (void) pthread_mutex_unlock(&detacher->mutex);
        return NULL;
}

void detacher_push(Detacher *detacher, Uprobe *uprobe) {
        Item *item;

        if (!uprobe)
                return;

        item = malloc(sizeof(*item));
        if (!item) {
                uprobe_detach(uprobe);
                return;
        }

        (void) pthread_mutex_lock(&detacher->mutex);
        *item = (Item) { .uprobe = uprobe, .next = detacher->first };
        detacher->first = item;
        if (detacher->n_workers < WORKERS_MAX && worker_start(detacher_work, detacher))
                detacher->n_workers++;
        if (detacher->n_workers == 0) {
                detacher->first = item->next;
                uprobe_detach(uprobe);
                free(item);
        }
        (void) pthread_mutex_unlock(&detacher->mutex);
}

bool detacher_is_busy(Detacher *detacher) {
        bool is_busy;

        (void) pthread_mutex_lock(&detacher->mutex);
        is_busy = detacher->n_workers > 0;
        (void) pthread_mutex_unlock(&detacher->mutex);
        return is_busy;
}

int detacher_get_fd(const Detacher *detacher) {
        return detacher->idle_fd;
}

Detacher *detacher_free(Detacher *detacher) {
        if (!detacher)
                return NULL;

        (void) pthread_mutex_lock(&detacher->mutex);
        while (detacher->n_workers > 0)
                (void) pthread_cond_wait(&detacher->idle, &detacher->mutex);
        (void) pthread_mutex_unlock(&detacher->mutex);

        (void) pthread_cond_destroy(&detacher->idle);
        (void) pthread_mutex_destroy(&detacher->mutex);
        safe_close(detacher->idle_fd);
        free(detacher);
        return NULL;
}
