/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A directory for a test, below $TMPDIR or /tmp. Links in it are removed, never followed. */

#include "temporary.h"

#include <ftw.h>
#include <sys/stat.h>

#include "base/cleanup.h"

static void must(int ok) {
        if (!ok)
                abort();
}

void temporary_init(Temporary *tmp) {
        must(snprintf(tmp->path, sizeof(tmp->path), "%s/tlob-test-XXXXXX",
                      getenv("TMPDIR") ?: "/tmp") < (int) sizeof(tmp->path));
        must(mkdtemp(tmp->path) != NULL);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

void temporary_done(Temporary *tmp) {
        if (tmp->path[0] != '\0')
                (void) nftw(tmp->path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *temporary_path(Temporary *tmp, const char *name) {
        must(snprintf(tmp->buf, sizeof(tmp->buf), "%s/%s", tmp->path, name) <
             (int) sizeof(tmp->buf));
        return tmp->buf;
}

static FILE *make_file(Temporary *tmp, const char *name) {
        char *path = (char *) temporary_path(tmp, name);
        FILE *f;

        for (char *p = strchr(path + strlen(tmp->path) + 1, '/'); p; p = strchr(p + 1, '/')) {
                *p = '\0';
                must(mkdir(path, 0755) >= 0 || errno == EEXIST);
                *p = '/';
        }
        f = fopen(path, "we");
        must(f != NULL);
        return f;
}

void temporary_write(Temporary *tmp, const char *name, const char *text) {
        FILE *f = make_file(tmp, name);

        must(fputs(text, f) >= 0);
        must(fclose(f) == 0);
}

void temporary_copy(Temporary *tmp, const char *name, const char *from) {
        FILE *f = make_file(tmp, name), *other = fopen(from, "re");
        char bytes[4096];
        size_t n;

        must(other != NULL);
        while ((n = fread(bytes, 1, sizeof(bytes), other)) > 0)
                must(fwrite(bytes, 1, n, f) == n);
        must(fclose(f) == 0);
        (void) fclose(other);
}
