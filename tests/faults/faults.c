/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Functions of the C library, defined once more in the program: the dynamic linker prefers these,
 * also for the calls of libraries. What the C library does by itself is not seen, so functions that
 * open a file by themselves are here, too. Each has the error that the kernel may well give for it.
 *
 * close() is not among them: it always closes, whatever it returns; nor dup3(), which does not fail
 * where the other descriptor is open already.
 *
 * The names are given to the assembler only, since headers give some of them other types.
 */

#include "faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
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

#define PLACES_MAX (UINT64_C(1) << 18)

#ifdef SANITIZED
const char *__lsan_default_suppressions(void);

/* What the dynamic linker keeps of threads is no leak, which is known by who calls calloc(). */
const char *__lsan_default_suppressions(void) {
        return "leak:/ld-linux\n";
}
#endif

static Fault *fault;
static bool spared;

/* By their number less one; all processes write them. */
static uint64_t *places;
static bool notes_places;

/* Frames above this on the stack are of no interest. Those of other threads are below. */
static uintptr_t begin = UINTPTR_MAX;

static void (*on_bpf)(long command, int fd);

/* This thread looks for something of ours: what is called for that does not count. */
static _Thread_local bool is_looking;

Fault *fault_get(void) {
        return fault;
}

void fault_set(FaultKind kind, uint64_t at) {
        *fault = (Fault) { .kind = kind, .at = at };
}

void fault_set_next(uint64_t at) {
        *fault = (Fault) {
                .kind = fault->kind,
                .at = at,
                .ahead_ns = fault->ahead_ns,
                .has_no_multi = fault->has_no_multi,
        };
}

void fault_pass_time(uint64_t usec) {
        fault->ahead_ns += usec * 1000;
}

void fault_note_places(bool note) {
        notes_places = note;
}

void fault_on_bpf(void (*handler)(long command, int fd)) {
        on_bpf = handler;
}

void fault_begin(const void *frame) {
        begin = (uintptr_t) frame;
}

uint64_t fault_place(uint64_t n) {
        return n <= PLACES_MAX ? places[n - 1] : 0;
}

/* Another process may be about to note which call it was, while what lasts hits this one. */
bool fault_has_hit(void) {
        return __atomic_load_n(&fault->call[0], __ATOMIC_ACQUIRE) ||
               (fault_lasts() && fault->at > 0 &&
                __atomic_load_n(&fault->n, __ATOMIC_RELAXED) > fault->at);
}

bool fault_lasts(void) {
        return fault->kind >= FAULT_NO_MEMORY;
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
                [FAULT_DISCONNECT] = "disconnect",
                [FAULT_NO_MEMORY] = "no-memory",
                [FAULT_NO_DESCRIPTORS] = "no-descriptors",
                [FAULT_NO_SPACE] = "no-space",
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

static void *share(size_t size) {
        void *p;

        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
                abort();
        return p;
}

__attribute__((constructor)) static void start(void) {
        static const int signals[] = { SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV };
        struct sigaction action = { .sa_handler = on_crash,
                                    .sa_flags = (int) (SA_RESETHAND | SA_NODEFER) };

        places = share(PLACES_MAX * sizeof(*places));
        fault = share(sizeof(*fault));
        for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
                (void) sigaction(signals[i], &action, NULL);
}

typedef struct Stack {
        void *frames[FAULT_FRAMES_MAX];
        int n;
} Stack;

/* backtrace() would load a library at first. */
static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *userdata) {
        Stack *stack = userdata;

        if (stack->n == FAULT_FRAMES_MAX || _Unwind_GetCFA(context) > begin)
                return _URC_END_OF_STACK;
        stack->frames[stack->n++] = (void *) _Unwind_GetIP(context);
        return _URC_NO_REASON;
}

static Stack find_stack(void) {
        Stack stack = {};

        is_looking = true;
        (void) _Unwind_Backtrace(note_frame, &stack);
        is_looking = false;
        return stack;
}

