/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Programs of Debian, while probes come and go in their functions and in those of their libraries:
 * what they print, and how they end, is as without.
 */

#include <glob.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine.h"
#include "test.h"

#define N_CHANGES          100
#define N_CHANGES_EMULATED 10
#define PATIENCE_NS        UINT64_C(60000000000)

/* It does the same again and again until standard input says no more, and ends with a status. */
typedef struct Real {
        const char *command;
        const char *executable; /* a name, or a pattern for the path: versions differ */
        const char *functions[4];
} Real;

/* Queries with a sort, in a library. */
static const Real sqlite = {
        .command =
                "sqlite3 :memory: 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                "WHERE i < 3000) SELECT sum(i), group_concat(x) FROM (SELECT i, hex(i * 7) AS x FROM "
                "n ORDER BY x)'",
        .executable = "libsqlite3.so.0",
        .functions = { "sqlite3_step", "sqlite3_prepare_v2", "sqlite3_finalize",
                       "sqlite3_result_text" },
};

/* Functions that call themselves, and are left by longjmp() through several others. */
static const Real perl = {
        .command =
                "perl -e 'sub f { my $n = shift; die \"no $n\\n\" if $n % 7 == 0; return $n < 2 ? 1 : "
                "f($n - 1) + $n } my ($s, $d) = (0, 0); for my $i (1 .. 3000) { $s += eval { f($i % "
                "50) } // 0; $d++ if $@; my @l = sort { $a <=> $b } map { $i ^ $_ } 1 .. 5; $s += "
                "$l[0] } print \"$s $d\\n\"'",
        .executable = "/usr/bin/perl",
        .functions = { "Perl_runops_standard", "Perl_sv_setsv_flags", "Perl_save_clearsv",
                       "Perl_leave_scope" },
};

/* C++, by the names of its source. */
static const Real apt = {
        .command = "apt-cache -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "
                   "-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=/dev/null stats",
        .executable = "/usr/lib/*/libapt-pkg.so.?.?",
        .functions = { "pkgTagSection::Scan", "pkgTagFile::Step",
                       "pkgTagSection::Exists(pkgTagSection::Key) const", "pkgTagSection::Scan" },
};

/* Twice at least, so that what it prints is known to be always the same. */
#define AGAIN                                                                                      \
        "n=0; until [ $n -ge 2 ] && read -t 0; do out=$(eval \"$0\") || exit; "                    \
        "[ \"${first:=$out}\" = \"$out\" ] || { echo \"$out\"; exit 99; }; n=$((n + 1)); done; "   \
        "echo $n; echo \"$first\""

static void start(const Real *real, Victim *victim) {
        program_spawn(victim,
                      (const char *const[]) { "/bin/bash", "-c", AGAIN, real->command, NULL });
}

/* What it has printed; owned by the caller. */
static char *finish(Victim *victim) {
        char *text = NULL;
        size_t size = 0;
        unsigned n = 0;

        victim_continue(victim);
        if (fscanf(victim->out, "%u\n", &n) != 1)
                n = 0;
        (void) getdelim(&text, &size, '\0', victim->out);
        assert_int_equal(waitpid(victim->pid, &victim->status, 0), victim->pid);
        victim->pid = 0;
        if (victim->status != 0 || n < 2)
                fail_msg("After %u runs it ended with status %#x: %s", n, victim->status, text);
        return text;
}

static uint64_t remove_binding(Engine *engine, uint32_t index) {
        Statistics s;

        assert_int_equal(engine->backend->ops->remove(engine->backend, index, &s, NULL), 0);
        engine->added[index] = false;
        assert_int_equal(s.counters.violations, 0);
        return s.counters.starts;
}

static uint32_t add(Engine *engine, const Real *real, const char *function) {
        const char *executable = real->executable;
        glob_t found = {};
        uint32_t index;

        if (strchr(executable, '*')) {
                assert_int_equal(glob(executable, 0, NULL, &found), 0);
                executable = found.gl_pathv[0];
        }
        index = engine_add(engine,
                           KEYS("Executable", executable, "Function", function, "BudgetSec", "60s"),
                           NULL);
        globfree(&found);
        return index;
}

/* Some are taken away while they measure, some when they have, some before. */
static uint64_t change(Engine *engine, const Real *real, size_t i) {
        const char *function = real->functions[i % ELEMENTSOF(real->functions)];
        uint32_t index = add(engine, real, function);
        uint64_t until_ns = now_ns() + PATIENCE_NS;
        Statistics s = {};

        while (i % 4 != 0 && s.counters.starts == 0) {
                if (now_ns() >= until_ns)
                        fail_msg("%s is not called.", function);
                engine_collect(engine);
                assert_int_equal(engine->backend->ops->statistics(engine->backend, index, &s), 0);
        }
        return remove_binding(engine, index);
}

static void assert_unharmed(Engine *engine, const Real *real) {
        size_t n = machine_is_emulated() ? N_CHANGES_EMULATED : N_CHANGES;
        _cleanup_(victim_done) Victim before = {}, victim = {};
        _cleanup_free_ char *without = NULL, *with = NULL;
        uint64_t n_starts = 0;

        start(real, &before);
        without = finish(&before);
        start(real, &victim);
        for (size_t i = 0; i < n; i++)
                n_starts += change(engine, real, i);
        with = finish(&victim);
        assert_string_equal(with, without);
        assert_true(n_starts >= n / 2);
}

static void test_c(void **state) {
        assert_unharmed(*state, &sqlite);
}

static void test_long_jumps(void **state) {
        assert_unharmed(*state, &perl);
}

static void test_cc(void **state) {
        assert_unharmed(*state, &apt);
}

ENGINE_TESTS(unharmed) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_c),
                cmocka_unit_test(test_long_jumps),
                cmocka_unit_test(test_cc),
        };

        return cmocka_run_group_tests(tests, engine_setup, engine_teardown);
}
