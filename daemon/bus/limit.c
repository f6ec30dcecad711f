/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What others may cost us on the bus. Two limits:
 *
 * - Messages of ours that the bus does not take are kept by sd-bus, without any bound that would
 * help: it gives up at 196608 messages. They pile up when a client does not read: the bus keeps
 * some of them for it, and then reads nothing more from us. While they do, calls get no answer but
 * an error, and in the end not even that; signals go out until there are too many, those about
 * reports before others. Nobody tells how large an answer is, nor which of them have been sent:
 * that is estimated, and no more is answered than fits.
 *
 * - A caller may keep the daemon busy for a quarter of the time, and for a second in between: a
 * user, however many connections he has. What takes longer at once counts as two seconds at most:
 * it may be that programs were loaded for it. Calls of owners (bus_is_owner()) that change
 * something are left out; those of others are not as long as they have not been authorised, and
 * then they are.
 *
 * What was not sent is counted. Nothing is decided here about reports: those that were not sent are
 * in the journal.
 */

#include "base/clock.h"
#include "base/sentence.h"
#include "bus/internal.h"
#include "log.h"
#include "tlob-bus.h"

#define QUEUE_IS_LONG      64    /* messages: more than are there while the bus is well */
#define QUEUE_MAX          16384 /* small ones */
#define QUEUE_REPORTS_MAX  1024  /* reports in it leave room for answers */
#define STALLED_AFTER_USEC UINT64_C(1000000)

#define STRING_MAX 4096 /* bytes: more than any name that is used here */

#define ANSWERS_MAX (UINT64_C(16) << 20) /* bytes that wait */
/* The message bus ends the connection of whoever sends it one that is too long (32 MiB). */
#define ANSWER_MAX        (UINT64_C(24) << 20)
#define ANSWER_SIZE       1024 /* of a binding or violation in a list */
#define ANSWER_SIZE_WHOLE 4096 /* of a binding with all its properties, and of all other answers */
#define ANSWER_SIZE_BOOKS 8192 /* of the lengths of an active one's windows, in addition */

#define CALLER_USEC  INT64_C(1000000)
#define CALLER_SHARE 4 /* one in so many */

/* How many messages the bus has not taken yet. */
static uint64_t queue_length(const Bus *bus) {
        uint64_t n;

        return sd_bus_get_n_queued_write(bus->bus, &n) < 0 ? 0 : n;
}

/*
 * Has the queue been long for a while, and has not become shorter? It is looked at for each message
 * that goes through here. A bus that is merely slow takes some of it all the time.
 */
static bool queue_is_stalled(Bus *bus, uint64_t length) {
        BusLimits *limits = &bus->limits;
        uint64_t now = now_usec(), before = limits->length;

        limits->length = length;
        if (length == 0)
                limits->unsent_answers = 0;
        else if (length < before)
                limits->unsent_answers = limits->unsent_answers * length / before;
        if (length <= QUEUE_IS_LONG) {
                limits->long_since_usec = 0;
                limits->stall_is_logged = false;
                return false;
        }
        if (limits->long_since_usec == 0 || length < before)
                limits->long_since_usec = now;
        if (now - limits->long_since_usec < STALLED_AFTER_USEC && length < QUEUE_MAX)
                return false;
        if (!limits->stall_is_logged)
                log_warning(
                        "The message bus accepts no messages; perhaps a client does not read its "
                        "own. Calls are refused until it does.");
        limits->stall_is_logged = true;
        return true;
}

bool bus_has_room(Bus *bus, bool for_report) {
        uint64_t length = queue_length(bus);

        (void) queue_is_stalled(bus, length);
        if (length < (for_report ? QUEUE_REPORTS_MAX : QUEUE_MAX))
                return true;
        bus->limits.n_unsent++;
        return false;
}

/* Those that ask for authorisation. */
static bool is_change(sd_bus_message *m) {
        static const char *const members[] = { "AddBinding", "RemoveBinding",   "SetBudget",
                                               "Reload",     "ResetStatistics", "Remove" };
        const char *interface = sd_bus_message_get_interface(m);

        /* Without one, the first that has the member is called. */
        if (interface && !streq(interface, TLOB_BUS_MANAGER_INTERFACE) &&
            !streq(interface, TLOB_BUS_BINDING_INTERFACE))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(members); i++)
                if (streq_empty(sd_bus_message_get_member(m), members[i]))
                        return true;
        return false;
}

