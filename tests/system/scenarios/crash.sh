# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# tlobd is killed, and before there is another one, something changes: a program is overwritten, instances start,
# bindings get other names. What is measured by the next one is right, and no program is harmed.

. "${BASH_SOURCE[0]%/*}/assert.sh"

etc=/etc/systemd/system
tests=/usr/libexec/tlob-tests
victim=$tests/victim

# crash COMMAND...: while there is no tlobd.
crash() {
        local pid

        pid=$(main_pid)
        systemctl kill --signal=KILL --kill-whom=main tlobd
        "$@"
        check "there is another tlobd" until_true started_anew "$pid"
}

# crash_after COMMAND...: while it stands still, so that there cannot be another one before the command has ended.
crash_after() {
        local pid

        pid=$(main_pid)
        kill -STOP "$pid"
        "$@"
        kill -KILL "$pid"
        check "there is another tlobd" until_true started_anew "$pid"
}

active() {
        tlobctl list-bindings -j | jq '[.[] | select(.State == "active")] | length'
}

are_active() {
        [ "$(active)" = "$1" ]
}

mkdir -p /run/systemd/system/tlobd.service.d
printf '[Service]\nRestartSec=500ms\n' >/run/systemd/system/tlobd.service.d/slow.conf
systemctl daemon-reload
start_fresh

# A program that is overwritten: the probes of the old one are gone before there are others.
cp "$tests/changeling" /tmp/program
check "a binding on a program" tlobctl add-binding program --executable=/tmp/program --function=request --budget=1s
/tmp/program >/tmp/before
overwrite() {
        cat "$tests/changeling-changed" >/tmp/program
}
crash_after overwrite
check "the program runs" /tmp/program
check "and again" /tmp/program
tlobctl remove-binding program

# Instances that nobody has known.
printf '[Service]\nExecStart=%s repeat:100000 ( a( sleep:20000000 ) )\n[X-Tlob a]\nFunction=victim_a\nBudgetSec=1ms\n' \
        "$victim" >"$etc/new@.service"
systemctl daemon-reload
start_instances() {
        systemctl start "new@$1-a.service" "new@$1-b.service"
}
has_violations() {
        [ "$(binding "$1" Violations)" -gt 0 ]
}
for round in 1 2; do
        systemctl start "new@$round.service"
        crash start_instances "$round"
        for i in "$round" "$round"-a "$round"-b; do
                check "new@$i is measured" until_true has_violations "new@$i.service/a"
        done
done
systemctl stop 'new@*.service'

# No room to spare: twice as many probes as bindings for a moment.
mkdir -p /etc/tlob/tlobd.conf.d
printf '[Daemon]\nBindingsMax=5\nSpareInstances=0\n' >/etc/tlob/tlobd.conf.d/limits.conf
rm -f "$etc/new@.service"
systemctl daemon-reload
systemctl restart tlobd
set_bindings() { # PREFIX
        rm -f /etc/tlob/bindings.d/*
        for f in a b c storm; do
                printf '[Binding %s-%s]\nExecutable=%s\nFunction=victim_%s\nBudgetSec=1s\n' "$1" "$f" "$victim" "$f"
        done >/etc/tlob/bindings.d/all.conf
}
set_bindings one
tlobctl reload
equal "four bindings of five" "$(active)" 4
"$victim" 'repeat:100' '(' 'a(' ')' ')' >/dev/null
for round in 1 2; do
        crash true
        crash true
        check "twice: all are there" until_true are_active 4
done
equal "with their books" "$(binding one-a Windows)" 100
crash_after set_bindings two
check "under other names" until_true are_active 4
equal "which have books of their own" "$(binding two-a Windows)" 0

# A signal that only asks it to end, by whoever is not systemd.
"$victim" 'repeat:7' '(' 'a(' ')' ')' >/dev/null
pid=$(main_pid)
kill "$pid"
check "asked to end: there is another tlobd" until_true started_anew "$pid"
check "asked to end: all are there" until_true are_active 4
equal "asked to end: with their books" "$(binding two-a Windows)" 7
check "systemd can stop it" systemctl stop tlobd
sleep 1.5
equal "and it stays so" "$(systemctl is-active tlobd)" inactive
rm -f /etc/tlob/bindings.d/all.conf
finish
