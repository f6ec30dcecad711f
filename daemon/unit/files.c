/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A look through systemd's directories of units for files that have sections for us. It is what
 * makes a machine with ten thousand units cheap: only units that such a file can be for are asked
 * about on D-Bus, loaded or not.
 *
 * A file counts by its name, see unit/pattern.c. An alias is a link, and its name counts too. What
 * is found is what could be, and too much does no harm; too little would.
 *
 * Nothing is parsed here, the text is only searched. What was seen of a file is kept with its times
 * and size, so that the next look opens what has changed and nothing else. The work is done in
 * steps of a few entries, for it is done from the event loop.
 */

#include "unit/files.h"

#include <ctype.h>
#include <fcntl.h>
#include <search.h>
#include <sys/stat.h>

#include "base/root.h"
#include "base/strings.h"
#include "base/unit-name.h"
#include "config/config.h"
#include "config/file.h"

/* What was seen of a file. */
typedef struct SeenFile {
        char *path;
        dev_t dev;
        ino_t inode;
        off_t size;
        struct timespec mtime, ctime;
        unsigned round; /* in which it was seen last */
        bool has_sections;
} SeenFile;

struct UnitFiles {
        void *seen; /* of SeenFile, by path: see tsearch() */
        unsigned round;
        bool has_changed; /* since it was asked last */
        bool is_known;    /* what patterns has was found in all directories */

        UnitPatternList patterns; /* as found */
        UnitPatternList next;     /* as found so far */

        /* Where the look is. */
        char **directories;
        size_t at;
        DIR *dir;     /* directories[at] */
        DIR *drop_in; /* one below it, NULL: none */
        char *drop_in_path;
        UnitPattern drop_in_pattern;
};

static void stop_looking(UnitFiles *files) {
        if (files->drop_in)
                closedir(files->drop_in);
        if (files->dir)
                closedir(files->dir);
        free(files->drop_in_path);
        unit_pattern_done(&files->drop_in_pattern);
        unit_pattern_list_done(&files->next);
        files->drop_in = files->dir = NULL;
        files->directories = strings_free(files->directories);
        files->at = 0;
        files->drop_in_path = NULL;
}

static void seen_free(void *p) {
        SeenFile *seen = p;

        free(seen->path);
        free(seen);
}

int unit_files_new(UnitFiles **ret) {
        UnitFiles *files = calloc(1, sizeof(*files));

        if (!files)
                return -ENOMEM;
        *ret = files;
        return 0;
}

UnitFiles *unit_files_free(UnitFiles *files) {
        if (!files)
                return NULL;

        stop_looking(files);
        unit_pattern_list_done(&files->patterns);
        tdestroy(files->seen, seen_free);
        free(files);
        return NULL;
}

static int compare_seen(const void *a, const void *b) {
        return strcmp(((const SeenFile *) a)->path, ((const SeenFile *) b)->path);
}

/* What is known of the file of that path, made if need be; NULL for want of memory. */
static SeenFile *seen_get(UnitFiles *files, const char *path) {
        SeenFile key = { .path = (char *) path }, **found, *seen;

        found = tfind(&key, &files->seen, compare_seen);
        if (found)
                return *found;

        seen = calloc(1, sizeof(*seen));
        if (!seen)
                return NULL;
        seen->path = strdup(path);
        if (seen->path && tsearch(seen, &files->seen, compare_seen))
                return seen;
        seen_free(seen);
        return NULL;
}

static bool seen_is_current(const SeenFile *seen, const struct stat *st) {
        return seen->inode == st->st_ino && seen->dev == st->st_dev && seen->size == st->st_size &&
               seen->mtime.tv_sec == st->st_mtim.tv_sec &&
               seen->mtime.tv_nsec == st->st_mtim.tv_nsec &&
               seen->ctime.tv_sec == st->st_ctim.tv_sec &&
               seen->ctime.tv_nsec == st->st_ctim.tv_nsec;
}

/* A section of ours, or one that somebody may have meant to be ours. */
static bool line_is_worth_reading(const char *line, const char *end) {
        static const char word[] = "tlob";
        size_t n = strlen(word);

        while (line < end && isspace((unsigned char) *line))
                line++;
        if (line == end || *line != '[')
                return false;
        for (; (size_t) (end - line) >= n; line++)
                if (strncasecmp(line, word, n) == 0)
                        return true;
        return false;
}

