/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Keys. Those without a character send a sequence, as the terminals of today all do: ESC [ A, ESC O
 * A, ESC [ 5 ~. Over a slow line, it comes in pieces; and what is not known is read to its end, so
 * that no letter in it is taken for a key.
 */

#include "top/keys.h"

#define ESCAPE 0x1b

enum {
        PLAIN,
        ESCAPED,
        SEQUENCE
};

static int key_of_letter(char letter) {
        switch (letter) {
        case 'A':
                return KEY_UP;
        case 'B':
                return KEY_DOWN;
        case 'F':
                return KEY_END;
        case 'H':
                return KEY_HOME;
        default:
                return KEY_NONE;
        }
}

static int key_of_number(char number) {
        switch (number) {
        case '1':
        case '7':
                return KEY_HOME;
        case '4':
        case '8':
                return KEY_END;
        case '5':
                return KEY_PAGE_UP;
        case '6':
                return KEY_PAGE_DOWN;
        default:
                return KEY_NONE;
        }
}

static int feed_sequence(KeyReader *reader, char byte) {
        /* Parameters: only a single digit is a key that is known. */
        if (byte >= 0x20 && byte < 0x40) {
                reader->number = reader->number == '\0' ? byte : '?';
                return KEY_NONE;
        }
        reader->state = PLAIN;
        if (byte == '~')
                return key_of_number(reader->number);
        return reader->number == '\0' ? key_of_letter(byte) : KEY_NONE;
}

int key_reader_feed(KeyReader *reader, char byte) {
        if (byte == ESCAPE) {
                *reader = (KeyReader) { .state = ESCAPED };
                return KEY_NONE;
        }
        switch (reader->state) {
        case ESCAPED:
                if (byte == '[' || byte == 'O') {
                        reader->state = SEQUENCE;
                        return KEY_NONE;
                }
                reader->state = PLAIN;
                return KEY_NONE;
        case SEQUENCE:
                return feed_sequence(reader, byte);
        default:
                return (signed char) byte > 0 ? byte : KEY_NONE;
        }
}
