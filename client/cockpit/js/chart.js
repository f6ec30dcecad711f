/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The distribution of a binding's windows: a histogram in SVG, with budget and percentiles marked.
 *
 * Both axes are logarithmic: what matters is the few that take a hundred times as long as the many.
 * The daemon's buckets, each at most 6.25 % wide, are joined to columns of equal width.
 */

import { makeSvg } from "./dom.js";
import { count, duration, exactDuration, plural } from "./format.js";

const WIDTH_MIN = 300;
const WIDTH_MAX = 960;
const HEIGHT = 230;
const LEFT = 48;
const RIGHT = 16;
const TOP = 64;
const BOTTOM = 30;
const COLUMN_WIDTH = 11;
const PLOT_HEIGHT = HEIGHT - TOP - BOTTOM;
/* Beyond the last bucket that has a bound. */
const LONGEST_NS = 2 * 3600e9;
const MARK_LINE = 15;
const MARK_LETTER = 6.6;

const finite = ns => Math.min(ns, LONGEST_NS);

/* The range of the lower axis, in logarithms, with the budget in it. */
function rangeOf(binding) {
        const bounds = binding.histogram.map(([upper]) => finite(upper));
        const ends = [...bounds, finite(binding.max)].filter(ns => ns > 0);

        if (binding.budget !== Infinity)
                ends.push(binding.budget);
        return [Math.log10(Math.min(...ends) / 1.3), Math.log10(Math.max(...ends) * 1.3)];
}

function columnsOf(histogram, [low, high], nColumns) {
        const columns = new Array(nColumns).fill(0);

        for (const [upper, n] of histogram) {
                const part = (Math.log10(finite(upper)) - low) / (high - low);

                columns[Math.min(nColumns - 1, Math.max(0, Math.floor(part * nColumns)))] += n;
        }
        return columns;
}

/* A single one is to be seen, so the axis begins below one. */
const heightOf = (n, most) => n === 0 ? 0 : PLOT_HEIGHT * Math.log10(2 * n) / Math.log10(2 * most);

function drawColumns(columns, most, right, budgetX) {
        const width = (right - LEFT) / columns.length;

        return columns.map((n, i) => {
                const height = heightOf(n, most);
                const x = LEFT + i * width;
                const over = x + width / 2 > budgetX ? " tl-over" : "";

                return n === 0 ? null : makeSvg("rect", {
                        class: "tl-column" + over, x: x + 0.5, width: width - 1,
                        y: TOP + PLOT_HEIGHT - height, height,
                });
        });
}

function drawCountAxis(most, right) {
        const ticks = [];

        for (let n = 1; n <= most; n *= 10)
                ticks.push(n);
        /* As many as are legible. */
        const every = Math.ceil(ticks.length / 5);
        return ticks.filter((_, i) => i % every === 0).flatMap(n => {
                const y = TOP + PLOT_HEIGHT - heightOf(n, most);

                return [
                        makeSvg("line", { class: "tl-grid", x1: LEFT, x2: right, y1: y, y2: y }),
                        makeSvg("text", { class: "tl-tick", x: LEFT - 6, y: y + 4, "text-anchor": "end" },
                                n >= 1e6 ? `${n / 1e6}M` : n >= 1e3 ? `${n / 1e3}k` : String(n)),
                ];
        });
}

/* Powers of ten, also of seconds. */
const tickName = ns => ns >= 1e9 ? `${Math.round(ns / 1e9)}s` : exactDuration(Math.round(ns));

function drawTimeAxis([low, high], right, toX) {
        const y = TOP + PLOT_HEIGHT;
        const parts = [makeSvg("line", { class: "tl-axis", x1: LEFT, x2: right, y1: y, y2: y })];
        const steps = high - low < 1.2 ? [1, 2, 5] : [1];
        let end = 0; /* of the last label */

        for (let power = Math.floor(low); power <= high; power++)
                for (const step of steps) {
                        const ns = step * 10 ** power;
                        const x = toX(ns);
                        const name = tickName(ns);
                        const half = name.length * MARK_LETTER / 2;

                        if (ns < 1 || x < LEFT || x - half < end || x + half > right + RIGHT)
                                continue;
                        end = x + half + MARK_LETTER;
                        parts.push(makeSvg("line", { class: "tl-axis", x1: x, x2: x, y1: y, y2: y + 4 }),
                                   makeSvg("text", { class: "tl-tick", x, y: y + 18, "text-anchor": "middle" },
                                           name));
                }
        return parts;
}

/* From left to right, each on the first line on which it has room. */
function drawMarks(binding, right, toX) {
        const marks = [
                ["p50", binding.p50, ""], ["p99", binding.p99, ""], ["max", binding.max, ""],
                ["budget", binding.budget, " tl-budget"],
        ].filter(([, ns]) => ns > 0 && ns !== Infinity).sort((a, b) => a[1] - b[1]);
        const ends = [];

        return marks.flatMap(([name, ns, kind]) => {
                const text = `${name} ${name === "budget" ? exactDuration(ns) : duration(ns)}`;
                const width = text.length * MARK_LETTER;
                const x = toX(ns);
                const begin = x + 3 + width > right + RIGHT ? x - 3 - width : x + 3;
                const free = ends.findIndex(end => end < begin);
                const line = free >= 0 ? free : ends.length;
                const y = 12 + line * MARK_LINE;

                ends[line] = begin + width;
                return [
                        makeSvg("line", { class: "tl-mark" + kind, x1: x, x2: x, y1: y - 9,
                                          y2: TOP + PLOT_HEIGHT }),
                        makeSvg("text", { class: "tl-mark-name" + kind, x: begin, y }, text),
                ];
        });
}

/* The picture in words. */
export function describe(binding) {
        const over = binding.violations;
        const parts = [
                `${plural(binding.ended, "window")} ended: half of them within ${duration(binding.p50)}`,
                `99 of 100 within ${duration(binding.p99)}`,
                `the longest took ${duration(binding.max)}`,
        ];
        const budget = binding.budget === Infinity
                ? "There is no budget for the whole time."
                : `The budget is ${exactDuration(binding.budget)}; ` +
                  `${over === 1 ? "1 window" : `${count(over)} windows`} did not keep a budget.`;

        return `${parts.join(", ")}. ${budget}`;
}

/* There must be windows that have ended. space: how wide the picture may be, in pixels. */
export function drawChart(binding, space) {
        const width = Math.max(WIDTH_MIN, Math.min(WIDTH_MAX, space));
        const right = width - RIGHT;
        const range = rangeOf(binding);
        const [low, high] = range;
        const toX = ns => LEFT + (right - LEFT) * (Math.log10(finite(ns)) - low) / (high - low);
        const columns = columnsOf(binding.histogram, range, Math.floor((right - LEFT) / COLUMN_WIDTH));
        const most = Math.max(2, ...columns);
        const budgetX = binding.budget === Infinity ? Infinity : toX(binding.budget);

        return makeSvg("svg", {
                class: "tl-chart", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img",
                "aria-label": describe(binding),
        }, drawCountAxis(most, right), drawColumns(columns, most, right, budgetX),
                       drawTimeAxis(range, right, toX), drawMarks(binding, right, toX));
}
