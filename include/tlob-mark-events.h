/* SPDX-License-Identifier: MIT */
#ifndef TLOB_MARK_EVENTS_H
#define TLOB_MARK_EVENTS_H

/*
 * Marks as events of the program (user_events), for perf, ftrace and others: what tlob-mark.h does
 * with TLOB_MARK_USER_EVENTS defined. Not to be included by programs themselves.
 *
 * The kernel sets the highest bit of a mark's object while somebody asks for the event, and counts
 * listeners at its probes in the lowest 16: neither touches the other's. Children that are forked
 * stay registered. What does not work out, is left: then there are no such events.
 *
 * The kernel keeps what is registered with the thread that did it, and those that it makes later.
 * So only a process that has no other threads yet may register: whoever unloads a library can take
 * back what it has registered then.
 *
 * The functions and variables here are weak and hidden, as in tlob-mark-join.h, and system calls
 * are made as there.
 */

#pragma GCC system_header

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#if !defined(O_CLOEXEC) || !defined(F_DUPFD_CLOEXEC)
#error "TLOB_MARK_USER_EVENTS needs more than ISO C: use -std=gnu11, or define _DEFAULT_SOURCE"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TLOB_EVENT_FILE_   "/sys/kernel/tracing/user_events_data"
#define TLOB_EVENT_NAME_   "user_events" /* of a descriptor of it that systemd hands over */
#define TLOB_EVENT_FIELDS_ "tlob_window __rel_loc char[] mark; u64 key; u8 phase"
#define TLOB_EVENT_FD_MIN_ 64
#define TLOB_EVENT_BIT_    63
#define TLOB_TRACEFS_      0x74726163
#define TLOB_PHASE_BEGIN_  0
#define TLOB_PHASE_END_    1

/* linux/user_events.h, which is missing where the kernel's headers are older than 6.4. */
struct tlob_user_reg {
        unsigned int size;
        unsigned char enable_bit;
        unsigned char enable_size;
        unsigned short flags;
        unsigned long long enable_addr;
        unsigned long long name_args;
        unsigned int write_index;
} __attribute__((packed));

struct tlob_user_unreg {
        unsigned int size;
        unsigned char disable_bit;
        unsigned char reserved;
        unsigned short reserved2;
        unsigned long long disable_addr;
} __attribute__((packed));

#define TLOB_USER_REG_   _IOWR('*', 0, struct tlob_user_reg *)
#define TLOB_USER_UNREG_ _IOW('*', 2, struct tlob_user_unreg *)

/* What is written: as TLOB_EVENT_FIELDS_ says, and then the name of the mark. */
struct tlob_event {
        unsigned int index;
        unsigned int mark; /* how long the name is, and where it is from the end of this on */
        unsigned long long key;
        unsigned char phase; /* TLOB_PHASE_BEGIN_ or TLOB_PHASE_END_ */
} __attribute__((packed));

/* Of the program or library. */
struct tlob_events {
        int fd_plus_one; /* 0: there is none */
        unsigned int index;
        unsigned int n_marks; /* that are registered */
        dev_t device;         /* of the file: the program may have closed it, and opened another */
        ino_t inode;
};

TLOB_INLINE_ int tlob_event_is_asked_for_(const struct tlob_mark *mark) {
        return *(const volatile unsigned short *) &mark->reserved[2] & 0x8000;
}

TLOB_SHARED_ struct tlob_events tlob_events_v1 = { 0, 0, 0, 0, 0 };

static inline int tlob_events_fd_is_ours_(const struct tlob_events *events) {
        struct stat st;

        return events->fd_plus_one && fstat(events->fd_plus_one - 1, &st) == 0 &&
               st.st_dev == events->device && st.st_ino == events->inode;
}

/* What systemd hands over (OpenFile=FILE:user_events); -1: nothing of that name. */
static inline int tlob_events_find_fd_(void) {
        const char *pid = getenv("LISTEN_PID"), *names = getenv("LISTEN_FDNAMES");
        size_t n = strlen(TLOB_EVENT_NAME_);
        int fd = 3;

        if (!pid || !names || getauxval(AT_SECURE) || strtoul(pid, NULL, 10) != (unsigned) getpid())
                return -1;
        while (strncmp(names, TLOB_EVENT_NAME_, n) != 0 || (names[n] && names[n] != ':')) {
                names = strchr(names, ':');
                if (!names)
                        return -1;
                names++;
                fd++;
        }
        return fd;
}

