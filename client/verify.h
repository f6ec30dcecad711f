/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VERIFY_H
#define VERIFY_H

#include "config/config.h"
#include "verbs.h"

/* What "tlobctl verify" finds out, for other verbs too. */

typedef struct Verification {
        Client *client;
        json_object *results; /* for --json=; NULL: nothing is shown of what is good */
        bool bad;
} Verification;

void verification_done(Verification *verification);

/*
 * Asks the daemon about each binding of a configuration that was read from files, and shows
 * messages, errors and results. That something is bad is noted in verification. Returns 0, or a
 * negative errno when the daemon cannot be asked (and that was said), or -ENOMEM.
 */
int verify_config(Verification *verification, const Config *config);

#endif
