/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef FAKE_SYSTEMD_H
#define FAKE_SYSTEMD_H

#include <systemd/sd-bus.h>

/* Becomes systemd on that bus, too. Returns 0 or a negative errno. */
int fake_systemd_start(sd_bus *bus);

#endif
