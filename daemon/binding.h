/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef BINDING_H
#define BINDING_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"
#include "elf-file.h"
#include "tlob-record.h"

/* A pair of probes with a budget: what an administrator wrote, and what became of it. */

#define BINDING_NAME_MAX 40

#define BUDGET_MIN_NS UINT64_C(1000)
#define BUDGET_MAX_NS UINT64_C(3600000000000)
#define BUDGET_NONE   UINT64_MAX

typedef enum BindingState {
        BINDING_ACTIVE,   /* its probes are set */
        BINDING_WAITING,  /* its unit does not run */
        BINDING_DISABLED, /* Enabled=no */
        BINDING_FAILED,   /* see state_reason */
} BindingState;

typedef enum BackendChoice {
        BACKEND_CHOICE_AUTO,
        BACKEND_CHOICE_KERNEL,
        BACKEND_CHOICE_BPF,
} BackendChoice;

struct Backend;

typedef struct Binding {
        /* As configured. Strings are owned, and NULL when not set. */
        char *name; /* full name */
        char *unit;
        char *executable;
        char *start;
        char *stop; /* "return", or as start */
        uint64_t configured_budget_ns[TLOB_N_BUDGETS];
        BackendChoice choice;
        int priority; /* syslog's */
        bool required;
        bool enabled;

        char *source; /* the first "file:line" that defines it */
        char *error;  /* "file:line: sentence" for the first bad value, NULL if there is none */
        const char *error_key; /* the key with the bad value; static */

        /* What holds: the configured budgets, or those of SetBudget(). BUDGET_NONE: not limited. */
        uint64_t budget_ns[TLOB_N_BUDGETS];

        /* As resolved, while it is active or waiting. */
        char *path; /* of the executable or library */
        char *build_id;
        ElfSite start_site;
        ElfSite stop_site;  /* unused when the stop is the return */
        uint64_t cgroup_id; /* of the unit; 0: confined to none */
        unsigned cgroup_level;

        BindingState state;
        char *state_reason;      /* a sentence, NULL if there is nothing to say */
        struct Backend *backend; /* not owned; NULL unless active */
        uint32_t backend_index;  /* the back end's own handle, valid with backend */
        uint64_t suppressed;     /* reports held back since the last one that was made */
} Binding;

int binding_new(const char *name, Binding **ret);
Binding *binding_free(Binding *binding);
DEFINE_CLEANUP(Binding, binding_free);

/* 1 to 40 letters, digits, '-', '_', '.', not beginning with '.'. */
bool binding_name_is_valid(const char *name);

bool binding_stop_is_return(const Binding *binding);

/* The budget that counts as "the" budget: the total one, else the smallest of a state's. */
uint64_t binding_budget_ns(const Binding *binding);

/* 0, or -ERANGE: infinity and 1 us to 1 h are allowed. */
int binding_check_budget(uint64_t ns);

/*
 * Sets one key of the contract from its text. An empty value resets the key to its default.
 * Returns 0, -ENOENT (no such key), -ENOMEM, or another negative errno for a bad value, with a
 * sentence in *ret_error that names key and value (without a file name).
 */
int binding_set_key(Binding *binding, const char *key, const char *value, char **ret_error);

/* The keys that binding_set_key() knows, NULL after the last; static. */
const char *const *binding_keys(void);

/*
 * Checks what can only be seen when all keys are there (Start= missing, stop = start ...).
 * Returns 0 or -EINVAL with a sentence in *ret_error.
 */
int binding_check(const Binding *binding, char **ret_error);

/*
 * Finds executable, symbols and offsets and fills in what is resolved. Changes nothing on failure.
 * Errors are those of elf_file_open() and elf_file_resolve(), with their sentence in *ret_error.
 * *ret_elf is the opened file, to set the probes with.
 */
int binding_resolve(Binding *binding, ElfFile **ret_elf, char **ret_error);

/* Takes on a new state; reason is copied, NULL for none. */
int binding_set_state(Binding *binding, BindingState state, const char *reason);

/* True if two bindings of the same name measure the same: only budgets, priority and the like differ. */
bool binding_same_probes(const Binding *a, const Binding *b);

const char *binding_state_to_string(BindingState state);
const char *backend_choice_to_string(BackendChoice choice);
const char *budget_to_string(enum tlob_budget budget);

#endif
