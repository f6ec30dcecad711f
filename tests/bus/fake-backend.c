/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Stands in for the kernel in tests of what is above the seam. It keeps to the contract of
 * backend.h: indexes are used again after the dispatch that follows a removal, reports come only
 * from dispatch().
 */

#include "fake-backend.h"

#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"

#define ENTRIES_MAX 64
#define REPORTS_MAX 2048

static struct {
        Backend backend;
        int fd;
        bool dispatch_fails;
        bool used[ENTRIES_MAX];
        uint64_t starts[ENTRIES_MAX];
        struct {
                uint64_t cost_ns; /* until then */
                uint64_t past_ns; /* of that: before the binding was there */
                uint64_t since_ns;
                unsigned percent;
        } probes[ENTRIES_MAX];
        uint64_t past_cost_ns;
        bool alarm;
        Report reports[REPORTS_MAX];
        size_t n_reports;
        const Report *left;
        uint64_t lost;
        uint64_t kept_lost;
        uint64_t suppressed;
        BindingLimit limits[ENTRIES_MAX];
        unsigned usec;
        int fail_error;
        const char *fail_reason;
        bool spares_others;
        bool removes_slowly;
        FakeCalls calls;
} fake = { .fd = -EBADF };

FakeCalls *fake_calls(void) {
        return &fake.calls;
}

void fake_fail_add(int error, const char *reason) {
        fake.fail_error = error;
        fake.fail_reason = reason;
}

void fake_report(const Report *report) {
        if (fake.n_reports == REPORTS_MAX)
                abort();
        fake.reports[fake.n_reports++] = *report;
        (void) eventfd_write(fake.fd, 1);
}

void fake_lose(uint64_t n) {
        fake.lost += n;
        (void) eventfd_write(fake.fd, 1);
}

void fake_leave_lost(uint64_t n, uint64_t told) {
        fake.lost = n;
        fake.kept_lost = told;
}

uint64_t fake_lost_as_told(void) {
        return fake.kept_lost;
}

BindingLimit *fake_limit(void) {
        return &fake.limits[0];
}

void fake_suppress(uint64_t n) {
        fake.suppressed += n;
}

void fake_take_time(unsigned usec) {
        fake.usec = usec;
}

void fake_fail_dispatch(bool fails) {
        fake.dispatch_fails = fails;
}

void fake_leave(const Report *report) {
        fake.left = report;
}

void fake_spare_others(void) {
        fake.spares_others = true;
}

static uint64_t cost_of(uint32_t index) {
        return fake.probes[index].cost_ns +
               (now_ns() - fake.probes[index].since_ns) * fake.probes[index].percent / 100;
}

void fake_take_cpu(uint32_t index, unsigned percent) {
        fake.probes[index].cost_ns = cost_of(index);
        fake.probes[index].since_ns = now_ns();
        fake.probes[index].percent = percent;
        fake.alarm = true;
        (void) eventfd_write(fake.fd, 1);
}

void fake_spend(uint32_t index, uint64_t ns) {
        fake.probes[index].cost_ns += ns;
}

void fake_set_past_cost(uint64_t ns) {
        fake.past_cost_ns = ns;
}

/* Those that are gone take nothing. */
static uint64_t fake_cost(Backend *backend, uint32_t index) {
        uint64_t total = 0;

        if (index != BACKEND_NO_INDEX)
                return cost_of(index);
        for (uint32_t i = 0; i < ENTRIES_MAX; i++)
                total += fake.used[i] ? cost_of(i) - fake.probes[i].past_ns : 0;
        return total;
}

static bool fake_take_alarm(Backend *backend) {
        bool alarm = fake.alarm;

        fake.alarm = false;
        return alarm;
}

static void fake_set_report_limit(Backend *backend, const ReportLimit *limit) {
        fake.calls.limit = *limit;
}

static int fake_probe(char **ret_reason) {
        fake.spares_others = false;
        return fake.left ? 1 : 0;
}

static int fake_new(const BackendConfig *config, Backend **ret, char **ret_reason) {
        fake.backend.ops = &fake_backend_ops;
        fake.n_reports = 0;
        fake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fake.fd < 0)
                return -errno;
        if (fake.left)
                fake_report(fake.left);
        fake.left = NULL;
        *ret = &fake.backend;
        return 0;
}

static Backend *fake_free(Backend *backend) {
        fake.fd = safe_close(fake.fd);
        memset(fake.used, 0, sizeof(fake.used));
        fake.n_reports = 0;
        fake.lost = 0;
        fake.kept_lost = 0;
        fake.suppressed = 0;
        memset(fake.limits, 0, sizeof(fake.limits));
        return NULL;
}

static int fake_add(Backend *backend, const Binding *binding, const BindingFile *file,
                    uint32_t *ret_index, char **ret_reason) {
        if (fake.fail_error < 0) {
                int r = fake.fail_error;

                fake.fail_error = 0;
                *ret_reason = strdup(fake.fail_reason);
                return r;
        }

        for (uint32_t i = 0; i < ENTRIES_MAX; i++)
                if (!fake.used[i]) {
                        fake.used[i] = true;
                        fake.starts[i] = 0;
                        memset(&fake.probes[i], 0, sizeof(fake.probes[i]));
                        fake.probes[i].cost_ns = fake.probes[i].past_ns = fake.past_cost_ns;
                        fake.calls.add++;
                        *ret_index = i;
                        return 0;
                }
        return -ENOSPC;
}

