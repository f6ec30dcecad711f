/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Functions of the C library, defined once more in the program: the dynamic linker prefers these,
 * also for the calls of libraries. What the C library does by itself is not seen, so functions that
 * open a file by themselves are here, too. Each has the error that the kernel may well give for it.
 *
 * close() is not among them: it always closes, whatever it returns.
 *
 * The names are given to the assembler only, since headers give some of them other types.
 */

#include "faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "base/sanitizer.h"

/* What stands behind malloc(). */
#ifdef SANITIZED
#define REAL(f) __interceptor_##f
#else
#define REAL(f) __libc_##f
#endif
void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *p, size_t size);

static Fault *fault;
static bool spared;

Fault *fault_get(void) {
        return fault;
}

void fault_set(FaultKind kind, uint64_t at) {
        *fault = (Fault){ .kind = kind, .at = at };
}

bool fault_has_hit(void) {
        return __atomic_load_n(&fault->call[0], __ATOMIC_ACQUIRE);
}

void fault_spare_me(bool spare) {
        spared = spare;
}

const char *fault_kind_name(FaultKind kind) {
        static const char *const names[] = {
                [FAULT_MEMORY] = "memory",
                [FAULT_CALL] = "call",
                [FAULT_INTERRUPT] = "interrupt",
                [FAULT_SHORT] = "short",
        };

        return names[kind];
}

/* Readers of files crash, and nobody asks why they have ended. */
static void on_crash(int signal) {
        int none = 0;

        (void) __atomic_compare_exchange_n(&fault->crash, &none, signal, false, __ATOMIC_RELAXED,
                                           __ATOMIC_RELAXED);
        (void) raise(signal);
}

