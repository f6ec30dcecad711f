/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * From the names that C++ and Rust compilers write into files to the names that people write, by
 * libiberty, which knows both of Rust's schemes besides that of C++ (the C++ runtime knows only the
 * latter) and is linked statically.
 *
 * A mangled name can refer to its own parts: ten letters more double the result, so that a name of
 * 300 bytes stands for gigabytes. libiberty hands over the result piece by piece, and there is only
 * one way to stop it: the jump out of its callback. It holds no memory then, but for Rust's names
 * with letters outside ASCII: these stay as they are.
 */

#include "base/mangled-name.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

typedef struct Writer {
        char *text;
        size_t n, size;
        jmp_buf full;
} Writer;

static void write_piece(const char *piece, size_t n, void *opaque) {
        Writer *writer = opaque;
        size_t room = writer->size - 1 - writer->n;

        /* It may be nowhere then. */
        if (n == 0)
                return;
        memcpy(writer->text + writer->n, piece, n < room ? n : room);
        writer->n += n < room ? n : room;
        if (n > room)
                longjmp(writer->full, 1);
}

/* "u7" in front of an identifier; also found where it means something else, which does no harm. */
static bool has_foreign_letters(const char *mangled) {
        for (const char *u = strchr(mangled, 'u'); u; u = strchr(u + 1, 'u'))
                if (isdigit((unsigned char) u[1]))
                        return true;
        return false;
}

static bool is_mangled(const char *name) {
        return strncmp(name, "_Z", 2) == 0 ||
               (strncmp(name, "_R", 2) == 0 && !has_foreign_letters(name));
}

/*
 * False if neither language knows the name. The setjmp() has a function of its own, whose variables
 * do not change.
 */
static bool decode(const char *mangled, int options, Writer *writer) {
        if (setjmp(writer->full) != 0)
                return true;
        return rust_demangle_callback(mangled, options, write_piece, writer) != 0 ||
               cplus_demangle_v3_callback(mangled, options, write_piece, writer) != 0;
}

bool mangled_name_decode(const char *mangled, bool arguments, char *text, size_t size) {
        Writer writer = { .text = text, .size = size };
        bool known;

        known = is_mangled(mangled) &&
                decode(mangled, arguments ? DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP : DMGL_NO_OPTS,
                       &writer);
        text[known ? writer.n : 0] = '\0';
        return known;
}

bool name_is_cold(const char *name) {
        const char *suffix = strstr(name, ".cold");

        return suffix && (suffix[5] == '\0' || suffix[5] == '.');
}

bool name_is_of_source(const char *name) {
        return strstr(name, "::") || strpbrk(name, "(<");
}
