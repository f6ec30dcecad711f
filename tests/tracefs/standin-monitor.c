/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The bindings of a tlob monitor, and its errno for each line that it refuses, in all versions that
 * were published: what they have in common, and where they differ. It follows what a kernel with v3
 * was seen to answer, and the source of the others; where that takes what it should not ("0x10zz"
 * for an offset), so does this.
 */

#include "standin-monitor.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/cleanup.h"

#define CANONICAL_MAX   255
#define NANOSECONDS_MIN 1000
#define NANOSECONDS_MAX UINT64_C(3600000000000)

struct StandinBinding {
        unsigned number; /* from 1 */
        char *name;      /* STANDIN_NAMED */
        char *path;
        dev_t device;
        ino_t inode;
        long long start;
        long long stop;
        uint64_t threshold;
};

const char *const standin_reactors[] = { "nop", "printk", "panic", NULL };

int standin_monitor_init(StandinMonitor *monitor, const char *dialect) {
        static const char *const names[] = { "v1", "v2", "v3", "v4", "v5", "named" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (streq(names[i], dialect)) {
                        monitor->dialect = (StandinDialect) i;
                        monitor->threads.are_owned = monitor->dialect >= STANDIN_V5;
                        return 0;
                }
        return -EINVAL;
}

/* A file as the writer sees it. */
typedef struct File {
        char path[PATH_MAX];
        struct stat st;
        bool on_procfs;
} File;

static int file_resolve(const char *path, pid_t writer, File *ret) {
        char theirs[PATH_MAX + 64], link[64];
        _cleanup_close_ int fd = -EBADF;
        struct statfs fs;
        char *deleted;
        ssize_t n;

        if (strncmp(path, "/proc/self/", 11) == 0)
                (void) snprintf(theirs, sizeof(theirs), "/proc/%i/%s", (int) writer, path + 11);
        else
                (void) snprintf(theirs, sizeof(theirs), "/proc/%i/root%s", (int) writer, path);
        fd = open(theirs, O_PATH | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &ret->st) < 0 || fstatfs(fd, &fs) < 0)
                return -errno;
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%i", fd);
        n = readlink(link, ret->path, sizeof(ret->path) - 1);
        if (n < 0)
                return -errno;
        ret->path[n] = '\0';
        deleted = strstr(ret->path, " (deleted)");
        if (deleted)
                *deleted = '\0';
        ret->on_procfs = fs.f_type == PROC_SUPER_MAGIC;
        return 0;
}

/* v1 to v3 compare the name that was found, the later ones the file. */
static StandinBinding *find_binding(const StandinMonitor *monitor, const File *file,
                                    long long start) {
        for (size_t i = 0; i < monitor->n_bindings; i++) {
                StandinBinding *b = &monitor->bindings[i];

                if (b->start == start && b->inode == file->st.st_ino &&
                    b->device == file->st.st_dev &&
                    (monitor->dialect >= STANDIN_V4 || streq(b->path, file->path)))
                        return b;
        }
        return NULL;
}

static void take_away(StandinMonitor *monitor, StandinBinding *b) {
        standin_threads_orphan(&monitor->threads, b->number);
        free(b->name);
        free(b->path);
        monitor->n_bindings--;
        memmove(b, b + 1, (size_t) (monitor->bindings + monitor->n_bindings - b) * sizeof(*b));
}

/* As %lli of the kernel's sscanf(): no plus sign, and whatever follows is not looked at. */
static bool parse_offset(const char *s, long long *ret) {
        char *end;

        if (!isdigit((unsigned char) s[*s == '-']))
                return false;
        *ret = strtoll(s, &end, 0);
        return end != s;
}

/* As kstrtoull(): nothing may follow, and a plus sign may stand before. */
static bool parse_threshold(const char *s, int base, uint64_t *ret) {
        const char *digits = s + (*s == '+');
        char *end;

        if (!isdigit((unsigned char) *digits))
                return false;
        errno = 0;
        *ret = strtoull(digits, &end, base);
        return errno == 0 && *end == '\0';
}

static int check_threshold(const StandinMonitor *monitor, uint64_t threshold) {
        if (monitor->dialect <= STANDIN_V2)
                return threshold == 0 ? -EINVAL : 0;
        return threshold < NANOSECONDS_MIN || threshold > NANOSECONDS_MAX ? -ERANGE : 0;
}

/* Names are unique, and places of one file may not overlap. */
static bool is_in_the_way(const StandinMonitor *monitor, const StandinBinding *new,
                          const File *file) {
        for (size_t i = 0; i < monitor->n_bindings; i++) {
                const StandinBinding *b = &monitor->bindings[i];

                if (monitor->dialect == STANDIN_NAMED &&
                    (streq(b->name, new->name) ||
                     (b->inode == file->st.st_ino && b->device == file->st.st_dev &&
                      b->start <= new->stop &&new->start <= b->stop)))
                        return true;
        }
        return false;
}

