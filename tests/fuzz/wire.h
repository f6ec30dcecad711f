/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * D-Bus messages byte by byte, as sd-bus would not make them: strings that are not UTF-8, bodies
 * that are not what the signature says. What does not fit is left out, and noted.
 */

#define WIRE_MAX (512U << 10)

enum {
        WIRE_CALL = 1,
        WIRE_RETURN,
        WIRE_ERROR,
        WIRE_SIGNAL,
};

#define WIRE_NO_REPLY 1U /* flag: no answer is expected */

typedef struct Wire {
        size_t size;
        bool big; /* the most significant byte comes first */
        bool full;
        uint8_t data[WIRE_MAX];
} Wire;

void wire_init(Wire *wire, bool big);

void wire_align(Wire *wire, size_t alignment);
void wire_bytes(Wire *wire, const void *bytes, size_t n);

/* A number of n bytes, aligned. */
void wire_number(Wire *wire, uint64_t number, size_t n);

/* A string of those bytes, whatever they are, or an object path. */
void wire_string(Wire *wire, const void *bytes, size_t n);
void wire_text(Wire *wire, const char *text);
void wire_signature(Wire *wire, const char *signature);

/* The length of an array, and where it is; to be given to wire_array_end() behind the elements. */
size_t wire_array_begin(Wire *wire, size_t alignment);
void wire_array_end(Wire *wire, size_t begin, size_t alignment);

/* The fields that may be NULL are left out then. */
typedef struct WireHeader {
        uint8_t type;
        uint8_t flags;
        uint32_t serial;
        const char *path;
        const char *interface;
        const char *member;
        const char *sender;
        const char *signature;
} WireHeader;

/* The header of a message with a body of that size. */
void wire_header(Wire *wire, const WireHeader *header, size_t body_size);

#endif
