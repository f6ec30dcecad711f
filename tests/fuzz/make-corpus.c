/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Writes the seeds for all fuzzers: one directory for each below the one that is given. */

#include <fcntl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/packet.h"
#include "base/words.h"
#include "binding/keys.h"
#include "bpf/kept.h"
#include "call.h"
#include "elf-image.h"
#include "tlob-bus.h"

#define FUNCTION ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)

static int write_seed(const char *directory, const char *fuzzer, const char *name, const void *data,
                      size_t size) {
        _cleanup_close_ int fd = -EBADF;
        char path[4096];

        (void) snprintf(path, sizeof(path), "%s/%s", directory, fuzzer);
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
                return -errno;
        (void) snprintf(path, sizeof(path), "%s/%s/%s", directory, fuzzer, name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        return fd < 0 || write(fd, data, size) != (ssize_t) size ? -errno : 0;
}

static int write_elf(const char *directory) {
        ElfImage image;

        elf_image_init(&image);
        elf_image_add(&image, "with_endbr", FUNCTION, SECTION_TEXT, 0, 0x20);
        elf_image_add(&image, "plain", FUNCTION, SECTION_TEXT, 0x20, 0x10);
        elf_image_add(&image, "versioned@@V2", FUNCTION, SECTION_TEXT, 0x40, 0x10);
        elf_image_add(&image, "versioned@V1", FUNCTION, SECTION_TEXT, 0x50, 0x10);
        elf_image_add(&image, "twice", FUNCTION, SECTION_TEXT, 0x60, 8);
        elf_image_add(&image, "twice", FUNCTION, SECTION_TEXT, 0x70, 8);
        return write_seed(directory, "elf-file", "small", &image, sizeof(image));
}

static int write_cache(const char *directory) {
        struct {
                char magic[20];
                uint32_t n, strings_size, reserved[5];
                uint32_t flags, name, path, os_version;
                uint64_t hwcap;
                char strings[32];
        } cache = {
                .n = 1,
                .flags = MACHINE_CACHE_FLAGS,
                .name = 72,
                .path = 82,
                .strings = "libx.so.1\0/lib/libx.so.1",
        };

        memcpy(cache.magic, "glibc-ld.so.cache1.1", sizeof(cache.magic));
        return write_seed(directory, "library", "one-entry", &cache, sizeof(cache));
}

/* Laid over memory that is sound. */
typedef struct KeptSeed {
        KeptCommon common;
        KeptBinding bindings[2];
        KeptUnit units[3];
} KeptSeed;

/* Strings of those lengths. */
static void fill_kept(KeptSeed *seed, size_t name, size_t path) {
        for (size_t i = 0; i < ELEMENTSOF(seed->bindings); i++) {
                memset(seed->bindings[i].name, 'x', name);
                memset(seed->bindings[i].unit, 'y', name);
        }
        for (size_t i = 0; i < ELEMENTSOF(seed->units); i++) {
                memset(seed->units[i].name, 'y', name);
                memset(seed->units[i].path.path, 'z', path);
                memset(seed->units[i].spare_of.path, 'z', path);
        }
}

static int write_kept(const char *directory) {
        KeptSeed seed = {
                .common.generation = 2,
                .bindings = {
                        { 1, .places.stop = 1, .name = "a", .unit = "/a.slice/a.service" },
                        { 2, .places.stop = 2, .name = "b", .unit = "b@.service" },
                },
                .units[1] = { .name = "/a.slice/a.service", .path = { "/a.slice/a.service" } },
                .units[2] = { .name = "b@.service#1", .spare_of = { "b@.service" } },
        };
        int r;

        r = write_seed(directory, "kept", "two-bindings", &seed, sizeof(seed));
        fill_kept(&seed, sizeof(seed.units->name) - 1, sizeof(seed.units->path) - 2);
        if (r >= 0)
                r = write_seed(directory, "kept", "longest", &seed, sizeof(seed));
        fill_kept(&seed, sizeof(seed.units->name), sizeof(seed.units->path));
        return r < 0 ? r : write_seed(directory, "kept", "without-ends", &seed, sizeof(seed));
}

/* Two datagrams, as in journal-queue.c: positions, none is being sent, a length before each. */
static int write_queue(const char *directory) {
        static const uint64_t seed[] = {
                0, UINT64_C(40) << 32, 0, 5, 0, 9, 0, 0,
        };

        return write_seed(directory, "journal-queue", "two", seed, sizeof(seed));
}

static void put_site(Packet *packet, uint64_t offset) {
        packet_put_number(packet, offset);
        packet_put_string(packet, "f");
        packet_put_number(packet, 0); /* distance */
        packet_put_number(packet, 1); /* places: of an offset and a semaphore each */
        packet_put_number(packet, offset);
        packet_put_number(packet, 0);
}

/* Windows that end at a way out of the function. */
static void put_exits(Packet *packet) {
        packet_put_number(packet, TLOB_STOP_EXITS);
        packet_put_number(packet, 1); /* has_frame */
        packet_put_number(packet, 1); /* exits */
        packet_put_number(packet, 0x1f0);
        packet_put_number(packet, 1); /* returns */
        packet_put_number(packet, 0); /* switches */
        packet_put_string(packet, NULL);
        packet_put_string(packet, NULL);
        packet_put_number(packet, 0); /* no key */
}

/* Those that have a key, in a register at each of their ends. */
static void put_key(Packet *packet) {
        static const uint64_t place[] = { 0x100, ELF_ARGUMENT_REGISTER, 8, 0, 0, 112, 0, 0 };

        packet_put_number(packet, TLOB_STOP_PLACE);
        for (size_t i = 0; i < 4; i++)
                packet_put_number(packet, 0); /* has_frame, exits, returns, switches */
        packet_put_string(packet, NULL);
        packet_put_string(packet, NULL);
        packet_put_number(packet, 1); /* the argument */
        for (size_t side = 0; side < 2; side++) {
                packet_put_number(packet, 1); /* places */
                for (size_t i = 0; i < ELEMENTSOF(place); i++)
                        packet_put_number(packet, place[i]);
        }
}

/* As packet_put_resolved(), behind the kind of the answer and an error. */
static int write_answer(const char *directory, const char *name, void (*put_stop)(Packet *packet)) {
        _cleanup_free_ Packet *packet = calloc(1, sizeof(*packet));
        static const char *const names[] = { NULL, "/x", "/x", "ab" };
        uint64_t rest[] = { 0, 0, 1, 1, 1 };

        if (!packet)
                return -ENOMEM;
        packet_init(packet);
        packet->size = 1;
        packet_put_number(packet, 0);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                packet_put_string(packet, names[i]);
        for (uint64_t i = 0; i < 7; i++)
                packet_put_number(packet, i); /* identities and the stamp */
        put_site(packet, 0x100);
        put_site(packet, 0x200);
        put_stop(packet);
        packet_put_string(packet, "push rbp");
        for (size_t i = 0; i < ELEMENTSOF(rest); i++)
                packet_put_number(packet, rest[i]); /* kinds and copies */
        packet_put_number(packet, 1);               /* is_program */
        return write_seed(directory, "answer", name, packet->data, packet->size);
}

static uint8_t find_method(const char *interface, const char *name) {
        for (uint8_t i = 0; i < call_n_methods; i++)
                if (strcmp(call_methods[i].interface, interface) == 0 &&
                    (!name || strcmp(call_methods[i].name, name) == 0))
                        return i;
        abort();
}

static uint8_t find_key(const char *name) {
        for (uint8_t i = 0; binding_keys()[i]; i++)
                if (strcmp(binding_keys()[i], name) == 0)
                        return i;
        abort();
}

/* A binding of a unit is added with one more key, of any value. */
static int write_keys(const char *directory, uint8_t add) {
        const uint8_t unit = find_key("Unit");

        for (uint8_t key = 0; binding_keys()[key]; key++)
                for (uint8_t word = 0; word < call_n_words; word++) {
                        const uint8_t seed[] = {
                                23,  add,        0,   0,   STRING_NAME, 0,   8,           unit,
                                0,   STRING_RAW, 9,   'a', '.',         's', 'e',         'r',
                                'v', 'i',        'c', 'e', key,         0,   STRING_WORD, word,
                        };
                        char name[32];
                        int r;

                        (void) snprintf(name, sizeof(name), "key-%u-%u", key, word);
                        r = write_seed(directory, "bus", name, seed, sizeof(seed));
                        if (r < 0)
                                return r;
                }
        return 0;
}

/* A binding is added, and then each method called, each property read. */
static int write_calls(const char *directory) {
        const uint8_t add = find_method(TLOB_BUS_MANAGER_INTERFACE, "AddBinding");
        const uint8_t get = find_method("org.freedesktop.DBus.Properties", "Get");
        char name[32];
        int r = 0;

        for (uint8_t i = 0; i < call_n_methods && r >= 0; i++) {
                const uint8_t seed[] = { 1, add, 1, i };

                (void) snprintf(name, sizeof(name), "method-%u", i);
                r = write_seed(directory, "bus", name, seed, sizeof(seed));
        }
        for (uint8_t i = 0; i < call_n_properties && r >= 0; i++) {
                const char *interface = call_properties[i].interface;
                bool of_binding = strcmp(interface, TLOB_BUS_BINDING_INTERFACE) == 0;
                const uint8_t seed[] = { 1,
                                         add,
                                         7,
                                         get,
                                         0,
                                         of_binding,
                                         STRING_INTERFACE,
                                         find_method(interface, NULL),
                                         STRING_PROPERTY,
                                         i };

                (void) snprintf(name, sizeof(name), "property-%u", i);
                r = write_seed(directory, "bus", name, seed, sizeof(seed));
        }
        return r < 0 ? r : write_keys(directory, add);
}

static int write_texts(const char *directory) {
        static const char *const seeds[][3] = {
                { "duration", "sum", "1min 30s" },
                { "duration", "attached", "1ms1" },
                { "duration", "fraction", "1.5ms" },
                { "duration", "infinity", "infinity" },
                { "mangled-name", "cplusplus", "_ZNSt6vectorIiSaIiEE9push_backERKi" },
                { "mangled-name", "rust-legacy", "_ZN4core3fmt5write17h0123456789abcdefE" },
                { "mangled-name", "rust-v0", "_RINvNtC3std3mem8align_ofdE" },
                { "mangled-name", "rust-foreign",
                  "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y" },
                { "config", "daemon",
                  "[Daemon]\nBackend=bpf\nRateLimitIntervalSec=10s\nRateLimitBurst=20\n"
                  "RingBufferSize=64K\n" },
                { "config", "bindings",
                  "[Binding a]\nExecutable=/usr/bin/x\nStart=f+0x1c\nStop=0x12a0\nBudgetSec=5ms\n"
                  "Unit=a@b.service\n[Binding b]\nFunction=g\nSleepingBudgetSec=infinity\n"
                  "Priority=3\nEnabled=no\n" },
                { "config", "unit",
                  "[Service]\nExecStart=/bin/x \\\n y\n[X-Tlob a]\nFunction=f\nBudgetSec=5ms\n"
                  "[X-Tlob b]\nStart=f\nStop=g\nRequired=yes\n" },
                { "config", "override", "[Override x.service/a]\nBudgetSec=1h\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(seeds); i++) {
                int r = write_seed(directory, seeds[i][0], seeds[i][1], seeds[i][2],
                                   strlen(seeds[i][2]));

                if (r < 0)
                        return r;
        }
        return 0;
}

int main(int argc, char *argv[]) {
        if (argc != 2) {
                (void) fprintf(stderr, "Usage: make-corpus DIRECTORY\n");
                return 2;
        }
        return write_elf(argv[1]) < 0 || write_cache(argv[1]) < 0 || write_kept(argv[1]) < 0 ||
               write_queue(argv[1]) < 0 || write_calls(argv[1]) < 0 || write_texts(argv[1]) < 0 ||
               write_answer(argv[1], "resolved", put_exits) < 0 ||
               write_answer(argv[1], "with-key", put_key) < 0;
}
