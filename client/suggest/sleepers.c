/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "suggest/sleepers.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/duration.h"

#define LOOK_AGAIN_NS (NSEC_PER_SEC / 2)
#define LINE_MAX_SIZE 256

void sleepers_done(Sleepers *sleepers) {
        free(sleepers->processes);
        sleepers->processes = NULL;
        sleepers->n_processes = 0;
}

bool sleeper_parse(const char *line, uint32_t *ret_call, uint64_t *ret_sp, uint64_t *ret_ip) {
        unsigned long long sp, ip;
        long call;

        /* "running", "-1 SP IP" of a fault, or the call, six arguments, SP and IP. */
        if (sscanf(line, "%li %*x %*x %*x %*x %*x %*x %llx %llx", &call, &sp, &ip) != 3 || call < 0)
                return false;
        *ret_call = (uint32_t) call;
        *ret_sp = sp;
        *ret_ip = ip;
        return true;
}

bool call_is_of_waiting(const char *name) {
        static const char *const names[] = {
                "accept",          "accept4",
                "clock_nanosleep", "epoll_pwait",
                "epoll_pwait2",    "epoll_wait",
                "io_getevents",    "io_pgetevents",
                "io_uring_enter",  "mq_timedreceive",
                "msgrcv",          "nanosleep",
                "pause",           "poll",
                "ppoll",           "pselect6",
                "recvfrom",        "recvmmsg",
                "recvmsg",         "restart_syscall",
                "rt_sigsuspend",   "rt_sigtimedwait",
                "select",          "wait4",
                "waitid",
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (streq(names[i], name))
                        return true;
        return false;
}

static bool read_number(const char *name, pid_t *ret) {
        char *end;
        unsigned long n;

        if (!isdigit((unsigned char) *name))
                return false;
        n = strtoul(name, &end, 10);
        *ret = (pid_t) n;
        return *end == '\0';
}

static int find_processes(Sleepers *sleepers) {
        const struct dirent *entry;
        DIR *dir = opendir("/proc");
        int r = 0;

        sleepers->n_processes = 0;
        while (dir && r >= 0 && (entry = readdir(dir))) {
                pid_t *processes, pid;

                if (!read_number(entry->d_name, &pid) || !members_have(sleepers->members, pid))
                        continue;
                processes = reallocarray(sleepers->processes, sleepers->n_processes + 1,
                                         sizeof(*processes));
                if (!processes) {
                        r = -ENOMEM;
                        break;
                }
                sleepers->processes = processes;
                processes[sleepers->n_processes++] = pid;
        }
        if (dir)
                (void) closedir(dir);
        return r;
}

static bool read_line(int dir_fd, const char *tid, char line[static LINE_MAX_SIZE]) {
        _cleanup_close_ int fd = -EBADF;
        char path[64];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "%.16s/syscall", tid);
        fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
        n = fd >= 0 ? read(fd, line, LINE_MAX_SIZE - 1) : -1;
        if (n <= 0)
                return false;
        line[n] = '\0';
        return true;
}

/* Less than asked for at the upper end of the stack; there is nothing to tell but that. */
static size_t read_stack(int memory_fd, uint64_t sp, uint8_t *stack) {
        ssize_t n = pread(memory_fd, stack, SLEEPER_STACK_SIZE, (off_t) sp);

        return n > 0 ? (size_t) n : 0;
}

typedef struct Round {
        Sleepers *sleepers;
        uint64_t now_ns;
        int (*on_sleeper)(const StackSample *sample, uint32_t call, void *userdata);
        void *userdata;
} Round;

static int look_at_thread(const Round *round, pid_t pid, int tasks_fd, int memory_fd,
                          const char *tid) {
        StackSample sample = {
                .time_ns = round->now_ns,
                .pid = pid,
                .stack = round->sleepers->stack,
        };
        char line[LINE_MAX_SIZE];
        uint32_t call;

        if (!read_number(tid, &sample.tid) || !read_line(tasks_fd, tid, line) ||
            !sleeper_parse(line, &call, &sample.registers[SAMPLE_SP], &sample.registers[SAMPLE_IP]))
                return 0;
        sample.stack_size =
                read_stack(memory_fd, sample.registers[SAMPLE_SP], round->sleepers->stack);
        return round->on_sleeper(&sample, call, round->userdata);
}

/* A process that has ended meanwhile has no threads. */
static int look_at_process(const Round *round, pid_t pid) {
        _cleanup_close_ int memory_fd = -EBADF;
        const struct dirent *entry;
        char path[64];
        int r = 0;
        DIR *dir;

        (void) snprintf(path, sizeof(path), "/proc/%i/mem", pid);
        memory_fd = open(path, O_RDONLY | O_CLOEXEC);
        if (memory_fd < 0)
                return 0;
        (void) snprintf(path, sizeof(path), "/proc/%i/task", pid);
        dir = opendir(path);
        while (dir && r >= 0 && (entry = readdir(dir)))
                r = look_at_thread(round, pid, dirfd(dir), memory_fd, entry->d_name);
        if (dir)
                (void) closedir(dir);
        return r;
}

int sleepers_look(Sleepers *sleepers, uint64_t now_ns,
                  int (*on_sleeper)(const StackSample *sample, uint32_t call, void *userdata),
                  void *userdata) {
        const Round round = { sleepers, now_ns, on_sleeper, userdata };
        int r = 0;

        if (now_ns - sleepers->looked_ns > LOOK_AGAIN_NS) {
                sleepers->looked_ns = now_ns;
                r = find_processes(sleepers);
        }
        for (size_t i = 0; i < sleepers->n_processes && r >= 0; i++)
                r = look_at_process(&round, sleepers->processes[i]);
        return r;
}
