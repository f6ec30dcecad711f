/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From what a binding says of its executable to the open file: the unit's program, a path, or the
 * name of a library, as the unit's processes see them. A unit that runs is asked by its main
 * process, or if that starts a container, by a process of the container; one that does not run, by
 * its RootDirectory=. A library that its processes have loaded is that one, else what the dynamic
 * loader would take.
 */

#include "binding/executable.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "base/program.h"
#include "base/sentence.h"
#include "base/unit-name.h"
#include "binding/lent-file.h"
#include "elf/library.h"

/* Where systemd looks for a program that is given without its path. */
static const char *const program_directories[] = {
        "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
};

static const char *name_of_program(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

static bool starts_container(const Binding *binding) {
        return binding->view.program && program_starts_containers(binding->view.program);
}

bool binding_awaits_container(const Binding *binding) {
        return starts_container(binding) && binding->view.container_pid == 0;
}

bool binding_may_have_container(const Binding *binding) {
        return starts_container(binding) ||
               (binding->unit && unit_is_scope_of_container(binding->unit));
}

bool binding_has_passing_files(const Binding *binding) {
        return binding_may_have_container(binding) || binding->view.has_root_image;
}

/* -ENOENT: its unit does not run. */
static int open_running_root(const Binding *binding, const char *path, bool has_own, Root *ret) {
        _cleanup_close_ int fd = -EBADF;
        int r = -ENOENT;

        if (binding->view.container_pid > 0)
                r = root_of_process(binding->view.container_pid, ret);
        if (r >= 0 && path) {
                fd = root_open(ret, path, O_PATH | O_CLOEXEC);
                if (fd >= 0)
                        return 0;
                root_done(ret);
                r = -ENOENT;
        }
        if (r >= 0)
                return 0;
        if (binding->view.main_pid == 0)
                return -ENOENT;
        r = root_of_program(binding->view.main_pid, ret);
        /* A process that has just been started has not gone there yet. */
        if (r > 0 && (has_own || ret->fd < 0)) {
                root_done(ret);
                return -ENOENT;
        }
        return r < 0 ? -ENOENT : 0;
}

int binding_open_root(const Binding *binding, const char *path, Root *ret, char **ret_error) {
        bool has_own = binding->view.root_directory || binding->view.has_root_image;
        _cleanup_(root_done) Root machine = ROOT_OWN;
        int r;

        r = open_running_root(binding, path, has_own, ret);
        if (r >= 0)
                return 0;
        (void) root_of_machine(&machine);
        if (binding->view.root_directory) {
                r = root_of_directory(&machine, binding->view.root_directory, ret);
                return r < 0 ? sentence_error(
                                       r, ret_error, "Cannot open %s, RootDirectory= of %s: %s",
                                       binding->view.root_directory, binding->unit, strerror(-r))
                             : 0;
        }
        if (binding->view.has_root_image)
                return sentence_error(-EAGAIN, ret_error,
                                      "The files of %s are in its RootImage=, which is not mounted",
                                      binding->unit);
        *ret = machine;
        machine = ROOT_OWN;
        return 0;
}

/* Programs that run others' code: a function of theirs is hardly ever meant. */
static bool is_interpreter(const char *program) {
        static const char *const names[] = {
                "ash",  "bash",   "busybox", "csh",  "dash",  "env",    "fish", "guile",
                "java", "ksh",    "lua",     "mksh", "node",  "nodejs", "perl", "php",
                "pypy", "python", "ruby",    "sh",   "tclsh", "tcsh",   "zsh",
        };
        const char *name = name_of_program(program);
        size_t n;

        n = strcspn(name, "0123456789.-");
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (strlen(names[i]) == n && strncmp(names[i], name, n) == 0)
                        return true;
        return false;
}

char *binding_running_program(const Binding *binding) {
        uint32_t pid = binding->view.container_pid ?: binding->view.main_pid;
        _cleanup_free_ char *path = NULL;

        if (program_of_process(pid, &path) < 0 || !text_is_printable(path) ||
            program_is_not_begun(path))
                return NULL;
        return TAKE_PTR(path);
}

/* For a sentence about ExecStart=: what its main process has become. */
static void describe_running(const Binding *binding, char *ret, size_t size) {
        _cleanup_free_ char *running = binding_running_program(binding);

        ret[0] = '\0';
        if (running && !streq_empty(running, binding->view.program))
                (void) snprintf(ret, size, " (its main process runs %s)", running);
}

/* The program as a path in the tree. */
static int find_program(const Binding *binding, const Root *root, char **ret) {
        if (binding->view.program[0] == '/') {
                *ret = strdup(binding->view.program);
                return *ret ? 0 : -ENOMEM;
        }
        for (size_t i = 0; i < ELEMENTSOF(program_directories); i++) {
                _cleanup_close_ int fd = -EBADF;
                char path[PATH_MAX];
                struct stat st;

                (void) snprintf(path, sizeof(path), "%s/%s", program_directories[i],
                                binding->view.program);
                fd = root_open(root, path, O_PATH | O_CLOEXEC);
                if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                        continue;
                *ret = strdup(path);
                return *ret ? 0 : -ENOMEM;
        }
        return -ENOENT;
}

/* The first program of the container, if that can be meant. */
static int take_program_of_container(const Binding *binding, const Root *root, char **ret_path,
                                     char **ret_error) {
        _cleanup_free_ char *running = NULL;
        const char *inside;

        if (binding_awaits_container(binding))
                return sentence_error(-EAGAIN, ret_error,
                                      "The program is that of the container of %s, and none runs "
                                      "in its cgroup yet",
                                      binding->unit);
        running = binding_running_program(binding);
        if (!running)
                return sentence_error(-EAGAIN, ret_error,
                                      "The first program in the container of %s has not begun, or "
                                      "has a name that is not text",
                                      binding->unit);
        /* It may become another one. */
        if (is_interpreter(running) || program_starts_containers(running) ||
            program_is_init(running))
                return sentence_error(-EAGAIN, ret_error,
                                      "The first program in the container of %s is %s, which runs "
                                      "others: write Executable= with the program or library to be "
                                      "measured, by its path in there",
                                      binding->unit, running);
        /* Of one that has only another root, the link is seen from outside. */
        inside = root_inside(root, running);
        if (inside)
                memmove(running, inside, strlen(inside) + 1);
        *ret_path = TAKE_PTR(running);
        return 0;
}

/* The program of the unit, if that can be meant. */
static int take_program(const Binding *binding, const Root *root, char **ret_path,
                        char **ret_error) {
        char running[PATH_MAX + 32];
        int r;

        if (!binding->view.program)
                return sentence_error(
                        -EINVAL, ret_error,
                        "The program of %s is not known: write Executable=", binding->unit);
        if (starts_container(binding))
                return take_program_of_container(binding, root, ret_path, ret_error);
        if (is_interpreter(binding->view.program)) {
                describe_running(binding, running, sizeof(running));
                return sentence_error(-EINVAL, ret_error,
                                      "ExecStart= of %s is %s, which runs other code%s: write "
                                      "Executable= with the program or library to be measured",
                                      binding->unit, binding->view.program, running);
        }
        r = find_program(binding, root, ret_path);
        if (r == -ENOENT)
                return sentence_error(r, ret_error,
                                      "'%s', the program of ExecStart= of %s, is not in any "
                                      "directory that systemd searches for programs",
                                      binding->view.program, binding->unit);
        return r;
}

int binding_await_container(const Binding *binding, char **ret_error) {
        if (unit_name_is_template(binding->unit))
                return sentence_error(-EAGAIN, ret_error,
                                      "Instances of %s start containers, each with files of its "
                                      "own: write a section [X-Tlob NAME] in their unit file",
                                      binding->unit);
        return sentence_error(-EAGAIN, ret_error,
                              "%s is looked for in the container of %s, and none runs in its "
                              "cgroup yet",
                              binding->executable, binding->unit);
}

int binding_look_up_library(const Binding *binding, const Root *root, char **ret_path) {
        _cleanup_free_ char *program = NULL;

        if (binding->view.program && find_program(binding, root, &program) == -ENOMEM)
                return -ENOMEM;
        return library_find_in(root, binding->executable, program, ret_path);
}

static int complain_missing_library(const Binding *binding, const Root *root, char **ret_error) {
        const char *unit =
                binding->view.main_pid > 0 ? ", and no process of the unit has loaded one" : "";
        _cleanup_free_ char *near = NULL;
        int r;

        r = library_near_names(root, binding->executable, &near);
        if (r < 0)
                return r;
        if (*near != '\0')
                return sentence_error(-ENOENT, ret_error,
                                      "The loader's directories have no library '%s' for this "
                                      "machine%s; near names: %s",
                                      binding->executable, unit, near);
        return sentence_error(-ENOENT, ret_error,
                              "The loader's directories have no library '%s' for this machine%s: "
                              "write its absolute path",
                              binding->executable, unit);
}

static int find_library(const Binding *binding, const Root *root, char **ret_path,
                        char **ret_error) {
        int r;

        if (binding_awaits_container(binding))
                return binding_await_container(binding, ret_error);
        if (binding->view.loaded)
                return free_and_strdup(ret_path, binding->view.loaded);
        r = binding_look_up_library(binding, root, ret_path);
        return r == -ENOENT ? complain_missing_library(binding, root, ret_error) : r;
}

/* A program that is there, but cannot be measured. */
static int open_program(const Binding *binding, const Root *root, const char *path, ElfFile **ret,
                        char **ret_error) {
        _cleanup_free_ char *sentence = NULL;
        char running[PATH_MAX + 32];
        int r;

        r = elf_file_open_in(root, path, ret, &sentence);
        if (r >= 0 || !sentence)
                return r;
        if (r == -ENOENT)
                return sentence_error(r, ret_error, "%s, the program of ExecStart= of %s", sentence,
                                      binding->unit);
        describe_running(binding, running, sizeof(running));
        return sentence_error(r, ret_error,
                              "%s, the program of ExecStart= of %s%s. Write Executable= with the "
                              "program or library to be measured",
                              sentence, binding->unit, running);
}

/* A file that is not there may only be hidden from us. */
static int explain_missing(int error, const Root *root, char **ret_error) {
        _cleanup_(root_done) Root machine = ROOT_OWN;
        _cleanup_free_ char *sentence = NULL;
        int r;

        if (error != -ENOENT || root->fd >= 0 || !ret_error || !*ret_error)
                return error;
        r = root_of_machine(&machine);
        /* Nobody's service but that of root hides anything. */
        if (r >= 0 || geteuid() != 0)
                return error;
        sentence = TAKE_PTR(*ret_error);
        return sentence_error(error, ret_error,
                              "%s. It may be hidden from tlobd by its own service, which can only "
                              "be told by /proc/1/root: %s",
                              sentence, strerror(-r));
}

/* What that process runs: its path leads to something else. -ESTALE: it does so no more. */
static int open_old(const Binding *binding, char **ret_inner_path, ElfFile **ret_elf,
                    char **ret_error) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        MappedIdentity mapped;
        char link[64], name[64];
        int r;

        (void) snprintf(link, sizeof(link), "/proc/%u/exe", binding->view.old.pid);
        (void) snprintf(name, sizeof(name), "the program of process %u", binding->view.old.pid);
        r = elf_file_open(link, &elf, ret_error);
        if (r >= 0)
                r = elf_file_set_name(elf, name);
        if (r < 0)
                return r == -ENOENT || r == -ESRCH ? -ESTALE : r;
        mapped = file_identify_mapping(elf_file_fd(elf));
        if (!mapped_identity_equal(&mapped, &binding->view.old.mapped))
                return sentence_error(-ESTALE, ret_error, "%s is another program by now", link);
        *ret_inner_path = strdup(link);
        if (!*ret_inner_path)
                return -ENOMEM;
        *ret_elf = TAKE_PTR(elf);
        return 0;
}

