/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * standin DIALECT REAL MOUNTPOINT: a file system that shows the tracing file system REAL, with a
 * directory rv of its own, as a kernel has it whose tlob monitor is of that dialect. DIALECT: v1 to
 * v5, named; none: no rv at all; other: rv without tlob; locked, readonly: v3, but "monitor" may
 * not be written.
 *
 * Everything but rv is a symbolic link to the real thing: instances, events and their buffers are
 * the kernel's own. TLOB_STANDIN_REMOVE_USEC: how long it takes to remove a binding. A file
 * "threads", which no kernel has, takes what threads do. It runs in the foreground until it is
 * unmounted, and says "ready" first.
 */

#define FUSE_USE_VERSION 31

#include <fcntl.h>
#include <fuse3/fuse.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "standin-monitor.h"

static struct {
        StandinMonitor monitor;
        bool has_rv;
        bool has_tlob;
        int write_error; /* of "monitor" */
        bool reacting_on;
        useconds_t remove_usec;
        const char *real;
} self = { .monitor.on = true, .has_rv = true, .has_tlob = true, .reacting_on = true };

typedef enum FileKind {
        FILE_DIRECTORY,
        FILE_AVAILABLE,
        FILE_ENABLED,
        FILE_MONITORING,
        FILE_REACTING,
        FILE_REACTORS,
        FILE_ENABLE,
        FILE_DESC,
        FILE_MONITOR,
        FILE_OF_TLOB_REACTORS,
        FILE_THREADS,
} FileKind;

static const struct {
        const char *path;
        FileKind kind;
        mode_t mode;
} files[] = {
        { "/rv", FILE_DIRECTORY, 0750 },
        { "/rv/available_monitors", FILE_AVAILABLE, 0440 },
        { "/rv/available_reactors", FILE_REACTORS, 0440 },
        { "/rv/enabled_monitors", FILE_ENABLED, 0640 },
        { "/rv/monitoring_on", FILE_MONITORING, 0640 },
        { "/rv/reacting_on", FILE_REACTING, 0640 },
        { "/rv/monitors", FILE_DIRECTORY, 0750 },
        { "/rv/monitors/tlob", FILE_DIRECTORY, 0750 },
        { "/rv/monitors/tlob/desc", FILE_DESC, 0440 },
        { "/rv/monitors/tlob/enable", FILE_ENABLE, 0640 },
        { "/rv/monitors/tlob/monitor", FILE_MONITOR, 0644 },
        { "/rv/monitors/tlob/reactors", FILE_OF_TLOB_REACTORS, 0640 },
        { "/threads", FILE_THREADS, 0600 },
};

/* The index in files[], or -1: it is not one of ours. */
static int find_file(const char *path) {
        bool of_tlob = strncmp(path, "/rv/monitors/tlob", 17) == 0;

        if (!self.has_rv || (of_tlob && !self.has_tlob))
                return -1;
        for (size_t i = 0; i < ELEMENTSOF(files); i++)
                if (streq(files[i].path, path))
                        return (int) i;
        return -1;
}

static mode_t mode_of(int i) {
        bool hidden = files[i].kind == FILE_MONITOR && self.monitor.dialect >= STANDIN_V4;

        return hidden ? files[i].mode & ~(mode_t) S_IROTH : files[i].mode;
}

/* Where a name at the top leads to in the real one. */
static int real_path(const char *path, char *ret, size_t size) {
        if (strchr(path + 1, '/') || streq(path, "/rv"))
                return -ENOENT;
        (void) snprintf(ret, size, "%s%s", self.real, path);
        return access(ret, F_OK) < 0 ? -errno : 0;
}

static int do_getattr(const char *path, struct stat *st, struct fuse_file_info *info) {
        int i = find_file(path);
        char real[4096];
        int r;

        *st = (struct stat) { .st_nlink = 1 };
        if (streq(path, "/"))
                st->st_mode = S_IFDIR | 0700;
        else if (i >= 0)
                st->st_mode = mode_of(i) | (files[i].kind == FILE_DIRECTORY ? S_IFDIR : S_IFREG);
        else {
                r = real_path(path, real, sizeof(real));
                if (r < 0)
                        return r;
                st->st_mode = S_IFLNK | 0777;
                st->st_size = (off_t) strlen(real);
        }
        return 0;
}

