/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Configuration files: which of them count, and what is in one. Lines are taken apart by libinih,
 * behind a reader of our own, because libinih (55) does these things without a word:
 *   - a line that is too long is cut, and its tail is parsed as a line of its own: refused here;
 *   - a section name over 49 bytes is cut: sections are read here, and libinih never sees them;
 *   - an indented line continues the value before it: lines come to it without indentation, as
 *     systemd reads them;
 *   - text after " ;" is dropped: refused here, because systemd would take it as part of the value;
 *   - ':' separates as '=' does: only '=' is taken;
 *   - no line numbers: counted here.
 * A backslash at the end continues a line in systemd's files, and so it does here, even in sections
 * that nobody wants, where the next line could look like a section. Values of several lines are
 * refused.
 * NULs are refused, a byte order mark and CRLF are tolerated. Lines of sections that nobody wants
 * are not looked at, however long they are.
 *
 * Files may vanish between being listed and being opened, be directories or FIFOs: nothing here
 * waits.
 */

#include "config/file.h"

#include <ctype.h>
#include <fcntl.h>
#include <ini.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/root.h"
#include "base/sentence.h"

#define FILE_SIZE_MAX ((off_t) 1 << 20)
#define KEY_MAX       64

typedef struct Reader {
        const ConfigHandlers *handlers;
        void *userdata;
        ConfigPlace place;
        const char *next, *end;
        bool in_section; /* any */
        bool continued;  /* the next line is a part of the one before */
        bool wanted;
        int error; /* of a handler */
} Reader;

static bool is_space(char c) {
        return isspace((unsigned char) c);
}

/* An odd number of backslashes ends the line: as systemd, which looks before it strips anything. */
static bool ends_with_backslash(const char *line, const char *end) {
        size_t n = 0;

        while (end > line && (end[-1] == '\r' || end[-1] == '\0'))
                end--;
        while (end > line && end[-1] == '\\') {
                end--;
                n++;
        }
        return n % 2 == 1;
}

/*
 * The next line, without what surrounds it; it may hold NULs. *ret_continues: the one after it is a
 * part of it.
 */
static bool next_line(Reader *reader, const char **ret_line, size_t *ret_length,
                      bool *ret_continues) {
        const char *line = reader->next, *end;

        if (line == reader->end)
                return false;
        end = memchr(line, '\n', (size_t) (reader->end - line));
        reader->next = end ? end + 1 : reader->end;
        end = end ?: reader->end;
        reader->place.line++;

        *ret_continues = ends_with_backslash(line, end);
        while (end > line && is_space(end[-1]))
                end--;
        while (line < end && is_space(*line))
                line++;
        *ret_line = line;
        *ret_length = (size_t) (end - line);
        return true;
}

static int problem(Reader *reader, const char *key, const char *sentence) {
        return reader->handlers->problem(&reader->place, key, sentence, reader->userdata);
}

/* As problem(), for a line: with the key if the line begins with one. */
static int line_problem(Reader *reader, const char *line, size_t length, const char *sentence) {
        char key[KEY_MAX];
        size_t n = 0;

        while (n < length && n < sizeof(key) - 1 && isalnum((unsigned char) line[n])) {
                key[n] = line[n];
                n++;
        }
        key[n] = '\0';
        while (n < length && is_space(line[n]))
                n++;
        return problem(reader, n < length && line[n] == '=' ? key : NULL, sentence);
}

static int read_section(Reader *reader, const char *line, size_t length) {
        char section[CONFIG_SECTION_MAX + 1];

        reader->in_section = true;
        reader->wanted = false;
        if (line[length - 1] != ']')
                return problem(reader, NULL,
                               "This section begins with '[' but does not end with ']'");
        line++;
        length -= 2;
        if (length > CONFIG_SECTION_MAX)
                return problem(reader, NULL, "The name of this section is too long");
        if (memchr(line, '\0', length))
                return problem(reader, NULL, "The name of this section has a NUL byte");
        memcpy(section, line, length);
        section[length] = '\0';
        return reader->handlers->section(&reader->place, section, reader->userdata);
}

static bool has_comment(const char *line, size_t length) {
        for (size_t i = 1; i < length; i++)
                if (line[i] == ';' && is_space(line[i - 1]))
                        return true;
        return false;
}

