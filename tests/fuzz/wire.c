/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The format is in the D-Bus specification, "Message Protocol": each number is aligned to its own
 * size, a struct or an entry of a dictionary to 8 bytes, counted from the beginning of the header
 * or of the body.
 */

#include "wire.h"

#include <string.h>

enum {
        FIELD_PATH = 1,
        FIELD_INTERFACE,
        FIELD_MEMBER,
        FIELD_SENDER = 7,
        FIELD_SIGNATURE,
};

void wire_init(Wire *wire, bool big) {
        wire->size = 0;
        wire->big = big;
        wire->full = false;
}

void wire_bytes(Wire *wire, const void *bytes, size_t n) {
        if (n > WIRE_MAX - wire->size) {
                wire->full = true;
                return;
        }
        if (n > 0)
                memcpy(wire->data + wire->size, bytes, n);
        wire->size += n;
}

void wire_align(Wire *wire, size_t alignment) {
        while (wire->size % alignment > 0 && !wire->full)
                wire_bytes(wire, "", 1);
}

static void put_number(uint8_t *to, uint64_t number, size_t n, bool big) {
        for (size_t i = 0; i < n; i++)
                to[i] = (uint8_t) (number >> 8 * (big ? n - 1 - i : i));
}

void wire_number(Wire *wire, uint64_t number, size_t n) {
        uint8_t bytes[8];

        put_number(bytes, number, n, wire->big);
        wire_align(wire, n);
        wire_bytes(wire, bytes, n);
}

void wire_string(Wire *wire, const void *bytes, size_t n) {
        wire_number(wire, n, 4);
        wire_bytes(wire, bytes, n);
        wire_bytes(wire, "", 1);
}

void wire_text(Wire *wire, const char *text) {
        wire_string(wire, text, strlen(text));
}

void wire_signature(Wire *wire, const char *signature) {
        wire_number(wire, strlen(signature), 1);
        wire_bytes(wire, signature, strlen(signature) + 1);
}

size_t wire_array_begin(Wire *wire, size_t alignment) {
        size_t begin;

        wire_number(wire, 0, 4);
        begin = wire->size;
        wire_align(wire, alignment);
        return begin;
}

void wire_array_end(Wire *wire, size_t begin, size_t alignment) {
        size_t first = (begin + alignment - 1) / alignment * alignment;

        if (begin >= 4 && wire->size >= first)
                put_number(wire->data + begin - 4, wire->size - first, 4, wire->big);
}

static void put_field(Wire *wire, uint8_t field, const char *type, const char *value) {
        if (!value)
                return;
        wire_align(wire, 8);
        wire_number(wire, field, 1);
        wire_signature(wire, type);
        if (*type == 'g')
                wire_signature(wire, value);
        else
                wire_text(wire, value);
}

void wire_header(Wire *wire, const WireHeader *header, size_t body_size) {
        size_t fields;

        wire_bytes(wire, wire->big ? "B" : "l", 1);
        wire_number(wire, header->type, 1);
        wire_number(wire, header->flags, 1);
        wire_number(wire, 1, 1);
        wire_number(wire, body_size, 4);
        wire_number(wire, header->serial, 4);
        fields = wire_array_begin(wire, 8);
        put_field(wire, FIELD_PATH, "o", header->path);
        put_field(wire, FIELD_INTERFACE, "s", header->interface);
        put_field(wire, FIELD_MEMBER, "s", header->member);
        put_field(wire, FIELD_SENDER, "s", header->sender);
        put_field(wire, FIELD_SIGNATURE, "g", header->signature);
        wire_array_end(wire, fields, 8);
        wire_align(wire, 8);
}
