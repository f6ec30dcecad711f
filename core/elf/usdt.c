/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A note has three addresses, of the place, of .stapsdt.base, and of the semaphore, and three
 * strings. Notes are not loaded and so not relocated: a prelinker moves .stapsdt.base only, and all
 * addresses move as far as that has. Some linkers (lld) leave the notes of code that they have
 * dropped, with an address near 0: in a file whose first segment has its headers and its code, that
 * is among the headers.
 *
 * A semaphore is a counter, in the program's data, of those who trace the probe: the program does
 * what the probe needs only while it is not zero. The kernel counts in each process that gets the
 * probe, and checks that the file is mapped there for writing.
 */

#include "elf/usdt.h"

#include <link.h>

#include "base/near-name.h"
#include "base/sentence.h"
#include "elf/internal.h"
#include "elf/mark.h"
#include "elf/section.h"

#define NOTE_NAME      "stapsdt"
#define NOTE_TYPE      3
#define NOTES_SIZE_MAX (UINT64_C(64) << 20)
#define NAMES_MAX      100000 /* that are compared with one that is not there */

/* Where .stapsdt.base is now; 0: there is none, and nothing has moved. */
static uint64_t find_base(const ElfFile *elf) {
        GElf_Shdr header;

        return section_find_named(elf->elf, ".stapsdt.base", &header) ? header.sh_addr : 0;
}

/* Takes a string off what is left of a note; NULL: it does not end, or cannot be shown. */
static const char *take_string(const char **text, const char *end) {
        const char *begin = *text, *zero;

        zero = begin < end ? memchr(begin, '\0', (size_t) (end - begin)) : NULL;
        if (!zero || zero - begin >= FUNCTION_NAME_MAX || !text_is_printable(begin))
                return NULL;
        *text = zero + 1;
        return begin;
}

static bool parse_note(const ElfFile *elf, uint64_t base, const char *text, size_t size,
                       UsdtNote *ret) {
        const char *end = text + size;
        ElfW(Addr) addresses[3];
        uint64_t moved_by;
        GElf_Phdr phdr;
        UsdtNote note;

        if (size < sizeof(addresses))
                return false;
        memcpy(addresses, text, sizeof(addresses));
        text += sizeof(addresses);
        note.provider = take_string(&text, end);
        note.name = note.provider ? take_string(&text, end) : NULL;
        note.arguments = note.name ? take_string(&text, end) : NULL;
        if (!note.arguments || *note.provider == '\0' || *note.name == '\0')
                return false;

        /* Some headers other than sys/sdt.h leave it out. */
        moved_by = base && addresses[1] ? base - addresses[1] : 0;
        if (!elf_file_find_code(elf, addresses[0] + moved_by, false, &phdr) ||
            !section_has_code(elf->elf, addresses[0] + moved_by))
                return false;
        note.offset = segment_offset(&phdr, addresses[0] + moved_by);
        note.semaphore = addresses[2] ? addresses[2] + moved_by : 0;
        *ret = note;
        return true;
}

int elf_file_visit_usdt(const ElfFile *elf, int (*visit)(const UsdtNote *note, void *userdata),
                        void *userdata) {
        size_t offset = 0, name, description;
        uint64_t base = find_base(elf);
        GElf_Shdr header;
        GElf_Nhdr nhdr;
        Elf_Data *data;
        int r = 0;

        data = section_data(section_find_named(elf->elf, ".note.stapsdt", &header), NOTES_SIZE_MAX);
        if (!data || header.sh_type != SHT_NOTE)
                return 0;
        while (r == 0 && (offset = gelf_getnote(data, offset, &nhdr, &name, &description)) > 0) {
                const char *text = data->d_buf;
                UsdtNote note;

                if (nhdr.n_type == NOTE_TYPE && nhdr.n_namesz == sizeof(NOTE_NAME) &&
                    memcmp(text + name, NOTE_NAME, sizeof(NOTE_NAME)) == 0 &&
                    parse_note(elf, base, text + description, nhdr.n_descsz, &note))
                        r = visit(&note, userdata);
        }
        return r;
}

static bool has_address(const GElf_Phdr *phdr, uint64_t address) {
        return address >= phdr->p_vaddr && address - phdr->p_vaddr < phdr->p_filesz;
}

/* Where the kernel is to count: in data that each process has for itself. */
static bool find_semaphore(const ElfFile *elf, uint64_t address, uint64_t *ret) {
        GElf_Phdr phdr;

        for (int i = 0; gelf_getphdr(elf->elf, i, &phdr); i++) {
                if (phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_W) ||
                    !has_address(&phdr, address))
                        continue;
                *ret = segment_offset(&phdr, address);
                /* What the kernel demands, and how many bits there are for it. */
                return *ret > 0 && *ret % sizeof(uint16_t) == 0 && *ret <= UINT32_MAX;
        }
        return false;
}