/*
 * Returns 1 if reading it properly is worth while, also when it is too large, so that this is told;
 * or a negative errno if nobody knows for the moment.
 */
static int search_file(const char *path) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r;

        r = config_file_load(path, &text, &size);
        if (r == -ENOMEM || config_error_may_pass(r))
                return r;
        if (r < 0)
                return r == -EFBIG;
        for (const char *line = text, *end = text + size; line < end;) {
                const char *newline = memchr(line, '\n', (size_t) (end - line)) ?: end;

                if (line_is_worth_reading(line, newline))
                        return 1;
                line = newline + 1;
        }
        return 0;
}

/* Returns whether the file has sections, or -ENOMEM. */
static int look_at(UnitFiles *files, const char *path, const struct stat *st) {
        SeenFile *seen = seen_get(files, path);
        int r;

        if (!seen)
                return -ENOMEM;
        seen->round = files->round;
        if (seen_is_current(seen, st))
                return seen->has_sections;
        files->has_changed = true;
        r = S_ISREG(st->st_mode) ? search_file(path) : 0;
        seen->has_sections = r != 0;
        /* Rather one file read in vain than a section missed; and it is looked at again. */
        if (r < 0)
                return 1;
        seen->dev = st->st_dev;
        seen->inode = st->st_ino;
        seen->size = st->st_size;
        seen->mtime = st->st_mtim;
        seen->ctime = st->st_ctim;
        return r;
}

bool unit_files_has_sections(UnitFiles *files, const char *path) {
        struct stat st;
        int r;

        r = root_stat_anywhere(path, &st);
        if (r < 0)
                return config_error_may_pass(r);
        if (!S_ISREG(st.st_mode))
                return false;
        r = look_at(files, path, &st);
        return r != 0; /* as there */
}

int unit_files_begin(UnitFiles *files, const char *const *directories) {
        stop_looking(files);
        files->round++;
        return strings_copy((char *const *) directories, &files->directories);
}

/*
 * A file or directory that cannot be read, for that reason. If it could be before, what was found
 * then is to hold; otherwise what others have is better than nothing.
 */
static int problem(const UnitFiles *files, int error) {
        return files->is_known && config_error_may_pass(error) ? error : 0;
}

/* Notes a file's pattern if it has sections. path is that of the directory. */
static int take_file(UnitFiles *files, DIR *dir, const char *path, const char *name,
                     const UnitPattern *pattern) {
        _cleanup_free_ char *file = NULL;
        struct stat st;
        int r;

        if (asprintf(&file, "%s/%s", path, name) < 0) {
                file = NULL;
                return -ENOMEM;
        }
        /* What masks others is no regular file. */
        r = fstatat(dirfd(dir), name, &st, 0) < 0 ? root_stat_anywhere(file, &st) : 0;
        if (r < 0)
                return problem(files, r);
        r = look_at(files, file, &st);
        return r > 0 ? unit_pattern_list_add(&files->next, pattern) : r;
}

/* "nginx.service.d": what is in it comes next. */
static int enter_drop_ins(UnitFiles *files, const char *name, size_t length) {
        _cleanup_free_ char *unit = strndup(name, length), *path = NULL;
        UnitPattern pattern;
        int r;

        if (!unit)
                return -ENOMEM;
        r = unit_pattern_of(unit, true, &pattern);
        if (r <= 0)
                return r;
        if (asprintf(&path, "%s/%s", files->directories[files->at], name) < 0) {
                path = NULL;
                unit_pattern_done(&pattern);
                return -ENOMEM;
        }

        free(files->drop_in_path);
        files->drop_in_path = TAKE_PTR(path);
        unit_pattern_done(&files->drop_in_pattern);
        files->drop_in_pattern = pattern;
        files->drop_in = root_open_directory_anywhere(files->drop_in_path);
        return files->drop_in ? 0 : problem(files, -errno);
}

static bool ends_with(const char *name, const char *end, size_t *ret_length) {
        size_t n = strlen(name), m = strlen(end);

        if (n <= m || !streq(name + n - m, end))
                return false;
        *ret_length = n - m;
        return true;
}

static int take_drop_in(UnitFiles *files, const char *name) {
        size_t n;

        if (name[0] == '.' || !ends_with(name, ".conf", &n))
                return 0;
        return take_file(files, files->drop_in, files->drop_in_path, name, &files->drop_in_pattern);
}

