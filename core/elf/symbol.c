/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * .symtab and .dynsym, as a list of functions with names and addresses.
 *
 * The file may be made to hurt: a table is refused when it is larger than any real one, before
 * libelf allocates room for it; the string table is cut after its last NUL, so that a name never
 * runs past its end; and no name is measured, only compared, so that millions of symbols that share
 * one long name cost no more than others.
 *
 * Versions: .symtab writes them into the name ("foo@@V" is the default one, "foo@V" an old one kept
 * for old programs), .dynsym has them in a table of their own, with a bit for the old ones.
 */

#include "elf/symbol.h"

#include <link.h>
#include <string.h>

#include "base/sentence.h"
#include "elf/machine.h"
#include "elf/section.h"

#define SECTION_SIZE_MAX  (UINT64_C(512) << 20)
#define VERSIONS_SIZE_MAX 1024 /* of the list of them */

typedef struct Symbol {
        int index;
        ElfW(Sym) sym;
        const char *name; /* with its version */
} Symbol;

void symbol_table_load(Elf *elf, uint32_t type, SymbolTable *ret) {
        SymbolTable table = {};
        const Elf_Data *data;
        GElf_Shdr header;
        Elf_Scn *section;

        *ret = table;
        section = section_find(elf, type, &header);
        if (!section)
                return;

        ret->is_unreadable = true;
        data = section_data(section, SECTION_SIZE_MAX);
        if (!data || data->d_type != ELF_T_SYM || gelf_getclass(elf) != MACHINE_CLASS ||
            !section_strings(elf, header.sh_link, SECTION_SIZE_MAX, &table.strings,
                             &table.strings_size))
                return;
        table.symbols = data->d_buf;
        table.n = data->d_size / sizeof(ElfW(Sym));
        if (type == SHT_DYNSYM)
                symbol_versions_load(elf, &table.versions);
        *ret = table;
}

static bool get_symbol(const SymbolTable *table, size_t i, Symbol *ret) {
        if (i > INT32_MAX)
                return false;
        memcpy(&ret->sym, table->symbols + i * sizeof(ret->sym), sizeof(ret->sym));
        if (ret->sym.st_name == 0 || ret->sym.st_name >= table->strings_size)
                return false;
        ret->name = table->strings + ret->sym.st_name;
        ret->index = (int) i;
        return true;
}

static bool symbol_is_defined(const Symbol *symbol) {
        return symbol->sym.st_shndx != SHN_UNDEF && symbol->sym.st_shndx != SHN_ABS;
}

