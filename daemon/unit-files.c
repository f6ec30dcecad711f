/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A look through systemd's directories of units for files that have sections for us. It is what
 * makes a machine with ten thousand units cheap: only units that such a file can be for are asked
 * about on D-Bus, loaded or not.
 *
 * A file counts by its name (man systemd.unit): nginx.service and nginx.service.d/x.conf are for one
 * unit, foo@.service and foo@.service.d/x.conf for all instances, foo-.service.d/x.conf for all whose
 * names begin so, service.d/x.conf for all services. An alias is a link, and its name counts too.
 * What is found is what could be, and too much does no harm; too little would.
 *
 * Nothing is parsed here, the text is only searched. What was seen of a file is kept with its times
 * and size, so that the next look opens what has changed and nothing else. The work is done in steps
 * of a few entries, for it is done from the event loop.
 */

#include "unit-files.h"

#include <fcntl.h>
#include <search.h>
#include <sys/stat.h>

#include "binding.h"
#include "config-file.h"
#include "config.h"

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

typedef struct PatternList {
        UnitPattern *items;
        size_t n;
} PatternList;

struct UnitFiles {
        void *seen; /* of SeenFile, by path: see tsearch() */
        unsigned round;
        bool has_changed; /* since it was asked last */

        PatternList patterns; /* as found */
        PatternList next;     /* as found so far */

        /* Where the look is. */
        char **directories;
        size_t n_directories, at;
        DIR *dir;     /* directories[at] */
        DIR *drop_in; /* one below it, NULL: none */
        char *drop_in_path;
        UnitPattern drop_in_pattern;
};

static const char *const suffixes[] = { ".service", ".slice", ".scope" };

static void pattern_done(UnitPattern *pattern) {
        free((char *) pattern->name);
        free((char *) pattern->prefix);
        *pattern = (UnitPattern){};
}

static void pattern_list_done(PatternList *list) {
        for (size_t i = 0; i < list->n; i++)
                pattern_done(&list->items[i]);
        free(list->items);
        *list = (PatternList){};
}

