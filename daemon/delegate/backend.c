/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The back end of a user's tlobd, which has no rights to measure anything: the system's tlobd does,
 * on request, as far as polkit lets it (daemon/tenant). Here is only what to ask, and what was
 * asked for: when that one ends, bindings wait, and are asked for again once it is back. What they
 * have counted until then stays counted, as of when it was last told.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <syslog.h>
#include <unistd.h>

#include "base/sentence.h"
#include "base/unit-name.h"
#include "binding/keys.h"
#include "delegate/connection.h"

#define RETRY_SEC 1

/* A binding; free without one. Its place in the array is its index. */
typedef struct Entry {
        Binding *binding; /* what is asked for: a copy */
        int file_fd;
        uint64_t id;
        bool is_measured;
        char *news; /* that it is measured no longer, or could be again; NULL: told */
        bool is_final;
        Statistics now; /* as last told */
        Histogram lengths;
} Entry;

typedef struct DelegateBackend {
        Backend backend; /* first */
        Connection connection;
        int epoll_fd;
        int timer_fd; /* time to connect, or something is there that epoll_fd does not show */
        Entry *entries;
        size_t n_entries;
        uint64_t last_id;
        uint64_t n_lost;
        char *news;                   /* of all; NULL: told */
        BackendReportHandler handler; /* during dispatch */
        void *handler_data;
        int n_reports;
} DelegateBackend;

static DelegateBackend *DELEGATE(Backend *backend) {
        return (DelegateBackend *) backend;
}

static int delegate_probe(char **ret_reason) {
        if (getuid() != 0)
                return 0;
        return sentence_error(-EPERM, ret_reason,
                              "What root has is measured by the system's tlobd: write the sections "
                              "into the files of system units");
}

/* sec: 0: now. */
static void set_timer(const DelegateBackend *b, time_t sec) {
        struct itimerspec timer = { .it_value = { .tv_sec = sec, .tv_nsec = sec == 0 } };

        (void) timerfd_settime(b->timer_fd, 0, &timer, NULL);
}

/* To be told. */
static void entry_note(const DelegateBackend *b, Entry *entry, bool is_final, const char *text) {
        if (free_and_strdup(&entry->news, text) < 0)
                return;
        entry->is_final = is_final;
        set_timer(b, 0);
}

/* Whoever hears of it sets all bindings up anew: until it is back, they wait. */
static void note_all(DelegateBackend *b, bool is_back) {
        const char *text = is_back ? "The system's tlobd is back"
                                   : "The system's tlobd, which measures for users, has gone";

        (void) free_and_strdup(&b->news, text);
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].binding)
                        entry_note(b, &b->entries[i], false, text);
}

static void on_lender_gone(DelegateBackend *b) {
        for (size_t i = 0; i < b->n_entries; i++)
                b->entries[i].is_measured = false;
        note_all(b, false);
        set_timer(b, 0);
}

static int take_books(Packet *packet, Entry *entry) {
        return wire_take_books(packet, &entry->now, &entry->lengths);
}

static Entry *find_entry(DelegateBackend *b, uint64_t id) {
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].id == id)
                        return &b->entries[i];
        return NULL;
}

static void on_report(uint64_t id, Packet *packet, uint64_t lost, void *userdata) {
        DelegateBackend *b = userdata;
        const Entry *entry = find_entry(b, id);
        Report report;
        Stack stack;

        b->n_lost += lost;
        if (!entry || wire_take_report(packet, &report, &stack) < 0)
                return;
        report.backend_index = (uint32_t) (entry - b->entries);
        b->handler(&report, b->handler_data);
        b->n_reports++;
}

static void on_gone(uint64_t id, Packet *books, const char *why, void *userdata) {
        DelegateBackend *b = userdata;
        Entry *entry = find_entry(b, id);

        if (!entry || !entry->is_measured || take_books(books, entry) < 0)
                return;
        entry->is_measured = false;
        if (why)
                entry_note(b, entry, true, why);
}

static void on_lender(bool is_there, void *userdata) {
        if (is_there)
                note_all(userdata, true);
        else
                on_lender_gone(userdata);
}

static const ConnectionHandlers connection_handlers = {
        .report = on_report,
        .gone = on_gone,
        .is_there = on_lender,
};

/* ret_reply: may be NULL, as in connection_ask(). */
static int ask(DelegateBackend *b, sd_bus_message *call, sd_bus_message **ret_reply,
               char **ret_error) {
        int r = connection_ask(&b->connection, call, ret_reply, ret_error);

        if (r == -ENOTCONN)
                on_lender_gone(b);
        else if (connection_has_read(&b->connection))
                set_timer(b, 0);
        return r;
}

