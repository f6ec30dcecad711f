/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * org.tlob1.Lender at /org/tlob1, for the tlobd of users: what they say and are told, and who they
 * are; the rest is in the room tenant. A borrower is a connection. It may not read what it is told:
 * reports that it has not acknowledged are few, and those beyond are counted as lost.
 */

#include <limits.h>

#include "backend/wire.h"
#include "base/sentence.h"
#include "bus-packet.h"
#include "bus/internal.h"
#include "log.h"
#include "tenant/tenants.h"
#include "tlob-bus.h"

#define UNHEARD_MAX 128 /* reports */

typedef struct Borrower {
        struct Borrower *next;
        Bus *bus;
        char *name; /* of its connection */
        uid_t user;
        sd_bus_track *track;
        Tenant *tenant;
        unsigned n_unheard;
} Borrower;

struct BusLender {
        Tenants *tenants;
        Borrower *first;
        Packet packet;
};

static Borrower *borrower_free(Borrower *borrower) {
        if (!borrower)
                return NULL;

        for (Borrower **p = &borrower->bus->lender->first; *p; p = &(*p)->next)
                if (*p == borrower) {
                        *p = borrower->next;
                        break;
                }
        tenant_free(borrower->tenant);
        sd_bus_track_unref(borrower->track);
        free(borrower->name);
        free(borrower);
        return NULL;
}
DEFINE_CLEANUP(Borrower, borrower_free);

static int on_gone_away(sd_bus_track *track, void *userdata) {
        borrower_free(userdata);
        return 1;
}

/*
 * Whose errno the other side is to have again; but what a file has kept waiting is not to look as
 * if nobody had answered.
 */
static int fail(sd_bus_error *error, int r, const char *sentence) {
        return sd_bus_error_set_errnof(error, r == -ETIMEDOUT ? -EBUSY : r, "%s",
                                       sentence ?: strerror(-r));
}

static Borrower *find_borrower(const Bus *bus, sd_bus_message *m) {
        const char *sender = sd_bus_message_get_sender(m);

        for (Borrower *b = bus->lender->first; b; b = b->next)
                if (sender && streq(b->name, sender))
                        return b;
        return NULL;
}

/* Over the other connection, as the bus is waited for. */
static int watch(Borrower *borrower) {
        int r;

        r = sd_bus_track_new(borrower->bus->asking, &borrower->track, on_gone_away, borrower);
        return r < 0 ? r : sd_bus_track_add_name(borrower->track, borrower->name);
}

/* Those of that user whose end is not told yet: the bus knows. */
static void drop_gone(Bus *bus, uid_t user) {
        for (Borrower *b = bus->lender->first, *next; b; b = next) {
                next = b->next;
                if (b->user == user && sd_bus_get_name_creds(bus->asking, b->name, 0, NULL) < 0)
                        borrower_free(b);
        }
}

static int make_borrower(Bus *bus, sd_bus_message *m, Borrower **ret, char **ret_error) {
        _cleanup_(borrower_freep) Borrower *b = NULL;
        uid_t user;
        pid_t pid;
        int r;

        if (!bus->lender->tenants)
                return -ESHUTDOWN;
        /* Whoever has no name cannot be told anything. */
        if (!sd_bus_message_get_sender(m))
                return -EOPNOTSUPP;
        r = bus_get_sender(bus, m, &user, &pid);
        if (r < 0)
                return r;
        drop_gone(bus, user);
        b = calloc(1, sizeof(*b));
        if (!b)
                return -ENOMEM;
        b->bus = bus;
        b->user = user;
        b->name = strdup(sd_bus_message_get_sender(m));
        if (!b->name)
                return -ENOMEM;
        r = tenant_new(bus->lender->tenants, user, pid, b, &b->tenant, ret_error);
        if (r >= 0)
                r = watch(b);
        if (r < 0)
                return r;
        log_debug("The tlobd of user %u has bindings measured here.", user);
        b->next = bus->lender->first;
        bus->lender->first = b;
        *ret = TAKE_PTR(b);
        return 0;
}

