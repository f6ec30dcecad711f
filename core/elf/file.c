/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * An ELF file, opened once: what is resolved in it and what gets the probe is the same file,
 * whatever becomes of the path meanwhile.
 *
 * The path is opened with O_PATH first and again only when it is a regular file, because opening a
 * device can do things and opening a FIFO can wait. Nothing is mapped: a file that someone cuts
 * short under our hands would raise SIGBUS. What the header promises is checked against sane limits
 * before libelf sees it, because libelf allocates by it, and a sparse file can promise terabytes.
 *
 * A probe on endbr64, with which most functions begin today, is single-stepped by the kernel, the
 * instruction after it mostly is not: so a function asked for by its name alone gets its probe
 * there.
 *
 * Refused: files for another machine or another word size, IFUNCs (the code behind the name is
 * chosen when the program starts), offsets outside executable segments. That an offset is the
 * beginning of an instruction is checked in binding/sites.c.
 */

#include "elf/file.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libelf.h>
#include <sys/stat.h>

#include "base/mangled-name.h"
#include "base/sentence.h"
#include "elf/declared-name.h"
#include "elf/internal.h"
#include "elf/machine.h"
#include "elf/missing-symbol.h"
#include "elf/read.h"
#include "elf/symbol.h"
#include "elf/unwind.h"

#define SECTIONS_MAX      1000000
#define NOTES_SIZE_MAX    65536
#define NOTES_MAX         16
#define BUILD_ID_SIZE_MAX 64
#define DYNAMIC_SIZE_MAX  (UINT64_C(1) << 20)
#define STRINGS_SIZE_MAX  (UINT64_C(64) << 20)
#define DEBUG_DIRECTORY   "/usr/lib/debug"

void elf_site_done(ElfSite *site) {
        free(site->function);
        *site = (ElfSite){};
}

ElfFile *elf_file_free(ElfFile *elf) {
        if (!elf)
                return NULL;
        if (elf->elf)
                (void) elf_end(elf->elf);
        safe_close(elf->fd);
        elf_file_free(elf->debug);
        free(elf->build_id);
        free(elf->path);
        free(elf);
        return NULL;
}

int elf_file_fd(const ElfFile *elf) {
        return elf->fd;
}

const char *elf_file_path(const ElfFile *elf) {
        return elf->path;
}

const char *elf_file_build_id(const ElfFile *elf) {
        return elf->build_id;
}

static int open_failed(int error, const char *path, char **ret_error) {
        return sentence_error(error, ret_error, "Cannot open %s: %s", path, strerror(-error));
}

