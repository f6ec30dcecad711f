/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef PROPERTIES_H
#define PROPERTIES_H

#include <systemd/sd-bus.h>

#include "binding/binding.h"
#include "monitor-line.h"
#include "options.h"

/*
 * The properties of AddBinding() and Verify(): the keys of tlob.binding(5) with their text, as an
 * a{sv}, from where they can come from. All return 0 or a negative errno.
 */

/* From options, and a line of the kernel's monitor where there is one (else NULL). */
int properties_append_options(sd_bus_message *m, const Options *options, const MonitorLine *line);

/* From a binding that was read from a file. */
int properties_append_binding(sd_bus_message *m, const Binding *binding);

#endif