static int do_readlink(const char *path, char *buffer, size_t size) {
        return real_path(path, buffer, size);
}

static int do_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset,
                      struct fuse_file_info *info, enum fuse_readdir_flags flags) {
        size_t length = streq(path, "/") ? 0 : strlen(path);

        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                const char *name = files[i].path + length + 1;

                if (strncmp(files[i].path, path, length) == 0 && files[i].path[length] == '/' &&
                    !strchr(name, '/') && find_file(files[i].path) >= 0)
                        (void) fill(buffer, name, NULL, 0, 0);
        }
        if (length == 0) {
                _cleanup_closedir_ DIR *dir = opendir(self.real);
                const struct dirent *entry;

                while (dir && (entry = readdir(dir)))
                        if (entry->d_name[0] != '.' && !streq(entry->d_name, "rv"))
                                (void) fill(buffer, entry->d_name, NULL, 0, 0);
        }
        return 0;
}

static char *read_reactors(int current) {
        char *text = NULL;
        size_t size;
        FILE *file = open_memstream(&text, &size);

        for (int i = 0; file && standin_reactors[i]; i++)
                (void) fprintf(file, i == current ? "[%s]\n" : "%s\n", standin_reactors[i]);
        if (file)
                (void) fclose(file);
        return text;
}

/* The text of a file, and its length: switches and descriptions end in a NUL. */
static char *read_text(FileKind kind, size_t *ret_size) {
        bool has_nul = false;
        char *text;

        switch (kind) {
        case FILE_AVAILABLE:
                text = strdup(self.has_tlob ? "wip\nsched\nsched:opid\ntlob\n" : "wip\nwwnr\n");
                break;
        case FILE_ENABLED:
                text = strdup(self.monitor.enabled ? "tlob\n" : "");
                break;
        case FILE_MONITORING:
        case FILE_REACTING:
        case FILE_ENABLE:
                text = strdup((kind == FILE_MONITORING ? self.monitor.on
                               : kind == FILE_REACTING ? self.reacting_on
                                                       : self.monitor.enabled)
                                      ? "1\n"
                                      : "0\n");
                has_nul = true;
                break;
        case FILE_DESC:
                text = strdup("Per-task latency over-budget monitor.\n");
                has_nul = true;
                break;
        case FILE_MONITOR:
                text = standin_monitor_read(&self.monitor);
                break;
        case FILE_THREADS:
                text = strdup("");
                break;
        default:
                text = read_reactors(kind == FILE_OF_TLOB_REACTORS ? self.monitor.reactor : -1);
        }
        if (text)
                *ret_size = strlen(text) + has_nul;
        return text;
}

typedef struct Opened {
        bool written;
} Opened;

/* Harmless, but for the list of enabled monitors. */
static void truncated(FileKind kind) {
        if (kind == FILE_ENABLED)
                standin_monitor_enable(&self.monitor, false);
}

static int do_open(const char *path, struct fuse_file_info *info) {
        int i = find_file(path);

        if (i < 0)
                return -ENOENT;
        if (self.write_error && files[i].kind == FILE_MONITOR &&
            (info->flags & O_ACCMODE) != O_RDONLY)
                return self.write_error;
        if (info->flags & O_TRUNC)
                truncated(files[i].kind);
        info->direct_io = 1;
        info->fh = (uint64_t) (uintptr_t) calloc(1, sizeof(Opened));
        return info->fh ? 0 : -ENOMEM;
}

static int do_release(const char *path, struct fuse_file_info *info) {
        free((Opened *) (uintptr_t) info->fh);
        return 0;
}

static int do_read(const char *path, char *buffer, size_t size, off_t offset,
                   struct fuse_file_info *info) {
        _cleanup_free_ char *text = NULL;
        int i = find_file(path);
        size_t length;

        if (i < 0)
                return -ENOENT;
        text = read_text(files[i].kind, &length);
        if (!text)
                return -ENOMEM;
        if ((size_t) offset >= length)
                return 0;
        if (size > length - (size_t) offset)
                size = length - (size_t) offset;
        memcpy(buffer, text + offset, size);
        return (int) size;
}

