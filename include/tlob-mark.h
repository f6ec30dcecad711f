/* SPDX-License-Identifier: MIT */
#ifndef TLOB_MARK_H
#define TLOB_MARK_H

/*
 * Marks: a program names pieces of its own code, and tlobd measures them ("Mark=request" in
 * tlob.binding(5)). tlob-mark(3) explains all of this.
 *
 *     TLOB_MARK(request);       once in each source file, outside of functions and classes
 *
 *     tlob_begin(request);      a window of the calling thread begins
 *     tlob_end(request);        and ends
 *     TLOB_SCOPE(request);      both: from here to the end of the block, however it is left
 *
 *     tlob_begin_key(request, r);   a window begins that any thread of the process may end,
 *     tlob_end_key(request, r);     by the same key: a pointer, or a number
 *
 *     tlob_enabled(request)     is anybody listening?
 *
 * For C11, C++17 and newer, by gcc and clang, on x86-64 and arm64; elsewhere, and with
 * TLOB_MARK_DISABLE defined, nothing is left of it. No library is needed, nothing runs when the
 * program starts, and everything may be used in signal handlers.
 *
 * With TLOB_MARK_JOIN defined in all files that use a mark, a program joins tlobd: it shares memory
 * with it, and most windows take two looks at the clock instead of two traps (x86-64 only). From
 * then on, as soon as somebody listens, tlob_begin() may make these system calls, none of which
 * waits: socket, fcntl, connect, recvmsg, close, fstat, getpid, getppid, mmap, munmap, madvise.
 *
 * With TLOB_MARK_USER_EVENTS defined in all files that use a mark, it is an event of the program,
 * too: tlob_window (mark, key, phase), for perf, ftrace and others on kernels with
 * CONFIG_USER_EVENTS. It is registered when the program or library is loaded, and written, by the
 * system calls fstat and writev, while somebody asks for it.
 *
 * In the program, a mark is a counter of those who listen, and for each place where it begins or
 * ends a nop that is passed only while they do, with a note in the section .note.stapsdt. So other
 * tracers see it as the USDT probes tlob:NAME__begin and tlob:NAME__end.
 */

#if defined(__ELF__) && defined(__GNUC__) && defined(__LP64__) &&                                  \
        (defined(__x86_64__) || defined(__aarch64__)) && !defined(TLOB_MARK_DISABLE)
#define TLOB_MARK_IS_COMPILED_ 1
#else
#define TLOB_MARK_IS_COMPILED_ 0
#endif

#if TLOB_MARK_IS_COMPILED_ && defined(TLOB_MARK_JOIN) && defined(__x86_64__) && defined(__linux__)
#define TLOB_MARK_IS_JOINED_ 1
#else
#define TLOB_MARK_IS_JOINED_ 0
#endif

#if TLOB_MARK_IS_COMPILED_ && defined(TLOB_MARK_USER_EVENTS) && defined(__linux__) &&              \
        __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define TLOB_MARK_IS_EVENT_ 1
#else
#define TLOB_MARK_IS_EVENT_ 0
#endif

/*
 * All files of a program or library share the one object of a mark, whatever version of this header
 * they were compiled with: so its name, size and first member are for ever. The kernel counts in
 * the first member. The first of the others numbers marks with TLOB_MARK_JOIN; with
 * TLOB_MARK_USER_EVENTS, the second says that it is an event, and the highest bit of the third is
 * the kernel's, set while somebody asks for that; the rest is 0. Later versions may use it, and add
 * symbols and notes; by these tlobd tells what a program can do.
 */
struct tlob_mark {
        volatile unsigned short listeners;
        unsigned short reserved[3];
};

/* In C not static: functions that others inline may use them. None is ever made of its own. */
#ifdef __cplusplus
#define TLOB_INLINE_ inline __attribute__((always_inline, artificial, unused))
#else
#define TLOB_INLINE_ extern inline __attribute__((gnu_inline, always_inline, artificial, unused))
#endif

