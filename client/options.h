/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/runtime-scope.h"
#include "top/rows.h"

/*
 * The command line's options: one table for parsing, for the help, and for which verb takes which.
 */

/* Which verbs an option is for: those of GROUP_GENERAL are for all. */
typedef enum OptionGroup {
        GROUP_GENERAL,
        GROUP_ALL,
        GROUP_LINES,
        GROUP_UNIT,
        GROUP_BINDING,
        GROUP_LIBRARIES,
        GROUP_TIME,
        GROUP_TOP,
        GROUP_CHECK,
        GROUP_SINCE,
        GROUP_PLOT,
        GROUP_OUTPUT,
        GROUP_VARLINK,
        GROUP_PERSIST,
        GROUP_KEYS,
        N_OPTION_GROUPS,
} OptionGroup;

#define TAKES(group) (1U << (group))

typedef enum JsonMode {
        JSON_OFF,
        JSON_SHORT,
        JSON_PRETTY,
} JsonMode;

/* A key of tlob.binding(5), given as an option. */
typedef struct KeyValue {
        const char *key;   /* static */
        const char *value; /* NULL: not given */
} KeyValue;

#define OPTION_KEYS_N 20

#define DELAY_MIN_NS UINT64_C(100000000) /* of top */
#define DELAY_MAX_NS UINT64_C(3600000000000)

/* Strings belong to the command line. */
typedef struct Options {
        bool help;
        bool version;
        JsonMode json;
        bool legend;
        bool pager;
        bool ask_password;
        bool user;           /* not the system's tlobd */
        const char *host;    /* NULL: this machine */
        const char *machine; /* NULL: not a container */
        char scope[512];     /* those three again, for options_scope_text() */

        bool all;
        bool persist;
        bool libraries;
        uint32_t lines;    /* 0: no limit */
        uint64_t time_ns;  /* of --for=; 0: not given */
        uint64_t delay_ns; /* 0: not given */
        SortKey sort;
        bool quiet;
        bool svg;
        unsigned per_mille;    /* of --percentile=; 0: not given */
        uint64_t since_usec;   /* CLOCK_REALTIME; 0: not given */
        const char *directory; /* of journal files; NULL: not given */
        const char *output;    /* a file; NULL: not given */
        bool varlink;
        bool units;
        bool batch;
        const char *unit;    /* NULL: not given */
        const char *binding; /* NULL: not given */
        KeyValue keys[OPTION_KEYS_N];

        const char *given[N_OPTION_GROUPS]; /* name of the last option given of each group */
} Options;

/*
 * Parses the options and moves the other arguments to the end; *ret_first is the first of those.
 * Returns 0, or -EINVAL after it has said what is wrong.
 */
int options_parse(Options *options, int argc, char **argv, int *ret_first);

/* Which tlobd is meant; and the option for that, after a blank, for commands in sentences. */
RuntimeScope options_scope(const Options *options);
const char *options_scope_text(const Options *options);

/*
 * Checks that a verb takes the options that were given; takes is made of TAKES(). Returns 0, or
 * -EINVAL after it has said which one does not belong.
 */
int options_check(const Options *options, const char *verb, unsigned takes);

/* The value that was given for a key of a binding, other than Unit=; NULL if none was. */
const char *options_get_key(const Options *options, const char *key);

/* True if any such key was given. */
bool options_has_keys(const Options *options);

/* Writes what the help says of the options of these groups. */
void options_print_help(unsigned takes);

#define TAKES_ANY (TAKES(N_OPTION_GROUPS) - 1)

#endif
