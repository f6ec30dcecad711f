/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Light or dark, as the rest of Cockpit: the shell keeps the choice in "shell:style", and says by
 * an event when it changes. "auto" is the browser's choice.
 */

const KEY = "shell:style";
const system = window.matchMedia("(prefers-color-scheme: dark)");

function apply(chosen) {
        const style = chosen || localStorage.getItem(KEY) || "auto";
        const dark = style === "dark" || (style === "auto" && system.matches);

        document.documentElement.classList.toggle("pf-theme-dark", dark);
}

export function followTheme() {
        window.addEventListener("storage", event => {
                if (event.key === KEY)
                        apply();
        });
        window.addEventListener("cockpit-style", event => apply(event.detail.style));
        system.addEventListener("change", () => apply());
        apply();
}