#if TLOB_MARK_IS_COMPILED_

/* One of each in a program or library, whichever file it comes from. */
#define TLOB_SHARED_ __attribute__((visibility("hidden"), weak))

/*
 * A piece of the section that aligns it to a page, once in a program. Otherwise it can begin in the
 * page of the file with which another segment ends: lld gives what is written to only at the start
 * (RELRO) a segment of its own. Both segments map that page, and as the program starts, the kernel
 * counts in the first one that it finds. The places refer to it, so that no linker drops it.
 */
#ifdef __x86_64__
#define TLOB_PAGE_ "4096"
#define TLOB_NONE_ "R_X86_64_NONE"
#else
#define TLOB_PAGE_ "65536"
#define TLOB_NONE_ "R_AARCH64_NONE"
#endif

#define TLOB_ALIGN_                                                                                \
        __asm__(".ifndef _.tlob_mark.page\n"                                                       \
                ".pushsection .probes, \"awG\", \"progbits\", .tlob_mark.page, comdat\n"           \
                ".balign " TLOB_PAGE_ "\n"                                                         \
                ".weak _.tlob_mark.page\n"                                                         \
                ".hidden _.tlob_mark.page\n"                                                       \
                "_.tlob_mark.page: .8byte 0\n"                                                     \
                ".size _.tlob_mark.page, 8\n"                                                      \
                ".popsection\n"                                                                    \
                ".endif\n");

/* Weak, so that the first of several is that of all; not seen by other libraries. */

#ifdef __cplusplus
#define TLOB_EXTERN_ extern "C"
#else
#define TLOB_EXTERN_ extern
#endif

#define TLOB_OBJECT_(mark)                                                                         \
        TLOB_ALIGN_                                                                                \
        TLOB_EXTERN_ __attribute__((visibility("hidden"))) struct tlob_mark tlob_mark_##mark;      \
        __attribute__((visibility("hidden"), weak, used, section(".probes"),                       \
                       aligned(8))) struct tlob_mark tlob_mark_##mark = { 0, { 0, 0, 0 } };

#define TLOB_ENABLED_(mark) (tlob_mark_##mark.listeners != 0)

#if TLOB_MARK_IS_EVENT_
#include "tlob-mark-events.h"

