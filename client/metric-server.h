/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef METRIC_SERVER_H
#define METRIC_SERVER_H

#include "verbs.h"

/*
 * Answers io.systemd.Metrics on the socket that systemd has passed, until nobody has asked for some
 * time. Returns 0, or a negative errno after it has said what is wrong.
 */
int metric_server_run(Client *client);

#endif