/* What somebody else has opened: nothing is looked for by a path. */
static int open_lent(const Binding *binding, char **ret_inner_path, ElfFile **ret_elf,
                     char **ret_error) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_free_ char *name = NULL;
        _cleanup_close_ int fd = -EBADF;
        char link[32];
        int r;

        r = lent_file_open(&binding->lent, &fd, ret_error);
        if (r < 0)
                return r;
        (void) snprintf(link, sizeof(link), "/proc/self/fd/%i", fd);
        r = elf_file_open(link, &elf, NULL);
        if (r < 0)
                return sentence_error(r, ret_error, "Cannot read %s: %s", binding->lent.file,
                                      strerror(-r));
        elf_file_ignore_links(elf);
        name = strdup(binding->lent.file);
        if (!name || elf_file_set_name(elf, name) < 0)
                return -ENOMEM;
        *ret_inner_path = TAKE_PTR(name);
        *ret_elf = TAKE_PTR(elf);
        return 0;
}

int binding_open_executable(const Binding *binding, char **ret_inner_path, ElfFile **ret_elf,
                            char **ret_error) {
        bool is_path = binding->executable && *binding->executable == '/';
        _cleanup_(root_done) Root root = ROOT_OWN;
        _cleanup_free_ char *path = NULL;
        int r;

        if (binding->lent.user)
                return open_lent(binding, ret_inner_path, ret_elf, ret_error);
        if (binding->view.old.pid > 0)
                return open_old(binding, ret_inner_path, ret_elf, ret_error);
        r = binding_open_root(binding, is_path ? binding->executable : NULL, &root, ret_error);
        if (r < 0)
                return r;
        if (binding_takes_program(binding)) {
                r = take_program(binding, &root, &path, ret_error);
                if (r >= 0)
                        r = open_program(binding, &root, path, ret_elf, ret_error);
        } else {
                if (is_path)
                        r = free_and_strdup(&path, binding->executable);
                else
                        r = find_library(binding, &root, &path, ret_error);
                if (r >= 0)
                        r = elf_file_open_in(&root, path, ret_elf, ret_error);
        }
        if (r < 0)
                return explain_missing(r, &root, ret_error);
        *ret_inner_path = TAKE_PTR(path);
        return 0;
}
