/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef USAGE_H
#define USAGE_H

#include <stdint.h>

/* What this process takes of the machine. What cannot be read is 0. */
typedef struct Usage {
        uint64_t memory;          /* bytes that are resident */
        uint64_t descriptors;     /* that are open */
        uint64_t descriptors_max; /* that may be open: RLIMIT_NOFILE */
        uint64_t cpu_ns;          /* CPU time since it was started */
} Usage;

Usage usage_read(void);

#endif
