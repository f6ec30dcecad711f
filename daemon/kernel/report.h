/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef KERNEL_REPORT_H
#define KERNEL_REPORT_H

#include "kernel/event.h"

/* As a KernelEventHandler, during dispatch(): userdata is the KernelContext. */
void kernel_on_violation(const KernelEvent *event, void *userdata);

#endif
