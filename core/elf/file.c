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
 * Refused: files for another machine or another word size.
 */

#include "elf/file.h"

#include <fcntl.h>
#include <libelf.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/sentence.h"
#include "elf/internal.h"
#include "elf/machine.h"
#include "elf/probe-kind.h"
#include "elf/read.h"
#include "elf/section.h"
#include "elf/unwind.h"

#define ENDBR64_SIZE 4

#define SECTIONS_MAX      1000000
#define NOTES_SIZE_MAX    65536
#define NOTES_MAX         16
#define BUILD_ID_SIZE_MAX 64
#define DEBUG_DIRECTORY   "/usr/lib/debug"

void elf_site_done(ElfSite *site) {
        free(site->function);
        free(site->places);
        *site = (ElfSite) {};
}

bool elf_site_has(const ElfSite *site, uint64_t offset) {
        for (size_t i = 0; i < site->n_places; i++)
                if (site->places[i].offset == offset)
                        return true;
        return site->offset == offset;
}

void elf_file_close(ElfFile *elf) {
        if (!elf)
                return;
        debug_files_done(&elf->debug);
        if (elf->elf)
                (void) elf_end(elf->elf);
        safe_close(elf->fd);
        root_done(&elf->root);
        free(elf->inner_path);
        free(elf->build_id);
        free(elf->path);
        free(elf);
}

ElfFile *elf_file_free(ElfFile *elf) {
        if (elf && !elf_recent_keep(elf))
                elf_file_close(elf);
        return NULL;
}

int elf_file_fd(const ElfFile *elf) {
        return elf->fd;
}

const struct stat *elf_file_stat(const ElfFile *elf) {
        return &elf->stat;
}

const char *elf_file_path(const ElfFile *elf) {
        return elf->path;
}

int elf_file_set_name(ElfFile *elf, const char *name) {
        elf->is_altered = true;
        return free_and_strdup(&elf->path, name);
}

const char *elf_file_build_id(const ElfFile *elf) {
        return elf->build_id;
}

static int open_failed(int error, const char *path, char **ret_error) {
        return sentence_error(error, ret_error, "Cannot open %s: %s", path, strerror(-error));
}

/* Opens path if it is a regular file, without touching it if it is not. */
static int open_regular(const Root *root, const char *inside, const char *path, int *ret_fd,
                        struct stat *ret_stat, char **ret_error) {
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
        /* Not waiting for who has a lease on it. */
        reopened = open(proc, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (reopened < 0)
                return open_failed(-errno, path, ret_error);

        *ret_stat = st;
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

static int check_header(const ElfFile *elf, bool only_dwarf, char **ret_error) {
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
        if (!machine_is_own(header.e_ident, header.e_machine))
                return sentence_error(-ENOEXEC, ret_error,
                                      "%s is an ELF file for another kind of machine%s", elf->path,
                                      header.e_ident[EI_CLASS] == ELFCLASS32 ? ", of 32 bits" : "");
        if (n < (ssize_t) sizeof(header) || header.e_phnum == PN_XNUM ||
            !section_count_is_sane(elf->fd, &header))
                return sentence_error(-ENOEXEC, ret_error, "%s is a damaged ELF file", elf->path);
        if (header.e_type != ET_EXEC && header.e_type != ET_DYN && !only_dwarf)
                return sentence_error(-ENOEXEC, ret_error,
                                      "%s is an ELF file, but neither a program nor a library",
                                      elf->path);
        return 0;
}

char *elf_build_id_to_hex(const void *data, size_t size) {
        static const char digits[] = "0123456789abcdef";
        const unsigned char *bytes = data;
        char *hex;

        if (size == 0 || size > BUILD_ID_SIZE_MAX)
                return NULL;
        hex = malloc(2 * size + 1);
        if (!hex)
                return NULL;
        for (size_t i = 0; i < size; i++) {
                hex[2 * i] = digits[bytes[i] >> 4];
                hex[2 * i + 1] = digits[bytes[i] & 15];
        }
        hex[2 * size] = '\0';
        return hex;
}

/* Looks for the build-id in some notes. Returns 1 if it is there. */
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
                *ret = elf_build_id_to_hex(data + description, note.n_descsz);
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
                    phdr.p_offset > elf_file_size(elf))
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

/* Where there are no segments. */
static int read_build_id_section(ElfFile *elf) {
        GElf_Shdr header;
        Elf_Data *notes;
        int r;

        notes = section_data(section_find_named(elf->elf, ".note.gnu.build-id", &header),
                             NOTES_SIZE_MAX);
        r = notes ? build_id_from_notes(notes, &elf->build_id) : 0;
        return r < 0 ? r : 0;
}

static int open_in(const Root *root, const char *path, bool only_dwarf, ElfFile **ret,
                   char **ret_error) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        int r;

        elf = malloc(sizeof(*elf));
        if (!elf)
                return -ENOMEM;
        *elf = (ElfFile) {
                .fd = -EBADF,
                .root = ROOT_OWN,
                .inner_path = strdup(path),
                .debug_directory = DEBUG_DIRECTORY,
        };
        elf->path = root_outside(root, path);
        if (!elf->path || !elf->inner_path)
                return -ENOMEM;
        r = root_copy(root, &elf->root);
        if (r < 0)
                return r;

        r = open_regular(root, path, elf->path, &elf->fd, &elf->stat, ret_error);
        if (r < 0)
                return r;
        *ret = elf_recent_take(elf);
        if (*ret)
                return 0;
        elf->since_ns = now_ns();
        elf->is_settled = clock_read_ns(CLOCK_REALTIME) / NSEC_PER_SEC >
                          (uint64_t) elf->stat.st_ctim.tv_sec + 1;
        /* What is no program must not be taken for one, later. */
        elf->is_altered = only_dwarf;
        r = check_header(elf, only_dwarf, ret_error);
        if (r < 0)
                return r;

        (void) elf_version(EV_CURRENT);
        elf->elf = elf_begin(elf->fd, ELF_C_READ, NULL);
        if (!elf->elf || elf_kind(elf->elf) != ELF_K_ELF)
                return sentence_error(-ENOEXEC, ret_error, "%s is a damaged ELF file: %s",
                                      elf->path, elf_errmsg(-1));
        r = only_dwarf ? read_build_id_section(elf) : read_build_id(elf);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(elf);
        return 0;
}

