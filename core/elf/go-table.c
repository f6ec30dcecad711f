/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Four layouts of the table are known, of Go 1.2, 1.16, 1.18 and 1.20 (debug/gosym/pclntab.go
 * there); the last two differ in nothing that is read here. All have a header, a list of (address,
 * place of the details) that ends with the address behind the last function, and in the details of
 * each function the place of its name.
 *
 * From Go 1.18 on, addresses count from the beginning of what Go has compiled. That is in the
 * header, and not where .text begins: with cgo, C code comes first.
 *
 * The file may lie: each number is checked where it is used, a function that makes no sense is left
 * out, and names are compared, not measured. The list should be sorted. If it is not, an address is
 * found in a wrong place or nowhere, as with any other lie about what the file's own code is.
 */

#include "elf/go-table.h"

#include <string.h>

#include "base/cleanup.h"
#include "elf/relocation.h"
#include "elf/section.h"

#define SECTION_SIZE_MAX (UINT64_C(512) << 20)
#define WORD             sizeof(uint64_t)
#define HEADER_SIZE      8
#define ALIGNMENT        32
#define CANDIDATES_MAX   16 /* of what looks like a table */
#define NOWHERE          (~0U)

/* Of the words behind the header the first is the number of functions. */
typedef struct Layout {
        uint32_t magic;
        unsigned text;    /* which word tells what addresses count from; NOWHERE: they are whole */
        unsigned names;   /* which one where the names begin; NOWHERE: at the table's beginning */
        unsigned entries; /* which one where the list begins; NOWHERE: behind the first word */
} Layout;

static const Layout layouts[] = {
        { 0xfffffffb, NOWHERE, NOWHERE, NOWHERE },
        { 0xfffffffa, NOWHERE, 2, 6 },
        { 0xfffffff0, 2, 3, 7 },
        { 0xfffffff1, 2, 3, 7 },
};

static bool read_number(const GoTable *table, uint64_t place, size_t width, uint64_t *ret) {
        uint32_t narrow;

        if (place > table->size || width > table->size - place)
                return false;
        if (width == WORD)
                memcpy(ret, table->data + place, WORD);
        else {
                memcpy(&narrow, table->data + place, sizeof(narrow));
                *ret = narrow;
        }
        return true;
}

/* A place in the table that a word of the header tells. */
static bool read_place(const GoTable *table, unsigned word, size_t *ret) {
        uint64_t place;

        if (!read_number(table, HEADER_SIZE + word * WORD, WORD, &place) || place > table->size)
                return false;
        *ret = (size_t) place;
        return true;
}

static const Layout *find_layout(const GoTable *table) {
        uint64_t magic;

        /* Then two zeros, how long instructions are at least, and how long addresses are. */
        if (!read_number(table, 0, sizeof(uint32_t), &magic) || table->size < HEADER_SIZE ||
            table->data[4] != 0 || table->data[5] != 0 || table->data[7] != WORD)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(layouts); i++)
                if (layouts[i].magic == magic)
                        return &layouts[i];
        return NULL;
}

/*
 * Go 1.26 leaves it to the runtime to know where that is; and a position-independent program that a
 * linker of C has linked, to a relocation.
 */
static bool read_text(Elf *elf, const Layout *layout, uint64_t address, GoTable *table) {
        uint64_t place = HEADER_SIZE + layout->text * WORD;

        return read_number(table, place, WORD, &table->text) &&
               (table->text != 0 || relocation_find_relative(elf, address + place, &table->text));
}

static bool read_places(GoTable *table, const Layout *layout) {
        uint64_t n;

        table->is_relative = layout->text != NOWHERE;
        table->width = table->is_relative ? sizeof(uint32_t) : WORD;
        if (layout->names != NOWHERE && !read_place(table, layout->names, &table->names))
                return false;
        if (layout->entries == NOWHERE)
                table->entries = HEADER_SIZE + WORD;
        else if (!read_place(table, layout->entries, &table->entries))
                return false;
        else
                table->details = table->entries;
        if (table->entries > table->size || !read_number(table, HEADER_SIZE, WORD, &n) ||
            n > (table->size - table->entries) / (2 * table->width))
                return false;
        table->n = (size_t) n;
        return true;
}

/*
 * A table that begins there, which has an address in the program. *left: how often more something
 * that takes long may be tried.
 */