static int take_entry(UnitFiles *files, const char *name) {
        UnitPattern pattern = {};
        size_t n;
        int r;

        if (name[0] == '.')
                return 0;
        if (ends_with(name, ".d", &n))
                return enter_drop_ins(files, name, n);

        r = unit_pattern_of(name, false, &pattern);
        if (r > 0)
                r = take_file(files, files->dir, files->directories[files->at], name, &pattern);
        unit_pattern_done(&pattern);
        return r;
}

/* Takes one entry of the directory that is open. Returns 1; 0 at the end of it; or an error. */
static int step_in(UnitFiles *files, DIR **dir, int (*take)(UnitFiles *, const char *)) {
        const struct dirent *entry;
        int r;

        errno = 0;
        entry = readdir(*dir);
        if (!entry) {
                r = problem(files, -errno);
                closedir(*dir);
                *dir = NULL;
                return r;
        }
        r = take(files, entry->d_name);
        return r < 0 ? r : 1;
}

/* Files that are there no more. */
static void forget_unseen(UnitFiles *files) {
        void *kept = NULL;

        while (files->seen) {
                SeenFile *seen = *(SeenFile **) files->seen;

                tdelete(seen, &files->seen, compare_seen);
                files->has_changed |= seen->round != files->round;
                if (seen->round != files->round || !tsearch(seen, &kept, compare_seen))
                        seen_free(seen);
        }
        files->seen = kept;
}

static int finish(UnitFiles *files) {
        unit_pattern_list_done(&files->patterns);
        files->patterns = files->next;
        files->next = (UnitPatternList) {};
        files->is_known = true;
        stop_looking(files);
        forget_unseen(files);
        return 0;
}

int unit_files_step(UnitFiles *files, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                int r;

                if (files->drop_in)
                        r = step_in(files, &files->drop_in, take_drop_in);
                else if (files->dir) {
                        r = step_in(files, &files->dir, take_entry);
                        if (r == 0)
                                files->at++;
                } else if (files->directories && files->directories[files->at]) {
                        files->dir = root_open_directory_anywhere(files->directories[files->at]);
                        r = files->dir ? 0 : problem(files, -errno);
                        if (!files->dir)
                                files->at++;
                } else
                        return finish(files);
                if (r < 0)
                        return r;
        }
        return 1;
}

bool unit_files_take_changed(UnitFiles *files) {
        bool changed = files->has_changed;

        files->has_changed = false;
        return changed;
}

bool unit_files_match(const UnitFiles *files, const char *unit) {
        for (size_t i = 0; i < files->patterns.n; i++)
                if (unit_pattern_matches(&files->patterns.items[i], unit))
                        return true;
        return false;
}

const UnitPattern *unit_files_patterns(const UnitFiles *files, size_t *ret_n) {
        *ret_n = files->patterns.n;
        return files->patterns.items;
}

typedef struct ForEach {
        const UnitFiles *files;
        int (*f)(const char *name, void *userdata);
        void *userdata;
        int r;
} ForEach;

/* The unit of that file, also of a template; drop-ins are none. */
static const char *unit_of_path(const char *path) {
        const char *name = strrchr(path, '/');
        size_t n = name ? (size_t) (name - path) : 0;

        if (n >= 2 && strncmp(path + n - 2, ".d", 2) == 0)
                return NULL;
        return n > 0 && unit_name_type(name + 1, UNIT_HAS_BINDINGS) ? name + 1 : NULL;
}

static bool is_for_many(const UnitFiles *files, const char *name) {
        for (size_t i = 0; i < files->patterns.n; i++)
                if (unit_pattern_is_for_many(&files->patterns.items[i], name))
                        return true;
        return false;
}

static void visit(const void *node, VISIT which, void *userdata) {
        const SeenFile *seen = *(const SeenFile *const *) node;
        ForEach *each = userdata;
        const char *name;

        if ((which != postorder && which != leaf) || each->r < 0)
                return;
        name = unit_of_path(seen->path);
        if (name && is_for_many(each->files, name))
                each->r = each->f(name, each->userdata);
}

int unit_files_for_each(UnitFiles *files, int (*f)(const char *name, void *userdata),
                        void *userdata) {
        ForEach each = { .files = files, .f = f, .userdata = userdata };

        twalk_r(files->seen, visit, &each);
        return each.r;
}