static bool maps_page(const GElf_Phdr *phdr, uint64_t offset) {
        uint64_t page = (uint64_t) sysconf(_SC_PAGESIZE);

        return phdr->p_filesz > 0 && offset / page >= phdr->p_offset / page &&
               offset / page <= (phdr->p_offset + phdr->p_filesz - 1) / page;
}

/*
 * The kernel counts once, in the first mapping of that page that it sees and that can be written
 * to: is that one of the segments before? What is read-only once the program was relocated (RELRO)
 * can be written to until then, and lld gives it a segment of its own.
 */
static bool is_miscounted(const ElfFile *elf, uint64_t address, uint64_t offset) {
        GElf_Phdr phdr;

        for (int i = 0; gelf_getphdr(elf->elf, i, &phdr); i++) {
                if (phdr.p_type != PT_LOAD || !(phdr.p_flags & PF_W))
                        continue;
                if (has_address(&phdr, address))
                        return false;
                if (maps_page(&phdr, offset))
                        return true;
        }
        return false;
}

typedef struct Search {
        const ElfFile *elf;
        const char *wanted; /* "provider:name" */
        ElfSite site;
        size_t n_allocated;
        const char *why; /* it cannot be used: the end of a sentence */
} Search;

static bool is_wanted(const UsdtNote *note, const char *wanted) {
        size_t n = strlen(note->provider);

        return strncmp(wanted, note->provider, n) == 0 && wanted[n] == ':' &&
               streq(wanted + n + 1, note->name);
}

static int add_place(Search *search, const ElfPlace *place) {
        size_t n = search->n_allocated > 0 ? 2 * search->n_allocated : 4;

        if (search->site.n_places == search->n_allocated) {
                ElfPlace *places = reallocarray(search->site.places, n, sizeof(*places));

                if (!places)
                        return -ENOMEM;
                search->site.places = places;
                search->n_allocated = n;
        }
        search->site.places[search->site.n_places++] = *place;
        return 0;
}

static int take_place(const UsdtNote *note, void *userdata) {
        Search *search = userdata;
        ElfPlace place = { .offset = note->offset };

        if (!is_wanted(note, search->wanted))
                return 0;
        /* Compilers copy notes, too. */
        if (search->site.n_places > 0 &&
            search->site.places[search->site.n_places - 1].offset == note->offset)
                return 0;
        if (search->site.n_places == ELF_PLACES_MAX)
                search->why = "is at too many places";
        else if (note->semaphore && !find_semaphore(search->elf, note->semaphore, &place.semaphore))
                search->why = "has a semaphore that is not in the data of the file";
        if (search->why)
                return 1;
        if (note->semaphore && is_miscounted(search->elf, note->semaphore, place.semaphore))
                search->site.is_miscounted = true;
        return add_place(search, &place);
}

