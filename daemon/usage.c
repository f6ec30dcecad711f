/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the daemon takes of the machine that it watches, from proc(5): systemd knows as much only
 * where it keeps accounts of the service, and its list of system calls has no getrlimit() or
 * getrusage(), which others of their kind would come with.
 */

#include "usage.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

static uint64_t read_memory(void) {
        _cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");
        uint64_t pages = 0;

        if (!f || fscanf(f, "%*u %" SCNu64, &pages) != 1)
                return 0;
        return pages * (uint64_t) sysconf(_SC_PAGESIZE);
}

static uint64_t count_descriptors(void) {
        _cleanup_closedir_ DIR *dir = opendir("/proc/self/fd");
        uint64_t n = 0;

        if (!dir)
                return 0;
        for (const struct dirent *entry; (entry = readdir(dir));)
                n += entry->d_name[0] != '.';
        return n - 1; /* that of the directory */
}

static uint64_t read_descriptors_max(void) {
        _cleanup_fclose_ FILE *f = fopen("/proc/self/limits", "re");
        char line[256];
        uint64_t n;

        while (f && fgets(line, sizeof(line), f))
                if (sscanf(line, "Max open files %" SCNu64, &n) == 1)
                        return n;
        return 0;
}

Usage usage_read(void) {
        Usage usage = {
                .memory = read_memory(),
                .descriptors = count_descriptors(),
                .descriptors_max = read_descriptors_max(),
        };
        struct timespec ts;

        if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts) >= 0)
                usage.cpu_ns = (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
        return usage;
}
