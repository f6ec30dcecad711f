/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The memory of kept.h: a header that describes itself, and arrays. Nobody else can write it,
 * but a daemon of another version may have, or one with a defect: all of it is checked before any
 * of it is handed out, and what does not fit is not looked at. It is sealed, so that its size stays
 * what it was when it was checked. A map has one size all its life.
 *
 * A daemon can be killed between any two stores. So the last byte of a string is never anything but
 * zero: one that was being written at that moment has an end, too.
 */

#include "bpf/kept.h"

#include <bpf/bpf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "bpf/opts.h"
#include "sealed-memory.h"

/* To be raised with each change of the structs in kept.h. */
#define VERSION 9

/* Of each binding: of the past, of the base, and of builds. */
#define N_HISTOGRAMS (2 + PAST_N_BUILDS)

static size_t size_of(const KeptFormat *format) {
        return sizeof(KeptCommon) +
               format->bindings_max * (sizeof(KeptBinding) + N_HISTOGRAMS * sizeof(Histogram)) +
               (format->bindings_max + 1) * sizeof(KeptUnit);
}

/* NULL: errno says why. */
static KeptCommon *map(const Kept *kept) {
        void *memory = mmap(NULL, kept->size, PROT_READ | PROT_WRITE, MAP_SHARED, kept->fd, 0);

        return memory == MAP_FAILED ? NULL : memory;
}

static void find_parts(Kept *kept) {
        size_t n = kept->common->format.bindings_max;

        kept->bindings = (KeptBinding *) (kept->common + 1);
        kept->units = (KeptUnit *) (kept->bindings + n);
        kept->past_lengths = (Histogram *) (kept->units + n + 1);
        kept->base_lengths = kept->past_lengths + n;
        kept->build_lengths = kept->base_lengths + n;
}

static int make_file(size_t size) {
        return sealed_memory_new("tlob-kept", size);
}

typedef uint64_t Word;

_Static_assert(sizeof(KeptCommon) % sizeof(Word) == 0 && sizeof(KeptBinding) % sizeof(Word) == 0 &&
                       sizeof(KeptUnit) % sizeof(Word) == 0 &&
                       sizeof(Histogram) % sizeof(Word) == 0,
               "the memory is made of words");

static int make_map(size_t size) {
        struct bpf_map_create_opts options;
        int fd;

        opts_init(&options);
        options.map_flags = BPF_F_MMAPABLE;
        fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "tlob_kept", sizeof(uint32_t), sizeof(Word),
                            (uint32_t) (size / sizeof(Word)), &options);
        return fd < 0 ? -errno : fd;
}

static int make(const KeptFormat *format, int (*make_memory)(size_t size), Kept **ret) {
        _cleanup_(kept_freep) Kept *kept = NULL;

        kept = calloc(1, sizeof(*kept));
        if (!kept)
                return -ENOMEM;
        kept->size = size_of(format);
        kept->fd = make_memory(kept->size);
        if (kept->fd < 0)
                return kept->fd;
        kept->common = map(kept);
        if (!kept->common)
                return -errno;
        kept->common->format = *format;
        kept->common->format.version = VERSION;
        find_parts(kept);
        *ret = TAKE_PTR(kept);
        return 0;
}

int kept_new(const KeptFormat *format, Kept **ret) {
        return make(format, make_file, ret);
}

int kept_new_map(const KeptFormat *format, Kept **ret) {
        return make(format, make_map, ret);
}

/* Of a size that its own format demands: whoever has written it. */
static bool format_is_sound(const KeptFormat *format, size_t size) {
        return format->version == VERSION && format->bindings_max <= KEPT_BINDINGS_MAX &&
               size == size_of(format);
}

/* Sites count on from there, and TLOB_COOKIE_WIDE is above all that they come to. */
static bool generations_are_sound(const KeptCommon *common) {
        return common->generation <= UINT64_MAX / 2 &&
               common->site_generation[0] <= UINT32_MAX / 4 &&
               common->site_generation[1] <= UINT32_MAX / 4;
}

/* Strings in their order in the memory. */
typedef struct Strings {
        const Kept *kept;
        off_t data; /* nothing was ever written between the last string and this */
} Strings;

/*
 * Where nothing was written there are zeros; to look at them would take memory. That of a map is
 * there from the beginning.
 */
