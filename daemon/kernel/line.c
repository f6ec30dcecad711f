/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Reads what the kernel's tlob monitor says of its bindings:
 *
 *     p /usr/bin/myapp:0x12a0 0x12f0 threshold=5000000
 *     p:tlobd_1 /usr/bin/myapp:0x12a0 0x12f0 threshold=5000000
 *
 * This module owns the text and nothing else. A line that it does not understand is kept as it is:
 * it is somebody else's. Paths have no blanks, because the monitor takes none that have; they may
 * have colons, and the last one counts.
 */

#include "kernel/line.h"

#include <ctype.h>

#define THRESHOLD " threshold="

/* A number that begins at *s and is followed by end; *s moves past it. */
static bool parse_number(const char **s, int base, char end, uint64_t *ret) {
        const char *digits = *s;
        unsigned long long n;
        char *p;

        if (base == 16) {
                if (strncmp(digits, "0x", 2) != 0)
                        return false;
                digits += 2;
        }
        if (!isxdigit((unsigned char) *digits))
                return false;
        errno = 0;
        n = strtoull(digits, &p, base);
        if (errno != 0 || *p != end)
                return false;
        *s = p;
        *ret = n;
        return true;
}

static bool parse_numbers(const char *s, KernelLine *line) {
        if (!parse_number(&s, 16, ' ', &line->start))
                return false;
        s++;
        if (!parse_number(&s, 16, ' ', &line->stop) ||
            strncmp(s, THRESHOLD, strlen(THRESHOLD)) != 0)
                return false;
        s += strlen(THRESHOLD);
        return parse_number(&s, 10, '\0', &line->threshold);
}

/* "p" or "p:NAME", so many bytes of it. Returns 1, 0 if it is neither, or -ENOMEM. */
static int parse_name(KernelLine *line, size_t length) {
        if (length == 1 && line->text[0] == 'p')
                return 1;
        if (length < 3 || strncmp(line->text, "p:", 2) != 0)
                return 0;
        line->name = strndup(line->text + 2, length - 2);
        return line->name ? 1 : -ENOMEM;
}

/* Fills in what line->text says; path stays NULL if it makes no sense. Returns 0 or -ENOMEM. */
static int line_parse(KernelLine *line) {
        const char *place = line->text + strcspn(line->text, " "), *colon;
        size_t length;
        int r;

        if (strncmp(place, " /", 2) != 0)
                return 0;
        r = parse_name(line, (size_t) (place - line->text));
        if (r <= 0)
                return r;
        place++;
        length = strcspn(place, " ");
        colon = memrchr(place, ':', length);
        if (!colon || !parse_numbers(colon + 1, line))
                return 0;
        line->path = strndup(place, (size_t) (colon - place));
        return line->path ? 0 : -ENOMEM;
}

int kernel_lines_add(KernelLines *lines, const char *text, size_t length) {
        KernelLine *items;

        items = reallocarray(lines->items, lines->n + 1, sizeof(*items));
        if (!items)
                return -ENOMEM;
        lines->items = items;
        items[lines->n] = (KernelLine) { .text = strndup(text, length) };
        if (!items[lines->n].text)
                return -ENOMEM;
        return line_parse(&items[lines->n++]);
}

int kernel_lines_parse(const char *text, KernelLines *ret) {
        _cleanup_(kernel_lines_done) KernelLines lines = {};

        while (*text) {
                size_t length = strcspn(text, "\n");
                int r;

                if (length > 0) {
                        r = kernel_lines_add(&lines, text, length);
                        if (r < 0)
                                return r;
                }
                text += length;
                text += *text == '\n';
        }
        *ret = lines;
        lines = (KernelLines) {};
        return 0;
}

void kernel_line_done(KernelLine *line) {
        free(line->text);
        free(line->path);
        free(line->name);
        *line = (KernelLine) {};
}

void kernel_lines_done(KernelLines *lines) {
        for (size_t i = 0; i < lines->n; i++)
                kernel_line_done(&lines->items[i]);
        free(lines->items);
        *lines = (KernelLines) {};
}

bool kernel_line_equal(const KernelLine *a, const KernelLine *b) {
        return a->path && b->path && streq(a->path, b->path) && streq_empty(a->name, b->name) &&
               a->start == b->start && a->stop == b->stop && a->threshold == b->threshold;
}

const KernelLine *kernel_lines_find(const KernelLines *lines, const KernelLine *line) {
        for (size_t i = 0; i < lines->n; i++)
                if (kernel_line_equal(&lines->items[i], line))
                        return &lines->items[i];
        return NULL;
}
