/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The records of a trace page, by their lengths and nothing else: checked before libtraceevent
 * walks the page, because it adds up whatever lengths it finds. A padding record that leads back to
 * itself keeps it in kbuffer_load_subbuffer() or kbuffer_next_event() for ever.
 *
 * A record begins with a word: five bits of type or length, 27 bits of time. Here each record ends
 * behind its beginning and within the page, so there are at most as many as there are words.
 */

#include "kernel/page.h"

#include <string.h>
#include <traceevent/kbuffer.h>

#define WORD_SIZE sizeof(uint32_t)

static uint32_t type_of(uint32_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        return word >> 27;
#else
        return word & 31;
#endif
}

static uint32_t read_word(const uint8_t *p) {
        uint32_t word;

        memcpy(&word, p, sizeof(word));
        return word;
}

/* The length of the record with all that belongs to it; 0 if it cannot be told within size. */
static size_t record_length(const uint8_t *record, size_t size, bool *ret_is_event) {
        uint32_t type, length;

        if (size < WORD_SIZE)
                return 0;
        type = type_of(read_word(record));
        *ret_is_event = type < KBUFFER_TYPE_PADDING;
        if (*ret_is_event && type > 0)
                return WORD_SIZE + type * WORD_SIZE;
        if (size < 2 * WORD_SIZE)
                return 0;
        if (type == KBUFFER_TYPE_TIME_EXTEND || type == KBUFFER_TYPE_TIME_STAMP)
                return 2 * WORD_SIZE;

        /* A length of its own, in the second word: in that of an event, this word is counted. */
        length = read_word(record + WORD_SIZE);
        if (length > size || (*ret_is_event && length < WORD_SIZE))
                return 0;
        return WORD_SIZE +
               (*ret_is_event ? (length + WORD_SIZE - 1) / WORD_SIZE * WORD_SIZE : length);
}

size_t kernel_page_count(const uint8_t *data, size_t size, bool *ret_damaged) {
        size_t n = 0;

        *ret_damaged = false;
        while (size > 0) {
                bool is_event = false;
                size_t length = record_length(data, size, &is_event);

                if (length == 0 || length > size) {
                        *ret_damaged = true;
                        break;
                }
                data += length;
                size -= length;
                n += is_event;
        }
        return n;
}
