# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A program whose code in memory is not that of its file, where a probe is to go: it gets none, runs on unharmed, and
# the administrator is told why. Its next process, which has the hook only after it has started, gets none either.

. "${BASH_SOURCE[0]%/*}/assert.sh"

unit=hooked.service
binding=$unit/request
dropin=/etc/systemd/system/$unit.d/tlob.conf

# is_unharmed PID
is_unharmed() {
        pause 0.5
        [ "$(systemctl show -P MainPID "$unit")" = "$1" ] && [ "$(systemctl show -P NRestarts "$unit")" = 0 ]
}

main_pid_of_unit() {
        systemctl show -P MainPID "$unit"
}

set_program() { # WORD...
        printf '[Service]\nType=exec\nRestart=always\nExecStart=/usr/libexec/tlob-tests/hooked %s\n' "$*" \
                >"/etc/systemd/system/$unit"
        systemctl daemon-reload
}

mkdir -p "${dropin%/*}"
set_program hook
check "the service starts" systemctl start "$unit"
pid=$(main_pid_of_unit)
start_fresh
printf '[X-Tlob request]\nFunction=request\nBudgetSec=1s\n' >"$dropin"
systemctl daemon-reload
check "its binding fails" until_true binding_has "$binding" State failed
check "it says which process has other code, and where" says "$binding" \
        "Process $pid of $unit has other code at 0x[0-9a-f]+, in request, than /.*/hooked, as hooks and live patches"
check "the process runs on" is_unharmed "$pid"
check "it is told in the journal" wait_for_entry '.MESSAGE | test("has other code at 0x")' -u tlobd

systemctl restart "$unit"
pid=$(main_pid_of_unit)
check "so does the next one" is_unharmed "$pid"
equal "the binding stays as it is" "$(binding "$binding" State)" failed
matches "reload looks again" "$(tlobctl reload 2>&1)" 'has other code'
check "the process is still unharmed" is_unharmed "$pid"

set_program
systemctl restart "$unit"
check "without a hook it is measured, after a reload" tlobctl reload
check "it is active" until_true binding_has "$binding" State active
check "it has windows" until_true has_windows "$binding" 10
finish
