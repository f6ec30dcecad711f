/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The back end of a user's tlobd, which has no rights to measure anything: the system's tlobd does,
 * on request, as far as polkit lets it (daemon/tenant). Here is what was asked for: when that one
 * ends, bindings wait, and are asked for again once it is back. What they have counted until then
 * stays counted, as of when it was last told.
 */

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <syslog.h>

#include "base/unit-name.h"
#include "binding/keys.h"
#include "bus-packet.h"
#include "delegate/internal.h"

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

/* Its id stays: reports of it may be among what was told, and is not read yet. */
static void entry_clear(Entry *entry) {
        binding_free(entry->binding);
        safe_close(entry->file_fd);
        free(entry->why);
        free(entry->news);
        *entry = (Entry) { .file_fd = -EBADF, .id = entry->id };
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
        safe_close(b->again_fd);
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
        b->again_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        if (b->epoll_fd < 0 || b->timer_fd < 0 || b->again_fd < 0 ||
            epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, b->timer_fd, &event) < 0 ||
            epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, b->again_fd, &event) < 0)
                return -errno;
        return 0;
}

static int delegate_new(const BackendConfig *config, Backend **ret, char **ret_reason) {
        DelegateBackend *b = calloc(1, sizeof(*b));
        int r;

        if (!b)
                return -ENOMEM;
        b->backend.ops = &backend_delegate_ops;
        b->epoll_fd = b->timer_fd = b->again_fd = -EBADF;
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
        if (binding->unsafe)
                return sentence_error(-EOPNOTSUPP, ret_reason,
                                      "Unsafe=yes is not possible for users: who is hurt by it is "
                                      "not sure");
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
        r = entry->file_fd < 0 ? -errno : delegate_try(b, entry, ret_reason);
        if (r < 0) {
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

        r = delegate_begin(b, member, entry, &call);
        if (r >= 0)
                r = delegate_ask(b, call, ret_reply, &unused);
        if (r >= 0)
                r = bus_packet_read(*ret_reply, &packet);
        return r < 0 ? r : delegate_take_books(&packet, entry);
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
                return cgroup_id == 0 ? 0 : delegate_try(b, entry, &unused);
        r = delegate_begin(b, "SetRunning", entry, &call);
        if (r >= 0)
                r = sd_bus_message_append(call, "b", cgroup_id != 0);
        return r < 0 ? r : delegate_ask(b, call, NULL, &unused);
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
        r = delegate_begin(b, "SetBudgets", entry, &call);
        if (r >= 0)
                r = sd_bus_message_append_array(call, 't', budget_ns,
                                                TLOB_N_BUDGETS * sizeof(*budget_ns));
        return r < 0 ? r : delegate_ask(b, call, NULL, &unused);
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
        uint64_t expirations;

        (void) !read(b->timer_fd, &expirations, sizeof(expirations));
        if (read(b->again_fd, &expirations, sizeof(expirations)) > 0)
                delegate_try_again(b);
        if (!b->connection.bus && has_entries(b))
                delegate_connect_again(b);
        b->handler = handler;
        b->handler_data = userdata;
        b->n_reports = 0;
        if (b->connection.bus && connection_dispatch(&b->connection) < 0)
                delegate_on_lender_gone(b);
        return b->n_reports;
}

static int delegate_next_notice(Backend *backend, BackendNotice *ret) {
        DelegateBackend *b = DELEGATE(backend);

        if (b->news) {
                *ret = (BackendNotice) { .level = LOG_NOTICE, .index = BACKEND_NO_INDEX };
                ret->text = TAKE_PTR(b->news);
                return 1;
        }
        for (size_t i = 0; i < b->n_entries; i++) {
                Entry *entry = &b->entries[i];

                if (!entry->news)
                        continue;
                *ret = (BackendNotice) {
                        .level = entry->is_final ? LOG_WARNING : LOG_DEBUG,
                        .index = (uint32_t) i,
                        .is_final = entry->is_final,
                };
                ret->text = TAKE_PTR(entry->news);
                return 1;
        }
        return 0;
}

static BindingState delegate_state(Backend *backend, uint32_t index) {
        const DelegateBackend *b = DELEGATE(backend);
        const Entry *entry = &b->entries[index];

        if (entry->is_measured)
                return BINDING_ACTIVE;
        return entry->why || delegate_is_alone(b) ? BINDING_FAILED : BINDING_WAITING;
}

static char *delegate_remark(Backend *backend, uint32_t index) {
        const Entry *entry = &DELEGATE(backend)->entries[index];

        if (entry->is_measured)
                return NULL;
        return entry->why
                       ? strdup(entry->why)
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

                r = delegate_begin(b, "Reset", entry, &call);
                if (r >= 0)
                        r = delegate_ask(b, call, NULL, &unused);
        }
        if (r < 0)
                return r;
        entry->now = (Statistics) {};
        entry->lengths = (Histogram) {};
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
        .state = delegate_state,
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
