/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_RETRY_H
#define MANAGER_RETRY_H

#include "manager/internal.h"

/* Sees to it that the journal gets later what it did not take at once. */
void manager_retry_journal(Manager *manager);

/* So many entries did not reach the journal when the daemon before this one ended. */
void manager_on_unwritten(uint64_t n, void *userdata);

/* At the end of the daemon: gives the journal a moment to take what waits. */
void manager_drain_journal(Manager *manager);

#endif