static bool is_written(Strings *strings, const char *string) {
        off_t begin = string - (const char *) strings->kept->common;

        if (begin > strings->data)
                strings->data = lseek(strings->kept->fd, begin, SEEK_DATA);
        if (strings->data < 0)
                strings->data = errno == ENXIO ? (off_t) strings->kept->size : begin;
        return begin >= strings->data;
}

static bool has_end(Strings *strings, const char *string, size_t size) {
        return !is_written(strings, string) || strnlen(string, size) < size;
}

static bool ids_are_sound(Strings *strings, const KeptBinding *binding) {
        bool sound = has_end(strings, binding->build_id, sizeof(binding->build_id));

        for (size_t i = 0; sound && i < PAST_N_BUILDS; i++)
                sound = has_end(strings, binding->build_ids[i], sizeof(binding->build_ids[i]));
        return sound && has_end(strings, binding->told_of, sizeof(binding->told_of));
}

static bool items_are_sound(const Kept *kept) {
        size_t n = kept->common->format.bindings_max;
        Strings strings = { .kept = kept };
        bool sound = true;

        for (size_t i = 0; sound && i < n; i++) {
                const KeptBinding *binding = &kept->bindings[i];

                sound = ids_are_sound(&strings, binding) &&
                        has_end(&strings, binding->name, sizeof(binding->name)) &&
                        has_end(&strings, binding->unit, sizeof(binding->unit));
        }
        for (size_t i = 0; sound && i < n + 1; i++) {
                const KeptUnit *unit = &kept->units[i];

                sound = has_end(&strings, unit->name, sizeof(unit->name)) &&
                        has_end(&strings, unit->path.path, sizeof(unit->path.path)) &&
                        has_end(&strings, unit->spare_of.path, sizeof(unit->spare_of.path));
        }
        return sound;
}

/* Finds the parts of what is mapped. */
static bool check(Kept *kept) {
        if (!format_is_sound(&kept->common->format, kept->size) ||
            !generations_are_sound(kept->common))
                return false;
        find_parts(kept);
        return items_are_sound(kept);
}

/* 0: it is no such map. What only looks like one, to who asks as if it were, cannot be mapped. */
static size_t size_of_map(int fd) {
        struct bpf_map_info info = {};
        uint32_t length = sizeof(info);

        if (bpf_obj_get_info_by_fd(fd, &info, &length) < 0 || info.type != BPF_MAP_TYPE_ARRAY ||
            info.value_size != sizeof(Word) || !(info.map_flags & BPF_F_MMAPABLE))
                return 0;
        return info.max_entries * sizeof(Word);
}

/* 0: it is nothing that could be ours. */
static size_t size_of_memory(int fd) {
        struct stat st;

        if (!sealed_memory_is(fd))
                return size_of_map(fd);
        return fstat(fd, &st) < 0 ? 0 : (size_t) st.st_size;
}

int kept_inherit(int fd, Kept **ret) {
        _cleanup_free_ Kept *kept = NULL;
        size_t size = size_of_memory(fd);

        if (size < sizeof(KeptCommon))
                return -ESTALE;
        kept = calloc(1, sizeof(*kept));
        if (!kept)
                return -ENOMEM;
        kept->fd = fd;
        kept->size = size;
        kept->common = map(kept);
        if (!kept->common)
                return -errno;
        if (!check(kept)) {
                (void) munmap(kept->common, kept->size);
                return -ESTALE;
        }
        *ret = TAKE_PTR(kept);
        return 0;
}

Kept *kept_free(Kept *kept) {
        if (!kept)
                return NULL;
        if (kept->common)
                (void) munmap(kept->common, kept->size);
        safe_close(kept->fd);
        free(kept);
        return NULL;
}

bool kept_is_same(const KeptBinding *a, const KeptBinding *b) {
        return a->name[0] != '\0' && streq(a->name, b->name) && streq(a->unit, b->unit);
}

bool kept_has_same_keys(const KeptBinding *a, const KeptBinding *b) {
        return a->keys == b->keys && kept_is_same(a, b);
}

/* FNV-1a */
uint64_t kept_hash(const void *data, size_t size) {
        const uint8_t *bytes = data;
        uint64_t hash = UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < size; i++)
                hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
        return hash;
}
