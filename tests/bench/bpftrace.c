/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * bpftrace as a child: a script of the kind that its own documentation shows, with a map of starts
 * and a histogram for each function. It owns the child and its output; what the numbers mean is
 * for others.
 *
 * Nothing that bpftrace prints tells that its uprobes are set, and the order in which it sets them
 * is not fixed. So the script begins and ends with a probe on a function that is called until both
 * have been hit.
 */

#include "bpftrace.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "bench.h"

#define READY_TIMEOUT_NS UINT64_C(60000000000)

struct Bpftrace {
        pid_t pid;
        FILE *out;
};

void bpftrace_ready(void);

__attribute__((noinline)) void bpftrace_ready(void) {
        __asm__ volatile("");
}

static char *make_script(const char *const *functions) {
        _cleanup_free_ char *text = NULL;
        _cleanup_fclose_ FILE *f = NULL;
        char path[4096];
        ssize_t n;
        size_t size;

        n = readlink("/proc/self/exe", path, sizeof(path) - 1);
        if (n < 0)
                return NULL;
        path[n] = '\0';
        f = open_memstream(&text, &size);
        if (!f)
                return NULL;

        (void) fprintf(f, "uprobe:%s:bpftrace_ready { @first = 1; }\n", path);
        for (size_t i = 0; functions[i]; i++)
                (void) fprintf(f,
                               "uprobe:%s:%s { @start%zu[tid] = nsecs; }\n"
                               "uretprobe:%s:%s /@start%zu[tid]/ {\n"
                               "  @ns%zu = hist(nsecs - @start%zu[tid]);\n"
                               "  delete(@start%zu[tid]);\n}\n",
                               path, functions[i], i, path, functions[i], i, i, i, i);
        (void) fprintf(f, "uretprobe:%s:bpftrace_ready /@first/ { printf(\"ready\\n\"); }\n", path);
        /* Closing gives text its last value. */
        if (fclose(TAKE_PTR(f)) != 0)
                return NULL;
        return TAKE_PTR(text);
}

/* Its standard error is dropped: it complains of limits that it cannot raise, and does not need. */
static int spawn(const char *script, Bpftrace *bpftrace) {
        char *argv[] = { (char *) "bpftrace", (char *) "-e", (char *) script, NULL };
        posix_spawn_file_actions_t actions;
        int fds[2], r;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        r = posix_spawn_file_actions_init(&actions);
        if (r == 0) {
                r = posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
                if (r == 0)
                        r = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                                             O_WRONLY, 0);
                if (r == 0)
                        r = posix_spawnp(&bpftrace->pid, argv[0], &actions, NULL, argv, environ);
                (void) posix_spawn_file_actions_destroy(&actions);
        }
        safe_close(fds[1]);
        bpftrace->out = fdopen(fds[0], "r");
        if (!bpftrace->out)
                safe_close(fds[0]);
        return r != 0 ? -r : bpftrace->out ? 0 : -ENOMEM;
}

static int wait_until_ready(const Bpftrace *bpftrace) {
        struct pollfd fd = { .fd = fileno(bpftrace->out), .events = POLLIN };
        uint64_t until = bench_now_ns() + READY_TIMEOUT_NS;
        char line[256];

        while (bench_now_ns() < until) {
                bpftrace_ready();
                if (poll(&fd, 1, 10) <= 0)
                        continue;
                if (!fgets(line, sizeof(line), bpftrace->out))
                        return -EPIPE;
                if (streq(line, "ready\n"))
                        return 0;
        }
        return -ETIMEDOUT;
}

int bpftrace_start(const char *const *functions, Bpftrace **ret) {
        _cleanup_(bpftrace_freep) Bpftrace *bpftrace = NULL;
        _cleanup_free_ char *script = NULL;
        int r;

        script = make_script(functions);
        bpftrace = calloc(1, sizeof(*bpftrace));
        if (!script || !bpftrace)
                return bench_fail(-ENOMEM, "Failed to write a script for bpftrace");
        r = spawn(script, bpftrace);
        if (r >= 0)
                r = wait_until_ready(bpftrace);
        if (r < 0)
                return bench_fail(r, "bpftrace does not measure");
        *ret = TAKE_PTR(bpftrace);
        return 0;
}

/* The count in a line of a histogram: "[2K, 4K)    123 |@@@@  |". */
static unsigned long long line_count(const char *line) {
        const char *end = line[0] == '[' ? strpbrk(line, ")]") : NULL;

        return end ? strtoull(end + 1, NULL, 10) : 0;
}

int bpftrace_stop(Bpftrace *bpftrace, uint64_t n_calls) {
        unsigned long long n = 0;
        char line[256];

        (void) kill(bpftrace->pid, SIGINT);
        while (fgets(line, sizeof(line), bpftrace->out))
                n += line_count(line);
        if (n != n_calls)
                return bench_fail(-EBADMSG, "bpftrace measured %llu calls of %llu", n,
                                  (unsigned long long) n_calls);
        return 0;
}

Bpftrace *bpftrace_free(Bpftrace *bpftrace) {
        if (!bpftrace)
                return NULL;
        if (bpftrace->pid > 0) {
                (void) kill(bpftrace->pid, SIGTERM);
                (void) waitpid(bpftrace->pid, NULL, 0);
        }
        if (bpftrace->out)
                (void) fclose(bpftrace->out);
        free(bpftrace);
        return NULL;
}
