/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From bytes of the fuzzer to a call: what they mean, and what they can make go wrong, is here. */

#include "call.h"

#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>

#include "base/cleanup.h"
#include "binding/keys.h"
#include "calls.h"
#include "tlob-bus.h"

#define DEPTH_MAX      80 /* of variants: sd-bus accepts 64 containers */
#define PROPERTIES_MAX 70
#define FREEDESKTOP    "org.freedesktop.DBus."

const CallMember call_methods[] = {
        XML_METHODS{ FREEDESKTOP "Properties", "Get", "ss" },
        { FREEDESKTOP "Properties", "GetAll", "s" },
        { FREEDESKTOP "Properties", "Set", "ssv" },
        { FREEDESKTOP "ObjectManager", "GetManagedObjects", "" },
        { FREEDESKTOP "Introspectable", "Introspect", "" },
        { FREEDESKTOP "Peer", "Ping", "" },
        { "org.tlob1.Nothing", "Nothing", "" },
};
const unsigned call_n_methods = ELEMENTSOF(call_methods);

const CallMember call_properties[] = { XML_PROPERTIES };
const unsigned call_n_properties = ELEMENTSOF(call_properties);

static const char *const names[] = { "a", "b", "c", "a.b-c_d" };

static const char *const words[] = {
        "",
        "0",
        "1us",
        "1ms",
        "infinity",
        "yes",
        "no",
        "auto",
        "fake",
        "return",
        "return-probe",
        "plain",
        "with_endbr",
        "missing",
        "plain+4",
        "0x10",
        "a.service",
        "b@.service",
        "b@1.service",
        "missing.service",
        "a.service/a",
        "/",
        "/dev/null",
        "/proc/self/exe",
        "libc.so.6",
        "../../x",
        "%s%n%s",
        "x\n[Binding evil]\nExecutable=/bin/sh",
        "\xe2\x80\xae",
        "\xed\xa0\x80",
        "\xff",
        "1000",
        "-1",
        "18446744073709551616",
};

const unsigned call_n_words = ELEMENTSOF(words);

static const char *const paths[] = {
        TLOB_BUS_PATH,
        TLOB_BUS_BINDING_PREFIX,
        TLOB_BUS_BINDING_PREFIX "/_",
        TLOB_BUS_BINDING_PREFIX "/a/b",
        TLOB_BUS_BINDING_PREFIX "/_61",
        TLOB_BUS_BINDING_PREFIX "/_00",
        TLOB_BUS_BINDING_PREFIX "/_ff_2f",
        "/",
        "/org",
        "/org/tlob1x",
};

/* Each valid for the header of a message; what the body has is another matter. */
static const char *const signatures[] = {
        "",
        "s",
        "t",
        "u",
        "v",
        "st",
        "stt",
        "tt",
        "sa{sv}t",
        "a{sv}",
        "as",
        "ss",
        "ssv",
        "g",
        "o",
        "h",
        "ay",
        "aas",
        "a(st)",
        "(s(tv))",
        "d",
        "b",
        "y",
        "nqix",
        "a{sa{sv}}",
        "sa{sv}",
        "a{ss}",
        "vvvv",
        "tttttttttttttttt",
};

uint8_t feed_byte(Feed *feed) {
        if (feed->size == 0)
                return 0;
        feed->size--;
        return *feed->data++;
}

unsigned feed_below(Feed *feed, unsigned n) {
        return feed_byte(feed) % n;
}

static uint64_t feed_number(Feed *feed, size_t n) {
        uint64_t number = 0;

        while (n-- > 0)
                number = number << 8 | feed_byte(feed);
        return number;
}

bool feed_frame(Feed *input, Feed *ret) {
        size_t n;

        if (input->size == 0)
                return false;
        n = feed_byte(input);
        n = n < input->size ? n : input->size;
        *ret = (Feed) { input->data, n };
        input->data += n;
        input->size -= n;
        return true;
}

