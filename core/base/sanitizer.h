/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BASE_SANITIZER_H
#define BASE_SANITIZER_H

/* SANITIZED is defined where this is compiled with -fsanitize=address, by gcc or clang. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#endif
