/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_FILES_H
#define MANAGER_FILES_H

#include "manager/internal.h"

/* Starts the processes that read files: what is known about files comes through the event loop. */
int manager_start_files(Manager *manager);

#endif