/* Assembly often leaves the type out. */
static bool symbol_is_function(const Symbol *symbol) {
        unsigned type = GELF_ST_TYPE(symbol->sym.st_info);

        return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

static bool symbol_has_name(const Symbol *symbol, const SymbolName *name) {
        return strncmp(symbol->name, name->name, name->length) == 0 &&
               (symbol->name[name->length] == '\0' || symbol->name[name->length] == '@');
}

/* NULL: it has none. n: where its name has an '@', if it has one. */
static const char *symbol_version(const SymbolTable *table, const Symbol *symbol, size_t n,
                                  bool *ret_is_old) {
        const char *version = symbol->name + n;

        *ret_is_old = false;
        if (*version != '@')
                return symbol_versions_get(&table->versions, symbol->index, ret_is_old);
        *ret_is_old = version[1] != '@';
        return version + (*ret_is_old ? 1 : 2);
}

/* Is it of the version that is asked for, if one is? */
static bool symbol_has_version(const SymbolTable *table, const Symbol *symbol,
                               const SymbolName *name, bool *ret_is_old) {
        const char *version = symbol_version(table, symbol, name->length, ret_is_old);

        if (!name->version)
                return true;
        return version && strncmp(version, name->version, name->version_length) == 0 &&
               version[name->version_length] == '\0' && !(name->wants_default && *ret_is_old);
}

bool symbol_match_add_place(SymbolMatch *match, uint64_t address) {
        for (size_t i = 0; i < match->n_places; i++)
                if (match->places[i] == address)
                        return false;
        if (match->n_places < SYMBOL_PLACES_MAX)
                match->places[match->n_places++] = address;
        return true;
}

static void match_add(SymbolMatch *match, const Symbol *symbol, bool is_old) {
        if (match->current && is_old)
                return;
        if (!match->current && !is_old) {
                /* Forget the old versions. */
                match->n_places = 0;
                match->size = 0;
                match->indirect = false;
                match->current = true;
        }

        if (GELF_ST_TYPE(symbol->sym.st_info) == STT_GNU_IFUNC)
                match->indirect = true;
        if (match->n_places == 0 || symbol->sym.st_value == match->places[0])
                if (symbol->sym.st_size > match->size)
                        match->size = symbol->sym.st_size;

        (void) symbol_match_add_place(match, symbol->sym.st_value);
}

void symbol_table_find(const SymbolTable *table, const SymbolName *name, SymbolMatch *match) {
        for (size_t i = 0; i < table->n; i++) {
                Symbol symbol;
                bool is_old;

                if (!get_symbol(table, i, &symbol) || !symbol_has_name(&symbol, name))
                        continue;
                if (!symbol_is_defined(&symbol))
                        match->imported = true;
                else if (!symbol_is_function(&symbol))
                        match->data = true;
                else if (!symbol_has_version(table, &symbol, name, &is_old))
                        match->other_version = true;
                else
                        match_add(match, &symbol, is_old);
        }
}

char *symbol_table_list_versions(const SymbolTable *table, const SymbolName *name) {
        char list[VERSIONS_SIZE_MAX] = "";
        size_t length = 0;

        for (size_t i = 0; i < table->n; i++) {
                const char *version;
                Symbol symbol;
                bool is_old;
                int n;

                if (!get_symbol(table, i, &symbol) || !symbol_has_name(&symbol, name) ||
                    !symbol_is_defined(&symbol) || !symbol_is_function(&symbol))
                        continue;
                version = symbol_version(table, &symbol, name->length, &is_old);
                if (!version)
                        continue;
                n = snprintf(list + length, sizeof(list) - length, "%s%.*s%s%s",
                             length > 0 ? ", " : "", (int) name->length, name->name,
                             is_old ? "@" : "@@", version);
                /* One that does not fit is left out. */
                if (n < 0 || (size_t) n >= sizeof(list) - length)
                        list[length] = '\0';
                else
                        length += (size_t) n;
        }
        return text_escape(list);
}

const char *symbol_table_function_at(const SymbolTable *table, uint64_t address) {
        const char *found = NULL;

        for (size_t i = 0; i < table->n; i++) {
                Symbol symbol;

                if (!get_symbol(table, i, &symbol) || !symbol_is_defined(&symbol) ||
                    !symbol_is_function(&symbol) || address < symbol.sym.st_value ||
                    address - symbol.sym.st_value >= symbol.sym.st_size)
                        continue;
                if (GELF_ST_BIND(symbol.sym.st_info) != STB_LOCAL)
                        return symbol.name;
                if (!found)
                        found = symbol.name;
        }
        return found;
}

bool symbol_table_extent_at(const SymbolTable *table, uint64_t address, uint64_t *ret_start,
                            uint64_t *ret_size) {
        bool found = false;

        for (size_t i = 0; i < table->n; i++) {
                Symbol symbol;

                if (!get_symbol(table, i, &symbol) || !symbol_is_defined(&symbol) ||
                    !symbol_is_function(&symbol) || address < symbol.sym.st_value ||
                    address - symbol.sym.st_value >= symbol.sym.st_size)
                        continue;
                if (found && symbol.sym.st_size <= *ret_size)
                        continue;
                *ret_start = symbol.sym.st_value;
                *ret_size = symbol.sym.st_size;
                found = true;
        }
        return found;
}

size_t symbol_table_offer(const SymbolTable *table, NearNames *names) {
        size_t n = 0;

        for (size_t i = 0; i < table->n; i++) {
                Symbol symbol;

                if (!get_symbol(table, i, &symbol) || !symbol_is_defined(&symbol) ||
                    GELF_ST_TYPE(symbol.sym.st_info) != STT_FUNC)
                        continue;
                near_names_offer(names, symbol.name);
                n++;
        }
        return n;
}

/* Names are not measured beyond what is shown of them. */
static bool is_old_by_name(const char *name) {
        size_t n = strnlen(name, NEAR_NAMES_LEN);
        const char *version = memchr(name, '@', n);

        return version && version[1] != '@';
}

int symbol_table_visit(const SymbolTable *table,
                       int (*visitor)(const SymbolFunction *function, void *userdata),
                       void *userdata) {
        int r = 0;

        for (size_t i = 0; i < table->n && r == 0; i++) {
                SymbolFunction function = {};
                Symbol symbol;

                if (!get_symbol(table, i, &symbol) || !symbol_is_defined(&symbol) ||
                    GELF_ST_TYPE(symbol.sym.st_info) != STT_FUNC)
                        continue;
                function.name = symbol.name;
                function.address = symbol.sym.st_value;
                function.size = symbol.sym.st_size;
                if (symbol_versions_is_old(&table->versions, symbol.index))
                        function.version = symbol_versions_get(&table->versions, symbol.index,
                                                               &function.is_old);
                else
                        function.is_old = is_old_by_name(symbol.name);
                r = visitor(&function, userdata);
        }
        return r;
}

size_t symbol_table_count(const SymbolTable *table, const char *prefix) {
        size_t length = strlen(prefix), n = 0;

        for (size_t i = 0; i < table->n; i++) {
                Symbol symbol;

                n += get_symbol(table, i, &symbol) && symbol_is_defined(&symbol) &&
                     GELF_ST_TYPE(symbol.sym.st_info) == STT_FUNC &&
                     strncmp(symbol.name, prefix, length) == 0;
        }
        return n;
}
