/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Finds the functions that unwind the stack, in the C and C++ libraries of this machine, and sets
 * probes on them: a microsecond for each longjmp() and each exception, which only those pay who are
 * measured. A process is told when its first window begins (process.bpf.h). What it leaves until
 * its probes are set, some milliseconds later, is seen by the stack pointer and the return address
 * (frame.bpf.h): so is what a process does with other libraries than these, or that is linked
 * statically. When there are too many processes, or too many new ones (crowd.h), the probes are in
 * all of the machine until none is left.
 *
 * Which windows a call ends is decided by the program on them (unwind.bpf.h). It may be run twice
 * for one.
 */

#include "bpf/unwind.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/io.h"
#include "elf/file.h"
#include "elf/library.h"

/* In the cookie: UNWIND_LANDING and UNWIND_LONGJMP in unwind.bpf.h. */
typedef enum UnwindKind {
        UNWIND_LANDING,
        UNWIND_LONGJMP,
        UNWIND_N_KINDS,
} UnwindKind;

#define NAMES_MAX  4
#define PLACES_MAX 8

static const char *const names[UNWIND_N_KINDS][NAMES_MAX] = {
        [UNWIND_LANDING] = { "__cxa_begin_catch", "_Unwind_Resume" },
        [UNWIND_LONGJMP] = { "longjmp", "_longjmp", "siglongjmp", "__longjmp_chk" },
};

/* The functions of one kind in one library. */
typedef struct UnwindPlace {
        char *path;
        int fd;
        UnwindKind kind;
        uint64_t offsets[NAMES_MAX];
        size_t n_offsets;
        Uprobe *uprobe; /* in all processes */
} UnwindPlace;

typedef struct UnwindProcess {
        uint32_t tgid;
        uint32_t round; /* when it was told last */
        bool is_owned;  /* see unwind_table_add_process() */
        size_t n_uprobes;
        Uprobe *uprobes[PLACES_MAX];
} UnwindProcess;

void unwind_table_init(UnwindTable *table, const UnwindSpec *spec) {
        /* Processes that were told to a predecessor are told anew. */
        *table = (UnwindTable) { .spec = *spec, .last_epoch = *spec->epoch };
}

/* Most of these names stand for the same function. */
static size_t find_offsets(ElfFile *elf, UnwindKind kind, uint64_t offsets[static NAMES_MAX]) {
        size_t n = 0;

        for (size_t i = 0; i < NAMES_MAX && names[kind][i]; i++) {
                _cleanup_(elf_site_done) ElfSite site = {};
                bool known = false;

                if (elf_file_resolve(elf, names[kind][i], &site, NULL) < 0)
                        continue;
                for (size_t j = 0; j < n; j++)
                        known = known || offsets[j] == site.offset;
                if (!known)
                        offsets[n++] = site.offset;
        }
        return n;
}

static int add_place(UnwindTable *table, ElfFile *elf, UnwindKind kind) {
        UnwindPlace place = { .kind = kind }, *places;

        place.n_offsets = find_offsets(elf, kind, place.offsets);
        if (place.n_offsets == 0 || table->n_places == PLACES_MAX)
                return 0;
        places = reallocarray(table->places, table->n_places + 1, sizeof(*places));
        if (!places)
                return -ENOMEM;
        table->places = places;
        place.path = strdup(elf_file_path(elf));
        place.fd = place.path ? fcntl(elf_file_fd(elf), F_DUPFD_CLOEXEC, 3) : -EBADF;
        if (place.fd < 0) {
                free(place.path);
                return -ENOMEM;
        }
        places[table->n_places++] = place;
        return 0;
}

static int add_library(UnwindTable *table, const char *name) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_free_ char *path = NULL;
        int r;

        r = library_find(name, NULL, &path);
        if (r >= 0)
                r = elf_file_open(path, &elf, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        for (UnwindKind kind = 0; r >= 0 && kind < UNWIND_N_KINDS; kind++)
                r = add_place(table, elf, kind);
        return r;
}

static void narrow(UnwindTable *table) {
        for (size_t i = 0; i < table->n_places; i++)
                detacher_push(table->spec.detacher, TAKE_PTR(table->places[i].uprobe));
        table->is_wide = false;
        table->crowd = (Crowd) {};
}

static void forget_places(UnwindTable *table) {
        narrow(table);
        for (size_t i = 0; i < table->n_places; i++) {
                safe_close(table->places[i].fd);
                free(table->places[i].path);
        }
        free(table->places);
        table->places = NULL;
        table->n_places = 0;
}

static int find_places(UnwindTable *table) {
        static const char *const libraries[] = {
                "libc.so.6",
                "libgcc_s.so.1",
                "libstdc++.so.6",
                "libc++abi.so.1",
        };

        for (size_t i = 0; i < ELEMENTSOF(libraries); i++) {
                int r = add_library(table, libraries[i]);

                if (r < 0) {
                        forget_places(table);
                        return r;
                }
        }
        return 0;
}

/* Is it still the file at its path? Else processes that begin now have another. */
static bool place_is_current(const UnwindPlace *place) {
        struct stat then, now;

        return fstat(place->fd, &then) >= 0 && stat(place->path, &now) >= 0 &&
               stat_is_of_same_file(&then, &now);
}

