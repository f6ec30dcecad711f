/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The fixture of the kernel back end's tests. The stand-in answers as the monitor does; the
 * monitor's events are raised by raise.c.
 *
 * The real tracing file system is mounted aside, in a mount namespace of our own. What is global in
 * it, the list of uprobe events and the instances, is put back, and that is proved.
 */

#include "tracefs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "binding/keys.h"
#include "binding/resolve.h"
#include "test.h"

#define MONITOR   "rv/monitors/tlob/monitor"
#define ENABLE    "rv/monitors/tlob/enable"
#define ROOT      "/sys/kernel/tracing"
#define TYPES     "/sys/kernel/btf/vmlinux"
#define REAL      "/run/tlob-tracefs"
#define WAIT_MSEC 10000

bool tracefs_leave_out_self;

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
        raise_remove_events(REAL);
        return 0;
}

int tracefs_teardown_namespace(void **state) {
        tracefs_unmount_real();
        (void) rmdir(REAL);
        return 0;
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

/* v5 differs from v4 in nothing that can be asked of it: only its functions have other names. */
static void show_functions(const char *dialect) {
        static const char path[] = "/run/tlob/types", names[] = "\0tlob_event\0tlob_destroy_task";
        _cleanup_close_ int fd = -EBADF;

        if (!streq(dialect, "v5"))
                return;
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        assert_int_equal(write(fd, names, sizeof(names)), sizeof(names));
        assert_ok(mount(path, TYPES, NULL, MS_BIND, NULL));
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
        show_functions(dialect);
}

static void stop_standin(Tracefs *tracefs) {
        (void) umount2(TYPES, MNT_DETACH);
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
        *tracefs = (Tracefs) {};
        raise_add_events(REAL, dialect);
        spawn_standin(tracefs, dialect);

        /* Poison: someone's reactor, a binding that works once the monitor is enabled, a clock. */
        (void) tracefs_write("rv/monitors/tlob/reactors", "printk");
        (void) tracefs_write("rv/monitors/tlob/monitor",
                             streq(dialect, "v2") ? "p /proc/self/exe:0x40 0x44 threshold=7"
                             : streq(dialect, "named")
                                     ? "p:tlobd_0 /proc/self/exe:0x40 0x44 threshold=7000000"
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
        tracefs->n_notices = tracefs->n_reports = tracefs->n_allocated = 0;
}

void tracefs_finish(Tracefs *tracefs) {
        _cleanup_free_ char *after = NULL;

        if (tracefs->backend)
                tracefs->backend->ops->free(tracefs->backend);
        tracefs->files = files_free(tracefs->files);
        after = take_stock();
        assert_string_equal(after, tracefs->before);
        free(tracefs->before);
        tracefs_forget(tracefs);

        stop_standin(tracefs);
        raise_remove_events(REAL);
}

void tracefs_make_backend(Tracefs *tracefs) {
        BackendConfig config = {
                .bindings_max = 128,
                .ring_buffer_size = 1 << 18,
                .leave_out_self = tracefs_leave_out_self,
        };
        _cleanup_free_ char *reason = NULL;

        if (!tracefs->files)
                assert_ok(files_new(UINT64_C(5000000), &tracefs->files));
        config.files = tracefs->files;
        if (backend_kernel_ops.probe(&reason) < 0 ||
            backend_kernel_ops.new(&config, &tracefs->backend, &reason) < 0)
                fail_msg("The kernel back end does not work: %s", reason);
}

int tracefs_add(Tracefs *tracefs, const char *const *keys, uint64_t cgroup_id, unsigned level,
                char **ret_error) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_(binding_freep) Binding *binding = NULL;
        uint32_t index = 0;
        int r;

        assert_ok(binding_new("test", &binding));
        for (; keys[0]; keys += 2) {
                r = binding_set_key(binding, keys[0], keys[1], ret_error);
                if (r < 0)
                        fail_msg("%s", *ret_error);
        }
        binding->cgroup.id = cgroup_id;
        binding->cgroup.level = level;
        if (binding_resolve(binding, &file, ret_error) < 0)
                fail_msg("%s", *ret_error);
        r = tracefs->backend->ops->can(binding, file, ret_error);
        if (r >= 0)
                r = tracefs->backend->ops->add(tracefs->backend, binding, file, &index, ret_error);
        return r < 0 ? r : (int) index;
}

/* What stands behind that word in the i-th line of the monitor. The caller's. */
static char *find_in_line(size_t i, const char *word) {
        _cleanup_free_ char *text = tracefs_read(MONITOR);
        char *line = text;

        for (; i > 0 && line; i--) {
                line = strchr(line, '\n');
                line += line != NULL;
        }
        line = line ? strndup(line, strcspn(line, "\n")) : NULL;
        if (!line || !strstr(line, word))
                fail_msg("The monitor has no such line:\n%s", text);
        memmove(line, strstr(line, word) + strlen(word),
                strlen(strstr(line, word)) + 1 - strlen(word));
        return line;
}

uint64_t tracefs_threshold(size_t i) {
        _cleanup_free_ char *threshold = find_in_line(i, "threshold=");

        return strtoull(threshold, NULL, 10);
}

int tracefs_act(const char *verb, pid_t id, size_t i) {
        _cleanup_free_ char *place = find_in_line(i, " "), *action = NULL;
        char *stop = strchr(place, ' '), *colon;

        *stop++ = '\0';
        *strchr(stop, ' ') = '\0';
        colon = strrchr(place, ':');
        assert_true(asprintf(&action, "%s %i %.*s:%s", verb, id, (int) (colon - place), place,
                             streq(verb, "stop") ? stop : colon + 1) > 0);
        return tracefs_write("threads", action);
}

void tracefs_overrun(pid_t id, size_t i) {
        uint64_t threshold = tracefs_threshold(i);

        if (tracefs_act("start", id, i) < 0)
                return;
        raise_violation(id, "running", threshold, threshold, 1000, 0);
        assert_ok(tracefs_act("stop", id, i));
}

static void on_report(const Report *report, void *userdata) {
        Tracefs *tracefs = userdata;
        uint64_t sum = 0;

        for (size_t i = 0; i < TLOB_N_STATES; i++)
                sum = statistic_add(sum, report->spent_ns[i]);
        if (sum != STATISTIC_UNKNOWN)
                assert_int_equal(sum, report->elapsed_ns);
        if (tracefs->n_reports == tracefs->n_allocated) {
                tracefs->n_allocated = tracefs->n_reports > 0 ? 2 * tracefs->n_reports : 64;
                tracefs->reports =
                        reallocarray(tracefs->reports, tracefs->n_allocated, sizeof(*report));
                assert_non_null(tracefs->reports);
        }
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

const char *tracefs_target(void) {
        const char *path = getenv("TLOB_TEST_TARGET");

        if (!path)
                fail_msg("TLOB_TEST_TARGET does not name the target.");
        return path;
}

int tracefs_add_marks_on(Tracefs *t, const char *path, const char *budget, char **ret_error) {
        return tracefs_add(t,
                           (const char *[]) { "Executable", path, "Start", "target_one", "Stop",
                                              "target_two", "BudgetSec", budget, NULL },
                           0, 0, ret_error);
}

int tracefs_add_marks(Tracefs *t, const char *budget) {
        _cleanup_free_ char *error = NULL;
        int index;

        index = tracefs_add_marks_on(t, tracefs_target(), budget, &error);
        if (index < 0)
                fail_msg("%s", error);
        return index;
}

static void copy_file(const char *from, char *path) {
        _cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC);
        _cleanup_close_ int out = mkostemp(path, O_CLOEXEC);
        char buffer[65536];
        ssize_t n;

        assert_true(in >= 0 && out >= 0);
        while ((n = read(in, buffer, sizeof(buffer))) > 0)
                assert_int_equal(write(out, buffer, (size_t) n), n);
        assert_ok(fchmod(out, 0755));
}

void tracefs_copy_target(char *path) {
        copy_file(tracefs_target(), path);
}

void tracefs_copy_library(char *path) {
        copy_file("/lib/x86_64-linux-gnu/libc.so.6", path);
}

pid_t tracefs_start_program(const char *path) {
        int started[2];
        pid_t child;
        char c;

        /* Its other end is closed by the program's start. */
        assert_ok(pipe2(started, O_CLOEXEC));
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                /* Not to outlive a test that fails. */
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) execl(path, path, "wait", NULL);
                (void) write(started[1], "", 1);
                _exit(127);
        }
        (void) close(started[1]);
        assert_int_equal(read(started[0], &c, 1), 0);
        (void) close(started[0]);
        return child;
}