int elf_file_open(const char *path, ElfFile **ret, char **ret_error) {
        return open_in(&ROOT_OWN, path, false, ret, ret_error);
}

int elf_file_open_in(const Root *root, const char *path, ElfFile **ret, char **ret_error) {
        return open_in(root, path, false, ret, ret_error);
}

int elf_file_open_dwarf_in(const Root *root, const char *path, ElfFile **ret) {
        return open_in(root, path, true, ret, NULL);
}

void elf_file_set_debug_directory(ElfFile *elf, const char *directory) {
        elf->is_altered = true;
        elf->debug_directory = directory;
}

void elf_file_ignore_links(ElfFile *elf) {
        elf->is_altered = true;
        elf->ignores_links = true;
}

void elf_file_set_debug_finder(ElfFile *elf, ElfDebugFinder finder, void *userdata) {
        elf->is_altered = true;
        elf->debug_finder = finder;
        elf->debug_finder_data = userdata;
}

void elf_file_set_patient(ElfFile *elf, bool patient) {
        elf->is_patient = patient;
}

/* A segment that is loaded as code, and is in the file as it claims to be. */
static bool segment_is_code(const ElfFile *elf, const GElf_Phdr *phdr) {
        return phdr->p_type == PT_LOAD && (phdr->p_flags & PF_X) &&
               phdr->p_offset <= elf_file_size(elf) &&
               phdr->p_filesz <= elf_file_size(elf) - phdr->p_offset;
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

static bool has_endbr64(const ElfFile *elf, uint64_t offset) {
#ifdef __x86_64__
        static const unsigned char endbr64[ENDBR64_SIZE] = { 0xf3, 0x0f, 0x1e, 0xfa };
        unsigned char code[sizeof(endbr64)];

        return elf_read(elf->fd, code, sizeof(code), offset) == (ssize_t) sizeof(code) &&
               memcmp(code, endbr64, sizeof(code)) == 0;
#else
        return false;
#endif
}

uint64_t elf_file_place_entry(const ElfFile *elf, uint64_t offset) {
        uint64_t next = offset;

        if (has_endbr64(elf, offset))
                next += ENDBR64_SIZE;
        else if (probe_is_on_nop5(elf->fd, offset))
                next += NOP5_SIZE;
        return next == offset || probe_is_harmless(elf->fd, next) ? next : offset;
}

int elf_file_name_function(const ElfFile *elf, uint64_t address, char **ret) {
        SymbolFunction function;
        SymbolTable tables[2];
        const char *name = NULL;
        char *copy;

        elf_file_get_symbols(elf, tables);
        for (size_t i = 0; i < ELEMENTSOF(tables) && !name; i++)
                name = symbol_table_function_at(&tables[i], address);
        if (!name && go_table_function_at(&elf->go, address, &function))
                name = function.name;
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

bool elf_file_extent_at(const ElfFile *elf, uint64_t address, uint64_t *ret_start,
                        uint64_t *ret_size) {
        SymbolFunction function;
        SymbolTable tables[2];

        elf_file_get_symbols(elf, tables);
        if (symbol_table_extent_at(&tables[0], address, ret_start, ret_size) ||
            symbol_table_extent_at(&tables[1], address, ret_start, ret_size))
                return true;
        if (!go_table_function_at(&elf->go, address, &function))
                return unwind_extent_at(elf->elf, address, ret_start, ret_size);
        *ret_start = function.address;
        *ret_size = function.size;
        return true;
}
