/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * libdw decodes the tables, one for each compilation unit. It keeps what it has decoded, so it is
 * begun anew before that becomes too much. A table has a row for each place where the line changes;
 * several rows can be at the same address, and then all but the last stand for no instruction:
 * those are used only where a line has no others.
 */

#include "elf/line-table.h"

#include <elfutils/libdw.h>

#include "base/near-name.h"
#include "elf/dwarf-image.h"
#include "elf/line-program.h"

#define ROWS_KEPT 2000000
#define ROWS_MAX  200000000

typedef struct Search {
        const char *file;
        size_t length;
        unsigned line;
        bool (*is_code)(uint64_t address, void *userdata);
        void *userdata;
        LinePlaces places;
        uint64_t n_rows;
        NearNames near;
        char *kept[NEAR_NAMES_N]; /* those of near that libdw has forgotten */
} Search;

static void search_done(Search *search) {
        line_places_done(&search->places);
        for (size_t i = 0; i < NEAR_NAMES_N; i++)
                free(search->kept[i]);
}

void line_places_done(LinePlaces *places) {
        free(places->items);
        free(places->file);
        free(places->other_file);
        free(places->near_files);
        *places = (LinePlaces) {};
}

/* Does the path end with the name, from a '/' on? */
static bool has_name(const Search *search, const char *path) {
        size_t length = strlen(path);

        if (length < search->length || strcmp(path + length - search->length, search->file) != 0)
                return false;
        return length == search->length || path[length - search->length - 1] == '/';
}

static int note_file(LinePlaces *places, const char *path) {
        char **file = places->file ? &places->other_file : &places->file;

        if (*file || (places->file && streq(places->file, path)))
                return 0;
        *file = strdup(path);
        return *file ? 0 : -ENOMEM;
}

static int add_place(Search *search, uint64_t address, bool is_empty) {
        LinePlaces *places = &search->places;

        if (!places->items) {
                places->items = calloc(LINE_PLACES_MAX, sizeof(*places->items));
                if (!places->items)
                        return -ENOMEM;
        }
        if (places->n == LINE_PLACES_MAX)
                return -E2BIG;
        places->items[places->n++] = (LinePlace) { .address = address, .is_empty = is_empty };
        return 0;
}

static void note_near(Search *search, unsigned line) {
        LinePlaces *places = &search->places;

        if (line != 0 && line < search->line && line > places->before)
                places->before = line;
        if (line > search->line && (places->after == 0 || line < places->after))
                places->after = line;
}

static bool is_at(Dwarf_Lines *lines, size_t i, uint64_t address) {
        Dwarf_Line *line = dwarf_onesrcline(lines, i);
        Dwarf_Addr other;
        bool is_end;

        return line && dwarf_lineaddr(line, &other) == 0 && other == address &&
               dwarf_lineendsequence(line, &is_end) == 0 && !is_end;
}

/* A row of a file that has the name. */
static int look_at(Search *search, Dwarf_Lines *lines, size_t i, const char *path) {
        Dwarf_Line *line = dwarf_onesrcline(lines, i);
        bool is_statement, is_end;
        Dwarf_Addr address;
        int number, r;

        if (dwarf_lineno(line, &number) < 0 || dwarf_lineaddr(line, &address) < 0 ||
            dwarf_linebeginstatement(line, &is_statement) < 0 ||
            dwarf_lineendsequence(line, &is_end) < 0 || !is_statement || is_end || number < 0 ||
            !search->is_code(address, search->userdata))
                return 0;
        search->places.has_file = true;
        if ((unsigned) number != search->line) {
                note_near(search, (unsigned) number);
                return 0;
        }
        r = note_file(&search->places, path);
        return r < 0 ? r : add_place(search, address, is_at(lines, i + 1, address));
}

