/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The connection to tlobd, through Cockpit: it keeps the model as the daemon has it, and calls
 * methods.
 *
 * What is configured, and each violation, comes by signals. Counters and histograms change all the
 * time and have none: those of a binding are read again soon after a report of it, and all of them
 * every few seconds while somebody looks at the page. Nothing is asked while the daemon is absent,
 * as each question would start it: that its name has an owner again is a signal, too.
 */

import { readViolation, VIOLATIONS_MAX } from "./model.js";

const cockpit = window.cockpit;

const NAME = "org.tlob1";
const PATH = "/org/tlob1";
const MANAGER = "org.tlob1.Manager";
const BINDING = "org.tlob1.Binding";
const PROPERTIES = "org.freedesktop.DBus.Properties";
const OBJECTS = "org.freedesktop.DBus.ObjectManager";

const FLAG_PERSIST = 1;
const BUDGET_CONFIGURED = 0;

const SOON_MS = 1000;
const REFRESH_MS = 5000;
/* A refresh of many bindings may take so much of the time, at most: a twentieth. */
const REFRESH_PART = 20;
/* Of so many bindings at once, it is cheaper to read all. */
const DIRTY_MAX = 8;

const ABSENT = /^(not-found|org\.freedesktop\.DBus\.Error\.(ServiceUnknown|NameHasNoOwner|Spawn\..*))$/;
const DENIED = /^(access-denied|org\.freedesktop\.DBus\.Error\.(AccessDenied|AuthFailed))$/;
/* The answer of a daemon that goes away; that it does is told by a signal. */
const GONE = /^(disconnected|org\.freedesktop\.DBus\.Error\.(NoReply|Disconnected))$/;

/* The daemon's sentence as it is. */
export function sentenceOf(error) {
        return error.message || cockpit.message(error);
}

/* With other privileges, other calls are allowed. */
const permission = cockpit.permission({ admin: true });

/*
 * For who may have Cockpit's administrative access, and has not turned it on. tlobctl has no names
 * for errors, so that the sentence is looked at.
 */
export function helpOf(error) {
        return permission.allowed === false && /^Access denied\b/.test(sentenceOf(error))
                ? "To call as root, turn on administrative access: “Limited access”, above." : null;
}

const REPORT = ["binding", "unit", "tid", "budget_ns", "elapsed_ns", "running_ns", "waiting_ns", "sleeping_ns"];

const plain = variants =>
        Object.fromEntries(Object.entries(variants).map(([name, { v }]) => [name, v]));

function reportOf(args) {
        const named = Object.fromEntries(REPORT.map((name, i) => [name, args[i]]));

        return readViolation({ ...named, ...plain(args[REPORT.length]) }, new Date());
}

export class Bus {
        /* on: state(state, sentence), change(). */
        constructor(model, on) {
                this.model = model;
                this.on = on;
                this.client = null;
                this.watcher = null;
                this.state = "connecting";
                this.dirty = new Set();
                this.refreshed = 0;
                this.refreshTook = 0;
        }

        start() {
                this.allowed = permission.allowed;
                permission.addEventListener("changed", () => this.followPermission(permission.allowed));
                setInterval(() => this.tick(), 1000);
                this.connect();
        }

        /*
         * It is null while somebody is asked for a password. Calls that are made then wait for
         * that, and fail if it does.
         */
        followPermission(allowed) {
                if (allowed === null)
                        return;
                if (this.state === "failed" || (this.allowed !== null && this.allowed !== allowed))
                        this.connect();
                this.allowed = allowed;
        }

        /* Of the bus itself, which is always there, or else nothing is. */
        watch() {
                this.watcher = cockpit.dbus("org.freedesktop.DBus", { bus: "system" });
                this.watcher.subscribe({ interface: "org.freedesktop.DBus", member: "NameOwnerChanged", arg0: NAME },
                                       (path, iface, member, [, , owner]) => this.followOwner(owner));
                this.watcher.addEventListener("close", (event, { problem, message }) => {
                        this.watcher = null;
                        this.fail({ problem, message });
                });
        }

        followOwner(owner) {
                if (owner)
                        this.connect();
                else
                        this.setState("absent", "");
        }

        setState(state, sentence) {
                this.state = state;
                if (state !== "connected") {
                        this.client?.close();
                        this.client = null;
                }
                this.on.state(state, sentence);
        }

        fail(error) {
                const what = error.problem || error.name || "";

                if (GONE.test(what) && this.state === "absent")
                        return;
                const state = ABSENT.test(what) ? "absent" : DENIED.test(what) ? "denied" : "failed";
                this.setState(state, sentenceOf(error));
        }

        connect() {
                if (!this.watcher)
                        this.watch();
                const client = cockpit.dbus(NAME, { bus: "system", superuser: "try" });

                this.client?.close();
                this.client = client;
                this.model.clear();
                client.addEventListener("close", (event, { problem, message }) => {
                        if (client === this.client && problem)
                                this.fail({ problem, message });
                });
                this.subscribe(client, MANAGER, (path, iface, member, args) => this.follow(member, args));
                this.subscribe(client, OBJECTS, (path, iface, member, args) =>
                        this.followObject(member, args));
                this.subscribe(client, PROPERTIES, (path, iface, member, args) =>
                        this.followProperties(path, args));
                this.load(client);
        }

        subscribe(client, iface, handler) {
                client.subscribe({ path_namespace: PATH, interface: iface }, (...args) => {
                        if (client !== this.client)
                                return;
                        /* An exception would take other signals with it that have arrived. */
                        try {
                                handler(...args);
                        } catch (error) {
                                console.error("tlob: cannot read a signal:", error);
                        }
                        this.on.change();
                });
        }

