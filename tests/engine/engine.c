/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The fixture of the engine tests: a real back end, set up as the manager would, and victims. What
 * must hold for each report and for all books is checked here, whatever a test looks at.
 */

#include "engine.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/sanitizer.h"
#include "binding/keys.h"
#include "binding/resolve.h"
#include "test.h"

#define WORDS_MAX 512

#ifdef SANITIZED_THREADS
#define N_OWN_THREADS 2
#else
#define N_OWN_THREADS 1
#endif

static const char *victim_path(void) {
        const char *path = getenv("TLOB_TEST_VICTIM");

        if (!path)
                fail_msg("TLOB_TEST_VICTIM does not name the victim.");
        return path;
}

bool machine_is_emulated(void) {
        _cleanup_fclose_ FILE *f = fopen("/proc/cpuinfo", "re");
        char line[256];

        assert_non_null(f);
        while (fgets(line, sizeof(line), f))
                if (strstr(line, "QEMU TCG"))
                        return true;
        return false;
}

static Backend *backend;
static int *inherited_fds;
static const int *keep_fd;

void engine_inherit(int kept_fds[static BACKEND_N_KEPT]) {
        inherited_fds = kept_fds;
}

void engine_keep(const int *fd) {
        keep_fd = fd;
}

static void free_backend(void) {
        backend->ops->free(backend);
}

const char *engine_marks_socket(void) {
        char path[64];

        (void) snprintf(path, sizeof(path), "/tmp/tlob-marks-%i", getpid());
        assert_int_equal(setenv("TLOB_TEST_MARKS", path, false), 0);
        return getenv("TLOB_TEST_MARKS");
}

static void need_backend(void) {
        const BackendConfig config = {
                .bindings_max = ENGINE_BINDINGS_MAX,
                .tasks_max = ENGINE_TASKS_MAX,
                .ring_buffer_size = 1 << 20,
                .mark_pages_max = ENGINE_PAGES_MAX,
                .marks_socket = engine_marks_socket(),
                .kept_fds = inherited_fds,
                .keep_fd = keep_fd,
        };
        _cleanup_free_ char *reason = NULL;

        if (backend)
                return;
        if (backend_bpf_ops.probe(&reason) < 0 ||
            backend_bpf_ops.new(&config, &backend, &reason) < 0)
                fail_msg("The BPF back end does not work on this machine: %s", reason);
        assert_int_equal(atexit(free_backend), 0);
}

int engine_setup(void **state) {
        Engine *engine = calloc(1, sizeof(*engine));

        assert_non_null(engine);
        need_backend();
        engine->backend = backend;
        *state = engine;
        return 0;
}

static unsigned n_threads(void) {
        _cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
        unsigned n = 0;
        char line[256];

        assert_non_null(f);
        while (fgets(line, sizeof(line), f) && sscanf(line, "Threads: %u", &n) != 1)
                ;
        return n;
}

/*
 * Probes are taken away in threads, and the kernel locks the memory of whoever has the program
 * mapped for that: the next test's victim would sleep in its windows.
 */
void engine_await_detached(void) {
        static const struct timespec pause = { .tv_nsec = 1000000 };

        while (n_threads() > N_OWN_THREADS)
                (void) nanosleep(&pause, NULL);
}

static void drop_report(const Report *report, void *userdata) {
}

/* Whatever state a test that failed has left. */
int engine_teardown(void **state) {
        Engine *engine = *state;

        for (uint32_t i = 0; i < ENGINE_BINDINGS_MAX; i++)
                if (engine->added[i])
                        (void) backend->ops->remove(backend, i, &(Statistics) {}, &(Histogram) {});
        (void) backend->ops->flush(backend, drop_report, NULL);
        engine_await_detached();
        free(engine->reports);
        free(engine);
        return 0;
}

static void set_key(Binding *binding, const char *key, const char *value) {
        _cleanup_free_ char *error = NULL;

        if (strcmp(value, "%v") == 0)
                value = victim_path();
        if (binding_set_key(binding, key, value, &error) < 0)
                fail_msg("%s", error);
}

void engine_set_keys(Binding *binding, const char *const *keys) {
        for (; keys[0]; keys += 2)
                set_key(binding, keys[0], keys[1]);
}

/* A process of that user, with all that is open here. */
static pid_t start_holder(uid_t user) {
        pid_t parent = getpid(), pid = fork();
        int status;

        assert_true(pid >= 0);
        if (pid == 0) {
                if (setresgid(user, user, user) < 0 || setresuid(user, user, user) < 0 ||
                    prctl(PR_SET_DUMPABLE, 1) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
                    getppid() != parent)
                        _exit(EXIT_FAILURE);
                for (;;)
                        (void) raise(SIGSTOP);
        }
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        assert_true(WIFSTOPPED(status));
        return pid;
}

