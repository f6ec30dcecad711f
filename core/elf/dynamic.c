/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The dynamic section, which the loader reads: the libraries that a file needs, and where they are
 * looked for.
 */

#include "elf/dynamic.h"

#include <stdlib.h>
#include <string.h>

#include "elf/internal.h"
#include "elf/section.h"

#define DYNAMIC_SIZE_MAX (UINT64_C(1) << 20)
#define STRINGS_SIZE_MAX (UINT64_C(64) << 20)

typedef struct Dynamic {
        Elf_Data *entries;
        const char *strings; /* NULL: there are none */
        size_t strings_size;
} Dynamic;

static bool dynamic_load(Elf *elf, Dynamic *ret) {
        Dynamic dynamic = {};
        GElf_Shdr header;

        dynamic.entries = section_data(section_find(elf, SHT_DYNAMIC, &header), DYNAMIC_SIZE_MAX);
        if (!dynamic.entries)
                return false;
        (void) section_strings(elf, header.sh_link, STRINGS_SIZE_MAX, &dynamic.strings,
                               &dynamic.strings_size);
        *ret = dynamic;
        return true;
}

/* The next value of that tag from the entry *i on, which goes behind it. */
static bool dynamic_next(const Dynamic *dynamic, int64_t tag, int *i, uint64_t *ret) {
        GElf_Dyn entry;

        while (gelf_getdyn(dynamic->entries, *i, &entry) && entry.d_tag != DT_NULL) {
                (*i)++;
                if (entry.d_tag == tag) {
                        *ret = entry.d_un.d_val;
                        return true;
                }
        }
        return false;
}

static const char *dynamic_string(const Dynamic *dynamic, int64_t tag, int *i) {
        uint64_t offset;

        if (!dynamic_next(dynamic, tag, i, &offset) || !dynamic->strings ||
            offset >= dynamic->strings_size)
                return NULL;
        return dynamic->strings + offset;
}

int elf_file_run_path(const ElfFile *elf, bool *ret_is_inherited, char **ret) {
        const char *path, *inherited;
        Dynamic dynamic;

        if (!dynamic_load(elf->elf, &dynamic))
                return 0;
        path = dynamic_string(&dynamic, DT_RUNPATH, &(int) { 0 });
        inherited = path ? NULL : dynamic_string(&dynamic, DT_RPATH, &(int) { 0 });
        if (!path && !inherited)
                return 0;
        *ret = strdup(path ?: inherited);
        *ret_is_inherited = inherited;
        return *ret ? 1 : -ENOMEM;
}

int elf_file_visit_needed(const ElfFile *elf, int (*visitor)(const char *name, void *userdata),
                          void *userdata) {
        Dynamic dynamic;
        const char *name;
        int i = 0, r = 0;

        if (!dynamic_load(elf->elf, &dynamic))
                return 0;
        while (r == 0 && (name = dynamic_string(&dynamic, DT_NEEDED, &i)))
                r = visitor(name, userdata);
        return r;
}

bool elf_file_has_text_relocations(const ElfFile *elf) {
        Dynamic dynamic;
        uint64_t value = 0;

        if (!dynamic_load(elf->elf, &dynamic))
                return false;
        return dynamic_next(&dynamic, DT_TEXTREL, &(int) { 0 }, &value) ||
               (dynamic_next(&dynamic, DT_FLAGS, &(int) { 0 }, &value) && (value & DF_TEXTREL));
}

bool elf_file_is_program(const ElfFile *elf) {
        GElf_Ehdr header;
        Dynamic dynamic;
        uint64_t flags = 0;

        if (!gelf_getehdr(elf->elf, &header))
                return false;
        return header.e_type == ET_EXEC ||
               (dynamic_load(elf->elf, &dynamic) &&
                dynamic_next(&dynamic, DT_FLAGS_1, &(int) { 0 }, &flags) && (flags & DF_1_PIE));
}
