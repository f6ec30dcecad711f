# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
#
# A user's own tlobd: alice, who lingers, has a service with a budget, and a tlobd for it below her own systemd. What she
# configures is known there, follows her units, is hers to change, and is nobody else's.

. "${BASH_SOURCE[0]%/*}/alice.sh"

start_fresh
begin_alice
equal "her unit file is sound" "$(as_alice systemd-analyze --user verify --man=no /usr/lib/systemd/user/tlobd.service 2>&1)" ""
equal "nobody has started it" "$(as_alice systemctl --user is-enabled tlobd) $(as_alice systemctl --user is-active tlobd)" \
        "disabled inactive"
refuse "who only looks does not start it" 1 "tlobd is not running; start it with 'systemctl --user start tlobd'" ctl

writes .config/systemd/user/app.service '[Service]\nExecStart=%s\n' $server
writes .config/systemd/user/app.service.d/50-latency.conf "$request" 5ms
check "she has a service" as_alice systemctl --user daemon-reload
check "her tlobd starts" as_alice systemctl --user start tlobd
equal "and is ready" "$(as_alice systemctl --user show -P Type tlobd) $(as_alice systemctl --user is-active tlobd)" \
        "notify active"
daemon=$(as_alice systemctl --user show -P MainPID tlobd)
equal "it is hers" "$(stat -c %U "/proc/$daemon")" alice
equal "and has no capabilities" "$(sed -n 's/^CapPrm:\t*//p' "/proc/$daemon/status")" 0000000000000000

equal "it knows the binding" "$(ctl list-bindings -j | jq -r 'map("\(.Name) \(.Unit)") | join(",")')" \
        "app.service/request app.service"
equal "the tlobd of the system does not" "$(tlobctl list-bindings -j | jq length)" 0
equal "nor is it on the system bus" "$(busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus \
        GetConnectionUnixProcessID s org.tlob1)" "u $(main_pid)"

writes .config/systemd/user/app.service.d/50-latency.conf "$request" 7ms
as_alice systemctl --user daemon-reload
check "systemd reads her files again, and so does it" until_true hers_has app.service/request BudgetNSec 7000000
writes .config/tlob/bindings.d/all.conf '[Binding all]\nUnit=app.service\nFunction=handle_request\nBudgetSec=1s\nBudgetMinSec=2s\n'
writes .config/tlob/bindings.d/later.conf '[Binding later]\nUnit=later.service\nFunction=handle_request\nBudgetSec=1s\n'
# What she may not read is no reason to change nothing.
mkdir -p /etc/tlob
chmod 750 /etc/tlob
check "she reloads" as_alice systemctl --user reload tlobd
chmod 755 /etc/tlob
matches "a mistake in her configuration is told with its place" "$(hers all StateReason)" \
        "$home/.config/tlob/bindings.d/all.conf:[0-9]+: BudgetMinSec="

equal "a binding waits for its unit" "$(hers later State)" waiting
as_alice systemd-run --user --quiet --unit=later $server
check "is looked at when that starts" until_true eval '! hers_has later State waiting'
as_alice systemctl --user stop later
check "and waits again when it has ended" until_true hers_has later State waiting

# With the rights of root on the machine, as far as it is hers.
check "she adds a binding" ctl add-binding mine --unit=later --function=handle_request --budget=5ms --on-violation=look.service
equal "until she logs out" "$(hers mine Source)" "/run/user/$alice/tlob/bindings.d/tlobctl-mine.conf:3"
equal "as its owner" "$(grep -c AddedBy "/run/user/$alice/tlob/bindings.d/tlobctl-mine.conf")" 0
check "and one that stays" ctl add-binding stays --persist --unit=later --function=handle_request --budget=5ms
equal "in her home" "$(hers stays Source)" "$home/.config/tlob/bindings.d/tlobctl-stays.conf:3"
check "she changes a budget" ctl set-budget app.service/request 8ms
check "tlobd is restarted" as_alice systemctl --user restart tlobd
equal "and knows all of that" "$(ctl list-bindings -j | jq -r 'map("\(.Name) \(.BudgetNSec)") | join(",")')" \
        "all 1000000000,app.service/request 8000000,later 1000000000,mine 5000000,stays 5000000"
check "she removes what she has added" ctl remove-binding mine stays
refuse "root has no part in it" 1 'connect to the user bus|not running' tlobctl --user

cat >/run/editor <<'END'
#!/bin/sh
printf '[X-Tlob edited]\nFunction=handle_request\nBudgetSec=9ms\nBudgetMinSec=9s\n' >"$1"
END
chmod 755 /run/editor
ctl cat app >/run/cat
equal "cat shows where it is written" "$(grep -c "^# $home/.config/systemd/user/app.service.d/50-latency.conf$" /run/cat)" 1
as_alice env SYSTEMD_EDITOR=/run/editor tlobctl --user edit app >/run/edit 2>&1
matches "edit verifies what is to be written there" "$(cat /run/edit)" \
        "^$home/.config/systemd/user/app.service.d/50-tlob.conf:1: .*BudgetMinSec="

as_alice systemctl --user stop tlobd
check "a call on her bus starts it, when she is to change something" ctl set-budget app.service/request default
equal "as a service" "$(as_alice systemctl --user is-active tlobd)" active

check "an entry about it is among those of her unit" until_true eval \
        'as_alice journalctl --user -q -u app.service -t tlob --grep="^all: not measured"'
check "also by its other name" eval 'as_alice journalctl -q --user-unit=app.service -t tlob | grep -q "all: not measured"'
equal "and names no unit of the system" "$(journalctl --boot -q -t tlob -o json |
        jq -r 'select(._UID == "'"$alice"'" and .OBJECT_SYSTEMD_UNIT) | .MESSAGE')" ""

check "its end is clean" as_alice systemctl --user stop tlobd
equal "as systemd sees it" "$(as_alice systemctl --user show -P Result tlobd)" success
equal "no system call of hers was denied" "$(journalctl --boot -q -o cat _UID="$alice" --grep='status=31/SYS')" ""
systemctl stop "user@$alice.service"

finish
