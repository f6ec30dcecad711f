/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The files that the daemon writes itself: bindings that were added at run time, and budgets that
 * were set. Each is written under a temporary name, synced, and renamed: a reader, or a machine
 * that loses power, sees the old file or the new one, never a part.
 *
 * Temporary names begin with '.', which config/file.c passes over. Only files whose names are made
 * here are ever removed.
 *
 * The file of an override is named after the binding: '/' and whatever is unusual becomes \xNN. A
 * full name can be longer than a file name may be; then its head and a checksum make the name, and
 * the whole name is in the file.
 */

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/duration.h"
#include "base/io.h"
#include "base/sentence.h"
#include "binding/keys.h"
#include "config/config.h"
#include "config/file.h"
#include "config/internal.h"

#define ESCAPED_MAX 200
#define ESCAPED_CUT 180

/* A path in allocated memory, of up to three parts. */
static int make_path(char **ret, const char *a, const char *b, const char *c) {
        char *path;

        if (asprintf(&path, "%s/%s%s%s", a, b, c ? "/" : "", c ?: "") < 0)
                return -ENOMEM;
        *ret = path;
        return 0;
}

static int make_directory(const char *path) {
        if (mkdir(path, 0755) < 0)
                return errno == EEXIST ? 0 : -errno;
        /* Whatever our umask is. */
        return chmod(path, 0755) < 0 ? -errno : 0;
}

