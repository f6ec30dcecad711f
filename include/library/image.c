/* SPDX-License-Identifier: MIT */

/*
 * A file of marks is a shared object without anything but marks: what a linker would make of
 *
 *     TLOB_MARK(request);
 *     void tlob_begin_request(void) { tlob_begin(request); }
 *     void tlob_end_request(void) { tlob_end(request); }
 *
 * but without a compiler and a linker, which services have not. Notes and semaphores are those of
 * tlob-mark.h: it and this file have to agree. The semaphore is exported too, so that those for
 * whom a call is expensive can look first.
 *
 * Addresses are offsets in the file, and the same names always make the same bytes.
 */

#include "image.h"

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A function is called with the key in the first register, where tlob-mark.h has it, too. */
#if defined(__x86_64__)
#define MACHINE       EM_X86_64
#define PAGE          0x1000U
#define FUNCTION_SIZE 16U
#define NOP_AT        14U
#define KEY           "8@%rdi"
#elif defined(__aarch64__) && defined(__LP64__)
#define MACHINE       EM_AARCH64
#define PAGE          0x10000U
#define FUNCTION_SIZE 24U
#define NOP_AT        16U
#define KEY           "8@x0"
#else
#define MACHINE       EM_NONE
#define PAGE          0x1000U
#define FUNCTION_SIZE 16U
#define NOP_AT        0U
#define KEY           ""
#endif

#define PROVIDER    "tlob"
#define OBJECT      "tlob_mark_"
#define OBJECT_SIZE 8U
#define N_SIDES     2U
#define N_SYMBOLS   3U /* of a mark: its functions and its object */
#define N_SEGMENTS  4U
#define NOTE_OWNER  "stapsdt"
#define NOTE_TYPE   3U
#define N_ADDRESSES 3U
#define N_DYNAMIC   6U

static const char *const endings[N_SIDES] = { "__begin", "__end" };

static const char *const functions[][N_SIDES] = {
        [false] = { "tlob_begin_", "tlob_end_" },
        [true] = { "tlob_begin_key_", "tlob_end_key_" },
};

/* As they lie in the file: up to .hash what is read and run, then what is written to. */
typedef enum Part {
        PART_NONE,
        PART_STRINGS,
        PART_TEXT,
        PART_BASE,
        PART_SYMBOLS,
        PART_HASH,
        PART_PROBES,
        PART_DYNAMIC,
        PART_NOTES,
        PART_NAMES,
        N_PARTS,
} Part;

static const struct {
        const char *name;
        Elf64_Shdr header;
} parts[N_PARTS] = {
        [PART_NONE] = { "", { .sh_type = SHT_NULL } },
        [PART_STRINGS] = { ".dynstr",
                           { .sh_type = SHT_STRTAB, .sh_flags = SHF_ALLOC, .sh_addralign = 1 } },
        [PART_TEXT] = { ".text",
                        { .sh_type = SHT_PROGBITS,
                          .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                          .sh_addralign = 16 } },
        [PART_BASE] = { ".stapsdt.base",
                        { .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_addralign = 1 } },
        [PART_SYMBOLS] = { ".dynsym",
                           { .sh_type = SHT_DYNSYM,
                             .sh_flags = SHF_ALLOC,
                             .sh_link = PART_STRINGS,
                             .sh_info = 1,
                             .sh_addralign = 8,
                             .sh_entsize = sizeof(Elf64_Sym) } },
        [PART_HASH] = { ".hash",
                        { .sh_type = SHT_HASH,
                          .sh_flags = SHF_ALLOC,
                          .sh_link = PART_SYMBOLS,
                          .sh_addralign = 8,
                          .sh_entsize = sizeof(Elf64_Word) } },
        [PART_PROBES] = { ".probes",
                          { .sh_type = SHT_PROGBITS,
                            .sh_flags = SHF_ALLOC | SHF_WRITE,
                            .sh_addralign = PAGE } },
        [PART_DYNAMIC] = { ".dynamic",
                           { .sh_type = SHT_DYNAMIC,
                             .sh_flags = SHF_ALLOC | SHF_WRITE,
                             .sh_link = PART_STRINGS,
                             .sh_addralign = 8,
                             .sh_entsize = sizeof(Elf64_Dyn) } },
        [PART_NOTES] = { ".note.stapsdt", { .sh_type = SHT_NOTE, .sh_addralign = 4 } },
        [PART_NAMES] = { ".shstrtab", { .sh_type = SHT_STRTAB, .sh_addralign = 1 } },
};

