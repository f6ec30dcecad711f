/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Any bytes as a program, with sites that are there, that are not, and that are near. */

#include <sys/mman.h>

#include "cleanup.h"
#include "elf-file.h"
#include "fuzz.h"
#include "sentence.h"

static void resolve(ElfFile *elf, const char *site) {
        _cleanup_(elf_site_done) ElfSite found = {};
        _cleanup_free_ char *sentence = NULL;

        if (elf_file_resolve(elf, site, &found, &sentence) < 0)
                fuzz_assert(sentence && text_is_printable(sentence));
        else
                fuzz_assert(!found.function || text_is_printable(found.function));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char *const sites[] = { "plain", "plain+0x4",    "versioned", "twice",
                                             "plan",  "with_endbr+1", "0x300",     "0x8000" };
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
        return 0;
}
