/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TOP_KEYS_H
#define TOP_KEYS_H

/* From the bytes that a terminal sends to keys. */

typedef enum Key {
        /* Others are the character. */
        KEY_NONE = 0,
        KEY_UP = 0x100,
        KEY_DOWN,
        KEY_PAGE_UP,
        KEY_PAGE_DOWN,
        KEY_HOME,
        KEY_END,
} Key;

/* Zeroed at first: how much of a sequence there is. It may come in pieces. */
typedef struct KeyReader {
        unsigned state;
        char number;
} KeyReader;

/* The key that ends with this byte, or KEY_NONE. */
int key_reader_feed(KeyReader *reader, char byte);

#endif
