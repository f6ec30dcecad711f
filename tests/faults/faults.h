/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Makes one allocation or one system call fail: in the program that this is linked into, in its
 * libraries, and in the processes that it forks, which count together.
 */

#define FAULT_FRAMES_MAX 24

typedef enum FaultKind {
        FAULT_MEMORY,    /* malloc() and the like return NULL */
        FAULT_CALL,      /* system calls fail, each with an error that the kernel can give for it */
        FAULT_INTERRUPT, /* those that wait fail with EINTR */
        FAULT_SHORT,     /* files are read and written in part */
        FAULT_N_KINDS,
} FaultKind;

/* Shared by all the processes. */
typedef struct Fault {
        bool armed; /* is anything counted? */
        FaultKind kind;
        uint64_t n;  /* counted since it was set */
        uint64_t at; /* which one fails; the first is 1, 0: none */

        /* Where it failed; empty if it has not yet. */
        char call[24];
        int n_frames;
        void *frames[FAULT_FRAMES_MAX];

        int crash; /* the first signal that ended one of the processes */
} Fault;

/* The one that there is. */
Fault *fault_get(void);

/* Counts from 1 again; nothing is armed. */
void fault_set(FaultKind kind, uint64_t at);

bool fault_has_hit(void);

/* Until it is called again with false, this process's calls are neither counted nor failed. */
void fault_spare_me(bool spare);

const char *fault_kind_name(FaultKind kind);

#endif
