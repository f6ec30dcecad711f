/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The same text on both sides: a question has a binding's keys as they are configured, an answer
 * what binding_resolve() has filled in. Both sides of each packet stand below each other here.
 *
 * Who answers may have been taken over by a file that it has read. Then it can say what it likes of
 * files, but not do more than that.
 */

#include "file/binding-question.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/sentence.h"
#include "binding/executable.h"
#include "binding/keys.h"
#include "binding/resolve.h"
#include "file/loaded-library.h"
#include "file/maps.h"
#include "file/patches.h"
#include "file/processes.h"
#include "file/resolved-packet.h"

#define ERROR_MAX 4095 /* of the kernel */

typedef enum Question {
        QUESTION_RESOLVE,
        QUESTION_CURRENT,
        QUESTION_LOOK,
        QUESTION_LOOK_FOR_OLD,
        QUESTION_IDENTIFY,
        QUESTION_COUNT,
} Question;

/* How its unit sees files. */
static void put_root(Packet *packet, const Binding *binding) {
        packet_put_string(packet, binding->view.program);
        packet_put_number(packet, binding->view.main_pid);
        packet_put_string(packet, binding->view.root_directory);
        packet_put_number(packet, binding->view.has_root_image);
        packet_put_number(packet, binding_may_have_container(binding));
        packet_put_string(packet, binding->cgroup.path);
}

static int take_root(Packet *packet, Binding *binding) {
        bool may_have_container;
        int r;

        r = free_and_strdup(&binding->view.program, packet_take_string(packet));
        binding->view.main_pid = (uint32_t) packet_take_number(packet);
        if (r >= 0)
                r = free_and_strdup(&binding->view.root_directory, packet_take_string(packet));
        binding->view.has_root_image = packet_take_number(packet);
        may_have_container = packet_take_number(packet);
        if (r >= 0)
                r = free_and_strdup(&binding->cgroup.path, packet_take_string(packet));
        if (r >= 0 && may_have_container && binding->cgroup.path)
                binding->view.container_pid = process_of_container(binding->cgroup.path);
        return r;
}

static void put_old(Packet *packet, const OldProgram *old) {
        packet_put_number(packet, old->pid);
        packet_put_number(packet, old->mapped.device);
        packet_put_number(packet, old->mapped.inode);
}

static OldProgram take_old(Packet *packet) {
        OldProgram old;

        old.pid = (uint32_t) packet_take_number(packet);
        old.mapped.device = packet_take_number(packet);
        old.mapped.inode = packet_take_number(packet);
        return old;
}

static void put_lent(Packet *packet, const BindingLent *lent) {
        packet_put_number(packet, lent->user);
        packet_put_number(packet, (uint64_t) lent->holder);
        packet_put_number(packet, (uint64_t) lent->file_fd);
        packet_put_string(packet, lent->file);
}

static int take_lent(Packet *packet, BindingLent *lent) {
        lent->user = (uid_t) packet_take_number(packet);
        lent->holder = (pid_t) packet_take_number(packet);
        lent->file_fd = (int) packet_take_number(packet);
        return free_and_strdup(&lent->file, packet_take_string(packet));
}

int question_put_resolve(Packet *question, const Binding *binding) {
        packet_init(question);
        packet_put_number(question, QUESTION_RESOLVE);
        put_root(question, binding);
        put_old(question, &binding->view.old);
        put_lent(question, &binding->lent);
        packet_put_number(question, binding->wants_copies);
        for (const char *const *key = binding_keys(); *key; key++) {
                _cleanup_free_ char *value = NULL;
                int r;

                r = binding_get_key(binding, *key, &value);
                if (r == -ENOMEM)
                        return r;
                if (r <= 0)
                        continue;
                packet_put_string(question, *key);
                packet_put_string(question, value);
        }
        packet_put_string(question, NULL);
        return packet_is_good(question) ? 0 : -EMSGSIZE;
}

static int take_binding(Packet *question, Binding **ret) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        const char *key;
        int r;

        r = binding_new("question", &binding);
        if (r >= 0)
                r = take_root(question, binding);
        if (r >= 0)
                binding->view.old = take_old(question);
        if (r >= 0)
                r = take_lent(question, &binding->lent);
        if (r >= 0)
                binding->wants_copies = packet_take_number(question);
        while (r >= 0 && (key = packet_take_string(question))) {
                const char *value = packet_take_string(question);

                r = value ? binding_set_key(binding, key, value, NULL) : -EBADMSG;
        }
        if (r < 0)
                return r;
        if (!packet_is_good(question))
                return -EBADMSG;
        *ret = TAKE_PTR(binding);
        return 0;
}

