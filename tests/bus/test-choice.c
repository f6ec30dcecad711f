/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Which of several back ends gets a binding, and why: by what they can do, by what they say of this
 * binding, by what happens when they try, and by what the administrator asked for.
 */

#include <ftw.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>

#include "base/sentence.h"
#include "manager/manager.h"
#include "test.h"
#include "tlob-bus.h"

#define ENTRIES_MAX 16

/* A back end that does as it is told, and nothing else. */
typedef struct Choice {
        Backend backend;
        bool used[ENTRIES_MAX];
        const char *absent;  /* why it is not there */
        const char *refuses; /* why it cannot measure any binding */
        int new_error;
        unsigned n_probes;
        unsigned n_new;
        int add_error;
        bool refuses_budgets;       /* of set_budget() */
        bool is_advice, has_notice; /* it has something to say of its first binding */
        bool was_alone;             /* when it got its last binding, no other had one */
        unsigned n_resets;
        uint64_t finds_ns[2];      /* when it will have found violations of its first binding, */
        uint64_t last_finds_ns[2]; /* and those that come when it has lost it */
} Choice;

static Choice first, second;

static bool has_any(const Choice *choice) {
        for (size_t i = 0; i < ENTRIES_MAX; i++)
                if (choice->used[i])
                        return true;
        return false;
}

static int absent_or_not(Choice *choice, char **ret_reason) {
        choice->n_probes++;
        return choice->absent ? sentence_error(-ENOENT, ret_reason, "%s", choice->absent) : 0;
}

static int probe_first(char **ret_reason) {
        return absent_or_not(&first, ret_reason);
}

static int probe_second(char **ret_reason) {
        return absent_or_not(&second, ret_reason);
}

static const BackendOps ops_first, ops_second;

static int new_first(const BackendConfig *config, Backend **ret, char **ret_reason) {
        first.n_new++;
        if (first.new_error < 0)
                return sentence_error(first.new_error, ret_reason, "It cannot be made");
        first.backend.ops = &ops_first;
        *ret = &first.backend;
        return 0;
}

static int new_second(const BackendConfig *config, Backend **ret, char **ret_reason) {
        second.backend.ops = &ops_second;
        *ret = &second.backend;
        return 0;
}

/* It never has anything to read: what it has found is asked for. */
static int get_fd_choice(Backend *backend) {
        static int fds[2] = { -EBADF, -EBADF };
        int *fd = &fds[(Choice *) backend == &second];

        if (*fd < 0)
                *fd = eventfd(0, EFD_CLOEXEC);
        return *fd;
}

static Backend *free_choice(Backend *backend) {
        return NULL;
}

static int can_first(const Binding *binding, const BindingFile *file, char **ret_reason) {
        assert_non_null(file);
        return first.refuses ? sentence_error(-EOPNOTSUPP, ret_reason, "%s", first.refuses) : 0;
}

static int add_choice(Backend *backend, const Binding *binding, const BindingFile *file,
                      uint32_t *ret_index, char **ret_reason) {
        Choice *choice = (Choice *) backend;

        if (choice->add_error < 0)
                return sentence_error(choice->add_error, ret_reason, "It did not work");
        choice->was_alone = !has_any(choice == &first ? &second : &first);
        for (uint32_t i = 0; i < ENTRIES_MAX; i++)
                if (!choice->used[i]) {
                        choice->used[i] = true;
                        *ret_index = i;
                        return 0;
                }
        return -ENOSPC;
}

static int remove_choice(Backend *backend, uint32_t index, Statistics *ret_final,
                         Histogram *histogram) {
        ((Choice *) backend)->used[index] = false;
        *ret_final = (Statistics) {};
        return 0;
}

static int set_budget_choice(Backend *backend, uint32_t index,
                             const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        return ((Choice *) backend)->refuses_budgets ? -EOPNOTSUPP : 0;
}

