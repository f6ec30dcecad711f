/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The fixture of the kernel back end's tests. The stand-in answers as the monitor does; the monitor's
 * events are uprobe events of the same names and fields, on functions of this program: so they come
 * through the real ring buffer, with real formats, which only a reader by format can understand.
 *
 * The real tracing file system is mounted aside, in a mount namespace of our own. What is global in it,
 * the list of uprobe events and the instances, is put back, and that is proved.
 */

#include "tracefs.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "test.h"

#define ROOT      "/sys/kernel/tracing"
#define REAL      "/run/tlob-tracefs"
#define WAIT_MSEC 10000
#define NOINLINE  __attribute__((noinline))

NOINLINE void emit_error_env(int id, const char *state, const char *event, const char *env);
NOINLINE void emit_detail(int id, uint64_t threshold, uint64_t running, uint64_t waiting,
                          uint64_t sleeping);
NOINLINE void emit_error(int id, const char *state, const char *event);

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

/* By pointers that the compiler cannot see through: each argument goes where the calling convention says. */
static void (*volatile call_error_env)(int, const char *, const char *,
                                       const char *) = emit_error_env;
static void (*volatile call_detail)(int, uint64_t, uint64_t, uint64_t, uint64_t) = emit_detail;
static void (*volatile call_error)(int, const char *, const char *) = emit_error;

void raise_error_env(int id, const char *state, const char *event) {
        call_error_env(id, state, event, "clk_elapsed=112548");
}

void raise_detail(int id, uint64_t threshold, uint64_t running, uint64_t waiting,
                  uint64_t sleeping) {
        call_detail(id, threshold, running, waiting, sleeping);
}

void raise_error(int id, const char *state, const char *event) {
        call_error(id, state, event);
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

static char *read_file(const char *path) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        char *text = calloc(1, 1 << 20);
        size_t size = 0;
        ssize_t n;

        assert_non_null(text);
        if (fd < 0)
                return text;
        while ((n = read(fd, text + size, (1 << 20) - 1 - size)) > 0)
                size += (size_t) n;
        return text;
}

static int write_file(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

char *tracefs_read(const char *file) {
        char path[256];

        (void) snprintf(path, sizeof(path), ROOT "/%s", file);
        return read_file(path);
}

int tracefs_write(const char *file, const char *text) {
        char path[256];

        (void) snprintf(path, sizeof(path), ROOT "/%s", file);
        return write_file(path, text);
}

static const char *const event_names[] = { "error_env_tlob", "detail_env_tlob", "error_tlob",
                                           "tlob_budget_exceeded" };

static void remove_events(void) {
        for (size_t i = 0; i < ELEMENTSOF(event_names); i++) {
                char line[64];

                (void) snprintf(line, sizeof(line), "-:rv/%s", event_names[i]);
                (void) write_file(REAL "/uprobe_events", line);
        }
}

void tracefs_mount_real(void) {
        if (mount("tracefs", REAL, "tracefs", 0, NULL) < 0)
                fail_msg("Cannot mount the tracing file system: %s", strerror(errno));
}

void tracefs_unmount_real(void) {
        assert_ok(umount2(REAL, MNT_DETACH));
}

int tracefs_setup_namespace(void **state) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                fail_msg("A mount namespace of its own is needed: %s", strerror(errno));
        /* Here only: where the machine has it. */
        (void) umount2(ROOT, MNT_DETACH);
        (void) umount2("/sys/kernel/debug", MNT_DETACH);
        (void) mkdir(REAL, 0700);
        tracefs_mount_real();
        (void) mkdir("/run/tlob", 0755);
        assert_ok(mount("tmpfs", "/run/tlob", "tmpfs", 0, NULL));

        /* Of a run that failed. */
        (void) rmdir(REAL "/instances/tlobd");
        remove_events();
        return 0;
}

int tracefs_teardown_namespace(void **state) {
        tracefs_unmount_real();
        (void) rmdir(REAL);
        return 0;
}

/* "p:rv/NAME PROGRAM:OFFSET FIELDS" for one of the functions above. */
static void add_event(const ElfFile *program, const char *name, const char *symbol,
                      const char *fields) {
        _cleanup_free_ char *error = NULL, *line = NULL;
        ElfSite site = {};

        if (elf_file_resolve((ElfFile *) program, symbol, &site, &error) < 0)
                fail_msg("%s", error);
        assert_true(asprintf(&line, "p:rv/%s %s:0x%" PRIx64 " %s", name, elf_file_path(program),
                             site.offset, fields) > 0);
        elf_site_done(&site);
        if (write_file(REAL "/uprobe_events", line) < 0)
                fail_msg("The kernel refused '%s': %s", line, strerror(errno));
}

