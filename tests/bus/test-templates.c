/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Templates by themselves: how many spares they have, what becomes of one that an instance has
 * taken, and when they go because of their files. The handlers here only count.
 */

#include "manager/templates.h"

#include "file/binding-question.h"
#include "test.h"

#define ATTACHED_MAX 16

static struct {
        Binding *attached[ATTACHED_MAX];
        size_t n_attached;
        size_t room; /* for so many */
        unsigned n_complete;
        unsigned n_adopted;
        unsigned n_written;
        int change; /* of all files */
        bool is_removing;
        uint64_t delay_usec;
} done;

static int attach(Binding *binding, char **ret_error, void *userdata) {
        if (done.n_attached == done.room)
                return -ENOSPC;
        done.attached[done.n_attached++] = binding;
        return 0;
}

static void complete(void *userdata) {
        done.n_complete++;
}

static void leave(const Binding *binding) {
        for (size_t i = 0; i < done.n_attached; i++)
                if (done.attached[i] == binding) {
                        done.attached[i] = done.attached[--done.n_attached];
                        return;
                }
        fail_msg("'%s' was not attached", binding->name);
}

static void detach(Binding *binding, void *userdata) {
        leave(binding);
}

static int compare(Binding *binding, void *userdata) {
        return done.change;
}

static void note_written(const Binding *binding, void *userdata) {
        done.n_written++;
}

static bool is_removing(void *userdata) {
        return done.is_removing;
}

static void look_later(uint64_t delay_usec, void *userdata) {
        done.delay_usec = delay_usec;
}

static int unit_of(const char *cgroup_path, char **ret_unit, void *userdata) {
        assert_string_equal(cgroup_path, "/system.slice/t@a.service");
        *ret_unit = strdup("t@a.service");
        return *ret_unit ? 0 : -ENOMEM;
}

static int give(Binding *binding, const char *instance, const Report *report, void *userdata) {
        assert_string_equal(instance, "t@a.service");
        binding->spare = 0;
        return 0;
}

static void adopt(const char *instance, Binding **bindings, size_t n, void *userdata) {
        assert_string_equal(instance, "t@a.service");
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(bindings[i]->spare, 0);
                leave(bindings[i]);
                binding_free(bindings[i]);
                done.n_adopted++;
        }
}

static const TemplatesHandlers handlers = {
        .attach = attach,
        .complete = complete,
        .detach = detach,
        .compare = compare,
        .note_written = note_written,
        .is_removing = is_removing,
        .look_later = look_later,
        .unit_of = unit_of,
        .give = give,
        .adopt = adopt,
};

/* A template with two sections, and two spares. */
typedef struct Fixture {
        sd_event *event;
        Templates *templates;
} Fixture;

static void apply(Fixture *f, const char *program, unsigned n_sections) {
        const UnitInfo stand_in = {
                .name = (char *) "t@tlobd_any.service",
                .program = (char *) program,
                .cgroup_path = (char *) "/system.slice/t@tlobd_any.service",
        };
        Config *config;

        assert_ok(config_new(&config));
        for (unsigned i = 0; i < n_sections; i++) {
                Binding *section;

                assert_ok(binding_new(i == 0 ? "t@tlobd_any.service/a" : "t@tlobd_any.service/b",
                                      &section));
                assert_ok(binding_table_put(&config->bindings, section));
        }
        templates_begin(f->templates);
        assert_true(templates_apply(f->templates, &stand_in, config) >= 0);
        templates_end(f->templates);
}

static int setup(void **state) {
        static Fixture f;

        memset(&done, 0, sizeof(done));
        done.room = ATTACHED_MAX;
        assert_ok(sd_event_new(&f.event));
        assert_ok(templates_new(&handlers, NULL, &f.templates));
        templates_attach_event(f.templates, f.event);
        templates_set_spares(f.templates, 2);
        /* Files are looked at by the clock of the loop. */
        assert_true(sd_event_run(f.event, 0) >= 0);
        apply(&f, "/usr/bin/t", 2);
        *state = &f;
        return 0;
}