static void end_holder(pid_t pid) {
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int engine_resolve(Binding *binding, BindingFile **ret, char **ret_error) {
        int r;

        if (binding->lent.user == 0)
                return binding_resolve(binding, ret, ret_error);
        binding->lent.holder = start_holder(binding->lent.user);
        r = binding_resolve(binding, ret, ret_error);
        end_holder(binding->lent.holder);
        return r;
}

uint32_t engine_add_binding(Engine *engine, Binding *binding) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_free_ char *error = NULL;
        uint32_t index = 0;

        if (binding_check(binding, &error) < 0 || engine_resolve(binding, &file, &error) < 0 ||
            engine->backend->ops->add(engine->backend, binding, file, &index, &error) < 0)
                fail_msg("%s", error);
        engine->added[index] = true;
        assert_int_equal(engine->backend->ops->complete(engine->backend), 0);
        return index;
}

void engine_copy_victim(char *path, int *ret_fd) {
        _cleanup_close_ int from = open(victim_path(), O_RDONLY | O_CLOEXEC);
        _cleanup_close_ int to = mkstemp(path);
        struct stat st;

        assert_true(from >= 0 && to >= 0 && fstat(from, &st) == 0);
        assert_int_equal(sendfile(to, from, NULL, (size_t) st.st_size), st.st_size);
        assert_int_equal(fchmod(to, 0755), 0);
        assert_int_equal(fchown(to, ENGINE_USER, ENGINE_USER), 0);
        *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(*ret_fd >= 0);
}

Binding *engine_lend(const char *path, int fd) {
        _cleanup_(binding_freep) Binding *binding = NULL;

        assert_int_equal(binding_new("test", &binding), 0);
        engine_set_keys(binding,
                        KEYS("Executable", path, "Function", "victim_a", "BudgetSec", "10s"));
        binding->lent = (BindingLent) { .user = ENGINE_USER, .file_fd = fd, .file = strdup(path) };
        return TAKE_PTR(binding);
}

uint32_t engine_add(Engine *engine, const char *const *keys, Binding **ret) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        uint32_t index;

        assert_int_equal(binding_new("test", &binding), 0);
        engine_set_keys(binding, keys);
        index = engine_add_binding(engine, binding);
        if (ret)
                *ret = TAKE_PTR(binding);
        return index;
}

static void check_books(const Statistics *s) {
        const Counters *c = &s->counters;
        uint64_t ended = 0;

        for (size_t i = 0; i < TLOB_N_ENDS; i++)
                ended += c->ended[i];
        if (c->starts != c->in_budget + c->violated + s->open + ended + c->over_limit)
                print_message("%" PRIu64 " starts, %" PRIu64 " in budget, %" PRIu64 " violated, "
                              "%" PRIu64 " open, %" PRIu64 " ended, %" PRIu64 " over the limit\n",
                              c->starts, c->in_budget, c->violated, s->open, ended, c->over_limit);
        assert_int_equal(c->starts, c->in_budget + c->violated + s->open + ended + c->over_limit);
}

/* Each window that ended is in the histogram, once; but for those of which nobody knows when. */
static void check_lengths(const Statistics *s, const Histogram *histogram) {
        const Counters *c = &s->counters;
        uint64_t ended = c->in_budget + c->violated, n = 0;

        for (size_t i = 0; i < TLOB_N_ENDS; i++)
                ended += i == TLOB_END_ABANDONED || i == TLOB_END_SWITCHED ? 0 : c->ended[i];
        for (size_t i = 0; i < TLOB_BUCKETS; i++)
                n += histogram->counts[i];
        assert_int_equal(n, ended);
        if (n > 0)
                assert_true(histogram->counts[histogram_bucket(s->max_ns)] > 0);
}

Statistics engine_statistics(Engine *engine, uint32_t index) {
        Histogram histogram = {};
        Statistics statistics;

        assert_int_equal(engine->backend->ops->statistics(engine->backend, index, &statistics), 0);
        check_books(&statistics);
        assert_int_equal(engine->backend->ops->histogram(engine->backend, index, &histogram), 0);
        check_lengths(&statistics, &histogram);
        return statistics;
}

void engine_remove(Engine *engine, uint32_t index, Statistics *ret_final) {
        Histogram histogram = {};
        Statistics final;

        assert_int_equal(engine->backend->ops->remove(engine->backend, index, &final, &histogram),
                         0);
        engine->added[index] = false;
        check_books(&final);
        check_lengths(&final, &histogram);
        engine_collect(engine);
        if (ret_final)
                *ret_final = final;
}

void assert_report_is_sound(const Report *report) {
        uint64_t sum = 0;

        for (size_t i = 0; i < TLOB_N_STATES; i++)
                sum += report->spent_ns[i];
        /* With a key, only the length is known. */
        if (report->state < TLOB_N_STATES)
                assert_int_equal(sum, report->elapsed_ns);
        assert_true(report->exceeded & (1U << report->budget));
        assert_int_not_equal(report->id, 0);
        assert_int_not_equal(report->tid, 0);
}

static void on_report(const Report *report, void *userdata) {
        Engine *engine = userdata;

        if (report->type != REPORT_INSTANCE)
                assert_report_is_sound(report);
        engine->reports = reallocarray(engine->reports, engine->n_reports + 1, sizeof(*report));
        assert_non_null(engine->reports);
        engine->reports[engine->n_reports] = *report;
        engine->reports[engine->n_reports++].cgroup_path = NULL;
}