/* Returns 1 if it is the main process's, 0, or a negative errno. */
static int learn_library(Binding *binding) {
        int r;

        if (!binding_takes_library(binding) || (!binding->unit && !binding->cgroup.path))
                return 0;
        r = loaded_library_find(binding, &binding->view.loaded);
        return r == -ENOENT ? 0 : r;
}

/* Returns 0, -ETXTBSY if a process has other code there, or another negative errno. */
static int check_patches(const Binding *binding, const BindingFile *file, char **ret_error) {
        const ElfSite *start = &binding->resolved.sites.start;
        Patch patch;
        int r;

        if (!binding->unit || !binding_has_file(binding))
                return 0;
        r = patches_find(binding, file->fd, &patch);
        if (r <= 0)
                return r;
        if (patch.is_outdated)
                return sentence_error(-EBUSY, ret_error,
                                      "Process %u of %s still has what was at 0x%" PRIx64
                                      " in %s before that was written to, and a probe there would "
                                      "crash it: restart the unit",
                                      patch.pid, binding->unit, patch.offset,
                                      binding->resolved.path);
        return sentence_error(-ETXTBSY, ret_error,
                              "Process %u of %s has other code at 0x%" PRIx64 "%s%s%s than %s, as "
                              "hooks and live patches write it, and a probe there would crash "
                              "it: 'tlobctl %sreload' looks again",
                              patch.pid, binding->unit, patch.offset,
                              start->function ? ", in " : "", start->function ?: "",
                              start->function ? "," : "", binding->resolved.path,
                              binding->lent.user ? "--user " : "");
}

static int answer_resolve(Packet *question, Packet *answer, int *ret_fd) {
        _cleanup_(binding_file_freep) BindingFile *file = NULL;
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *error = NULL;
        int r;

        r = take_binding(question, &binding);
        if (r < 0)
                return r;
        r = learn_library(binding);
        if (r < 0)
                return r;
        r = binding_resolve(binding, &file, &error);
        if (r >= 0)
                r = check_patches(binding, file, &error);
        /* What is wrong with a file on the machine need not be with that of the container. */
        if (r < 0 && r != -ENOMEM && binding->executable && binding_awaits_container(binding)) {
                free(TAKE_PTR(error));
                r = binding_await_container(binding, &error);
        }
        packet_put_number(answer, (uint64_t) -r);
        packet_put_string(answer, error);
        if (r < 0)
                return 0;
        packet_put_resolved(answer, &binding->resolved, file);
        *ret_fd = TAKE_FD(file->fd);
        return 0;
}

/* 0 or a negative errno. */
static int take_error(Packet *answer) {
        uint64_t error = packet_take_number(answer);

        return error <= ERROR_MAX ? -(int) error : -EBADMSG;
}

int answer_take_resolved(Packet *answer, int fd, Binding *binding, BindingFile **ret_file,
                         char **ret_error) {
        _cleanup_(binding_file_freep) BindingFile *file = binding_file_new();
        const char *sentence;
        int r;

        if (!file) {
                safe_close(fd);
                return -ENOMEM;
        }
        file->fd = fd;
        r = take_error(answer);
        sentence = packet_take_text(answer);
        if (r < 0)
                return sentence ? sentence_error(r, ret_error, "%s", sentence) : r;
        r = packet_take_resolved(answer, &binding->resolved, file);
        if (r < 0)
                return r;
        if (!packet_is_good(answer) || !binding->resolved.path || !binding->resolved.inner_path ||
            file->fd < 0)
                return -EBADMSG;
        *ret_file = TAKE_PTR(file);
        return 0;
}

static int put_file(Packet *question, Question type, const Binding *binding) {
        packet_init(question);
        packet_put_number(question, type);
        put_root(question, binding);
        packet_put_string(question, binding_takes_library(binding) ? binding->executable : NULL);
        packet_put_string(question, binding->resolved.inner_path);
        packet_put_number(question, binding->resolved.device);
        packet_put_number(question, binding->resolved.inode);
        packet_put_number(question, binding->resolved.mapped.device);
        packet_put_number(question, binding->resolved.mapped.inode);
        return packet_is_good(question) ? 0 : -EMSGSIZE;
}

