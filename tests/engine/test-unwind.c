/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Who pays for the probes on longjmp() and the like: processes that are measured, and nobody else.
 * What a process has there is read from its memory.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bpf/uprobe.h"
#include "elf/file.h"
#include "elf/library.h"
#include "engine.h"
#include "test.h"

#define N_CROWD 70 /* more than CROWD_PROCESSES_MAX */

/* Where that byte of a file is in the memory of a process. */
static off_t address_in(pid_t pid, const char *path, uint64_t offset) {
        _cleanup_fclose_ FILE *f = NULL;
        char name[64], line[512];

        (void) snprintf(name, sizeof(name), "/proc/%i/maps", pid);
        f = fopen(name, "re");
        assert_non_null(f);
        while (fgets(line, sizeof(line), f)) {
                uint64_t begin, end, from;
                char mode[8];

                if (!strstr(line, path) || sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64,
                                                  &begin, &end, mode, &from) != 4)
                        continue;
                if (offset >= from && offset - from < end - begin)
                        return (off_t) (begin + (offset - from));
        }
        fail_msg("Process %i has no %s.", pid, path);
        return 0;
}

/* longjmp(), in the library that all of them have mapped. */
static struct {
        char *path;
        uint64_t offset;
        unsigned char byte; /* its first one, without a probe */
} longjmp_code;

static int find_longjmp(void **state) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_(elf_site_done) ElfSite site = {};
        _cleanup_free_ char *path = NULL;

        if (library_find("libc.so.6", NULL, &path) < 0 || elf_file_open(path, &elf, NULL) < 0 ||
            elf_file_resolve(elf, "longjmp", &site, NULL) < 0)
                return -1;
        longjmp_code.path = realpath(path, NULL);
        longjmp_code.offset = site.offset;
        return pread(elf_file_fd(elf), &longjmp_code.byte, 1, (off_t) site.offset) == 1 ? 0 : -1;
}

static int forget_longjmp(void **state) {
        free(longjmp_code.path);
        return 0;
}

