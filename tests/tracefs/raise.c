/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The monitor's events, raised by this process: uprobe events of the same names and fields, on
 * functions below. They come through the real ring buffer, with real formats, which only a reader
 * by format can understand.
 */

#include "raise.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>

#include "elf/file.h"
#include "test.h"

#define NOINLINE __attribute__((noinline))

NOINLINE void emit_error_env(int id, const char *state, const char *event, const char *env);
NOINLINE void emit_detail(int id, uint64_t threshold, uint64_t running, uint64_t waiting,
                          uint64_t sleeping);
NOINLINE void emit_error(int id, const char *state, const char *event);
NOINLINE void emit_change(int id, const char *state, const char *event, const char *next_state);

/* Different, so that no two of them are made one. */
void emit_error_env(int id, const char *state, const char *event, const char *env) {
        __asm__ volatile("nop");
}

void emit_detail(int id, uint64_t threshold, uint64_t running, uint64_t waiting,
                 uint64_t sleeping) {
        __asm__ volatile("nop; nop");
}

void emit_error(int id, const char *state, const char *event) {
        __asm__ volatile("nop; nop; nop");
}

void emit_change(int id, const char *state, const char *event, const char *next_state) {
        __asm__ volatile("nop; nop; nop; nop");
}

/*
 * By pointers that the compiler cannot see through: each argument goes where the calling convention
 * says.
 */
static void (*volatile call_error_env)(int, const char *, const char *,
                                       const char *) = emit_error_env;
static void (*volatile call_detail)(int, uint64_t, uint64_t, uint64_t, uint64_t) = emit_detail;
static void (*volatile call_error)(int, const char *, const char *) = emit_error;
static void (*volatile call_change)(int, const char *, const char *, const char *) = emit_change;

void raise_error_env(int id, const char *state, const char *event) {
        call_error_env(id, state, event, "clk_elapsed=112548");
}

void raise_error_env_after(int id, const char *state, const char *event, uint64_t elapsed) {
        char env[64];

        (void) snprintf(env, sizeof(env), "clk_elapsed=%" PRIu64, elapsed);
        call_error_env(id, state, event, env);
}

void raise_detail(int id, uint64_t threshold, uint64_t running, uint64_t waiting,
                  uint64_t sleeping) {
        call_detail(id, threshold, running, waiting, sleeping);
}

void raise_error(int id, const char *state, const char *event) {
        call_error(id, state, event);
}

void raise_change(int id, const char *state, const char *event, const char *next_state) {
        call_change(id, state, event, next_state);
}

void raise_on_cpu(int cpu) {
        cpu_set_t set;

        CPU_ZERO(&set);
        for (size_t i = 0; i < CPU_SETSIZE; i++)
                if (cpu < 0 || i == (size_t) cpu)
                        CPU_SET(i, &set);
        assert_ok(sched_setaffinity(0, sizeof(set), &set));
}

/* As the monitor: both on one CPU, with nothing in between. */
void raise_violation(int id, const char *state, uint64_t threshold, uint64_t running,
                     uint64_t waiting, uint64_t sleeping) {
        cpu_set_t before, one;
        int cpu = sched_getcpu();

        assert_true(cpu >= 0);
        assert_ok(sched_getaffinity(0, sizeof(before), &before));
        CPU_ZERO(&one);
        CPU_SET((size_t) cpu, &one);
        assert_ok(sched_setaffinity(0, sizeof(one), &one));
        raise_error_env(id, state, "budget_exceeded");
        raise_detail(id, threshold, running, waiting, sleeping);
        assert_ok(sched_setaffinity(0, sizeof(before), &before));
}

static const char *const event_names[] = { "error_env_tlob", "detail_env_tlob", "error_tlob",
                                           "event_tlob", "tlob_budget_exceeded" };

static int write_line(const char *tracing, const char *line) {
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int fd = -EBADF;

        assert_true(asprintf(&path, "%s/uprobe_events", tracing) > 0);
        fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        return write(fd, line, strlen(line)) < 0 ? -errno : 0;
}

void raise_remove_events(const char *tracing) {
        for (size_t i = 0; i < ELEMENTSOF(event_names); i++) {
                char line[64];

                (void) snprintf(line, sizeof(line), "-:rv/%s", event_names[i]);
                (void) write_line(tracing, line);
        }
}

/* "p:rv/NAME PROGRAM:OFFSET FIELDS" for one of the functions above. */
static void add_event(const char *tracing, const ElfFile *program, const char *name,
                      const char *symbol, const char *fields) {
        _cleanup_free_ char *error = NULL, *line = NULL;
        ElfSite site = {};

        if (elf_file_resolve((ElfFile *) program, symbol, &site, &error) < 0)
                fail_msg("%s", error);
        assert_true(asprintf(&line, "p:rv/%s %s:0x%" PRIx64 " %s", name, elf_file_path(program),
                             site.offset, fields) > 0);
        elf_site_done(&site);
        if (write_line(tracing, line) < 0)
                fail_msg("The kernel refused '%s': %s", line, strerror(errno));
}

void raise_add_events(const char *tracing, const char *dialect) {
        _cleanup_(elf_file_freep) ElfFile *program = NULL;
        _cleanup_free_ char *error = NULL;
        char path[4096];
        ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

        assert_true(n > 0);
        path[n] = '\0';
        if (elf_file_open(path, &program, &error) < 0)
                fail_msg("%s", error);

        if (streq(dialect, "none") || streq(dialect, "other"))
                return;
        add_event(tracing, program, "error_tlob", "emit_error",
                  "id=%di:s32 state=+0(%si):string event=+0(%dx):string");
        if (streq(dialect, "v1")) {
                add_event(tracing, program, "tlob_budget_exceeded", "emit_error_env", "id=%di:s32");
                return;
        }
        add_event(tracing, program, "error_env_tlob", "emit_error_env",
                  "id=%di:s32 state=+0(%si):string event=+0(%dx):string env=+0(%cx):string");
        add_event(tracing, program, "event_tlob", "emit_change",
                  "id=%di:s32 state=+0(%si):string event=+0(%dx):string next_state=+0(%cx):string");
        if (streq(dialect, "v2"))
                add_event(tracing, program, "detail_env_tlob", "emit_detail",
                          "pid=%di:s32 threshold_us=%si:u64 running_ns=%dx:u64 waiting_ns=%cx:u64 "
                          "sleeping_ns=%r8:u64");
        else if (!streq(dialect, "named"))
                add_event(tracing, program, "detail_env_tlob", "emit_detail",
                          "id=%di:s32 threshold_ns=%si:u64 running_ns=%dx:u64 waiting_ns=%cx:u64 "
                          "sleeping_ns=%r8:u64");
}
