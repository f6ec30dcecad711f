/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "binding/binding.h"
#include "binding/table.h"

/*
 * tlobd.conf, bindings.d and overrides.d, read into a whole new Config. Nothing here touches the
 * running daemon: the manager swaps the result in when it is complete.
 */

/* The directories of the contract, highest precedence first, NULL after the last. */
extern const char *const config_directories[];

/* Sections with this word and a name define bindings in the files of units. */
#define CONFIG_UNIT_SECTION "X-Tlob"

/* What is wrong with a file, but stops nothing. */
typedef struct ConfigMessage {
        int level;  /* syslog's */
        char *text; /* "file:line: sentence" */
} ConfigMessage;

/* A budget that SetBudget() put in the place of the configured one. */
typedef struct ConfigOverride {
        char *name; /* full name of the binding */
        uint64_t budget_ns;
} ConfigOverride;

/* The best way of finding deadlines that may be used; see DeadlineMode on D-Bus. */
typedef enum DeadlineMode {
        DEADLINE_UPROBE,      /* the start arms a timer; with "auto" too */
        DEADLINE_FENTRY,      /* a tracing program arms it for the start */
        DEADLINE_SWITCH_TICK, /* the scheduler's hooks arm timers, and its tick looks */
} DeadlineMode;

typedef struct Config {
        /* [Daemon] */
        BackendChoice backend;
        DeadlineMode deadline_mode;
        uint64_t rate_limit_interval_ns;   /* 0: no limit */
        unsigned rate_limit_burst;         /* of one binding */
        unsigned overall_rate_limit_burst; /* of all */
        unsigned bindings_max;             /* bindings that can be active at once */
        unsigned bindings_per_user_max;    /* that a user other than root may add */
        unsigned user_bindings_max;        /* that the tlobd of one user can have; 0: nobody's */
        unsigned spare_instances; /* kept for instances that nobody knows yet, of each template */
        unsigned mark_pages_max;  /* processes that can share memory for their marks */
        unsigned tasks_max;       /* tasks that can be measured at once */
        size_t ring_buffer_size;  /* bytes, a power of two */
        unsigned violations_max;  /* kept for GetViolations() */
        unsigned cpu_limit;       /* what all probes may cost, in percent; see base/percent.h */

        BindingTable bindings; /* of bindings.d, with overrides applied; and what is put here */

        ConfigOverride *overrides; /* also of bindings that are not in bindings */
        size_t n_overrides;

        bool is_incomplete; /* something could not be read: what is in it is not known */
        ConfigMessage *messages;
        size_t n_messages;
        size_t n_more_messages; /* that there was no room for */
} Config;

typedef enum ConfigFileKind {
        CONFIG_FILE_DAEMON,    /* tlobd.conf */
        CONFIG_FILE_BINDINGS,  /* bindings.d */
        CONFIG_FILE_OVERRIDES, /* overrides.d */
} ConfigFileKind;

/* Every key at its default, no bindings. */
int config_new(Config **ret);

/* Reads text on top of what config has, as if it were the contents of file. */
int config_parse(Config *config, ConfigFileKind kind, const char *file, const char *text,
                 size_t size);

/*
 * Reads everything below directories (config_directories, unless it is a test). Fails only for want
 * of memory; all else ends as a message, or as a binding with an error. Overrides are read from the
 * first two directories only, and those of the second (/run) win.
 */
int config_load(const char *const *directories, Config **ret);
Config *config_free(Config *config);
DEFINE_CLEANUP(Config, config_free);

/*
 * What a file is by its path: tlobd.conf, and one in a directory tlobd.conf.d, is the daemon's, any
 * other one has bindings.
 */
ConfigFileKind config_file_kind(const char *path);

/*
 * Reads one file of that kind, for "tlobctl verify FILE". -ENOENT and the like when it cannot be
 * read.
 */
int config_load_file(const char *path, ConfigFileKind kind, Config **ret);

/*
 * Reads the sections [X-Tlob NAME] of a unit, on top of what config has: call it for each of its
 * files, in systemd's order. Bindings get the full name UNIT/NAME. Overrides are not applied.
 * Fails only for want of memory; a file that vanished has no sections.
 */
int config_load_unit(Config *config, const char *unit, const char *file);

/* The same, from text, as if it were the contents of file. */
int config_parse_unit(Config *config, const char *unit, const char *file, const char *text,
                      size_t size);

/*
 * Gives a binding the budget that an override of config has for it, if there is one, and the window
 * could keep both that and BudgetMinSec=. Returns whether it did; and the same for every binding.
 */
bool config_override_budget(const Config *config, Binding *binding);
void config_apply_overrides(Config *config);

/* What the files of overrides say has changed. Returns 0 or -ENOMEM. */
int config_put_override(Config *config, const char *name, uint64_t budget_ns);
void config_forget_override(Config *config, const char *name);

/* True if there is an override for the binding of that full name. */
bool config_get_override(const Config *config, const char *name, uint64_t *ret_budget_ns);

/*
 * Sets one key of [Daemon] from its text; an empty value resets it. Returns 0, -ENOENT (no such
 * key), -ENOMEM, or another negative errno for a bad value, with a sentence in *ret_error.
 */
int config_set_key(Config *config, const char *key, const char *value, char **ret_error);

/* The keys that config_set_key() knows, NULL after the last; static. */
const char *const *config_keys(void);

/*
 * Writes DIRECTORY/bindings.d/tlobctl-NAME.conf with the keys of the binding that differ from their
 * default and the user who added it, at once or not at all, and makes it the binding's source. The
 * file is what RemoveBinding() takes away. Returns 0 or a negative errno.
 */
int config_write_binding(const char *directory, Binding *binding);

/*
 * Returns 1 if the file was there and is removed now, 0 if it was not there, or a negative errno.
 */
int config_remove_binding(const char *directory, const char *name);

/*
 * Writes or removes DIRECTORY/overrides.d/ESCAPED-NAME.conf: the budget that SetBudget() set. Those
 * below /run win over those below /etc. Removing what is not there is no error.
 */
int config_write_override(const char *directory, const char *name, uint64_t budget_ns);
int config_remove_override(const char *directory, const char *name);

#endif
