/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CALL_H
#define CALL_H

#include <stdbool.h>

#include "wire.h"

/*
 * An input of fuzz-bus is a row of frames, each a byte with its length and as many bytes. A frame
 * makes one message; bytes that it lacks are zero, and zeros make what is right: {1, 0} is
 * AddBinding("a") of a function that is there.
 */

/* The bytes of a frame that are left. */
typedef struct Feed {
        const uint8_t *data;
        size_t size;
} Feed;

/* The next one, 0 at the end; the second: below n. */
uint8_t feed_byte(Feed *feed);
unsigned feed_below(Feed *feed, unsigned n);

/* The next frame; false: there is none. */
bool feed_frame(Feed *input, Feed *ret);

/* A frame that begins with one of these is no call. */
#define FRAME_REPORT 0xff /* the back end has something to report */
#define FRAME_UNIT   0xfe /* a unit starts, or ends */

/* The first bytes of a frame: what is called, how, and on which object. */
enum {
        CALL_STRANGER = 1 << 0,     /* by a sender of whom nothing is known */
        CALL_NO_REPLY = 1 << 1,     /* it does not want an answer */
        CALL_NO_INTERFACE = 1 << 2, /* it names none */
        CALL_SIGNATURE = 1 << 3,    /* with another signature than the member has */
        CALL_RAW = 1 << 4,          /* with bytes of the input as its body */
        CALL_CUT = 1 << 5,          /* with less of a body than it should have */
        CALL_BIG = 1 << 6,          /* in the other byte order */
        CALL_BURST = 1 << 7,        /* the next one comes before its answer */
};

typedef struct CallMember {
        const char *interface;
        const char *name;
        const char *types;
} CallMember;

/* All methods: of the XML, in its order, then those that every object has. */
extern const CallMember call_methods[];
extern const unsigned call_n_methods;
extern const CallMember call_properties[];
extern const unsigned call_n_properties;

/* How many strings there are of the kind STRING_WORD. */
extern const unsigned call_n_words;

/* The first kinds of strings in an input; see call.c. */
enum {
        STRING_NAME,
        STRING_PROPERTY,
        STRING_INTERFACE,
        STRING_WORD,
        STRING_RAW,
        STRING_LONG,
        N_STRINGS,
};

#define CALL_SIGNATURE_MAX 255

typedef struct Call {
        const CallMember *member;
        uint8_t flags;
        char path[512];
        const char *signature;
        Wire body;
} Call;

/* program: one that can be probed. */
void call_read(Feed *feed, const char *program, Call *ret);

#endif
