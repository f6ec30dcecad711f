/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a file can gain that takes over who reads it: to read any other file, and to tell the daemon
 * lies about what is in it. It comes to no other process, socket or program, and writes nothing.
 *
 * A call that is not in the list fails, and does not end the reader: C libraries come to need
 * others, and do without them where they are not there.
 */

#include "file/confine.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sanitizer.h"

#define MEMORY_MAX   ((rlim_t) 768 << 20)
#define MEMORY_SMALL (128 << 10) /* what is larger is given back at once */

static void limit(int resource, rlim_t max) {
        (void) setrlimit(resource, &(struct rlimit) { .rlim_cur = max, .rlim_max = max });
}

static void limit_memory(void) {
        _cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        if (fd >= 0)
                (void) !write(fd, "1000", 4);
#ifndef SANITIZED
        limit(RLIMIT_AS, MEMORY_MAX);
#endif
        (void) mallopt(M_MMAP_THRESHOLD, MEMORY_SMALL);
        limit(RLIMIT_FSIZE, 0);
        /* Of 1, no handler of core dumps is started, either. */
        limit(RLIMIT_CORE, 1);
}

static void drop_capabilities(void) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2] = {};

        (void) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (syscall(SYS_capget, &header, data) < 0)
                return;
        /* To read any file, and to look through /proc/PID/root. */
        data[0].permitted &= 1U << CAP_DAC_READ_SEARCH | 1U << CAP_SYS_PTRACE;
        data[1].permitted = 0;
        for (unsigned i = 0; i < ELEMENTSOF(data); i++) {
                data[i].effective = data[i].permitted;
                data[i].inheritable = 0;
        }
        (void) syscall(SYS_capset, &header, data);
}

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv)
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#endif

/* Sanitizers make calls of their own. */
#if defined(SANITIZED) || !defined(ARCHITECTURE)
static void limit_calls(void) {
}
#else
/* clang-format off */
static const uint16_t allowed_calls[] = {
        /* files; openat() and fcntl() are looked at, below */
        SYS_close, SYS_dup, SYS_faccessat, SYS_faccessat2, SYS_fstat, SYS_fstatfs,
        SYS_getdents64, SYS_lseek, SYS_newfstatat, SYS_pread64, SYS_read, SYS_readlinkat, SYS_readv,
        SYS_statfs, SYS_statx,
#ifdef SYS_access
        SYS_access, SYS_lstat, SYS_poll, SYS_readlink, SYS_stat,
#endif
        /* memory */
        SYS_brk, SYS_madvise, SYS_mmap, SYS_mprotect, SYS_mremap, SYS_munmap,
        /* questions and answers, over the socket that is there */
        SYS_ppoll, SYS_recvmsg, SYS_sendmsg,
        /* itself */
        SYS_clock_gettime, SYS_clock_nanosleep, SYS_exit, SYS_exit_group, SYS_futex, SYS_getegid,
        SYS_geteuid, SYS_getgid, SYS_getpid, SYS_getrandom, SYS_gettid, SYS_gettimeofday,
        SYS_getuid, SYS_restart_syscall, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
        SYS_sched_yield, SYS_setitimer, SYS_sysinfo, SYS_uname,
};
/* clang-format on */

/* The lower half of an argument. */
#define ARGUMENT(n)                                                                                \
        (offsetof(struct seccomp_data, args[n]) + (__BYTE_ORDER == __BIG_ENDIAN ? 4 : 0))

/* Open flags that are no reading. */
#define WRITES (O_ACCMODE | O_CREAT | O_TRUNC)

#define LOAD(where)     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, where)
#define RETURN(what)    BPF_STMT(BPF_RET | BPF_K, what)
#define UNLESS(k, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, skip)
#define IF(k, skip)     BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, skip, 0)

/*
 * Not by libseccomp: where it gets no memory, it may leave out some of the calls without a word.
 * Another architecture's calls end the process: their numbers mean something else.
 */
static void limit_calls(void) {
        static const struct sock_filter begin[] = {
                LOAD(offsetof(struct seccomp_data, arch)),
                IF(ARCHITECTURE, 1),
                RETURN(SECCOMP_RET_KILL_PROCESS),
                LOAD(offsetof(struct seccomp_data, nr)),
                UNLESS(SYS_openat, 4),
                LOAD(ARGUMENT(2)),
                BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, WRITES, 1, 0),
                RETURN(SECCOMP_RET_ALLOW),
                RETURN(SECCOMP_RET_ERRNO | EPERM),
                /* Others have the kernel signal whom one likes, or lock files. */
                UNLESS(SYS_fcntl, 8),
                LOAD(ARGUMENT(1)),
                IF(F_DUPFD, 5),
                IF(F_DUPFD_CLOEXEC, 4),
                IF(F_GETFD, 3),
                IF(F_SETFD, 2),
                IF(F_GETFL, 1),
                RETURN(SECCOMP_RET_ERRNO | EPERM),
                RETURN(SECCOMP_RET_ALLOW),
        };
        struct sock_filter code[ELEMENTSOF(begin) + 2 * ELEMENTSOF(allowed_calls) + 1];
        struct sock_fprog program = { .filter = code };

        memcpy(code, begin, sizeof(begin));
        program.len = ELEMENTSOF(begin);
        for (size_t i = 0; i < ELEMENTSOF(allowed_calls); i++) {
                code[program.len++] = (struct sock_filter) UNLESS(allowed_calls[i], 1);
                code[program.len++] = (struct sock_filter) RETURN(SECCOMP_RET_ALLOW);
        }
        code[program.len++] = (struct sock_filter) RETURN(SECCOMP_RET_ERRNO | EPERM);
        (void) prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
#endif

/* It could put off its own timers, and nobody else would end it. */
static void end_with(pid_t parent) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (getppid() != parent)
                _exit(EXIT_SUCCESS);
}

void confine_to_reading(pid_t parent) {
        limit_memory();
        drop_capabilities();
        end_with(parent);
        limit_calls();
}
