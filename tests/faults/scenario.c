/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The life of a daemon with a fake back end: it starts with bindings, others are added and removed,
 * violations are reported, and it ends. It may not be worse after the fault than before: the same
 * things are asked of it once more, and must work.
 */

#include "scenario.h"
#include "base/clock.h"
#include "base/strings.h"
#include "daemon.h"
#include "fake-backend.h"

#define BINDINGS                                                                                   \
        "[Binding first]\nExecutable=%1$s\nFunction=scenario_measured\nBudgetSec=1ms\n"            \
        "[Binding second]\nExecutable=%1$s\nFunction=scenario_measured\nBudgetSec=2ms\n"

static uint64_t last_window;

__attribute__((noinline)) void scenario_measured(void) {
        __asm__ volatile("nop");
}

static bool add(const char *name) {
        return daemon_do("AddBinding", "sa{sv}t", name, 3, "Executable", "s", daemon_program(),
                         "Function", "s", "scenario_measured", "BudgetSec", "s", "5ms",
                         UINT64_C(0));
}

static void report(uint32_t index) {
        const Report violation = {
                .type = REPORT_VIOLATION,
                .backend_index = index,
                .id = ++last_window,
                .time_ns = now_ns(),
                .elapsed_ns = 6000000,
                .spent_ns = { 1000000, 2000000, 3000000 },
                .exceeded = 1,
                .tid = 1,
                .comm = "program",
        };

        fake_report(&violation);
        daemon_settle();
}

/* Everything that people do with it. */
static void live(void) {
        report(0);
        (void) add("third");
        (void) daemon_do("ListBindings", "");
        report(1);
        (void) daemon_do("GetViolations", "u", 10);
        (void) daemon_do("SetBudget", "stt", "first", UINT64_C(7000000), UINT64_C(0));
        (void) daemon_do("SetBudget", "stt", "second", UINT64_C(7000000), TLOB_FLAG_PERSIST);
        (void) daemon_do("Reload", "");
        (void) daemon_get("Violations");
        report(0);
        (void) daemon_do("ResetStatistics", "");
        (void) daemon_do("RemoveBinding", "st", "third", UINT64_C(0));
}

/* What may have failed is done once more, and whoever fails now has not got over it. */
static void live_on(void) {
        uint64_t before;

        daemon_spare();
        if (daemon_is_over())
                return;
        must(daemon_remove("third") || streq(daemon_refusal(), TLOB_ERROR_NO_SUCH_BINDING));
        /* Its file may be there, and not have been read. */
        must(daemon_do("Reload", ""));
        (void) daemon_remove("third");
        must(daemon_reload_until_active(2));
        before = daemon_get("Violations");
        /* Two of these are in use, whatever has become of the fault. */
        for (uint32_t i = 0; i < 3; i++)
                report(i);
        must(daemon_get("Violations") == before + 2);
        must(add("fourth"));
        must(daemon_get("NActive") == 3);
        must(daemon_do("RemoveBinding", "st", "fourth", UINT64_C(0)));
        must(daemon_get("NActive") == 2);
}

const char *const scenario_parts[] = { "all", NULL };

bool scenario_can_run(const char *directory) {
        return true;
}

const char *scenario_leftovers(void) {
        return NULL;
}

void scenario_run(const char *directory, size_t part) {
        char bindings[1024];

        daemon_prepare(directory);
        (void) snprintf(bindings, sizeof(bindings), BINDINGS, daemon_program());
        daemon_write_config("[Daemon]\n", bindings);
        daemon_arm();
        if (daemon_start(fake_backends))
                live();
        live_on();
        daemon_arm();
        daemon_stop();
}
