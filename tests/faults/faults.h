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
        FAULT_DISCONNECT, /* the other end of a socket is gone */

        /* These last: whatever comes after it fails, too. */
        FAULT_NO_MEMORY,
        FAULT_NO_DESCRIPTORS, /* calls that fail with EMFILE */
        FAULT_NO_SPACE,       /* calls that fail with ENOSPC */
        FAULT_N_KINDS,
} FaultKind;

/* Shared by all the processes. */
typedef struct Fault {
        bool armed; /* is anything counted? */
        FaultKind kind;
        uint64_t n;  /* counted since it was set */
        uint64_t at; /* which one fails, or from which one on; the first is 1, 0: none */

        /* Where it failed; empty if it has not yet. */
        char call[24];
        int n_frames;
        void *frames[FAULT_FRAMES_MAX];
        uint64_t place; /* as of fault_place() */

        int crash;         /* the first signal that ended one of the processes */
        uint64_t ahead_ns; /* of the time that the clocks tell */
        bool has_no_multi; /* the kernel is one before 6.6, which has no uprobe_multi links */
} Fault;

/* The one that there is. */
Fault *fault_get(void);

/* Counts from 1 again; nothing is armed, and the clocks are right. */
void fault_set(FaultKind kind, uint64_t at);

/* Another one in the life of the same daemon: of the same kind, and for it the time goes on. */
void fault_set_next(uint64_t at);

bool fault_has_hit(void);

/* Whether the calls after it fail, too. */
bool fault_lasts(void);

/* From now on, the clocks that tell no date are ahead by that more. */
void fault_pass_time(uint64_t usec);

/* Notes where those come from that are counted from now on, which takes time. */
void fault_note_places(bool note);

/* What has called the caller of this is no part of a place; frame: __builtin_frame_address(0). */
void fault_begin(const void *frame);

/* Where the n-th one came from: the same number for the same stack; 0: it was not noted. */
uint64_t fault_place(uint64_t n);

/* Is called with each command of bpf() that gave a descriptor, and with that. */
void fault_on_bpf(void (*handler)(long command, int fd));

/* Until it is called again with false, this process's calls are neither counted nor failed. */
void fault_spare_me(bool spare);

const char *fault_kind_name(FaultKind kind);

#endif
