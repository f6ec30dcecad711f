/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the row of a binding opens into: its distribution, what it measures, and what can be done.
 */

import { editBudget, isRemovable, removeBinding } from "./change.js";
import { describe, drawChart } from "./chart.js";
import { button, make, quoted } from "./dom.js";
import { count, duration, exactDuration } from "./format.js";
import { stateBar } from "./states.js";

function factsOf(binding) {
        const stop = binding.stop ? ` … ${binding.stop}` : "";
        const tolerance = binding.tolerance
                ? `${binding.tolerance}${binding.toleranceState ? `, ${binding.toleranceState}` : ""}` : "";

        return [
                ["Measures", binding.start + stop],
                ["In", binding.executable],
                ["Defined in", binding.source],
                ["Configured budget", binding.configured === binding.budget ? ""
                                                                            : exactDuration(binding.configured)],
                ["Other budgets", binding.others.map(({ kind, ns }) => `${kind} ${exactDuration(ns)}`).join(", ")],
                ["Tolerance", tolerance],
                ["Back end", binding.backend],
        ].filter(([, value]) => value !== "");
}

function chartOf(binding, space) {
        if (binding.ended === 0)
                return [make("p", { class: "tl-muted" },
                             binding.windows === Infinity ? "The lengths of its windows are not known."
                                                          : "No window has ended yet.")];
        return [
                drawChart(binding, space),
                make("p", { class: "tl-muted" }, describe(binding)),
        ];
}

function tableOf(binding) {
        const rows = binding.histogram.map(([upper, n]) => make("tr", {},
                make("td", {}, upper === Infinity ? "longer" : `up to ${duration(upper)}`),
                make("td", {}, count(n))));

        return make("table", { class: "tl-numbers" },
                    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Length"),
                                           make("th", { scope: "col" }, "Windows"))),
                    make("tbody", {}, rows));
}

export class Detail {
        constructor(bus, binding) {
                this.binding = binding;
                this.chart = make("div", {});
                this.bar = make("div", {});
                this.reason = make("p", { class: "tl-reason" });
                this.facts = make("dl", { class: "tl-facts" });
                this.numbers = make("details", { toggle: () => this.drawNumbers() },
                                    make("summary", {}, "The same in numbers"), make("div", {}));
                this.remove = button("Remove", "secondary", () => removeBinding(bus, this.binding));
                this.node = make("div", { class: "tl-detail" }, this.reason, this.chart, this.numbers, this.bar,
                                 this.facts, make("div", { class: "tl-actions" },
                                 button("Edit budget", "secondary", () => editBudget(bus, this.binding)),
                                 this.remove));
                this.update(binding, true);
                /*
                 * That it has room for the first time is a change, too. Drawing in the callback
                 * itself would be one more, which the browser reports as an error of the page, and
                 * Cockpit as "Ooops!".
                 */
                this.observer = new ResizeObserver(() => requestAnimationFrame(() => this.drawChart()));
                this.observer.observe(this.chart);
        }

        drawChart() {
                const space = this.chart.clientWidth;

                if (space === 0 || (space === this.space && this.binding === this.drawn))
                        return;
                this.space = space;
                this.drawn = this.binding;
                this.chart.replaceChildren(...chartOf(this.binding, space));
        }

        update(binding, first = false) {
                const changed = first || binding !== this.binding;

                this.binding = binding;
                if (!changed)
                        return;
                this.reason.replaceChildren(quoted(binding.reason));
                this.reason.hidden = binding.reason === "";
                this.remove.hidden = !isRemovable(binding);
                this.drawChart();
                this.numbers.hidden = binding.ended === 0;
                this.drawNumbers();
                this.bar.replaceChildren(...[stateBar(binding)].filter(Boolean));
                this.updateFacts(factsOf(binding));
        }

        drawNumbers() {
                const place = this.numbers.lastChild;

                place.replaceChildren(...this.numbers.open ? [tableOf(this.binding)] : []);
        }

        /* Untouched as long as they are the same: somebody may be copying them. */
        updateFacts(facts) {
                const text = JSON.stringify(facts);

                if (text === this.factsText)
                        return;
                this.factsText = text;
                this.facts.replaceChildren(...facts.flatMap(([name, value]) => [
                        make("dt", {}, name), make("dd", {}, quoted(value)),
                ]));
        }
}
