/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Back ends that have a directory of a BPF file system, and what is in it when they have been
 * killed, have ended, or were disturbed. Each is in a process of its own, and has nothing of the
 * one before but that directory. The file system is in a mount namespace of the test's.
 */

#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "bpf/kept.h"
#include "engine.h"
#include "keep.h"
#include "test.h"

/* All is over when the namespace is: nobody else sees it, nor anything that is mounted there. */
#define MOUNT "/mnt"
#define DIR_  MOUNT "/tlob"

/* What a daemon answers when it is asked. */
typedef struct Answer {
        Statistics statistics; /* with its past */
        int kept;              /* as from keep() */
} Answer;

#define ASK '?'
#define END '.' /* without leaving anything */

typedef struct Daemon {
        pid_t pid;
        int ask;
        int answers;
} Daemon;

static const char *const *const keys = FUNCTION("a", "1min");

static int open_directory(void) {
        _cleanup_free_ char *reason = NULL;
        int fd = -EBADF;

        if (keep_open(DIR_, &fd, &reason) < 0)
                fail_msg("%s", reason);
        return fd;
}

static Answer get_answer(Engine *engine, uint32_t index) {
        const BackendOps *ops = engine->backend->ops;
        _cleanup_(past_done) Past past = {};
        int fds[BACKEND_N_KEPT];
        Answer answer = { .kept = ops->keep(engine->backend, fds) };

        engine_collect(engine);
        answer.statistics = engine_statistics(engine, index);
        assert_ok(ops->add_past(engine->backend, index, &past));
        statistics_add(&answer.statistics, &past.statistics);
        return answer;
}

/* disturbed: nobody can write in the file system any more when it begins. */
static void be_daemon(bool disturbed, int in, int out) {
        int keep_fd = open_directory(), kept_fds[BACKEND_N_KEPT] = { -EBADF, -EBADF };
        Engine *engine;
        uint32_t index;
        void *state;
        char c;

        (void) backend_bpf_ops.find_kept(keep_fd, kept_fds);
        if (disturbed)
                assert_ok(mount(NULL, MOUNT, NULL, MS_REMOUNT | MS_RDONLY, NULL));
        engine_inherit(kept_fds);
        engine_keep(&keep_fd);
        assert_int_equal(engine_setup(&state), 0);
        engine = state;
        index = engine_add(engine, keys, NULL);
        assert_true(engine->backend->ops->finish(engine->backend) >= 0);
        for (c = ASK; c == ASK; (void) !read(in, &c, 1)) {
                Answer answer = get_answer(engine, index);

                assert_int_equal(write(out, &answer, sizeof(answer)), sizeof(answer));
                c = END;
        }
        (void) engine->backend->ops->free(engine->backend);
}

static Answer read_answer(const Daemon *d) {
        Answer answer;

        assert_int_equal(read(d->answers, &answer, sizeof(answer)), sizeof(answer));
        return answer;
}

static Answer daemon_start_disturbed(Daemon *d, bool disturbed) {
        int ask[2], answers[2];

        assert_int_equal(pipe2(ask, O_CLOEXEC), 0);
        assert_int_equal(pipe2(answers, O_CLOEXEC), 0);
        d->pid = fork();
        assert_true(d->pid >= 0);
        if (d->pid == 0) {
                (void) close(ask[1]);
                (void) close(answers[0]);
                be_daemon(disturbed, ask[0], answers[1]);
                _exit(EXIT_SUCCESS);
        }
        (void) close(ask[0]);
        (void) close(answers[1]);
        d->ask = ask[1];
        d->answers = answers[0];
        return read_answer(d);
}

/* One that has its binding in place. */
static Answer daemon_start(Daemon *d) {
        return daemon_start_disturbed(d, false);
}

static Answer daemon_ask(const Daemon *d) {
        assert_int_equal(write(d->ask, &(char) { ASK }, 1), 1);
        return read_answer(d);
}

static void daemon_done(Daemon *d, int *ret_status) {
        assert_int_equal(waitpid(d->pid, ret_status, 0), d->pid);
        d->pid = 0;
        (void) close(d->ask);
        (void) close(d->answers);
}

static void daemon_kill(Daemon *d) {
        assert_ok(kill(d->pid, SIGKILL));
        daemon_done(d, NULL);
}