static int compare_places(const void *a, const void *b) {
        const ElfPlace *x = a, *y = b;

        return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Also of those that are not beside each other. */
static void sort_places(ElfSite *site) {
        size_t n = 1;

        qsort(site->places, site->n_places, sizeof(*site->places), compare_places);
        for (size_t i = 1; i < site->n_places; i++)
                if (site->places[i].offset != site->places[n - 1].offset)
                        site->places[n++] = site->places[i];
        site->n_places = n;
        site->offset = site->places[0].offset;
}

/* The names of all, each once for each of its places. */
typedef struct Names {
        bool of_marks; /* else of all probes */
        MarkSide side; /* of these marks, those that have it */
        char **items;
        size_t n;
} Names;

static int add_name(const UsdtNote *note, void *userdata) {
        Names *names = userdata;
        char **items, *name;
        MarkSide side;
        size_t length;

        if (names->n == NAMES_MAX)
                return 1;
        length = mark_parse_probe(note->provider, note->name, &side);
        if (names->of_marks && (length == 0 || side != names->side))
                return 0;
        name = names->of_marks ? strndup(note->name, length)
                               : sentence_make("%s:%s", note->provider, note->name);
        items = name ? reallocarray(names->items, names->n + 1, sizeof(*items)) : NULL;
        if (!items) {
                free(name);
                return -ENOMEM;
        }
        names->items = items;
        names->items[names->n++] = name;
        return 0;
}

static void names_done(Names *names) {
        for (size_t i = 0; i < names->n; i++)
                free(names->items[i]);
        free(names->items);
}

static int list_near(const Names *names, const char *name, size_t length, char **ret) {
        NearNames near;

        near_names_init(&near, name, length);
        for (size_t i = 0; i < names->n; i++)
                near_names_offer(&near, names->items[i]);
        *ret = near_names_list(&near, NULL, NULL);
        return *ret ? 0 : -ENOMEM;
}

/* Near are those with a similar name, whoever provides them. */
static int missing_probe(const ElfFile *elf, const char *wanted, char **ret_error) {
        const char *name = strchr(wanted, ':') + 1;
        _cleanup_(names_done) Names names = {};
        _cleanup_free_ char *list = NULL;
        int r;

        r = elf_file_visit_usdt(elf, add_name, &names);
        if (r < 0)
                return r;
        if (names.n == 0)
                return sentence_error(-ESRCH, ret_error, "There are no USDT probes in %s",
                                      elf->path);
        r = list_near(&names, name, strlen(name), &list);
        if (r < 0)
                return r;
        if (*list == '\0')
                return sentence_error(-ESRCH, ret_error,
                                      "No USDT probe '%s' in %s, nor one with a similar name; "
                                      "those that are there: tlobctl functions %s 'usdt:*'",
                                      wanted, elf->path, elf->path);
        return sentence_error(-ESRCH, ret_error, "No USDT probe '%s' in %s; near names: %s", wanted,
                              elf->path, list);
}

static bool has_name(const Names *names, const char *name, size_t length) {
        for (size_t i = 0; i < names->n; i++)
                if (strlen(names->items[i]) == length &&
                    strncmp(names->items[i], name, length) == 0)
                        return true;
        return false;
}

/* There are others, but not this one. */
static int missing_mark(const ElfFile *elf, const Names *others, const char *mark, size_t length,
                        char **ret_error) {
        _cleanup_free_ char *list = NULL;
        int r;

        r = list_near(others, mark, length, &list);
        if (r < 0)
                return r;
        if (*list == '\0')
                return sentence_error(
                        -ESRCH, ret_error,
                        "No mark '%.*s' in %s, nor one with a similar name; those that "
                        "are there: tlobctl functions %s 'Mark=*'",
                        (int) length, mark, elf->path, elf->path);
        return sentence_error(-ESRCH, ret_error, "No mark '%.*s' in %s; near names: %s",
                              (int) length, mark, elf->path, list);
}

/* Of a side that is not there the other one may be. */
static int missing_side(const ElfFile *elf, const char *mark, size_t length, MarkSide side,
                        char **ret_error) {
        _cleanup_(names_done) Names same = { .of_marks = true, .side = side },
                                    other = { .of_marks = true,
                                              .side = side == MARK_BEGIN ? MARK_END : MARK_BEGIN };
        int r;

        r = elf_file_visit_usdt(elf, add_name, &same);
        if (r >= 0)
                r = elf_file_visit_usdt(elf, add_name, &other);
        if (r < 0)
                return r;
        if (has_name(&other, mark, length))
                return sentence_error(-ESRCH, ret_error,
                                      "The mark '%.*s' never %s in %s, but only %s: a window needs "
                                      "both in one file",
                                      (int) length, mark, side == MARK_BEGIN ? "begins" : "ends",
                                      elf->path, side == MARK_BEGIN ? "ends" : "begins");
        if (same.n == 0)
                return sentence_error(-ESRCH, ret_error,
                                      "There are no marks in %s: a program makes them with "
                                      "tlob-mark.h",
                                      elf->path);
        return missing_mark(elf, &same, mark, length, ret_error);
}

static int missing_error(const ElfFile *elf, const char *place, char **ret_error) {
        const char *mark;
        MarkSide side;
        size_t length = mark_parse_place(place, &mark, &side);

        return length > 0 ? missing_side(elf, mark, length, side, ret_error)
                          : missing_probe(elf, place + strlen(USDT_PLACE), ret_error);
}

int elf_file_resolve_usdt(const ElfFile *elf, const char *site, ElfSite *ret, char **ret_error) {
        Search search = { .elf = elf, .wanted = site + strlen(USDT_PLACE) };
        const char *colon = strchr(search.wanted, ':');
        int r;

        if (!colon || colon == search.wanted || colon[1] == '\0')
                return sentence_error(-EINVAL, ret_error,
                                      "'%s' is not a USDT probe: write it as usdt:provider:name",
                                      site);
        r = elf_file_visit_usdt(elf, take_place, &search);
        if (r >= 0 && search.why)
                r = sentence_error(-EOPNOTSUPP, ret_error, "The USDT probe '%s' in %s %s",
                                   search.wanted, elf->path, search.why);
        else if (r >= 0 && search.site.n_places == 0)
                r = missing_error(elf, site, ret_error);
        if (r < 0) {
                elf_site_done(&search.site);
                return r;
        }
        sort_places(&search.site);
        *ret = search.site;
        return 0;
}

static int note_arguments(const UsdtNote *note, void *userdata) {
        const char *wanted = userdata;

        return is_wanted(note, wanted) && *note->arguments != '\0';
}

int elf_file_usdt_has_arguments(const ElfFile *elf, const char *site) {
        return elf_file_visit_usdt(elf, note_arguments, (void *) (site + strlen(USDT_PLACE)));
}

typedef struct ArgumentSearch {
        const char *wanted;
        unsigned number;
        const ElfSite *site;
        ElfArgument *arguments;
        char *text; /* of the note that has it not */
} ArgumentSearch;

static int take_argument(const UsdtNote *note, void *userdata) {
        ArgumentSearch *search = userdata;
        const ElfSite *site = search->site;
        int r;

        if (!is_wanted(note, search->wanted))
                return 0;
        for (size_t i = 0; i < site->n_places; i++) {
                if (site->places[i].offset != note->offset)
                        continue;
                r = elf_argument_parse(note->arguments, search->number, &search->arguments[i]);
                if (r < 0)
                        return free_and_strdup(&search->text, note->arguments) < 0 ? -ENOMEM : r;
        }
        return 0;
}

/* Returns 0, or a negative errno with a sentence. */
static int read_arguments(const ElfFile *elf, ArgumentSearch *search, char **ret_error) {
        _cleanup_free_ char *text = NULL;
        int r;

        r = elf_file_visit_usdt(elf, take_argument, search);
        text = search->text;
        switch (r) {
        case -ESRCH:
                return sentence_error(r, ret_error, "The USDT probe '%s' in %s has no arg%u%s%s",
                                      search->wanted, elf->path, search->number,
                                      *text != '\0' ? ", but only " : ": it has no arguments",
                                      text);
        case -EBADMSG:
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "tlobd cannot read arg%u of the USDT probe '%s' in %s, among "
                                      "'%s'",
                                      search->number, search->wanted, elf->path, text);
        case -EOPNOTSUPP:
                return sentence_error(r, ret_error,
                                      "The arguments of USDT probes are not known on this machine");
        default:
                return r;
        }
}

