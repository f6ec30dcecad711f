/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef CONFIG_INTERNAL_H
#define CONFIG_INTERNAL_H

#include "binding/keys.h"
#include "config/config.h"
#include "config/file.h"

/* In the files that tlobd writes: the user who added the binding, unless it is root. */
#define CONFIG_ADDED_BY "AddedBy"

/* What the config*.c files that read share. */

/* What is being read. */
typedef struct ConfigLoader {
        Config *config;
        const char *unit;                      /* whose files they are; NULL: not a unit's */
        Binding *binding;                      /* of this section, owned by config */
        PlaceKeys places;                      /* of this section */
        bool has_place_error;                  /* one of these keys of this section is wrong */
        char override[CONFIG_SECTION_MAX + 1]; /* the binding that this section is about */
} ConfigLoader;

/* "file:line: sentence", owned by the caller; NULL for want of memory. */
char *config_place_sentence(const ConfigPlace *place, const char *sentence);

/* Keeps a message. Returns 0 or -ENOMEM. */
int config_warn(ConfigLoader *loader, const ConfigPlace *place, const char *format, ...)
        _printf_(3, 4);

/* Warns of a section that is not known, unless it is one for others. */
int config_unknown_section(ConfigLoader *loader, const ConfigPlace *place, const char *section);

/* For ConfigHandlers: problems that are nothing more than a message. */
int config_on_problem(const ConfigPlace *place, const char *key, const char *sentence,
                      void *userdata);

/* What follows PREFIX and white space in a section's name; NULL if it is another section. */
const char *config_section_argument(const char *section, const char *prefix);

/* [Binding NAME], config/binding.c */
extern const ConfigHandlers config_binding_handlers;

/* [X-Tlob NAME] of loader->unit, config/binding.c */
extern const ConfigHandlers config_unit_handlers;

#endif
