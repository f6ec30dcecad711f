/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef POLKIT_AGENT_H
#define POLKIT_AGENT_H

#include <sys/types.h>

/* Has polkit's questions asked on this terminal. */

typedef struct PolkitAgent {
        pid_t pid; /* 0 while there is none */
} PolkitAgent;

/*
 * Starts it, and waits until polkit knows of it. Does nothing for root, who is not asked, without a
 * terminal, and where pkttyagent is not installed: then polkit asks on the desktop, or not at all.
 */
void polkit_agent_open(PolkitAgent *agent);
void polkit_agent_close(PolkitAgent *agent);

#endif
