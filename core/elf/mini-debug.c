/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a file unpacks to is not known before: a kilobyte can become gigabytes, and the header of an
 * xz stream can ask for as much memory to be unpacked at all. Both have limits here, far above what
 * distributions put there (Fedora: some megabytes for the largest programs), and the size of what
 * is packed limits the time.
 */

#include "elf/mini-debug.h"

#include <lzma.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "elf/machine.h"
#include "elf/section.h"

#define PACKED_SIZE_MAX   (UINT64_C(32) << 20)
#define UNPACKED_SIZE_MAX ((size_t) 128 << 20)
#define UNPACKED_SIZE_MIN ((size_t) 64 << 10) /* room at first */
#define MEMORY_MAX        (UINT64_C(128) << 20)

typedef struct Image {
        uint8_t *data;
        size_t size, allocated;
} Image;

static bool image_make_room(Image *image) {
        size_t allocated = image->allocated > 0 ? 2 * image->allocated : UNPACKED_SIZE_MIN;
        uint8_t *data;

        if (image->size < image->allocated)
                return true;
        if (allocated > UNPACKED_SIZE_MAX)
                return false;
        data = realloc(image->data, allocated);
        if (!data)
                return false;
        image->data = data;
        image->allocated = allocated;
        return true;
}

static bool unpack(lzma_stream *stream, Image *image) {
        for (;;) {
                lzma_ret r;

                if (!image_make_room(image))
                        return false;
                stream->next_out = image->data + image->size;
                stream->avail_out = image->allocated - image->size;
                r = lzma_code(stream, LZMA_FINISH);
                image->size = image->allocated - stream->avail_out;
                if (r != LZMA_OK)
                        return r == LZMA_STREAM_END;
        }
}

static bool unpack_section(const Elf_Data *packed, Image *image) {
        lzma_stream stream = LZMA_STREAM_INIT;
        bool done = false;

        stream.next_in = packed->d_buf;
        stream.avail_in = packed->d_size;
        if (lzma_stream_decoder(&stream, MEMORY_MAX, 0) == LZMA_OK)
                done = unpack(&stream, image);
        lzma_end(&stream);
        return done;
}

static bool is_for_this_machine(Elf *elf) {
        GElf_Ehdr header;

        return elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) &&
               machine_is_own(header.e_ident, header.e_machine);
}

bool mini_debug_open(Elf *elf, Elf **ret, void **ret_image) {
        Image image = {};
        GElf_Shdr header;
        Elf_Data *packed;
        Elf *mini = NULL;

        packed = section_data(section_find_named(elf, ".gnu_debugdata", &header), PACKED_SIZE_MAX);
        if (packed && unpack_section(packed, &image))
                mini = elf_memory((char *) image.data, image.size);
        if (!mini || !is_for_this_machine(mini)) {
                if (mini)
                        (void) elf_end(mini);
                free(image.data);
                return false;
        }
        *ret = mini;
        *ret_image = image.data;
        return true;
}