/* A descriptor of our own, which is none of the low numbers; -1: none can be had. */
static inline int tlob_events_open_(void) {
        int given = tlob_events_find_fd_(), low = given, fd;
        struct statfs fs;

        if (given < 0)
                low = open(TLOB_EVENT_FILE_, O_RDWR | O_CLOEXEC);
        if (low < 0)
                return -1;
        fd = fcntl(low, F_DUPFD_CLOEXEC, TLOB_EVENT_FD_MIN_);
        if (given < 0)
                close(low);
        if (fd >= 0 && (fstatfs(fd, &fs) < 0 || fs.f_type != TLOB_TRACEFS_)) {
                close(fd);
                return -1;
        }
        return fd;
}

static inline void tlob_events_begin_(struct tlob_events *events) {
        int fd = tlob_events_open_();
        struct stat st;

        if (fd < 0)
                return;
        if (fstat(fd, &st) < 0) {
                close(fd);
                return;
        }
        events->device = st.st_dev;
        events->inode = st.st_ino;
        events->fd_plus_one = fd + 1;
}

/* Has the process no other threads? */
static inline int tlob_events_are_of_one_thread_(void) {
        struct stat st;

        /* A link for each thread, and two as all directories have. */
        return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

/* As the program or library is loaded; several files may have the mark. */
TLOB_SHARED_ void tlob_event_register_v1(struct tlob_mark *mark) {
        struct tlob_user_reg reg;
        int error = errno;

        if (mark->reserved[1] || !tlob_events_are_of_one_thread_()) {
                errno = error;
                return;
        }
        if (!tlob_events_v1.fd_plus_one)
                tlob_events_begin_(&tlob_events_v1);
        memset(&reg, 0, sizeof(reg));
        reg.size = sizeof(reg);
        reg.enable_bit = TLOB_EVENT_BIT_;
        reg.enable_size = sizeof(*mark);
        reg.enable_addr = (unsigned long) mark;
        reg.name_args = (unsigned long) TLOB_EVENT_FIELDS_;
        if (tlob_events_fd_is_ours_(&tlob_events_v1) &&
            ioctl(tlob_events_v1.fd_plus_one - 1, TLOB_USER_REG_, &reg) == 0) {
                tlob_events_v1.index = reg.write_index;
                tlob_events_v1.n_marks++;
                mark->reserved[1] = 1;
        }
        errno = error;
}

/*
 * As it is unloaded: the kernel must not write where something else may be soon. Any descriptor of
 * the file will do. Ours stays where there are other threads, as in exit(): one may be about to
 * write to it, which must not become another file meanwhile.
 */
TLOB_SHARED_ void tlob_event_unregister_v1(struct tlob_mark *mark) {
        struct tlob_user_unreg unreg;
        int error = errno, is_ours, fd;

        if (!mark->reserved[1])
                return;
        is_ours = tlob_events_fd_is_ours_(&tlob_events_v1);
        fd = is_ours ? tlob_events_v1.fd_plus_one - 1 : tlob_events_open_();
        memset(&unreg, 0, sizeof(unreg));
        unreg.size = sizeof(unreg);
        unreg.disable_bit = TLOB_EVENT_BIT_;
        unreg.disable_addr = (unsigned long) mark;
        if (fd >= 0)
                (void) ioctl(fd, TLOB_USER_UNREG_, &unreg);
        mark->reserved[1] = 0;
        if (--tlob_events_v1.n_marks == 0)
                tlob_events_v1.fd_plus_one = 0;
        if (fd >= 0 &&
            (!is_ours || (!tlob_events_v1.fd_plus_one && tlob_events_are_of_one_thread_())))
                close(fd);
        errno = error;
}

TLOB_SHARED_ void tlob_event_write_v1(const char *name, unsigned int size, unsigned char phase,
                                      unsigned long long key) {
        struct tlob_event event;
        struct iovec parts[2];
        int error = errno;

        if (tlob_events_fd_is_ours_(&tlob_events_v1)) {
                event.index = tlob_events_v1.index;
                event.mark = size << 16 | (sizeof(event.key) + sizeof(event.phase));
                event.key = key;
                event.phase = phase;
                parts[0].iov_base = &event;
                parts[0].iov_len = sizeof(event);
                parts[1].iov_base = (void *) name;
                parts[1].iov_len = size;
                (void) syscall(SYS_writev, tlob_events_v1.fd_plus_one - 1, parts, 2);
        }
        errno = error;
}

#ifdef __cplusplus
}
#endif

#endif