void engine_collect(Engine *engine) {
        assert_true(engine->backend->ops->flush(engine->backend, on_report, engine) >= 0);
}

size_t engine_count(const Engine *engine, ReportType type, uint32_t index) {
        size_t n = 0;

        for (size_t i = 0; i < engine->n_reports; i++)
                n += engine->reports[i].type == type && engine->reports[i].backend_index == index;
        return n;
}

const Report *engine_report(Engine *engine, ReportType type, uint32_t index, size_t i) {
        for (size_t j = 0; j < engine->n_reports; j++) {
                const Report *report = &engine->reports[j];

                if (report->type == type && report->backend_index == index && i-- == 0)
                        return report;
        }
        fail_msg("There is no such report.");
        return NULL;
}

const Report *engine_completion(const Engine *engine, const Report *violation) {
        for (size_t i = 0; i < engine->n_reports; i++)
                if (engine->reports[i].type == REPORT_COMPLETION &&
                    engine->reports[i].id == violation->id)
                        return &engine->reports[i];
        fail_msg("The window of a violation has not completed.");
        return NULL;
}

void program_spawn(Victim *victim, const char *const *argv) {
        posix_spawn_file_actions_t actions;
        int out[2], in[2];

        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
        assert_int_equal(posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO), 0);
        assert_int_equal(posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO), 0);
        *victim = (Victim) { .in = in[1] };
        assert_int_equal(
                posix_spawn(&victim->pid, argv[0], &actions, NULL, (char **) argv, environ), 0);
        (void) posix_spawn_file_actions_destroy(&actions);
        (void) close(out[1]);
        (void) close(in[0]);
        victim->out = fdopen(out[0], "r");
        assert_non_null(victim->out);
}

void program_start(Victim *victim, const char *path, const char *words) {
        _cleanup_free_ char *copy = strdup(words);
        const char *argv[WORDS_MAX] = { path };
        char *save = NULL;
        size_t n = 1;

        for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
                assert_true(n < WORDS_MAX - 1);
                argv[n++] = w;
        }
        program_spawn(victim, argv);
}

void program_finish(Victim *victim, char result[static RESULT_MAX]) {
        unsigned long long start, end;
        char line[RESULT_MAX], name[16];
        unsigned tid;

        result[0] = '\0';
        while (fgets(line, sizeof(line), victim->out)) {
                if (sscanf(line, "%15s %llu %llu %u", name, &start, &end, &tid) != 4) {
                        (void) strcpy(result, line);
                        continue;
                }
                victim->windows = reallocarray(victim->windows, victim->n_windows + 1,
                                               sizeof(*victim->windows));
                assert_non_null(victim->windows);
                victim->windows[victim->n_windows++] =
                        (Window) { .start_ns = start, .end_ns = end, .tid = tid };
        }
        assert_int_equal(waitpid(victim->pid, &victim->status, 0), victim->pid);
        victim->pid = 0;
        assert_int_equal(victim->status, 0);
        assert_non_null(strstr(result, "result "));
}

void victim_start(Victim *victim, const char *words) {
        program_start(victim, victim_path(), words);
}

/* One line of the victim's output; a record is kept. Returns 1, or 0 at its end. */
static int victim_read(Victim *victim, char line[static 128]) {
        unsigned long long start, end;
        Window window = {};

        if (!fgets(line, 128, victim->out))
                return 0;
        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%7s %llu %llu %u", window.name, &start, &end, &window.tid) == 4) {
                window.start_ns = start;
                window.end_ns = end;
                victim->windows =
                        reallocarray(victim->windows, victim->n_windows + 1, sizeof(window));
                assert_non_null(victim->windows);
                victim->windows[victim->n_windows++] = window;
        }
        return 1;
}

void victim_expect(Victim *victim, const char *word) {
        char line[128];

        while (victim_read(victim, line))
                if (strcmp(line, word) == 0)
                        return;
        fail_msg("The victim ended without saying '%s'.", word);
}

void victim_continue(Victim *victim) {
        assert_int_equal(write(victim->in, "\n", 1), 1);
}

void victim_finish(Victim *victim) {
        char line[128];

        while (victim_read(victim, line))
                ;
        assert_int_equal(waitpid(victim->pid, &victim->status, 0), victim->pid);
        victim->pid = 0;
}

void victim_done(Victim *victim) {
        if (victim->pid > 0) {
                (void) kill(victim->pid, SIGKILL);
                (void) waitpid(victim->pid, NULL, 0);
        }
        if (victim->out)
                (void) fclose(victim->out);
        if (victim->in > 0)
                (void) close(victim->in);
        free(victim->windows);
        *victim = (Victim) {};
}

void engine_run(Engine *engine, Victim *victim, const char *words) {
        victim_start(victim, words);
        victim_finish(victim);
        engine_collect(engine);
}