/* Says what is wrong with a line, before libinih sees it. NULL: nothing. */
static const char *check_line(const char *line, size_t length, size_t longest) {
        const char *equals = memchr(line, '=', length);

        if (length > longest)
                return "This line is too long: shorten a long path with a symbolic link, replace "
                       "a long symbol by its offset";
        if (memchr(line, '\0', length))
                return "This line has a NUL byte";
        if (!equals || memchr(line, ':', (size_t) (equals - line)))
                return "This line is not Key=value";
        if (has_comment(line, length))
                return "This line has a comment after its value: comments need a line of their "
                       "own";
        return NULL;
}

static bool is_comment(const char *line, size_t length) {
        return length > 0 && (line[0] == '#' || line[0] == ';');
}

/* Takes one line. Returns 1 if libinih shall see it. */
static int take_line(Reader *reader, const char *line, size_t length, bool continues,
                     size_t longest) {
        const char *wrong;

        if (length == 0)
                return 0;
        if (line[0] == '[') {
                int r = read_section(reader, line, length);

                if (r < 0)
                        return r;
                reader->wanted = r > 0;
                return 0;
        }
        if (!reader->in_section)
                return problem(reader, NULL, "This line is not in any section");
        if (!reader->wanted)
                return 0;

        wrong = continues ? "This line continues in the next one: write it on one line"
                          : check_line(line, length, longest);
        return wrong ? line_problem(reader, line, length, wrong) : 1;
}

static char *reader_fgets(char *buf, int size, void *stream) {
        Reader *reader = stream;
        bool continued, continues;
        const char *line;
        size_t length;

        while (reader->error >= 0 && next_line(reader, &line, &length, &continues)) {
                int r;

                /* A comment neither ends nor begins anything. */
                if (is_comment(line, length))
                        continue;
                continued = reader->continued;
                reader->continued = continues;
                if (continued)
                        continue;

                /* After one that fills the buffer, libinih 59 would look for its tail. */
                r = take_line(reader, line, length, continues, (size_t) size - 2);
                if (r < 0)
                        reader->error = r;
                else if (r > 0) {
                        memcpy(buf, line, length);
                        buf[length] = '\0';
                        return buf;
                }
        }
        return NULL;
}

static int reader_key(void *userdata, const char *section, const char *key, const char *value) {
        Reader *reader = userdata;
        int r;

        r = reader->handlers->key(&reader->place, key, value, reader->userdata);
        if (r < 0)
                reader->error = r;
        return 1;
}

int config_file_parse(const char *file, const char *text, size_t size,
                      const ConfigHandlers *handlers, void *userdata) {
        Reader reader = {
                .handlers = handlers,
                .userdata = userdata,
                .place.file = file,
                .next = text,
                .end = text + size,
        };

        if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
                reader.next += 3;
        if (ini_parse_stream(reader_fgets, &reader, reader_key, &reader) == -2)
                return -ENOMEM;
        return reader.error;
}

int config_file_load(const char *path, char **ret_text, size_t *ret_size) {
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ char *text = NULL;
        struct stat st;
        size_t n = 0;

        fd = root_open_anywhere(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
        if (st.st_size > FILE_SIZE_MAX)
                return -EFBIG;

        text = malloc((size_t) st.st_size + 1);
        if (!text)
                return -ENOMEM;
        while (n < (size_t) st.st_size) {
                ssize_t k = read(fd, text + n, (size_t) st.st_size - n);

                if (k < 0 && errno != EINTR)
                        return -errno;
                if (k == 0)
                        break;
                if (k > 0)
                        n += (size_t) k;
        }
        *ret_text = TAKE_PTR(text);
        *ret_size = n;
        return 0;
}

static int file_problem(const char *path, int error, const ConfigHandlers *handlers,
                        void *userdata) {
        _cleanup_free_ char *sentence = NULL;

        sentence = sentence_make("Cannot read it (%s)",
                                 error == -EINVAL ? "it is not a regular file" : strerror(-error));
        if (!sentence)
                return -ENOMEM;
        return handlers->problem(&(ConfigPlace) { .file = path }, NULL, sentence, userdata);
}

bool config_error_may_pass(int error) {
        return error == -EMFILE || error == -ENFILE || error == -EIO || error == -ESTALE ||
               error == -ETIMEDOUT;
}

int config_file_read(const char *path, const ConfigHandlers *handlers, void *userdata) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r;

        r = config_file_load(path, &text, &size);
        if (r == -ENOMEM || r == -ENOENT)
                return r == -ENOENT ? 0 : r;
        if (r < 0) {
                int told = file_problem(path, r, handlers, userdata);

                return told < 0 ? told : config_error_may_pass(r);
        }
        return config_file_parse(path, text, size, handlers, userdata);
}

