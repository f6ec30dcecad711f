/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * "tlobctl edit": the budgets of a unit, in a drop-in and the user's editor. What was written is
 * verified, together with the unit's other files, before it takes the place of what was there:
 * under a name that begins with a dot, which neither systemd nor tlobd reads. Then systemd reads
 * its files again, and tlobd with it.
 *
 * A text without any section takes the drop-in away.
 */

#include <err.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "base/sentence.h"
#include "base/unit-name.h"
#include "config/directories.h"
#include "config/file.h"
#include "editor.h"
#include "note.h"
#include "proxy.h"
#include "unit-query.h"
#include "verify.h"

#define DROP_IN "50-tlob.conf"

/* What is being edited. */
typedef struct Edit {
        Client *client;
        UnitFiles files;
        char **directories; /* of drop-ins: those that persist, and those until the next reboot */
        bool runtime;
        char *directory; /* of the drop-in */
        char *path;      /* of the drop-in */
        char *draft;     /* of the file that is edited */
        Config *own;     /* what the draft alone says: what else the unit has is not judged */
        bool made_directory;
} Edit;

static void edit_done(Edit *edit) {
        if (edit->draft)
                (void) unlink(edit->draft);
        /* Succeeds if nothing was installed. */
        if (edit->made_directory)
                (void) rmdir(edit->directory);
        config_free(edit->own);
        free(edit->draft);
        free(edit->path);
        free(edit->directory);
        strings_free(edit->directories);
        unit_files_done(&edit->files);
}

static int complain(int error, const char *path) {
        errno = -error;
        warn("Failed to write '%s'", path);
        return error;
}

static int make_paths(Edit *edit) {
        const Options *options = &edit->client->options;
        _cleanup_free_ char *error = NULL;
        int r;

        edit->runtime = streq_empty(options->given[GROUP_PERSIST], "runtime");
        r = config_unit_directories_of(options_scope(options), &edit->directories, &error);
        if (r < 0 && error)
                warnx("%s", error);
        if (r < 0)
                return r;
        r = asprintf(&edit->directory, "%s/%s.d", edit->directories[edit->runtime], edit->files.id);
        if (r < 0) {
                edit->directory = NULL;
                return -ENOMEM;
        }
        r = asprintf(&edit->path, "%s/%s", edit->directory, DROP_IN);
        if (r < 0) {
                edit->path = NULL;
                return -ENOMEM;
        }
        return 0;
}

static const char *file_name(const char *path) {
        return strrchr(path, '/') + 1;
}

/* A link counts, wherever it leads: the usual one, to /dev/null, hides other files, too. */
static bool is_there(const char *path) {
        struct stat st;

        return lstat(path, &st) >= 0;
}

/*
 * Of drop-ins of one name, systemd reads that below /etc: also one that is for all units of a
 * prefix (foo-.service.d), but not one for a whole type (service.d).
 */
static bool is_stronger(const Edit *edit, const char *path) {
        const char *persistent = edit->directories[0];
        size_t n = strlen(persistent);

        return strncmp(path, persistent, n) == 0 && path[n] == '/' &&
               strncmp(strchrnul(path + n, '.'), ".d/", 3) != 0 && streq(file_name(path), DROP_IN);
}

/* It may be there without systemd having read it yet, or be gone. */
static int find_hiding(const Edit *edit, char **ret) {
        _cleanup_free_ char *same =
                sentence_make("%s/%s.d/" DROP_IN, edit->directories[0], edit->files.id);

        if (!same)
                return -ENOMEM;
        if (is_there(same)) {
                *ret = TAKE_PTR(same);
                return 1;
        }
        for (char **path = edit->files.paths; *path; path++) {
                if (!is_stronger(edit, *path) || (edit->files.needs_reload && !is_there(*path)))
                        continue;
                *ret = strdup(*path);
                return *ret ? 1 : -ENOMEM;
        }
        return 0;
}

/* What is written below /run is to count. */
static int check_hidden(const Edit *edit) {
        _cleanup_free_ char *hiding = NULL;
        int r;

        if (!edit->runtime)
                return 0;
        r = find_hiding(edit, &hiding);
        if (r <= 0)
                return r;
        warnx("systemd would read %s instead of %s, which has the same name: edit without "
              "--runtime, or remove the former",
              hiding, edit->path);
        return -EEXIST;
}