/* A short piece, again and again: pieces of two bytes make characters that a limit cuts. */
static void write_long(Feed *feed, Wire *wire) {
        static const char *const pieces[] = { "x", "\xc3\xa9",  "\xe2\x82\xac",
                                              "/", "x\xc3\xa9", "\x01" };
        static char text[WIRE_MAX / 2];
        const char *piece = pieces[feed_below(feed, ELEMENTSOF(pieces))];
        size_t size = feed_number(feed, 2), n = strlen(piece);

        /* Mostly some hundred bytes; 64 KiB and more at times. */
        size = size % 8 == 7 ? size * 4 : size % 5000;
        for (size_t i = 0; i < size; i++)
                text[i] = piece[i % n];
        wire_string(wire, text, size / n * n);
}

static void write_string(Feed *feed, Wire *wire) {
        size_t n;

        switch (feed_below(feed, N_STRINGS)) {
        case STRING_NAME:
                wire_text(wire, names[feed_below(feed, ELEMENTSOF(names))]);
                break;
        case STRING_PROPERTY:
                wire_text(wire, call_properties[feed_below(feed, call_n_properties)].name);
                break;
        case STRING_INTERFACE:
                wire_text(wire, call_methods[feed_below(feed, call_n_methods)].interface);
                break;
        case STRING_WORD:
                wire_text(wire, words[feed_below(feed, ELEMENTSOF(words))]);
                break;
        case STRING_RAW:
                n = feed_byte(feed);
                n = n < feed->size ? n : feed->size;
                wire_string(wire, feed->data, n);
                feed->data += n;
                feed->size -= n;
                break;
        default:
                write_long(feed, wire);
        }
}

static uint64_t read_u64(Feed *feed) {
        static const uint64_t numbers[] = {
                0, 1, 2, 999, 1000, 5000000, UINT64_MAX, UINT64_MAX - 1
        };
        unsigned kind = feed_below(feed, ELEMENTSOF(numbers) + 2);

        if (kind < ELEMENTSOF(numbers))
                return numbers[kind];
        return feed_number(feed, kind == ELEMENTSOF(numbers) ? 1 : 8);
}

static void write_value(Feed *feed, Wire *wire, const char **types);

static void write_values(Feed *feed, Wire *wire, const char *types) {
        while (*types != '\0')
                write_value(feed, wire, &types);
}

static void write_deep(Feed *feed, Wire *wire) {
        for (unsigned n = feed_below(feed, DEPTH_MAX); n > 0; n--)
                wire_signature(wire, "v");
        wire_signature(wire, "s");
        wire_text(wire, "deep");
}

static void write_variant(Feed *feed, Wire *wire) {
        static const char *const types[] = { "s",  "s",  "s",    "t", "u", "b",
                                             "as", "ay", "(ss)", "g", "o", "" };
        unsigned kind = feed_below(feed, ELEMENTSOF(types) + 1);

        if (kind == ELEMENTSOF(types)) {
                write_deep(feed, wire);
                return;
        }
        wire_signature(wire, types[kind]);
        write_values(feed, wire, types[kind]);
}

static void write_property(Wire *wire, const char *key, const char *value) {
        wire_align(wire, 8);
        wire_text(wire, key);
        wire_signature(wire, "s");
        wire_text(wire, value);
}

static const char *program_of_call;

/* The keys of a binding that can be set up, and others. */
static void write_properties(Feed *feed, Wire *wire) {
        const char *const *keys = binding_keys();
        static const char *const presets[][2] = {
                { "Start", "plain+4" },
                { "Function", "return-probe" },
        };
        size_t begin = wire_array_begin(wire, 8), n_keys = 0;
        unsigned n = feed_byte(feed);

        while (keys[n_keys])
                n_keys++;
        if (n % 4 < ELEMENTSOF(presets)) {
                write_property(wire, "Executable", program_of_call);
                write_property(wire, presets[n % 4][0], "plain");
                write_property(wire, "Stop", presets[n % 4][1]);
                write_property(wire, "BudgetSec", "5ms");
        }
        for (n = n / 4 % PROPERTIES_MAX; n > 0; n--) {
                unsigned key = feed_byte(feed);

                wire_align(wire, 8);
                if (key < 128)
                        wire_text(wire, keys[key % n_keys]);
                else
                        write_string(feed, wire);
                write_variant(feed, wire);
        }
        wire_array_end(wire, begin, 8);
}