static int reset_choice(Backend *backend, uint32_t index) {
        ((Choice *) backend)->n_resets++;
        return 0;
}

static int dispatch_choice(Backend *backend, BackendReportHandler handler, void *userdata) {
        Choice *choice = (Choice *) backend;

        uint64_t *finds_ns = has_any(choice) ? choice->finds_ns : choice->last_finds_ns;

        for (size_t i = 0; i < ELEMENTSOF(choice->finds_ns); i++) {
                Report report = {
                        .type = REPORT_VIOLATION,
                        .id = (choice == &first ? 100 : 200) + finds_ns[i] % 100,
                        .time_ns = finds_ns[i],
                };

                if (report.time_ns == 0)
                        continue;
                finds_ns[i] = 0;
                handler(&report, userdata);
        }
        return 0;
}

static int get_statistics_choice(Backend *backend, uint32_t index, Statistics *ret) {
        *ret = (Statistics) {};
        return 0;
}

static int next_notice_choice(Backend *backend, BackendNotice *ret) {
        Choice *choice = (Choice *) backend;

        if (!choice->has_notice)
                return 0;
        choice->has_notice = false;
        *ret = (BackendNotice) {
                .level = LOG_DEBUG,
                .is_advice = choice->is_advice,
                .text = strdup("It is tired"),
        };
        assert_non_null(ret->text);
        return 1;
}

static uint64_t lost_choice(Backend *backend) {
        return 0;
}

/* The names that Backend= can choose. */
static const BackendOps ops_first = {
        .name = "kernel",
        .capabilities = BACKEND_CAN_RETURN,
        .probe = probe_first,
        .new = new_first,
        .free = free_choice,
        .get_fd = get_fd_choice,
        .can = can_first,
        .add = add_choice,
        .remove = remove_choice,
        .set_budget = set_budget_choice,
        .statistics = get_statistics_choice,
        .reset_statistics = reset_choice,
        .dispatch = dispatch_choice,
        .next_notice = next_notice_choice,
        .lost = lost_choice,
};

static const BackendOps ops_second = {
        .name = "bpf",
        .capabilities = BACKEND_CAN_RETURN | BACKEND_CAN_STATE_BUDGET | BACKEND_CAN_MINIMUM |
                        BACKEND_CAN_INFINITE | BACKEND_CAN_CALL | BACKEND_CAN_KEY,
        .probe = probe_second,
        .new = new_second,
        .free = free_choice,
        .get_fd = get_fd_choice,
        .add = add_choice,
        .remove = remove_choice,
        .set_budget = set_budget_choice,
        .statistics = get_statistics_choice,
        .reset_statistics = reset_choice,
        .dispatch = dispatch_choice,
        .lost = lost_choice,
};

static const BackendOps *const both[] = { &ops_first, &ops_second, NULL };

typedef struct Fixture {
        char directory[32];
        char *directories[3];
        Manager *manager;
} Fixture;