static void stop_looking(UnitFiles *files) {
        if (files->drop_in)
                closedir(files->drop_in);
        if (files->dir)
                closedir(files->dir);
        for (size_t i = 0; i < files->n_directories; i++)
                free(files->directories[i]);
        free(files->directories);
        free(files->drop_in_path);
        pattern_done(&files->drop_in_pattern);
        pattern_list_done(&files->next);
        files->drop_in = files->dir = NULL;
        files->directories = NULL;
        files->n_directories = files->at = 0;
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
        pattern_list_done(&files->patterns);
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

/* True if reading it properly is worth while: also when it cannot be read, so that this is told. */
static bool search_file(const char *path) {
        static const char word[] = "[" CONFIG_UNIT_SECTION;
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r;

        r = config_file_load(path, &text, &size);
        if (r < 0)
                return r == -EFBIG;
        return memmem(text, size, word, strlen(word)) != NULL;
}

/* Returns whether the file has sections, or -ENOMEM. */
static int look_at(UnitFiles *files, const char *path, const struct stat *st) {
        SeenFile *seen = seen_get(files, path);

        if (!seen)
                return -ENOMEM;
        seen->round = files->round;
        if (!seen_is_current(seen, st)) {
                files->has_changed = true;
                seen->has_sections = S_ISREG(st->st_mode) && search_file(path);
                seen->dev = st->st_dev;
                seen->inode = st->st_ino;
                seen->size = st->st_size;
                seen->mtime = st->st_mtim;
                seen->ctime = st->st_ctim;
        }
        return seen->has_sections;
}

bool unit_files_has_sections(UnitFiles *files, const char *path) {
        struct stat st;
        int r;

        if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
                return false;
        r = look_at(files, path, &st);
        /* Rather one file read in vain than a section missed. */
        return r != 0;
}

/* The suffix with which the name ends, NULL if it is no unit of ours. It can be all of the name. */
static const char *find_suffix(const char *name) {
        size_t n = strlen(name);

        for (size_t i = 0; i < ELEMENTSOF(suffixes); i++) {
                size_t m = strlen(suffixes[i]);

                if (n >= m && streq(name + n - m, suffixes[i]))
                        return suffixes[i];
        }
        return NULL;
}

/*
 * The units that a file of that name, or a directory of drop-ins (without its ".d") is for. Returns
 * 1, 0 (none of ours), -ENOMEM.
 */
static int pattern_of(const char *name, bool is_drop_in, UnitPattern *ret) {
        UnitPattern pattern = {};
        const char *suffix;
        size_t n;

        /* "service.d" */
        for (size_t i = 0; is_drop_in && i < ELEMENTSOF(suffixes); i++)
                if (streq(name, suffixes[i] + 1)) {
                        name = suffixes[i];
                        break;
                }
        suffix = find_suffix(name);
        if (!suffix)
                return 0;

        n = strlen(name) - strlen(suffix);
        if (n == 0 ? is_drop_in : name[n - 1] == '@' || (is_drop_in && name[n - 1] == '-')) {
                pattern.suffix = suffix;
                pattern.prefix = strndup(name, n);
                if (!pattern.prefix)
                        return -ENOMEM;
        } else {
                if (!binding_unit_is_valid(name))
                        return 0;
                pattern.name = strdup(name);
                if (!pattern.name)
                        return -ENOMEM;
        }
        *ret = pattern;
        return 1;
}

static bool pattern_equal(const UnitPattern *a, const UnitPattern *b) {
        if (a->name || b->name)
                return streq_empty(a->name, b->name);
        return a->suffix == b->suffix && streq(a->prefix, b->prefix);
}

static int pattern_copy(const UnitPattern *pattern, UnitPattern *ret) {
        const char *text = pattern->name ?: pattern->prefix;
        char *copy = strdup(text);

        if (!copy)
                return -ENOMEM;
        *ret = *pattern;
        if (pattern->name)
                ret->name = copy;
        else
                ret->prefix = copy;
        return 0;
}

static int list_add(PatternList *list, const UnitPattern *pattern) {
        UnitPattern *items;
        int r;

        for (size_t i = 0; i < list->n; i++)
                if (pattern_equal(&list->items[i], pattern))
                        return 0;
        items = reallocarray(list->items, list->n + 1, sizeof(*items));
        if (!items)
                return -ENOMEM;
        list->items = items;
        r = pattern_copy(pattern, &items[list->n]);
        if (r < 0)
                return r;
        list->n++;
        return 0;
}

int unit_files_begin(UnitFiles *files, const char *const *directories) {
        size_t n = 0;

        stop_looking(files);
        files->round++;

        while (directories[n])
                n++;
        files->directories = calloc(n + 1, sizeof(*files->directories));
        if (!files->directories)
                return -ENOMEM;
        for (; files->n_directories < n; files->n_directories++) {
                files->directories[files->n_directories] =
                        strdup(directories[files->n_directories]);
                if (!files->directories[files->n_directories])
                        return -ENOMEM;
        }
        return 0;
}

/* Notes a file's pattern if it has sections. path is that of the directory. */
static int take_file(UnitFiles *files, DIR *dir, const char *path, const char *name,
                     const UnitPattern *pattern) {
        _cleanup_free_ char *file = NULL;
        struct stat st;
        int r;

        /* What masks others is no regular file. */
        if (fstatat(dirfd(dir), name, &st, 0) < 0)
                return 0;
        if (asprintf(&file, "%s/%s", path, name) < 0) {
                file = NULL;
                return -ENOMEM;
        }
        r = look_at(files, file, &st);
        return r > 0 ? list_add(&files->next, pattern) : r;
}

static DIR *open_below(DIR *dir, const char *name) {
        _cleanup_close_ int fd = openat(dirfd(dir), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *below = fd < 0 ? NULL : fdopendir(fd);

        if (below)
                (void) TAKE_FD(fd);
        return below;
}

/* "nginx.service.d": what is in it comes next. */
static int enter_drop_ins(UnitFiles *files, const char *name, size_t length) {
        _cleanup_free_ char *unit = strndup(name, length), *path = NULL;
        UnitPattern pattern;
        int r;

        if (!unit)
                return -ENOMEM;
        r = pattern_of(unit, true, &pattern);
        if (r <= 0)
                return r;
        if (asprintf(&path, "%s/%s", files->directories[files->at], name) < 0) {
                path = NULL;
                pattern_done(&pattern);
                return -ENOMEM;
        }

        free(files->drop_in_path);
        files->drop_in_path = TAKE_PTR(path);
        pattern_done(&files->drop_in_pattern);
        files->drop_in_pattern = pattern;
        files->drop_in = open_below(files->dir, name);
        return 0;
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

        r = pattern_of(name, false, &pattern);
        if (r > 0)
                r = take_file(files, files->dir, files->directories[files->at], name, &pattern);
        pattern_done(&pattern);
        return r;
}

/* Takes one entry of the directory that is open. Returns 1; 0 at the end of it; -ENOMEM. */
static int step_in(UnitFiles *files, DIR **dir, int (*take)(UnitFiles *, const char *)) {
        const struct dirent *entry = readdir(*dir);
        int r;

        if (!entry) {
                closedir(*dir);
                *dir = NULL;
                return 0;
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
        pattern_list_done(&files->patterns);
        files->patterns = files->next;
        files->next = (PatternList){};
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
                } else if (files->at < files->n_directories) {
                        files->dir = opendir(files->directories[files->at]);
                        if (!files->dir)
                                files->at++;
                        r = 0;
                } else
                        return finish(files);
                if (r < 0)
                        return r;
        }
        return 1;
}

static bool pattern_matches(const UnitPattern *pattern, const char *unit) {
        size_t n = strlen(unit), prefix, suffix;

        if (pattern->name)
                return streq(pattern->name, unit);
        prefix = strlen(pattern->prefix);
        suffix = strlen(pattern->suffix);
        return n > prefix + suffix && strncmp(unit, pattern->prefix, prefix) == 0 &&
               streq(unit + n - suffix, pattern->suffix) && unit[n - suffix - 1] != '@';
}

bool unit_files_take_changed(UnitFiles *files) {
        bool changed = files->has_changed;

        files->has_changed = false;
        return changed;
}

bool unit_files_match(const UnitFiles *files, const char *unit) {
        for (size_t i = 0; i < files->patterns.n; i++)
                if (pattern_matches(&files->patterns.items[i], unit))
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
        return n > 0 && find_suffix(name + 1) ? name + 1 : NULL;
}

static bool is_for_many(const UnitFiles *files, const char *name) {
        for (size_t i = 0; i < files->patterns.n; i++) {
                const UnitPattern *pattern = &files->patterns.items[i];

                if (!pattern->name && pattern->prefix[0] != '\0' &&
                    strncmp(name, pattern->prefix, strlen(pattern->prefix)) == 0 &&
                    streq(find_suffix(name), pattern->suffix))
                        return true;
        }
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