static bool is_same_everywhere(const ElfArgument *arguments, size_t n) {
        for (size_t i = 1; i < n; i++)
                if (!elf_argument_equal(&arguments[i], &arguments[0]))
                        return false;
        return true;
}

#define PAGE_MASK UINT64_C(0xfff)

/* The one that cannot be told from that place. */
static const ElfArgumentPlace *find_alike(const ElfArgumentPlaces *places, uint64_t offset) {
        for (size_t i = 0; i < places->n; i++)
                if (((places->places[i].offset ^ offset) & PAGE_MASK) == 0)
                        return &places->places[i];
        return NULL;
}

static bool collect_arguments(const ElfSite *site, const ElfArgument *arguments,
                              ElfArgumentPlaces *ret) {
        size_t n = is_same_everywhere(arguments, site->n_places) ? 1 : site->n_places;

        for (size_t i = 0; i < n; i++) {
                const ElfArgumentPlace *alike = find_alike(ret, site->places[i].offset);

                if (alike ? !elf_argument_equal(&alike->argument, &arguments[i])
                          : ret->n == ELF_ARGUMENT_PLACES_MAX)
                        return false;
                if (!alike)
                        ret->places[ret->n++] =
                                (ElfArgumentPlace) { site->places[i].offset, arguments[i] };
        }
        return true;
}

int elf_file_read_usdt_argument(const ElfFile *elf, const char *site, unsigned number,
                                const ElfSite *resolved, ElfArgumentPlaces *ret, char **ret_error) {
        ArgumentSearch search = {
                .wanted = site + strlen(USDT_PLACE),
                .number = number,
                .site = resolved,
        };
        _cleanup_free_ ElfArgument *arguments = NULL;
        int r;

        arguments = search.arguments = calloc(resolved->n_places, sizeof(*arguments));
        if (!arguments)
                return -ENOMEM;
        r = read_arguments(elf, &search, ret_error);
        if (r < 0)
                return r;
        *ret = (ElfArgumentPlaces) {};
        if (!collect_arguments(resolved, arguments, ret))
                return sentence_error(-EOPNOTSUPP, ret_error,
                                      "arg%u of the USDT probe '%s' in %s lies in too many "
                                      "different registers and places on the stack",
                                      number, search.wanted, elf->path);
        return 0;
}
