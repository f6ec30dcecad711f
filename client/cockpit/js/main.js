/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The page: connection, lists, and which of them is shown. Updates are drawn once a frame, however
 * many signals there were.
 */

import { Bus } from "./bus.js";
import { addBinding } from "./change.js";
import { button, make, quoted, setText } from "./dom.js";
import { count, plural } from "./format.js";
import { BindingList } from "./list.js";
import { Model } from "./model.js";
import { followTheme } from "./theme.js";
import { ViolationList } from "./violations.js";

const EXAMPLE = `# /etc/systemd/system/redis-server.service.d/50-latency.conf
[X-Tlob command]
Function=processCommand
BudgetSec=5ms
`;

const STATES = {
        connecting: ["Asking tlobd …", ""],
        absent: ["tlobd is not running", "This page continues by itself when it is started: systemctl start tlobd"],
        denied: ["You may not ask tlobd",
                 "The message bus refuses it. Another account, or administrative access, may be allowed to."],
        failed: ["tlobd cannot be asked", ""],
};

class Page {
        constructor() {
                this.model = new Model();
                this.bus = new Bus(this.model, {
                        state: (state, sentence) => this.showState(state, sentence),
                        change: () => this.schedule(),
                });
                this.list = new BindingList(this.bus);
                this.violations = new ViolationList(this.bus, name => this.goTo(name));
                this.filter = make("input", { type: "search", class: "tl-input", placeholder: "Name or unit",
                                              "aria-label": "Filter bindings by name or unit",
                                              input: () => this.draw() });
                this.summary = make("p", { class: "tl-summary" });
                this.notes = make("div", {});
                this.build();
        }

        build() {
                const add = button("Add binding", "primary", () => addBinding(this.bus));

                this.empty = this.makeEmpty();
                this.state = make("div", { class: "tl-card tl-empty", role: "status" });
                this.bindingsCard = make("section", { class: "tl-card", "aria-labelledby": "bindings-title" },
                        make("div", { class: "tl-card-head" }, make("h2", { id: "bindings-title" }, "Bindings"),
                             this.filter, add),
                        this.list.node);
                this.content = make("div", { class: "tl-content", hidden: true },
                        make("div", { class: "tl-left" }, this.empty, this.bindingsCard),
                        make("section", { class: "tl-card tl-right", "aria-labelledby": "violations-title" },
                             make("div", { class: "tl-card-head" },
                                  make("h2", { id: "violations-title" }, "Violations")),
                             this.violations.node));
                document.body.append(make("main", { class: "tl-page" },
                        make("div", { class: "tl-title" }, make("h1", {}, "Latency budgets"), this.summary),
                        this.notes, this.state, this.content));
        }

        makeEmpty() {
                return make("section", { class: "tl-card tl-empty", hidden: true },
                        make("h2", {}, "Nothing is measured yet"),
                        make("p", {}, "A binding gives a function, a system call or two places in a program a time. " +
                             "It stands in a drop-in of the service, in three lines that systemd ignores:"),
                        make("pre", {}, EXAMPLE),
                        make("p", {}, "After ", make("code", {}, "systemctl daemon-reload"), " it appears here. ",
                             make("code", {}, "tlobctl suggest UNIT"), " finds out what to measure. For a quick look, ",
                             "a binding can also be added here:"),
                        button("Add binding", "primary", () => addBinding(this.bus)));
        }

        start() {
                this.showState("connecting", "");
                this.bus.start();
        }

        showState(state, sentence) {
                const connected = state === "connected";

                this.state.hidden = connected;
                this.content.hidden = !connected;
                this.summary.hidden = !connected;
                this.notes.hidden = !connected;
                if (connected)
                        return;
                const [title, help] = STATES[state];
                this.state.replaceChildren(make("h2", {}, title), help ? make("p", {}, help) : "",
                        sentence ? make("p", { class: "tl-muted" }, quoted(sentence)) : "",
                        state === "connecting" ? "" : button("Try again", "secondary", () => this.bus.connect()));
        }

        goTo(name) {
                if (this.list.show(name))
                        return;
                this.filter.value = "";
                this.draw();
                this.list.show(name);
        }

        schedule() {
                if (this.scheduled)
                        return;
                this.scheduled = true;
                /* In a hidden page there are no frames. */
                (document.hidden ? setTimeout : requestAnimationFrame)(() => {
                        this.scheduled = false;
                        this.draw();
                });
        }

        draw() {
                const { model } = this;
                const empty = model.isComplete && model.bindings.size === 0;

                /* Until the next daemon has told its own, those of the last one stay. */
                if (model.isComplete)
                        this.list.update(model, this.filter.value);
                this.violations.update(model);
                this.empty.hidden = !empty;
                this.bindingsCard.hidden = empty;
                this.drawSummary([...model.bindings.values()]);
                this.drawNotes(model.manager);
        }

        drawSummary(bindings) {
                const states = ["active", "waiting", "failed", "disabled"].map(state =>
                        [state, bindings.filter(binding => binding.state === state).length]);
                const violations = bindings.reduce((sum, binding) => sum + binding.violations, 0);

                setText(this.summary, [
                        plural(bindings.length, "binding"),
                        ...states.filter(([, n]) => n > 0).map(([state, n]) => `${count(n)} ${state}`),
                        plural(violations, "violation"),
                ].join(" · "));
        }

        drawNotes({ Ignored = [], Lost = 0, Limitations = [] }) {
                const text = JSON.stringify([Ignored, Lost, Limitations]);

                if (text === this.notesText)
                        return;
                this.notesText = text;
                const warning = (...what) => make("div", { class: "tl-alert tl-warning" }, what);
                const list = lines => make("ul", {}, lines.map(line => make("li", {}, quoted(line))));
                const lost = `Reports lost between kernel and daemon, but counted: ${count(Lost)}`;

                this.notes.replaceChildren(
                        Lost > 0 ? warning(lost) : "",
                        Ignored.length > 0 ? warning("Ignored in the configuration:", list(Ignored)) : "",
                        Limitations.length > 0 ? make("details", { class: "tl-limitations" },
                                make("summary", {}, "Limitations of this machine"), list(Limitations)) : "");
        }
}

followTheme();
new Page().start();
