/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * BPF links, programs, maps and types by their numbers, which the kernel does not soon give to
 * others, and the uprobes of tracefs. tlobd may run on this machine, and other tests: what they
 * make has other numbers.
 */

#include "kernel.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "faults.h"

#define WAIT_NS     UINT64_C(10000000000)
#define PAUSE_NS    2000000
#define OBJECTS_MAX 4096
#define TEXT_SIZE   512

typedef enum Kind {
        KIND_LINK,
        KIND_PROGRAM,
        KIND_MAP,
        KIND_TYPES,
        KIND_NONE,
} Kind;

typedef struct Object {
        Kind kind;
        uint32_t id;
        char name[BPF_OBJ_NAME_LEN];
} Object;

/* In memory that is shared. */
typedef struct Made {
        uint32_t n;
        Object items[OBJECTS_MAX];
} Made;

static Made *made;
static uint32_t n_marked;
static unsigned n_loads;
static unsigned n_events;

static Kind kind_of(long command) {
        switch (command) {
        case BPF_LINK_CREATE:
        case BPF_RAW_TRACEPOINT_OPEN:
                return KIND_LINK;
        case BPF_PROG_LOAD:
                return KIND_PROGRAM;
        case BPF_MAP_CREATE:
                return KIND_MAP;
        case BPF_BTF_LOAD:
                return KIND_TYPES;
        default:
                return KIND_NONE;
        }
}

static Object describe(Kind kind, int fd) {
        union {
                struct bpf_link_info link;
                struct bpf_prog_info program;
                struct bpf_map_info map;
                struct bpf_btf_info types;
        } info = {};
        static const uint32_t sizes[] = {
                [KIND_LINK] = sizeof(info.link),
                [KIND_PROGRAM] = sizeof(info.program),
                [KIND_MAP] = sizeof(info.map),
                [KIND_TYPES] = sizeof(info.types),
        };
        Object object = { .kind = kind };
        uint32_t size = sizes[kind];

        if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
                abort();
        switch (kind) {
        case KIND_LINK:
                object.id = info.link.id;
                (void) snprintf(object.name, sizeof(object.name), "type %u of %u", info.link.type,
                                info.link.prog_id);
                break;
        case KIND_PROGRAM:
                object.id = info.program.id;
                memcpy(object.name, info.program.name, sizeof(object.name));
                break;
        case KIND_MAP:
                object.id = info.map.id;
                memcpy(object.name, info.map.name, sizeof(object.name));
                break;
        default:
                object.id = info.types.id;
        }
        return object;
}

static void on_bpf(long command, int fd) {
        Kind kind = kind_of(command);
        uint32_t i;

        if (kind == KIND_NONE)
                return;
        n_loads += kind == KIND_PROGRAM;
        i = __atomic_fetch_add(&made->n, 1, __ATOMIC_RELAXED);
        if (i >= OBJECTS_MAX)
                abort();
        made->items[i] = describe(kind, fd);
}

static unsigned count_events(void) {
        _cleanup_fclose_ FILE *f = fopen("/sys/kernel/tracing/uprobe_events", "re");
        char line[4096];
        unsigned n = 0;

        while (f && fgets(line, sizeof(line), f))
                n++;
        return n;
}

void kernel_note(void) {
        made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (made == MAP_FAILED)
                abort();
        n_events = count_events();
        fault_on_bpf(on_bpf);
}

void kernel_forget(void) {
        made->n = 0;
}

/*
 * Not by opening it: who gets a descriptor of an array of programs and closes it, while the kernel
 * has yet to clear that because its last descriptor was closed, makes it stay for ever (Linux 6.18,
 * prog_array_map_clear(): two references, and one work item).
 */
static bool is_there(const Object *object) {
        static int (*const next[])(uint32_t id, uint32_t *ret_next) = {
                [KIND_LINK] = bpf_link_get_next_id,
                [KIND_PROGRAM] = bpf_prog_get_next_id,
                [KIND_MAP] = bpf_map_get_next_id,
                [KIND_TYPES] = bpf_btf_get_next_id,
        };
        uint32_t id;

        return next[object->kind](object->id - 1, &id) == 0 && id == object->id;
}

/* The order stays: what was made last is at the end. */
static void forget_gone(void) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < made->n; i++)
                if (is_there(&made->items[i]))
                        made->items[n++] = made->items[i];
        made->n = n;
}

static const char *describe_from(uint32_t first) {
        static const char *const names[] = { "link", "program", "map", "types" };
        static char text[TEXT_SIZE];
        size_t length = 0;

        for (uint32_t i = first; i < made->n && length < TEXT_SIZE; i++)
                length += (size_t) snprintf(text + length, TEXT_SIZE - length, "%s%s %u (%s)",
                                            i > first ? ", " : "", names[made->items[i].kind],
                                            made->items[i].id, made->items[i].name);
        return text;
}

/* What is there beyond the first max; what is on its way out has some time for that. */
static const char *look_beyond(uint32_t max) {
        static const struct timespec pause = { .tv_nsec = PAUSE_NS };
        uint64_t end_ns = now_ns() + WAIT_NS;

        for (forget_gone(); made->n > max && now_ns() < end_ns; forget_gone())
                (void) nanosleep(&pause, NULL);
        if (made->n > max)
                return describe_from(max);
        return count_events() > n_events ? "uprobes in uprobe_events" : NULL;
}

void kernel_mark(void) {
        forget_gone();
        n_marked = made->n;
}

const char *kernel_surplus(void) {
        return look_beyond(n_marked);
}

unsigned kernel_count_loads(void) {
        return n_loads;
}

const char *kernel_leftovers(void) {
        return look_beyond(0);
}