/* As kstrtobool(). */
static int parse_switch(const char *s, bool *ret) {
        if (!*s || !strchr("yY1tTnN0fF", *s))
                return -EINVAL;
        *ret = strchr("yY1tT", *s);
        return 0;
}

/* "name" or "!name". */
static int write_enabled(const char *word) {
        bool enable = *word != '!';

        if (strlen(word) > 33 || !streq(word + !enable, "tlob") || !self.has_tlob)
                return -EINVAL;
        standin_monitor_enable(&self.monitor, enable);
        return 0;
}

static int write_text(FileKind kind, const char *word, bool again) {
        bool on;
        int r;

        switch (kind) {
        case FILE_ENABLED:
                /* A second write on one descriptor is not seen. */
                return again ? 0 : write_enabled(word);
        case FILE_OF_TLOB_REACTORS:
                return standin_monitor_react(&self.monitor, word);
        case FILE_MONITORING:
        case FILE_REACTING:
        case FILE_ENABLE:
                r = parse_switch(word, &on);
                if (r < 0)
                        return r;
                if (kind == FILE_ENABLE)
                        standin_monitor_enable(&self.monitor, on);
                else
                        *(kind == FILE_MONITORING ? &self.monitor.on : &self.reacting_on) = on;
                return 0;
        default:
                return -EINVAL;
        }
}

static int do_write(const char *path, const char *data, size_t size, off_t offset,
                    struct fuse_file_info *info) {
        _cleanup_free_ char *word = NULL;
        Opened *opened = (Opened *) (uintptr_t) info->fh;
        int i = find_file(path), r;

        if (i < 0)
                return -ENOENT;
        /* It waits there until no CPU is in the probes. */
        if (files[i].kind == FILE_MONITOR && size > 0 && data[0] == '-')
                (void) usleep(self.remove_usec);
        word = strndup(data, size);
        if (!word)
                return -ENOMEM;
        if (files[i].kind == FILE_MONITOR)
                r = standin_monitor_write(&self.monitor, data, size, fuse_get_context()->pid);
        else if (files[i].kind == FILE_THREADS)
                r = standin_monitor_act(&self.monitor, word);
        else {
                word[strcspn(word, " \n")] = '\0';
                r = write_text(files[i].kind, word, opened->written);
                opened->written = true;
        }
        return r < 0 ? r : (int) size;
}

static int do_truncate(const char *path, off_t size, struct fuse_file_info *info) {
        int i = find_file(path);

        if (i < 0)
                return -ENOENT;
        truncated(files[i].kind);
        return 0;
}

static void *do_init(struct fuse_conn_info *connection, struct fuse_config *config) {
        config->attr_timeout = config->entry_timeout = config->negative_timeout = 0;
        config->nullpath_ok = 0;
        (void) puts("ready");
        (void) fflush(stdout);
        return NULL;
}

static int configure(const char *dialect) {
        if (streq(dialect, "none"))
                self.has_rv = false;
        else if (streq(dialect, "other"))
                self.has_tlob = false;
        else if (streq(dialect, "locked") || streq(dialect, "readonly")) {
                self.write_error = streq(dialect, "locked") ? -EPERM : -EROFS;
                return standin_monitor_init(&self.monitor, "v3");
        } else
                return standin_monitor_init(&self.monitor, dialect);
        return 0;
}

int main(int argc, char *argv[]) {
        static const struct fuse_operations operations = {
                .getattr = do_getattr,
                .readlink = do_readlink,
                .readdir = do_readdir,
                .open = do_open,
                .release = do_release,
                .read = do_read,
                .write = do_write,
                .truncate = do_truncate,
                .init = do_init,
        };

        if (argc != 4 || configure(argv[1]) < 0) {
                (void) fprintf(stderr, "usage: standin DIALECT REAL MOUNTPOINT\n");
                return 2;
        }
        self.real = argv[2];
        self.remove_usec = (useconds_t) atoi(getenv("TLOB_STANDIN_REMOVE_USEC") ?: "0");
        /* Not to outlive a test that fails. */
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* In the foreground, in one thread. */
        return fuse_main(4, ((char *[]) { argv[0], (char *) "-f", (char *) "-s", argv[3], NULL }),
                         &operations, NULL);
}
