/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Elements of the page. Text goes into text nodes, never into markup: this file is the only one
 * that makes elements, and it has no way to do otherwise.
 */

import { visible } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
        for (const [name, value] of Object.entries(attributes)) {
                if (value === undefined || value === null || value === false)
                        continue;
                if (typeof value === "function")
                        node.addEventListener(name, value);
                else
                        node.setAttribute(name, value === true ? "" : value);
        }
        node.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
        return node;
}

/* make("button", { class: "tl-link", click: f }, "text", otherElement) */
export function make(tag, attributes = {}, ...children) {
        return fill(document.createElement(tag), attributes, children);
}

export function makeSvg(tag, attributes = {}, ...children) {
        return fill(document.createElementNS(SVG, tag), attributes, children);
}

/* What came from the bus: a name, a path, a sentence. It keeps its direction to itself. */
export function quoted(text, more = "") {
        return make("bdi", { class: "tl-quoted " + more }, visible(text));
}

export function button(text, kind, click, attributes = {}) {
        return make("button", { type: "button", class: `tl-button tl-${kind}`, click, ...attributes },
                    text);
}

/* Only what changed is touched, so that selections and focus stay. */
export function setText(node, text) {
        if (node.textContent !== text)
                node.textContent = text;
}

export function setClass(node, name) {
        if (node.getAttribute("class") !== name)
                node.setAttribute("class", name);
}

/*
 * Makes the children of a parent those that are listed, in that order; those that are there already
 * are not moved without need.
 */
export function setChildren(parent, children) {
        let next = parent.firstChild;

        for (const child of children) {
                if (child === next)
                        next = next.nextSibling;
                else
                        parent.insertBefore(child, next);
        }
        while (next) {
                const rest = next.nextSibling;

                next.remove();
                next = rest;
        }
}
