/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a file can gain that takes over who reads it: to read any other file, and to tell the daemon
 * lies about what is in it. It comes to no other process, socket or program, and writes nothing.
 *
 * A call that is not in the list fails, and does not end the reader: C libraries come to need
 * others, and do without them where they are not there.
 */

#include "file/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sanitizer.h"

#define MEMORY_MAX   ((rlim_t) 768 << 20)
#define MEMORY_SMALL (128 << 10) /* what is larger is given back at once */

static void limit(int resource, rlim_t max) {
        (void) setrlimit(resource, &(struct rlimit){ .rlim_cur = max, .rlim_max = max });
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

/* Sanitizers make calls of their own. */
#ifdef SANITIZED
static void limit_calls(void) {
}
#else
/* Only to read. */
static int allow_open(scmp_filter_ctx filter) {
        const scmp_datum_t writes = O_ACCMODE | O_CREAT | O_TRUNC;

        return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
                                SCMP_A2(SCMP_CMP_MASKED_EQ, writes, O_RDONLY));
}

/* clang-format off */
static const int allowed_calls[] = {
        /* files */
        SCMP_SYS(access), SCMP_SYS(close), SCMP_SYS(dup), SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
        SCMP_SYS(fcntl), SCMP_SYS(fstat), SCMP_SYS(fstatfs), SCMP_SYS(getdents64), SCMP_SYS(lseek),
        SCMP_SYS(lstat), SCMP_SYS(newfstatat), SCMP_SYS(pread64), SCMP_SYS(read),
        SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(readv), SCMP_SYS(stat),
        SCMP_SYS(statfs), SCMP_SYS(statx),
        /* memory */
        SCMP_SYS(brk), SCMP_SYS(madvise), SCMP_SYS(mmap), SCMP_SYS(mprotect), SCMP_SYS(mremap),
        SCMP_SYS(munmap),
        /* questions and answers, over the socket that is there */
        SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg),
        /* itself */
        SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep), SCMP_SYS(exit), SCMP_SYS(exit_group),
        SCMP_SYS(futex), SCMP_SYS(getegid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getpid),
        SCMP_SYS(getrandom), SCMP_SYS(gettid), SCMP_SYS(gettimeofday), SCMP_SYS(getuid),
        SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
        SCMP_SYS(rt_sigreturn), SCMP_SYS(sched_yield), SCMP_SYS(setitimer), SCMP_SYS(sysinfo),
        SCMP_SYS(uname),
};
/* clang-format on */

/* Those that this architecture does not have are left out. */
static int allow_calls(scmp_filter_ctx filter) {
        for (size_t i = 0; i < ELEMENTSOF(allowed_calls); i++) {
                int r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed_calls[i], 0);

                if (r < 0 && r != -EDOM)
                        return r;
        }
        return 0;
}

/* Of another architecture's calls, each ends the process: their numbers mean something else. */
static void limit_calls(void) {
        scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));

        if (!filter)
                return;
        if (allow_calls(filter) >= 0 && allow_open(filter) >= 0)
                (void) seccomp_load(filter);
        seccomp_release(filter);
}
#endif

void confine_to_reading(void) {
        limit_memory();
        drop_capabilities();
        limit_calls();
}