static int take_file(Packet *question, Binding **ret) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        int r;

        r = binding_new("question", &binding);
        if (r >= 0)
                r = take_root(question, binding);
        if (r >= 0)
                r = free_and_strdup(&binding->executable, packet_take_string(question));
        if (r >= 0)
                r = free_and_strdup(&binding->resolved.inner_path, packet_take_string(question));
        if (r < 0)
                return r;
        binding->resolved.device = packet_take_number(question);
        binding->resolved.inode = packet_take_number(question);
        binding->resolved.mapped.device = packet_take_number(question);
        binding->resolved.mapped.inode = packet_take_number(question);
        if (!packet_is_good(question) || !binding->resolved.inner_path)
                return -EBADMSG;
        *ret = TAKE_PTR(binding);
        return 0;
}

static bool is_want(int r) {
        return r == -ENOMEM || r == -EMFILE || r == -ENFILE;
}

/*
 * What its unit's processes see at its path: is it the same file? *ret_path: as /proc shows it, or
 * NULL. *ret_stamp is that of what is there, if anything is. A negative errno: it cannot be looked
 * at for want of memory or descriptors, which says nothing of the file.
 */
static int is_same_file(const Binding *binding, char **ret_path, FileStamp *ret_stamp) {
        _cleanup_(root_done) Root root = ROOT_OWN;
        _cleanup_close_ int fd = -EBADF;
        struct stat st;
        int r;

        r = binding_open_root(binding, binding->resolved.inner_path, &root, NULL);
        if (r < 0)
                return is_want(r) ? r : false;
        fd = root_open(&root, binding->resolved.inner_path, O_PATH | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return is_want(-errno) ? -errno : false;
        if (ret_path)
                (void) root_path_of_fd(fd, ret_path);
        if (ret_stamp)
                *ret_stamp = file_stamp_of(fd, &st);
        return st.st_dev == binding->resolved.device && st.st_ino == binding->resolved.inode;
}

int question_put_current(Packet *question, const Binding *binding) {
        return put_file(question, QUESTION_CURRENT, binding);
}

static int answer_current(Packet *question, Packet *answer) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        FileStamp stamp = {};
        int r;

        r = take_file(question, &binding);
        if (r < 0)
                return r;
        r = is_same_file(binding, NULL, &stamp);
        if (r < 0)
                return r;
        packet_put_number(answer, (uint64_t) r);
        packet_put_stamp(answer, &stamp);
        return 0;
}

int answer_take_current(Packet *answer, const Binding *binding, FileStamp *ret_now) {
        bool is_same = packet_take_number(answer);
        FileStamp now = packet_take_stamp(answer);

        if (!packet_is_good(answer))
                return -EBADMSG;
        *ret_now = now;
        if (!is_same)
                return FILE_IS_OTHER;
        if (now.size != binding->resolved.stamp.size ||
            now.mtime_ns != binding->resolved.stamp.mtime_ns ||
            now.born_ns != binding->resolved.stamp.born_ns)
                return FILE_IS_REWRITTEN;
        return now.ctime_ns != binding->resolved.stamp.ctime_ns ? FILE_IS_TOUCHED : FILE_IS_SAME;
}

int question_put_look(Packet *question, const Binding *binding, bool wants_old) {
        return put_file(question, wants_old ? QUESTION_LOOK_FOR_OLD : QUESTION_LOOK, binding);
}

static int answer_look(Packet *question, bool wants_old, Packet *answer) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *running = NULL, *path = NULL;
        FileMaps maps = {};
        bool is_same, is_elsewhere;
        MappedFile file;
        int r;

        r = take_file(question, &binding);
        if (r >= 0)
                r = is_same_file(binding, &path, NULL);
        if (r < 0)
                return r;
        is_same = r;
        file = (MappedFile) {
                .identity = binding->resolved.mapped,
                .path = path ?: binding->resolved.inner_path,
                .device = binding->resolved.device,
                .inode = binding->resolved.inode,
                .path_is_others = path && !is_same,
                .wants_old = wants_old,
        };
        r = binding->cgroup.path ? file_maps_of_cgroup(binding->cgroup.path, &file, &maps) : 0;
        if (is_want(r))
                return r;
        file_maps_of_main_program(binding, &maps);
        r = learn_library(binding);
        if (r < 0)
                return r;
        packet_put_number(answer, (uint64_t) r);
        is_elsewhere =
                binding->view.loaded && !streq(binding->view.loaded, binding->resolved.inner_path);
        running = binding_running_program(binding);
        packet_put_number(answer, binding_awaits_container(binding));
        packet_put_number(answer, is_elsewhere);
        packet_put_number(answer, !is_same);
        packet_put_number(answer, maps.is_mapped);
        packet_put_number(answer, maps.is_replaced);
        put_old(answer, &maps.old);
        packet_put_number(answer, maps.n_processes);
        packet_put_string(answer, running);
        return 0;
}