/* FNV-1a. */
static uint64_t place_of(const Stack *stack) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (int i = 0; i < stack->n; i++)
                hash = (hash ^ (uintptr_t) stack->frames[i]) * UINT64_C(0x100000001b3);
        return hash;
}

/* Notes where the n-th one comes from, and whether it fails. */
__attribute__((noinline)) static bool is_the_one(uint64_t n, const char *call) {
        const Stack stack = find_stack();

        if (notes_places && n <= PLACES_MAX)
                places[n - 1] = place_of(&stack);
        if (n != fault->at)
                return false;
        fault->place = place_of(&stack);
        memcpy(fault->frames, stack.frames, sizeof(stack.frames));
        fault->n_frames = stack.n;
        strncpy(fault->call + 1, call + 1, sizeof(fault->call) - 2);
        __atomic_store_n(&fault->call[0], call[0], __ATOMIC_RELEASE);
        return true;
}

/*
 * Whether a call that can fail in this way does. With nothing on the stack that has an address: the
 * sanitizer calls malloc() before it is ready for that.
 */
static bool fails(FaultKind kind, const char *call) {
        uint64_t n;

        if (!fault || !fault->armed || spared || is_looking || fault->kind != kind)
                return false;
        n = __atomic_add_fetch(&fault->n, 1, __ATOMIC_RELAXED);
        if (fault_lasts() && fault->at > 0 && n > fault->at)
                return true;
        return (n == fault->at || notes_places) && is_the_one(n, call);
}

static bool no_memory(const char *call) {
        if (!fails(FAULT_MEMORY, call) && !fails(FAULT_NO_MEMORY, call))
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
        if (fails(FAULT_CALL, call) || (error == EMFILE && fails(FAULT_NO_DESCRIPTORS, call)) ||
            (error == ENOSPC && fails(FAULT_NO_SPACE, call)))
                return error;
        return waits && fails(FAULT_INTERRUPT, call) ? EINTR : 0;
}

static int message_fails(const char *call, int error) {
        return fails(FAULT_DISCONNECT, call) ? ECONNRESET : call_fails(call, error, true);
}

