/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Round or not, light or dark, as the rest of Cockpit: the shell keeps the choice of light and dark
 * in "shell:style", and says by an event when it changes. "auto" is the browser's choice.
 */

const KEY = "shell:style";
const system = window.matchMedia("(prefers-color-scheme: dark)");

function apply(chosen) {
        const style = chosen || localStorage.getItem(KEY) || "auto";
        const dark = style === "dark" || (style === "auto" && system.matches);

        document.documentElement.classList.toggle("pf-theme-dark", dark);
}

/*
 * PatternFly 6 has this variable. The shell, in whose frame the page is, comes with Cockpit and has
 * what Cockpit has.
 */
function isRound() {
        const shell = window.parent.document.documentElement;

        return window.parent.getComputedStyle(shell).getPropertyValue("--pf-t--global--border--radius--pill") !== "";
}

export function followTheme() {
        document.documentElement.classList.toggle("tl-round", isRound());
        window.addEventListener("storage", event => {
                if (event.key === KEY)
                        apply();
        });
        window.addEventListener("cockpit-style", event => apply(event.detail.style));
        system.addEventListener("change", () => apply());
        apply();
}
