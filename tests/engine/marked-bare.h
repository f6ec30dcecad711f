/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MARKED_BARE_H
#define MARKED_BARE_H

/* USDT probes without semaphores; sys/sdt.h makes only one kind in a source file. */
void marked_bare(unsigned long n);

#endif
