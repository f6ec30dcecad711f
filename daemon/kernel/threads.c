/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Threads that could be in a window, by /proc. The monitor's probes are on files, so every process
 * that runs one counts, of whatever unit. A program is known by the link "exe", a library only by
 * the list of what is mapped, which is read of all processes then.
 */

#include "kernel/threads.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#define PATH_SIZE (NAME_MAX + 16)

static FILE *open_of(int proc_fd, const char *pid, const char *name) {
        char path[PATH_SIZE];
        FILE *file;
        int fd;

        (void) snprintf(path, sizeof(path), "%s/%s", pid, name);
        fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return NULL;
        file = fdopen(fd, "r");
        if (!file)
                safe_close(fd);
        return file;
}

/* Marks the program that the process runs. */
static void find_program(int proc_fd, const char *pid, const KernelFile *files, size_t n,
                         bool *found) {
        char path[PATH_SIZE];
        KernelFile program;
        unsigned links;

        (void) snprintf(path, sizeof(path), "%s/exe", pid);
        if (kernel_file_stat(proc_fd, path, &program, &links) < 0)
                return;
        for (size_t i = 0; i < n; i++)
                if (files[i].is_program && files[i].device == program.device &&
                    files[i].inode == program.inode)
                        found[i] = true;
}

static bool is_mapped(const KernelFile *file, const MappedIdentity *identity) {
        if (file->mapped.inode > 0)
                return mapped_identity_equal(&file->mapped, identity);
        return file->inode == identity->inode && file->device == identity->device;
}

/* Marks the libraries that it has mapped. */
static void find_libraries(int proc_fd, const char *pid, const KernelFile *files, size_t n,
                           bool *found) {
        _cleanup_fclose_ FILE *maps = open_of(proc_fd, pid, "maps");
        _cleanup_free_ char *line = NULL;
        FileMapping mapping;
        size_t size = 0;

        while (maps && getline(&line, &size, maps) > 0) {
                if (!file_parse_mapping(line, &mapping))
                        continue;
                for (size_t i = 0; i < n; i++)
                        if (!files[i].is_program && is_mapped(&files[i], &mapping.identity))
                                found[i] = true;
        }
}

static unsigned count_of(int proc_fd, const char *pid) {
        _cleanup_fclose_ FILE *status = open_of(proc_fd, pid, "status");
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        unsigned n = 0;

        while (status && getline(&line, &size, status) > 0)
                if (sscanf(line, "Threads: %u", &n) == 1)
                        break;
        return n;
}

int kernel_threads_count(const KernelFile *files, size_t n_files, unsigned max, unsigned *each,
                         unsigned *ret_total, pid_t *process) {
        _cleanup_closedir_ DIR *proc = opendir("/proc");
        _cleanup_free_ bool *found = calloc(n_files + 1, sizeof(*found));
        const struct dirent *entry;
        bool has_library = false;
        unsigned total = 0;

        if (!proc)
                return -errno;
        if (!found)
                return -ENOMEM;
        for (size_t i = 0; i < n_files; i++) {
                has_library = has_library || !files[i].is_program;
                if (each)
                        each[i] = 0;
        }
        while (total <= max && (entry = readdir(proc))) {
                unsigned n;

                if (!isdigit((unsigned char) entry->d_name[0]))
                        continue;
                if (process)
                        __atomic_store_n(process, (pid_t) atoi(entry->d_name), __ATOMIC_RELAXED);
                memset(found, 0, n_files * sizeof(*found));
                find_program(dirfd(proc), entry->d_name, files, n_files, found);
                if (has_library)
                        find_libraries(dirfd(proc), entry->d_name, files, n_files, found);
                if (!memchr(found, 1, n_files))
                        continue;
                n = count_of(dirfd(proc), entry->d_name);
                total += n;
                for (size_t i = 0; i < n_files && each; i++)
                        each[i] += found[i] ? n : 0;
        }
        *ret_total = total;
        return 0;
}
