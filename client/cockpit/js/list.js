/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The bindings, grouped by unit: a table whose rows stay the same elements as long as their
 * bindings are there, so that focus, selections and what is open survive each update. On a narrow
 * screen the style sheet makes a card of each row, with the labels that the cells carry.
 */

import { editBudget } from "./change.js";
import { Detail } from "./detail.js";
import { button, make, quoted, setChildren, setClass, setText } from "./dom.js";
import { count, duration, exactDuration, visible } from "./format.js";

const COLUMNS = ["Binding", "State", "Budget", "Windows", "Violations", "p50", "p99", "Max", ""];
const STATES = { active: "tl-green", waiting: "tl-blue", failed: "tl-red", disabled: "tl-grey" };

/* Without the unit, which is the group's. */
function shortName({ name, unit }) {
        return unit && name.startsWith(`${unit}/`) ? name.slice(unit.length + 1) : name;
}

/* The times of none are no times. */
const timeOf = (binding, ns) => binding.ended === 0 ? "–" : duration(ns);

class Row {
        constructor(bus, path, binding) {
                const id = `tl-detail-${path.replace(/[^A-Za-z0-9_]/g, "-")}`;

                this.bus = bus;
                this.toggle = make("button", { type: "button", class: "tl-toggle", "aria-expanded": "false",
                                               "aria-controls": id,
                                               click: () => this.setOpen(!this.isOpen) },
                                   quoted(shortName(binding)));
                this.state = make("span", {});
                this.tolerance = make("span", { class: "tl-label tl-red", hidden: true }, "tolerance broken");
                this.cells = COLUMNS.slice(2, -1).map(label => make("td", { "data-label": label, class: "tl-number" }));
                this.edit = button("Edit", "link", () => editBudget(bus, this.binding), {
                        "aria-label": `Edit the budget of ${visible(binding.name)}`,
                });
                this.main = make("tr", { class: "tl-row" },
                                 make("th", { scope: "row", "data-label": "Binding" }, this.toggle),
                                 make("td", { "data-label": "State" }, this.state, this.tolerance), this.cells,
                                 make("td", { class: "tl-action" }, this.edit));
                this.place = make("td", { colspan: String(COLUMNS.length), id });
                this.more = make("tr", { class: "tl-more", hidden: true }, this.place);
                this.isOpen = false;
                this.update(binding);
        }

        /* What is closed is not kept up to date, so it is made anew. */
        setOpen(open) {
                this.isOpen = open;
                this.toggle.setAttribute("aria-expanded", String(open));
                this.more.hidden = !open;
                this.detail = open ? new Detail(this.bus, this.binding) : null;
                this.place.replaceChildren(...open ? [this.detail.node] : []);
        }

        update(binding) {
                const texts = [
                        exactDuration(binding.budget), count(binding.windows), count(binding.violations),
                        timeOf(binding, binding.p50), timeOf(binding, binding.p99), timeOf(binding, binding.max),
                ];

                this.binding = binding;
                setText(this.state, visible(binding.state));
                setClass(this.state, `tl-label ${STATES[binding.state] ?? "tl-grey"}`);
                this.tolerance.hidden = binding.toleranceState !== "broken";
                this.cells.forEach((cell, i) => setText(cell, texts[i]));
                this.cells[2].classList.toggle("tl-some", binding.violations > 0);
                this.detail?.update(binding);
        }
}

class Group {
        constructor(unit) {
                this.count = make("span", { class: "tl-badge" });
                this.head = make("tr", { class: "tl-unit" }, make("th", {
                        scope: "rowgroup", colspan: String(COLUMNS.length),
                }, unit ? quoted(unit) : "All processes", " ", this.count));
                this.node = make("tbody", {}, this.head);
        }

        update(rows) {
                setText(this.count, String(rows.length));
                setChildren(this.node, [this.head, ...rows.flatMap(({ main, more }) => [main, more])]);
        }
}

export class BindingList {
        constructor(bus) {
                this.bus = bus;
                this.rows = new Map();
                this.units = new Map();
                this.head = make("thead", {}, make("tr", {}, COLUMNS.map(name =>
                        make("th", { scope: "col", class: COLUMNS.indexOf(name) > 1 ? "tl-number" : null },
                             name || make("span", { class: "tl-hidden" }, "Actions")))));
                this.table = make("table", { class: "tl-table", "aria-label": "Bindings" }, this.head);
                this.none = make("p", { class: "tl-muted", hidden: true }, "No binding has such a name or unit.");
                this.node = make("div", {}, this.table, this.none);
        }

        rowOf(binding) {
                const row = this.rows.get(binding.path) ?? new Row(this.bus, binding.path, binding);

                this.rows.set(binding.path, row);
                if (row.binding !== binding)
                        row.update(binding);
                return row;
        }

        groupOf(unit) {
                const group = this.units.get(unit) ?? new Group(unit);

                this.units.set(unit, group);
                return group;
        }

        update(model, filter) {
                const groups = [...model.groups(filter)].map(([unit, bindings]) => {
                        const group = this.groupOf(unit);

                        group.update(bindings.map(binding => this.rowOf(binding)));
                        return group.node;
                });

                for (const path of this.rows.keys())
                        if (!model.bindings.has(path))
                                this.rows.delete(path);
                const units = new Set([...model.bindings.values()].map(({ unit }) => unit));
                for (const unit of this.units.keys())
                        if (!units.has(unit))
                                this.units.delete(unit);
                setChildren(this.table, [this.head, ...groups]);
                this.table.hidden = groups.length === 0;
                this.none.hidden = groups.length > 0 || model.bindings.size === 0;
        }

        /* Opens one and goes there. False: there is none of that name, or the filter hides it. */
        show(name) {
                const row = [...this.rows.values()].find(({ binding }) => binding.name === name);

                if (!row?.main.isConnected)
                        return false;
                row.setOpen(true);
                row.toggle.focus();
                row.main.scrollIntoView({ block: "start", behavior: "smooth" });
                return true;
        }
}
