/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_FENTRY_H
#define BPF_FENTRY_H

#include <stdbool.h>

/* May a tracing program be attached to a function of a program on uprobes? Found by trying. */
bool fentry_is_allowed(void);

#endif
