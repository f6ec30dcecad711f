/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BPF_KEPT_H
#define BPF_KEPT_H

#include <stdint.h>

#include "backend/backend.h"
#include "base/cleanup.h"
#include "base/histogram.h"
#include "bpf/layout.h"
#include "report/past.h"
#include "report/statistics.h"

/*
 * What a daemon leaves to the next one, beside what is pinned: which binding is at which index of
 * the maps, and which unit. It is memory without a file, or a map if that is to be pinned, written
 * as things change, so that it is right whenever the daemon is killed. Who has its descriptor, and
 * that of the pins, can go on where this one stood: probes, maps, open windows and unread records
 * are all there.
 */

#define KEPT_NAME_MAX     384   /* with a zero at the end */
#define KEPT_BUILD_ID_MAX 136   /* the same */
#define KEPT_BINDINGS_MAX 65536 /* as many as BindingsMax= may allow */

/* Where a binding measures. */
typedef struct KeptPlaces {
        uint64_t device;
        uint64_t inode;
        uint64_t size; /* with mtime_ns: the file as it was then */
        uint64_t mtime_ns;
        uint64_t start;      /* offset */
        uint64_t stops;      /* hash over offsets */
        uint8_t stop;        /* enum tlob_stop */
        uint8_t start_event; /* TraceEventKind */
        uint8_t stop_event;
        uint8_t key; /* the number of the argument, and its size above that; 0: none */
        uint32_t has_frame;
} KeptPlaces;

typedef struct KeptBinding {
        uint64_t generation; /* 0: none */
        KeptPlaces places;
        uint64_t keys;      /* hash over the keys that name these places */
        Counters base;      /* what was counted at the last reset */
        BindingLimit limit; /* as the daemon has last noted it */
        Statistics past;    /* the same */
        uint32_t has_past_lengths;
        uint32_t has_base_lengths;
        char build_id[KEPT_BUILD_ID_MAX]; /* of the file where it measures; "": unknown */
        char build_ids[PAST_N_BUILDS][KEPT_BUILD_ID_MAX]; /* of the past; "": none */
        char told_of[KEPT_BUILD_ID_MAX];                  /* the same */
        char name[KEPT_NAME_MAX]; /* "": it is nobody's of the next daemon, as those of users */
        char unit[KEPT_NAME_MAX]; /* as configured; "": none */
} KeptBinding;

typedef struct KeptUnit {
        char name[KEPT_NAME_MAX]; /* "": none */
        struct tlob_unit_path path;
        struct tlob_unit_path spare_of;
} KeptUnit;

/*
 * What must be the same in both daemons, but for the programs; else nothing can be taken over. With
 * the same books, what was counted goes on nevertheless: carried.h.
 */
typedef struct KeptFormat {
        uint32_t version;
        uint32_t mode;     /* DeadlineMode */
        uint64_t layout;   /* of maps: layout-hash.h */
        uint64_t books;    /* the same of books */
        uint64_t programs; /* hash over the object file; hooks of others are replaced */
        uint32_t bindings_max;
        uint32_t tasks_max;
        uint64_t ring_buffer_size;
        uint32_t stack_from_task;
        uint32_t allowed_mode; /* DeadlineMode=, which mode may be worse than */
} KeptFormat;

typedef struct KeptCommon {
        KeptFormat format;
        uint64_t generation;         /* of bindings, the last one */
        uint32_t site_generation[2]; /* the same of sites, of starts and of stops */
        uint32_t is_complete;        /* no binding needs probes of the daemon before any more */
        uint32_t taking;             /* the record that is being told: see ring_note_taking() */
        uint64_t lost;               /* reports; as far as the daemon has told it */
        uint64_t unwritten;          /* journal entries that end with the daemon */
} KeptCommon;

typedef struct Kept {
        int fd;
        size_t size;
        KeptCommon *common;
        KeptBinding *bindings;    /* bindings_max */
        KeptUnit *units;          /* one more */
        Histogram *past_lengths;  /* bindings_max; those of the past */
        Histogram *base_lengths;  /* bindings_max; those of the base */
        Histogram *build_lengths; /* PAST_N_BUILDS for each of bindings_max */
} Kept;

/* Empty. format: of at most KEPT_BINDINGS_MAX bindings. Returns 0 or a negative errno. */
int kept_new(const KeptFormat *format, Kept **ret);

/* The same as a BPF map, which can be pinned, and takes all of its memory at once. */
int kept_new_map(const KeptFormat *format, Kept **ret);

/*
 * That of a predecessor, by a descriptor that becomes its own. All strings in it have an end, and
 * the arrays the size that the format says; whether the rest of the format fits is for the caller
 * to find out, and so are units and bindings that are not there. Returns 0, -ESTALE if it has
 * another format or is not sound, another negative errno; then fd stays the caller's.
 */
int kept_inherit(int fd, Kept **ret);
Kept *kept_free(Kept *kept);
DEFINE_CLEANUP(Kept, kept_free);

/* The same binding, perhaps at other places? */
bool kept_is_same(const KeptBinding *a, const KeptBinding *b);

/* The same binding, and its keys have not changed, though they may name places in another file? */
bool kept_has_same_keys(const KeptBinding *a, const KeptBinding *b);

uint64_t kept_hash(const void *data, size_t size);

#endif
