/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * May that user's tlobd have his own units measured? polkit says so, of the process that has
 * connected: its user is the kernel's word, and its beginning tells it from a later one of the same
 * id. Nobody can be asked for a password: a service has no terminal. Where there is no polkit, the
 * answer is no.
 */

#include <inttypes.h>

#include "log.h"
#include "tenant/internal.h"
#include "tlob-bus.h"

#define POLKIT_TIMEOUT_USEC (10 * UINT64_C(1000000))

/* In ticks since boot, as polkit counts. Returns 0 or a negative errno. */
static int read_start_time(pid_t pid, uint64_t *ret) {
        char path[32], line[1024];
        _cleanup_fclose_ FILE *f = NULL;
        const char *end;

        (void) snprintf(path, sizeof(path), "/proc/%i/stat", (int) pid);
        f = fopen(path, "re");
        if (!f)
                return -errno;
        if (!fgets(line, sizeof(line), f))
                return -ESRCH;
        /* The second field is its name, which can be anything. */
        end = strrchr(line, ')');
        if (!end || sscanf(end + 1,
                           " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                           "%*s %*s %" SCNu64,
                           ret) != 1)
                return -EBADMSG;
        return 0;
}

/* Once: anybody can connect as often as he likes. */
static void complain(const Tenant *tenant, const char *why) {
        if (!tenant->tenants->has_complained)
                log_notice(
                        "polkit cannot tell whether users may have their own units measured: %s.",
                        why);
        tenant->tenants->has_complained = true;
}

static int on_answer(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
        Tenant *tenant = userdata;
        int may = 0;

        tenant->asking = sd_bus_slot_unref(tenant->asking);
        if (sd_bus_message_is_method_error(reply, NULL))
                complain(tenant, sd_bus_message_get_error(reply)->message);
        else if (sd_bus_message_enter_container(reply, 'r', "bba{ss}") < 0 ||
                 sd_bus_message_read(reply, "b", &may) < 0)
                may = 0;
        tenant_decided(tenant, may);
        return 0;
}

int tenant_ask(Tenant *tenant) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        sd_bus *bus = tenant->tenants->asking;
        uint64_t start_time;
        int r;

        r = read_start_time(tenant->pid, &start_time);
        if (r < 0)
                return r;
        r = sd_bus_message_new_method_call(
                bus, &m, "org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority",
                "org.freedesktop.PolicyKit1.Authority", "CheckAuthorization");
        if (r < 0)
                return r;
        r = sd_bus_message_append(m, "(sa{sv})sa{ss}us", "unix-process", 3, "pid", "u",
                                  (uint32_t) tenant->pid, "start-time", "t", start_time, "uid", "i",
                                  (int32_t) tenant->user, TLOB_ACTION_MEASURE_OWN_UNITS, 0, 0U, "");
        if (r < 0)
                return r;
        return sd_bus_call_async(bus, &tenant->asking, m, on_answer, tenant, POLKIT_TIMEOUT_USEC);
}