/* The length of the first complete type of a signature that is right. */
static size_t type_length(const char *types) {
        size_t n = 0;
        int depth = 0;

        do {
                while (types[n] == 'a')
                        n++;
                depth += types[n] == '(' || types[n] == '{';
                depth -= types[n] == ')' || types[n] == '}';
                n++;
        } while (depth > 0);
        return n;
}

static void write_array(Feed *feed, Wire *wire, const char *element) {
        size_t alignment = strchr("({tdx", *element) ? 8 : strchr("ygv", *element) ? 1 : 4;
        size_t begin = wire_array_begin(wire, alignment);

        for (unsigned n = feed_below(feed, 8); n > 0; n--) {
                const char *types = element;

                write_value(feed, wire, &types);
        }
        wire_array_end(wire, begin, alignment);
}

static void write_container(Feed *feed, Wire *wire, const char *type, size_t n) {
        char inner[CALL_SIGNATURE_MAX + 1];

        wire_align(wire, 8);
        memcpy(inner, type + 1, n - 2);
        inner[n - 2] = '\0';
        write_values(feed, wire, inner);
}

static void write_value(Feed *feed, Wire *wire, const char **types) {
        const char *type = *types;
        size_t n = type_length(type);

        *types += n;
        if (strncmp(type, "a{sv}", 5) == 0)
                write_properties(feed, wire);
        else if (*type == 'a')
                write_array(feed, wire, type + 1);
        else if (*type == '(' || *type == '{')
                write_container(feed, wire, type, n);
        else if (*type == 'v')
                write_variant(feed, wire);
        else if (*type == 's' || *type == 'o')
                write_string(feed, wire);
        else if (*type == 'g')
                wire_signature(wire, signatures[feed_below(feed, ELEMENTSOF(signatures))]);
        else
                wire_number(wire, read_u64(feed),
                            strchr("tdx", *type)  ? 8
                            : *type == 'y'        ? 1
                            : strchr("nq", *type) ? 2
                                                  : 4);
}

static void read_path(Feed *feed, Call *call) {
        unsigned kind = feed_below(feed, ELEMENTSOF(names) + ELEMENTSOF(paths) + 1);
        _cleanup_free_ char *path = NULL;
        const char *name = names[0];

        if (kind == 0 && !streq(call->member->interface, TLOB_BUS_BINDING_INTERFACE)) {
                strcpy(call->path, TLOB_BUS_PATH);
                return;
        }
        if (kind > ELEMENTSOF(names)) {
                strcpy(call->path, paths[kind - ELEMENTSOF(names) - 1]);
                return;
        }
        if (kind > 0)
                name = names[kind - 1];
        if (sd_bus_path_encode(TLOB_BUS_BINDING_PREFIX, name, &path) < 0)
                abort();
        strcpy(call->path, path);
}

void call_read(Feed *feed, const char *program, Call *ret) {
        program_of_call = program;
        ret->member = &call_methods[feed_below(feed, call_n_methods)];
        ret->flags = feed_byte(feed);
        read_path(feed, ret);
        ret->signature = ret->member->types;
        if (ret->flags & CALL_SIGNATURE)
                ret->signature = signatures[feed_below(feed, ELEMENTSOF(signatures))];

        wire_init(&ret->body, ret->flags & CALL_BIG);
        if (ret->flags & CALL_RAW)
                wire_bytes(&ret->body, feed->data, feed->size);
        else
                write_values(feed, &ret->body, ret->member->types);
        if (ret->flags & CALL_CUT)
                ret->body.size -= ret->body.size < 4 ? ret->body.size : ret->body.size / 4;
}
