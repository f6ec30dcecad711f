/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * hanging REAL MOUNTPOINT: a file system that hangs. It has directories, each with one file,
 * "program", a copy of REAL: in "lookup" whoever looks for it hangs, in "open" whoever opens it, in
 * "read" whoever reads it; in "late" whoever reads in its second half, and in "fine" nobody. It
 * says "ready"; a line on its input lets all go on that hang, and nobody hangs after that; at the
 * end of its input it is unmounted.
 *
 * Names and attributes are not remembered by the kernel, so that each call arrives here.
 */

#define FUSE_USE_VERSION 312

#include <fcntl.h>
#include <fuse3/fuse.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/cleanup.h"

static const char *const directories[] = { "/lookup", "/open", "/read", "/fine", "/late" };

static struct {
        int real;
        struct stat st;
        pthread_mutex_t mutex;
        pthread_cond_t condition;
        bool released;
} self = {
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .condition = PTHREAD_COND_INITIALIZER,
};

/* Nothing ends this but the release: as with a server that is gone, the caller cannot be killed. */
static void hang(void) {
        (void) pthread_mutex_lock(&self.mutex);
        while (!self.released)
                (void) pthread_cond_wait(&self.condition, &self.mutex);
        (void) pthread_mutex_unlock(&self.mutex);
}

static bool is_in(const char *path, const char *directory) {
        size_t n = strlen(directory);

        return strncmp(path, directory, n) == 0 && streq(path + n, "/program");
}

static int hanging_getattr(const char *path, struct stat *ret, struct fuse_file_info *info) {
        *ret = (struct stat) { .st_mode = S_IFDIR | 0755, .st_nlink = 2 };
        if (streq(path, "/"))
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(directories); i++) {
                if (streq(path, directories[i]))
                        return 0;
                if (!is_in(path, directories[i]))
                        continue;
                if (is_in(path, "/lookup"))
                        hang();
                *ret = self.st;
                return 0;
        }
        return -ENOENT;
}

static int hanging_open(const char *path, struct fuse_file_info *info) {
        if (is_in(path, "/open"))
                hang();
        return 0;
}

static int hanging_read(const char *path, char *buffer, size_t size, off_t offset,
                        struct fuse_file_info *info) {
        ssize_t n;

        if (is_in(path, "/read") || (is_in(path, "/late") && offset >= self.st.st_size / 2))
                hang();
        n = pread(self.real, buffer, size, offset);
        return n < 0 ? -errno : (int) n;
}

static void *hanging_init(struct fuse_conn_info *connection, struct fuse_config *config) {
        config->attr_timeout = config->entry_timeout = 0;
        return NULL;
}

static const struct fuse_operations operations = {
        .init = hanging_init,
        .getattr = hanging_getattr,
        .open = hanging_open,
        .read = hanging_read,
};

static void *wait_for_release(void *userdata) {
        struct fuse *fuse = userdata;
        char line[64];

        while (fgets(line, sizeof(line), stdin)) {
                (void) pthread_mutex_lock(&self.mutex);
                self.released = true;
                (void) pthread_cond_broadcast(&self.condition);
                (void) pthread_mutex_unlock(&self.mutex);
        }
        fuse_unmount(fuse);
        _exit(EXIT_SUCCESS);
}

int main(int argc, char *argv[]) {
        struct fuse_loop_config *config = fuse_loop_cfg_create();
        struct fuse_args args = FUSE_ARGS_INIT(1, argv);
        struct fuse *fuse;
        pthread_t thread;

        if (argc != 3) {
                (void) fputs("usage: hanging REAL MOUNTPOINT\n", stderr);
                return 2;
        }
        self.real = open(argv[1], O_RDONLY | O_CLOEXEC);
        if (self.real < 0 || fstat(self.real, &self.st) < 0) {
                perror(argv[1]);
                return EXIT_FAILURE;
        }
        fuse = fuse_new(&args, &operations, sizeof(operations), NULL);
        if (!fuse || fuse_mount(fuse, argv[2]) < 0 ||
            pthread_create(&thread, NULL, wait_for_release, fuse) != 0)
                return EXIT_FAILURE;
        (void) puts("ready");
        (void) fflush(stdout);
        fuse_loop_cfg_set_max_threads(config, 64);
        /* It ends as soon as the thread begins to unmount, which is not to be cut short. */
        (void) fuse_loop_mt(fuse, config);
        (void) pthread_join(thread, NULL);
        return EXIT_FAILURE;
}
