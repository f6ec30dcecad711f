/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A thread that writes removals to the monitor, one after the other, because the monitor does them
 * under one lock. It is there while there is something to remove. What it needs of the rest of the
 * daemon is in the item that it works on; what became of it is asked for from the event loop.
 *
 * Switching the monitor off would take all bindings away at once. But a start that races with that
 * was seen to crash the kernel, so they go one by one.
 */

#include "kernel/remover.h"

#include <pthread.h>
#include <sys/eventfd.h>

#include "worker.h"

typedef struct Item Item;

struct Item {
        KernelRemoval removal;
        int fd;
        Item *next;
};

typedef struct Queue {
        Item *first;
        Item **end;
} Queue;

struct KernelRemover {
        const KernelMonitor *monitor;
        int kick_fd;
        pthread_mutex_t mutex;
        pthread_cond_t idle; /* the thread has gone */
        bool is_working;
        Queue waiting;
        Queue done;
};

static void queue_push(Queue *queue, Item *item) {
        item->next = NULL;
        *queue->end = item;
        queue->end = &item->next;
}

static Item *queue_pop(Queue *queue) {
        Item *item = queue->first;

        if (!item)
                return NULL;
        queue->first = item->next;
        if (!queue->first)
                queue->end = &queue->first;
        return item;
}

static Item *item_free(Item *item) {
        safe_close(item->fd);
        kernel_line_done(&item->removal.line);
        free(item);
        return NULL;
}

int kernel_remover_new(const KernelMonitor *monitor, int kick_fd, KernelRemover **ret) {
        KernelRemover *remover;

        remover = calloc(1, sizeof(*remover));
        if (!remover)
                return -ENOMEM;
        remover->monitor = monitor;
        remover->kick_fd = kick_fd;
        remover->waiting.end = &remover->waiting.first;
        remover->done.end = &remover->done.first;
        (void) pthread_mutex_init(&remover->mutex, NULL);
        (void) pthread_cond_init(&remover->idle, NULL);
        *ret = remover;
        return 0;
}

static void item_run(const KernelRemover *remover, Item *item) {
        KernelRemoval *removal = &item->removal;

        removal->error = item->fd >= 0
                                 ? kernel_monitor_remove(remover->monitor, item->fd, &removal->line)
                                 : kernel_monitor_remove_line(remover->monitor, &removal->line);
}

static void *remover_work(void *arg) {
        KernelRemover *remover = arg;
        Item *item;

        (void) pthread_mutex_lock(&remover->mutex);
        while ((item = queue_pop(&remover->waiting))) {
                (void) pthread_mutex_unlock(&remover->mutex);
                item_run(remover, item);
                (void) pthread_mutex_lock(&remover->mutex);
                queue_push(&remover->done, item);
                (void) eventfd_write(remover->kick_fd, 1);
        }
        remover->is_working = false;
        (void) pthread_cond_broadcast(&remover->idle);
        (void) pthread_mutex_unlock(&remover->mutex);
        return NULL;
}

int kernel_remover_push(KernelRemover *remover, const KernelLine *line, int fd) {
        _cleanup_(kernel_lines_done) KernelLines copy = {};
        Item *item = NULL;

        if (kernel_lines_parse(line->text, &copy) >= 0 && copy.n == 1)
                item = calloc(1, sizeof(*item));
        if (!item) {
                safe_close(fd);
                return -ENOMEM;
        }
        item->removal.line = copy.items[0];
        copy.n = 0;
        item->fd = fd;

        (void) pthread_mutex_lock(&remover->mutex);
        queue_push(&remover->waiting, item);
        if (!remover->is_working)
                remover->is_working = worker_start(remover_work, remover);
        if (!remover->is_working) {
                item = queue_pop(&remover->waiting);
                item_run(remover, item);
                queue_push(&remover->done, item);
                (void) eventfd_write(remover->kick_fd, 1);
        }
        (void) pthread_mutex_unlock(&remover->mutex);
        return 0;
}

void kernel_remover_wait(KernelRemover *remover) {
        (void) pthread_mutex_lock(&remover->mutex);
        while (remover->is_working)
                (void) pthread_cond_wait(&remover->idle, &remover->mutex);
        (void) pthread_mutex_unlock(&remover->mutex);
}

int kernel_remover_pop(KernelRemover *remover, KernelRemoval *ret) {
        Item *item;

        (void) pthread_mutex_lock(&remover->mutex);
        item = queue_pop(&remover->done);
        (void) pthread_mutex_unlock(&remover->mutex);
        if (!item)
                return 0;
        *ret = item->removal;
        item->removal.line = (KernelLine) {};
        item_free(item);
        return 1;
}

KernelRemover *kernel_remover_free(KernelRemover *remover) {
        Item *item;

        if (!remover)
                return NULL;
        kernel_remover_wait(remover);
        while ((item = queue_pop(&remover->done)))
                item_free(item);
        (void) pthread_cond_destroy(&remover->idle);
        (void) pthread_mutex_destroy(&remover->mutex);
        free(remover);
        return NULL;
}
