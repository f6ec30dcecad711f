/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef RESOLVED_MARK_H
#define RESOLVED_MARK_H

#include "binding/binding.h"

/* A binding on that mark of a file, resolved. It must be there. */
void mark_resolve(const char *path, const char *mark, Binding **ret);

#endif