#define TLOB_IS_ASKED_FOR_(mark) tlob_event_is_asked_for_(&tlob_mark_##mark)
#define TLOB_WRITE_(mark, phase, key)                                                              \
        do {                                                                                       \
                if (__builtin_expect(TLOB_IS_ASKED_FOR_(mark), 0))                                 \
                        tlob_event_write_v1(#mark, sizeof(#mark), phase, key);                     \
        } while (0)
#define TLOB_REGISTER_(mark)                                                                       \
        __attribute__((constructor)) static void tlob_register_##mark(void) {                      \
                tlob_event_register_v1(&tlob_mark_##mark);                                         \
        }                                                                                          \
        __attribute__((destructor)) static void tlob_unregister_##mark(void) {                     \
                tlob_event_unregister_v1(&tlob_mark_##mark);                                       \
        }
#else
#define TLOB_IS_ASKED_FOR_(mark) 0
#define TLOB_WRITE_(mark, phase, key)                                                              \
        do {                                                                                       \
        } while (0)
#define TLOB_REGISTER_(mark)
#endif

/*
 * The nop of one byte, since all kernels emulate it: longer ones are single-stepped before Linux
 * 6.18, and since then replaced by a call, which writes below the stack pointer. Compilers copy
 * code: each copy makes a note of its own, which is in the group of its function ("?") and so goes
 * with it if the linker has another one. The second address is how readers of the note find out
 * that the program was moved (prelink).
 */
#define TLOB_PASS_(mark, side, arguments, ...)                                                     \
        __asm__ __inline__ __volatile__(                                                           \
                "990: nop\n"                                                                       \
                ".reloc 990b, " TLOB_NONE_ ", _.tlob_mark.page\n"                                  \
                ".pushsection .note.stapsdt, \"?\", \"note\"\n"                                    \
                ".balign 4\n"                                                                      \
                ".4byte 8, 992f - 991f, 3\n"                                                       \
                ".asciz \"stapsdt\"\n"                                                             \
                "991: .8byte 990b, _.stapsdt.base, tlob_mark_" #mark "\n"                          \
                ".asciz \"tlob\", \"" #mark "__" side "\", \"" arguments "\"\n"                    \
                "992: .balign 4\n"                                                                 \
                ".popsection\n"                                                                    \
                ".ifndef _.stapsdt.base\n"                                                         \
                ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"        \
                ".weak _.stapsdt.base\n"                                                           \
                ".hidden _.stapsdt.base\n"                                                         \
                "_.stapsdt.base: .byte 0\n"                                                        \
                ".size _.stapsdt.base, 1\n"                                                        \
                ".popsection\n"                                                                    \
                ".endif\n" ::__VA_ARGS__                                                           \
                : "memory")

#define TLOB_SITE_(mark, side)                                                                     \
        do {                                                                                       \
                if (__builtin_expect(TLOB_ENABLED_(mark), 0))                                      \
                        TLOB_PASS_(mark, side, "", );                                              \
        } while (0)

#if TLOB_MARK_IS_JOINED_
#include "tlob-mark-join.h"

#define TLOB_TELL_(mark, side, word)                                                               \
        do {                                                                                       \
                register unsigned long tlob_word_ __asm__("rdi") = (word);                         \
                TLOB_PASS_(mark, side, "", "r"(tlob_word_));                                       \
        } while (0)

#define TLOB_BEGIN_(mark)                                                                          \
        do {                                                                                       \
                if (__builtin_expect(TLOB_ENABLED_(mark), 0)) {                                    \
                        unsigned long tlob_told_ = tlob_lane_begin_v1(&tlob_mark_##mark);          \
                        if (tlob_told_) {                                                          \
                                TLOB_TELL_(mark, "begin", tlob_told_);                             \
                                tlob_lane_begun_v1(&tlob_mark_##mark);                             \
                        }                                                                          \
                }                                                                                  \
        } while (0)

#define TLOB_END_(mark)                                                                            \
        do {                                                                                       \
                if (__builtin_expect(TLOB_ENABLED_(mark), 0)) {                                    \
                        unsigned long tlob_told_ = tlob_lane_end_v1(&tlob_mark_##mark);            \
                        if (tlob_told_) {                                                          \
                                TLOB_TELL_(mark, "end", tlob_told_);                               \
                                tlob_lane_ended_v1(&tlob_mark_##mark);                             \
                        }                                                                          \
                }                                                                                  \
        } while (0)

#else
#define TLOB_BEGIN_(mark) TLOB_SITE_(mark, "begin")
#define TLOB_END_(mark)   TLOB_SITE_(mark, "end")
#endif

/* In the same register at all places. */
#ifdef __x86_64__
#define TLOB_KEY_REGISTER_ "rdi"
#define TLOB_KEY_ARGUMENT_ "8@%%rdi"
#else
#define TLOB_KEY_REGISTER_ "x0"
#define TLOB_KEY_ARGUMENT_ "8@x0"
#endif

#define TLOB_SITE_KEY_(mark, side, key)                                                            \
        do {                                                                                       \
                if (__builtin_expect(TLOB_ENABLED_(mark), 0)) {                                    \
                        register unsigned long tlob_key_ __asm__(TLOB_KEY_REGISTER_) = (key);      \
                        TLOB_PASS_(mark, side, TLOB_KEY_ARGUMENT_, "r"(tlob_key_));                \
                }                                                                                  \
        } while (0)

#else
#define TLOB_OBJECT_(mark)
#define TLOB_REGISTER_(mark)
#define TLOB_ENABLED_(mark)      0
#define TLOB_IS_ASKED_FOR_(mark) 0
#define TLOB_BEGIN_(mark)                                                                          \
        do {                                                                                       \
        } while (0)
#define TLOB_END_(mark)                 TLOB_BEGIN_(mark)
#define TLOB_WRITE_(mark, phase, key)   TLOB_BEGIN_(mark)
#define TLOB_SITE_KEY_(mark, side, key) ((void) (key))
#endif

#define TLOB_FUNCTIONS_(mark)                                                                      \
        TLOB_INLINE_ int tlob_enabled_##mark(void) {                                               \
                return TLOB_ENABLED_(mark) || TLOB_IS_ASKED_FOR_(mark);                            \
        }                                                                                          \
        TLOB_INLINE_ void tlob_begins_##mark(void) {                                               \
                TLOB_WRITE_(mark, TLOB_PHASE_BEGIN_, 0);                                           \
                TLOB_BEGIN_(mark);                                                                 \
        }                                                                                          \
        TLOB_INLINE_ void tlob_ends_##mark(void) {                                                 \
                TLOB_END_(mark);                                                                   \
                TLOB_WRITE_(mark, TLOB_PHASE_END_, 0);                                             \
        }                                                                                          \
        TLOB_INLINE_ void tlob_begin_key_##mark(unsigned long key) {                               \
                TLOB_WRITE_(mark, TLOB_PHASE_BEGIN_, key);                                         \
                TLOB_SITE_KEY_(mark, "begin", key);                                                \
        }                                                                                          \
        TLOB_INLINE_ void tlob_end_key_##mark(unsigned long key) {                                 \
                TLOB_SITE_KEY_(mark, "end", key);                                                  \
                TLOB_WRITE_(mark, TLOB_PHASE_END_, key);                                           \
        }

#define TLOB_JOIN_(a, b)     a##b
#define TLOB_VARIABLE_(line) TLOB_JOIN_(tlob_scope_at_line_, line)

#ifdef __cplusplus

/* The object of a scope; it can also be a member, or be in a std::optional. */
#define TLOB_MARK(mark)                                                                            \
        TLOB_OBJECT_(mark)                                                                         \
        TLOB_REGISTER_(mark)                                                                       \
        TLOB_FUNCTIONS_(mark)                                                                      \
        struct tlob_scope_##mark {                                                                 \
                tlob_scope_##mark() noexcept {                                                     \
                        tlob_begins_##mark();                                                      \
                }                                                                                  \
                ~tlob_scope_##mark() {                                                             \
                        tlob_ends_##mark();                                                        \
                }                                                                                  \
                tlob_scope_##mark(const tlob_scope_##mark &) = delete;                             \
                tlob_scope_##mark &operator=(const tlob_scope_##mark &) = delete;                  \
        };                                                                                         \
        static_assert(sizeof(struct tlob_mark) == 8, "")