typedef struct Image {
        const Mark *marks;
        size_t n_marks;
        size_t offsets[N_PARTS];
        size_t sizes[N_PARTS];
        size_t headers; /* of sections */
        size_t size;
        char *data;
} Image;

static size_t align(size_t n, size_t to) {
        return (n + to - 1) / to * to;
}

static size_t n_symbols(const Image *image) {
        return 1 + N_SYMBOLS * image->n_marks;
}

static const char *symbol_prefix(const Mark *mark, unsigned number) {
        return number < N_SIDES ? functions[mark->has_key][number] : OBJECT;
}

static size_t note_size(const Mark *mark, unsigned side) {
        return sizeof(Elf64_Nhdr) + sizeof(NOTE_OWNER) + N_ADDRESSES * sizeof(Elf64_Addr) +
               sizeof(PROVIDER) + mark->length + strlen(endings[side]) + 1 +
               (mark->has_key ? sizeof(KEY) : 1);
}

/* What each part has room for. */
static void measure(Image *image) {
        size_t *sizes = image->sizes;

        sizes[PART_STRINGS] = 1;
        for (size_t i = 0; i < image->n_marks; i++) {
                const Mark *mark = &image->marks[i];

                for (unsigned k = 0; k < N_SYMBOLS; k++)
                        sizes[PART_STRINGS] += strlen(symbol_prefix(mark, k)) + mark->length + 1;
                for (unsigned side = 0; side < N_SIDES; side++)
                        sizes[PART_NOTES] += align(note_size(mark, side), 4);
        }
        sizes[PART_TEXT] = image->n_marks * N_SIDES * FUNCTION_SIZE;
        sizes[PART_BASE] = 1;
        sizes[PART_SYMBOLS] = n_symbols(image) * sizeof(Elf64_Sym);
        sizes[PART_HASH] = (2 + 2 * n_symbols(image)) * sizeof(Elf64_Word);
        sizes[PART_PROBES] = image->n_marks * OBJECT_SIZE;
        sizes[PART_DYNAMIC] = N_DYNAMIC * sizeof(Elf64_Dyn);
        for (Part part = 0; part < N_PARTS; part++)
                sizes[PART_NAMES] += strlen(parts[part].name) + 1;
}

static void lay_out(Image *image) {
        size_t offset = sizeof(Elf64_Ehdr) + N_SEGMENTS * sizeof(Elf64_Phdr);

        measure(image);
        for (Part part = PART_NONE + 1; part < N_PARTS; part++) {
                offset = align(offset, parts[part].header.sh_addralign);
                image->offsets[part] = offset;
                offset += image->sizes[part];
        }
        image->headers = align(offset, sizeof(Elf64_Addr));
        image->size = image->headers + N_PARTS * sizeof(Elf64_Shdr);
}

static size_t part_end(const Image *image, Part part) {
        return image->offsets[part] + image->sizes[part];
}

static size_t function_at(const Image *image, size_t mark, unsigned side) {
        return image->offsets[PART_TEXT] + (mark * N_SIDES + side) * FUNCTION_SIZE;
}

static size_t object_at(const Image *image, size_t mark) {
        return image->offsets[PART_PROBES] + mark * OBJECT_SIZE;
}

/* Puts it where *p is, and moves that on. */
static void put(char **p, const void *data, size_t size) {
        memcpy(*p, data, size);
        *p += size;
}

static void put_name(char **p, const char *before, const Mark *mark, const char *after) {
        put(p, before, strlen(before));
        put(p, mark->name, mark->length);
        put(p, after, strlen(after) + 1);
}

