/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A file is looked up in /proc, where its user can have put another one whenever it is looked at.
 * So it is held first, without being opened, as a device might do something then; and what is asked
 * later of that number must be about the file that is held. To have a file sent by the user would
 * be simpler, but to close one can take for ever, also before it has been looked at.
 */

#include "binding/lent-file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/sentence.h"
#include "binding/file.h"

/* An open file, as /proc/PID/fdinfo has it. */
typedef struct OpenFile {
        unsigned flags; /* of open() */
        int mount;
        uint64_t inode; /* Linux 5.14 */
} OpenFile;

static bool read_open_file(int process_fd, int fd, OpenFile *ret) {
        _cleanup_fclose_ FILE *f = NULL;
        char path[32], line[128];
        unsigned n = 0;
        int info;

        (void) snprintf(path, sizeof(path), "fdinfo/%i", fd);
        info = openat(process_fd, path, O_RDONLY | O_CLOEXEC);
        if (info < 0)
                return false;
        f = fdopen(info, "r");
        if (!f) {
                safe_close(info);
                return false;
        }
        while (fgets(line, sizeof(line), f))
                n += sscanf(line, "flags: %o", &ret->flags) == 1 ||
                     sscanf(line, "mnt_id: %i", &ret->mount) == 1 ||
                     sscanf(line, "ino: %" SCNu64, &ret->inode) == 1;
        return n == 3;
}

static int open_process(pid_t pid) {
        char path[32];

        (void) snprintf(path, sizeof(path), "/proc/%i", (int) pid);
        return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Without opening it. */
static int hold(int process_fd, int fd) {
        char path[32];

        (void) snprintf(path, sizeof(path), "fd/%i", fd);
        return openat(process_fd, path, O_PATH | O_CLOEXEC);
}

/* What of a process is for its user only; another user may have made it more than that user's. */
static bool is_of(int process_fd, uid_t user) {
        struct stat st;

        return fstatat(process_fd, "fd", &st, 0) >= 0 && st.st_uid == user;
}

/* Is what is held what that process has opened for reading? */
static bool is_open_there(const BindingLent *lent, int process_fd, int held) {
        _cleanup_close_ int own = open_process(getpid());
        OpenFile there, here;

        return own >= 0 && read_open_file(process_fd, lent->file_fd, &there) &&
               read_open_file(own, held, &here) && there.mount == here.mount &&
               there.inode == here.inode && !(there.flags & O_PATH) &&
               (there.flags & O_ACCMODE) != O_WRONLY && is_of(process_fd, lent->user);
}

/*
 * However it came to be held: numbers of inodes are not unique on all file systems, and a process
 * can be more than its user. Groups do not count, as an access list may say otherwise.
 */
static bool may_read(const struct stat *st, uid_t user) {
        return st->st_mode & (st->st_uid == user ? S_IRUSR : S_IROTH);
}

/* Is that file system mounted for all, and so by somebody who may mount for all? */
static bool device_is_of_machine(dev_t device) {
        _cleanup_fclose_ FILE *f = fopen("/proc/1/mountinfo", "re");
        _cleanup_free_ char *line = NULL;
        unsigned major_number, minor_number;
        size_t size = 0;

        while (f && getline(&line, &size, f) > 0)
                if (sscanf(line, "%*u %*u %u:%u", &major_number, &minor_number) == 2 &&
                    makedev(major_number, minor_number) == device)
                        return true;
        return false;
}

/*
 * To read in others may take for ever, even for the kernel. An overlay has layers of any kind, and
 * users may make some for themselves; stat() tells its layers, a mapping the overlay itself.
 */
static bool filesystem_answers(int fd) {
        static const long types[] = {
                EXT4_SUPER_MAGIC,     XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                F2FS_SUPER_MAGIC,     TMPFS_MAGIC,     SQUASHFS_MAGIC,
                EROFS_SUPER_MAGIC_V1, 0x2fc12fc1, /* ZFS, which has none in the kernel's headers */
                0xca451a4e,                       /* bcachefs, the same */
        };
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return false;
        if ((long) fs.f_type == OVERLAYFS_SUPER_MAGIC)
                return device_is_of_machine(file_identify_mapping(fd).device);
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if ((long) fs.f_type == types[i])
                        return true;
        return false;
}

int lent_file_open(const BindingLent *lent, int *ret_fd, char **ret_error) {
        _cleanup_close_ int process = -EBADF, held = -EBADF, fd = -EBADF;
        char path[32];
        struct stat st;

        process = open_process(lent->holder);
        if (process < 0)
                return -ESRCH;
        held = hold(process, lent->file_fd);
        if (held < 0 || fstat(held, &st) < 0 || !S_ISREG(st.st_mode) ||
            !is_open_there(lent, process, held) || !may_read(&st, lent->user))
                return sentence_error(-EINVAL, ret_error,
                                      "%s is no file that can be read by user %u as its owner, or "
                                      "by everybody",
                                      lent->file, lent->user);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%i", held);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
                return sentence_error(-errno, ret_error, "Cannot read %s: %s", lent->file,
                                      strerror(errno));
        if (!filesystem_answers(fd))
                return sentence_error(
                        -EOPNOTSUPP, ret_error,
                        "%s is on a file system that may not answer (FUSE, a network, "
                        "or an overlay that is not the machine's), where nothing is measured "
                        "for users: copy it to a local one",
                        lent->file);
        *ret_fd = TAKE_FD(fd);
        return 0;
}
