/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The libraries of a program: what it needs (DT_NEEDED), then what these need, and so on. Which
 * file a name stands for depends on who asks: see elf/library.h.
 */

#include "elf/libraries.h"

#include "elf/dynamic.h"
#include "elf/library.h"

typedef struct Walk {
        const Root *root;
        Libraries *libraries;
        size_t loader; /* whose libraries are looked for */
} Walk;

void libraries_done(Libraries *libraries) {
        for (size_t i = 0; i < libraries->n; i++) {
                free(libraries->items[i].path);
                free(libraries->items[i].name);
        }
        free(libraries->items);
        *libraries = (Libraries) {};
}

/* Takes path over, also on failure. */
static int add(Libraries *libraries, const char *name, char *path, size_t loader) {
        Library *items = libraries->items;
        char *copy = strdup(name);

        if (libraries->n % 64 == 0)
                items = reallocarray(items, libraries->n + 64, sizeof(*items));
        if (items)
                libraries->items = items;
        if (!items || !copy) {
                free(copy);
                free(path);
                return -ENOMEM;
        }
        items[libraries->n++] = (Library) { .path = path, .name = copy, .loader = loader };
        return 0;
}

static bool is_there(const Libraries *libraries, const char *name, const char *path) {
        for (size_t i = 0; i < libraries->n; i++) {
                const Library *item = &libraries->items[i];

                if (path && item->path ? streq(item->path, path)
                                       : !path && !item->path && streq(item->name, name))
                        return true;
        }
        return false;
}

static int find(const Walk *walk, const char *name, char **ret) {
        const char *askers[LIBRARIES_MAX + 1];
        size_t i = walk->loader, n = 0;

        for (; n < LIBRARIES_MAX; i = walk->libraries->items[i].loader) {
                askers[n++] = walk->libraries->items[i].path;
                if (i == 0)
                        break;
        }
        askers[n] = NULL;
        return library_find_for(walk->root, name, askers, ret);
}

static int add_needed(const char *name, void *userdata) {
        const Walk *walk = userdata;
        _cleanup_free_ char *path = NULL;
        int r;

        r = find(walk, name, &path);
        if (r < 0 && r != -ENOENT)
                return r;
        if (is_there(walk->libraries, name, path))
                return 0;
        if (walk->libraries->n == LIBRARIES_MAX)
                return -E2BIG;
        return add(walk->libraries, name, TAKE_PTR(path), walk->loader);
}

int libraries_find(const Root *root, const char *program, Libraries *ret) {
        _cleanup_(libraries_done) Libraries libraries = {};
        Walk walk = { .root = root, .libraries = &libraries };
        char *path = strdup(program);
        int r;

        if (!path)
                return -ENOMEM;
        r = add(&libraries, program, path, 0);
        for (; r >= 0 && walk.loader < libraries.n; walk.loader++) {
                _cleanup_(elf_file_freep) ElfFile *elf = NULL;

                if (libraries.items[walk.loader].path &&
                    elf_file_open_in(root, libraries.items[walk.loader].path, &elf, NULL) >= 0)
                        r = elf_file_visit_needed(elf, add_needed, &walk);
        }
        if (r < 0)
                return r;
        *ret = libraries;
        libraries = (Libraries) {};
        return 0;
}