/* pid: as in UprobeSpec. */
static Uprobe *attach(const UnwindTable *table, const UnwindPlace *place, uint32_t pid) {
        UprobeSpec spec = {
                .prog_fd = table->spec.prog_fd,
                .multi = table->spec.multi,
                .pins = table->spec.pins,
                .file_fd = place->fd,
                .offsets = place->offsets,
                .n_offsets = place->n_offsets,
                .cookie = place->kind,
                .pid = pid,
        };
        Uprobe *uprobe;

        return uprobe_attach(&spec, &uprobe) >= 0 ? uprobe : NULL;
}

static void widen(UnwindTable *table) {
        for (size_t i = 0; i < table->n_places; i++)
                table->places[i].uprobe = attach(table, &table->places[i], 0);
        table->is_wide = true;
}

/* Libraries that were replaced since are found anew. A process keeps the probes that it has. */
static int refresh_places(UnwindTable *table) {
        bool current = table->n_places > 0, wide = table->is_wide;
        int r;

        for (size_t i = 0; i < table->n_places; i++)
                current = current && place_is_current(&table->places[i]);
        if (current)
                return 0;
        forget_places(table);
        r = find_places(table);
        if (r >= 0 && wide)
                widen(table);
        return r;
}

int unwind_table_join(UnwindTable *table) {
        int r;

        if (table->n_users++ > 0)
                return 0;
        r = find_places(table);
        if (r < 0) {
                table->n_users = 0;
                return r;
        }
        if (!table->spec.by_process) {
                widen(table);
                return 0;
        }
        if (++table->last_epoch == 0)
                table->last_epoch = 1;
        __atomic_store_n(table->spec.epoch, table->last_epoch, __ATOMIC_RELAXED);
        return 0;
}

/* is_alive: it may be hitting its probes. */
static void remove_process(UnwindTable *table, UnwindProcess *process, bool is_alive) {
        for (size_t i = 0; i < process->n_uprobes; i++)
                if (is_alive)
                        detacher_push(table->spec.detacher, process->uprobes[i]);
                else
                        uprobe_drop(process->uprobes[i]);
        table->n_owned -= process->is_owned;
        *process = table->processes[--table->n_processes];
        if (table->n_processes == 0 && table->is_wide)
                narrow(table);
}

/* Its exit need not be told any more, and if its id becomes another's, that is to be told anew. */
static void forget_process(UnwindTable *table, UnwindProcess *process) {
        (void) bpf_map_delete_elem(table->spec.processes_fd, &process->tgid);
        remove_process(table, process, true);
}

void unwind_table_leave(UnwindTable *table) {
        if (--table->n_users > 0)
                return;
        __atomic_store_n(table->spec.epoch, 0, __ATOMIC_RELAXED);
        while (table->n_processes > 0)
                forget_process(table, &table->processes[table->n_processes - 1]);
        free(table->processes);
        table->processes = NULL;
        forget_places(table);
}

void unwind_table_done(UnwindTable *table) {
        if (table->n_users > 0) {
                table->n_users = 1;
                unwind_table_leave(table);
        }
}

static UnwindProcess *find_process(const UnwindTable *table, uint32_t tgid) {
        for (size_t i = 0; i < table->n_processes; i++)
                if (table->processes[i].tgid == tgid)
                        return &table->processes[i];
        return NULL;
}

static void admit(UnwindTable *table, UnwindProcess *process,
                  const struct tlob_process_record *record) {
        if (!process->is_owned && !table->is_wide &&
            crowd_is_too_large(&table->crowd, table->n_processes - table->n_owned, record))
                widen(table);
        /* 0 would mean all. */
        if (table->is_wide || record->pid == 0)
                return;
        for (size_t i = 0; i < table->n_places; i++) {
                Uprobe *uprobe = attach(table, &table->places[i], record->pid);

                if (uprobe)
                        process->uprobes[process->n_uprobes++] = uprobe;
        }
}

/* For want of memory its windows are looked after without probes. */
void unwind_table_add_process(UnwindTable *table, const struct tlob_process_record *record) {
        UnwindProcess *process = find_process(table, record->tgid);
        Crowd *crowd = &table->owned_crowds[record->unit % OWNED_CROWDS];
        bool is_owned = record->unit != 0;

        if (table->n_users == 0)
                return;
        if (!process) {
                /* Else the next look at all processes would take it for the machine's own. */
                if (is_owned && crowd_is_too_large(crowd, table->n_owned + 1, record)) {
                        (void) bpf_map_delete_elem(table->spec.processes_fd, &record->tgid);
                        return;
                }
                if (refresh_places(table) < 0)
                        return;
                process = reallocarray(table->processes, table->n_processes + 1, sizeof(*process));
                if (!process)
                        return;
                table->processes = process;
                process += table->n_processes++;
                *process = (UnwindProcess) { .tgid = record->tgid, .is_owned = is_owned };
                table->n_owned += is_owned;
                admit(table, process, record);
        }
        process->round = table->round;
}

void unwind_table_remove_process(UnwindTable *table, uint32_t tgid) {
        UnwindProcess *process = find_process(table, tgid);

        if (process)
                remove_process(table, process, false);
}

void unwind_table_begin_round(UnwindTable *table) {
        table->round++;
}

void unwind_table_end_round(UnwindTable *table) {
        for (size_t i = table->n_processes; i-- > 0;)
                if (table->processes[i].round != table->round)
                        forget_process(table, &table->processes[i]);
}
