/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Where the dynamic loader finds a library depends on LD_LIBRARY_PATH and on the processor, and a
 * program can load others from anywhere. What a process has mapped tells, by the path with links
 * resolved: libz.so.1 is /usr/lib/x86_64-linux-gnu/libz.so.1.2.13 there, and its directory has a
 * link of the bare name. What is found has to be the file that is mapped, or what has taken its
 * place.
 *
 * Any process of the unit can map any file of that name: the main process is believed, others only
 * if none has loaded what the loader would find.
 */

#include "file/loaded-library.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/root.h"
#include "base/sentence.h"
#include "binding/executable.h"
#include "elf/file.h"
#include "file/processes.h"

#define LINES_MAX 200000 /* of all processes together: a user can have any number of mappings */

typedef struct Search {
        const Root *root;
        const char *name;
        const char *usual; /* what the loader finds; NULL: not known, or none */
        char *path;        /* the first one that was found */
        bool has_usual;    /* and a later one is the usual one */
        unsigned n_lines;  /* that were read */
} Search;

/* In the same directory, a user can have no link to a file that is not his to read. */
static bool is_beside(const char *path, const char *resolved) {
        const char *slash = strrchr(path, '/'), *other = strrchr(resolved, '/');

        return slash - path == other - resolved &&
               memcmp(path, resolved, (size_t) (slash - path)) == 0;
}

/* Takes path if it leads to what is mapped (NULL: to what has replaced that). */
static int accept(Search *search, const char *path, const MappedIdentity *mapped) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_free_ char *resolved = NULL;
        MappedIdentity identity;
        int r;

        /* A link of the name may lead anywhere: this opens no more than a file of that kind. */
        r = elf_file_open_in(search->root, path, &elf, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        identity = file_identify_mapping(elf_file_fd(elf));
        if (mapped && !mapped_identity_equal(&identity, mapped))
                return 0;
        r = root_resolve(search->root, path, &resolved);
        if (r < 0 || !text_is_printable(resolved) || (!mapped && !is_beside(path, resolved)))
                return r == -ENOMEM ? r : 0;
        search->has_usual = search->usual && streq(search->usual, resolved);
        if (!search->path)
                search->path = TAKE_PTR(resolved);
        return search->has_usual || !search->usual;
}

/* Is it the name of the library, or one that a link of that name may lead to? */
static bool is_like(const char *file, const char *name) {
        size_t n = strlen(name);

        return strncmp(file, name, n) == 0 && (file[n] == '\0' || file[n] == '.');
}

static int look_at_line(Search *search, char *line) {
        static const char deleted[] = " (deleted)";
        char link[PATH_MAX], *path, *slash, *end;
        const MappedIdentity *wanted;
        FileMapping mapped;
        int r;

        line[strcspn(line, "\n")] = '\0';
        path = strchr(line, '/');
        slash = path ? strrchr(path, '/') : NULL;
        if (!slash || !file_parse_mapping(line, &mapped) || !mapped.is_code ||
            mapped.identity.inode == 0)
                return 0;
        end = strstr(slash, deleted);
        wanted = end ? NULL : &mapped.identity;
        if (end)
                *end = '\0';
        if (!is_like(slash + 1, search->name))
                return 0;
        r = accept(search, path, wanted);
        if (r == 0 && !search->path &&
            snprintf(link, sizeof(link), "%.*s/%s", (int) (slash - path), path, search->name) <
                    (int) sizeof(link))
                r = accept(search, link, wanted);
        return r;
}

static int look_at_process(uint32_t pid, void *userdata) {
        _cleanup_fclose_ FILE *f = process_open_file(pid, "maps");
        _cleanup_free_ char *line = NULL;
        Search *search = userdata;
        size_t size;
        int r = 0;

        while (f && r == 0 && search->n_lines++ < LINES_MAX && getline(&line, &size, f) > 0)
                r = look_at_line(search, line);
        return r;
}

/*
 * Takes what the main process has, and returns 1; or what any has and the loader would find, or any
 * other.
 */
static int search_unit(Search *search, const Binding *binding) {
        uint32_t first = binding->view.container_pid ?: binding->view.main_pid;
        _cleanup_free_ char *usual = NULL;
        int r;

        r = first > 0 ? look_at_process(first, search) : 0;
        if (r != 0 || !binding->cgroup.path)
                return r;
        r = binding_look_up_library(binding, search->root, &usual);
        if (r == -ENOMEM)
                return r;
        search->usual = usual;
        r = processes_of_cgroup(binding->cgroup.path, look_at_process, search);
        if (r == -ENOMEM)
                return r;
        if (search->has_usual)
                return free_and_strdup(&search->path, usual);
        return 0;
}

int loaded_library_find(const Binding *binding, char **ret_path) {
        _cleanup_(root_done) Root root = ROOT_OWN;
        Search search = { .root = &root, .name = binding->executable };
        int r;

        if (binding_open_root(binding, NULL, &root, NULL) < 0)
                return -ENOENT;
        r = search_unit(&search, binding);
        if (r == -ENOMEM) {
                free(search.path);
                return r;
        }
        if (!search.path)
                return -ENOENT;
        *ret_path = search.path;
        return r > 0;
}
