/* SPDX-License-Identifier: MIT */

/*
 * Which names a file of marks can have, and how it comes to its path: by a rename, because a file
 * that is written in place breaks the programs that have loaded it, and not at all if nothing would
 * change, so that all of a service's processes load one file, with the probes that it has.
 */

#include "tlob-mark-file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image.h"

#define NAME_MAX_LENGTH 128U
#define KEY_SUFFIX      ":key"

static bool parse_name(const char *text, Mark *ret) {
        size_t length = strcspn(text, ":");
        const char *rest = text + length;

        for (size_t i = 0; i < length; i++)
                if (!isascii(text[i]) || (!isalnum((unsigned char) text[i]) && text[i] != '_'))
                        return false;
        if (length == 0 || length > NAME_MAX_LENGTH || isdigit((unsigned char) text[0]) ||
            (*rest != '\0' && strcmp(rest, KEY_SUFFIX) != 0))
                return false;
        *ret = (Mark) { .name = text, .length = length, .has_key = *rest != '\0' };
        return true;
}

static bool is_there(const Mark *marks, size_t n, const Mark *wanted) {
        for (size_t i = 0; i < n; i++)
                if (marks[i].length == wanted->length &&
                    memcmp(marks[i].name, wanted->name, wanted->length) == 0)
                        return true;
        return false;
}

/* Returns how many are good: n_names, or the index of the first that is not. */
static size_t parse_names(const char *const names[], size_t n_names, Mark *ret) {
        for (size_t i = 0; i < n_names; i++)
                if (!parse_name(names[i], &ret[i]) || is_there(ret, i, &ret[i]))
                        return i;
        return n_names;
}

static ssize_t read_all(int fd, char *buffer, size_t size) {
        size_t done = 0;

        while (done < size) {
                ssize_t n = read(fd, buffer + done, size - done);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                done += (size_t) n;
        }
        return (ssize_t) done;
}

/* If it cannot be read, it is another one. */
static bool is_same(const char *path, const void *data, size_t size) {
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        bool same = false;
        struct stat st;
        char *found;

        if (fd < 0)
                return false;
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (size_t) st.st_size == size) {
                found = malloc(size);
                same = found && read_all(fd, found, size) == (ssize_t) size &&
                       memcmp(found, data, size) == 0;
                free(found);
        }
        (void) close(fd);
        return same;
}

static int write_all(int fd, const char *data, size_t size) {
        while (size > 0) {
                ssize_t n = write(fd, data, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                data += n;
                size -= (size_t) n;
        }
        return 0;
}

static int replace(const char *path, const void *data, size_t size) {
        char temporary[PATH_MAX];
        int fd, r;

        if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int) sizeof(temporary))
                return -ENAMETOOLONG;
        fd = mkostemp(temporary, O_CLOEXEC);
        if (fd < 0)
                return -errno;
        r = write_all(fd, data, size);
        if (r >= 0 && fchmod(fd, 0644) < 0)
                r = -errno;
        if (close(fd) < 0 && r >= 0)
                r = -errno;
        if (r >= 0 && rename(temporary, path) < 0)
                r = -errno;
        if (r < 0)
                (void) unlink(temporary);
        return r;
}

static int write_marks(const char *path, const Mark *marks, size_t n_marks) {
        size_t size = 0;
        void *data = NULL;
        int r;

        r = image_make(marks, n_marks, &data, &size);
        if (r >= 0 && !is_same(path, data, size))
                r = replace(path, data, size);
        free(data);
        return r;
}

int tlob_mark_file_write(const char *path, const char *const names[], size_t n_names,
                         size_t *ret_wrong) {
        size_t n = n_names;
        Mark *marks;
        int r;

        if (n_names > TLOB_MARK_FILE_NAMES_MAX) {
                r = -E2BIG;
        } else {
                marks = calloc(n_names + 1, sizeof(*marks));
                if (marks)
                        n = parse_names(names, n_names, marks);
                if (!marks)
                        r = -ENOMEM;
                else
                        r = n < n_names ? -EINVAL : write_marks(path, marks, n_names);
                free(marks);
        }
        if (ret_wrong)
                *ret_wrong = n;
        return r;
}
