/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Stands in for the kernel in tests of what is above the seam. It keeps to the contract of backend.h:
 * indexes are used again after the dispatch that follows a removal, reports come only from dispatch().
 */

#include "fake-backend.h"

#include <string.h>
#include <sys/eventfd.h>

#define ENTRIES_MAX 64
#define REPORTS_MAX 1024

static struct {
        Backend backend;
        int fd;
        bool used[ENTRIES_MAX];
        uint64_t starts[ENTRIES_MAX];
        Report reports[REPORTS_MAX];
        size_t n_reports;
        uint64_t lost;
        int fail_error;
        const char *fail_reason;
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

static int fake_probe(char **ret_reason) {
        return 0;
}

static int fake_new(const BackendConfig *config, Backend **ret, char **ret_reason) {
        fake.backend.ops = &fake_backend_ops;
        fake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fake.fd < 0)
                return -errno;
        *ret = &fake.backend;
        return 0;
}

static Backend *fake_free(Backend *backend) {
        fake.fd = safe_close(fake.fd);
        memset(fake.used, 0, sizeof(fake.used));
        fake.n_reports = 0;
        fake.lost = 0;
        return NULL;
}

static int fake_add(Backend *backend, const Binding *binding, const ElfFile *elf,
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
                        fake.calls.add++;
                        *ret_index = i;
                        return 0;
                }
        return -ENOSPC;
}

static int fake_remove(Backend *backend, uint32_t index, Statistics *ret_final,
                       Histogram *histogram) {
        fake.used[index] = false;
        fake.calls.remove++;
        *ret_final = (Statistics){ .counters.starts = fake.starts[index] };
        return 0;
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

static int fake_statistics(Backend *backend, uint32_t index, Statistics *ret) {
        *ret = (Statistics) {
                .counters = {
                        .starts = fake.starts[index],
                        .violated = fake.starts[index],
                        .violations = fake.starts[index],
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
        return 0;
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
        .capabilities = BACKEND_CAN_RETURN | BACKEND_CAN_STATE_BUDGET | BACKEND_CAN_INFINITE |
                        BACKEND_CAN_CONFINE | BACKEND_CAN_AWAIT,
        .probe = fake_probe,
        .new = fake_new,
        .free = fake_free,
        .add = fake_add,
        .remove = fake_remove,
        .set_cgroup = fake_set_cgroup,
        .set_budget = fake_set_budget,
        .get_fd = fake_get_fd,
        .dispatch = fake_dispatch,
        .lost = fake_get_lost,
        .statistics = fake_statistics,
        .histogram = fake_histogram,
        .reset_statistics = fake_reset_statistics,
        .limitations = fake_limitations,
        .deadline_mode = fake_deadline_mode,
};

const BackendOps *const fake_backends[] = { &fake_backend_ops, NULL };