void config_file_list_done(ConfigFileList *list) {
        for (size_t i = 0; i < list->n; i++)
                free(list->paths[i]);
        free(list->paths);
        *list = (ConfigFileList) {};
}

static const char *file_name(const char *path) {
        return strrchr(path, '/') + 1;
}

static int compare_names(const void *a, const void *b) {
        return strcmp(file_name(*(char *const *) a), file_name(*(char *const *) b));
}

static bool is_masked(const char *path) {
        struct stat st;

        return root_stat_anywhere(path, &st) >= 0 && S_ISCHR(st.st_mode) &&
               st.st_rdev == makedev(1, 3);
}

static bool list_has_name(const ConfigFileList *list, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (streq(file_name(list->paths[i]), name))
                        return true;
        return false;
}

static int list_add(ConfigFileList *list, const char *directory, const char *name) {
        _cleanup_free_ char *path = NULL;
        char **paths;

        if (asprintf(&path, "%s/%s", directory, name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        paths = reallocarray(list->paths, list->n + 1, sizeof(*paths));
        if (!paths)
                return -ENOMEM;
        list->paths = paths;
        paths[list->n++] = TAKE_PTR(path);
        return 0;
}

static bool is_conf(const char *name) {
        size_t n = strlen(name);

        return name[0] != '.' && n > 5 && streq(name + n - 5, ".conf");
}

/* Nobody knows what is in it; but what a user may not read is none of hers. errno says why. */
static int directory_problem(ConfigFileList *list, const char *directory,
                             const ConfigHandlers *handlers, void *userdata) {
        list->is_incomplete |= errno != EACCES;
        return file_problem(directory, -errno, handlers, userdata);
}

/* Adds the files of one directory whose names are not there yet. */
static int list_directory(ConfigFileList *list, const char *directory,
                          const ConfigHandlers *handlers, void *userdata) {
        _cleanup_closedir_ DIR *dir = NULL;
        size_t before = list->n;

        dir = root_open_directory_anywhere(directory);
        if (!dir && errno == ENOENT)
                return 0;
        if (!dir)
                return directory_problem(list, directory, handlers, userdata);

        for (;;) {
                struct dirent *entry;
                int r;

                errno = 0;
                entry = readdir(dir);
                if (!entry && errno != 0)
                        return directory_problem(list, directory, handlers, userdata);
                if (!entry)
                        return 0;
                if (!is_conf(entry->d_name) || list_has_name(list, before, entry->d_name))
                        continue;
                r = list_add(list, directory, entry->d_name);
                if (r < 0)
                        return r;
        }
}

static void drop_masked(ConfigFileList *list) {
        size_t kept = 0;

        for (size_t i = 0; i < list->n; i++)
                if (is_masked(list->paths[i]))
                        free(list->paths[i]);
                else
                        list->paths[kept++] = list->paths[i];
        list->n = kept;
}

int config_file_list(const char *const *directories, size_t n, const char *subdirectory,
                     const ConfigHandlers *handlers, void *userdata, ConfigFileList *ret) {
        _cleanup_(config_file_list_done) ConfigFileList list = {};

        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *directory = NULL;
                int r;

                if (asprintf(&directory, "%s/%s", directories[i], subdirectory) < 0) {
                        directory = NULL;
                        return -ENOMEM;
                }
                r = list_directory(&list, directory, handlers, userdata);
                if (r < 0)
                        return r;
        }

        drop_masked(&list);
        if (list.n > 0)
                qsort(list.paths, list.n, sizeof(*list.paths), compare_names);
        *ret = list;
        list = (ConfigFileList) {};
        return 0;
}

int config_file_find(const char *const *directories, size_t n, const char *name, char **ret_path) {
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *path = NULL;
                struct stat st;

                if (asprintf(&path, "%s/%s", directories[i], name) < 0) {
                        path = NULL;
                        return -ENOMEM;
                }
                if (lstat(path, &st) < 0 && root_stat_anywhere(path, &st) < 0)
                        continue;
                if (is_masked(path))
                        return -ENOENT;
                *ret_path = TAKE_PTR(path);
                return 0;
        }
        return -ENOENT;
}
