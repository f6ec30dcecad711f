/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Threads for what would hold up the event loop: calls in which the kernel makes their caller wait.
 * There may be many at once, and they do little, so their stacks are small. What they share with
 * the rest of the daemon is up to those who have them.
 */

#include "worker.h"

#include <pthread.h>
#include <signal.h>

#define STACK_SIZE (256U << 10)

bool worker_start(void *(*work)(void *userdata), void *userdata) {
        pthread_attr_t attributes;
        sigset_t all, old;
        pthread_t thread;
        int r;

        if (pthread_attr_init(&attributes) != 0)
                return false;

        (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        (void) pthread_attr_setstacksize(&attributes, STACK_SIZE);
        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_BLOCK, &all, &old);
        r = pthread_create(&thread, &attributes, work, userdata);
        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
        (void) pthread_attr_destroy(&attributes);
        return r == 0;
}
