/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef ELF_LINE_PROGRAM_H
#define ELF_LINE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Can libdw be given that table of .debug_line, which begins there, with at most so many bytes? Its
 * program is walked through: it must be as any reader understands it, and may define no files
 * beside those of the table's header, of which libdw (0.192) takes the directory for granted.
 */
bool line_program_is_plain(const void *table, size_t size);

#endif
