/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Numbers and texts as people read them, and times as people write them. Pure.
 *
 * Durations look like those of tlobctl (core/base/duration.c). Text from the bus is untrusted: a
 * task chooses its own name. visible() escapes what could reorder or hide a line, as tlobctl does;
 * that it never becomes markup is up to dom.js.
 */

/* The grammar of systemd, as far as tlobd accepts it. */
const UNITS = {
        ns: 1, nsec: 1,
        us: 1e3, usec: 1e3, "\u00b5s": 1e3, "\u03bcs": 1e3,
        ms: 1e6, msec: 1e6,
        s: 1e9, sec: 1e9, second: 1e9, seconds: 1e9,
        m: 60e9, min: 60e9, minute: 60e9, minutes: 60e9,
        h: 3600e9, hr: 3600e9, hour: 3600e9, hours: 3600e9,
};
const STEPS = [["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]];

/*
 * Control characters, and those that are invisible or change the direction of what follows.
 */
const UNPRINTABLE =
        /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

export function visible(text) {
        return String(text).replace(UNPRINTABLE, c => {
                const code = c.charCodeAt(0);

                return code < 0x100 ? "\\x" + code.toString(16).padStart(2, "0")
                                    : "\\u" + code.toString(16).padStart(4, "0");
        });
}

function inUnit(ns, [name, unit]) {
        const tenths = Math.round(ns * 10 / unit);

        return unit > 1 && tenths < 1000 ? (tenths / 10).toFixed(1) + name
                                         : Math.round(ns / unit) + name;
}

function stepOf(ns) {
        let i = 0;

        while (i + 1 < STEPS.length && ns >= STEPS[i + 1][1] - STEPS[i][1] / 2)
                i++;
        return STEPS[i];
}

/* Exact: "1.5ms", "1min 30s", "infinity". */
export function exactDuration(ns) {
        const parts = [];

        if (ns === Infinity)
                return "infinity";
        if (ns >= 3600e9)
                parts.push(Math.floor(ns / 3600e9) + "h");
        if (ns % 3600e9 >= 60e9)
                parts.push(Math.floor(ns % 3600e9 / 60e9) + "min");
        const rest = ns % 60e9;
        if (rest > 0 || parts.length === 0) {
                const [name, unit] = [...STEPS].reverse().find(([, n]) => rest >= n) ?? STEPS[0];
                const digits = Math.round(Math.log10(unit));
                const [whole, part] = [Math.floor(rest / unit), rest % unit];
                const decimals = part ? "." + String(part).padStart(digits, "0").replace(/0+$/, "")
                                      : "";
                parts.push(whole + decimals + name);
        }
        return parts.join(" ");
}

/* Three digits or so: "5.0ms", "561ms", "2min 3s". Infinity: it is not known. */
export function duration(ns) {
        if (ns === Infinity)
                return "unknown";
        if (ns < 59.95e9)
                return inUnit(ns, stepOf(ns));
        const seconds = Math.round(ns / 1e9);
        return seconds < 3600
                ? exactDuration(seconds * 1e9)
                : `${Math.floor(seconds / 3600)}h ${Math.floor(seconds % 3600 / 60)}min`;
}

/* In the unit of the whole that it is a part of. */
export function durationLike(ns, whole) {
        return ns === Infinity ? "unknown" : inUnit(ns, stepOf(whole === Infinity ? ns : whole));
}

export function count(n) {
        return n === Infinity ? "unknown" : n.toLocaleString("en-US");
}

/* "1 binding", "2 bindings" */
export function plural(n, one, many = one + "s") {
        return `${count(n)} ${n === 1 ? one : many}`;
}

export function clock(date) {
        const today = date.toDateString() === new Date().toDateString();
        const time = date.toLocaleTimeString([], { hour12: false });

        return today ? time : `${date.toLocaleDateString([], { month: "short", day: "numeric" })} ${time}`;
}

/* What a person wrote, in nanoseconds. Throws a sentence. */
export function parseDuration(text) {
        const terms = [...text.trim().matchAll(/\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z\u00b5\u03bc]+)/gy)];
        const length = terms.reduce((sum, term) => sum + term[0].length, 0);

        if (text.trim() === "infinity")
                return Infinity;
        if (terms.length === 0 || length !== text.trim().length || terms.some(t => !Object.hasOwn(UNITS, t[2])))
                throw new Error(`'${text.trim()}' is not a time; write it like 250us, 1.5ms, 2s, or ` +
                                "infinity to report nothing");
        return Math.round(terms.reduce((sum, [, n, unit]) => sum + n * UNITS[unit], 0));
}

/*
 * The same of a budget. Which are possible, the daemon says; but 0 would be the configured one, and
 * not every large number can be sent.
 */
export function parseBudget(text) {
        const ns = parseDuration(text);

        if (ns !== Infinity && (ns === 0 || !Number.isSafeInteger(ns)))
                throw new Error(`A budget of ${text.trim()} is out of range; write 1us to 1h, or infinity`);
        return ns;
}
