/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Hooks and live patches write a jump of their own over code in memory. Under a probe there, the
 * kernel would execute the instruction that the file has, and go on behind it, in the middle of
 * the jump: a crash. So the processes that run are looked at before there are probes. One that
 * writes there later has read the breakpoint first, as anybody can who looks.
 *
 * A process that is older than what is in the file may only have kept what was there before. On an
 * overlay it runs another file then, in which there will be no probes.
 */

#include "file/patches.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "elf/changed-code.h"
#include "elf/probe-kind.h"
#include "elf/read.h"
#include "file/processes.h"
#include "task-begin.h"

#define PROCESSES_MAX 16     /* who hooks one process of a unit hooks all */
#define LINES_MAX     100000 /* of all of them: a user can have any number of mappings */

typedef struct Search {
        const BindingResolved *resolved;
        int file_fd;
        unsigned n_processes;
        unsigned n_lines;
        Patch found; /* pid 0: nothing yet */
} Search;

/* A piece of the file, in a process that has it as code. */
typedef struct Piece {
        const FileMapping *mapping;
        uint32_t pid;
        int memory_fd;
} Piece;

static bool is_patched(const Search *search, const Piece *piece, uint64_t offset) {
        uint8_t file[PROBE_CODE_MAX], memory[PROBE_CODE_MAX];
        ssize_t n, n_there;

        n = elf_read(search->file_fd, file, sizeof(file), offset);
        if (n <= 0)
                return false;
        n_there = elf_read(piece->memory_fd, memory, (size_t) n,
                           piece->mapping->begin + offset - piece->mapping->offset);
        return n_there > 0 && code_is_changed(file, memory, (size_t) n_there);
}

static void look_at_place(Search *search, const Piece *piece, uint64_t offset) {
        const FileMapping *mapping = piece->mapping;

        if (search->found.pid == 0 && offset >= mapping->offset &&
            offset - mapping->offset < mapping->end - mapping->begin &&
            is_patched(search, piece, offset))
                search->found = (Patch) { .pid = piece->pid, .offset = offset };
}

static void look_at_site(Search *search, const Piece *piece, const ElfSite *site) {
        if (site->n_places == 0)
                look_at_place(search, piece, site->offset);
        for (size_t i = 0; i < site->n_places; i++)
                look_at_place(search, piece, site->places[i].offset);
}

static void look_at_piece(Search *search, const Piece *piece) {
        const BindingSites *sites = &search->resolved->sites;

        look_at_site(search, piece, &sites->start);
        if (sites->how == TLOB_STOP_PLACE)
                look_at_site(search, piece, &sites->stop);
        for (size_t i = 0; i < sites->exits.n; i++)
                look_at_place(search, piece, sites->exits.offsets[i]);
}

/* Where that is forbidden, to try it would be in the log of the kernel. */
static int open_memory(uint32_t pid) {
        char path[64];

        if (geteuid() != 0 && (pid_t) pid != getpid())
                return -EPERM;
        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/mem", pid);
        return open(path, O_RDONLY | O_CLOEXEC);
}

/* When it was started, since the epoch. */
static uint64_t start_of(uint32_t pid) {
        uint64_t begin_ns;

        if (task_read_begin(pid, &begin_ns) < 0)
                return UINT64_MAX;
        return clock_read_ns(CLOCK_REALTIME) - (clock_read_ns(CLOCK_BOOTTIME) - begin_ns);
}

static void look_at_maps(Search *search, uint32_t pid, FILE *maps, int memory_fd) {
        _cleanup_free_ char *line = NULL;
        FileMapping mapping;
        size_t size = 0;

        while (search->found.pid == 0 && search->n_lines++ < LINES_MAX &&
               getline(&line, &size, maps) > 0)
                if (file_parse_mapping(line, &mapping) && mapping.is_code &&
                    mapped_identity_equal(&mapping.identity, &search->resolved->mapped))
                        look_at_piece(search, &(Piece) { &mapping, pid, memory_fd });
}

static void judge_by_age(Search *search) {
        const FileStamp *stamp = &search->resolved->stamp;
        uint64_t start_ns = start_of(search->found.pid);

        search->found.is_outdated = stamp->mtime_ns > start_ns;
        if (stamp->born_ns > start_ns)
                search->found = (Patch) {};
}

/*
 * One that has ended, or keeps who it is to itself, has nothing to be found; nor has one that
 * executes another program meanwhile, whose memory is not the one that was opened first.
 */
static int look_at_process(uint32_t pid, void *userdata) {
        _cleanup_close_ int memory_fd = open_memory(pid);
        _cleanup_fclose_ FILE *maps = memory_fd >= 0 ? process_open_file(pid, "maps") : NULL;
        Search *search = userdata;

        if (maps)
                look_at_maps(search, pid, maps, memory_fd);
        if (search->found.pid > 0)
                judge_by_age(search);
        return search->found.pid > 0 || ++search->n_processes >= PROCESSES_MAX;
}

int patches_find(const Binding *binding, int file_fd, Patch *ret) {
        Search search = { .resolved = &binding->resolved, .file_fd = file_fd };
        uint32_t first = binding->view.container_pid ?: binding->view.main_pid;
        int r;

        /* Without it, anything that is no file would count. */
        if (search.resolved->mapped.inode == 0)
                return 0;
        if (first > 0)
                (void) look_at_process(first, &search);
        if (search.found.pid == 0 && binding->cgroup.path) {
                r = processes_of_cgroup(binding->cgroup.path, look_at_process, &search);
                if (r == -ENOMEM)
                        return r;
        }
        *ret = search.found;
        return search.found.pid > 0;
}
