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

#include <string.h>

#define SECTION_SIZE_MAX (UINT64_C(512) << 20)
#define VERSION_HIDDEN   0x8000

typedef struct Symbol {
        GElf_Sym sym;
        const char *name; /* with its version */
        bool old_version;
} Symbol;

static Elf_Scn *find_section(Elf *elf, uint32_t type, GElf_Shdr *ret) {
        for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
                GElf_Shdr shdr;

                if (gelf_getshdr(scn, &shdr) && shdr.sh_type == type) {
                        *ret = shdr;
                        return scn;
                }
        }
        return NULL;
}

static Elf_Data *section_data(Elf_Scn *scn) {
        GElf_Shdr shdr;
        Elf_Data *data;

        if (!scn || !gelf_getshdr(scn, &shdr) || shdr.sh_size > SECTION_SIZE_MAX)
                return NULL;
        data = elf_getdata(scn, NULL);
        return data && data->d_buf && data->d_size > 0 ? data : NULL;
}

void symbol_table_load(Elf *elf, uint32_t type, SymbolTable *ret) {
        SymbolTable table = {};
        GElf_Shdr shdr, versions;
        Elf_Data *strings;
        const char *end;
        Elf_Scn *scn;

        *ret = table;
        scn = find_section(elf, type, &shdr);
        if (!scn)
                return;

        ret->is_unreadable = true;
        table.symbols = section_data(scn);
        strings = section_data(elf_getscn(elf, shdr.sh_link));
        if (!table.symbols || table.symbols->d_type != ELF_T_SYM || !strings)
                return;
        end = memrchr(strings->d_buf, '\0', strings->d_size);
        if (!end)
                return;
        table.strings = strings->d_buf;
        table.strings_size = (size_t) (end - table.strings) + 1;
        table.n = table.symbols->d_size / gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);

        if (type == SHT_DYNSYM)
                table.versions = section_data(find_section(elf, SHT_GNU_versym, &versions));
        *ret = table;
}

static bool get_symbol(const SymbolTable *table, size_t i, Symbol *ret) {
        GElf_Versym version;

        if (i > INT32_MAX || !gelf_getsym(table->symbols, (int) i, &ret->sym) ||
            ret->sym.st_name == 0 || ret->sym.st_name >= table->strings_size)
                return false;

        ret->name = table->strings + ret->sym.st_name;
        ret->old_version = table->versions && table->versions->d_type == ELF_T_HALF &&
                           gelf_getversym(table->versions, (int) i, &version) &&
                           (version & VERSION_HIDDEN);
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

/* True for name and name@VERSION; a version in the name is taken note of. */
static bool symbol_has_name(Symbol *symbol, const char *name, size_t length) {
        if (strncmp(symbol->name, name, length) != 0)
                return false;
        if (symbol->name[length] == '@') {
                symbol->old_version = symbol->name[length + 1] != '@';
                return true;
        }
        return symbol->name[length] == '\0';
}

bool symbol_match_add_place(SymbolMatch *match, uint64_t address) {
        for (size_t i = 0; i < match->n_places; i++)
                if (match->places[i] == address)
                        return false;
        if (match->n_places < SYMBOL_PLACES_MAX)
                match->places[match->n_places++] = address;
        return true;
}

static void match_add(SymbolMatch *match, const Symbol *symbol) {
        if (match->current && symbol->old_version)
                return;
        if (!match->current && !symbol->old_version) {
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

void symbol_table_find(const SymbolTable *table, const char *name, size_t length,
                       SymbolMatch *match) {
        for (size_t i = 0; i < table->n; i++) {
                Symbol symbol;

                if (!get_symbol(table, i, &symbol) || !symbol_has_name(&symbol, name, length))
                        continue;
                if (!symbol_is_defined(&symbol))
                        match->imported = true;
                else if (!symbol_is_function(&symbol))
                        match->data = true;
                else
                        match_add(match, &symbol);
        }
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

int symbol_table_visit(const SymbolTable *table,
                       int (*visitor)(const SymbolFunction *function, void *userdata),
                       void *userdata) {
        int r = 0;

        for (size_t i = 0; i < table->n && r == 0; i++) {
                Symbol symbol;

                if (!get_symbol(table, i, &symbol) || !symbol_is_defined(&symbol) ||
                    GELF_ST_TYPE(symbol.sym.st_info) != STT_FUNC || symbol.old_version)
                        continue;
                r = visitor(&(SymbolFunction){ .name = symbol.name,
                                               .address = symbol.sym.st_value,
                                               .size = symbol.sym.st_size },
                            userdata);
        }
        return r;
}