        /* What is there first is shown first. */
        async load(client) {
                try {
                        await Promise.all([this.readViolations(client), this.readAll(client)]);
                } catch (error) {
                        if (client === this.client)
                                this.fail(error);
                }
        }

        /* Whatever comes after the client has been given up is ignored. */
        async ask(client, path, iface, method, type, args, options = {}) {
                const reply = await client.call(path, iface, method, args, { type, ...options });

                if (client !== this.client)
                        return null;
                if (this.state !== "connected")
                        this.setState("connected", "");
                return reply;
        }

        async readViolations(client) {
                const reply = await this.ask(client, PATH, MANAGER, "GetViolations", "u", [VIOLATIONS_MAX]);

                if (!reply)
                        return;
                this.model.setViolations(reply[0].map(plain).map(values =>
                        readViolation(values, new Date(values.realtime_ns / 1e6))));
                this.on.change();
        }

        async readAll(client) {
                const begin = performance.now();
                const [objects, manager] = await Promise.all([
                        this.ask(client, PATH, OBJECTS, "GetManagedObjects", "", []),
                        this.ask(client, PATH, PROPERTIES, "GetAll", "s", [MANAGER]),
                ]);

                if (!objects || !manager)
                        return;
                this.model.setBindings(objects[0]);
                this.model.manager = plain(manager[0]);
                this.dirty.clear();
                this.refreshed = performance.now();
                this.refreshTook = this.refreshed - begin;
                this.on.change();
        }

        async readBinding(client, path) {
                const reply = await this.ask(client, path, PROPERTIES, "GetAll", "s", [BINDING]);

                if (!reply || !this.model.bindings.has(path))
                        return;
                this.model.setBinding(path, reply[0]);
                this.on.change();
        }

        follow(member, args) {
                if (member === "Violation")
                        this.model.addViolation(reportOf(args));
                else if (member === "Completed")
                        this.model.completeViolation(reportOf(args));
                if (member === "Violation" || member === "Completed" || member === "ToleranceChanged")
                        this.markDirty(this.model.findBinding(args[0])?.path);
        }

        followObject(member, [path, what]) {
                if (member === "InterfacesAdded" && what[BINDING])
                        this.model.setBinding(path, what[BINDING]);
                else if (member === "InterfacesRemoved" && what.includes(BINDING))
                        this.model.removeBinding(path);
        }

        followProperties(path, [iface, changed, invalidated]) {
                if (iface !== BINDING)
                        return;
                this.model.changeBinding(path, changed);
                if (invalidated.length > 0)
                        this.markDirty(path);
        }

        markDirty(path) {
                if (!path)
                        return;
                if (this.dirty.size === 0)
                        setTimeout(() => this.readDirty(), SOON_MS);
                this.dirty.add(path);
        }

        readDirty() {
                const paths = [...this.dirty];
                const client = this.client;

                this.dirty.clear();
                if (!client || paths.length === 0)
                        return;
                if (paths.length <= DIRTY_MAX)
                        for (const path of paths)
                                this.readBinding(client, path).catch(error => this.complain(error));
                else if (this.isDue(SOON_MS))
                        this.refresh(client);
        }

        isDue(least) {
                return !this.refreshing &&
                        performance.now() - this.refreshed > Math.max(least, this.refreshTook * REFRESH_PART);
        }

        tick() {
                if (this.client && this.state === "connected" && !cockpit.hidden && this.isDue(REFRESH_MS))
                        this.refresh(this.client);
        }

        async refresh(client) {
                this.refreshing = true;
                try {
                        await this.readAll(client);
                } catch (error) {
                        this.complain(error);
                } finally {
                        this.refreshing = false;
                        this.refreshed = performance.now();
                }
        }

        /* The next one may succeed; that the daemon is gone is told otherwise. */
        complain(error) {
                console.debug("tlob: cannot read counters:", sentenceOf(error));
        }

        /* Throws what the daemon says. */
        call(method, type, args) {
                if (!this.client)
                        throw new Error("tlobd is not running");
                return this.client.call(PATH, MANAGER, method, args, { type, flags: "i" });
        }

        async setBudget(name, ns, persist) {
                if (ns !== Infinity) {
                        await this.call("SetBudget", "stt", [name, ns, persist ? FLAG_PERSIST : 0]);
                        return;
                }
                /* No number in JavaScript arrives as 2^64 - 1, so tlobctl makes the call. */
                try {
                        await cockpit.spawn(["tlobctl", "set-budget", persist ? "--persist" : "--runtime", "--",
                                             name, "infinity"], { superuser: "try", err: "message" });
                } catch (error) {
                        throw new Error(sentenceOf(error).replace(/^tlobctl: /, "").trim());
                }
        }

        async resetBudget(name, persist) {
                await this.call("SetBudget", "stt", [name, BUDGET_CONFIGURED, persist ? FLAG_PERSIST : 0]);
        }

        /* properties: texts, by the keys of tlob.binding(5). */
        async addBinding(name, properties, persist) {
                const variants = Object.entries(properties).map(([key, v]) => [key, { t: "s", v }]);

                await this.call("AddBinding", "sa{sv}t",
                                [name, Object.fromEntries(variants), persist ? FLAG_PERSIST : 0]);
        }

        async removeBinding(name) {
                await this.call("RemoveBinding", "st", [name, 0]);
        }

        async getStack(id) {
                return (await this.call("GetStack", "t", [id]))[0];
        }
}
