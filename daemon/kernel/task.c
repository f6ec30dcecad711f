/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Tasks by their thread ids. An event of the monitor names a thread and nothing else, and the
 * thread may be gone when the event is read: so what was found out is kept for a while, and used
 * when there is nothing to find any more. Its id may even be another one's by then, which began
 * after the event.
 *
 * Thread ids in events are those of the first pid namespace. Where the daemon sees others, it can
 * know no task, and says so: a wrong one would be worse.
 */

#include "kernel/task.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "cgroup.h"
#include "task-begin.h"
#include "task-name.h"

#define TASKS_MAX      256
#define PROC_FILE_MAX  8192
#define FIRST_NS_INODE 0xeffffffc /* PROC_PID_INIT_INO */

struct KernelTasks {
        int cgroup_root;
        KernelTask items[TASKS_MAX]; /* by tid, modulo; the latest one stays */
};

static void task_done(KernelTask *task) {
        free(task->cgroup);
        *task = (KernelTask) {};
}

int kernel_tasks_new(KernelTasks **ret) {
        KernelTasks *tasks;

        tasks = calloc(1, sizeof(*tasks));
        if (!tasks)
                return -ENOMEM;
        tasks->cgroup_root = cgroup_open_root();
        *ret = tasks;
        return 0;
}

KernelTasks *kernel_tasks_free(KernelTasks *tasks) {
        if (!tasks)
                return NULL;
        for (size_t i = 0; i < TASKS_MAX; i++)
                task_done(&tasks->items[i]);
        safe_close(tasks->cgroup_root);
        free(tasks);
        return NULL;
}

bool kernel_tasks_are_visible(void) {
        struct stat st;

        return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == FIRST_NS_INODE;
}

/* A small file of a task, as a string. */
static int read_proc(uint32_t id, const char *name, char ret[static PROC_FILE_MAX]) {
        _cleanup_close_ int fd = -EBADF;
        char path[64];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", id, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        n = read(fd, ret, PROC_FILE_MAX - 1);
        if (n < 0)
                return -errno;
        ret[n] = '\0';
        return 0;
}

/* The line "0::/path". */
static char *find_cgroup(const char *text) {
        const char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");

        if (!line)
                return NULL;
        line = strchr(line, '/');
        return line ? strndup(line, strcspn(line, "\n")) : NULL;
}

/* By the clock of events. */
static int read_begin(uint32_t tid, uint64_t *ret) {
        uint64_t ns, awake_ns, suspended_ns;
        int r;

        r = task_read_begin(tid, &ns);
        if (r < 0)
                return r;
        awake_ns = now_ns(); /* first: it is never the later one */
        suspended_ns = clock_read_ns(CLOCK_BOOTTIME) - awake_ns;
        *ret = ns > suspended_ns ? ns - suspended_ns : 0;
        return 0;
}

static int read_task(int cgroup_root, uint32_t tid, KernelTask *ret) {
        char text[PROC_FILE_MAX];
        KernelTask task = { .tid = tid };
        const char *line;
        unsigned level;
        int r;

        r = read_proc(tid, "status", text);
        if (r < 0)
                return r;
        line = strstr(text, "\nTgid:");
        if (!line || sscanf(line, "\nTgid: %" SCNu32, &task.pid) != 1)
                return -EBADMSG;
        r = task_read_name(tid, task.comm);
        if (r < 0)
                return r;
        r = read_begin(tid, &task.begin_ns);
        if (r < 0)
                return r;
        r = read_proc(tid, "cgroup", text);
        if (r < 0)
                return r;
        task.cgroup = find_cgroup(text);
        if (task.cgroup && cgroup_root >= 0)
                (void) cgroup_path_get_id(cgroup_root, task.cgroup, &task.cgroup_id, &level);
        *ret = task;
        return 0;
}

const KernelTask *kernel_tasks_get(KernelTasks *tasks, uint32_t tid, uint64_t time_ns) {
        KernelTask *item = &tasks->items[tid % TASKS_MAX], task;

        if (read_task(tasks->cgroup_root, tid, &task) >= 0) {
                if (task.begin_ns <= time_ns) {
                        task_done(item);
                        *item = task;
                } else
                        task_done(&task);
        }
        return item->tid == tid && tid != 0 && item->begin_ns <= time_ns ? item : NULL;
}

/* The first level components of a path. */
static size_t prefix_length(const char *path, unsigned level) {
        const char *p = path;

        for (; level > 0; level--) {
                p += strspn(p, "/");
                p += strcspn(p, "/");
        }
        return (size_t) (p - path);
}

bool kernel_tasks_is_in(KernelTasks *tasks, const KernelTask *task, uint64_t cgroup_id,
                        unsigned level) {
        _cleanup_free_ char *path = NULL;
        unsigned found;
        uint64_t id;

        if (!task->cgroup || tasks->cgroup_root < 0)
                return false;
        path = strndup(task->cgroup, prefix_length(task->cgroup, level));
        return path && cgroup_path_get_id(tasks->cgroup_root, path, &id, &found) >= 0 &&
               id == cgroup_id && found == level;
}
