/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Does any process of a unit have the code that is bound, and how many of the machine? What a
 * process has mapped is in /proc/PID/maps, with the number of the file. Reading that may wait for a
 * process that waits for a file system: it is not for the daemon to do.
 */

#include "file/maps.h"

#include <ctype.h>
#include <fcntl.h>

#include "base/cleanup.h"
#include "base/program.h"
#include "base/root.h"
#include "file/processes.h"

#define LINES_MAX 200000 /* a user can have any number of mappings */

static bool is_done(const MappedFile *file, const FileMaps *maps) {
        return maps->n_lines >= LINES_MAX ||
               (maps->is_mapped && (!file->wants_old || maps->old.pid > 0));
}

/* Its program can be opened, what else it has mapped cannot. */
static void note_old(uint32_t pid, const MappedIdentity *identity, const char *path,
                     FileMaps *maps) {
        _cleanup_free_ char *program = NULL;

        maps->is_replaced = true;
        if (maps->old.pid == 0 && program_of_process(pid, &program) >= 0 && streq(program, path))
                maps->old = (OldProgram) { .pid = pid, .mapped = *identity };
}

/* The processes of a container may see another file at that path. */
static bool is_at_path(uint32_t pid, const MappedFile *file) {
        _cleanup_(root_done) Root root = ROOT_OWN;
        _cleanup_close_ int fd = -EBADF;
        struct stat st;

        if (file->inode == 0)
                return true;
        if (root_of_program(pid, &root) < 0)
                return false;
        fd = root_open(&root, file->path, O_PATH | O_CLOEXEC);
        return fd >= 0 && fstat(fd, &st) >= 0 && st.st_dev == file->device &&
               st.st_ino == file->inode;
}

static void look_at_line(char *line, uint32_t pid, const MappedFile *file, FileMaps *maps) {
        static const char deleted[] = " (deleted)";
        size_t n = strcspn(line, "\n");
        FileMapping mapping;
        const char *path;

        line[n] = '\0';
        if (!file_parse_mapping(line, &mapping) || mapping.identity.inode == 0)
                return;
        if (mapped_identity_equal(&mapping.identity, &file->identity)) {
                maps->is_mapped = true;
                return;
        }
        path = strchr(line, '/');
        n = strlen(file->path);
        if (!path || strncmp(path, file->path, n) != 0)
                return;
        if (path[n] == '\0')
                maps->is_mapped |= !file->path_is_others && is_at_path(pid, file);
        else if (streq(path + n, deleted))
                note_old(pid, &mapping.identity, path, maps);
}

int file_maps_of_process(uint32_t pid, const MappedFile *file, FileMaps *maps) {
        _cleanup_fclose_ FILE *f = process_open_file(pid, "maps");
        _cleanup_free_ char *line = NULL;
        size_t size;

        if (!f)
                return -errno;
        for (; !is_done(file, maps) && getline(&line, &size, f) > 0; maps->n_lines++)
                look_at_line(line, pid, file, maps);
        if (ferror(f))
                return -errno;
        maps->n_processes++;
        return 0;
}

typedef struct Look {
        const MappedFile *file;
        FileMaps *maps;
} Look;

static int look_at_process(uint32_t pid, void *userdata) {
        Look *look = userdata;
        int r;

        r = file_maps_of_process(pid, look->file, look->maps);
        if (r < 0 && r != -ENOENT && r != -ESRCH)
                return r;
        return is_done(look->file, look->maps);
}

int file_maps_of_cgroup(const char *cgroup_path, const MappedFile *file, FileMaps *maps) {
        Look look = { .file = file, .maps = maps };
        int r;

        r = processes_of_cgroup(cgroup_path, look_at_process, &look);
        return r < 0 ? r : 0;
}

static bool is_main_program(const Binding *binding) {
        const char *program = binding->view.program, *path = binding->resolved.inner_path;
        const char *name = strrchr(path, '/');

        if (!program)
                return false;
        return streq(program, path) || (name && streq(program, name + 1));
}

void file_maps_of_main_program(const Binding *binding, FileMaps *maps) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -EBADF;
        char link[64];

        if (maps->is_mapped || maps->old.pid > 0 || binding->view.main_pid == 0 ||
            !is_main_program(binding) || program_of_process(binding->view.main_pid, &path) < 0 ||
            !streq(path, "/ (deleted)"))
                return;
        (void) snprintf(link, sizeof(link), "/proc/%u/exe", binding->view.main_pid);
        fd = open(link, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return;
        maps->is_replaced = true;
        maps->old = (OldProgram) {
                .pid = binding->view.main_pid,
                .mapped = file_identify_mapping(fd),
        };
}

bool file_maps_cgroup_has(const char *cgroup_path, const char *path) {
        const char *suffix = strstr(cgroup_path, "@.");
        size_t n = strlen(cgroup_path), end;

        if (streq(cgroup_path, "/"))
                return true;
        if (suffix)
                n = (size_t) (++suffix - cgroup_path);
        if (strncmp(path, cgroup_path, n) != 0)
                return false;
        path += n;
        end = strcspn(path, "/");
        if (!suffix)
                return end == 0;
        n = strlen(suffix);
        return end >= n && strncmp(path + end - n, suffix, n) == 0;
}

/* In cgroup v2: "0::/system.slice/nginx.service". One that is gone by now is nowhere. */
static bool process_is_in_cgroup(uint32_t pid, const char *cgroup_path) {
        _cleanup_fclose_ FILE *f = process_open_file(pid, "cgroup");
        _cleanup_free_ char *line = NULL;
        size_t size;

        while (f && getline(&line, &size, f) > 0) {
                line[strcspn(line, "\n")] = '\0';
                if (strncmp(line, "0::", 3) == 0)
                        return file_maps_cgroup_has(cgroup_path, line + 3);
        }
        return false;
}

static void count_process(uint32_t pid, const MappedFile *file, const char *cgroup_path,
                          FileUsers *users) {
        FileMaps maps = {};
        int r;

        r = file_maps_of_process(pid, file, &maps);
        if (r < 0) {
                users->n_unseen += r != -ENOENT && r != -ESRCH;
                return;
        }
        if (!maps.is_mapped)
                return;
        users->n_processes++;
        users->n_outside += !cgroup_path || !process_is_in_cgroup(pid, cgroup_path);
}

int file_maps_count(const MappedFile *file, const char *cgroup_path, FileUsers *ret) {
        _cleanup_closedir_ DIR *proc = opendir("/proc");
        const struct dirent *entry;
        FileUsers users = {};

        if (!proc)
                return -errno;
        while ((entry = readdir(proc)))
                if (isdigit((unsigned char) entry->d_name[0]))
                        count_process((uint32_t) strtoul(entry->d_name, NULL, 10), file,
                                      cgroup_path, &users);
        *ret = users;
        return 0;
}