static bool has_name(const char *name, const char *wanted) {
        return name && streq(name, wanted);
}

/* Of an owner each connection counts by itself: the programs have nothing to do with each other. */
static char *make_caller_name(Bus *bus, sd_bus_message *m, const char *client, bool *ret_is_owner) {
        uid_t user;

        *ret_is_owner = false;
        /* It has gone already. */
        if (bus_get_sender(bus, m, &user, NULL) < 0)
                return strdup("nobody");
        *ret_is_owner = bus_is_owner(bus, user);
        return *ret_is_owner ? strdup(client) : sentence_make("user %u", user);
}

/* Who has called before everybody else makes room for a new one. NULL: no memory. */
static BusClient *find_client(Bus *bus, sd_bus_message *m, uint64_t now) {
        const char *name = sd_bus_message_get_sender(m) ?: "";
        _cleanup_free_ char *copy = NULL, *caller = NULL;
        BusClient *clients = bus->limits.clients, *oldest = &clients[0];
        bool is_owner = false;

        for (size_t i = 0; i < BUS_CLIENTS_MAX; i++) {
                if (has_name(clients[i].name, name))
                        return &clients[i];
                if (clients[i].since_usec < oldest->since_usec)
                        oldest = &clients[i];
        }
        copy = strdup(name);
        caller = make_caller_name(bus, m, name, &is_owner);
        if (!copy || !caller)
                return NULL;
        free(oldest->name);
        free(oldest->caller);
        *oldest = (BusClient) {
                .name = TAKE_PTR(copy),
                .caller = TAKE_PTR(caller),
                .is_owner = is_owner,
                .since_usec = now,
        };
        return oldest;
}

/* What it has not used comes back with time. */
static void refill(BusCaller *caller, uint64_t now) {
        caller->left_usec += (int64_t) ((now - caller->since_usec) / CALLER_SHARE);
        if (caller->left_usec > CALLER_USEC)
                caller->left_usec = CALLER_USEC;
        caller->since_usec = now;
}

/* As find_client(), with what has come back to it. */
static BusCaller *find_caller(Bus *bus, const BusClient *client, uint64_t now) {
        BusCaller *callers = bus->limits.callers, *oldest = &callers[0];
        char *copy;

        for (size_t i = 0; i < BUS_CALLERS_MAX; i++) {
                if (has_name(callers[i].name, client->caller)) {
                        refill(&callers[i], now);
                        return &callers[i];
                }
                if (callers[i].since_usec < oldest->since_usec)
                        oldest = &callers[i];
        }
        copy = strdup(client->caller);
        if (!copy)
                return NULL;
        free(oldest->name);
        *oldest = (BusCaller) { .name = copy, .left_usec = CALLER_USEC, .since_usec = now };
        return oldest;
}

static int refuse(Bus *bus, sd_bus_message *m, uint64_t length, const char *sentence) {
        bus->limits.n_refused++;
        if (length < QUEUE_MAX)
                (void) sd_bus_reply_method_errorf(m, SD_BUS_ERROR_LIMITS_EXCEEDED, "%s", sentence);
        return 1;
}

/*
 * Is a name in it, or its path, so long that it cannot be meant? An error would repeat it, and the
 * message bus ends the connection of whoever sends it a message that is too long.
 */
static bool is_too_long(sd_bus_message *m) {
        const char *path = sd_bus_message_get_path(m), *string;
        size_t n = path ? strlen(path) : 0;
        char type;

        while (n <= STRING_MAX && sd_bus_message_peek_type(m, &type, NULL) > 0 && type == 's' &&
               sd_bus_message_read(m, "s", &string) > 0)
                n = strlen(string);
        (void) sd_bus_message_rewind(m, true);
        return n > STRING_MAX;
}

