/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MANAGER_INSTANCES_H
#define MANAGER_INSTANCES_H

#include "manager/templates.h"

/* What templates need done; userdata is the manager. */
extern const TemplatesHandlers manager_templates_handlers;

#endif