/* One that is about an entry, and nothing else but for what is behind it. */
static int begin(DelegateBackend *b, const char *member, const Entry *entry, sd_bus_message **ret) {
        int r = connection_new_call(&b->connection, member, ret);

        return r < 0 ? r : sd_bus_message_append(*ret, "t", entry->id);
}

/* -ENOTCONN: nobody is there; it is tried again. */
static int connect_to_system(DelegateBackend *b, char **ret_error) {
        struct epoll_event event = { .events = EPOLLIN };
        int r;

        r = connection_open(&b->connection, &connection_handlers, b, ret_error);
        if (r >= 0 &&
            epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, sd_bus_get_fd(b->connection.bus), &event) < 0) {
                r = -errno;
                connection_close(&b->connection);
        }
        if (r < 0)
                set_timer(b, RETRY_SEC);
        else if (connection_has_read(&b->connection))
                set_timer(b, 0);
        return r;
}

static int entry_ask_for(DelegateBackend *b, Entry *entry, char **ret_error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        static Packet packet;
        int r = 0;

        if (!b->connection.bus)
                r = connect_to_system(b, ret_error);
        if (r >= 0)
                r = connection_new_call(&b->connection, "Lend", &call);
        if (r < 0)
                return r;
        entry->id = ++b->last_id;
        packet_init(&packet);
        wire_put_binding(&packet, entry->binding);
        r = sd_bus_message_append(call, "tt", WIRE_VERSION, entry->id);
        if (r >= 0)
                r = connection_append_packet(call, &packet);
        if (r == -EMSGSIZE)
                return sentence_error(r, ret_error, "Its keys are too long");
        if (r >= 0)
                r = sd_bus_message_append(call, "u", (uint32_t) entry->file_fd);
        if (r >= 0)
                r = ask(b, call, NULL, ret_error);
        entry->is_measured = r >= 0;
        return r;
}

/* Its id stays: reports of it may be among what was told, and is not read yet. */
static void entry_clear(Entry *entry) {
        binding_free(entry->binding);
        safe_close(entry->file_fd);
        free(entry->news);
        *entry = (Entry){ .file_fd = -EBADF, .id = entry->id };
}

static Backend *delegate_free(Backend *backend) {
        DelegateBackend *b = DELEGATE(backend);

        if (!b)
                return NULL;
        connection_close(&b->connection);
        for (size_t i = 0; i < b->n_entries; i++)
                entry_clear(&b->entries[i]);
        free(b->entries);
        free(b->news);
        safe_close(b->timer_fd);
        safe_close(b->epoll_fd);
        free(b);
        return NULL;
}

static int init(DelegateBackend *b, const BackendConfig *config) {
        struct epoll_event event = { .events = EPOLLIN };

        b->entries = calloc(config->bindings_max, sizeof(*b->entries));
        if (!b->entries)
                return -ENOMEM;
        b->n_entries = config->bindings_max;
        for (size_t i = 0; i < b->n_entries; i++)
                b->entries[i].file_fd = -EBADF;
        b->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        b->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (b->epoll_fd < 0 || b->timer_fd < 0 ||
            epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, b->timer_fd, &event) < 0)
                return -errno;
        return 0;
}

static int delegate_new(const BackendConfig *config, Backend **ret, char **ret_reason) {
        DelegateBackend *b = calloc(1, sizeof(*b));
        int r;

        if (!b)
                return -ENOMEM;
        b->backend.ops = &backend_delegate_ops;
        b->epoll_fd = b->timer_fd = -EBADF;
        r = init(b, config);
        if (r < 0) {
                delegate_free(&b->backend);
                return r;
        }
        *ret = &b->backend;
        return 0;
}

static int delegate_can(const Binding *binding, const BindingFile *file, char **ret_reason) {
        if (!binding->unit)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "Only what runs in a unit of the user can be measured: write "
                                      "Unit=");
        if (unit_name_is_template(binding->unit))
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "Instances of %s are measured one by one: write the section "
                                      "into the template's own files",
                                      binding->unit);
        return 0;
}

static int copy_binding(const Binding *binding, Binding **ret) {
        _cleanup_(binding_freep) Binding *copy = NULL;
        int r;

        r = binding_copy(binding, &copy);
        if (r >= 0)
                r = free_and_strdup(&copy->cgroup.path, binding->cgroup.path);
        if (r >= 0)
                r = free_and_strdup(&copy->resolved.path, binding->resolved.path);
        if (r < 0)
                return r;
        copy->cgroup.id = binding->cgroup.id;
        memcpy(copy->budget_ns, binding->budget_ns, sizeof(copy->budget_ns));
        *ret = TAKE_PTR(copy);
        return 0;
}