/* The file, then everything that registering the probes would say. Takes nothing over. */
static int add_binding(StandinMonitor *monitor, const StandinBinding *new, const char *path,
                       pid_t writer) {
        StandinBinding *bindings;
        File file;
        int r;

        r = file_resolve(path, writer, &file);
        if (r < 0)
                return r;
        if (!S_ISREG(file.st.st_mode))
                return -EINVAL;
        /* v4 to v6 look the path up that they have found, whatever is there. */
        if (monitor->dialect == STANDIN_V4 || monitor->dialect == STANDIN_V5) {
                char path_found[PATH_MAX];

                (void) strcpy(path_found, file.path);
                r = file_resolve(path_found, writer, &file);
                if (r < 0)
                        return r;
        }
        if (find_binding(monitor, &file, new->start) || is_in_the_way(monitor, new, &file))
                return -EEXIST;
        if (strlen(file.path) > CANONICAL_MAX)
                return -ENAMETOOLONG;
        if (file.on_procfs)
                return -EIO;
        if (new->start > file.st.st_size || new->stop > file.st.st_size)
                return -EINVAL;

        bindings = reallocarray(monitor->bindings, monitor->n_bindings + 1, sizeof(*bindings));
        if (!bindings)
                return -ENOMEM;
        monitor->bindings = bindings;
        bindings += monitor->n_bindings++;
        *bindings = *new;
        bindings->number = ++monitor->n_added;
        bindings->path = strdup(file.path);
        bindings->name = new->name ? strdup(new->name) : NULL;
        bindings->device = file.st.st_dev;
        bindings->inode = file.st.st_ino;
        return 0;
}

/* PATH:OFFSET, by the last colon, which becomes a NUL. */
static int split_place(char *place, long long *ret_offset) {
        char *colon = strrchr(place, ':');

        if (!colon || colon - place < 2 || place[0] != '/' || !parse_offset(colon + 1, ret_offset))
                return -EINVAL;
        *colon = '\0';
        return 0;
}

static int parse_rest(const StandinMonitor *monitor, char **save, StandinBinding *new) {
        bool has_stop = false, has_threshold = false;
        char *token;

        while ((token = strtok_r(NULL, " \t", save)))
                if (strncmp(token, "threshold=", 10) == 0) {
                        int r;

                        if (!parse_threshold(token + 10, 0, &new->threshold))
                                return -EINVAL;
                        r = check_threshold(monitor, new->threshold);
                        if (r < 0)
                                return r;
                        has_threshold = true;
                } else {
                        if (has_stop || !parse_offset(token, &new->stop) || new->stop < 0)
                                return -EINVAL;
                        has_stop = true;
                }
        return has_stop && has_threshold ? 0 : -EINVAL;
}

static int add_line(StandinMonitor *monitor, char *line, const char *name, pid_t writer) {
        StandinBinding new = { .name = (char *) name };
        char *save = NULL, *place;
        int r;

        place = strtok_r(line, " \t", &save);
        if (!place)
                return -EINVAL;
        r = split_place(place, &new.start);
        if (r < 0)
                return r;
        if (new.start < 0)
                return -EINVAL;
        r = parse_rest(monitor, &save, &new);
        if (r < 0)
                return r;
        if (new.start == new.stop)
                return -EINVAL;
        return add_binding(monitor, &new, place, writer);
}

static int remove_line(StandinMonitor *monitor, char *place, pid_t writer) {
        StandinBinding *b;
        long long start;
        File file;
        int r;

        r = split_place(place, &start);
        if (r < 0)
                return r;
        if (start < 0)
                return monitor->dialect >= STANDIN_V4 ? -EINVAL : -ENOENT;
        r = file_resolve(place, writer, &file);
        if (r < 0)
                return r;
        b = find_binding(monitor, &file, start);
        if (!b)
                return -ENOENT;
        take_away(monitor, b);
        return 0;
}

/* THRESHOLD:START:STOP:/path and -START:/path; removing what is not there is no error. */
static int write_v1(StandinMonitor *monitor, char *line, pid_t writer) {
        StandinBinding new = {}, *b;
        unsigned long long threshold;
        bool remove = *line == '-';
        int n = 0;
        File file;

        if (remove)
                (void) sscanf(line + 1, "%lli:%n", &new.start, &n);
        else
                (void) sscanf(line, "%llu:%lli:%lli:%n", &threshold, &new.start, &new.stop, &n);
        n += remove;
        if (n <= remove || line[n] != '/' || new.start < 0 || new.stop < 0)
                return -EINVAL;
        if (!remove) {
                new.threshold = threshold;
                return threshold == 0 ? -EINVAL : add_binding(monitor, &new, line + n, writer);
        }
        if (file_resolve(line + n, writer, &file) >= 0) {
                b = find_binding(monitor, &file, new.start);
                if (b)
                        take_away(monitor, b);
        }
        return 0;
}