/* About how many bytes the answer will have. */
static uint64_t estimate_answer(const Bus *bus, sd_bus_message *m) {
        const char *member = sd_bus_message_get_member(m) ?: "";
        uint64_t n_bindings = manager_bindings(bus->manager)->n, n_violations;

        if (streq(member, "GetViolations")) {
                n_violations = manager_count_violations(bus->manager);
                return n_violations < BUS_ANSWER_SIZE_MAX / ANSWER_SIZE
                               ? ANSWER_SIZE * (1 + n_violations)
                               : BUS_ANSWER_SIZE_MAX;
        }
        if (streq(member, "GetManagedObjects"))
                return ANSWER_SIZE_WHOLE * (1 + n_bindings) +
                       ANSWER_SIZE_BOOKS *
                               binding_table_count(manager_bindings(bus->manager), BINDING_ACTIVE);
        if (streq(member, "ListBindings") || streq(member, "Introspect"))
                return ANSWER_SIZE * (1 + n_bindings);
        return ANSWER_SIZE_WHOLE;
}

/* That it has heard what it was told, or else it is told no more. It costs next to nothing. */
static bool is_acknowledgement(sd_bus_message *m) {
        return sd_bus_message_is_method_call(m, TLOB_BUS_LENDER_INTERFACE, "Heard") > 0 &&
               sd_bus_message_get_expect_reply(m) == 0;
}

/* For each message that comes, before anybody else sees it. Returns 1 if that is all. */
static int on_message(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        Bus *bus = userdata;
        uint64_t length, size, now = now_usec();
        bool changes = is_change(m);
        const BusClient *client;
        BusCaller *caller;

        if (!sd_bus_message_is_method_call(m, NULL, NULL))
                return 0;
        /* All that is left to do is to send what is there. */
        if (bus->limits.closing)
                return 1;
        if (is_acknowledgement(m))
                return 0;

        length = queue_length(bus);
        if (queue_is_stalled(bus, length))
                return refuse(bus, m, length,
                              "The message bus accepts no replies from tlobd; "
                              "try again later");
        if (is_too_long(m))
                return refuse(bus, m, length, "A path or string in this call is too long");
        size = changes ? 0 : estimate_answer(bus, m);
        if (size > ANSWER_MAX)
                return refuse(bus, m, length,
                              "There are too many bindings for one reply; ask for those that are "
                              "meant, by their names");
        if (!changes && length > 0 && bus->limits.unsent_answers + size > ANSWERS_MAX)
                return refuse(bus, m, length,
                              "Too many replies from tlobd wait to be read; try again later");
        client = find_client(bus, m, now);
        if (!client || (changes && client->is_owner))
                return 0;
        caller = find_caller(bus, client, now);
        if (!caller)
                return 0;
        if (caller->left_usec <= 0)
                return refuse(bus, m, length,
                              "You have kept tlobd busy for too long; ask again in some seconds");
        bus->limits.unsent_answers += size;
        bus->limits.caller = caller;
        return 0;
}

void bus_limits_resume(Bus *bus, sd_bus_message *m) {
        uint64_t now = now_usec();
        const BusClient *client;

        bus_after_event(bus);
        client = is_change(m) ? NULL : find_client(bus, m, now);
        bus->limits.caller = client ? find_caller(bus, client, now) : NULL;
}

void bus_after_event(void *userdata) {
        Bus *bus = userdata;
        BusCaller *caller = bus->limits.caller;

        bus->books_of = NULL;
        if (!caller)
                return;
        caller->left_usec -= (int64_t) (now_usec() - caller->since_usec);
        if (caller->left_usec < -CALLER_USEC)
                caller->left_usec = -CALLER_USEC;
        bus->limits.caller = NULL;
}

int bus_limits_start(Bus *bus) {
        return sd_bus_add_filter(bus->bus, NULL, on_message, bus);
}

void bus_limits_done(Bus *bus) {
        for (size_t i = 0; i < BUS_CLIENTS_MAX; i++) {
                free(bus->limits.clients[i].name);
                free(bus->limits.clients[i].caller);
        }
        for (size_t i = 0; i < BUS_CALLERS_MAX; i++)
                free(bus->limits.callers[i].name);
}

BusUnsent bus_get_unsent(const Bus *bus) {
        return (BusUnsent) { .signals = bus->limits.n_unsent, .answers = bus->limits.n_refused };
}
