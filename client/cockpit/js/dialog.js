/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Dialogs: the browser's own, which keep the focus inside, close by Escape, and give the focus back
 * to the button that opened them. This one adds a title, a form, and a place for what went wrong:
 * an action that fails leaves everything as it was, with the daemon's sentence above the buttons.
 */

import { button, make, quoted } from "./dom.js";
import { helpOf, sentenceOf } from "./bus.js";

let last = 0;

export function alertBox(error) {
        const help = helpOf(error);

        return make("div", { class: "tl-alert tl-danger", role: "alert" }, quoted(sentenceOf(error)),
                    help ? make("p", {}, help) : null);
}

/* While an action is underway, nothing is pressed twice. */
async function perform(dialog, place, action) {
        const controls = dialog.querySelectorAll("button, input");
        const before = document.activeElement;

        for (const control of controls)
                control.disabled = true;
        try {
                place.replaceChildren();
                await action();
                dialog.close();
        } catch (error) {
                place.replaceChildren(alertBox(error));
        } finally {
                for (const control of controls)
                        control.disabled = false;
                if (dialog.open)
                        before.focus();
        }
}

/*
 * title, body: elements; submit: { text, kind, action }, or none; others: more buttons, as submit.
 * An action is a function that may return a promise.
 */
export function openDialog({ title, body, submit, others = [] }) {
        const id = `tl-dialog-${last++}`;
        const place = make("div", { "aria-live": "assertive" });
        const close = button(submit ? "Cancel" : "Close", submit ? "plain" : "secondary",
                             () => dialog.close());
        const buttons = others.map(({ text, kind, action }) =>
                button(text, kind, () => perform(dialog, place, action)));
        const form = make("form", {
                novalidate: true,
                submit: event => {
                        event.preventDefault();
                        if (submit)
                                perform(dialog, place, submit.action);
                },
        }, make("div", { class: "tl-dialog-body" }, body), place, make("div", { class: "tl-dialog-buttons" },
                submit ? make("button", { type: "submit", class: `tl-button tl-${submit.kind ?? "primary"}` },
                              submit.text) : null, buttons, close));
        const dialog = make("dialog", { class: "tl-dialog", "aria-labelledby": id, close: () => dialog.remove() },
                            make("h2", { id }, title), form);

        document.body.append(dialog);
        dialog.showModal();
        (dialog.querySelector("input") ?? dialog.querySelector("button")).focus();
        return dialog;
}

/* A field with its label, and what is to be known of it. */
export function field(label, attributes = {}, help = null) {
        const id = `tl-field-${last++}`;
        const input = make("input", { id, type: "text", class: "tl-input", autocomplete: "off", spellcheck: "false",
                                      "aria-describedby": help ? `${id}-help` : null, ...attributes });

        return {
                input,
                node: make("div", { class: "tl-field" }, make("label", { for: id }, label), input,
                           help ? make("div", { class: "tl-help", id: `${id}-help` }, help) : null),
        };
}

export function checkbox(label, help) {
        const id = `tl-field-${last++}`;
        const input = make("input", { id, type: "checkbox", "aria-describedby": `${id}-help` });

        return {
                input,
                node: make("div", { class: "tl-field tl-check" }, input, make("label", { for: id }, label),
                           make("div", { class: "tl-help", id: `${id}-help` }, help)),
        };
}
