/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <json-c/json.h>
#include <stdbool.h>

#include "options.h"
#include "pager.h"

/*
 * Standard output: JSON for programs; tables, and sheets of one field a line, for people. Both are
 * made from the same objects. The functions return 0 or -ENOMEM.
 */

typedef enum FieldKind {
        FIELD_TEXT,
        FIELD_RIGHT,    /* text, to the right */
        FIELD_WRAPPED,  /* text that takes several lines where a table is wider than the terminal */
        FIELD_OPTIONAL, /* the same; a column that is empty in all lines is left out */
        FIELD_COUNT,
        FIELD_PROBLEM,  /* a count that stands out unless it is 0 */
        FIELD_DURATION, /* rounded */
        FIELD_BUDGET,   /* exact; null is infinity */
        FIELD_OFFSET,
        FIELD_STATE,
        FIELD_LIST,     /* of words */
        FIELD_LINES,    /* of sentences, one a line; for sheets */
        FIELD_COUNTERS, /* an object of counts, one a line; for sheets */
        FIELD_LOSSES,   /* the same, without those that are 0 */
} FieldKind;

/* One column of a table, or one line of a sheet. */
typedef struct Field {
        const char *key; /* of the object; NULL after the last field */
        const char *title;
        FieldKind kind;
} Field;

typedef struct Output {
        JsonMode json;
        bool legend;
        bool colors;
        unsigned width; /* of the terminal; 0: unlimited */
        bool pager_wanted;
        Pager pager;
        bool separate; /* the next sheet is not the first */
        int error;     /* why something could not be written; 0: all of it could be */
} Output;

void output_init(Output *output, const Options *options);

/* Writes what was held back, where there is no pager. Returns 0, or a negative errno as below. */
int output_flush(Output *output);

/* Waits for the pager. Returns 0, or a negative errno when something could not be written. */
int output_done(Output *output);

/* Before anything is written: the output may go to a pager. */
void output_begin(Output *output);

/* Writes one JSON text and a newline. */
int output_json(Output *output, json_object *value);

/* Writes an array of objects, with a total of so many "noun"s below. */
int output_table(Output *output, const Field *fields, json_object *rows, const char *noun);

/* Writes one object. Fields that it does not have, or that are empty, are left out. */
int output_sheet(Output *output, const char *title, const Field *fields, const json_object *object);

#endif
