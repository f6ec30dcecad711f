/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A count in a thread of its own. "maps" is read under the lock of the process's memory
 * (mmap_lock), and a process can wait with that lock held, say in mmap() of a file on a file system
 * that does not answer. Then the thread waits as long, and until it is back there are no other
 * counts.
 */

#include "kernel/census.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/sentence.h"
#include "kernel/threads.h"
#include "worker.h"

#define WAIT_NS (NSEC_PER_SEC / 3)

/* No process: it has not come to the first, or has seen the last. */
#define NO_PROCESS (-1)

/* Of who waits for it and of the thread; whoever leaves last frees it. */
typedef struct Census {
        pthread_mutex_t mutex;
        pthread_cond_t done;
        KernelFile *files;
        unsigned *each;
        size_t n_files;
        unsigned max;
        unsigned total;
        pid_t process; /* that is looked at */
        int result;
        bool is_done;
        bool is_left; /* nobody waits for it */
} Census;

/* The process that the thread waits for whose count nobody waits for any more; 0: there is none. */
static pid_t silent;

static Census *census_free(Census *census) {
        if (!census)
                return NULL;
        (void) pthread_cond_destroy(&census->done);
        (void) pthread_mutex_destroy(&census->mutex);
        free(census->files);
        free(census->each);
        free(census);
        return NULL;
}

static Census *census_new(const KernelFile *files, size_t n_files, unsigned max) {
        Census *census = calloc(1, sizeof(*census));
        pthread_condattr_t attributes;

        if (!census)
                return NULL;
        (void) pthread_condattr_init(&attributes);
        (void) pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        (void) pthread_cond_init(&census->done, &attributes);
        (void) pthread_condattr_destroy(&attributes);
        (void) pthread_mutex_init(&census->mutex, NULL);
        census->files = calloc(n_files + 1, sizeof(*census->files));
        census->each = calloc(n_files + 1, sizeof(*census->each));
        if (!census->files || !census->each)
                return census_free(census);
        if (n_files > 0)
                memcpy(census->files, files, n_files * sizeof(*files));
        census->n_files = n_files;
        census->max = max;
        census->process = NO_PROCESS;
        return census;
}

static void *census_work(void *userdata) {
        Census *census = userdata;
        int r = kernel_threads_count(census->files, census->n_files, census->max, census->each,
                                     &census->total, &census->process);
        bool is_left;

        (void) pthread_mutex_lock(&census->mutex);
        census->result = r;
        census->is_done = true;
        is_left = census->is_left;
        (void) pthread_cond_signal(&census->done);
        (void) pthread_mutex_unlock(&census->mutex);
        if (is_left) {
                __atomic_store_n(&silent, 0, __ATOMIC_RELEASE);
                census_free(census);
        }
        return NULL;
}

static int no_answer(pid_t process, char **ret_reason) {
        if (process == NO_PROCESS)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "The threads that may run this code cannot be counted in "
                                      "time");
        return sentence_error(-EOPNOTSUPP, ret_reason,
                              "The threads that may run this code cannot be counted: the memory of "
                              "process %i is locked, and what it has mapped cannot be read",
                              (int) process);
}

/* Returns 0 when it is done, else the process that it waits for: then it is the thread's alone. */
static pid_t census_wait(Census *census) {
        uint64_t until = now_ns() + WAIT_NS;
        const struct timespec ts = {
                .tv_sec = (time_t) (until / NSEC_PER_SEC),
                .tv_nsec = (long) (until % NSEC_PER_SEC),
        };
        pid_t process = 0;

        (void) pthread_mutex_lock(&census->mutex);
        while (!census->is_done &&
               pthread_cond_timedwait(&census->done, &census->mutex, &ts) != ETIMEDOUT)
                ;
        if (!census->is_done) {
                process = __atomic_load_n(&census->process, __ATOMIC_RELAXED);
                __atomic_store_n(&silent, process, __ATOMIC_RELEASE);
                census->is_left = true;
        }
        (void) pthread_mutex_unlock(&census->mutex);
        return process;
}

int kernel_census(const KernelFile *files, size_t n_files, unsigned max, unsigned *each,
                  unsigned *ret_total, char **ret_reason) {
        pid_t process = __atomic_load_n(&silent, __ATOMIC_ACQUIRE);
        Census *census;
        int r;

        if (process)
                return no_answer(process, ret_reason);
        census = census_new(files, n_files, max);
        if (!census)
                return -ENOMEM;
        if (!worker_start(census_work, census)) {
                census_free(census);
                return -EAGAIN;
        }
        process = census_wait(census);
        if (process)
                return no_answer(process, ret_reason);
        r = census->result;
        if (r >= 0 && each)
                memcpy(each, census->each, n_files * sizeof(*each));
        *ret_total = census->total;
        census_free(census);
        return r;
}