static void daemon_end(Daemon *d) {
        int status;

        assert_int_equal(write(d->ask, &(char) { END }, 1), 1);
        daemon_done(d, &status);
        assert_int_equal(status, 0);
}

static int set_up(void **state) {
        Daemon *d = calloc(1, sizeof(*d));

        assert_non_null(d);
        assert_ok(mount("bpf", MOUNT, "bpf", 0, "mode=0700"));
        *state = d;
        return 0;
}

static int tear_down(void **state) {
        Daemon *d = *state;

        if (d->pid > 0)
                daemon_kill(d);
        free(d);
        return umount2(MOUNT, MNT_DETACH);
}

static void calls(unsigned n) {
        _cleanup_(victim_done) Victim victim = {};
        char words[64];

        (void) snprintf(words, sizeof(words), "repeat:%u ( a( ) ) say:done", n);
        victim_start(&victim, words);
        victim_expect(&victim, "done");
        victim_continue(&victim);
        victim_finish(&victim);
}

/* That and nothing else; NULL: nothing. */
static void assert_there(const char *expected) {
        const struct dirent *entry;
        DIR *dir = opendir(DIR_);
        size_t n = 0;

        assert_non_null(dir);
        while ((entry = readdir(dir)))
                if (entry->d_name[0] != '.') {
                        assert_string_equal(entry->d_name, expected ?: "nothing");
                        n++;
                }
        assert_int_equal(n, expected ? 1 : 0);
        (void) closedir(dir);
}

static uint64_t starts(const Answer *answer) {
        const Counters *c = &answer->statistics.counters;

        assert_int_equal(c->in_budget, c->starts);
        assert_int_equal(c->nested, 0);
        assert_int_equal(c->unmatched, 0);
        return c->starts;
}

static void test_killed(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Daemon *d = *state;
        Answer answer;

        answer = daemon_start(d);
        assert_int_equal(answer.kept, 0);
        victim_start(&victim, "repeat:30 ( a( ) ) a( say:in ) repeat:20 ( a( ) ) say:out");
        victim_expect(&victim, "in");
        daemon_kill(d);
        calls(100);
        victim_continue(&victim);
        victim_expect(&victim, "out");
        (void) daemon_start(d);
        calls(7);
        answer = daemon_ask(d);
        assert_int_equal(starts(&answer), 158);
        assert_there("bpf-1");
        victim_continue(&victim);
        victim_finish(&victim);
}

/* Whose free() was called leaves nothing, nor does that of one that has taken over. */
static void test_ended(void **state) {
        Daemon *d = *state;
        Answer answer;

        (void) daemon_start(d);
        daemon_end(d);
        assert_there(NULL);
        (void) daemon_start(d);
        calls(3);
        daemon_kill(d);
        assert_there("bpf-1");
        answer = daemon_start(d);
        assert_int_equal(starts(&answer), 3);
        daemon_end(d);
        assert_there(NULL);
}

/* The directory is all that there is: without it, nothing is in the kernel. */
static void test_removed_between(void **state) {
        Daemon *d = *state;
        Answer answer;

        (void) daemon_start(d);
        calls(5);
        daemon_kill(d);
        assert_int_equal(system("rm -r " DIR_), 0);
        answer = daemon_start(d);
        assert_int_equal(starts(&answer), 0);
        assert_int_equal(answer.kept, 0);
        assert_there("bpf-1");
}

static void test_removed_while_running(void **state) {
        Daemon *d = *state;
        Answer answer;

        (void) daemon_start(d);
        assert_int_equal(system("rm -r " DIR_), 0);
        (void) daemon_ask(d);
        daemon_end(d);
        (void) daemon_start(d);
        calls(4);
        assert_int_equal(system("rm -r " DIR_), 0);
        daemon_kill(d);
        answer = daemon_start(d);
        assert_int_equal(starts(&answer), 0);
        calls(4);
        answer = daemon_ask(d);
        assert_int_equal(starts(&answer), 4);
}

/* Changes what a daemon that was killed has left. */
static void be_other_layout(const char *state) {
        int fd = bpf_obj_get(state);
        KeptCommon *common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        assert_ptr_not_equal(common, MAP_FAILED);
        common->format.layout ^= 1;
        (void) munmap(common, sizeof(*common));
        (void) close(fd);
}