static int fake_remove(Backend *backend, uint32_t index, Statistics *ret_final,
                       Histogram *histogram) {
        fake.used[index] = false;
        fake.limits[index] = (BindingLimit) {};
        fake.calls.remove++;
        *ret_final = (Statistics) {
                .counters.starts = fake.starts[index],
                .counters.suppressed = index == 0 ? fake.suppressed : 0,
        };
        if (index == 0)
                fake.suppressed = 0;
        return 0;
}

void fake_remove_slowly(bool slowly) {
        fake.removes_slowly = slowly;
}

static bool fake_is_removing(Backend *backend) {
        return fake.removes_slowly;
}

static int fake_set_cgroup(Backend *backend, uint32_t index, uint64_t cgroup_id, unsigned level) {
        return 0;
}

static int fake_set_budget(Backend *backend, uint32_t index,
                           const uint64_t budget_ns[static TLOB_N_BUDGETS]) {
        fake.calls.set_budget++;
        return 0;
}

static int fake_get_fd(Backend *backend) {
        return fake.fd;
}

static int fake_dispatch(Backend *backend, BackendReportHandler handler, void *userdata) {
        eventfd_t n;

        fake.calls.dispatch++;
        if (fake.dispatch_fails)
                return -ENOMEM;
        (void) eventfd_read(fake.fd, &n);
        for (size_t i = 0; i < fake.n_reports; i++) {
                fake.starts[fake.reports[i].backend_index] +=
                        fake.reports[i].type == REPORT_VIOLATION;
                handler(&fake.reports[i], userdata);
        }
        n = fake.n_reports;
        fake.n_reports = 0;
        return (int) n;
}

static uint64_t fake_get_lost(Backend *backend) {
        return fake.lost;
}

static uint64_t *fake_get_kept_lost(Backend *backend) {
        return &fake.kept_lost;
}

static BindingLimit *fake_kept_limit(Backend *backend, uint32_t index) {
        return &fake.limits[index];
}

static int fake_statistics(Backend *backend, uint32_t index, Statistics *ret) {
        fake.calls.statistics++;
        (void) usleep(fake.usec);
        *ret = (Statistics) {
                .counters = {
                        .starts = fake.starts[index],
                        .violated = fake.starts[index],
                        .violations = fake.starts[index],
                        .suppressed = index == 0 ? fake.suppressed : 0,
                },
        };
        return 0;
}

/* Each window took a microsecond. */
static int fake_histogram(Backend *backend, uint32_t index, Histogram *histogram) {
        histogram->counts[histogram_bucket(1000)] += fake.starts[index];
        return 0;
}

static int fake_reset_statistics(Backend *backend, uint32_t index) {
        fake.starts[index] = 0;
        if (index == 0)
                fake.suppressed = 0;
        return 0;
}

static bool fake_spares_others(Backend *backend, uint32_t index) {
        return fake.spares_others;
}

static bool fake_can_spare_others(const Binding *binding, const BindingFile *file) {
        return fake.spares_others;
}

static bool fake_taxes_unwinding(void) {
        return !fake.spares_others;
}

static const char *const *fake_limitations(Backend *backend) {
        static const char *const limitations[] = { "It measures nothing.", NULL };

        return limitations;
}

static const char *fake_deadline_mode(Backend *backend) {
        return "stop";
}

const BackendOps fake_backend_ops = {
        .name = "fake",
        .capabilities = BACKEND_CAN_RETURN | BACKEND_CAN_STATE_BUDGET | BACKEND_CAN_MINIMUM |
                        BACKEND_CAN_INFINITE | BACKEND_CAN_CONFINE | BACKEND_CAN_AWAIT |
                        BACKEND_CAN_COUNT,
        .probe = fake_probe,
        .new = fake_new,
        .free = fake_free,
        .add = fake_add,
        .remove = fake_remove,
        .is_removing = fake_is_removing,
        .set_cgroup = fake_set_cgroup,
        .set_budget = fake_set_budget,
        .get_fd = fake_get_fd,
        .dispatch = fake_dispatch,
        .set_report_limit = fake_set_report_limit,
        .lost = fake_get_lost,
        .kept_lost = fake_get_kept_lost,
        .kept_limit = fake_kept_limit,
        .statistics = fake_statistics,
        .histogram = fake_histogram,
        .cost = fake_cost,
        .take_alarm = fake_take_alarm,
        .reset_statistics = fake_reset_statistics,
        .can_spare_others = fake_can_spare_others,
        .spares_others = fake_spares_others,
        .taxes_unwinding = fake_taxes_unwinding,
        .limitations = fake_limitations,
        .deadline_mode = fake_deadline_mode,
};

const BackendOps *const fake_backends[] = { &fake_backend_ops, NULL };
