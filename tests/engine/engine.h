/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "backend/backend.h"

/* For tests of a real back end: bindings on a victim, its runs, and what was reported of them. */

#define KEYS(...)           ((const char *const[]) { __VA_ARGS__, NULL })
#define FUNCTION(f, budget) KEYS("Executable", "%v", "Function", "victim_" f, "BudgetSec", budget)
#define MARKERS(x, budget)                                                                         \
        KEYS("Executable", "%v", "Start", "victim_begin_" x, "Stop", "victim_end_" x, "BudgetSec", \
             budget)

/*
 * A group of tests, as a function that runs them and returns how many failed. A program has one
 * such group, or many: then the programs of the back end are loaded only once for all.
 */
typedef struct EngineTests {
        const char *name;
        int (*run)(void);
} EngineTests;

#define ENGINE_TESTS(x)                                                                            \
        static int run_##x(void);                                                                  \
        __attribute__((section("engine_tests"), used)) static const EngineTests tests_##x = {      \
                .name = #x,                                                                        \
                .run = run_##x,                                                                    \
        };                                                                                         \
        static int run_##x(void)

#define ENGINE_BINDINGS_MAX 128
#define ENGINE_TASKS_MAX    512
#define ENGINE_PAGES_MAX    8

typedef struct Engine {
        Backend *backend;
        bool added[ENGINE_BINDINGS_MAX]; /* by index */
        Report *reports;                 /* in the order in which they came */
        size_t n_reports;
} Engine;

/* The victim's own record of one of its windows. */
typedef struct Window {
        char name[8];
        uint64_t start_ns;
        uint64_t end_ns;
        uint32_t tid;
} Window;

typedef struct Victim {
        pid_t pid;
        FILE *out;
        int in;
        Window *windows;
        size_t n_windows;
        int status; /* as from waitpid() */
} Victim;

/*
 * A cmocka fixture: *state is an Engine with a back end and no bindings. To load the programs takes
 * seconds in an emulator, so all tests of a program have the same back end.
 */
int engine_setup(void **state);
int engine_teardown(void **state);

/*
 * The back end is to go on from what another one has kept, whose descriptors these are (as in
 * BackendConfig); before the first engine_setup().
 */
void engine_inherit(int kept_fds[static BACKEND_N_KEPT]);

/* The back end is to keep what it has in that directory, as BackendConfig has it; the same. */
void engine_keep(const int *keep_fd);

/*
 * Where programs ask to join, also those of back ends in children of this process: it is in the
 * environment of all of them.
 */
const char *engine_marks_socket(void);

/*
 * Adds a binding, failing the test if that fails. keys: alternating keys and values, NULL at the
 * end; "%v" in a value stands for the victim's path. Returns its index; *ret: owned by the caller,
 * if not NULL.
 */
uint32_t engine_add(Engine *engine, const char *const *keys, Binding **ret);

/* The same with a binding that is the caller's, and stays so. */
uint32_t engine_add_binding(Engine *engine, Binding *binding);

#define ENGINE_USER 65534

/* A copy of the victim that is that user's, in the place of a template for mkstemp(). */
void engine_copy_victim(char *path, int *ret_fd);

/* A binding of its function a for that user; the caller's. */
Binding *engine_lend(const char *path, int fd);

/* As binding_resolve(), for one that is lent, too. */
int engine_resolve(Binding *binding, BindingFile **ret, char **ret_error);

/* Its keys, as above. */
void engine_set_keys(Binding *binding, const char *const *keys);

/* Takes it away, with the books checked. */
void engine_remove(Engine *engine, uint32_t index, Statistics *ret_final);

/* Waits until what was taken away has left the kernel. */
void engine_await_detached(void);

/* Starts the victim with words, split at blanks. */
void victim_start(Victim *victim, const char *words);

/* The same with another program, which talks as the victim does. */
void program_start(Victim *victim, const char *path, const char *words);

/* The same with arguments that have blanks: NULL at the end. */
void program_spawn(Victim *victim, const char *const *argv);

#define RESULT_MAX 128

/*
 * Waits until a program has ended well that prints its windows in the form "NAME START END TID",
 * and at its end "result ...", which *result is then.
 */
void program_finish(Victim *victim, char result[static RESULT_MAX]);

/* Waits until the victim says that word. */
void victim_expect(Victim *victim, const char *word);

/* Lets it go on after that. */
void victim_continue(Victim *victim);

/* Reads the rest of its records, and waits for its end. */
void victim_finish(Victim *victim);
void victim_done(Victim *victim);

/* All of it: start, finish, and collect the reports. */
void engine_run(Engine *engine, Victim *victim, const char *words);

/* Takes in the reports that are there. */
void engine_collect(Engine *engine);

/* The statistics, with the books checked: they balance. */
Statistics engine_statistics(Engine *engine, uint32_t index);

/* The i-th report of that type and binding; fails the test if there is none. */
const Report *engine_report(Engine *engine, ReportType type, uint32_t index, size_t i);
size_t engine_count(const Engine *engine, ReportType type, uint32_t index);

/* The completion of the window of that violation; fails the test if there is none. */
const Report *engine_completion(const Engine *engine, const Report *violation);

/* In an emulator a CPU may stand still for long, and nothing takes as long as it should. */
bool machine_is_emulated(void);

/* Checks what always holds for a report: the states sum up, and more. */
void assert_report_is_sound(const Report *report);

#endif