static void print_template(FILE *f, const char *unit) {
        (void) fprintf(f,
                       "# Budgets of %s, see tlob.binding(5). For example:\n"
                       "#\n"
                       "# [%s request]\n"
                       "# Function=handle_request\n"
                       "# BudgetSec=5ms\n"
                       "#\n"
                       "# [%s fsync]\n"
                       "# Executable=libc.so.6\n"
                       "# Function=fsync\n"
                       "# BudgetSec=20ms\n\n",
                       unit, CONFIG_UNIT_SECTION, CONFIG_UNIT_SECTION);
}

/* A draft with what is there now, or else with a hint at what could be. */
static int write_draft(Edit *edit) {
        _cleanup_free_ char *text = NULL;
        _cleanup_fclose_ FILE *f = NULL;
        _cleanup_close_ int fd = -EBADF;
        size_t size = 0;
        int r;

        r = make_parents(edit->directory);
        if (r < 0)
                return complain(r, edit->directory);
        if (mkdir(edit->directory, 0755) >= 0)
                edit->made_directory = true;
        else if (errno != EEXIST)
                return complain(-errno, edit->directory);
        if (asprintf(&edit->draft, "%s/.tlobctl-XXXXXX", edit->directory) < 0) {
                edit->draft = NULL;
                return -ENOMEM;
        }
        fd = mkostemp(edit->draft, O_CLOEXEC);
        if (fd < 0) {
                r = complain(-errno, edit->directory);
                free(edit->draft);
                edit->draft = NULL;
                return r;
        }
        f = fdopen(fd, "w");
        if (!f)
                return -errno;
        (void) TAKE_FD(fd);

        r = config_file_load(edit->path, &text, &size);
        if (r == -ENOENT)
                print_template(f, edit->files.id);
        else if (r < 0)
                return complain(r, edit->path);
        else
                (void) fwrite(text, 1, size, f);
        return fflush(f) != 0 ? complain(-errno, edit->draft) : 0;
}

/* Drop-ins count in the order of their names, wherever they are; one of the same name masks. */
static int read_with_draft(const Edit *edit, const char *text, size_t size, Config *config) {
        bool done = false;
        int r = 0;

        for (char **path = edit->files.paths; *path && r >= 0; path++) {
                bool is_drop_in = strstr(*path, ".d/") != NULL;
                int c = is_drop_in ? strcmp(file_name(*path), DROP_IN) : -1;

                if (c >= 0 && !done) {
                        r = config_parse_unit(config, edit->files.id, edit->path, text, size);
                        done = true;
                }
                if (r >= 0 && c != 0)
                        r = config_load_unit(config, edit->files.id, *path);
        }
        return r < 0 || done ? r
                             : config_parse_unit(config, edit->files.id, edit->path, text, size);
}

static int read_draft(Edit *edit, const char *text, size_t size) {
        int r;

        edit->own = config_free(edit->own);
        r = config_new(&edit->own);
        return r < 0 ? r : config_parse_unit(edit->own, edit->files.id, edit->path, text, size);
}

static bool is_own(const Edit *edit, const char *name) {
        return binding_table_get(&edit->own->bindings, name) != NULL;
}

static void leave_others_out(const Edit *edit, Config *config) {
        for (size_t i = config->bindings.n; i > 0; i--) {
                const char *name = config->bindings.items[i - 1]->name;

                if (!is_own(edit, name))
                        binding_free(binding_table_take(&config->bindings, name));
        }
}

/* Returns 1 if the draft may be installed, 0 if not. */
static int verify_draft(Edit *edit, const char *text, size_t size) {
        Verification verification = { .client = edit->client };
        _cleanup_(config_freep) Config *config = NULL;
        int r;

        r = config_new(&config);
        if (r >= 0)
                r = read_draft(edit, text, size);
        if (r >= 0)
                r = read_with_draft(edit, text, size, config);
        if (r < 0)
                return r;
        leave_others_out(edit, config);
        r = verify_config(&verification, config);
        if (r < 0)
                return r;
        return !verification.bad && edit->own->n_messages == 0;
}

/* Is there nothing in the text but comments? */
static int is_empty(const char *text, size_t size) {
        for (const char *p = text, *end = text + size; p < end;) {
                const char *newline = memchr(p, '\n', (size_t) (end - p));

                p += strspn(p, " \t\r");
                if (p < end && !strchr("#;\n", *p))
                        return false;
                p = newline ? newline + 1 : end;
        }
        return true;
}