static void add_events(const char *dialect) {
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
        add_event(program, "error_tlob", "emit_error",
                  "id=%di:s32 state=+0(%si):string event=+0(%dx):string");
        if (streq(dialect, "v1")) {
                add_event(program, "tlob_budget_exceeded", "emit_error_env", "id=%di:s32");
                return;
        }
        add_event(program, "error_env_tlob", "emit_error_env",
                  "id=%di:s32 state=+0(%si):string event=+0(%dx):string env=+0(%cx):string");
        if (streq(dialect, "v2"))
                add_event(program, "detail_env_tlob", "emit_detail",
                          "pid=%di:s32 threshold_us=%si:u64 running_ns=%dx:u64 waiting_ns=%cx:u64 "
                          "sleeping_ns=%r8:u64");
        else if (!streq(dialect, "named"))
                add_event(program, "detail_env_tlob", "emit_detail",
                          "id=%di:s32 threshold_ns=%si:u64 running_ns=%dx:u64 waiting_ns=%cx:u64 "
                          "sleeping_ns=%r8:u64");
}

/* Everything that a daemon could leave behind, or spoil. */
static char *take_stock(void) {
        static const char *const files[] = {
                "rv/enabled_monitors",
                "rv/monitoring_on",
                "rv/reacting_on",
                "rv/monitors/tlob/enable",
                "rv/monitors/tlob/reactors",
                "rv/monitors/tlob/monitor",
                "tracing_on",
                "trace_clock",
                "current_tracer",
                "set_event",
                "uprobe_events",
        };
        _cleanup_closedir_ DIR *instances = opendir(ROOT "/instances");
        const struct dirent *entry;
        char *stock = NULL;
        size_t size;
        FILE *f = open_memstream(&stock, &size);

        assert_non_null(f);
        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                _cleanup_free_ char *text = tracefs_read(files[i]);

                (void) fprintf(f, "%s: %s\n", files[i], text);
        }
        while (instances && (entry = readdir(instances)))
                (void) fprintf(f, "instance %s\n", entry->d_name);
        (void) fprintf(f, "state file: %s\n",
                       access("/run/tlob/kernel-monitor", F_OK) < 0 ? "none" : "there");
        (void) fclose(f);
        return stock;
}

static void spawn_standin(Tracefs *tracefs, const char *dialect) {
        const char *program = getenv("TLOB_TEST_STANDIN");
        char *argv[] = { (char *) "standin", (char *) dialect, (char *) REAL, (char *) ROOT, NULL };
        posix_spawn_file_actions_t actions;
        char word[8] = "";
        int out[2];

        if (!program)
                fail_msg("TLOB_TEST_STANDIN does not name the stand-in.");
        assert_ok(pipe2(out, O_CLOEXEC));
        assert_ok(posix_spawn_file_actions_init(&actions));
        assert_ok(posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO));
        assert_ok(posix_spawn(&tracefs->standin, program, &actions, NULL, argv, environ));
        (void) posix_spawn_file_actions_destroy(&actions);
        (void) close(out[1]);
        if (read(out[0], word, 6) != 6 || !streq(word, "ready\n"))
                fail_msg("The stand-in did not start.");
        (void) close(out[0]);
}

static void stop_standin(Tracefs *tracefs) {
        assert_ok(umount2(ROOT, 0));
        assert_int_equal(waitpid(tracefs->standin, NULL, 0), tracefs->standin);
}

void tracefs_take_stock(Tracefs *tracefs) {
        free(tracefs->before);
        tracefs->before = take_stock();
}

void tracefs_change_dialect(Tracefs *tracefs, const char *dialect) {
        stop_standin(tracefs);
        spawn_standin(tracefs, dialect);
        tracefs_take_stock(tracefs);
}

