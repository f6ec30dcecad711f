/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef WORKER_H
#define WORKER_H

#include <stdbool.h>

/*
 * Starts a thread that runs work(userdata) and is gone with its end: nobody waits for it, so it
 * tells itself that it ends. Signals stay with the main thread. Returns false if no thread can be
 * had.
 */
bool worker_start(void *(*work)(void *userdata), void *userdata);

#endif
