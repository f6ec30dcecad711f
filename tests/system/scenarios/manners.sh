# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# What an administrator runs into: templates, units that are not there, sections that are nearly
# right, a password that has to be asked for, a daemon that was stopped.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
binding=(--executable=libsqlite3.so.0 --function=sqlite3_step --budget=1s)

# said_by_tlobd PATTERN: it is in its own log.
said_by_tlobd() {
        journalctl --boot -q -o cat -u tlobd | grep -qE -- "$1"
}

# Templates.
printf '[Service]\nExecStart=/usr/bin/sqlite3 :memory: "%%i"\n' >"$etc/shop@.service"
systemctl daemon-reload
start_fresh
cat >"$run/editor" <<'END'
#!/bin/sh
printf '[X-Tlob step]\nExecutable=libsqlite3.so.0\nFunction=sqlite3_step\nBudgetSec=1s\n' >"$1"
END
chmod +x "$run/editor"
SYSTEMD_EDITOR=$run/editor check "edit: a template" tlobctl edit shop@
check "its drop-in is the template's" test -e "$etc/shop@.service.d/50-tlob.conf"
matches "cat: a template" "$(tlobctl cat shop@.service)" '^ +1  \[X-Tlob step\]$'
matches "verify: a template" "$(tlobctl verify --unit=shop@ 2>&1)" '^shop@\.service/step .*50-tlob\.conf:1'
refuse "cat: a template that is not there" 1 'There is no unit nosuch@\.service' tlobctl cat nosuch@
systemctl start shop@one
check "its instances have the binding" until_true tlobctl show shop@one.service/step
equal "no other instance has come into being" \
        "$(tlobctl list-bindings -j | jq -c 'map(.Name)')" '["shop@one.service/step"]'

# A unit that is not there is told at once, and the binding waits for it.
refuse "verify: a unit that is not there" 1 'There is no unit nosuch\.service' \
        tlobctl verify --unit=nosuch "${binding[@]}"
printf '[Binding b]\nUnit=nosuch.service\nExecutable=libsqlite3.so.0\nFunction=sqlite3_step\nBudgetSec=1s\n' >"$run/b.conf"
refuse "verify: nor in a file" 1 'b\.conf:1: There is no unit nosuch\.service' tlobctl verify "$run/b.conf"
refuse "verify: nor alone" 1 'There is no unit nosuch\.service' tlobctl verify --unit=nosuch
matches "add-binding: it is added, with a warning" \
        "$(tlobctl add-binding later --unit=nosuch "${binding[@]}" 2>&1)" 'There is no unit nosuch\.service; the binding waits'
matches "add-binding: and says why it waits" "$(until_true sh -c 'tlobctl show later | grep -q "cannot load"'
        tlobctl show later)" 'Reason: systemd cannot load nosuch\.service, or there is no such unit'
check "verify: a slice needs no file" tlobctl verify --unit=any.slice "${binding[@]}"

# A function that leaves its work to another one.
matches "add-binding: a tail call ends the window" \
        "$(tlobctl add-binding wrapper --executable=libc.so.6 --function=qsort --budget=1s 2>&1)" \
        "^Note: 'wrapper': 1 way out: 1 tail call .*, whose time is not measured"
check "and the log says so" until_true said_by_tlobd "'wrapper' may measure next to nothing.* 1 tail call"
tlobctl remove-binding wrapper

# Sections that are nearly ours.
printf '[Service]\nExecStart=/usr/bin/sqlite3\n[X-tlob f]\nFunction=main\nBudgetSec=1s\n' >"$etc/nearly.service"
systemctl daemon-reload
check "a section that is nearly ours is warned about" until_true said_by_tlobd \
        "nearly.service:3: Section \[X-tlob f\] is not read"
refuse "and verify says so" 1 'nearly.service:3: Section \[X-tlob f\] is not read' tlobctl verify --unit=nearly

# polkit asks on the terminal. Without logind, as here, it lets nobody in that way, systemctl neither: but it
# has an agent to ask, who is gone with tlobctl.
rm -f /etc/polkit-1/rules.d/50-tlob-test.rules
useradd --create-home someone 2>/dev/null
as_someone() {
        script -qec "runuser -u someone -- $*" /dev/null </dev/null
}
agents() {
        journalctl --boot -q -o cat -u polkit | grep -cE "$1 Authentication Agent for unix-process.*"
}
check "root may add a binding" tlobctl add-binding asked "${binding[@]}"
registered=$(agents ^Registered)
refuse "not everyone may remove it" 1 'Access denied' as_someone tlobctl remove-binding asked
check "polkit could ask on the terminal" until_true eval "[ \$(agents ^Registered) -gt $registered ]"
check "and no more when tlobctl has ended" until_true eval "[ \$(agents ^Unregistered) -gt $registered ]"
registered=$(agents ^Registered)
refuse "nor without being asked" 1 'needs a password|Access denied' as_someone tlobctl --no-ask-password remove-binding asked
as_someone tlobctl list-bindings >/dev/null
equal "who only looks is not asked" "$(agents ^Registered)" "$registered"
check "the binding is still there" tlobctl show asked

# Who comes while it is restarted waits for it.
systemctl kill --signal=KILL --kill-whom=main tlobd
check "looking waits for a daemon that is restarted" tlobctl show asked

# Who looks does not start what was stopped.
systemctl stop tlobd
refuse "looking starts no daemon" 1 "tlobd is not running; start it with 'systemctl start tlobd'" tlobctl
equal "it is still stopped" "$(systemctl is-active tlobd)" inactive
mv /lib/systemd/system/tlobd.service "$run"
systemctl daemon-reload
refuse "where there is none, it says so" 1 "tlobd is not installed: systemd has no tlobd.service; install the package tlobd" tlobctl
mv "$run/tlobd.service" /lib/systemd/system
systemctl daemon-reload
check "changing something does" tlobctl set-budget asked 2s
equal "it runs" "$(systemctl is-active tlobd)" active
matches "and says that the budget is not what is configured" "$(tlobctl show asked)" \
        'Budget: 2s, by set-budget; configured is 1s'

rm -r "$etc"/shop@* "$etc/nearly.service"
systemctl daemon-reload
finish