void tracefs_start(Tracefs *tracefs, const char *dialect) {
        *tracefs = (Tracefs){};
        add_events(dialect);
        spawn_standin(tracefs, dialect);

        /* Poison: someone's reactor, a binding that works once the monitor is enabled, a clock. */
        (void) tracefs_write("rv/monitors/tlob/reactors", "printk");
        (void) tracefs_write("rv/monitors/tlob/monitor",
                             streq(dialect, "v2") ? "p /proc/self/exe:0x40 0x44 threshold=7"
                                                  : "p /proc/self/exe:0x40 0x44 threshold=7000000");
        tracefs_take_stock(tracefs);
}

void tracefs_forget(Tracefs *tracefs) {
        for (size_t i = 0; i < tracefs->n_notices; i++)
                free(tracefs->notices[i].text);
        free(tracefs->notices);
        free(tracefs->reports);
        tracefs->notices = NULL;
        tracefs->reports = NULL;
        tracefs->n_notices = tracefs->n_reports = 0;
}

void tracefs_finish(Tracefs *tracefs) {
        _cleanup_free_ char *after = NULL;

        if (tracefs->backend)
                tracefs->backend->ops->free(tracefs->backend);
        after = take_stock();
        assert_string_equal(after, tracefs->before);
        free(tracefs->before);
        tracefs_forget(tracefs);

        stop_standin(tracefs);
        remove_events();
}

void tracefs_make_backend(Tracefs *tracefs) {
        static const BackendConfig config = { .bindings_max = 128, .ring_buffer_size = 1 << 18 };
        _cleanup_free_ char *reason = NULL;

        if (backend_kernel_ops.probe(&reason) < 0 ||
            backend_kernel_ops.new(&config, &tracefs->backend, &reason) < 0)
                fail_msg("The kernel back end does not work: %s", reason);
}

int tracefs_add(Tracefs *tracefs, const char *const *keys, uint64_t cgroup_id, unsigned level,
                char **ret_error) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_(binding_freep) Binding *binding = NULL;
        uint32_t index = 0;
        int r;

        assert_ok(binding_new("test", &binding));
        for (; keys[0]; keys += 2) {
                r = binding_set_key(binding, keys[0], keys[1], ret_error);
                if (r < 0)
                        fail_msg("%s", *ret_error);
        }
        binding->cgroup_id = cgroup_id;
        binding->cgroup_level = level;
        if (binding_resolve(binding, &elf, ret_error) < 0)
                fail_msg("%s", *ret_error);
        r = tracefs->backend->ops->can(binding, elf, ret_error);
        if (r >= 0)
                r = tracefs->backend->ops->add(tracefs->backend, binding, elf, &index, ret_error);
        return r < 0 ? r : (int) index;
}

uint64_t tracefs_threshold(size_t i) {
        _cleanup_free_ char *text = tracefs_read("rv/monitors/tlob/monitor");
        const char *p = text;

        for (; i > 0 && p; i--) {
                p = strchr(p, '\n');
                p += p != NULL;
        }
        p = p ? strstr(p, "threshold=") : NULL;
        if (!p)
                fail_msg("The monitor has no such line:\n%s", text);
        return strtoull(p + strlen("threshold="), NULL, 10);
}

static void on_report(const Report *report, void *userdata) {
        Tracefs *tracefs = userdata;
        uint64_t sum = 0;

        for (size_t i = 0; i < TLOB_N_STATES; i++)
                sum += report->spent_ns[i];
        assert_int_equal(sum, report->elapsed_ns);
        tracefs->reports = reallocarray(tracefs->reports, tracefs->n_reports + 1, sizeof(*report));
        assert_non_null(tracefs->reports);
        tracefs->reports[tracefs->n_reports++] = *report;
}

void tracefs_collect(Tracefs *tracefs) {
        BackendNotice notice;

        assert_true(tracefs->backend->ops->dispatch(tracefs->backend, on_report, tracefs) >= 0);
        while (tracefs->backend->ops->next_notice(tracefs->backend, &notice) > 0) {
                tracefs->notices =
                        reallocarray(tracefs->notices, tracefs->n_notices + 1, sizeof(notice));
                assert_non_null(tracefs->notices);
                tracefs->notices[tracefs->n_notices++] = notice;
        }
}

void tracefs_wait(Tracefs *tracefs) {
        struct pollfd poll_fd = {
                .fd = tracefs->backend->ops->get_fd(tracefs->backend),
                .events = POLLIN,
        };

        assert_int_equal(poll(&poll_fd, 1, WAIT_MSEC), 1);
        tracefs_collect(tracefs);
}