static int write_named(StandinMonitor *monitor, char *line, pid_t writer) {
        char *name, *rest;

        if (strncmp(line, "-:", 2) == 0) {
                for (size_t i = 0; i < monitor->n_bindings; i++)
                        if (streq(monitor->bindings[i].name, line + 2)) {
                                take_away(monitor, &monitor->bindings[i]);
                                return 0;
                        }
                return -ENOENT;
        }
        if (strncmp(line, "p:", 2) != 0)
                return -EINVAL;
        name = line + 2;
        rest = strchr(name, ' ');
        if (!rest || rest == name)
                return -EINVAL;
        *rest++ = '\0';
        return add_line(monitor, rest, name, writer);
}

int standin_monitor_write(StandinMonitor *monitor, const char *data, size_t size, pid_t writer) {
        _cleanup_free_ char *line = NULL;

        if (size >= (monitor->dialect == STANDIN_V1 ? 320U : 384U))
                return -EINVAL;
        if (size > 0 && data[size - 1] == '\n')
                size--;
        line = strndup(data, size);
        if (!line)
                return -ENOMEM;

        if (monitor->dialect == STANDIN_V1)
                return write_v1(monitor, line, writer);
        if (monitor->dialect == STANDIN_NAMED)
                return write_named(monitor, line, writer);
        if (line[0] == '-')
                return remove_line(monitor, line + 1, writer);
        if (strncmp(line, "p ", 2) == 0)
                return add_line(monitor, line + 2, NULL, writer);
        return -EINVAL;
}

/*
 * Probes at a place that several bindings have are called in their order, and each returns for
 * itself.
 */
static int run_probes(StandinMonitor *monitor, bool is_start, pid_t id, char *place) {
        int result = -ENOENT;
        long long offset;
        File file;
        int r;

        r = split_place(place, &offset);
        if (r >= 0)
                r = file_resolve(place, id, &file);
        if (r < 0)
                return r;
        if (!monitor->enabled || !monitor->on)
                return -ENODEV;
        for (size_t i = 0; i < monitor->n_bindings; i++) {
                const StandinBinding *b = &monitor->bindings[i];

                if (b->inode != file.st.st_ino || b->device != file.st.st_dev ||
                    (is_start ? b->start : b->stop) != offset)
                        continue;
                r = is_start ? standin_thread_start(&monitor->threads, id, b->number)
                             : standin_thread_stop(&monitor->threads, id, b->number);
                result = result == 0 ? 0 : r;
        }
        return result;
}

int standin_monitor_act(StandinMonitor *monitor, const char *action) {
        char verb[8], place[PATH_MAX + 32];
        int id, n;

        n = sscanf(action, "%7s %d %4127s", verb, &id, place);
        if (n == 2 && streq(verb, "exit")) {
                standin_thread_exit(&monitor->threads, id);
                return 0;
        }
        if (n != 3 || (!streq(verb, "start") && !streq(verb, "stop")))
                return -EINVAL;
        return run_probes(monitor, streq(verb, "start"), id, place);
}

char *standin_monitor_read(const StandinMonitor *monitor) {
        char *text = NULL;
        size_t size;
        FILE *file;

        file = open_memstream(&text, &size);
        if (!file)
                return NULL;
        for (size_t i = 0; i < monitor->n_bindings; i++) {
                const StandinBinding *b = &monitor->bindings[i];

                if (monitor->dialect == STANDIN_V1)
                        (void) fprintf(file, "%llu:0x%llx:0x%llx:%s\n",
                                       (unsigned long long) b->threshold,
                                       (unsigned long long) b->start, (unsigned long long) b->stop,
                                       b->path);
                else
                        (void) fprintf(file, "p%s%s %s:0x%llx 0x%llx threshold=%llu\n",
                                       b->name ? ":" : "", b->name ?: "", b->path,
                                       (unsigned long long) b->start, (unsigned long long) b->stop,
                                       (unsigned long long) b->threshold);
        }
        (void) fclose(file);
        return text;
}

void standin_monitor_enable(StandinMonitor *monitor, bool enabled) {
        if (monitor->enabled && !enabled) {
                while (monitor->n_bindings > 0)
                        take_away(monitor, monitor->bindings);
                monitor->threads.n = 0;
        }
        monitor->enabled = enabled;
}

int standin_monitor_react(StandinMonitor *monitor, const char *reactor) {
        for (int i = 0; standin_reactors[i]; i++) {
                if (!streq(standin_reactors[i], reactor))
                        continue;
                if (i != monitor->reactor && monitor->enabled) {
                        standin_monitor_enable(monitor, false);
                        standin_monitor_enable(monitor, true);
                }
                monitor->reactor = i;
                return 0;
        }
        return -EINVAL;
}