static bool has_probe(const Victim *victim) {
        unsigned char byte = 0;
        char memory[64];
        int fd;

        (void) snprintf(memory, sizeof(memory), "/proc/%i/mem", victim->pid);
        fd = open(memory, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(pread(fd, &byte, 1,
                               address_in(victim->pid, longjmp_code.path, longjmp_code.offset)),
                         1);
        (void) close(fd);
        return byte != longjmp_code.byte;
}

/* Probes that were taken away leave the kernel a while later. */
static void wait_until_spared(Engine *engine, const Victim *victim) {
        for (unsigned i = 0; has_probe(victim); i++) {
                engine_collect(engine);
                (void) usleep(1000);
                assert_true(i < 60000);
        }
}

static void start(Victim *victim, const char *words) {
        victim_start(victim, words);
        victim_expect(victim, "ready");
}

/* Without the probes of the test before, and before there is a binding. */
static void start_spared(Engine *engine, Victim *victim, const char *words) {
        start(victim, words);
        wait_until_spared(engine, victim);
}

static void step(Engine *engine, Victim *victim, const char *word) {
        victim_continue(victim);
        victim_expect(victim, word);
        engine_collect(engine);
}

static void test_only_measured_processes_have_probes(void **state) {
        _cleanup_(victim_done) Victim inside = {}, outside = {};
        Engine *engine = *state;
        uint32_t a;

        start_spared(engine, &outside, "say:ready x( ) say:done");
        start_spared(engine, &inside, "say:ready a( say:begun ) say:done");
        a = engine_add(engine, FUNCTION("a", "1min"), NULL);
        assert_false(has_probe(&inside));
        step(engine, &inside, "begun");
        assert_true(has_probe(&inside));
        step(engine, &inside, "done");
        assert_true(has_probe(&inside));
        assert_false(has_probe(&outside));

        engine_remove(engine, a, NULL);
        wait_until_spared(engine, &inside);
}

static void test_a_second_binding_finds_the_same_thread(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        uint32_t a;

        start_spared(engine, &victim, "say:ready a( ) say:once a( ) say:twice");
        a = engine_add(engine, FUNCTION("a", "1min"), NULL);
        step(engine, &victim, "once");
        assert_true(has_probe(&victim));
        engine_remove(engine, a, NULL);
        wait_until_spared(engine, &victim);
        (void) engine_add(engine, FUNCTION("a", "1min"), NULL);
        assert_false(has_probe(&victim));
        step(engine, &victim, "twice");
        assert_true(has_probe(&victim));
}

/* A window of which nothing in the file tells where its frame is asks for none. */
static void test_markers_ask_for_none(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;

        start_spared(engine, &victim, "say:ready <x >x say:done");
        (void) engine_add(engine, MARKERS("x", "1min"), NULL);
        step(engine, &victim, "done");
        assert_false(has_probe(&victim));
}

/* By then the probe is there: the window ends in the jump, and not later with its thread. */
static void test_a_jump_ends_the_window(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        Statistics s;
        uint32_t a;

        a = engine_add(engine, FUNCTION("a", "1min"), NULL);
        start(&victim, "jump( a( say:ready jump ) ) say:done");
        engine_collect(engine);
        step(engine, &victim, "done");
        s = engine_statistics(engine, a);
        assert_int_equal(s.counters.ended[TLOB_END_ABANDONED], 1);
        assert_int_equal(s.counters.violations, 0);
        assert_int_equal(s.open, 0);
}

/* It is looked at once more, a second later, and then nobody wakes up for it. */
static void test_a_process_at_rest(void **state) {
        _cleanup_(victim_done) Victim victim = {};
        Engine *engine = *state;
        struct pollfd fd = { .fd = engine->backend->ops->get_fd(engine->backend),
                             .events = POLLIN };
        uint64_t rest_ns = now_ns() + UINT64_C(3000000000);
        unsigned n_wakeups = 0;

        (void) engine_add(engine, FUNCTION("a", "1min"), NULL);
        start(&victim, "a( ) say:ready");
        while (now_ns() < rest_ns + UINT64_C(4000000000))
                if (poll(&fd, 1, 100) > 0) {
                        engine_collect(engine);
                        n_wakeups += now_ns() > rest_ns;
                }
        assert_true(n_wakeups < 2);
}

static void test_a_crowd_shares_one_probe(void **state) {
        static Victim crowd[N_CROWD];
        _cleanup_(victim_done) Victim outside = {};
        Engine *engine = *state;

        start_spared(engine, &outside, "say:ready x( ) say:done");
        (void) engine_add(engine, FUNCTION("a", "1min"), NULL);
        for (size_t i = 0; i < N_CROWD; i++) {
                start(&crowd[i], "a( ) say:ready");
                engine_collect(engine);
        }
        assert_true(has_probe(&outside));
        assert_true(has_probe(&crowd[0]));
        assert_true(has_probe(&crowd[N_CROWD - 1]));

        for (size_t i = 0; i < N_CROWD; i++) {
                victim_continue(&crowd[i]);
                victim_finish(&crowd[i]);
                victim_done(&crowd[i]);
                crowd[i] = (Victim) {};
        }
        wait_until_spared(engine, &outside);
}

/* That of a user gets nobody else any probes, also when most of it has exited already. */
static void test_a_crowd_of_a_user_is_no_matter_of_others(void **state) {
        char path[] = "/tmp/tlob-user-victim-XXXXXX";
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_(victim_done) Victim outside = {}, last = {};
        _cleanup_close_ int fd = -EBADF;
        Engine *engine = *state;

        start_spared(engine, &outside, "say:ready x( ) say:done");
        engine_copy_victim(path, &fd);
        binding = engine_lend(path, fd);
        (void) engine_add_binding(engine, binding);
        program_start(&last, path, "user:65534 dumpable a( ) say:ready");
        victim_expect(&last, "ready");
        for (size_t i = 0; i < N_CROWD; i++) {
                _cleanup_(victim_done) Victim victim = {};

                program_start(&victim, path, "user:65534 dumpable a( )");
                victim_finish(&victim);
        }
        engine_collect(engine);
        assert_true(has_probe(&last));
        assert_false(has_probe(&outside));
        (void) unlink(path);
}

/* Before Linux 6.10. */
static void test_where_probes_are_in_all_processes(void **state) {
        _cleanup_(victim_done) Victim outside = {};
        Engine *engine = *state;
        uint32_t a;

        start_spared(engine, &outside, "say:ready x( ) say:done");
        a = engine_add(engine, FUNCTION("a", "1min"), NULL);
        assert_true(has_probe(&outside));
        engine_remove(engine, a, NULL);
        wait_until_spared(engine, &outside);
}

#define test(f) cmocka_unit_test_setup_teardown(f, engine_setup, engine_teardown)

ENGINE_TESTS(unwind) {
        const struct CMUnitTest tests[] = {
                test(test_only_measured_processes_have_probes),
                test(test_a_second_binding_finds_the_same_thread),
                test(test_markers_ask_for_none),
                test(test_a_jump_ends_the_window),
                test(test_a_process_at_rest),
                test(test_a_crowd_shares_one_probe),
                test(test_a_crowd_of_a_user_is_no_matter_of_others),
        };
        const struct CMUnitTest tests_without[] = {
                test(test_a_jump_ends_the_window),
                test(test_where_probes_are_in_all_processes),
        };

        if (!uprobe_multi_takes_processes())
                return cmocka_run_group_tests(tests_without, find_longjmp, forget_longjmp);
        return cmocka_run_group_tests(tests, find_longjmp, forget_longjmp);
}
