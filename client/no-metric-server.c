/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where libsystemd has no sd-varlink, or it was not wanted. */

#include <err.h>
#include <errno.h>

#include "metric-server.h"

int metric_server_run(Client *client) {
        warnx("This tlobctl was built without Varlink, which needs systemd 257 or later");
        return -EOPNOTSUPP;
}