/* All is set up anew, next to what was there; only what was counted goes on. */
static void test_other_layout(void **state) {
        Daemon *d = *state;
        Answer answer;

        (void) daemon_start(d);
        calls(11);
        daemon_kill(d);
        be_other_layout(DIR_ "/bpf-1/state");
        answer = daemon_start(d);
        assert_int_equal(answer.kept, 0);
        assert_int_equal(starts(&answer), 11);
        assert_there("bpf-2");
        calls(1);
        daemon_kill(d);
        answer = daemon_start(d);
        assert_int_equal(starts(&answer), 12);
        assert_there("bpf-2");
}

static int make_map(enum bpf_map_type type, uint32_t value_size, uint32_t n, uint32_t flags) {
        LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = flags);
        int fd = bpf_map_create(type, "foreign", sizeof(uint32_t), value_size, n, &options);

        assert_true(fd >= 0);
        return fd;
}

static int make_program(void) {
        static const struct bpf_insn code[] = {
                { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
                { .code = BPF_JMP | BPF_EXIT },
        };
        int fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "foreign", "GPL", code,
                               ELEMENTSOF(code), NULL);

        assert_true(fd >= 0);
        return fd;
}

/* fd: becomes the callee's; -EBADF: nothing is there any more. */
static void put(const char *path, int fd) {
        (void) unlink(path);
        if (fd < 0)
                return;
        assert_ok(bpf_obj_pin(fd, path));
        (void) close(fd);
}

/*
 * Of a daemon that was killed, after 11 calls, something is no longer what it was. The next one
 * measures, and keeps what it measures, whatever it can make of the rest.
 */
static void spoil(Daemon *d, const char *path, int fd, uint64_t expected) {
        Answer answer;

        (void) daemon_start(d);
        calls(11);
        daemon_kill(d);
        put(path, fd);
        answer = daemon_start(d);
        assert_int_equal(answer.kept, 0);
        assert_int_equal(starts(&answer), expected);
        calls(2);
        answer = daemon_ask(d);
        assert_int_equal(starts(&answer), expected + 2);
        daemon_end(d);
        assert_there(NULL);
}

#define SPOILT(name) DIR_ "/bpf-1/" name

static void test_foreign_state(void **state) {
        spoil(*state, SPOILT("state"), -EBADF, 0);
        spoil(*state, SPOILT("state"), make_program(), 0);
        spoil(*state, SPOILT("state"), make_map(BPF_MAP_TYPE_HASH, 8, 1 << 16, 0), 0);
        spoil(*state, SPOILT("state"), make_map(BPF_MAP_TYPE_ARRAY, 8, 1 << 20, 0), 0);
        spoil(*state, SPOILT("state"), make_map(BPF_MAP_TYPE_ARRAY, 8, 1, BPF_F_MMAPABLE), 0);
        spoil(*state, SPOILT("state"), make_map(BPF_MAP_TYPE_ARRAY, 8, 1 << 20, BPF_F_MMAPABLE), 0);
}

/* The kernel writes as much as the foreign map has. */
static void test_foreign_maps(void **state) {
        spoil(*state, SPOILT("map_bindings"), make_program(), 0);
        spoil(*state, SPOILT("map_bindings"), make_map(BPF_MAP_TYPE_ARRAY, 12, 1, BPF_F_MMAPABLE),
              0);
        spoil(*state, SPOILT("map_statistics"), -EBADF, 0);
        spoil(*state, SPOILT("map_statistics"),
              make_map(BPF_MAP_TYPE_PERCPU_ARRAY, 32 << 10, ENGINE_BINDINGS_MAX, 0), 0);
        spoil(*state, SPOILT("map_maxima"),
              make_map(BPF_MAP_TYPE_ARRAY, 64 << 10, ENGINE_BINDINGS_MAX, 0), 0);
        /* No counters are in these. */
        spoil(*state, SPOILT("map_tasks"), -EBADF, 11);
        spoil(*state, SPOILT("map_tasks"), make_map(BPF_MAP_TYPE_HASH, 8, 1, 0), 11);
}