static int setup(void **state) {
        Fixture *f = calloc(1, sizeof(*f));

        assert_non_null(f);
        strcpy(f->directory, "/tmp/tlob-choice-XXXXXX");
        assert_non_null(mkdtemp(f->directory));
        assert_true(asprintf(&f->directories[0], "%s/etc", f->directory) > 0);
        assert_true(asprintf(&f->directories[1], "%s/run", f->directory) > 0);
        assert_ok(mkdir(f->directories[0], 0755));
        assert_ok(mkdir(f->directories[1], 0755));
        first = second = (Choice) {};
        *state = f;
        return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

static int teardown(void **state) {
        Fixture *f = *state;

        manager_free(f->manager);
        assert_ok(nftw(f->directory, remove_one, 16, FTW_DEPTH | FTW_PHYS));
        free(f->directories[0]);
        free(f->directories[1]);
        free(f);
        return 0;
}

/* A binding with those lines; its name is "b". */
static Binding *load(Fixture *f, const char *lines) {
        _cleanup_free_ char *directory = NULL, *path = NULL;
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        FILE *file;

        assert_true(asprintf(&directory, "%s/bindings.d", f->directories[0]) > 0);
        assert_true(asprintf(&path, "%s/b.conf", directory) > 0);
        (void) mkdir(directory, 0755);
        file = fopen(path, "we");
        assert_non_null(file);
        (void) fprintf(file,
                       "[Binding b]\nExecutable=libc.so.6\nFunction=getenv\n"
                       "[Binding b]\n%s",
                       lines);
        (void) fclose(file);

        if (!f->manager) {
                assert_ok(manager_new(both, (const char *const *) f->directories, &f->manager));
                assert_true(sd_event_new(&event) >= 0);
                assert_ok(manager_attach_event(f->manager, event));
                assert_ok(manager_probe_backends(f->manager));
        }
        assert_true(manager_reload(f->manager) >= 0);
        /* The files that it did not wait for. */
        while (manager_is_busy(f->manager))
                assert_true(sd_event_run(manager_get_event(f->manager), UINT64_MAX) >= 0);
        return binding_table_get(manager_bindings(f->manager), "b");
}

static void assert_chosen(const Binding *b, const BackendOps *ops, const char *why) {
        assert_int_equal(b->measurement.state, BINDING_ACTIVE);
        assert_ptr_equal(b->measurement.backend->ops, ops);
        assert_string_equal(b->measurement.backend_reason, why);
}

static void assert_failed(const Binding *b, const char *why) {
        assert_int_equal(b->measurement.state, BINDING_FAILED);
        assert_null(b->measurement.backend);
        assert_null(b->measurement.backend_reason);
        assert_non_null(strstr(b->measurement.reason, why));
}

/* A manager that is not started has touched nothing: no back end, no process. */
static void test_in_memory(void **state) {
        Fixture *f = *state;

        assert_ok(manager_new(both, (const char *const *) f->directories, &f->manager));
        assert_int_equal(first.n_probes + second.n_probes, 0);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
        assert_null(manager_get_backend(f->manager, 0));
        assert_null(manager_get_limitation(f->manager, 0));

        assert_ok(manager_probe_backends(f->manager));
        assert_int_equal(first.n_probes + second.n_probes, 2);
        assert_string_equal(manager_get_backend(f->manager, 0), "kernel");
}

static void test_first(void **state) {
        assert_chosen(load(*state, "BudgetSec=5ms\n"), &ops_first,
                      "The first back end that can "
                      "measure it");
}

static void test_by_capability(void **state) {
        assert_chosen(load(*state, "BudgetSec=infinity\n"), &ops_second,
                      "Back end 'kernel' cannot measure without a budget");
}

static void test_by_budget_of_a_state(void **state) {
        assert_chosen(load(*state, "BudgetSec=5ms\nSleepingBudgetSec=1ms\n"), &ops_second,
                      "Back end 'kernel' cannot limit the time in one state");
}

static void test_by_minimum(void **state) {
        assert_chosen(load(*state, "BudgetSec=5ms\nBudgetMinSec=1ms\n"), &ops_second,
                      "Back end 'kernel' cannot find windows that are too short");
}

static void test_by_key(void **state) {
        assert_chosen(load(*state, "Stop=setenv\nKey=arg1\nBudgetSec=5ms\n"), &ops_second,
                      "Back end 'kernel' cannot tell windows apart by a key");
}

/* It has no file: nobody has to be asked about one, and none is watched. */
static void test_by_system_call(void **state) {
        Fixture *f = *state;
        Binding *b;

        b = load(f, "Executable=\nSyscall=fsync\nBudgetSec=5ms\n");
        assert_chosen(b, &ops_second, "Back end 'kernel' cannot measure system calls");
        assert_null(b->resolved.path);
        assert_int_equal(b->watch.descriptor, 0);
        assert_int_equal(b->watch.due_usec, 0);
        assert_null(manager_get_watch(f->manager));
        assert_failed(load(f, "Executable=\nSyscall=fsync\nBudgetSec=5ms\nBackend=kernel\n"),
                      "Back end 'kernel' cannot measure system calls");
        assert_failed(load(f, "Syscall=fsync\nBudgetSec=5ms\n"),
                      "Executable=libc.so.6 and Syscall=fsync exclude each other");
        assert_failed(load(f, "Executable=\nSyscall=exit\nBudgetSec=5ms\n"),
                      "b.conf:6: Syscall=exit is not possible: 'exit' never returns");
}

static void test_by_its_word(void **state) {
        first.refuses = "It is not in the mood";
        assert_chosen(load(*state, "BudgetSec=5ms\n"), &ops_second, "It is not in the mood");
}

/* It could, but then it did not work. */
static void test_by_trial(void **state) {
        first.add_error = -EEXIST;
        assert_chosen(load(*state, "BudgetSec=5ms\n"), &ops_second, "It did not work");
}

/* It may take long: once is enough for many bindings. */
static void test_made_once(void **state) {
        static const char lines[] = "BudgetSec=5ms\n"
                                    "[Binding c]\n"
                                    "Executable=libc.so.6\nFunction=getenv\nBudgetSec=5ms\n";
        Fixture *f = *state;

        first.new_error = -EIO;
        assert_chosen(load(f, lines), &ops_second, "It cannot be made");
        assert_chosen(binding_table_get(manager_bindings(f->manager), "c"), &ops_second,
                      "It cannot be made");
        assert_int_equal(first.n_new, 1);
}

static void test_absent(void **state) {
        first.absent = "This kernel has none";
        assert_chosen(load(*state, "BudgetSec=5ms\n"), &ops_second, "This kernel has none");
        assert_failed(load(*state, "BudgetSec=5ms\nBackend=kernel\n"), "This kernel has none");
}

static void test_nothing(void **state) {
        first.absent = "This kernel has none";
        second.absent = "There is no type information";
        assert_failed(load(*state, "BudgetSec=5ms\n"),
                      "This kernel has none; There is no type information");
}

/* What was asked for is not changed silently. */
static void test_as_asked(void **state) {
        assert_chosen(load(*state, "BudgetSec=5ms\nBackend=bpf\n"), &ops_second,
                      "As configured by Backend=");
        assert_failed(load(*state, "BudgetSec=infinity\nBackend=kernel\n"),
                      "Back end 'kernel' cannot measure without a budget");
        first.refuses = "It is not in the mood";
        assert_failed(load(*state, "BudgetSec=5ms\nBackend=kernel\n"), "It is not in the mood");
        first.refuses = NULL;
        first.add_error = -EEXIST;
        assert_failed(load(*state, "BudgetSec=6ms\nBackend=kernel\n"), "It did not work");
        assert_false(second.used[0]);
}

/* A budget that its back end does not take: another one does. */
static void test_other_budget(void **state) {
        _cleanup_free_ char *error = NULL;
        Fixture *f = *state;
        Binding *b;

        b = load(f, "BudgetSec=5ms\n");
        assert_chosen(b, &ops_first, "The first back end that can measure it");
        first.refuses_budgets = true;
        first.refuses = "It takes no such budgets";
        assert_ok(manager_set_budget(f->manager, "b", BUDGET_NONE, 0, &error));
        assert_ptr_equal(b->measurement.backend->ops, &ops_second);
        assert_false(first.used[0]);
        assert_true(second.used[0]);
}

/*
 * Where it could not be it goes again when it can: by a budget, by its file, and never with nobody
 * there.
 */
static void test_back(void **state) {
        _cleanup_free_ char *error = NULL;
        Fixture *f = *state;
        Binding *b;

        b = load(f, "BudgetSec=infinity\n");
        assert_ptr_equal(b->measurement.backend->ops, &ops_second);
        assert_ok(manager_set_budget(f->manager, "b", 5000000, 0, &error));
        assert_chosen(b, &ops_first, "The first back end that can measure it");
        assert_false(first.was_alone);
        assert_false(has_any(&second));
        assert_int_equal(first.n_resets, 1);

        first.refuses_budgets = true;
        assert_ok(manager_set_budget(f->manager, "b", TLOB_BUDGET_CONFIGURED, 0, &error));
        assert_chosen(b, &ops_second, "Back end 'kernel' cannot measure without a budget");
        assert_false(second.was_alone);
        assert_false(has_any(&first));

        b = load(f, "BudgetSec=5ms\n");
        assert_chosen(b, &ops_first, "The first back end that can measure it");
        assert_false(first.was_alone);
        assert_false(has_any(&second));
}

/* As long as the other place is not free, it stays. */
static void test_not_back(void **state) {
        _cleanup_free_ char *error = NULL;
        Fixture *f = *state;
        Binding *b;

        b = load(f, "BudgetSec=infinity\n");
        first.add_error = -EOPNOTSUPP;
        assert_ok(manager_set_budget(f->manager, "b", 5000000, 0, &error));
        assert_chosen(b, &ops_second, "It did not work");
        assert_int_equal(second.n_resets, 0);
        first.refuses = "It is not in the mood";
        b = load(f, "BudgetSec=6ms\n");
        assert_chosen(b, &ops_second, "It is not in the mood");
        b = load(f, "BudgetSec=6ms\nBackend=bpf\n");
        assert_chosen(b, &ops_second, "As configured by Backend=");
}

#define OTHER(name, backend)                                                                       \
        "[Binding " name "]\nExecutable=libc.so.6\nFunction=getenv\nBudgetSec=5ms\n"               \
        "Backend=" backend "\n"

/* A binding that stays in its place takes no room for another one there. */
static void test_room(void **state) {
        static const char three[] =
                "BudgetSec=infinity\n" OTHER("c", "kernel") OTHER("d", "kernel");
        static const char four[] =
                "BudgetSec=infinity\n" OTHER("c", "kernel") OTHER("d", "kernel") OTHER("e", "bpf");
        _cleanup_free_ char *error = NULL, *path = NULL;
        Fixture *f = *state;
        FILE *file;

        assert_true(asprintf(&path, "%s/tlobd.conf", f->directories[0]) > 0);
        file = fopen(path, "we");
        assert_non_null(file);
        assert_true(fputs("[Daemon]\nBindingsMax=2\n", file) >= 0);
        assert_ok(fclose(file));

        assert_ptr_equal(load(f, three)->measurement.backend->ops, &ops_second);
        first.add_error = -EOPNOTSUPP;
        assert_ok(manager_set_budget(f->manager, "b", 5000000, 0, &error));
        assert_chosen(load(f, four), &ops_second, "It did not work");
        assert_chosen(binding_table_get(manager_bindings(f->manager), "e"), &ops_second,
                      "As configured by Backend=");
}

/* Each violation is one of the two back ends', by its time. */
static void test_handed_over(void **state) {
        const uint64_t later = UINT64_MAX / 200 * 100 + 3;
        static const uint64_t expected[] = { 101, 102, 203 };
        Fixture *f = *state;
        Binding *b;

        b = load(f, "BudgetSec=5ms\n");
        first.has_notice = first.is_advice = true;
        first.finds_ns[0] = second.finds_ns[0] = 1;
        first.last_finds_ns[0] = 2;
        first.last_finds_ns[1] = second.finds_ns[1] = later;
        manager_take_notices(f->manager);
        assert_chosen(b, &ops_second, "It is tired");
        assert_null(manager_get_violation(f->manager, ELEMENTSOF(expected)));
        for (size_t i = 0; i < ELEMENTSOF(expected); i++)
                assert_int_equal(manager_get_violation(f->manager, 2 - i)->report.id, expected[i]);
}

/* Its back end says of a binding that it cannot, or should not, measure it any longer. */
static const BackendOps *after_notice(Fixture *f, const char *lines, bool is_advice) {
        Binding *b;

        first = second = (Choice) {};
        b = load(f, lines);
        assert_ptr_equal(b->measurement.backend->ops, &ops_first);
        first.refuses = "It is tired";
        first.has_notice = true;
        first.is_advice = is_advice;
        manager_take_notices(f->manager);
        assert_false(first.has_notice);
        return b->measurement.backend ? b->measurement.backend->ops : NULL;
}

static void test_notice(void **state) {
        assert_ptr_equal(after_notice(*state, "BudgetSec=5ms\n", false), &ops_second);
}

static void test_notice_as_asked(void **state) {
        assert_null(after_notice(*state, "BudgetSec=5ms\nBackend=kernel\n", false));
}

static void test_advice(void **state) {
        assert_ptr_equal(after_notice(*state, "BudgetSec=5ms\n", true), &ops_second);
}

/* It was asked to stay where it is. */
static void test_advice_as_asked(void **state) {
        assert_ptr_equal(after_notice(*state, "BudgetSec=5ms\nBackend=kernel\n", true), &ops_first);
}

static void test_verify(void **state) {
        _cleanup_(verdict_done) Verdict verdict = {};
        _cleanup_free_ char *error = NULL;
        Fixture *f = *state;
        Binding *binding;
        int r;

        first.refuses = "It is not in the mood";
        binding = load(f, "BudgetSec=5ms\n");
        while ((r = manager_verify_binding(f->manager, binding, &verdict, &error)) ==
               -EINPROGRESS) {
                free(error);
                error = NULL;
                assert_true(sd_event_run(manager_get_event(f->manager), UINT64_MAX) >= 0);
        }
        assert_ok(r);
        assert_string_equal(verdict.backend, "bpf");
        assert_string_equal(verdict.reason, "It is not in the mood");
        assert_non_null(strstr(verdict.cost, "processes that map /"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_in_memory, setup, teardown),
                cmocka_unit_test_setup_teardown(test_first, setup, teardown),
                cmocka_unit_test_setup_teardown(test_by_capability, setup, teardown),
                cmocka_unit_test_setup_teardown(test_by_minimum, setup, teardown),
                cmocka_unit_test_setup_teardown(test_by_key, setup, teardown),
                cmocka_unit_test_setup_teardown(test_by_budget_of_a_state, setup, teardown),
                cmocka_unit_test_setup_teardown(test_by_system_call, setup, teardown),
                cmocka_unit_test_setup_teardown(test_by_its_word, setup, teardown),
                cmocka_unit_test_setup_teardown(test_by_trial, setup, teardown),
                cmocka_unit_test_setup_teardown(test_made_once, setup, teardown),
                cmocka_unit_test_setup_teardown(test_absent, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
                cmocka_unit_test_setup_teardown(test_as_asked, setup, teardown),
                cmocka_unit_test_setup_teardown(test_other_budget, setup, teardown),
                cmocka_unit_test_setup_teardown(test_back, setup, teardown),
                cmocka_unit_test_setup_teardown(test_not_back, setup, teardown),
                cmocka_unit_test_setup_teardown(test_room, setup, teardown),
                cmocka_unit_test_setup_teardown(test_handed_over, setup, teardown),
                cmocka_unit_test_setup_teardown(test_notice, setup, teardown),
                cmocka_unit_test_setup_teardown(test_notice_as_asked, setup, teardown),
                cmocka_unit_test_setup_teardown(test_advice, setup, teardown),
                cmocka_unit_test_setup_teardown(test_advice_as_asked, setup, teardown),
                cmocka_unit_test_setup_teardown(test_verify, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
