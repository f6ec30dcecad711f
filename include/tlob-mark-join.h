/* SPDX-License-Identifier: MIT */
#ifndef TLOB_MARK_JOIN_H
#define TLOB_MARK_JOIN_H

/*
 * Windows without traps: what tlob-mark.h does with TLOB_MARK_JOIN defined. Not to be included by
 * programs themselves.
 *
 * The functions and variables here are weak and hidden: one of each in a program or library,
 * whichever file it comes from. They may be called at any moment, also by signal handlers that
 * interrupt them: a window is taken before it is opened, opened before its start is read, and
 * closed before it is counted. The kernel looks at a lane only in its own thread's place, as a
 * signal handler would, so the order of the compiler is all that is needed.
 *
 * A lane goes from one thread to another by way of the kernel, which thread sanitizers do not see:
 * so what threads share is read and written atomically, which costs nothing here.
 *
 * System calls are made without the functions of libc, which would be cancellation points.
 * Variables of threads are where no memory has to be made for them.
 */

#pragma GCC system_header

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tlob-mark-page.h"

#if !defined(CLOCK_MONOTONIC) || !defined(MAP_ANONYMOUS) || !defined(F_DUPFD_CLOEXEC)
#error "TLOB_MARK_JOIN needs more than ISO C: use -std=gnu11, or define _DEFAULT_SOURCE"
#endif

/* Where tlobd listens: an expression, a string. */
#ifndef TLOB_MARK_SOCKET
#define TLOB_MARK_SOCKET "/run/tlob/marks"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Of the process, in memory that is empty after fork(): the child is one of its own, which has
 * joined nothing.
 */
struct tlob_process {
        struct tlob_lane *lanes;  /* NULL: none yet */
        unsigned long long epoch; /* when it got them; 0: not yet */
        unsigned long long next_ns;
        unsigned long long pause_ns; /* between two attempts */
        unsigned int busy;           /* a thread is at it */
        int pid;                     /* whose attempts these are */
        int fd_plus_one;             /* of the socket, while the answer is awaited */
        dev_t device;                /* the socket, which the program may have closed since */
        ino_t inode;
};

/* Of a thread. */
struct tlob_thread {
        struct tlob_lane *lane;
        unsigned long long epoch; /* the process' when it took the lane */
        unsigned int number;      /* of the lane */
        unsigned int unanswered;  /* windows since the kernel has last allowed one without a trap */
};

TLOB_SHARED_ struct tlob_process *tlob_process_v1 = NULL;
TLOB_SHARED_ unsigned int tlob_n_marks_v1 = 0;
TLOB_SHARED_ __attribute__((
        tls_model("initial-exec"))) __thread struct tlob_thread tlob_thread_v1 = { NULL, 0, 0, 0 };

#define TLOB_NOW_ORDERED_ __asm__ __volatile__("" ::: "memory")
#define TLOB_SET_(x, to)                                                                           \
        do {                                                                                       \
                TLOB_NOW_ORDERED_;                                                                 \
                __atomic_store_n(&(x), to, __ATOMIC_RELAXED);                                      \
                TLOB_NOW_ORDERED_;                                                                 \
        } while (0)
#define TLOB_GET_(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)

#define TLOB_TRAP_              1UL /* a word that says no more than that */
#define TLOB_JOIN_PAUSE_NS_     1000000000ULL
#define TLOB_JOIN_PAUSE_MAX_NS_ 64000000000ULL
#define TLOB_JOIN_LOOK_NS_      2000000ULL
#define TLOB_JOIN_FD_MIN_       64
#define TLOB_UNANSWERED_MAX_    64

static inline unsigned long long tlob_now_(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (unsigned long long) now.tv_sec * 1000000000ULL + (unsigned long long) now.tv_nsec;
}

/* The memory of the process, which its children find empty; NULL: there is none to be had. */
TLOB_SHARED_ struct tlob_process *tlob_process_make_v1(void) {
        struct tlob_process *made, *other = NULL;

        made = (struct tlob_process *) mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (made == MAP_FAILED)
                return NULL;
        if (madvise(made, sizeof(*made), MADV_WIPEONFORK) < 0 ||
            !__atomic_compare_exchange_n(&tlob_process_v1, &other, made, 0, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE)) {
                munmap(made, sizeof(*made));
                return other;
        }
        return made;
}