/* Where nobody is there yet it is asked for later. */
static int delegate_add(Backend *backend, const Binding *binding, const BindingFile *file,
                        uint32_t *ret_index, char **ret_reason) {
        DelegateBackend *b = DELEGATE(backend);
        Entry *entry = b->entries;
        int r;

        while (entry < b->entries + b->n_entries && entry->binding)
                entry++;
        if (entry == b->entries + b->n_entries)
                return -ENOSPC;
        r = copy_binding(binding, &entry->binding);
        if (r < 0)
                return r;
        entry->file_fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
        r = entry->file_fd < 0 ? -errno : entry_ask_for(b, entry, ret_reason);
        if (r < 0 && r != -ENOTCONN) {
                entry_clear(entry);
                return r;
        }
        *ret_index = (uint32_t) (entry - b->entries);
        return 0;
}

/* What the answer to that begins with; *ret_reply: the caller's. */
static int ask_for_books(DelegateBackend *b, const char *member, Entry *entry,
                         sd_bus_message **ret_reply) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        _cleanup_free_ char *unused = NULL;
        static Packet packet;
        int r;

        r = begin(b, member, entry, &call);
        if (r >= 0)
                r = ask(b, call, ret_reply, &unused);
        if (r >= 0)
                r = connection_read_packet(*ret_reply, &packet);
        return r < 0 ? r : take_books(&packet, entry);
}

/* As far as they can be had; reach: may be NULL. */
static void read_books(DelegateBackend *b, Entry *entry, char **reach) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *text;

        if (entry->is_measured && ask_for_books(b, "GetBooks", entry, &reply) >= 0 && reach &&
            sd_bus_message_read(reply, "s", &text) >= 0 && *text)
                (void) free_and_strdup(reach, text);
}

static int delegate_remove(Backend *backend, uint32_t index, Statistics *ret_final,
                           Histogram *histogram) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        DelegateBackend *b = DELEGATE(backend);
        Entry *entry = &b->entries[index];

        if (entry->is_measured)
                (void) ask_for_books(b, "TakeBack", entry, &reply);
        entry->now.open = 0;
        if (ret_final)
                *ret_final = entry->now;
        if (histogram)
                histogram_add(histogram, &entry->lengths);
        entry_clear(entry);
        return 0;
}

static int delegate_set_cgroup(Backend *backend, uint32_t index, uint64_t cgroup_id,
                               unsigned level) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        DelegateBackend *b = DELEGATE(backend);
        Entry *entry = &b->entries[index];
        _cleanup_free_ char *unused = NULL;
        int r;

        entry->binding->cgroup.id = cgroup_id;
        if (!entry->is_measured)
                return 0;
        r = begin(b, "SetRunning", entry, &call);
        if (r >= 0)
                r = sd_bus_message_append(call, "b", cgroup_id != 0);
        return r < 0 ? r : ask(b, call, NULL, &unused);
}

static int delegate_set_budget(Backend *backend, uint32_t index,
                               const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
        DelegateBackend *b = DELEGATE(backend);
        Entry *entry = &b->entries[index];
        _cleanup_free_ char *unused = NULL;
        int r;

        memcpy(entry->binding->budget_ns, budget_ns, sizeof(entry->binding->budget_ns));
        if (!entry->is_measured)
                return 0;
        r = begin(b, "SetBudgets", entry, &call);
        if (r >= 0)
                r = sd_bus_message_append_array(call, 't', budget_ns,
                                                TLOB_N_BUDGETS * sizeof(*budget_ns));
        return r < 0 ? r : ask(b, call, NULL, &unused);
}

static int delegate_get_fd(Backend *backend) {
        return DELEGATE(backend)->epoll_fd;
}

static bool has_entries(const DelegateBackend *b) {
        for (size_t i = 0; i < b->n_entries; i++)
                if (b->entries[i].binding)
                        return true;
        return false;
}

static int delegate_dispatch(Backend *backend, BackendReportHandler handler, void *userdata) {
        DelegateBackend *b = DELEGATE(backend);
        _cleanup_free_ char *error = NULL;
        uint64_t expirations;

        (void) !read(b->timer_fd, &expirations, sizeof(expirations));
        if (!b->connection.bus && has_entries(b) && connect_to_system(b, &error) >= 0 &&
            b->connection.lender)
                note_all(b, true);
        b->handler = handler;
        b->handler_data = userdata;
        b->n_reports = 0;
        if (b->connection.bus && connection_dispatch(&b->connection) < 0)
                on_lender_gone(b);
        return b->n_reports;
}

