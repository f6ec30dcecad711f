/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "bpf/kept.h"
#include "service.h"
#include "test.h"

#define LOOK_MS 20

/* While others go on: there are no books to be checked. */
static void look(Engine *engine, int out) {
        const Answer nothing = {};

        for (unsigned i = 0; i < LOOK_MS; i++) {
                engine_collect(engine);
                (void) usleep(1000);
        }
        assert_int_equal(write(out, &nothing, sizeof(nothing)), sizeof(nothing));
}

static void answer(Engine *engine, uint32_t index, int out) {
        _cleanup_(past_done) Past past = {};
        const Backend *backend = engine->backend;
        Answer answer = {};
        Histogram lengths = {};

        engine_collect(engine);
        answer.statistics = engine_statistics(engine, index);
        assert_ok(backend->ops->histogram(engine->backend, index, &lengths));
        assert_ok(backend->ops->add_past(engine->backend, index, &past));
        statistics_add(&answer.statistics, &past.statistics);
        if (past.lengths)
                histogram_add(&lengths, past.lengths);
        for (size_t i = 0; i < TLOB_BUCKETS; i++)
                answer.n_lengths += lengths.counts[i];
        answer.n_violations = engine_count(engine, REPORT_VIOLATION, index);
        answer.n_completions = engine_count(engine, REPORT_COMPLETION, index);
        for (size_t i = 0; i < answer.n_completions; i++) {
                const Report *report = engine_report(engine, REPORT_COMPLETION, index, i);

                if (report->spent_ns[TLOB_SLEEPING] > answer.slept_ns)
                        answer.slept_ns = report->spent_ns[TLOB_SLEEPING];
        }
        assert_int_equal(write(out, &answer, sizeof(answer)), sizeof(answer));
}

const char *const *daemon_former_keys;

static void be_daemon(Daemon *d, const char *const *keys, int in, int out) {
        int numbers[BACKEND_N_KEPT];
        Engine *engine;
        uint32_t index;
        void *state;
        char c;

        engine_inherit(d->fds);
        assert_int_equal(engine_setup(&state), 0);
        engine = state;
        index = d->is_of_service ? service_add(engine, keys) : engine_add(engine, keys, NULL);
        if (daemon_former_keys)
                (void) engine_add(engine, daemon_former_keys, NULL);
        assert_true(engine->backend->ops->finish(engine->backend) >= 0);
        assert_int_equal(engine->backend->ops->keep(engine->backend, numbers), 0);
        assert_int_equal(write(out, numbers, sizeof(numbers)), sizeof(numbers));
        while (read(in, &c, 1) == 1) {
                if (c == LOOK) {
                        look(engine, out);
                        continue;
                }
                if (c == RESET)
                        assert_ok(engine->backend->ops->reset_statistics(engine->backend, index));
                answer(engine, index, out);
        }
}

static void take_descriptors(Daemon *d, const int numbers[static BACKEND_N_KEPT]) {
        int pidfd = (int) syscall(SYS_pidfd_open, d->pid, 0);

        assert_true(pidfd >= 0);
        for (size_t i = 0; i < BACKEND_N_KEPT; i++) {
                if (d->fds[i] >= 0)
                        (void) close(d->fds[i]);
                d->fds[i] = (int) syscall(SYS_pidfd_getfd, pidfd, numbers[i], 0);
                assert_true(d->fds[i] >= 0);
        }
        (void) close(pidfd);
}

void daemon_fork(Daemon *d, const char *const *keys) {
        int ask[2], answers[2];

        assert_int_equal(pipe(ask), 0);
        assert_int_equal(pipe(answers), 0);
        d->pid = fork();
        assert_true(d->pid >= 0);
        if (d->pid == 0) {
                (void) close(ask[1]);
                (void) close(answers[0]);
                be_daemon(d, keys, ask[0], answers[1]);
                _exit(EXIT_SUCCESS);
        }
        (void) close(ask[0]);
        (void) close(answers[1]);
        d->ask = ask[1];
        d->answers = answers[0];
}

void daemon_start(Daemon *d, const char *const *keys) {
        int numbers[BACKEND_N_KEPT];

        daemon_fork(d, keys);
        assert_int_equal(read(d->answers, numbers, sizeof(numbers)), sizeof(numbers));
        take_descriptors(d, numbers);
}

void daemon_kill(Daemon *d) {
        assert_int_equal(kill(d->pid, SIGKILL), 0);
        assert_int_equal(waitpid(d->pid, NULL, 0), d->pid);
        d->pid = 0;
        (void) close(d->ask);
        (void) close(d->answers);
}

Answer daemon_tell(const Daemon *d, char what) {
        Answer answer;

        assert_int_equal(write(d->ask, &what, 1), 1);
        assert_int_equal(read(d->answers, &answer, sizeof(answer)), sizeof(answer));
        return answer;
}

Answer daemon_ask(const Daemon *d) {
        return daemon_tell(d, ASK);
}

int daemon_set_up(void **state) {
        Daemon *d = calloc(1, sizeof(*d));

        assert_non_null(d);
        (void) engine_marks_socket();
        d->fds[0] = d->fds[1] = -EBADF;
        *state = d;
        return 0;
}

int daemon_tear_down(void **state) {
        Daemon *d = *state;

        if (d->pid > 0)
                daemon_kill(d);
        for (size_t i = 0; i < BACKEND_N_KEPT; i++)
                if (d->fds[i] >= 0)
                        (void) close(d->fds[i]);
        free(d);
        return 0;
}

static KeptCommon *map_common(const Daemon *d) {
        KeptCommon *common =
                mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED, d->fds[1], 0);

        assert_ptr_not_equal(common, MAP_FAILED);
        return common;
}

void daemon_be_other_build(const Daemon *d) {
        KeptCommon *common = map_common(d);

        common->format.programs ^= 1;
        (void) munmap(common, sizeof(*common));
}

void daemon_be_other_layout(const Daemon *d) {
        KeptCommon *common = map_common(d);

        common->format.layout ^= 1;
        (void) munmap(common, sizeof(*common));
}
