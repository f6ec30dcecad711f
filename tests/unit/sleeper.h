/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef SLEEPER_H
#define SLEEPER_H

#include <sys/types.h>

/*
 * Runs a program, with "1000" as its only word: a copy of sleep. It has become that when this
 * returns. A failure fails the test; who calls kills it.
 */
pid_t sleeper_start(const char *path);

#endif
