/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TRACING_H
#define TRACING_H

/*
 * Mounts tracefs in a mount namespace of our own, so that nobody else sees it. Fails the test if it
 * cannot.
 */
void tracing_mount(const char *directory);

/* A set-up for a group of tests: where tlobd looks for it. Not every machine has it there. */
int tracing_need(void **state);

#endif