static const char *last_part(const char *path) {
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* Which of its files have the name; NULL: none, or for want of memory. */
static bool *find_files(Search *search, Dwarf_Files *files, size_t n) {
        bool *wanted = NULL;

        for (size_t i = 0; i < n; i++) {
                const char *path = dwarf_filesrc(files, i, NULL, NULL);

                if (path && !search->places.has_file)
                        near_names_offer(&search->near, last_part(path));
                if (!path || !has_name(search, path))
                        continue;
                if (!wanted)
                        wanted = calloc(n, sizeof(*wanted));
                if (!wanted)
                        return NULL;
                wanted[i] = true;
        }
        return wanted;
}

static int search_table(Search *search, Dwarf_Files *files, size_t n_files, Dwarf_Lines *lines,
                        size_t n_lines) {
        _cleanup_free_ bool *wanted = find_files(search, files, n_files);
        int r = 0;

        for (size_t i = 0; wanted && i < n_lines && r >= 0; i++) {
                Dwarf_Files *same;
                size_t file;

                if (dwarf_line_file(dwarf_onesrcline(lines, i), &same, &file) == 0 &&
                    file < n_files && wanted[file])
                        r = look_at(search, lines, i, dwarf_filesrc(files, file, NULL, NULL));
        }
        return r;
}

/* Where the table at offset ends, by its own length. */
static bool skip_table(const DwarfImage *image, Dwarf_Off offset, Dwarf_Off *ret_next) {
        uint64_t length, left = image->first_size - offset;
        uint32_t first;

        if (offset >= image->first_size || left < sizeof(first) + sizeof(length))
                return false;
        memcpy(&first, image->first + offset, sizeof(first));
        memcpy(&length, image->first + offset + sizeof(first), sizeof(length));
        if (first != UINT32_MAX)
                *ret_next = offset + sizeof(first) + first;
        else if (length < left)
                *ret_next = offset + sizeof(first) + sizeof(length) + length;
        else
                return false;
        return *ret_next < image->first_size;
}

/* Searches the table at *offset, which goes to the next one. Returns 1, 0 at the end. */
static int search_next(Search *search, const DwarfImage *image, Dwarf *dwarf, Dwarf_Off *offset) {
        size_t n_files = 0, n_lines = 0;
        Dwarf_Off next = *offset;
        Dwarf_CU *cu = NULL;
        Dwarf_Files *files;
        Dwarf_Lines *lines;
        int r;

        if (*offset >= image->first_size)
                return 0;
        if (!line_program_is_plain(image->first + *offset, image->first_size - *offset)) {
                search->n_rows++;
                return skip_table(image, *offset, offset);
        }
        r = dwarf_next_lines(dwarf, *offset, &next, &cu, &files, &n_files, &lines, &n_lines);
        if (r > 0)
                return 0;
        search->n_rows += n_lines + n_files + 1;
        if (search->n_rows > ROWS_MAX)
                return -EFBIG;
        /* One that cannot be read is no reason not to read the others. */
        if (r < 0)
                return skip_table(image, *offset, offset);
        *offset = next;
        r = search_table(search, files, n_files, lines, n_lines);
        return r < 0 ? r : 1;
}

/* Before libdw forgets them. */
static int keep_near(Search *search) {
        char *kept[NEAR_NAMES_N] = {};
        int r = 0;

        for (size_t i = 0; i < search->near.n && r >= 0; i++) {
                kept[i] = strndup(search->near.best[i].name, search->near.best[i].length);
                r = kept[i] ? 0 : -ENOMEM;
        }
        for (size_t i = 0; i < NEAR_NAMES_N; i++) {
                free(search->kept[i]);
                search->kept[i] = kept[i];
                search->near.best[i].name = kept[i];
        }
        return r;
}

/* Searches as many tables as are kept at a time. Returns 1 while there are more. */
static int search_some(Search *search, const DwarfImage *image, Dwarf_Off *offset) {
        Dwarf *dwarf = dwarf_begin_elf(image->elf, DWARF_C_READ, NULL);
        uint64_t end = search->n_rows + ROWS_KEPT;
        int r = 1, kept;

        if (!dwarf)
                return -EBADMSG;
        while (r > 0 && search->n_rows < end)
                r = search_next(search, image, dwarf, offset);
        kept = keep_near(search);
        (void) dwarf_end(dwarf);
        return kept < 0 ? kept : r;
}

static int compare(const void *a, const void *b) {
        const LinePlace *left = a, *right = b;

        return (left->address > right->address) - (left->address < right->address);
}

/* In their order, each once, without those that stand for nothing if there are others. */
static void tidy(LinePlaces *places) {
        bool any = false;
        size_t n = 0;

        for (size_t i = 0; i < places->n; i++)
                any |= !places->items[i].is_empty;
        for (size_t i = 0; i < places->n; i++)
                if (!any || !places->items[i].is_empty)
                        places->items[n++] = places->items[i];
        places->n = n;
        if (n > 0)
                qsort(places->items, n, sizeof(*places->items), compare);
        n = 0;
        for (size_t i = 0; i < places->n; i++)
                if (i == 0 || places->items[i].address != places->items[n - 1].address)
                        places->items[n++] = places->items[i];
        places->n = n;
}

int line_table_find(Elf *elf, const char *file, unsigned line,
                    bool (*is_code)(uint64_t address, void *userdata), void *userdata,
                    LinePlaces *ret) {
        static const char *const names[] = { ".debug_line", ".debug_line_str" };
        _cleanup_(search_done) Search search = {
                .file = file,
                .length = strlen(file),
                .line = line,
                .is_code = is_code,
                .userdata = userdata,
        };
        _cleanup_(dwarf_image_done) DwarfImage image = {};
        Dwarf_Off offset = 0;
        int r;

        near_names_init(&search.near, last_part(file), strlen(last_part(file)));
        r = dwarf_image_make(elf, names, ELEMENTSOF(names), DWARF_IMAGE_SIZE_MAX, &image);
        while (r >= 0 && (r = search_some(&search, &image, &offset)) > 0)
                ;
        if (r < 0)
                return r;
        search.places.near_files = near_names_list(&search.near, NULL, NULL);
        if (!search.places.near_files)
                return -ENOMEM;
        tidy(&search.places);
        *ret = search.places;
        search.places = (LinePlaces) {};
        return 0;
}
