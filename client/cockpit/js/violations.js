/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The recent violations, newest first, each with the split of its time and what is known of the
 * cause. A violation is shown while its window is open; when that ends, its true length replaces
 * the first one.
 */

import { showStack } from "./change.js";
import { button, make, quoted, setChildren, setText } from "./dom.js";
import { clock, count, duration, exactDuration, plural } from "./format.js";
import { stateBar } from "./states.js";

const SHOWN_AT_FIRST = 20;

const ENDS = {
        exit: "because the task exited",
        exec: "because the task began another program",
        abandoned: "because an exception, a longjmp() or the like left it",
        removed: "because its probes were removed",
        switched: "because its goroutine left the thread",
};
/* Of tlobd, where it is no task that the window waited for. */
const QUOTA = "CPU quota";
/* A little is stolen all the time in most virtual machines, and a window has a probe or two. */
const MATTERS_PART = 20;

function waitWords(preemptedBy) {
        if (preemptedBy === QUOTA)
                return "held back by a";
        return preemptedBy.startsWith(`${QUOTA} of `) && !preemptedBy.endsWith("]")
                ? "held back by the" : "CPU taken by";
}

function taskOf({ comm, pid, tid }) {
        const id = pid && tid && tid !== pid ? `${pid}/${tid}` : pid || tid;

        if (!comm && !id)
                return [];
        return [" in ", quoted(comm || "a task"), id ? `[${id}]` : ""];
}

function sentenceOf(violation) {
        const { took, kind, elapsed, end } = violation;
        const time = exactDuration(violation.budget);
        const budget = kind === "minimum" ? `under its ${time} minimum`
                : `over its ${time} ${kind === "total" ? "" : `${kind} `}budget`;

        if (!took)
                return elapsed === Infinity ? budget : `${budget}: ${duration(elapsed)} so far`;
        return `${budget}: ended after ${duration(took.elapsed)}${ENDS[end] ? ` ${ENDS[end]}` : ""}`;
}

function causesOf(violation) {
        const { stolen, probes, elapsed } = violation.took ?? violation;
        const part = ns => ns > elapsed / MATTERS_PART ? duration(ns) : "";

        return [
                ["blocked in", violation.blockedIn],
                [waitWords(violation.preemptedBy), violation.preemptedBy],
                ["woken by", violation.wokenBy],
                ["stolen by the hypervisor", part(stolen)],
                ["in probes of measured calls", part(probes)],
                ["reports held back before it", violation.suppressed ? count(violation.suppressed) : ""],
        ].filter(([, value]) => value !== "");
}

/* Its buttons stay as the window ends: somebody may be about to press one. */
class Item {
        constructor(bus, show, violation) {
                const { binding, unit } = violation;

                this.open = make("span", { class: "tl-label tl-orange" }, "open");
                this.sentence = make("div", {});
                this.bar = make("div", {});
                this.causes = make("dl", { class: "tl-causes" });
                this.stack = button("Kernel stack", "link", () => showStack(bus, this.violation));
                this.node = make("li", { class: "tl-violation" },
                        make("div", { class: "tl-when" },
                             make("time", {}, isNaN(violation.when) ? "earlier" : clock(violation.when)), this.open),
                        make("div", { class: "tl-what" },
                             make("button", { type: "button", class: "tl-button tl-link",
                                              click: () => show(binding) }, quoted(binding)),
                             taskOf(violation),
                             unit && !binding.startsWith(`${unit}/`) ? [" of ", quoted(unit)] : []),
                        this.sentence, this.bar, this.causes, this.stack);
        }

        update(violation, isOpen) {
                this.open.hidden = !isOpen;
                if (violation === this.violation)
                        return;
                this.violation = violation;
                setText(this.sentence, sentenceOf(violation));
                this.bar.replaceChildren(...[stateBar(violation.took ?? violation)].filter(Boolean));
                const causes = causesOf(violation);
                this.causes.hidden = causes.length === 0;
                this.causes.replaceChildren(...causes.map(([name, value]) =>
                        make("div", {}, make("dt", {}, name), " ", make("dd", {}, quoted(value)))));
                this.stack.hidden = violation.state !== "sleeping" || violation.blockedIn === "";
        }
}

export class ViolationList {
        /* show(name): goes to a binding. */
        constructor(bus, show) {
                this.bus = bus;
                this.show = show;
                this.items = new Map();
                this.shown = SHOWN_AT_FIRST;
                this.list = make("ol", { class: "tl-violations" });
                this.more = button("", "link", () => {
                        this.shown = Infinity;
                        this.update(this.model);
                });
                this.none = make("p", { class: "tl-muted" }, "None so far. They appear here as they happen.");
                this.node = make("div", {}, this.none, this.list, this.more);
        }

        itemOf(violation) {
                const item = this.items.get(violation.id) ?? new Item(this.bus, this.show, violation);

                this.items.set(violation.id, item);
                item.update(violation, this.model.isOpen(violation));
                return item.node;
        }

        update(model) {
                const violations = model.violations.slice(0, this.shown);
                const rest = model.violations.length - violations.length;
                const kept = new Set(model.violations.map(violation => violation.id));

                this.model = model;
                for (const id of this.items.keys())
                        if (!kept.has(id))
                                this.items.delete(id);
                setChildren(this.list, violations.map(violation => this.itemOf(violation)));
                this.none.hidden = model.violations.length > 0;
                this.more.hidden = rest <= 0;
                this.more.textContent = `Show ${plural(rest, "more", "more")}`;
        }
}