#define TLOB_SCOPE(mark) const tlob_scope_##mark TLOB_VARIABLE_(__LINE__) __attribute__((unused))

#else

#define TLOB_MARK(mark)                                                                            \
        TLOB_OBJECT_(mark)                                                                         \
        TLOB_REGISTER_(mark)                                                                       \
        TLOB_FUNCTIONS_(mark)                                                                      \
        TLOB_INLINE_ void tlob_leave_##mark(const char *scope) {                                   \
                (void) scope;                                                                      \
                tlob_ends_##mark();                                                                \
        }                                                                                          \
        _Static_assert(sizeof(struct tlob_mark) == 8, "")

#define TLOB_SCOPE(mark)                                                                           \
        const char TLOB_VARIABLE_(__LINE__) __attribute__((cleanup(tlob_leave_##mark), unused)) =  \
                (tlob_begins_##mark(), 0)

#endif

#define tlob_enabled(mark) tlob_enabled_##mark()
#define tlob_begin(mark)   tlob_begins_##mark()
#define tlob_end(mark)     tlob_ends_##mark()

#define tlob_begin_key(mark, key) tlob_begin_key_##mark((unsigned long) (key))
#define tlob_end_key(mark, key)   tlob_end_key_##mark((unsigned long) (key))

#endif