/* Opens path if it is a regular file, without touching it if it is not. */
static int open_regular(const Root *root, const char *inside, const char *path, int *ret_fd,
                        uint64_t *ret_size, char **ret_error) {
        _cleanup_close_ int fd = -EBADF, reopened = -EBADF;
        char proc[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
        struct stat st;

        fd = root_open(root, inside, O_PATH | O_CLOEXEC);
        if (fd < 0)
                return open_failed(fd, path, ret_error);
        if (fstat(fd, &st) < 0)
                return open_failed(-errno, path, ret_error);
        if (S_ISDIR(st.st_mode))
                return sentence_error(-EISDIR, ret_error,
                                      "%s is a directory: name a program or library in it", path);
        if (!S_ISREG(st.st_mode))
                return sentence_error(-EINVAL, ret_error, "%s is not a regular file", path);

        (void) snprintf(proc, sizeof(proc), "/proc/self/fd/%i", fd);
        reopened = open(proc, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (reopened < 0)
                return open_failed(-errno, path, ret_error);

        *ret_size = (uint64_t) st.st_size;
        *ret_fd = TAKE_FD(reopened);
        return 0;
}

/* With 65535 sections or more, the first section header has their number. */
static bool section_count_is_sane(int fd, const ElfW(Ehdr) * header) {
        ElfW(Shdr) first;

        if (header->e_shoff == 0 || header->e_shnum != 0)
                return true;
        return elf_read(fd, &first, sizeof(first), header->e_shoff) == (ssize_t) sizeof(first) &&
               first.sh_size <= SECTIONS_MAX;
}

static int check_header(const ElfFile *elf, char **ret_error) {
        ElfW(Ehdr) header = {};
        ssize_t n;

        n = elf_read(elf->fd, &header, sizeof(header), 0);
        if (n < 0)
                return sentence_error((int) n, ret_error, "Cannot read %s: %s", elf->path,
                                      strerror((int) -n));
        if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
                return sentence_error(-ENOEXEC, ret_error,
                                      "%s is not an ELF file%s: name a compiled program or library",
                                      elf->path,
                                      memcmp(header.e_ident, "#!", 2) == 0 ? " but a script" : "");
        if (header.e_ident[EI_CLASS] != MACHINE_CLASS || header.e_ident[EI_DATA] != MACHINE_DATA ||
            header.e_machine != MACHINE_ELF)
                return sentence_error(-ENOEXEC, ret_error,
                                      "%s is an ELF file for another kind of machine", elf->path);
        if (n < (ssize_t) sizeof(header) || header.e_phnum == PN_XNUM ||
            !section_count_is_sane(elf->fd, &header))
                return sentence_error(-ENOEXEC, ret_error, "%s is a damaged ELF file", elf->path);
        if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
                return sentence_error(-ENOEXEC, ret_error,
                                      "%s is an ELF file, but neither a program nor a library",
                                      elf->path);
        return 0;
}

static char *to_hex(const unsigned char *data, size_t size) {
        static const char digits[] = "0123456789abcdef";
        char *hex = malloc(2 * size + 1);

        if (!hex)
                return NULL;
        for (size_t i = 0; i < size; i++) {
                hex[2 * i] = digits[data[i] >> 4];
                hex[2 * i + 1] = digits[data[i] & 15];
        }
        hex[2 * size] = '\0';
        return hex;
}

/* Looks for the build-id in the notes of one segment. Returns 1 if it is there. */
static int build_id_from_notes(Elf_Data *notes, char **ret) {
        size_t offset = 0, name, description;
        GElf_Nhdr note;

        while ((offset = gelf_getnote(notes, offset, &note, &name, &description)) > 0) {
                const unsigned char *data = notes->d_buf;

                if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof(ELF_NOTE_GNU) ||
                    memcmp(data + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) != 0)
                        continue;
                if (note.n_descsz == 0 || note.n_descsz > BUILD_ID_SIZE_MAX)
                        continue;
                *ret = to_hex(data + description, note.n_descsz);
                return *ret ? 1 : -ENOMEM;
        }
        return 0;
}

static int read_build_id(ElfFile *elf) {
        unsigned n = 0;
        GElf_Phdr phdr;

        for (int i = 0; gelf_getphdr(elf->elf, i, &phdr) && n < NOTES_MAX; i++) {
                Elf_Data *notes;
                int r;

                if (phdr.p_type != PT_NOTE || phdr.p_filesz > NOTES_SIZE_MAX ||
                    phdr.p_offset > elf->size)
                        continue;
                n++;
                notes = elf_getdata_rawchunk(elf->elf, (int64_t) phdr.p_offset, phdr.p_filesz,
                                             phdr.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
                if (!notes)
                        continue;
                r = build_id_from_notes(notes, &elf->build_id);
                if (r != 0)
                        return r < 0 ? r : 0;
        }
        return 0;
}

int elf_file_open(const char *path, ElfFile **ret, char **ret_error) {
        return elf_file_open_in(&ROOT_OWN, path, ret, ret_error);
}

int elf_file_open_in(const Root *root, const char *path, ElfFile **ret, char **ret_error) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        int r;

        elf = malloc(sizeof(*elf));
        if (!elf)
                return -ENOMEM;
        *elf = (ElfFile){ .fd = -EBADF, .debug_directory = DEBUG_DIRECTORY };
        elf->path = root_outside(root, path);
        if (!elf->path)
                return -ENOMEM;

        r = open_regular(root, path, elf->path, &elf->fd, &elf->size, ret_error);
        if (r < 0)
                return r;
        r = check_header(elf, ret_error);
        if (r < 0)
                return r;

        (void) elf_version(EV_CURRENT);
        elf->elf = elf_begin(elf->fd, ELF_C_READ, NULL);
        if (!elf->elf || elf_kind(elf->elf) != ELF_K_ELF)
                return sentence_error(-ENOEXEC, ret_error, "%s is a damaged ELF file: %s",
                                      elf->path, elf_errmsg(-1));
        r = read_build_id(elf);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(elf);
        return 0;
}

void elf_file_set_debug_directory(ElfFile *elf, const char *directory) {
        elf->debug_directory = directory;
}

/*
 * All functions of the file, and those that it exports. The former are in the debug file if it was
 * stripped.
 */
static void load_symbols(const ElfFile *elf, SymbolTable tables[static 2]) {
        symbol_table_load(elf->debug ? elf->debug->elf : elf->elf, SHT_SYMTAB, &tables[0]);
        symbol_table_load(elf->elf, SHT_DYNSYM, &tables[1]);
}

/*
 * Opens what was separated from the file when it was stripped, if it is there and of the same
 * build.
 */
static void open_debug_file(ElfFile *elf) {
        _cleanup_(elf_file_freep) ElfFile *debug = NULL;
        _cleanup_free_ char *path = NULL;
        SymbolTable tables[2];

        if (elf->debug || !elf->build_id || strlen(elf->build_id) < 3)
                return;
        load_symbols(elf, tables);
        if (tables[0].n > 0)
                return;
        if (asprintf(&path, "%s/.build-id/%.2s/%s.debug", elf->debug_directory, elf->build_id,
                     elf->build_id + 2) < 0) {
                path = NULL;
                return;
        }
        (void) elf_file_open(path, &debug, NULL);
        if (debug && streq_empty(debug->build_id, elf->build_id))
                elf->debug = TAKE_PTR(debug);
}

/* The data of a section; NULL if it is larger than what it is for can be. */
static Elf_Data *small_section(Elf_Scn *section, uint64_t size_max) {
        GElf_Shdr header;

        if (!section || !gelf_getshdr(section, &header) || header.sh_size > size_max)
                return NULL;
        return elf_getdata(section, NULL);
}

/* The value of a tag in the dynamic section, and what its strings are in. */
static bool find_dynamic(Elf *elf, int64_t tag, uint64_t *ret_value, Elf_Data **ret_strings) {
        Elf_Scn *section = NULL;
        GElf_Shdr header;
        GElf_Dyn entry;
        Elf_Data *data;

        while ((section = elf_nextscn(elf, section)))
                if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC)
                        break;
        data = small_section(section, DYNAMIC_SIZE_MAX);
        if (!data)
                return false;
        for (int i = 0; gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
                if (entry.d_tag == tag) {
                        *ret_strings =
                                small_section(elf_getscn(elf, header.sh_link), STRINGS_SIZE_MAX);
                        *ret_value = entry.d_un.d_val;
                        return *ret_strings != NULL;
                }
        return false;
}

int elf_file_run_path(ElfFile *elf, char **ret) {
        Elf_Data *strings;
        const char *path;
        uint64_t offset;

        if (!find_dynamic(elf->elf, DT_RUNPATH, &offset, &strings) &&
            !find_dynamic(elf->elf, DT_RPATH, &offset, &strings))
                return 0;
        path = strings->d_buf;
        if (!path || offset >= strings->d_size ||
            !memchr(path + offset, '\0', strings->d_size - offset))
                return 0;
        *ret = strdup(path + offset);
        return *ret ? 1 : -ENOMEM;
}

bool elf_file_is_program(ElfFile *elf) {
        GElf_Ehdr header;
        Elf_Data *strings;
        uint64_t flags;

        if (!gelf_getehdr(elf->elf, &header))
                return false;
        return header.e_type == ET_EXEC ||
               (find_dynamic(elf->elf, DT_FLAGS_1, &flags, &strings) && (flags & DF_1_PIE));
}

/* A segment that is loaded as code, and is in the file as it claims to be. */
static bool segment_is_code(const ElfFile *elf, const GElf_Phdr *phdr) {
        return phdr->p_type == PT_LOAD && (phdr->p_flags & PF_X) && phdr->p_offset <= elf->size &&
               phdr->p_filesz <= elf->size - phdr->p_offset;
}

bool elf_file_find_code(const ElfFile *elf, uint64_t value, bool by_offset, GElf_Phdr *ret) {
        GElf_Phdr phdr;

        for (int i = 0; gelf_getphdr(elf->elf, i, &phdr); i++) {
                uint64_t first = by_offset ? phdr.p_offset : phdr.p_vaddr;

                if (segment_is_code(elf, &phdr) && value >= first &&
                    value - first < phdr.p_filesz) {
                        *ret = phdr;
                        return true;
                }
        }
        return false;
}

static bool begins_with_endbr64(const ElfFile *elf, uint64_t offset) {
#ifdef __x86_64__
        static const unsigned char endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
        unsigned char code[sizeof(endbr64)];

        return elf_read(elf->fd, code, sizeof(code), offset) == (ssize_t) sizeof(code) &&
               memcmp(code, endbr64, sizeof(code)) == 0;
#else
        return false;
#endif
}

uint64_t elf_file_skip_endbr64(const ElfFile *elf, uint64_t offset) {
        return begins_with_endbr64(elf, offset) ? offset + 4 : offset;
}

int elf_file_name_function(const ElfFile *elf, uint64_t address, char **ret) {
        SymbolTable tables[2];
        const char *name = NULL;
        char *copy;

        load_symbols(elf, tables);
        for (size_t i = 0; i < ELEMENTSOF(tables) && !name; i++)
                name = symbol_table_function_at(&tables[i], address);
        if (!name || strnlen(name, FUNCTION_NAME_MAX) == FUNCTION_NAME_MAX ||
            !text_is_printable(name)) {
                *ret = NULL;
                return 0;
        }
        copy = strndup(name, strcspn(name, "@"));
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        return 0;
}

static int resolve_offset(ElfFile *elf, const char *site, ElfSite *ret, char **ret_error) {
        ElfSite result = {};
        GElf_Phdr phdr;
        char *end;
        int r;

        errno = 0;
        result.offset = strtoull(site, &end, 16);
        if (site[0] != '0' || tolower((unsigned char) site[1]) != 'x' ||
            !isxdigit((unsigned char) site[2]) || *end != '\0' || errno != 0)
                return sentence_error(-EINVAL, ret_error,
                                      "'%s' is not an offset: write it as 0x12a0, or give a symbol",
                                      site);

        if (result.offset >= elf->size)
                return sentence_error(-ERANGE, ret_error,
                                      "Offset %s is outside %s, which has 0x%" PRIx64 " bytes",
                                      site, elf->path, elf->size);
        if (!elf_file_find_code(elf, result.offset, true, &phdr))
                return sentence_error(-ERANGE, ret_error,
                                      "Offset %s is outside the executable segments of %s", site,
                                      elf->path);

        r = elf_file_name_function(elf, phdr.p_vaddr + (result.offset - phdr.p_offset),
                                   &result.function);
        if (r < 0)
                return r;
        *ret = result;
        return 0;
}

/* A site that is a symbol, taken apart. */
typedef struct SymbolSite {
        const char *name;
        size_t length;
        bool has_addend;
        uint64_t addend;
} SymbolSite;

static int parse_symbol_site(const char *site, SymbolSite *ret, char **ret_error) {
        SymbolSite parsed = { .name = site, .length = strlen(site) };
        const char *plus = strrchr(site, '+');
        bool is_of_source = name_is_of_source(site);
        char *end;

        if (plus && (!is_of_source || isdigit((unsigned char) plus[1]))) {
                errno = 0;
                parsed.length = (size_t) (plus - site);
                parsed.has_addend = true;
                parsed.addend = strtoull(plus + 1, &end, 0);
                if (!isdigit((unsigned char) plus[1]) || *end != '\0' || errno != 0)
                        return sentence_error(
                                -EINVAL, ret_error,
                                "'%s' is not a place in a function: write it as symbol+0x1c", site);
        }
        if (parsed.length == 0 || site[strcspn(site, is_of_source ? "\t@" : " \t@")] != '\0')
                return sentence_error(-EINVAL, ret_error,
                                      "'%s' is neither a symbol nor an offset such as 0x12a0",
                                      site);
        *ret = parsed;
        return 0;
}

static int ambiguous_symbol(ElfFile *elf, const SymbolSite *site, const SymbolMatch *match,
                            char **ret_error) {
        char places[SYMBOL_PLACES_MAX * sizeof("0x0123456789abcdef, ")] = "";

        for (size_t i = 0; i < match->n_places; i++) {
                char *p = places + strlen(places);
                GElf_Phdr phdr;

                if (elf_file_find_code(elf, match->places[i], false, &phdr))
                        (void) sprintf(p, "%s0x%" PRIx64, p == places ? "" : ", ",
                                       match->places[i] - phdr.p_vaddr + phdr.p_offset);
        }
        return sentence_error(-ENOTUNIQ, ret_error,
                              "Several functions in %s are named '%.*s': give the offset of one "
                              "of them (%s)",
                              elf->path, (int) site->length, site->name, places);
}

/* Finds the one function of that name: among all, else among those that are exported. */
static int find_symbol(ElfFile *elf, const SymbolSite *site, SymbolMatch *ret, char **ret_error) {
        SymbolMatch match = {};
        SymbolTable tables[2];

        load_symbols(elf, tables);
        for (size_t i = 0; i < ELEMENTSOF(tables) && match.n_places == 0; i++)
                symbol_table_find(&tables[i], site->name, site->length, &match);
        for (size_t i = 0; i < ELEMENTSOF(tables) && match.n_places == 0; i++) {
                int r = declared_name_find(&tables[i], elf->path, site->name, site->length, &match,
                                           ret_error);

                if (r < 0)
                        return r;
        }

        if (match.n_places == 0)
                return missing_symbol_error(
                        &(MissingSymbol){
                                .path = elf->path,
                                .name = site->name,
                                .length = site->length,
                                .match = &match,
                                .local = &tables[0],
                                .dynamic = &tables[1],
                        },
                        ret_error);
        if (match.indirect)
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "'%.*s' in %s is an indirect function (IFUNC), whose code is "
                                      "chosen when the program starts: name the function that is "
                                      "chosen, or give its offset",
                                      (int) site->length, site->name, elf->path);
        if (match.n_places > 1)
                return ambiguous_symbol(elf, site, &match, ret_error);
        *ret = match;
        return 0;
}