static int delegate_next_notice(Backend *backend, BackendNotice *ret) {
        DelegateBackend *b = DELEGATE(backend);

        if (b->news) {
                *ret = (BackendNotice){ .level = LOG_NOTICE, .index = BACKEND_NO_INDEX };
                ret->text = TAKE_PTR(b->news);
                return 1;
        }
        for (size_t i = 0; i < b->n_entries; i++) {
                Entry *entry = &b->entries[i];

                if (!entry->news)
                        continue;
                *ret = (BackendNotice){
                        .level = entry->is_final ? LOG_WARNING : LOG_DEBUG,
                        .index = (uint32_t) i,
                        .is_final = entry->is_final,
                };
                ret->text = TAKE_PTR(entry->news);
                return 1;
        }
        return 0;
}

static char *delegate_remark(Backend *backend, uint32_t index) {
        const DelegateBackend *b = DELEGATE(backend);

        return b->entries[index].is_measured
                       ? NULL
                       : sentence_make(
                                 "The system's tlobd, which would measure it, is not there: start "
                                 "it with 'systemctl start tlobd'");
}

static uint64_t delegate_lost(Backend *backend) {
        return DELEGATE(backend)->n_lost;
}

static int delegate_statistics(Backend *backend, uint32_t index, Statistics *ret) {
        DelegateBackend *b = DELEGATE(backend);
        Entry *entry = &b->entries[index];

        read_books(b, entry, NULL);
        *ret = entry->now;
        return 0;
}

static int delegate_histogram(Backend *backend, uint32_t index, Histogram *histogram) {
        DelegateBackend *b = DELEGATE(backend);
        Entry *entry = &b->entries[index];

        read_books(b, entry, NULL);
        histogram_add(histogram, &entry->lengths);
        return 0;
}

static int delegate_reset_statistics(Backend *backend, uint32_t index) {
        DelegateBackend *b = DELEGATE(backend);
        Entry *entry = &b->entries[index];
        int r = 0;

        if (entry->is_measured) {
                _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
                _cleanup_free_ char *unused = NULL;

                r = begin(b, "Reset", entry, &call);
                if (r >= 0)
                        r = ask(b, call, NULL, &unused);
        }
        if (r < 0)
                return r;
        entry->now = (Statistics){};
        entry->lengths = (Histogram){};
        return 0;
}

static char *delegate_reach(Backend *backend, uint32_t index) {
        DelegateBackend *b = DELEGATE(backend);
        char *reach = NULL;

        read_books(b, &b->entries[index], &reach);
        return reach ?: strdup("no process: the system's tlobd is not there");
}

static bool delegate_can_spare_others(const Binding *binding, const BindingFile *file) {
        return true;
}

static bool delegate_spares_others(Backend *backend, uint32_t index) {
        return true;
}

static const char *const *delegate_limitations(Backend *backend) {
        static const char *const limitations[] = {
                "The system's tlobd measures for this one: when it is restarted, windows that are "
                "open then are not seen to their end, and calls in between are missed",
                NULL,
        };

        return limitations;
}

static const char *delegate_deadline_mode(Backend *backend) {
        return "";
}

const BackendOps backend_delegate_ops = {
        .name = "system",
        .capabilities = BACKEND_CAN_RETURN | BACKEND_CAN_STATE_BUDGET | BACKEND_CAN_MINIMUM |
                        BACKEND_CAN_INFINITE | BACKEND_CAN_CONFINE | BACKEND_CAN_USDT |
                        BACKEND_CAN_COUNT,
        .probe = delegate_probe,
        .new = delegate_new,
        .free = delegate_free,
        .can = delegate_can,
        .add = delegate_add,
        .remove = delegate_remove,
        .set_cgroup = delegate_set_cgroup,
        .set_budget = delegate_set_budget,
        .get_fd = delegate_get_fd,
        .dispatch = delegate_dispatch,
        .next_notice = delegate_next_notice,
        .remark = delegate_remark,
        .lost = delegate_lost,
        .statistics = delegate_statistics,
        .histogram = delegate_histogram,
        .reset_statistics = delegate_reset_statistics,
        .reach = delegate_reach,
        .can_spare_others = delegate_can_spare_others,
        .spares_others = delegate_spares_others,
        .limitations = delegate_limitations,
        .deadline_mode = delegate_deadline_mode,
};