/* Whatever does not begin as ours do is not ours. */
static void test_others(void **state) {
        Daemon *d = *state;
        Answer answer;

        (void) close(open_directory());
        put(DIR_ "/foreign", make_program());
        assert_ok(mkdir(DIR_ "/bpf-", 0700));
        put(DIR_ "/bpf-1", make_map(BPF_MAP_TYPE_ARRAY, 8, 1, 0));
        assert_ok(mkdir(DIR_ "/bpf-7", 0700));
        put(DIR_ "/bpf-7/map_tasks", make_map(BPF_MAP_TYPE_ARRAY, 8, 1, 0));
        assert_ok(symlink("/", DIR_ "/bpf-8"));
        answer = daemon_start(d);
        assert_int_equal(answer.kept, 0);
        assert_ok(access(DIR_ "/bpf-9/state", F_OK));
        /* Was being made when somebody was killed. */
        assert_int_equal(access(DIR_ "/bpf-7", F_OK), -1);
        daemon_end(d);
        assert_ok(access(DIR_ "/foreign", F_OK));
        assert_ok(access(DIR_ "/bpf-", F_OK));
}

/* Measures, keeps nothing, and says so. */
static void test_nothing_can_be_made(void **state) {
        Daemon *d = *state;
        Answer answer;

        answer = daemon_start_disturbed(d, true);
        assert_int_equal(answer.kept, -EROFS);
        calls(3);
        answer = daemon_ask(d);
        assert_int_equal(starts(&answer), 3);
        daemon_end(d);
}

static void assert_refused(const char *path, const char *expected) {
        _cleanup_free_ char *reason = NULL;
        int fd = -EBADF;

        assert_true(keep_open(path, &fd, &reason) < 0);
        assert_string_equal(reason, expected);
        assert_int_equal(fd, -EBADF);
}

static void test_directory(void **state) {
        int fd = open_directory();
        struct stat st;

        assert_ok(fstat(fd, &st));
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_refused(DIR_, DIR_ " is in use by another tlobd");
        assert_refused(DIR_ "//", DIR_ " is in use by another tlobd");
        (void) close(fd);
        (void) close(open_directory());

        assert_ok(chmod(DIR_, 0720));
        assert_refused(DIR_, DIR_ " can be written by others than its owner");
        assert_ok(chmod(DIR_, 0702));
        assert_refused(DIR_, DIR_ " can be written by others than its owner");
        assert_ok(chmod(DIR_, 0755));
        (void) close(open_directory());
        assert_ok(chown(DIR_, 1, 0));
        assert_refused(DIR_, DIR_ " is not owned by root");

        assert_ok(symlink(DIR_, MOUNT "/link"));
        assert_refused(MOUNT "/link", MOUNT "/link is a symbolic link");
        assert_refused(MOUNT "/link/", MOUNT "/link is a symbolic link");
        assert_refused(MOUNT "/none/tlob",
                       "Failed to open " MOUNT "/none/: No such file or directory");
        put(MOUNT "/map", make_map(BPF_MAP_TYPE_ARRAY, 8, 1, 0));
        assert_refused(MOUNT "/map", "Failed to open " MOUNT "/map: Not a directory");

        assert_ok(chown(DIR_, 0, 0));
        assert_ok(mount(NULL, MOUNT, NULL, MS_REMOUNT | MS_RDONLY, NULL));
        assert_refused(DIR_, DIR_ " cannot be written: Read-only file system");
        assert_refused(MOUNT "/new", "Failed to make " MOUNT "/new: Read-only file system");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_directory),
                TEST(test_killed),
                TEST(test_ended),
                TEST(test_other_layout),
        };
        /* No matter of the kernel: not where it takes long to load the programs. */
        const struct CMUnitTest others[] = {
                TEST(test_removed_between), TEST(test_removed_while_running),
                TEST(test_foreign_state),   TEST(test_foreign_maps),
                TEST(test_others),          TEST(test_nothing_can_be_made),
        };
        int r;

        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
                print_error("A mount namespace is needed: %s\n", strerror(errno));
                return EXIT_FAILURE;
        }
        r = cmocka_run_group_tests(tests, NULL, NULL);
        if (r == 0 && !machine_is_emulated())
                r = cmocka_run_group_tests(others, NULL, NULL);
        return r;
}
