/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_H
#define BINDING_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cleanup.h"
#include "elf-file.h"
#include "histogram.h"
#include "tlob-record.h"
#include "violation.h"

/* A pair of probes with a budget: what an administrator wrote, and what became of it. */

#define BINDING_NAME_MAX  40
#define BINDING_UNIT_MAX  255
#define BINDING_VALUE_MAX 180 /* of a key, so that libinih can read back what is written */

#define BUDGET_MIN_NS UINT64_C(1000)
#define BUDGET_MAX_NS UINT64_C(3600000000000)
#define BUDGET_NONE   UINT64_MAX

typedef enum BindingState {
        BINDING_ACTIVE,   /* it measures */
        BINDING_WAITING,  /* its unit does not run; its probes are set if they can be */
        BINDING_DISABLED, /* Enabled=no */
        BINDING_FAILED,   /* see state_reason */
} BindingState;

typedef enum BackendChoice {
        BACKEND_CHOICE_AUTO,
        BACKEND_CHOICE_KERNEL,
        BACKEND_CHOICE_BPF,
} BackendChoice;

struct Backend;

/* A bad value that no later one has made good. */
typedef struct BindingError {
        const char *key; /* static */
        char *text;      /* "file:line: sentence" */
} BindingError;

typedef struct Binding {
        /* As configured. Strings are owned, and NULL when not set. */
        char *name; /* full name */
        char *unit;
        char *executable;
        char *start;
        char *stop; /* "return", or as start */
        uint64_t configured_budget_ns[TLOB_N_BUDGETS];
        unsigned budgets_given; /* bit mask over enum tlob_budget: also those given as "infinity" */
        BackendChoice choice;
        int priority; /* syslog's */
        bool required;
        bool enabled;

        char *source;      /* the first "file:line" that defines it */
        const char *error; /* the text of the first of errors, NULL if there is none */
        BindingError *errors;
        size_t n_errors;

        /* What holds: the configured budgets, or those of SetBudget(). BUDGET_NONE: not limited. */
        uint64_t budget_ns[TLOB_N_BUDGETS];

        /* Of its unit's ExecStart=, an absolute path; NULL if it is not known. */
        char *program;

        /* As resolved, while it is active or waiting. */
        char *path; /* of the executable or library */
        char *build_id;
        ElfSite start_site;
        ElfSite stop_site; /* unused when the stop is the return */
        dev_t device;      /* with inode: the file as it was */
        ino_t inode;
        uint64_t cgroup_id; /* of the unit; 0: confined to none, or it does not run */
        unsigned cgroup_level;
        char *cgroup_path; /* where the unit's cgroup is or will be; NULL: not known */
        unsigned spare; /* not 0: its unit only stands for an instance of a template, the first that
                            * comes and is not known. All bindings of one number go to the same one */

        BindingState state;
        char *state_reason;      /* a sentence, NULL if there is nothing to say */
        char *backend_reason;    /* why this back end; NULL unless its probes are set */
        struct Backend *backend; /* not owned; NULL unless its probes are set */
        uint32_t backend_index;  /* the back end's own handle, valid with backend */
        Statistics past;         /* from when its probes were set before */
        Histogram *past_lengths; /* the same; owned; NULL: there were no windows */

        /* Of the rate limit. */
        uint64_t rate_begin_ns;
        unsigned rate_count;
        uint64_t n_suppressed;           /* reports held back, ever */
        uint64_t suppressed;             /* reports held back since the last one that was made */
        uint64_t suppressed_unannounced; /* of these: since the last entry about it */
} Binding;

/* Takes a full name. Returns 0, -EINVAL (not a full name), -ENOMEM. */
int binding_new(const char *name, Binding **ret);
Binding *binding_free(Binding *binding);
DEFINE_CLEANUP(Binding, binding_free);

/* 1 to 40 letters, digits, '-', '_', '.', not beginning with '.'. */
bool binding_name_is_valid(const char *name);

/* A name, or UNIT/NAME. */
bool binding_full_name_is_valid(const char *name);

/* The name of a service (a template too), slice or scope. */
bool binding_unit_is_valid(const char *unit);

/* "foo@.service" */
bool unit_name_is_template(const char *name);

bool binding_stop_is_return(const Binding *binding);

/* The budget that counts as "the" budget: the total one, else the smallest of a state's. */
uint64_t binding_budget_ns(const Binding *binding);

/* 0, or -ERANGE: infinity and 1 us to 1 h are allowed. */
int binding_check_budget(uint64_t ns);

/*
 * Sets one key of the contract from its text. An empty value resets the key to its default. A
 * budget is both configured and what holds, until an override is put in its place. Returns 0,
 * -ENOENT (no such key), -ENOMEM, or another negative errno for a bad value, with a sentence in
 * *ret_error that names key and value (without a file name).
 */
int binding_set_key(Binding *binding, const char *key, const char *value, char **ret_error);

/*
 * A new binding with the same keys, of that unit and with its name in front, in the place of one of another
 * unit. Its errors are not copied.
 */
int binding_copy_for_unit(const Binding *binding, const char *unit, Binding **ret);

/* Is the same written of both, names and errors included? */
bool binding_same_configuration(const Binding *a, const Binding *b);

/* The name without the unit. */
const char *binding_own_name(const Binding *binding);

/* The keys that binding_set_key() knows, NULL after the last; static. */
const char *const *binding_keys(void);

/*
 * The text of a key as configured, for binding_set_key(). Returns 1, 0 (it has its default),
 * -ENOENT (no such key, or one that is short for others), -ENOMEM.
 */
int binding_get_key(const Binding *binding, const char *key, char **ret_value);

/*
 * Notes that the value of key is bad, or that it is good now. text is copied. Returns 0 or -ENOMEM.
 */
int binding_add_error(Binding *binding, const char *key, const char *text);
void binding_clear_error(Binding *binding, const char *key);

/*
 * Checks what can only be seen when all keys are there (Start= missing, stop = start ...).
 * Returns 0 or -EINVAL with a sentence in *ret_error.
 */
int binding_check(const Binding *binding, char **ret_error);

/*
 * True if it says nothing of an executable, and so takes the program of its unit; binding->program
 * must be set then to resolve it.
 */
bool binding_takes_program(const Binding *binding);

/*
 * Finds executable, symbols and offsets and fills in what is resolved. Changes nothing on failure.
 * Errors are those of elf_file_open() and elf_file_resolve(), with their sentence in *ret_error.
 * *ret_elf is the opened file, to set the probes with.
 */
int binding_resolve(Binding *binding, ElfFile **ret_elf, char **ret_error);

/* Is the file that it was resolved in still the one of that path? */
bool binding_file_is_current(const Binding *binding);

/* Takes on a new state; reason is copied, NULL for none. */
int binding_set_state(Binding *binding, BindingState state, const char *reason);

/*
 * True if two bindings of the same name measure the same: only budgets, priority and the like
 * differ. One that is disabled and one that is not do not.
 */
bool binding_same_probes(const Binding *a, const Binding *b);

/* Hands over what became of a binding to the one that takes its place: state, probes, rate limit. */
void binding_adopt(Binding *binding, Binding *from);

/* Adds to what was measured before. Returns 0 or -ENOMEM. */
int binding_keep_lengths(Binding *binding, const Histogram *lengths);

const char *binding_state_to_string(BindingState state);
int backend_choice_from_string(const char *s, BackendChoice *ret); /* -EINVAL */
const char *backend_choice_to_string(BackendChoice choice);

#endif