__attribute__((constructor)) static void start(void) {
        static const int signals[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
        struct sigaction action = { .sa_handler = on_crash,
                                    .sa_flags = (int) (SA_RESETHAND | SA_NODEFER) };
        void *p;

        p = mmap(NULL, sizeof(*fault), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                abort();
        fault = p;
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
                (void) sigaction(signals[i], &action, NULL);
}

/* backtrace() would load a library at first. */
static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *userdata) {
        if (fault->n_frames == FAULT_FRAMES_MAX)
                return _URC_END_OF_STACK;
        fault->frames[fault->n_frames++] = (void *) _Unwind_GetIP(context);
        return _URC_NO_REASON;
}

static bool fails(FaultKind kind, const char *call) {
        if (!fault || !fault->armed || spared || fault->kind != kind ||
            __atomic_add_fetch(&fault->n, 1, __ATOMIC_RELAXED) != fault->at)
                return false;
        spared = true;
        (void) _Unwind_Backtrace(note_frame, NULL);
        spared = false;
        strncpy(fault->call + 1, call + 1, sizeof(fault->call) - 2);
        __atomic_store_n(&fault->call[0], call[0], __ATOMIC_RELEASE);
        return true;
}

static bool no_memory(const char *call) {
        if (!fails(FAULT_MEMORY, call))
                return false;
        errno = ENOMEM;
        return true;
}

#define NAMED(type, name, parameters)                                                              \
        type fault_##name parameters __asm__(#name);                                               \
        type fault_##name parameters

NAMED(void *, malloc, (size_t size)) {
        return no_memory("malloc") ? NULL : REAL(malloc)(size);
}

NAMED(void *, calloc, (size_t n, size_t size)) {
        return no_memory("calloc") ? NULL : REAL(calloc)(n, size);
}

NAMED(void *, realloc, (void *p, size_t size)) {
        return no_memory("realloc") ? NULL : REAL(realloc)(p, size);
}

NAMED(void *, reallocarray, (void *p, size_t n, size_t size)) {
        size_t product;

        if (__builtin_mul_overflow(n, size, &product)) {
                errno = ENOMEM;
                return NULL;
        }
        return no_memory("reallocarray") ? NULL : REAL(realloc)(p, product);
}

NAMED(char *, strndup, (const char *text, size_t max)) {
        size_t n = strnlen(text, max);
        char *copy = no_memory("strndup") ? NULL : REAL(malloc)(n + 1);

        if (!copy)
                return NULL;
        copy[n] = '\0';
        return memcpy(copy, text, n);
}

NAMED(char *, strdup, (const char *text)) {
        size_t n = strlen(text) + 1;
        char *copy = no_memory("strdup") ? NULL : REAL(malloc)(n);

        return copy ? memcpy(copy, text, n) : NULL;
}

/*
 * The error with which a call fails now, 0 if it does not. Those that open files and the like are
 * interrupted by nothing but signal handlers, which tlobd does not have.
 */
static int call_fails(const char *call, int error, bool waits) {
        if (fails(FAULT_CALL, call))
                return error;
        return waits && fails(FAULT_INTERRUPT, call) ? EINTR : 0;
}

#define FIND_REAL(type, name, parameters)                                                          \
        static type(*real) parameters;                                                             \
        if (!real)                                                                                 \
        *(void **) &real = dlsym(RTLD_NEXT, #name)

#define DEFINE(type, name, parameters, arguments, error, waits, failed)                            \
        NAMED(type, name, parameters) {                                                            \
                int e = call_fails(#name, error, waits);                                           \
                FIND_REAL(type, name, parameters);                                                 \
                                                                                                   \
                if (e == 0)                                                                        \
                        return real arguments;                                                     \
                errno = e;                                                                         \
                return failed;                                                                     \
        }

#define CALL(name, parameters, arguments, error)                                                   \
        DEFINE(int, name, parameters, arguments, error, false, -1)
#define WAITING_CALL(type, name, parameters, arguments, error)                                     \
        DEFINE(type, name, parameters, arguments, error, true, -1)
#define POINTER_CALL(name, parameters, arguments, error)                                           \
        DEFINE(void *, name, parameters, arguments, error, false, NULL)

/* What is optional in C is there in the registers of the machine. */
CALL(open, (const char *path, int flags, unsigned mode), (path, flags, mode), EMFILE)
CALL(open64, (const char *path, int flags, unsigned mode), (path, flags, mode), EMFILE)
CALL(openat, (int fd, const char *path, int flags, unsigned mode), (fd, path, flags, mode), EMFILE)
CALL(openat64, (int fd, const char *path, int flags, unsigned mode), (fd, path, flags, mode),
     EMFILE)
POINTER_CALL(fopen, (const char *path, const char *mode), (path, mode), EMFILE)
POINTER_CALL(fopen64, (const char *path, const char *mode), (path, mode), EMFILE)
POINTER_CALL(fdopen, (int fd, const char *mode), (fd, mode), ENOMEM)
POINTER_CALL(opendir, (const char *path), (path), EMFILE)
POINTER_CALL(fdopendir, (int fd), (fd), ENOMEM)
POINTER_CALL(readdir64, (void *directory), (directory), EIO)
POINTER_CALL(realpath, (const char *path, char *resolved), (path, resolved), EACCES)
POINTER_CALL(setmntent, (const char *path, const char *mode), (path, mode), EMFILE)
DEFINE(ssize_t, getdelim, (char **line, size_t *size, int end, void *file), (line, size, end, file),
       EIO, false, -1)
CALL(fflush, (void *file), (file), ENOSPC)

CALL(stat64, (const char *path, void *st), (path, st), EACCES)
CALL(lstat64, (const char *path, void *st), (path, st), EACCES)
CALL(fstat64, (int fd, void *st), (fd, st), EIO)
CALL(fstatat64, (int fd, const char *path, void *st, int flags), (fd, path, st, flags), EACCES)
CALL(statx, (int fd, const char *path, int flags, unsigned mask, void *st),
     (fd, path, flags, mask, st), EACCES)
CALL(statfs64, (const char *path, void *st), (path, st), EIO)
CALL(fstatfs64, (int fd, void *st), (fd, st), EIO)
DEFINE(ssize_t, readlink, (const char *path, char *text, size_t size), (path, text, size), EACCES,
       false, -1)
DEFINE(ssize_t, readlinkat, (int fd, const char *path, char *text, size_t size),
       (fd, path, text, size), EACCES, false, -1)

CALL(mkdir, (const char *path, unsigned mode), (path, mode), ENOSPC)
CALL(mkostemp64, (char *path, int flags), (path, flags), ENOSPC)
CALL(chmod, (const char *path, unsigned mode), (path, mode), EROFS)
CALL(fchmod, (int fd, unsigned mode), (fd, mode), EROFS)
CALL(rename, (const char *from, const char *to), (from, to), ENOSPC)
CALL(renameat, (int from_fd, const char *from, int to_fd, const char *to),
     (from_fd, from, to_fd, to), ENOSPC)
CALL(unlink, (const char *path), (path), EROFS)
CALL(unlinkat, (int fd, const char *path, int flags), (fd, path, flags), EROFS)
CALL(ftruncate64, (int fd, long size), (fd, size), ENOSPC)
CALL(fsync, (int fd), (fd), EIO)

CALL(fcntl, (int fd, int command, long argument), (fd, command, argument), EMFILE)
CALL(fcntl64, (int fd, int command, long argument), (fd, command, argument), EMFILE)
CALL(ioctl, (int fd, unsigned long request, long argument), (fd, request, argument), ENOMEM)
DEFINE(void *, mmap, (void *p, size_t size, int protection, int flags, int fd, long offset),
       (p, size, protection, flags, fd, offset), ENOMEM, false, MAP_FAILED)
DEFINE(void *, mmap64, (void *p, size_t size, int protection, int flags, int fd, long offset),
       (p, size, protection, flags, fd, offset), ENOMEM, false, MAP_FAILED)
CALL(memfd_create, (const char *name, unsigned flags), (name, flags), EMFILE)
CALL(eventfd, (unsigned n, int flags), (n, flags), EMFILE)
CALL(inotify_init1, (int flags), (flags), EMFILE)
CALL(inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask), ENOSPC)
CALL(epoll_create1, (int flags), (flags), EMFILE)
CALL(epoll_ctl, (int fd, int operation, int other, void *event), (fd, operation, other, event),
     ENOSPC)
CALL(timerfd_create, (int clock, int flags), (clock, flags), EMFILE)
CALL(timerfd_settime, (int fd, int flags, const void *value, void *old), (fd, flags, value, old),
     ENOMEM)
CALL(signalfd, (int fd, const void *mask, int flags), (fd, mask, flags), EMFILE)
CALL(socket, (int domain, int type, int protocol), (domain, type, protocol), EMFILE)
CALL(socketpair, (int domain, int type, int protocol, int *pair), (domain, type, protocol, pair),
     EMFILE)
CALL(fork, (void), (), EAGAIN)
WAITING_CALL(ssize_t, sendmsg, (int fd, const void *message, int flags), (fd, message, flags),
             ENOBUFS)
WAITING_CALL(ssize_t, sendto,
             (int fd, const void *data, size_t size, int flags, const void *address, unsigned n),
             (fd, data, size, flags, address, n), ENOBUFS)
WAITING_CALL(ssize_t, recvmsg, (int fd, void *message, int flags), (fd, message, flags), ENOMEM)
WAITING_CALL(int, poll, (void *fds, unsigned long n, int timeout), (fds, n, timeout), ENOMEM)
WAITING_CALL(int, ppoll, (void *fds, unsigned long n, const void *timeout, const void *mask),
             (fds, n, timeout, mask), ENOMEM)

/* An error would be our own mistake. */
NAMED(int, epoll_wait, (int fd, void *events, int n, int timeout)) {
        FIND_REAL(int, epoll_wait, (int fd, void *events, int n, int timeout));

        if (!fails(FAULT_INTERRUPT, "epoll_wait"))
                return real(fd, events, n, timeout);
        errno = EINTR;
        return -1;
}

/* Returns the error, where others set it. */
NAMED(int, pthread_create, (void *thread, const void *attributes, void *f, void *userdata)) {
        FIND_REAL(int, pthread_create,
                  (void *thread, const void *attributes, void *f, void *userdata));

        return fails(FAULT_CALL, "pthread_create") ? EAGAIN : real(thread, attributes, f, userdata);
}

/* Half of it, if that is a part and the file is one. */
static size_t shorten(const char *call, int fd, size_t size) {
        struct stat st;

        if (!fault || fault->kind != FAULT_SHORT || size < 2)
                return size;
        /* Not by way of those above: nothing else is counted now. */
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return size;
        return fails(FAULT_SHORT, call) ? size / 2 : size;
}

#define TRANSFER(name, parameters, arguments, error)                                               \
        NAMED(ssize_t, name, parameters) {                                                         \
                int e = call_fails(#name, error, true);                                            \
                FIND_REAL(ssize_t, name, parameters);                                              \
                                                                                                   \
                size = shorten(#name, fd, size);                                                   \
                if (e == 0)                                                                        \
                        return real arguments;                                                     \
                errno = e;                                                                         \
                return -1;                                                                         \
        }

TRANSFER(read, (int fd, void *data, size_t size), (fd, data, size), EIO)
TRANSFER(pread64, (int fd, void *data, size_t size, long offset), (fd, data, size, offset), EIO)
TRANSFER(write, (int fd, const void *data, size_t size), (fd, data, size), ENOSPC)

/* By which libbpf calls bpf(), and others what the C library has no function for. */
NAMED(long, syscall, (long number, long a, long b, long c, long d, long e, long f)) {
        static const struct {
                long number;
                const char *name;
                int error;
        } calls[] = {
                { SYS_bpf, "bpf", ENOMEM },
                { SYS_perf_event_open, "perf_event_open", EMFILE },
                { SYS_pidfd_open, "pidfd_open", EMFILE },
        };
        FIND_REAL(long, syscall, (long number, long a, long b, long c, long d, long e, long f));

        for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
                if (calls[i].number == number && fails(FAULT_CALL, calls[i].name)) {
                        errno = calls[i].error;
                        return -1;
                }
        return real(number, a, b, c, d, e, f);
}