/* From the function's address to the place in the file where the probe goes. */
static int place_in_function(const ElfFile *elf, const SymbolSite *site, const SymbolMatch *match,
                             uint64_t *ret_offset, char **ret_error) {
        uint64_t address = match->places[0] + site->addend, offset;
        GElf_Phdr phdr;

        if (match->size > 0 && site->addend >= match->size)
                return sentence_error(-ERANGE, ret_error,
                                      "'%s' is past the end of the function, which has 0x%" PRIx64
                                      " bytes in %s",
                                      site->name, match->size, elf->path);
        if (address < match->places[0] || !elf_file_find_code(elf, address, false, &phdr))
                return sentence_error(-ERANGE, ret_error,
                                      "'%s' is outside the executable segments of %s", site->name,
                                      elf->path);

        offset = address - phdr.p_vaddr + phdr.p_offset;
        if (!site->has_addend && (match->size == 0 || match->size > 4) &&
            begins_with_endbr64(elf, offset))
                offset += 4;
        *ret_offset = offset;
        return 0;
}

static int resolve_symbol(ElfFile *elf, const char *text, ElfSite *ret, char **ret_error) {
        ElfSite result = {};
        SymbolMatch match = {};
        SymbolSite site = {};
        int r;

        r = parse_symbol_site(text, &site, ret_error);
        if (r < 0)
                return r;
        r = find_symbol(elf, &site, &match, ret_error);
        if (r < 0)
                return r;
        r = place_in_function(elf, &site, &match, &result.offset, ret_error);
        if (r < 0)
                return r;

        result.function = strndup(site.name, site.length);
        if (!result.function)
                return -ENOMEM;
        *ret = result;
        return 0;
}

int elf_file_resolve(ElfFile *elf, const char *site, ElfSite *ret, char **ret_error) {
        if (strncmp(site, "usdt:", 5) == 0)
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "'%s' is a USDT probe, which this version cannot use: give "
                                      "a function or an offset",
                                      site);
        open_debug_file(elf);
        if (isdigit((unsigned char) site[0]))
                return resolve_offset(elf, site, ret, ret_error);
        return resolve_symbol(elf, site, ret, ret_error);
}

void elf_file_load_symbols(ElfFile *elf, SymbolTable tables[static 2]) {
        open_debug_file(elf);
        load_symbols(elf, tables);
}

bool elf_file_extent_at(const ElfFile *elf, uint64_t address, uint64_t *ret_start,
                        uint64_t *ret_size) {
        SymbolTable tables[2];

        load_symbols(elf, tables);
        return symbol_table_extent_at(&tables[0], address, ret_start, ret_size) ||
               symbol_table_extent_at(&tables[1], address, ret_start, ret_size) ||
               unwind_extent_at(elf->elf, address, ret_start, ret_size);
}