static int method_lend(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(binding_freep) Binding *binding = NULL;
        _cleanup_free_ char *sentence = NULL;
        unsigned question = 0;
        Borrower *borrower;
        Bus *bus = userdata;
        Packet *packet = &bus->lender->packet;
        uint64_t version, id;
        uint32_t fd;
        int r;

        /* Not more than that is kept while polkit is asked. */
        r = sd_bus_message_read(m, "tt", &version, &id);
        if (r >= 0)
                r = bus_packet_read(m, packet);
        if (r >= 0)
                r = sd_bus_message_read(m, "u", &fd);
        if (r < 0)
                return fail(error, r, NULL);
        r = bus_authorize(bus, m, TLOB_ACTION_MEASURE_OWN_UNITS, method_lend, error);
        if (r <= 0)
                return r < 0 ? r : 1;
        if (version != WIRE_VERSION)
                return fail(error, -EPROTO,
                            "The system's tlobd is of another version: run 'systemctl --user "
                            "restart tlobd'");
        r = fd > INT_MAX ? -EBADF : wire_take_binding(packet, &binding);
        if (r >= 0 && !packet_is_good(packet))
                r = -EBADMSG;
        if (r < 0)
                return fail(error, r, NULL);

        borrower = find_borrower(bus, m);
        r = borrower ? 0 : make_borrower(bus, m, &borrower, &sentence);
        if (r >= 0)
                r = tenant_lend(borrower->tenant, id, TAKE_PTR(binding), (int) fd, &question,
                                &sentence);
        if (r == -EINPROGRESS && question > 0) {
                r = bus_wait_for_file(bus, m, question, method_lend);
                return r < 0 ? r : 1;
        }
        return r < 0 ? fail(error, r, sentence) : sd_bus_reply_method_return(m, NULL);
}

static int refuse(sd_bus_error *error) {
        return fail(error, -EACCES,
                    "Access denied: nothing is measured for this connection; call Lend() first");
}

/* What a call about a binding begins with: whose it is, and its number. */
static int begin(Bus *bus, sd_bus_message *m, Tenant **ret, uint64_t *ret_id, sd_bus_error *error) {
        const Borrower *borrower = find_borrower(bus, m);

        if (!borrower)
                return refuse(error);
        *ret = borrower->tenant;
        return sd_bus_message_read(m, "t", ret_id);
}

static int make_reply(Bus *bus, sd_bus_message *m, const Statistics *statistics,
                      const Histogram *lengths, sd_bus_message **ret) {
        Packet *packet = &bus->lender->packet;
        int r;

        packet_init(packet);
        wire_put_books(packet, statistics, lengths);
        r = sd_bus_message_new_method_return(m, ret);
        return r < 0 ? r : bus_packet_append(*ret, packet);
}