void file_look_done(FileLook *look) {
        free(look->running);
        *look = (FileLook) {};
}

int answer_take_look(Packet *answer, FileLook *ret) {
        const char *running;
        FileLook look = {};

        look.is_mains = packet_take_number(answer);
        look.is_early = packet_take_number(answer);
        look.is_elsewhere = packet_take_number(answer);
        look.is_other = packet_take_number(answer);
        look.is_mapped = packet_take_number(answer);
        look.is_replaced = packet_take_number(answer);
        look.old = take_old(answer);
        look.n_processes = (unsigned) packet_take_number(answer);
        running = packet_take_text(answer);
        if (!packet_is_good(answer))
                return -EBADMSG;
        if (running) {
                look.running = strdup(running);
                if (!look.running)
                        return -ENOMEM;
        }
        *ret = look;
        return 0;
}

int question_put_identify(Packet *question, const char *path) {
        packet_init(question);
        packet_put_number(question, QUESTION_IDENTIFY);
        packet_put_string(question, path);
        return packet_is_good(question) ? 0 : -EMSGSIZE;
}

static int answer_identify(Packet *question, Packet *answer) {
        const char *path = packet_take_string(question);
        _cleanup_(root_done) Root machine = ROOT_OWN;
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        struct stat st = {};
        int r;

        if (!packet_is_good(question) || !path)
                return -EBADMSG;
        (void) root_of_machine(&machine);
        r = elf_file_open_in(&machine, path, &elf, NULL);
        if (r >= 0 && fstat(elf_file_fd(elf), &st) < 0)
                r = -errno;
        packet_put_number(answer, (uint64_t) -r);
        packet_put_number(answer, st.st_dev);
        packet_put_number(answer, st.st_ino);
        packet_put_number(answer, r >= 0 && elf_file_is_program(elf));
        return 0;
}

int answer_take_identity(Packet *answer, dev_t *ret_device, ino_t *ret_inode,
                         bool *ret_is_program) {
        int r = take_error(answer);
        dev_t device = packet_take_number(answer);
        ino_t inode = packet_take_number(answer);
        bool is_program = packet_take_number(answer);

        if (!packet_is_good(answer))
                return -EBADMSG;
        if (r < 0)
                return r;
        *ret_device = device;
        *ret_inode = inode;
        *ret_is_program = is_program;
        return 0;
}

int question_put_count(Packet *question, const Binding *binding) {
        return put_file(question, QUESTION_COUNT, binding);
}

static int answer_count(Packet *question, Packet *answer) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *path = NULL;
        FileUsers users = {};
        MappedFile file;
        int r;

        r = take_file(question, &binding);
        if (r >= 0)
                r = is_same_file(binding, &path, NULL);
        if (r < 0)
                return r;
        file = (MappedFile) {
                .identity = binding->resolved.mapped,
                .path = path ?: binding->resolved.inner_path,
                .device = binding->resolved.device,
                .inode = binding->resolved.inode,
                .path_is_others = path && r == 0,
        };
        r = file_maps_count(&file, binding->cgroup.path, &users);
        packet_put_number(answer, (uint64_t) -r);
        packet_put_number(answer, users.n_processes);
        packet_put_number(answer, users.n_outside);
        packet_put_number(answer, users.n_unseen);
        return 0;
}

int answer_take_count(Packet *answer, FileUsers *ret) {
        int r = take_error(answer);
        FileUsers users = {};

        users.n_processes = (unsigned) packet_take_number(answer);
        users.n_outside = (unsigned) packet_take_number(answer);
        users.n_unseen = (unsigned) packet_take_number(answer);
        if (!packet_is_good(answer))
                return -EBADMSG;
        if (r < 0)
                return r;
        *ret = users;
        return 0;
}

int question_answer(Packet *question, Packet *answer, int *ret_fd) {
        *ret_fd = -EBADF;
        packet_init(answer);
        switch (packet_take_number(question)) {
        case QUESTION_RESOLVE:
                return answer_resolve(question, answer, ret_fd);
        case QUESTION_CURRENT:
                return answer_current(question, answer);
        case QUESTION_LOOK:
                return answer_look(question, false, answer);
        case QUESTION_LOOK_FOR_OLD:
                return answer_look(question, true, answer);
        case QUESTION_IDENTIFY:
                return answer_identify(question, answer);
        case QUESTION_COUNT:
                return answer_count(question, answer);
        default:
                return -EBADMSG;
        }
}
