/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a screen of tlobctl top says, for programs: the same rows and windows, with all numbers as
 * they are.
 */

#include "top-json.h"

#include "base/clock.h"

static int add_fraction(json_object *object, const char *key, double x) {
        json_object *value = NULL;
        char text[64];

        if (x >= 0) {
                (void) snprintf(text, sizeof(text), "%.9g", x);
                value = json_object_new_double_s(x, text);
                if (!value)
                        return -ENOMEM;
        }
        return json_add(object, key, value);
}

static int fill_row(json_object *object, const Row *row, bool by_unit) {
        int r;

        r = json_add_string(object, by_unit ? "Unit" : "Name", row->name);
        if (r >= 0)
                r = json_add_string(object, "State", row->state);
        if (r >= 0)
                r = by_unit ? json_add_number(object, "NBindings", row->n_bindings)
                            : json_add_number(object, "BudgetNSec", row->budget_ns);
        if (r >= 0)
                r = add_fraction(object, "WindowsPerSec", row->windows_per_sec);
        if (r >= 0)
                r = add_fraction(object, "ViolationsPerSec", row->violations_per_sec);
        if (r >= 0)
                r = json_add_number(object, "P50NSec", row->p50_ns);
        if (r >= 0)
                r = json_add_number(object, "P99NSec", row->p99_ns);
        if (r >= 0)
                r = json_add_number(object, "MaxNSec", row->max_ns);
        if (r >= 0)
                r = add_fraction(object, "RunningShare", row->share[TLOB_RUNNING]);
        if (r >= 0)
                r = add_fraction(object, "WaitingShare", row->share[TLOB_WAITING]);
        if (r >= 0)
                r = add_fraction(object, "SleepingShare", row->share[TLOB_SLEEPING]);
        return r < 0 ? r : add_fraction(object, "ProbesCPU", row->cpu);
}

static int fill_window(json_object *object, const OpenWindow *window, uint64_t now_ns) {
        bool is_known = now_ns > window->begin_ns;
        int r;

        r = json_add_string(object, "Binding", window->binding);
        if (r >= 0)
                r = json_add_string(object, "Unit", window->unit);
        if (r >= 0)
                r = json_add_string(object, "Task", window->task);
        if (r >= 0)
                r = json_add_string(object, "Where", window->where);
        if (r >= 0)
                r = json_add_number(object, "ID", window->id);
        if (r >= 0)
                r = json_add_number(object, "BudgetNSec", window->budget_ns);
        return r < 0 ? r
                     : json_add_number(object, "ElapsedNSec",
                                       is_known ? now_ns - window->begin_ns : UINT64_MAX);
}

static int add_rows(json_object *array, const Rows *rows, bool by_unit) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < rows->n; i++) {
                _cleanup_json_ json_object *row = json_object_new_object();

                r = row ? fill_row(row, rows->rows + i, by_unit) : -ENOMEM;
                if (r >= 0)
                        r = json_append(array, TAKE_PTR(row));
        }
        return r;
}

static int add_windows(json_object *array, const OpenWindows *windows, uint64_t now_ns) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < windows->n; i++) {
                _cleanup_json_ json_object *window = json_object_new_object();

                r = window ? fill_window(window, windows->windows + i, now_ns) : -ENOMEM;
                if (r >= 0)
                        r = json_append(array, TAKE_PTR(window));
        }
        return r;
}

int top_to_json(const Rows *rows, const OpenWindows *windows, bool by_unit, uint64_t now_ns,
                json_object **ret) {
        _cleanup_json_ json_object *object = json_object_new_object();
        _cleanup_json_ json_object *row_array = json_object_new_array();
        _cleanup_json_ json_object *window_array = json_object_new_array();
        int r;

        if (!object || !row_array || !window_array)
                return -ENOMEM;
        r = json_add_number(object, "RealtimeNSec", clock_read_ns(CLOCK_REALTIME));
        if (r >= 0)
                r = json_add_number(object, "IntervalNSec",
                                    rows->interval_ns > 0 ? rows->interval_ns : UINT64_MAX);
        if (r >= 0)
                r = add_rows(row_array, rows, by_unit);
        if (r >= 0)
                r = json_add(object, by_unit ? "Units" : "Bindings", TAKE_PTR(row_array));
        if (r >= 0)
                r = add_windows(window_array, windows, now_ns);
        if (r >= 0)
                r = json_add(object, "OverBudget", TAKE_PTR(window_array));
        if (r < 0)
                return r;
        *ret = TAKE_PTR(object);
        return 0;
}