/* One message with one descriptor, or nothing. */
static inline int tlob_receive_(int fd) {
        union {
                struct cmsghdr header;
                char space[CMSG_LEN(sizeof(int))]; /* with more, there may be two in it */
        } control;
        struct msghdr message;
        struct iovec part;
        char byte;
        ssize_t n;
        int got;

        memset(&message, 0, sizeof(message));
        memset(&control, 0, sizeof(control));
        part.iov_base = &byte;
        part.iov_len = 1;
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = &control;
        message.msg_controllen = CMSG_LEN(sizeof(int));
        n = syscall(SYS_recvmsg, fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? -EAGAIN : -errno;
        if (message.msg_controllen < CMSG_LEN(sizeof(int)) ||
            control.header.cmsg_level != SOL_SOCKET || control.header.cmsg_type != SCM_RIGHTS)
                return -EPERM;
        memcpy(&got, CMSG_DATA(&control.header), sizeof(got));
        return got;
}

static inline void tlob_close_(int fd) {
        syscall(SYS_close, fd);
}

/* Asks tlobd. Returns the socket, which is none of the low numbers, or a negative errno. */
static inline int tlob_ask_(void) {
        const char *path = TLOB_MARK_SOCKET;
        struct sockaddr_un address;
        int low, fd, r;

        memset(&address, 0, sizeof(address));
        address.sun_family = AF_UNIX;
        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        strcpy(address.sun_path, path);
        low = (int) syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (low < 0)
                return -errno;
        fd = (int) syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, TLOB_JOIN_FD_MIN_);
        r = fd < 0 ? -errno : 0;
        tlob_close_(low);
        if (r == 0 && syscall(SYS_connect, fd, &address, sizeof(address)) < 0) {
                r = -errno;
                tlob_close_(fd);
        }
        return r < 0 ? r : fd;
}

/*
 * The lanes take the place of those that the process had: threads look into them at any time. They
 * stay mapped in children, as one may be forked by a signal handler in the middle of all this.
 */