/* if (listeners != 0) nop; return; */
static void write_function(char *at, size_t address, size_t object) {
#if defined(__x86_64__)
        uint32_t distance = (uint32_t) (object - (address + 12));

        put(&at, "\xf3\x0f\x1e\xfa", 4); /* endbr64 */
        put(&at, "\x66\x83\x3d", 3);     /* cmpw $0, distance(%rip) */
        put(&at, &distance, sizeof(distance));
        put(&at, "\x00\x74\x01\x90\xc3", 5); /* je to the ret; nop; ret */
#elif defined(__aarch64__)
        uint32_t distance = (uint32_t) (object - (address + 4));
        const uint32_t code[] = {
                0xd503245f,                                                         /* bti c */
                0x10000010 | (distance & 3) << 29 | (distance >> 2 & 0x7ffff) << 5, /* adr x16 */
                0x79400210, /* ldrh w16, [x16] */
                0x34000050, /* cbz w16 to the ret */
                0xd503201f, /* nop */
                0xd65f03c0, /* ret */
        };

        put(&at, code, sizeof(code));
#else
        (void) at;
        (void) address;
        (void) object;
#endif
}

static void write_functions(Image *image) {
        for (size_t i = 0; i < image->n_marks; i++)
                for (unsigned side = 0; side < N_SIDES; side++) {
                        size_t address = function_at(image, i, side);

                        write_function(image->data + address, address, object_at(image, i));
                }
}

static void write_symbols(Image *image) {
        char *strings = image->data + image->offsets[PART_STRINGS], *string = strings + 1;
        char *p = image->data + image->offsets[PART_SYMBOLS] + sizeof(Elf64_Sym);

        for (size_t i = 0; i < image->n_marks; i++)
                for (unsigned k = 0; k < N_SYMBOLS; k++) {
                        bool is_function = k < N_SIDES;
                        Elf64_Sym symbol = {
                                .st_name = (Elf64_Word) (string - strings),
                                .st_info = ELF64_ST_INFO(STB_GLOBAL,
                                                         is_function ? STT_FUNC : STT_OBJECT),
                                .st_shndx = is_function ? PART_TEXT : PART_PROBES,
                                .st_value = is_function ? function_at(image, i, k)
                                                        : object_at(image, i),
                                .st_size = is_function ? FUNCTION_SIZE : OBJECT_SIZE,
                        };

                        put(&p, &symbol, sizeof(symbol));
                        put_name(&string, symbol_prefix(&image->marks[i], k), &image->marks[i], "");
                }
}

/* As the ABI has it. */
static uint32_t hash_name(const char *name) {
        uint32_t hash = 0, high;

        for (; *name; name++) {
                hash = (hash << 4) + (unsigned char) *name;
                high = hash & 0xf0000000;
                hash = (hash ^ high >> 24) & ~high;
        }
        return hash;
}

/* A bucket for each symbol. The number of a symbol is also that of its link in a chain. */
static void write_hash(Image *image) {
        const Elf64_Sym *symbols = (void *) (image->data + image->offsets[PART_SYMBOLS]);
        const char *strings = image->data + image->offsets[PART_STRINGS];
        Elf64_Word *hash = (void *) (image->data + image->offsets[PART_HASH]);
        Elf64_Word n = (Elf64_Word) n_symbols(image), *buckets = hash + 2, *chains = buckets + n;

        hash[0] = hash[1] = n;
        for (Elf64_Word i = 1; i < n; i++) {
                Elf64_Word *bucket = &buckets[hash_name(strings + symbols[i].st_name) % n];

                chains[i] = *bucket;
                *bucket = i;
        }
}

static void write_dynamic(Image *image) {
        const Elf64_Dyn dynamic[N_DYNAMIC] = {
                { DT_HASH, { image->offsets[PART_HASH] } },
                { DT_STRTAB, { image->offsets[PART_STRINGS] } },
                { DT_STRSZ, { image->sizes[PART_STRINGS] } },
                { DT_SYMTAB, { image->offsets[PART_SYMBOLS] } },
                { DT_SYMENT, { sizeof(Elf64_Sym) } },
                { DT_NULL, { 0 } },
        };

        memcpy(image->data + image->offsets[PART_DYNAMIC], dynamic, sizeof(dynamic));
}