/* Shows the failures of this unit's bindings. Returns 1 if the file that was edited has some. */
static int report_failures(Edit *edit, sd_bus_message *reply) {
        size_t n = strlen(edit->files.id);
        const char *name, *reason;
        int r, failed = 0;

        r = sd_bus_message_enter_container(reply, 'a', "(ss)");
        if (r < 0)
                return connection_complain_reply(r);
        while ((r = sd_bus_message_read(reply, "(ss)", &name, &reason)) > 0)
                if (strncmp(name, edit->files.id, n) == 0 && name[n] == '/') {
                        (void) fprintf(stderr, "%s: %s\n", name, reason);
                        failed |= edit->own && is_own(edit, name);
                }
        return r < 0 ? connection_complain_reply(r) : failed;
}

static int apply(Edit *edit) {
        Connection *connection = &edit->client->connection;
        _cleanup_message_ sd_bus_message *reply = NULL;
        int r;

        r = unit_files_reload(connection);
        if (r < 0)
                return r;
        r = connection_call(connection, "Reload", &reply, NULL);
        if (r < 0)
                return r;
        r = report_failures(edit, reply);
        return r > 0 ? -EBADMSG : r;
}

static int install(Edit *edit, bool empty) {
        if (empty) {
                if (unlink(edit->path) < 0 && errno != ENOENT)
                        return complain(-errno, edit->path);
                edit->made_directory = true;
        } else {
                if (chmod(edit->draft, 0644) < 0 || rename(edit->draft, edit->path) < 0)
                        return complain(-errno, edit->path);
                free(edit->draft);
                edit->draft = NULL;
        }
        return apply(edit);
}

static bool ask_again(void) {
        char answer[16];

        if (!isatty(STDIN_FILENO))
                return false;
        (void) fputs("Edit it again? [Y/n] ", stderr);
        return fgets(answer, sizeof(answer), stdin) && answer[0] != 'n' && answer[0] != 'N';
}

static bool is_same_text(const char *path, const char *text, size_t size) {
        _cleanup_free_ char *other = NULL;
        size_t other_size;

        return config_file_load(path, &other, &other_size) >= 0 && other_size == size &&
               memcmp(other, text, size) == 0;
}

/* Nobody could judge it: what was written is not thrown away for that. */
static int keep_draft(Edit *edit, int error) {
        warnx("%s was not written: %s. What you wrote is in %s", edit->path, strerror(-error),
              edit->draft);
        free(edit->draft);
        edit->draft = NULL;
        return error;
}

/* Edits until it is good or given up. */
static int edit_draft(Edit *edit) {
        for (;;) {
                _cleanup_free_ char *text = NULL;
                size_t size;
                bool empty;
                int r;

                r = editor_run(edit->draft);
                if (r < 0)
                        return r;
                r = config_file_load(edit->draft, &text, &size);
                if (r < 0)
                        return keep_draft(edit, r);
                empty = is_empty(text, size);
                if (empty ? access(edit->path, F_OK) < 0 : is_same_text(edit->path, text, size)) {
                        note("Nothing is changed");
                        return 0;
                }
                r = empty ? 1 : verify_draft(edit, text, size);
                if (r > 0)
                        return install(edit, empty);
                if (ask_again())
                        continue;
                if (r < 0)
                        return keep_draft(edit, r);
                warnx("%s was not written", edit->path);
                return -EBADMSG;
        }
}

ExitStatus verb_edit(Client *client, int argc, char **argv) {
        _cleanup_(edit_done) Edit edit = { .client = client };
        int r;

        r = unit_files_query(&client->connection, argv[0], &edit.files);
        if (r < 0)
                return STATUS_FAILED;
        if (!unit_name_is_valid(edit.files.id)) {
                warnx("%s is not a service, slice or scope; only these can have budgets",
                      edit.files.id);
                return STATUS_FAILED;
        }
        r = make_paths(&edit);
        if (r >= 0)
                r = check_hidden(&edit);
        if (r >= 0)
                r = write_draft(&edit);
        if (r >= 0)
                r = edit_draft(&edit);
        return r == -ENOMEM ? status_of_memory(r) : status_of(r);
}