static inline int tlob_map_(struct tlob_process *p, int fd, unsigned long long now) {
        size_t size = TLOB_LANES * sizeof(struct tlob_lane);
        void *lanes;
        int r;

        lanes = mmap(p->lanes, size, PROT_READ | PROT_WRITE,
                     MAP_SHARED | (p->lanes ? MAP_FIXED : 0), fd, 0);
        if (lanes == MAP_FAILED) {
                r = -errno;
                /* The former ones may be gone already, and a thread be on its way there. */
                __atomic_store_n(&p->epoch, 0, __ATOMIC_RELEASE);
                if (p->lanes)
                        (void) mmap(p->lanes, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
                return r;
        }
        TLOB_SET_(p->lanes, (struct tlob_lane *) lanes);
        __atomic_store_n(&p->epoch, now, __ATOMIC_RELEASE);
        return 0;
}

static inline void tlob_join_failed_(struct tlob_process *p, unsigned long long now) {
        p->pause_ns = p->pause_ns ? p->pause_ns * 2 : TLOB_JOIN_PAUSE_NS_;
        if (p->pause_ns > TLOB_JOIN_PAUSE_MAX_NS_)
                p->pause_ns = TLOB_JOIN_PAUSE_MAX_NS_;
        TLOB_SET_(p->next_ns, now + p->pause_ns);
}

/* Is the descriptor still that of the socket? */
static inline int tlob_socket_is_ours_(const struct tlob_process *p) {
        struct stat st;

        return fstat(p->fd_plus_one - 1, &st) == 0 && st.st_dev == p->device &&
               st.st_ino == p->inode;
}

static inline void tlob_join_look_(struct tlob_process *p, unsigned long long now) {
        int got = -EBADF, r;

        if (tlob_socket_is_ours_(p)) {
                got = tlob_receive_(p->fd_plus_one - 1);
                if (got == -EAGAIN) {
                        TLOB_SET_(p->next_ns, now + TLOB_JOIN_LOOK_NS_);
                        return;
                }
                tlob_close_(p->fd_plus_one - 1);
        }
        p->fd_plus_one = 0;
        r = got < 0 ? got : tlob_map_(p, got, now);
        if (got >= 0)
                tlob_close_(got);
        if (r < 0)
                tlob_join_failed_(p, now);
        else {
                p->pause_ns = 0;
                TLOB_SET_(p->next_ns, now + TLOB_JOIN_PAUSE_NS_);
        }
}

static inline void tlob_join_ask_(struct tlob_process *p, unsigned long long now) {
        struct stat st;
        int fd = tlob_ask_();

        if (fd >= 0 && fstat(fd, &st) < 0) {
                tlob_close_(fd);
                fd = -EBADF;
        }
        if (fd < 0) {
                tlob_join_failed_(p, now);
                return;
        }
        p->device = st.st_dev;
        p->inode = st.st_ino;
        p->fd_plus_one = fd + 1;
        TLOB_SET_(p->next_ns, now + TLOB_JOIN_LOOK_NS_);
}

/*
 * May this task go on with what was begun there? A child that shares our memory, as after vfork(),
 * may not; what such a child has begun, in descriptors of its own, is forgotten.
 */
static inline int tlob_join_is_ours_(struct tlob_process *p) {
        int pid = (int) syscall(SYS_getpid);

        if (p->pid == pid)
                return 1;
        if (p->pid && p->pid == (int) syscall(SYS_getppid))
                return 0;
        p->pid = pid;
        p->fd_plus_one = 0;
        return 1;
}

/* One step on the way to lanes; none of them waits. */
TLOB_SHARED_ void tlob_join_v1(unsigned long long now) {
        struct tlob_process *p = __atomic_load_n(&tlob_process_v1, __ATOMIC_ACQUIRE);
        int error = errno;

        if (!p)
                p = tlob_process_make_v1();
        if (p && now >= TLOB_GET_(p->next_ns) &&
            !__atomic_exchange_n(&p->busy, 1, __ATOMIC_ACQUIRE)) {
                if (now < p->next_ns || !tlob_join_is_ours_(p))
                        ;
                else if (p->fd_plus_one)
                        tlob_join_look_(p, now);
                else
                        tlob_join_ask_(p, now);
                __atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
        }
        errno = error;
}

/* The lane of the calling thread, with which it may be without one; NULL: it has none. */
static inline struct tlob_lane *tlob_lane_of_thread_(void) {
        const struct tlob_process *p = __atomic_load_n(&tlob_process_v1, __ATOMIC_ACQUIRE);
        unsigned long long epoch = tlob_thread_v1.epoch;

        return p && epoch && __atomic_load_n(&p->epoch, __ATOMIC_ACQUIRE) == epoch
                       ? tlob_thread_v1.lane
                       : NULL;
}

static inline struct tlob_lane *tlob_lane_claim_(void) {
        struct tlob_process *p = __atomic_load_n(&tlob_process_v1, __ATOMIC_ACQUIRE);
        unsigned long long epoch = p ? __atomic_load_n(&p->epoch, __ATOMIC_ACQUIRE) : 0;
        struct tlob_lane *lane = epoch ? TLOB_GET_(p->lanes) : NULL;
        unsigned int i, unclaimed;

        for (i = 0; lane && i < TLOB_LANES; i++, lane++) {
                unclaimed = TLOB_LANE_FREE;
                if (TLOB_GET_(lane->holder) == TLOB_LANE_FREE &&
                    __atomic_compare_exchange_n(&lane->holder, &unclaimed, TLOB_LANE_CLAIMED, 0,
                                                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
                        tlob_thread_v1.lane = lane;
                        tlob_thread_v1.number = i;
                        tlob_thread_v1.unanswered = 0;
                        TLOB_SET_(tlob_thread_v1.epoch, epoch);
                        return lane;
                }
        }
        return NULL;
}

/* The number of a mark among those of the program or library, from 1 on; too great: no room. */
static inline unsigned int tlob_mark_number_(struct tlob_mark *mark) {
        unsigned short number = TLOB_GET_(mark->reserved[0]), made;

        if (number)
                return number;
        made = (unsigned short) __atomic_add_fetch(&tlob_n_marks_v1, 1, __ATOMIC_RELAXED);
        if (made > TLOB_LANE_MARKS)
                made = TLOB_LANE_MARKS + 1;
        return __atomic_compare_exchange_n(&mark->reserved[0], &number, made, 0, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED)
                       ? made
                       : number;
}

static inline struct tlob_lane_mark *tlob_lane_mark_(struct tlob_lane *lane,
                                                     struct tlob_mark *mark) {
        unsigned int number = TLOB_GET_(mark->reserved[0]);

        return lane && number && number <= TLOB_LANE_MARKS ? &lane->marks[number - 1] : NULL;
}

static inline unsigned long tlob_lane_word_(const struct tlob_lane *lane, struct tlob_mark *mark) {
        return TLOB_LANE_WORD(TLOB_GET_(lane->tag) & TLOB_LANE_TAG_MAX, tlob_thread_v1.number,
                              tlob_mark_number_(mark) - 1);
}

/* A window that begins by a trap: in which the kernel may allow the next ones without. */
TLOB_SHARED_ unsigned long tlob_begin_slowly_v1(struct tlob_mark *mark, unsigned long long now) {
        struct tlob_lane *lane;
        struct tlob_lane_mark *m;

        /* No lane has room for it: to the kernel, the window is one as any other. */
        if (tlob_mark_number_(mark) > TLOB_LANE_MARKS)
                return TLOB_TRAP_;
        lane = tlob_lane_of_thread_();
        if (!lane)
                lane = tlob_lane_claim_();
        /* Not at once: only who has had a window is let in. */
        if (tlob_thread_v1.unanswered++ >= (lane ? TLOB_UNANSWERED_MAX_ : 1))
                tlob_join_v1(now);
        m = tlob_lane_mark_(lane, mark);
        if (!m)
                return TLOB_TRAP_;
        if (TLOB_GET_(lane->holder) != TLOB_LANE_AWAY) {
                TLOB_SET_(m->start_ns, now);
                TLOB_SET_(m->taken, 2);
        }
        return tlob_lane_word_(lane, mark);
}

/* In one instruction: in a trap of a signal handler, the kernel takes what is there. */
static inline void tlob_add_(unsigned long long *p, unsigned long long n) {
        __asm__ __volatile__("addq %[n], %[p]" : [p] "+m"(*p) : [n] "er"(n) : "memory", "cc");
}

static inline void tlob_count_(unsigned int *p) {
        __asm__ __volatile__("incl %[p]" : [p] "+m"(*p) : : "memory", "cc");
}

/*
 * A begin in a window. One that nobody else knows goes on; of others the kernel has to be told.
 * What a jump out of here has left is taken for one of the former for a second.
 */
static inline unsigned long tlob_begin_in_another_(struct tlob_lane *lane, struct tlob_lane_mark *m,
                                                   struct tlob_mark *mark) {
        unsigned long long now = tlob_now_();

        if (TLOB_GET_(m->taken) == 1 && !TLOB_GET_(m->adopted) && now < TLOB_GET_(m->until_ns)) {
                tlob_count_(&m->nested);
                return 0;
        }
        if (TLOB_GET_(m->taken) == 1 && !TLOB_GET_(m->open)) {
                TLOB_SET_(m->taken, 0);
                return tlob_begin_slowly_v1(mark, now);
        }
        return tlob_lane_word_(lane, mark);
}

/* Returns 0 if the window has begun, else what is to be told to the kernel. */
TLOB_SHARED_ unsigned long tlob_lane_begin_v1(struct tlob_mark *mark) {
        struct tlob_lane *lane = tlob_lane_of_thread_();
        struct tlob_lane_mark *m = tlob_lane_mark_(lane, mark);
        unsigned long long now;

        if (!m)
                return tlob_begin_slowly_v1(mark, tlob_now_());
        if (TLOB_GET_(m->taken))
                return tlob_begin_in_another_(lane, m, mark);
        TLOB_SET_(m->taken, 1);
        TLOB_SET_(m->start_ns, 0);
        TLOB_SET_(m->open, 1);
        now = tlob_now_();
        TLOB_SET_(m->start_ns, now);
        if (now < TLOB_GET_(m->until_ns) && TLOB_GET_(m->budget_ns)) {
                tlob_thread_v1.unanswered = 0;
                return 0;
        }
        TLOB_SET_(m->open, 0);
        /* It has left its CPU meanwhile, and so begun. */
        if (TLOB_GET_(m->adopted) == 1) {
                TLOB_SET_(m->open, 1);
                return 0;
        }
        TLOB_SET_(m->adopted, 0);
        TLOB_SET_(m->taken, 0);
        return tlob_begin_slowly_v1(mark, now);
}

/* After a begin has been told: a window that the kernel has not taken over, it does not know. */
TLOB_SHARED_ void tlob_lane_begun_v1(struct tlob_mark *mark) {
        struct tlob_lane_mark *m = tlob_lane_mark_(tlob_lane_of_thread_(), mark);

        if (m && TLOB_GET_(m->taken) == 1 && TLOB_GET_(m->open) && !TLOB_GET_(m->adopted))
                TLOB_SET_(m->adopted, 1);
}

static inline unsigned int tlob_bucket_(unsigned long long ns) {
        unsigned int log2;

        if (ns < 16)
                return (unsigned int) ns;
        log2 = 63U - (unsigned int) __builtin_clzll(ns);
        return ((log2 - 3) << 4) + ((unsigned int) (ns >> (log2 - 4)) & 15);
}

/* Returns whether it was open. In one instruction, which need not be atomic for other CPUs. */
static inline int tlob_close_window_(struct tlob_lane_mark *m) {
        unsigned int expected = 1;
        unsigned char was_open;

        __asm__ __volatile__("cmpxchgl %[closed], %[open]\n\tsete %[was_open]"
                             : [open] "+m"(m->open), "+a"(expected), [was_open] "=q"(was_open)
                             : [closed] "r"(0U)
                             : "memory", "cc");
        return was_open;
}

/* Returns 0 if the window has ended, else what is to be told to the kernel. */
TLOB_SHARED_ unsigned long tlob_lane_end_v1(struct tlob_mark *mark) {
        struct tlob_lane *lane = tlob_lane_of_thread_();
        struct tlob_lane_mark *m = tlob_lane_mark_(lane, mark);
        unsigned long long elapsed;

        if (!m || TLOB_GET_(m->taken) != 1 || TLOB_GET_(m->adopted))
                return TLOB_TRAP_;
        /* In a signal handler: its window was one in another, which has not begun yet. */
        if (!TLOB_GET_(m->open))
                return 0;
        elapsed = tlob_now_() - TLOB_GET_(m->start_ns);
        if (elapsed > TLOB_GET_(m->budget_ns) && TLOB_GET_(m->budget_ns))
                return TLOB_TRAP_;
        if (elapsed >> TLOB_LANE_BITS)
                return TLOB_TRAP_;
        /* A signal handler may have ended it since. */
        if (!tlob_close_window_(m) || TLOB_GET_(m->adopted))
                return TLOB_TRAP_;
        if (TLOB_GET_(m->budget_ns)) {
                TLOB_SET_(m->is_used, 1);
                tlob_add_(&m->total_ns, elapsed);
                if (elapsed > TLOB_GET_(m->longest_ns))
                        TLOB_SET_(m->longest_ns, elapsed);
                tlob_add_(&lane->lengths[m - lane->marks][tlob_bucket_(elapsed)], 1);
        }
        TLOB_SET_(m->taken, 0);
        return 0;
}

/* After the end of a window has been told. */
TLOB_SHARED_ void tlob_lane_ended_v1(struct tlob_mark *mark) {
        struct tlob_lane *lane = tlob_lane_of_thread_();
        struct tlob_lane_mark *m = tlob_lane_mark_(lane, mark);

        if (!m)
                return;
        TLOB_SET_(m->open, 0);
        TLOB_SET_(m->adopted, 0);
        TLOB_SET_(m->taken, 0);
}

#ifdef __cplusplus
}
#endif

#endif
