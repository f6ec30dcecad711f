/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_LIMITATIONS_H
#define KERNEL_LIMITATIONS_H

#include "kernel/context.h"

/* As BackendOps.limitations(). */
const char *const *kernel_limitations(KernelContext *c);

#endif
