/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The dialogs that change something, and the one that asks for a stack. The daemon decides what is
 * allowed and what is right; here texts only become arguments.
 */

import { alertBox, checkbox, field, openDialog } from "./dialog.js";
import { make, quoted } from "./dom.js";
import { exactDuration, parseBudget } from "./format.js";

const BUDGET_HELP = "Such as 250us, 1.5ms or 2s; infinity measures and reports nothing.";

const persistBox = () => checkbox("Keep after a reboot", "Otherwise it is gone with the next reboot.");

export function editBudget(bus, binding) {
        const time = field("Budget", { value: exactDuration(binding.budget) }, BUDGET_HELP);
        const persist = persistBox();
        const others = binding.configured === binding.budget ? [] : [{
                text: `Restore ${exactDuration(binding.configured)}`, kind: "secondary",
                action: () => bus.resetBudget(binding.name, persist.input.checked),
        }];

        openDialog({
                title: ["Budget of ", quoted(binding.name)],
                body: [time.node, persist.node],
                submit: {
                        text: "Set budget",
                        action: () => bus.setBudget(binding.name, parseBudget(time.input.value),
                                                    persist.input.checked),
                },
                others,
        });
        time.input.select();
}

/* The keys of tlob.binding(5) that most bindings consist of. */
const KEYS = [
        ["Unit", "Unit", "A service, such as nginx.service; empty: all processes."],
        ["Executable", "Program or library", "A path, or a library such as libc.so.6; empty: the program of the unit."],
        ["Function", "Function", "Its calls are measured, whichever way they return."],
        ["Syscall", "System call", "Instead of a function, such as fsync; needs no program."],
        ["Mark", "Mark", "Instead of a function: a window that the program itself opens and ends."],
        ["BudgetSec", "Budget", BUDGET_HELP],
];

export function addBinding(bus) {
        const name = field("Name", { required: true },
                           "Letters, digits, hyphens, underscores and dots.");
        const fields = KEYS.map(([key, label, help]) => [key, field(label, {}, help)]);
        const persist = persistBox();

        openDialog({
                title: "Add a binding",
                body: [name.node, fields.map(([, { node }]) => node), persist.node],
                submit: {
                        text: "Add",
                        action: () => {
                                const given = fields.map(([key, { input }]) => [key, input.value.trim()])
                                        .filter(([, value]) => value !== "");

                                return bus.addBinding(name.input.value.trim(), Object.fromEntries(given),
                                                      persist.input.checked);
                        },
                },
        });
}

/* By the name of its file: what was not added by AddBinding() is removed where it is written. */
export function isRemovable(binding) {
        return /\/tlobctl-[^/]*\.conf:\d+$/.test(binding.source);
}

export function removeBinding(bus, binding) {
        openDialog({
                title: ["Remove ", quoted(binding.name), "?"],
                body: [make("p", {}, "Its windows are no longer measured, and its counters are lost.")],
                submit: { text: "Remove", kind: "danger-button", action: () => bus.removeBinding(binding.name) },
        });
}

export function showStack(bus, violation) {
        const frames = make("ol", { class: "tl-stack" });
        const note = make("p", {}, "Asking …");
        const dialog = openDialog({
                title: "Where it was blocked in the kernel",
                body: [note, frames],
        });

        bus.getStack(violation.id).then(names => {
                note.textContent = names.length > 0 ? "Innermost first:" : "It is not known: the task was not asleep.";
                frames.append(...names.map(frame => make("li", {}, quoted(frame))));
        }, error => note.replaceWith(alertBox(error)));
        return dialog;
}