static bool read_table(Elf *elf, const uint8_t *data, size_t size, uint64_t address, unsigned *left,
                       GoTable *ret) {
        GoTable table = { .data = data, .size = size };
        const Layout *layout = find_layout(&table);
        const uint8_t *end;

        if (!layout || !read_places(&table, layout) || *left == 0)
                return false;
        --*left;
        if (table.is_relative && !read_text(elf, layout, address, &table))
                return false;
        end = memrchr(table.data, '\0', table.size);
        table.names_end = end ? (size_t) (end - table.data) : 0;
        *ret = table;
        return true;
}

/* One that begins in the first so many bytes of a section. */
static bool search_section(Elf *elf, const char *name, size_t n, GoTable *ret) {
        unsigned left = CANDIDATES_MAX;
        GElf_Shdr header;
        Elf_Data *data;

        data = section_data(section_find_named(elf, name, &header), SECTION_SIZE_MAX);
        for (size_t at = 0; data && at < n && at < data->d_size; at += ALIGNMENT)
                if (read_table(elf, (const uint8_t *) data->d_buf + at, data->d_size - at,
                               header.sh_addr + at, &left, ret))
                        return true;
        return false;
}

/*
 * In a program that can be loaded anywhere, the linker calls the section something else. A linker
 * of C puts it among others that are relocated, so that it has to be looked for there.
 */
void go_table_load(Elf *elf, GoTable *ret) {
        GElf_Shdr header;

        *ret = (GoTable) {};
        if (!search_section(elf, ".gopclntab", 1, ret) &&
            !search_section(elf, ".data.rel.ro.gopclntab", 1, ret) &&
            section_find_named(elf, ".go.buildinfo", &header))
                (void) search_section(elf, ".data.rel.ro", SIZE_MAX, ret);
}

static bool read_entry(const GoTable *table, size_t i, uint64_t *ret) {
        uint64_t entry;

        if (!read_number(table, table->entries + i * 2 * table->width, table->width, &entry))
                return false;
        *ret = table->text + entry;
        return true;
}

/* Behind its address, in the details, and as a number that has a sign but is never negative. */
static const char *read_name(const GoTable *table, size_t i) {
        uint64_t details, name;

        if (!read_number(table, table->entries + (i * 2 + 1) * table->width, table->width,
                         &details) ||
            details > table->size ||
            !read_number(table, table->details + details + table->width, sizeof(uint32_t), &name) ||
            table->names + name >= table->names_end)
                return NULL;
        return (const char *) table->data + table->names + name;
}

static bool read_function(const GoTable *table, size_t i, SymbolFunction *ret) {
        uint64_t address, end;
        const char *name;

        if (!read_entry(table, i, &address) || !read_entry(table, i + 1, &end) || end <= address)
                return false;
        name = read_name(table, i);
        if (!name || *name == '\0')
                return false;
        *ret = (SymbolFunction) { .name = name, .address = address, .size = end - address };
        return true;
}

int go_table_visit(const GoTable *table,
                   int (*visitor)(const SymbolFunction *function, void *userdata), void *userdata) {
        int r = 0;

        for (size_t i = 0; i < table->n && r == 0; i++) {
                SymbolFunction function;

                if (read_function(table, i, &function))
                        r = visitor(&function, userdata);
        }
        return r;
}

void go_table_find(const GoTable *table, const SymbolName *name, SymbolMatch *match) {
        for (size_t i = 0; i < table->n && !name->version; i++) {
                SymbolFunction function;

                if (!read_function(table, i, &function) ||
                    strncmp(function.name, name->name, name->length) != 0 ||
                    function.name[name->length] != '\0')
                        continue;
                match->current = true;
                if (symbol_match_add_place(match, function.address) && match->n_places == 1)
                        match->size = function.size;
        }
}

bool go_table_function_at(const GoTable *table, uint64_t address, SymbolFunction *ret) {
        size_t low = 0, high = table->n;
        uint64_t entry;

        /* The last one that does not begin behind it. */
        while (high - low > 1) {
                size_t middle = low + (high - low) / 2;

                if (!read_entry(table, middle, &entry))
                        return false;
                if (entry <= address)
                        low = middle;
                else
                        high = middle;
        }
        return low < table->n && read_function(table, low, ret) && address >= ret->address &&
               address - ret->address < ret->size;
}

typedef struct Offer {
        NearNames *names;
        size_t n;
} Offer;

static int offer(const SymbolFunction *function, void *userdata) {
        Offer *to = userdata;

        near_names_offer(to->names, function->name);
        to->n++;
        return 0;
}

size_t go_table_offer(const GoTable *table, NearNames *names) {
        Offer to = { .names = names };

        (void) go_table_visit(table, offer, &to);
        return to.n;
}
