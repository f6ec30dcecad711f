/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binding-table.h"
#include "binding.h"
#include "cleanup.h"

/*
 * tlobd.conf, bindings.d and overrides.d, read into a whole new Config. Nothing here touches the running
 * daemon: the manager swaps the result in when it is complete.
 */

/* The directories of the contract, highest precedence first, NULL after the last. */
extern const char *const config_directories[];

/* What is wrong with a file, but stops nothing. */
typedef struct ConfigMessage {
        int level;  /* syslog's */
        char *text; /* "file:line: sentence" */
} ConfigMessage;

typedef struct Config {
        /* [Daemon] */
        BackendChoice backend;
        uint64_t rate_limit_interval_ns; /* 0: no limit */
        unsigned rate_limit_burst;
        unsigned bindings_max;   /* bindings that can be active at once */
        unsigned tasks_max;      /* tasks that can be measured at once */
        size_t ring_buffer_size; /* bytes, a power of two */
        unsigned violations_max; /* kept for GetViolations() */

        BindingTable bindings;

        ConfigMessage *messages;
        size_t n_messages;
} Config;

/*
 * Reads everything below directories (config_directories, unless it is a test). Fails only for want
 * of memory; all else ends as a message, or as a binding with an error.
 */
int config_load(const char *const *directories, Config **ret);
Config *config_free(Config *config);
DEFINE_CLEANUP(Config, config_free);

/* Reads one file of bindings, for "tlobctl verify FILE". -ENOENT and the like when it cannot be read. */
int config_load_file(const char *path, Config **ret);

/*
 * Writes DIRECTORY/bindings.d/tlobctl-NAME.conf with the keys of the binding that differ from their default,
 * at once or not at all. The file is what RemoveBinding() takes away. Returns 0 or a negative errno.
 */
int config_write_binding(const char *directory, const Binding *binding);

/* Returns 1 if the file was there and is removed now, 0 if it was not there, or a negative errno. */
int config_remove_binding(const char *directory, const char *name);

/*
 * Writes or removes DIRECTORY/overrides.d/ESCAPED-NAME.conf: the budget that SetBudget() set. Those
 * below /run win over those below /etc. Removing what is not there is no error.
 */
int config_write_override(const char *directory, const char *name, uint64_t budget_ns);
int config_remove_override(const char *directory, const char *name);

#endif