static int teardown(void **state) {
        Fixture *f = *state;

        f->templates = templates_free(f->templates);
        f->event = sd_event_unref(f->event);
        assert_int_equal(done.n_attached, 0);
        return 0;
}

static void test_spares(void **state) {
        Fixture *f = *state;

        assert_int_equal(done.n_attached, 4);
        assert_int_equal(done.n_complete, 2);
        assert_false(templates_are_empty(f->templates));
        apply(f, "/usr/bin/t", 2);
        assert_int_equal(done.n_complete, 2);

        /* Another program: other spares. */
        apply(f, "/usr/bin/u", 2);
        assert_int_equal(done.n_attached, 4);
        assert_int_equal(done.n_complete, 4);

        apply(f, "/usr/bin/u", 0);
        assert_true(templates_are_empty(f->templates));
        assert_int_equal(done.n_attached, 0);
}

/* An instance gets both bindings of one spare, which another one replaces. */
static void test_instance(void **state) {
        const Report report = {
                .type = REPORT_INSTANCE,
                .cgroup_path = "/system.slice/t@a.service",
        };
        const Binding stranger = { .spare = 77 };
        Fixture *f = *state;

        templates_on_instance(f->templates, &stranger, &report);
        templates_adopt(f->templates);
        assert_int_equal(done.n_adopted, 0);
        templates_on_instance(f->templates, done.attached[0], &report);
        assert_int_equal(done.n_adopted, 0);
        assert_true(sd_event_run(f->event, 0) > 0);
        assert_int_equal(done.n_adopted, 2);
        assert_int_equal(done.n_attached, 4);

        templates_on_instance(f->templates, done.attached[0], &report);
        templates_adopt(f->templates);
        assert_int_equal(done.n_adopted, 4);
        assert_int_equal(sd_event_run(f->event, 0), 0);
}

/* Bindings go first: a spare gives its room, and comes back when there is some. */
static void test_room(void **state) {
        Fixture *f = *state;

        assert_true(templates_give_up_spare(f->templates));
        assert_int_equal(done.n_attached, 2);
        done.room = 3;
        templates_fill(f->templates);
        assert_int_equal(done.n_attached, 2);
        done.room = 4;
        templates_fill(f->templates);
        assert_int_equal(done.n_attached, 4);
        assert_true(templates_give_up_spare(f->templates));
        assert_true(templates_give_up_spare(f->templates));
        assert_false(templates_give_up_spare(f->templates));
}

/* While their file is written, there are none; and not before the old probes are gone. */
static void test_written(void **state) {
        uint64_t due = 0;
        Fixture *f = *state;

        done.attached[0]->watch.descriptor = 5;
        templates_hear(f->templates, 6, true);
        assert_int_equal(done.n_attached, 4);
        templates_hear(f->templates, 5, true);
        assert_int_equal(done.n_attached, 0);
        assert_int_equal(done.n_written, 2);
        assert_int_equal(done.delay_usec, 1000000);
        templates_fill(f->templates);
        assert_int_equal(done.n_attached, 0);

        done.is_removing = true;
        due = templates_renew(f->templates, 0);
        assert_true(due > 0 && due < UINT64_MAX);
        due = templates_renew(f->templates, due);
        assert_int_equal(done.n_attached, 0);
        done.is_removing = false;
        (void) templates_renew(f->templates, due);
        assert_int_equal(done.n_attached, 4);
}

/* Another file at the same path: spares are made anew at once. */
static void test_replaced(void **state) {
        Fixture *f = *state;
        uint64_t due = templates_renew(f->templates, 0);

        done.change = FILE_IS_SAME;
        due = templates_renew(f->templates, due);
        assert_int_equal(done.n_complete, 2);
        templates_hear(f->templates, -1, false);
        due = templates_renew(f->templates, 0);
        done.change = FILE_IS_OTHER;
        (void) templates_renew(f->templates, due);
        assert_int_equal(done.n_complete, 4);
        assert_int_equal(done.n_attached, 4);
        assert_int_equal(done.n_written, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_spares),  TEST(test_instance), TEST(test_room),
                TEST(test_written), TEST(test_replaced),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