static void write_note(const Image *image, char *at, size_t number, unsigned side) {
        const Mark *mark = &image->marks[number];
        size_t size = note_size(mark, side) - sizeof(Elf64_Nhdr) - sizeof(NOTE_OWNER);
        const Elf64_Nhdr header = { sizeof(NOTE_OWNER), (Elf64_Word) size, NOTE_TYPE };
        const Elf64_Addr addresses[N_ADDRESSES] = {
                function_at(image, number, side) + NOP_AT,
                image->offsets[PART_BASE],
                object_at(image, number),
        };

        put(&at, &header, sizeof(header));
        put(&at, NOTE_OWNER, sizeof(NOTE_OWNER));
        put(&at, addresses, sizeof(addresses));
        put(&at, PROVIDER, sizeof(PROVIDER));
        put_name(&at, "", mark, endings[side]);
        if (mark->has_key)
                put(&at, KEY, sizeof(KEY));
}

static void write_notes(Image *image) {
        size_t offset = image->offsets[PART_NOTES];

        for (size_t i = 0; i < image->n_marks; i++)
                for (unsigned side = 0; side < N_SIDES; side++) {
                        write_note(image, image->data + offset, i, side);
                        offset += align(note_size(&image->marks[i], side), 4);
                }
}

static void write_sections(Image *image) {
        char *names = image->data + image->offsets[PART_NAMES], *name = names;
        char *p = image->data + image->headers;

        for (Part part = 0; part < N_PARTS; part++) {
                Elf64_Shdr header = parts[part].header;

                header.sh_name = (Elf64_Word) (name - names);
                header.sh_offset = image->offsets[part];
                header.sh_addr = header.sh_flags & SHF_ALLOC ? image->offsets[part] : 0;
                header.sh_size = image->sizes[part];
                put(&p, &header, sizeof(header));
                put(&name, parts[part].name, strlen(parts[part].name) + 1);
        }
}

static Elf64_Phdr make_segment(Elf64_Word type, Elf64_Word flags, size_t begin, size_t end,
                               size_t alignment) {
        return (Elf64_Phdr) {
                .p_type = type,
                .p_flags = flags,
                .p_offset = begin,
                .p_vaddr = begin,
                .p_paddr = begin,
                .p_filesz = end - begin,
                .p_memsz = end - begin,
                .p_align = alignment,
        };
}

static void write_headers(Image *image) {
        size_t probes = image->offsets[PART_PROBES], dynamic = image->offsets[PART_DYNAMIC];
        size_t end = part_end(image, PART_DYNAMIC);
        const Elf64_Phdr segments[N_SEGMENTS] = {
                make_segment(PT_LOAD, PF_R | PF_X, 0, part_end(image, PART_HASH), PAGE),
                make_segment(PT_LOAD, PF_R | PF_W, probes, end, PAGE),
                make_segment(PT_DYNAMIC, PF_R | PF_W, dynamic, end, 8),
                make_segment(PT_GNU_STACK, PF_R | PF_W, 0, 0, 16),
        };
        const Elf64_Ehdr header = {
                .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                             EV_CURRENT },
                .e_type = ET_DYN,
                .e_machine = MACHINE,
                .e_version = EV_CURRENT,
                .e_phoff = sizeof(header),
                .e_shoff = image->headers,
                .e_ehsize = sizeof(header),
                .e_phentsize = sizeof(Elf64_Phdr),
                .e_phnum = N_SEGMENTS,
                .e_shentsize = sizeof(Elf64_Shdr),
                .e_shnum = N_PARTS,
                .e_shstrndx = PART_NAMES,
        };
        char *p = image->data;

        put(&p, &header, sizeof(header));
        put(&p, segments, sizeof(segments));
}

int image_make(const Mark *marks, size_t n_marks, void **ret, size_t *ret_size) {
        Image image = { .marks = marks, .n_marks = n_marks };

        if (MACHINE == EM_NONE)
                return -EOPNOTSUPP;
        lay_out(&image);
        image.data = calloc(1, image.size);
        if (!image.data)
                return -ENOMEM;
        write_headers(&image);
        write_functions(&image);
        write_symbols(&image);
        write_hash(&image);
        write_dynamic(&image);
        write_notes(&image);
        write_sections(&image);
        *ret = image.data;
        *ret_size = image.size;
        return 0;
}
