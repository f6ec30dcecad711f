/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What one tlobd says, the other one understands; and nothing that is cut off. */

#include "backend/wire.h"
#include "binding/keys.h"
#include "test.h"

static Packet packet;

static Binding *make_binding(void) {
        _cleanup_(binding_freep) Binding *binding = NULL;

        assert_ok(binding_new("app.service/request", &binding));
        assert_ok(binding_set_key(binding, "Unit", "app.service", NULL));
        assert_ok(binding_set_key(binding, "Function", "handle", NULL));
        assert_ok(binding_set_key(binding, "BudgetSec", "5ms", NULL));
        binding->cgroup.path = strdup("/user.slice/app.service");
        binding->cgroup.id = 4711;
        binding->resolved.path = strdup("/usr/bin/app");
        return TAKE_PTR(binding);
}

static void test_binding(void **state) {
        _cleanup_(binding_freep) Binding *binding = make_binding(), *taken = NULL;

        packet_init(&packet);
        wire_put_binding(&packet, binding);
        assert_ok(wire_take_binding(&packet, &taken));
        assert_true(packet_is_good(&packet));
        assert_string_equal(taken->name, "app.service/request");
        assert_string_equal(taken->unit, "app.service");
        assert_string_equal(taken->start, "handle");
        assert_string_equal(taken->stop, "return");
        assert_string_equal(taken->cgroup.path, "/user.slice/app.service");
        assert_string_equal(taken->lent.file, "/usr/bin/app");
        assert_int_equal(taken->budget_ns[TLOB_BUDGET_TOTAL], 5000000);
        assert_int_equal(taken->budget_ns[TLOB_BUDGET_SLEEPING], BUDGET_NONE);
        /* The id is for who looks. */
        assert_int_equal(taken->cgroup.id, 1);
        assert_int_equal(taken->lent.user, 0);
}

/* Of whatever length, it is no other binding. */
static void test_cut_off(void **state) {
        _cleanup_(binding_freep) Binding *binding = make_binding();
        size_t size;

        packet_init(&packet);
        wire_put_binding(&packet, binding);
        size = packet.size;
        for (size_t n = 0; n < size; n++) {
                _cleanup_(binding_freep) Binding *taken = NULL;

                packet.failed = false;
                packet.position = 0;
                packet.size = n;
                assert_int_equal(wire_take_binding(&packet, &taken), -EBADMSG);
                assert_null(taken);
        }
}

static void test_books(void **state) {
        Statistics statistics = { .counters.starts = 7, .open = 2, .max_ns = 99 }, taken = {};
        Histogram lengths = {}, other;

        lengths.counts[0] = 1;
        lengths.counts[TLOB_BUCKETS - 1] = 5;
        packet_init(&packet);
        wire_put_books(&packet, &statistics, &lengths);
        assert_ok(wire_take_books(&packet, &taken, &other));
        assert_true(packet_is_good(&packet));
        assert_memory_equal(&taken, &statistics, sizeof(taken));
        assert_memory_equal(&other, &lengths, sizeof(other));
}

/* A bucket that there is not. */
static void test_wrong_bucket(void **state) {
        Statistics statistics;
        Histogram lengths;

        packet_init(&packet);
        for (size_t i = 0; i < sizeof(statistics) / sizeof(uint64_t); i++)
                packet_put_number(&packet, i);
        packet_put_number(&packet, 1);
        packet_put_number(&packet, TLOB_BUCKETS);
        packet_put_number(&packet, 1);
        assert_int_equal(wire_take_books(&packet, &statistics, &lengths), -EBADMSG);
}

static void test_report(void **state) {
        Stack stack = { .n = 3, .frames = { "__schedule", "schedule", "locks_lock_inode_wait" } },
              other;
        Report report = {
                .type = REPORT_COMPLETION,
                .id = 12,
                .elapsed_ns = 1000,
                .spent_ns = { 1, 2, 997 },
                .late_ns = UINT64_MAX,
                .budget = TLOB_BUDGET_SLEEPING,
                .state = TLOB_SLEEPING,
                .end = TLOB_END_EXIT,
                .comm = "nginx",
                .peers.woken_by = { .is_known = true, .pid = 3, .tid = 4, .comm = "waker" },
                .stack = &stack,
                .cgroup_path = "/a.slice",
        };
        Report taken;

        packet_init(&packet);
        wire_put_report(&packet, &report);
        assert_ok(wire_take_report(&packet, &taken, &other));
        assert_true(packet_is_good(&packet));
        assert_int_equal(taken.type, REPORT_COMPLETION);
        assert_int_equal(taken.elapsed_ns, 1000);
        assert_int_equal(taken.spent_ns[TLOB_SLEEPING], 997);
        assert_int_equal(taken.late_ns, UINT64_MAX);
        assert_int_equal(taken.end, TLOB_END_EXIT);
        assert_string_equal(taken.comm, "nginx");
        assert_string_equal(taken.peers.woken_by.comm, "waker");
        assert_string_equal(taken.cgroup_path, "/a.slice");
        /* No more of the stack than where it is blocked. */
        assert_ptr_equal(taken.stack, &other);
        assert_int_equal(other.n, 1);
        assert_string_equal(other.frames[0], "locks_lock_inode_wait");

        report.end = TLOB_N_ENDS;
        packet_init(&packet);
        wire_put_report(&packet, &report);
        assert_int_equal(wire_take_report(&packet, &taken, &other), -EBADMSG);
}

/* By the sizes of packets: who changes them, or their order, changes WIRE_VERSION here, too. */
static void test_version(void **state) {
        _cleanup_(binding_freep) Binding *binding = NULL;

        assert_int_equal(WIRE_VERSION >> 32, 3);
        packet_init(&packet);
        wire_put_report(&packet, &(Report) {});
        assert_int_equal(packet.size, 251);
        packet_init(&packet);
        assert_ok(binding_new("a", &binding));
        wire_put_binding(&packet, binding);
        assert_int_equal(packet.size, 106);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_binding), cmocka_unit_test(test_cut_off),
                cmocka_unit_test(test_books),   cmocka_unit_test(test_wrong_bucket),
                cmocka_unit_test(test_report),  cmocka_unit_test(test_version),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
