/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_SANITIZER_H
#define BASE_SANITIZER_H

/*
 * SANITIZED: this is compiled with -fsanitize=address or -fsanitize=thread, by gcc or clang.
 * SANITIZED_THREADS: with the latter, which makes a thread before the program's first one.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#if defined(__SANITIZE_THREAD__)
#define SANITIZED_THREADS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SANITIZED_THREADS 1
#endif
#endif

#endif
