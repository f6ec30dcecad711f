/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Any bytes as a program, with sites that are there, that are not, and that are near; and the
 * functions there.
 */

#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sentence.h"
#include "elf/file.h"
#include "elf/function-exits.h"
#include "elf/functions.h"
#include "elf/inlined.h"
#include "elf/usdt.h"
#include "fuzz.h"

#define COUNTING_NS UINT64_C(2000000000)

static void look_around(ElfFile *elf, uint64_t offset) {
        FunctionExits exits = {};
        InlinedCopies copies;
        const char *reason = NULL;
        uint64_t begin;
        int r;

        r = function_check_boundary(elf, offset, &begin, &reason);
        fuzz_assert(r != -EOPNOTSUPP || reason);
        r = function_find_exits(elf, offset, &exits, &reason);
        fuzz_assert(r >= 0 ? exits.n > 0 && exits.n_returns <= exits.n : reason != NULL);
        for (size_t i = 0; i < exits.n; i++)
                fuzz_assert(function_check_boundary(elf, exits.offsets[i], &begin, &reason) != 0);
        function_exits_done(&exits);
        fuzz_assert(inlined_copies_count(elf, offset, now_ns() + COUNTING_NS, &copies) == 0);
}

/* Of a USDT probe: each of them lies somewhere, or there is a reason. */
static void read_arguments(const ElfFile *elf, const char *site, const ElfSite *found) {
        for (unsigned i = 1; i <= ELF_ARGUMENTS_MAX; i++) {
                _cleanup_free_ char *sentence = NULL;
                ElfArgumentPlaces places;

                if (elf_file_read_usdt_argument(elf, site, i, found, &places, &sentence) < 0) {
                        fuzz_assert(sentence && text_is_printable(sentence));
                        continue;
                }
                fuzz_assert(places.n > 0 && places.n <= ELF_ARGUMENT_PLACES_MAX);
                for (size_t j = 0; j < places.n; j++)
                        fuzz_assert(places.places[j].argument.kind != ELF_ARGUMENT_NONE);
        }
}

static void resolve(ElfFile *elf, const char *site) {
        _cleanup_(elf_site_done) ElfSite found = {};
        _cleanup_free_ char *sentence = NULL;

        if (elf_file_resolve(elf, site, &found, &sentence) < 0)
                fuzz_assert(sentence && text_is_printable(sentence));
        else {
                fuzz_assert(!found.function || text_is_printable(found.function));
                fuzz_assert(found.n_places <= ELF_PLACES_MAX && elf_site_has(&found, found.offset));
                look_around(elf, found.offset);
                if (found.n_places > 0)
                        read_arguments(elf, site, &found);
        }
}

/* What is listed can be found, if there is one of that name. */
static void list(ElfFile *elf) {
        _cleanup_(elf_functions_done) ElfFunctions functions = {};

        fuzz_assert(elf_file_list_functions(elf, &functions) == 0);
        for (size_t i = 0; i < functions.n && i < 16; i++) {
                fuzz_assert(text_is_printable(functions.items[i].name));
                resolve(elf, functions.items[i].name);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char *const sites[] = { "plain",
                                             "plain+0x4",
                                             "versioned",
                                             "versioned@V1",
                                             "versioned@@V2",
                                             "versioned@V3",
                                             "hidden",
                                             "chosen",
                                             "twice",
                                             "plan",
                                             "with_endbr+1",
                                             "0x300",
                                             "0x8000",
                                             "in_parts",
                                             "only_unwind",
                                             "pointer_by_table",
                                             "switch_by_distance",
                                             "n::f(int)",
                                             "main.work",
                                             "net/http.(*conn).serve+0x2",
                                             "names.c:13",
                                             "unit/names.c:24",
                                             "names.c:26",
                                             "usdt:tlobtest:begin",
                                             "usdt:tlobtest:bare_end",
                                             "usdt:tlobtest:begn",
                                             "usdt:tlob:reqest__begin" };
        _cleanup_close_ int fd = memfd_create("fuzz", MFD_CLOEXEC);
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        _cleanup_free_ char *sentence = NULL;
        char path[64];

        fuzz_assert(fd >= 0 && write(fd, data, size) == (ssize_t) size);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%i", fd);
        if (elf_file_open(path, &elf, &sentence) < 0) {
                fuzz_assert(sentence && text_is_printable(sentence));
                return 0;
        }
        for (size_t i = 0; i < ELEMENTSOF(sites); i++)
                resolve(elf, sites[i]);
        list(elf);
        return 0;
}