static int method_take_back(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        Tenant *tenant = NULL;
        Statistics final;
        Histogram lengths;
        uint64_t id;
        int r;

        r = begin(userdata, m, &tenant, &id, error);
        if (r < 0)
                return r;
        r = tenant_take_back(tenant, id, &final, &lengths);
        if (r < 0)
                return fail(error, r, NULL);
        r = make_reply(userdata, m, &final, &lengths, &reply);
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int method_get_books(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        Tenant *tenant = NULL;
        _cleanup_free_ char *reach = NULL;
        Statistics statistics;
        Histogram lengths;
        uint64_t id;
        int r;

        r = begin(userdata, m, &tenant, &id, error);
        if (r < 0)
                return r;
        r = tenant_get_books(tenant, id, &statistics, &lengths, &reach);
        if (r < 0)
                return fail(error, r, NULL);
        r = make_reply(userdata, m, &statistics, &lengths, &reply);
        if (r >= 0)
                r = sd_bus_message_append(reply, "s", reach ?: "");
        return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

static int method_set_running(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Tenant *tenant = NULL;
        _cleanup_free_ char *sentence = NULL;
        uint64_t id;
        int runs, r;

        r = begin(userdata, m, &tenant, &id, error);
        if (r >= 0)
                r = sd_bus_message_read(m, "b", &runs);
        if (r < 0)
                return r;
        r = tenant_set_running(tenant, id, runs, &sentence);
        return r < 0 ? fail(error, r, sentence) : sd_bus_reply_method_return(m, NULL);
}

static int method_set_budgets(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Tenant *tenant = NULL;
        uint64_t id, budget_ns[TLOB_N_BUDGETS];
        const void *numbers;
        size_t size;
        int r;

        r = begin(userdata, m, &tenant, &id, error);
        if (r >= 0)
                r = sd_bus_message_read_array(m, 't', &numbers, &size);
        if (r < 0)
                return r;
        if (size != sizeof(budget_ns))
                return fail(error, -EBADMSG, NULL);
        memcpy(budget_ns, numbers, sizeof(budget_ns));
        r = tenant_set_budgets(tenant, id, budget_ns);
        return r < 0 ? fail(error, r, NULL) : sd_bus_reply_method_return(m, NULL);
}

static int method_reset(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Tenant *tenant = NULL;
        uint64_t id;
        int r;

        r = begin(userdata, m, &tenant, &id, error);
        if (r < 0)
                return r;
        r = tenant_reset(tenant, id);
        return r < 0 ? fail(error, r, NULL) : sd_bus_reply_method_return(m, NULL);
}

static int method_heard(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Borrower *borrower = find_borrower(userdata, m);
        uint32_t n;
        int r;

        r = sd_bus_message_read(m, "u", &n);
        if (r < 0)
                return r;
        if (!borrower)
                return refuse(error);
        borrower->n_unheard -= n < borrower->n_unheard ? n : borrower->n_unheard;
        return sd_bus_reply_method_return(m, NULL);
}

static const sd_bus_vtable vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD_WITH_ARGS("Lend",
                                SD_BUS_ARGS("t", version, "t", id, "ay", binding, "u", file),
                                SD_BUS_NO_RESULT, method_lend, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("TakeBack", SD_BUS_ARGS("t", id), SD_BUS_RESULT("ay", books),
                                method_take_back, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("SetRunning", SD_BUS_ARGS("t", id, "b", running), SD_BUS_NO_RESULT,
                                method_set_running, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("SetBudgets", SD_BUS_ARGS("t", id, "at", budgets), SD_BUS_NO_RESULT,
                                method_set_budgets, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("GetBooks", SD_BUS_ARGS("t", id),
                                SD_BUS_RESULT("ay", books, "s", reach), method_get_books,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Reset", SD_BUS_ARGS("t", id), SD_BUS_NO_RESULT, method_reset,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_METHOD_WITH_ARGS("Heard", SD_BUS_ARGS("u", reports), SD_BUS_NO_RESULT, method_heard,
                                SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_SIGNAL_WITH_ARGS("Report", SD_BUS_ARGS("t", id, "ay", report, "t", lost), 0),
        SD_BUS_SIGNAL_WITH_ARGS("Gone", SD_BUS_ARGS("t", id, "ay", books, "b", for_good, "s", why),
                                0),
        SD_BUS_VTABLE_END,
};

/* For that borrower alone; behind the number of a binding. */
static int begin_signal(const Borrower *borrower, const char *member, uint64_t id,
                        sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_signal(borrower->bus->bus, &m, TLOB_BUS_PATH,
                                      TLOB_BUS_LENDER_INTERFACE, member);
        if (r >= 0)
                r = sd_bus_message_set_destination(m, borrower->name);
        if (r >= 0)
                r = sd_bus_message_append(m, "t", id);
        if (r >= 0)
                r = bus_packet_append(m, &borrower->bus->lender->packet);
        if (r >= 0)
                *ret = TAKE_PTR(m);
        return r;
}

static bool tell_report(uint64_t id, const Report *report, uint64_t lost, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        Borrower *borrower = userdata;
        Packet *packet = &borrower->bus->lender->packet;

        if (borrower->n_unheard >= UNHEARD_MAX || !bus_has_room(borrower->bus, true))
                return false;
        packet_init(packet);
        wire_put_report(packet, report);
        if (begin_signal(borrower, "Report", id, &m) < 0 ||
            sd_bus_message_append(m, "t", lost) < 0 || sd_bus_send(NULL, m, NULL) < 0)
                return false;
        borrower->n_unheard++;
        return true;
}

/* There are no more of these than the borrower may have bindings, and it asks for each of them. */
static void tell_gone(uint64_t id, const Statistics *final, const Histogram *lengths, bool for_good,
                      const char *why, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        const Borrower *borrower = userdata;
        Packet *packet = &borrower->bus->lender->packet;
        int r;

        packet_init(packet);
        wire_put_books(packet, final, lengths);
        r = begin_signal(borrower, "Gone", id, &m);
        if (r >= 0)
                r = sd_bus_message_append(m, "bs", for_good, why ?: "");
        if (r >= 0)
                r = sd_bus_send(NULL, m, NULL);
        if (r < 0)
                log_debug("Failed to tell the tlobd of a user that a binding is gone: %s.",
                          strerror(-r));
}

static const TenantHandlers handlers = {
        .report = tell_report,
        .gone = tell_gone,
};

int bus_lender_start(Bus *bus) {
        int r;

        bus->lender = calloc(1, sizeof(*bus->lender));
        if (!bus->lender)
                return -ENOMEM;
        r = tenants_new(bus->manager, &handlers, &bus->lender->tenants);
        return r < 0 ? r
                     : sd_bus_add_object_vtable(bus->bus, NULL, TLOB_BUS_PATH,
                                                TLOB_BUS_LENDER_INTERFACE, vtable, bus);
}

void bus_end_lending(Bus *bus) {
        if (!bus || !bus->lender)
                return;
        /* They are told first. */
        bus->lender->tenants = tenants_free(bus->lender->tenants);
        while (bus->lender->first) {
                bus->lender->first->tenant = NULL;
                borrower_free(bus->lender->first);
        }
}

void bus_lender_done(Bus *bus) {
        bus_end_lending(bus);
        free(bus->lender);
        bus->lender = NULL;
}