static int open_directory(const char *path) {
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

static int sync_directory(const char *path) {
        _cleanup_close_ int fd = open_directory(path);

        if (fd < 0)
                return fd;
        return fsync(fd) < 0 ? -errno : 0;
}

static int write_temporary(int fd, const char *text, size_t size) {
        int r;

        r = write_all(fd, text, size);
        if (r < 0)
                return r;
        return fchmod(fd, 0644) < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* Replaces path, in subdirectory, by a file with that text. */
static int write_file(const char *subdirectory, const char *path, const char *text, size_t size) {
        _cleanup_close_ int fd = -EBADF, directory_fd = -EBADF;
        _cleanup_free_ char *temporary = NULL;
        int r;

        /*
         * Whatever can fail comes before the file is there: who is told of a failure must not find
         * it.
         */
        directory_fd = open_directory(subdirectory);
        if (directory_fd < 0)
                return directory_fd;
        r = make_path(&temporary, subdirectory, ".tlobd-XXXXXX", NULL);
        if (r < 0)
                return r;
        fd = mkostemp(temporary, O_CLOEXEC);
        if (fd < 0)
                return -errno;

        r = write_temporary(fd, text, size);
        if (r >= 0 && rename(temporary, path) < 0)
                r = -errno;
        if (r < 0) {
                (void) unlink(temporary);
                return r;
        }
        return fsync(directory_fd) < 0 ? -errno : 0;
}

static int write_below(const char *directory, const char *subdirectory, const char *name,
                       const char *text, size_t size) {
        _cleanup_free_ char *parent = NULL, *path = NULL;
        int r;

        r = make_path(&parent, directory, subdirectory, NULL);
        if (r < 0)
                return r;
        r = make_path(&path, directory, subdirectory, name);
        if (r < 0)
                return r;
        r = make_directory(directory);
        /* Of a user, ~/.config may be missing, too. */
        if (r == -ENOENT && make_parents(directory) >= 0)
                r = make_directory(directory);
        if (r < 0)
                return r;
        r = make_directory(parent);
        if (r < 0)
                return r;
        return write_file(parent, path, text, size);
}

/* Returns 1 if it was there, 0 if not. */
static int remove_below(const char *directory, const char *subdirectory, const char *name) {
        _cleanup_free_ char *parent = NULL, *path = NULL;
        int r;

        r = make_path(&parent, directory, subdirectory, NULL);
        if (r < 0)
                return r;
        r = make_path(&path, directory, subdirectory, name);
        if (r < 0)
                return r;
        if (unlink(path) < 0)
                return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
        /* It is gone, whether or not that outlives a power failure: an error would deny it. */
        (void) sync_directory(parent);
        return 1;
}

static int print_keys(FILE *f, const Binding *binding) {
        for (const char *const *key = binding_keys(); *key; key++) {
                _cleanup_free_ char *value = NULL;
                int r;

                r = binding_get_key(binding, *key, &value);
                if (r < 0 && r != -ENOENT)
                        return r;
                if (r > 0)
                        (void) fprintf(f, "%s=%s\n", *key, value);
        }
        return 0;
}

static int binding_to_text(const Binding *binding, char **ret, size_t *ret_size) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *f;
        int r;

        f = open_memstream(&text, &size);
        if (!f)
                return -ENOMEM;
        (void) fprintf(f,
                       "# Written by tlobd for \"tlobctl add-binding\"; \"tlobctl remove-binding "
                       "%s\" removes it.\n\n[Binding %s]\n",
                       binding->name, binding->name);
        if (binding->source.added_by != 0)
                (void) fprintf(f, CONFIG_ADDED_BY "=%u\n", binding->source.added_by);
        r = print_keys(f, binding);
        /* glibc (2.36) reports no error if it cannot trim the text, and leaves none. */
        if (fclose(f) != 0 || !text)
                r = -ENOMEM;
        if (r < 0)
                return r;
        *ret = TAKE_PTR(text);
        *ret_size = size;
        return 0;
}

static int binding_file_name(const char *name, char **ret) {
        char *file;

        if (!binding_name_is_valid(name))
                return -EINVAL;
        if (asprintf(&file, "tlobctl-%s.conf", name) < 0)
                return -ENOMEM;
        *ret = file;
        return 0;
}

int config_write_binding(const char *directory, Binding *binding) {
        _cleanup_free_ char *file = NULL, *text = NULL, *source = NULL;
        size_t size;
        int r;

        r = binding_file_name(binding->name, &file);
        if (r < 0)
                return r;
        r = binding_to_text(binding, &text, &size);
        if (r < 0)
                return r;
        source = sentence_make("%s/bindings.d/%s:3", directory, file);
        if (!source)
                return -ENOMEM;
        r = write_below(directory, "bindings.d", file, text, size);
        if (r < 0)
                return r;

        free(binding->source.place);
        binding->source.place = TAKE_PTR(source);
        return 0;
}

int config_remove_binding(const char *directory, const char *name) {
        _cleanup_free_ char *file = NULL;
        int r;

        r = binding_file_name(name, &file);
        if (r < 0)
                return r;
        return remove_below(directory, "bindings.d", file);
}

/* FNV-1a: it only has to tell long names apart that begin alike. */
static uint64_t checksum(const char *s) {
        uint64_t v = UINT64_C(0xcbf29ce484222325);

        for (; *s != '\0'; s++)
                v = (v ^ (unsigned char) *s) * UINT64_C(0x100000001b3);
        return v;
}

static int override_file_name(const char *name, char **ret) {
        char escaped[4 * CONFIG_SECTION_MAX + 1], *p = escaped, *file;
        int r;

        if (!binding_full_name_is_valid(name))
                return -EINVAL;
        for (const char *s = name; *s != '\0'; s++)
                if (isalnum((unsigned char) *s) || strchr(":_.@-", *s))
                        *p++ = *s;
                else
                        p += sprintf(p, "\\x%02x", (unsigned char) *s);
        *p = '\0';

        r = strlen(escaped) <= ESCAPED_MAX ? asprintf(&file, "%s.conf", escaped)
                                           : asprintf(&file, "%.*s-%016" PRIx64 ".conf",
                                                      ESCAPED_CUT, escaped, checksum(name));
        if (r < 0)
                return -ENOMEM;
        *ret = file;
        return 0;
}

int config_write_override(const char *directory, const char *name, uint64_t budget_ns) {
        _cleanup_free_ char *file = NULL, *text = NULL;
        char budget[DURATION_MAX];
        int r;

        r = binding_check_budget(budget_ns);
        if (r < 0)
                return r;
        r = override_file_name(name, &file);
        if (r < 0)
                return r;
        r = asprintf(&text,
                     "# Written by tlobd for \"tlobctl set-budget\".\n\n"
                     "[Override %s]\nBudgetSec=%s\n",
                     name, duration_format(budget_ns, budget));
        if (r < 0) {
                text = NULL;
                return -ENOMEM;
        }
        return write_below(directory, "overrides.d", file, text, (size_t) r);
}

int config_remove_override(const char *directory, const char *name) {
        _cleanup_free_ char *file = NULL;
        int r;

        r = override_file_name(name, &file);
        if (r < 0)
                return r;
        r = remove_below(directory, "overrides.d", file);
        return r < 0 ? r : 0;
}
