/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What the page knows: the bindings, and the recent violations. No bus, and nothing of the page.
 *
 * On D-Bus, 2^64 - 1 means "infinity" in budgets and "unknown" elsewhere. Cockpit's bridge in C
 * makes -1 of it, later ones a number that is too large to be exact: both are Infinity here.
 */

export const VIOLATIONS_MAX = 200;

const number = n => typeof n !== "number" || n < 0 || n >= 2 ** 63 ? Infinity : n;

/* As the daemon counts: rounded up, and never above the longest. Infinity: there are none. */
export function percentile(histogram, max, part) {
        const total = histogram.reduce((sum, [, n]) => sum + n, 0);
        const rank = Math.ceil(total * part);
        let seen = 0;

        if (total === 0)
                return Infinity;
        for (const [upper, n] of histogram) {
                seen += n;
                if (seen >= rank)
                        return Math.min(upper, max);
        }
        return max;
}

function withPercentiles(binding) {
        const { histogram, max } = binding;

        binding.ended = histogram.reduce((sum, [, n]) => sum + n, 0);
        binding.p50 = percentile(histogram, max, 0.5);
        binding.p99 = percentile(histogram, max, 0.99);
        return binding;
}

/* properties: as the bridge gives them, each { t, v }. */
function readBinding(path, properties) {
        const value = (name, otherwise = "") => properties[name]?.v ?? otherwise;
        const { total, ...others } = value("Budgets", {});

        return withPercentiles({
                path,
                name: value("Name"),
                unit: value("Unit"),
                source: value("Source"),
                executable: value("Executable"),
                start: value("Start"),
                stop: value("Stop"),
                budget: number(total),
                configured: number(value("ConfiguredBudgets", {}).total),
                others: Object.entries(others).map(([kind, ns]) => ({ kind, ns: number(ns) })),
                state: value("State"),
                reason: value("StateReason"),
                backend: value("Backend"),
                tolerance: value("Tolerance"),
                toleranceState: value("ToleranceState"),
                windows: number(value("Windows", 0)),
                violations: number(value("Violations", 0)),
                open: number(value("Counters", {}).open),
                running: number(value("RunningNSec", -1)),
                waiting: number(value("WaitingNSec", -1)),
                sleeping: number(value("SleepingNSec", -1)),
                max: number(value("MaxNSec", 0)),
                histogram: value("Histogram", []).map(([upper, n]) => [number(upper), n]),
                raw: properties,
        });
}

/* values: by the names of org.tlob1.xml. when: a Date. */
export function readViolation(values, when) {
        const took = values.took_ns === undefined ? null : {
                elapsed: number(values.took_ns),
                running: number(values.took_running_ns),
                waiting: number(values.took_waiting_ns),
                sleeping: number(values.took_sleeping_ns),
                stolen: values.took_stolen_ns ?? 0,
                probes: values.took_probes_ns ?? 0,
        };

        return {
                id: values.id,
                binding: values.binding ?? "",
                unit: values.unit ?? "",
                pid: values.pid ?? 0,
                tid: values.tid ?? 0,
                comm: values.comm ?? "",
                budget: number(values.budget_ns),
                kind: values.budget ?? "total",
                state: values.state ?? "",
                elapsed: number(values.elapsed_ns),
                running: number(values.running_ns),
                waiting: number(values.waiting_ns),
                sleeping: number(values.sleeping_ns),
                stolen: values.stolen_ns ?? 0,
                probes: values.probes_ns ?? 0,
                blockedIn: values.blocked_in ?? "",
                preemptedBy: values.preempted_by ?? "",
                wokenBy: values.woken_by ?? "",
                suppressed: values.suppressed ?? 0,
                end: values.end ?? "",
                took,
                when,
        };
}

export class Model {
        constructor() {
                this.clear();
        }

        clear() {
                this.bindings = new Map();
                this.violations = [];
                this.manager = {};
                this.isComplete = false; /* all bindings were read */
        }

        /* objects: as GetManagedObjects() returns them. */
        setBindings(objects) {
                this.bindings = new Map();
                this.isComplete = true;
                for (const [path, interfaces] of Object.entries(objects))
                        if (interfaces["org.tlob1.Binding"])
                                this.setBinding(path, interfaces["org.tlob1.Binding"]);
        }

        setBinding(path, properties) {
                this.bindings.set(path, readBinding(path, properties));
        }

        changeBinding(path, properties) {
                const binding = this.bindings.get(path);

                if (binding)
                        this.setBinding(path, { ...binding.raw, ...properties });
        }

        removeBinding(path) {
                this.bindings.delete(path);
        }

        findBinding(name) {
                return [...this.bindings.values()].find(binding => binding.name === name);
        }

        /* Those of each unit, by name; those of no unit come last. */
        groups(filter = "") {
                const groups = new Map();
                const word = filter.toLowerCase();
                const sorted = [...this.bindings.values()].sort((a, b) =>
                        (a.unit === "") - (b.unit === "") || compare(a.unit, b.unit) ||
                        compare(a.name, b.name));

                for (const binding of sorted) {
                        if (!`${binding.name} ${binding.unit}`.toLowerCase().includes(word))
                                continue;
                        if (!groups.has(binding.unit))
                                groups.set(binding.unit, []);
                        groups.get(binding.unit).push(binding);
                }
                return groups;
        }

        /* Ends can be missed, and who does not count what is open does not tell them. */
        isOpen({ took, binding }) {
                if (took)
                        return false;
                const open = this.findBinding(binding)?.open;

                return open !== 0 && open !== Infinity;
        }

        /* Newest first. Those that signals brought while the list was on its way stay. */
        setViolations(violations) {
                const known = new Set(violations.map(violation => violation.id));
                const newer = this.violations.filter(violation => !known.has(violation.id));

                this.violations = [...newer, ...violations].slice(0, VIOLATIONS_MAX);
        }

        addViolation(violation) {
                this.violations = [violation, ...this.violations].slice(0, VIOLATIONS_MAX);
        }

        /* The end of one that is known. Causes can be better known then. */
        completeViolation(completed) {
                const i = this.violations.findIndex(violation => violation.id === completed.id);

                if (i < 0)
                        return;
                const { elapsed, running, waiting, sleeping, stolen, probes } = completed;
                this.violations[i] = {
                        ...this.violations[i],
                        blockedIn: completed.blockedIn || this.violations[i].blockedIn,
                        preemptedBy: completed.preemptedBy || this.violations[i].preemptedBy,
                        wokenBy: completed.wokenBy,
                        end: completed.end,
                        took: { elapsed, running, waiting, sleeping, stolen, probes },
                };
        }
}

/* Not by the reader's language: as tlobctl sorts. */
function compare(a, b) {
        return a < b ? -1 : a > b ? 1 : 0;
}
