/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Where the time of a window went: a bar of three parts, with its numbers below it. A state that
 * the back end does not know has no part.
 */

import { make } from "./dom.js";
import { durationLike } from "./format.js";

const STATES = ["running", "waiting", "sleeping"];

/* times: of elapsed, running, waiting and sleeping, in ns. null: nothing is known. */
export function stateBar(times) {
        const known = STATES.filter(state => times[state] !== Infinity);
        const total = known.reduce((sum, state) => sum + times[state], 0);
        const whole = times.elapsed ?? total;
        const texts = known.map(state => `${state} ${durationLike(times[state], whole)}`);

        if (total === 0)
                return null;
        const parts = known.filter(state => times[state] > 0).map(state => {
                const part = make("span", { class: `tl-part tl-${state}` });

                part.style.flexGrow = times[state] / total;
                return part;
        });
        return make("div", { class: "tl-states" },
                    make("div", { class: "tl-bar", role: "img", "aria-label": texts.join(", ") }, parts),
                    make("div", { class: "tl-legend" }, known.map((state, i) =>
                            make("span", { class: `tl-key tl-${state}` }, texts[i]))));
}