void tracefs_stop_program(pid_t child) {
        (void) kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
}

void tracefs_begin(Tracefs *t, const char *dialect) {
        tracefs_start(t, dialect);
        tracefs_make_backend(t);
}

size_t tracefs_count_lines(void) {
        _cleanup_free_ char *text = tracefs_read(MONITOR);
        size_t n = 0;

        for (const char *p = text; *p; p++)
                n += *p == '\n';
        return n;
}

void tracefs_expect_lines(Tracefs *t, size_t n) {
        for (int i = 0; i < 10 && tracefs_count_lines() != n; i++)
                tracefs_wait(t);
        assert_int_equal(tracefs_count_lines(), n);
}

bool tracefs_is_enabled(void) {
        _cleanup_free_ char *text = tracefs_read(ENABLE);

        return text[0] == '1';
}

/* True if a sentence of the limitations has that in it. */
bool tracefs_is_told(Tracefs *t, const char *part) {
        for (const char *const *p = t->backend->ops->limitations(t->backend); *p; p++)
                if (strstr(*p, part))
                        return true;
        return false;
}

void tracefs_assert_told(Tracefs *t, const char *part) {
        if (!tracefs_is_told(t, part)) {
                for (const char *const *p = t->backend->ops->limitations(t->backend); *p; p++)
                        print_error("%s\n", *p);
                fail_msg("No limitation tells '%s'.", part);
        }
}

/* Waits until the notices say that. */
void tracefs_expect_notice(Tracefs *t, const char *part, uint32_t index) {
        for (int i = 0; i < 10; i++) {
                for (size_t j = 0; j < t->n_notices; j++)
                        if (strstr(t->notices[j].text, part)) {
                                assert_int_equal(t->notices[j].index, index);
                                return;
                        }
                tracefs_wait(t);
        }
        fail_msg("Nothing was said of '%s'.", part);
}
