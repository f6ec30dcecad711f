# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A service that crashes whenever it has run for a moment: its third start is without probes. One that is killed
# as often keeps its own.

. "${BASH_SOURCE[0]%/*}/assert.sh"

victim=/usr/libexec/tlob-tests/victim

# looping NAME SIGNAL: a service whose main process sends itself that signal.
looping() {
        cat >"/etc/systemd/system/$1.service" <<END
[Unit]
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/sh -c '$victim "a(" sleep:1000000 ")"; sleep 0.3; kill -$2 \$\$\$\$'
Restart=always
RestartSec=300ms
LimitCORE=0
[X-Tlob nap]
Executable=$victim
Function=victim_a
BudgetSec=100us
END
}

state() {
        [ "$(binding "$1.service/nap" State)" = "$2" ]
}

restarts() {
        [ "$(systemctl show -P NRestarts "$1")" -ge "$2" ]
}

looping crashing SEGV
looping killed KILL
systemctl daemon-reload
start_fresh
check "services that end and end" systemctl start crashing killed
check "the one that crashes is given up" until_true state crashing failed
reason=$(binding crashing.service/nap StateReason)
matches "the reason says why" "$reason" "^crashing.service crashed twice within 10min while it was measured, with SIGSEGV: its probes were removed"
check "so does the journal" wait_for_entry '.MESSAGE | test("crashed twice")' -t tlob TLOB_BINDING=crashing.service/nap
windows=$(binding crashing.service/nap Windows)
check "it goes on crashing" until_true restarts crashing 5
equal "and is not measured" "$(binding crashing.service/nap Windows)" "$windows"
check "the other one is killed as often" until_true restarts killed 5
check "and keeps its probes" until_true state killed active
systemctl daemon-reload
pause 2
equal "systemd's reload changes nothing" "$(binding crashing.service/nap State)" failed
tlobctl reload
check "tlobctl's does" until_true sh -c "tlobctl show -j crashing.service/nap | grep -qE '\"State\": *\"(active|waiting)\"'"
systemctl stop crashing killed
finish
