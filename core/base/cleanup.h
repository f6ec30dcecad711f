/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

/*
 * Ownership in the type of a variable: _cleanup_(x) frees when the scope ends, TAKE_PTR() and
 * TAKE_FD() hand the value on. Nothing else belongs here.
 */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _cleanup_(f)   __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))

#define ELEMENTSOF(x) (sizeof(x) / sizeof((x)[0]))

#define TAKE_PTR(p)                                                                                \
        ({                                                                                         \
                typeof(p) *_pp = &(p);                                                             \
                typeof(p) _p = *_pp;                                                               \
                *_pp = NULL;                                                                       \
                _p;                                                                                \
        })

#define TAKE_FD(fd)                                                                                \
        ({                                                                                         \
                int *_pfd = &(fd);                                                                 \
                int _fd = *_pfd;                                                                   \
                *_pfd = -EBADF;                                                                    \
                _fd;                                                                               \
        })

/* Defines func##p(), for _cleanup_(), from a destructor that takes a pointer. */
#define DEFINE_CLEANUP(type, func)                                                                 \
        static inline void func##p(type **p) {                                                     \
                if (*p)                                                                            \
                        func(*p);                                                                  \
        }                                                                                          \
        struct _semicolon_##func

static inline void freep(void *p) {
        free(*(void **) p);
}

static inline void fclosep(FILE **f) {
        if (*f)
                fclose(*f);
}

static inline void closedirp(DIR **d) {
        if (*d)
                closedir(*d);
}

/* Closes and returns -EBADF; keeps errno, so that it can stand between a failure and its report. */
static inline int safe_close(int fd) {
        int saved = errno;

        if (fd >= 0)
                (void) close(fd);
        errno = saved;
        return -EBADF;
}

static inline void closep(int *fd) {
        safe_close(*fd);
}

#define _cleanup_free_     _cleanup_(freep)
#define _cleanup_close_    _cleanup_(closep)
#define _cleanup_fclose_   _cleanup_(fclosep)
#define _cleanup_closedir_ _cleanup_(closedirp)

/* Replaces *p by a copy of s (NULL: by nothing). Returns 0 or -ENOMEM, and then *p is untouched. */
static inline int free_and_strdup(char **p, const char *s) {
        char *copy = NULL;

        if (s) {
                copy = strdup(s);
                if (!copy)
                        return -ENOMEM;
        }
        free(*p);
        *p = copy;
        return 0;
}

static inline int streq(const char *a, const char *b) {
        return strcmp(a, b) == 0;
}

/* As streq(), with NULL equal to the empty string. */
static inline int streq_empty(const char *a, const char *b) {
        return strcmp(a ?: "", b ?: "") == 0;
}

#endif
