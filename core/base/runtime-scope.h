/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_RUNTIME_SCOPE_H
#define BASE_RUNTIME_SCOPE_H

/* Whose services a tlobd measures, in systemd's word. */
typedef enum RuntimeScope {
        RUNTIME_SCOPE_SYSTEM, /* those of the machine */
        RUNTIME_SCOPE_USER,   /* those of the user who runs it, under systemd's user manager */
} RuntimeScope;

#endif