#define FIND_REAL(type, name, parameters)                                                          \
        static type(*real) parameters;                                                             \
        if (!real)                                                                                 \
        *(void **) &real = dlsym(RTLD_NEXT, #name)

#define DEFINE(type, name, parameters, arguments, error_now, failed)                               \
        NAMED(type, name, parameters) {                                                            \
                int e = error_now;                                                                 \
                FIND_REAL(type, name, parameters);                                                 \
                                                                                                   \
                if (e == 0)                                                                        \
                        return real arguments;                                                     \
                errno = e;                                                                         \
                return failed;                                                                     \
        }

#define CALL(name, parameters, arguments, error)                                                   \
        DEFINE(int, name, parameters, arguments, call_fails(#name, error, false), -1)
#define SIZE_CALL(name, parameters, arguments, error)                                              \
        DEFINE(ssize_t, name, parameters, arguments, call_fails(#name, error, false), -1)
#define WAITING_CALL(name, parameters, arguments, error)                                           \
        DEFINE(int, name, parameters, arguments, call_fails(#name, error, true), -1)
#define MESSAGE_CALL(name, parameters, arguments, error)                                           \
        DEFINE(ssize_t, name, parameters, arguments, message_fails(#name, error), -1)
#define POINTER_CALL(name, parameters, arguments, error, failed)                                   \
        DEFINE(void *, name, parameters, arguments, call_fails(#name, error, false), failed)

/* What is optional in C is there in the registers of the machine. */
CALL(open, (const char *path, int flags, unsigned mode), (path, flags, mode), EMFILE)
CALL(open64, (const char *path, int flags, unsigned mode), (path, flags, mode), EMFILE)
CALL(openat, (int fd, const char *path, int flags, unsigned mode), (fd, path, flags, mode), EMFILE)
CALL(openat64, (int fd, const char *path, int flags, unsigned mode), (fd, path, flags, mode),
     EMFILE)
POINTER_CALL(fopen, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
POINTER_CALL(fopen64, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
POINTER_CALL(fdopen, (int fd, const char *mode), (fd, mode), ENOMEM, NULL)
POINTER_CALL(opendir, (const char *path), (path), EMFILE, NULL)
POINTER_CALL(fdopendir, (int fd), (fd), ENOMEM, NULL)
POINTER_CALL(readdir64, (void *directory), (directory), EIO, NULL)
POINTER_CALL(realpath, (const char *path, char *resolved), (path, resolved), EACCES, NULL)
POINTER_CALL(setmntent, (const char *path, const char *mode), (path, mode), EMFILE, NULL)
SIZE_CALL(getdelim, (char **line, size_t *size, int end, void *file), (line, size, end, file), EIO)
CALL(fflush, (void *file), (file), ENOSPC)

CALL(stat64, (const char *path, void *st), (path, st), EACCES)
CALL(lstat64, (const char *path, void *st), (path, st), EACCES)
CALL(fstat64, (int fd, void *st), (fd, st), EIO)
CALL(fstatat64, (int fd, const char *path, void *st, int flags), (fd, path, st, flags), EACCES)
CALL(statx, (int fd, const char *path, int flags, unsigned mask, void *st),
     (fd, path, flags, mask, st), EACCES)
CALL(statfs64, (const char *path, void *st), (path, st), EIO)
CALL(fstatfs64, (int fd, void *st), (fd, st), EIO)
SIZE_CALL(readlink, (const char *path, char *text, size_t size), (path, text, size), EACCES)
SIZE_CALL(readlinkat, (int fd, const char *path, char *text, size_t size), (fd, path, text, size),
          EACCES)

CALL(mkdir, (const char *path, unsigned mode), (path, mode), ENOSPC)
CALL(mkostemp64, (char *path, int flags), (path, flags), ENOSPC)
CALL(access, (const char *path, int mode), (path, mode), ENOMEM)
CALL(faccessat, (int fd, const char *path, int mode, int flags), (fd, path, mode, flags), ENOMEM)
CALL(open_by_handle_at, (int fd, void *handle, int flags), (fd, handle, flags), EMFILE)
CALL(chmod, (const char *path, unsigned mode), (path, mode), EROFS)
CALL(fchmod, (int fd, unsigned mode), (fd, mode), EROFS)
CALL(rename, (const char *from, const char *to), (from, to), ENOSPC)
CALL(renameat, (int from_fd, const char *from, int to_fd, const char *to),
     (from_fd, from, to_fd, to), ENOSPC)
CALL(unlink, (const char *path), (path), EROFS)
CALL(unlinkat, (int fd, const char *path, int flags), (fd, path, flags), EROFS)
CALL(ftruncate64, (int fd, long size), (fd, size), ENOSPC)
CALL(fsync, (int fd), (fd), EIO)

CALL(fsopen, (const char *name, unsigned flags), (name, flags), EMFILE)
CALL(fsconfig, (int fd, unsigned command, const char *key, const void *value, int aux),
     (fd, command, key, value, aux), ENOMEM)
CALL(fsmount, (int fd, unsigned flags, unsigned attributes), (fd, flags, attributes), EMFILE)

CALL(fcntl, (int fd, int command, long argument), (fd, command, argument), EMFILE)
CALL(fcntl64, (int fd, int command, long argument), (fd, command, argument), EMFILE)
CALL(ioctl, (int fd, unsigned long request, long argument), (fd, request, argument), ENOMEM)
POINTER_CALL(mmap, (void *p, size_t size, int protection, int flags, int fd, long offset),
             (p, size, protection, flags, fd, offset), ENOMEM, MAP_FAILED)
POINTER_CALL(mmap64, (void *p, size_t size, int protection, int flags, int fd, long offset),
             (p, size, protection, flags, fd, offset), ENOMEM, MAP_FAILED)
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
MESSAGE_CALL(sendmsg, (int fd, const void *message, int flags), (fd, message, flags), ENOBUFS)
MESSAGE_CALL(sendto,
             (int fd, const void *data, size_t size, int flags, const void *address, unsigned n),
             (fd, data, size, flags, address, n), ENOBUFS)
MESSAGE_CALL(recvmsg, (int fd, void *message, int flags), (fd, message, flags), ENOMEM)
WAITING_CALL(poll, (void *fds, unsigned long n, int timeout), (fds, n, timeout), ENOMEM)
WAITING_CALL(ppoll, (void *fds, unsigned long n, const void *timeout, const void *mask),
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

/*
 * It does not fail. But a sanitizer, which is not told of threads here, would take this one for
 * joined already; and if it was told, it would want memory as the thread begins.
 */
NAMED(int, pthread_join, (unsigned long thread, void **result)) {
        FIND_REAL(int, pthread_join, (unsigned long thread, void **result));

        return real(thread, result);
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

NAMED(int, clock_gettime, (clockid_t clock, struct timespec *time)) {
        FIND_REAL(int, clock_gettime, (clockid_t clock, struct timespec * time));
        int r = real(clock, time);

        if (r == 0 && fault && (clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME)) {
                uint64_t ns = (uint64_t) time->tv_nsec + fault->ahead_ns;

                time->tv_sec += (time_t) (ns / 1000000000);
                time->tv_nsec = (long) (ns % 1000000000);
        }
        return r;
}

/* BPF_TRACE_UPROBE_MULTI, which the headers of Debian 12 do not have. */
#define ATTACH_UPROBE_MULTI 48

/* A kernel that does not know these refuses the attributes. */
static bool is_multi_link(long number, long command, const void *attributes) {
        const union bpf_attr *attr = attributes;

        return number == SYS_bpf && command == BPF_LINK_CREATE &&
               attr->link_create.attach_type == ATTACH_UPROBE_MULTI;
}

/* Most of the commands that tlobd and libbpf use give a descriptor. */
static int bpf_error(long command) {
        switch (command) {
        case BPF_MAP_LOOKUP_ELEM:
        case BPF_MAP_UPDATE_ELEM:
        case BPF_MAP_DELETE_ELEM:
        case BPF_MAP_GET_NEXT_KEY:
        case BPF_MAP_FREEZE:
        case BPF_MAP_LOOKUP_BATCH:
        case BPF_OBJ_PIN:
        case BPF_OBJ_GET_INFO_BY_FD:
        case BPF_PROG_TEST_RUN:
                return ENOMEM;
        default:
                return EMFILE;
        }
}

static int system_call_fails(long number, long command) {
        switch (number) {
        case SYS_bpf:
                return call_fails("bpf", bpf_error(command), false);
        case SYS_perf_event_open:
                return call_fails("perf_event_open", EMFILE, false);
        case SYS_pidfd_open:
                return call_fails("pidfd_open", EMFILE, false);
        default:
                return 0;
        }
}

/* By which libbpf calls bpf(), and others what the C library has no function for. */
NAMED(long, syscall, (long number, long a, long b, long c, long d, long e, long f)) {
        FIND_REAL(long, syscall, (long number, long a, long b, long c, long d, long e, long f));
        int error = system_call_fails(number, a);
        long result;

        if (error == 0 && fault && fault->has_no_multi && is_multi_link(number, a, (void *) b))
                error = EINVAL;
        if (error != 0) {
                errno = error;
                return -1;
        }
        result = real(number, a, b, c, d, e, f);
        if (number == SYS_bpf && result > 0 && on_bpf && !is_looking) {
                is_looking = true;
                on_bpf(a, (int) result);
                is_looking = false;
        }
        return result;
}
