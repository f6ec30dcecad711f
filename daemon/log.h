/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef LOG_H
#define LOG_H

#include <errno.h>
#include <syslog.h>

#include "base/cleanup.h"

/*
 * The daemon's own log: to the journal when standard error is connected to it, else as text to
 * standard error. Levels are syslog's. One event is logged once, by whoever handles it: manager,
 * bus and main.
 */

/* Messages above this level are dropped. Default: LOG_INFO. */
void log_set_max_level(int level);

/* Logs, with error as errno for %m and as ERRNO=. Returns the negative of |error|. */
int log_internal(int level, int error, const char *file, int line, const char *func,
                 const char *format, ...) _printf_(6, 7);

#define log_full_errno(level, error, ...)                                                          \
        log_internal(level, error, __FILE__, __LINE__, __func__, __VA_ARGS__)

#define log_error_errno(error, ...)   log_full_errno(LOG_ERR, error, __VA_ARGS__)
#define log_warning_errno(error, ...) log_full_errno(LOG_WARNING, error, __VA_ARGS__)
#define log_notice_errno(error, ...)  log_full_errno(LOG_NOTICE, error, __VA_ARGS__)

#define log_error(...)   ((void) log_full_errno(LOG_ERR, 0, __VA_ARGS__))
#define log_warning(...) ((void) log_full_errno(LOG_WARNING, 0, __VA_ARGS__))
#define log_notice(...)  ((void) log_full_errno(LOG_NOTICE, 0, __VA_ARGS__))
#define log_info(...)    ((void) log_full_errno(LOG_INFO, 0, __VA_ARGS__))
#define log_debug(...)   ((void) log_full_errno(LOG_DEBUG, 0, __VA_ARGS__))

#define log_oom() log_error_errno(ENOMEM, "Out of memory.")

#endif
